//! Unmanaging a pool: remove its owner tag, once. Nothing waits for the result.

use super::{Turn, TurnEnvironment};
use crate::memory::{Commit, HistoryEvent, HistoryRecord, StoreError};
use crate::model::action::{Action, ActionKind, READ_IS_FRESH};
use crate::model::ids::EntryId;
use crate::model::journal::{Entry, Phase};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::rollout::{OwnerMemory, PoolState};
use crate::model::time::Time;

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

impl<W: TurnEnvironment> Turn<'_, W> {
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
        let id = EntryId::new(format!("{}-{}-release", self.book.lease.epoch.0, now.millis()));
        if goes {
            let reason = "nothing names the pool any more".into();
            let before = set.read_at.plus(READ_IS_FRESH);
            let entry = Entry {
                id: id.clone(),
                epoch: self.book.lease.epoch,
                written: now,
                read_at: set.read_at,
                action: Action::TagOwner { write, reason, before },
                phase: Phase::Intended,
            };
            commit.history.push(super::history::decided(&entry, None, now));
            commit.set = Some(self.policy.scale_set.clone());
            commit.written.push(entry);
        }
        self.write(commit, state).await?;
        if goes {
            self.carry_out(&[id]).await?;
        }
        Ok(())
    }
}
