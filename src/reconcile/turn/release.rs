//! Unmanaging a pool: put back the autoscaler that a rollout switched off, for as long as that is owed, and remove the
//! owner tag, once. Nothing waits for the result of that.

use super::{Turn, TurnEnvironment};
use crate::memory::{Commit, HistoryEvent, HistoryRecord, StoreError};
use crate::model::action::{Action, ActionKind, READ_IS_FRESH};
use crate::model::autoscaler::{
    Autoscaler, AutoscalerTarget, AutoscalerWrite, Suspension, SuspensionStage,
};
use crate::model::ids::EntryId;
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, Phase};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::rollout::{OwnerMemory, PoolState};
use crate::model::time::Time;

const NO_LONGER_NAMED: &str = "nothing names the pool any more";

/// The owner tag that is still on the pool's scale set.
pub(super) fn tag(state: Option<&PoolState>) -> Option<OwnerTag> {
    state.and_then(|state| state.owner.tag.clone())
}

/// The state without the tag: nothing waits for the result of the removal.
fn without_tag(state: Option<&PoolState>) -> Option<PoolState> {
    state.map(|state| PoolState { owner: OwnerMemory::default(), ..state.clone() })
}

/// The set cannot be read, so its tag stays there.
pub(super) fn leave_it(mut commit: Commit, state: Option<&PoolState>, why: &str) -> Commit {
    let (at, verb) = (commit.at, ActionKind::TagOwner);
    commit.state = without_tag(state);
    let say = format!("the owner tag stays on the scale set: {why}; delete it there").into();
    let event = HistoryEvent::Moved { entry: EntryId::new("release"), verb, message: say };
    commit.history.push(HistoryRecord::new(at, event));
    commit
}

/// What is owed to the autoscaler.
enum OwedToAutoscaler {
    /// Whether it is switched off cannot be read.
    Unknown,
    Write(AutoscalerWrite),
    Nothing,
}

/// A setting that is on, that another client edited, or that is gone, is not ours.
fn owed(suspension: &Suspension, set: &SetReading, open: &[Entry]) -> OwedToAutoscaler {
    // A write whose answer was lost may still land.
    let lands =
        suspension.stage == SuspensionStage::Asked && suspension.may_still_land(open, set.read_at);
    if set.hides_autoscaler() || lands {
        return OwedToAutoscaler::Unknown;
    }
    let ours = |found: &&Autoscaler| suspension.names(found) && suspension.is_as_it_was(found);
    let found = set.autoscaler.as_ref().filter(ours).filter(|found| !found.enabled);
    let Some((found, document)) = found.zip(suspension.owed(open)) else {
        return OwedToAutoscaler::Nothing;
    };
    let (setting, document) = (found.setting.clone(), document.clone());
    OwedToAutoscaler::Write(AutoscalerWrite { setting, document, to: AutoscalerTarget::PutBack })
}

impl<W: TurnEnvironment> Turn<'_, W> {
    /// Writes the setting back, and forgets it once a read shows that nothing is owed any more.
    pub(super) async fn put_autoscaler_back(
        &mut self,
        state: &mut Option<PoolState>,
        now: Time,
    ) -> Result<(), StoreError> {
        let Some(known) = state.as_ref().filter(|state| state.suspension.is_some()) else {
            return Ok(());
        };
        let Some(suspension) = &known.suspension else { return Ok(()) };
        let set = &self.observed.inventory.set;
        let mut commit = Commit::new(self.book.pool.clone(), self.book.lease.epoch, now);
        match owed(suspension, set, self.book.journal.open()) {
            OwedToAutoscaler::Unknown => Ok(()),
            OwedToAutoscaler::Nothing => {
                commit.state = Some(PoolState { suspension: None, ..known.clone() });
                self.write(commit, state).await
            }
            OwedToAutoscaler::Write(write) => {
                // Of earlier tries nothing is needed.
                let tried = |entry: &&Entry| entry.verb() == ActionKind::PutBackAutoscaler;
                let tried = self.book.journal.open().iter().filter(tried);
                commit.dropped = tried.map(|entry| entry.id.clone()).collect();
                let (reason, before) = (NO_LONGER_NAMED.into(), set.read_at.plus(READ_IS_FRESH));
                let action = Action::WriteAutoscaler { write, reason, before };
                self.carry_out_alone(commit, state, action, "autoscaler").await
            }
        }
    }

    /// One write besides any plan: its intent is stored first.
    async fn carry_out_alone(
        &mut self,
        mut commit: Commit,
        state: &mut Option<PoolState>,
        action: Action,
        name: &str,
    ) -> Result<(), StoreError> {
        let (epoch, written) = (self.book.lease.epoch, commit.at);
        let id = EntryId::new(format!("{}-{}-{name}", epoch.0, written.millis()));
        let read_at = self.observed.inventory.set.read_at;
        let (phase, entry_id) = (Phase::Intended, id.clone());
        let entry = Entry { id: entry_id, epoch, written, read_at, action, phase };
        commit.history.push(super::history::decided(&entry, None, written));
        commit.set = Some(self.policy.scale_set.clone());
        commit.written.push(entry);
        self.write(commit, state).await?;
        self.carry_out(&[id]).await?;
        Ok(())
    }

    /// Write the intent to remove the tag if the read shows that it is still ours, and drop it from the state in the
    /// same commit.
    pub(super) async fn give_up_tag(
        &mut self,
        tag: OwnerTag,
        state: &mut Option<PoolState>,
        now: Time,
    ) -> Result<(), StoreError> {
        let set = &self.observed.inventory.set;
        let write = OwnerWrite::TakeAway(tag);
        let goes = write.may_follow(set.owner()) && self.policy.tags_owner;
        let mut commit = Commit::new(self.book.pool.clone(), self.book.lease.epoch, now);
        commit.state = without_tag(state.as_ref());
        if !goes {
            return self.write(commit, state).await;
        }
        let (reason, before) = (NO_LONGER_NAMED.into(), set.read_at.plus(READ_IS_FRESH));
        let action = Action::TagOwner { write, reason, before };
        self.carry_out_alone(commit, state, action, "release").await
    }
}
