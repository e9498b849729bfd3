//! A pool leaves our care: its owner tag is taken away, once, and nothing waits for that.

use super::{Turn, World};
use crate::memory::{Commit, Line, StoreError, Told};
use crate::model::action::{Action, READ_IS_FRESH, Verb};
use crate::model::ids::EntryId;
use crate::model::journal::{Entry, Phase};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::rollout::{OwnerMemory, PoolState};
use crate::model::time::Time;

/// The tag that a pool leaves behind.
pub(super) fn tag(state: Option<&PoolState>) -> Option<OwnerTag> {
    state.and_then(|state| state.owner.tag.clone())
}

/// The state without the tag: what comes of taking it away is not waited for.
fn without_tag(state: Option<&PoolState>) -> Option<PoolState> {
    state.map(|state| PoolState { owner: OwnerMemory::default(), ..state.clone() })
}

/// The set cannot be read, so its tag stays.
pub(super) fn leave_it(mut commit: Commit, state: Option<&PoolState>, why: &str) -> Commit {
    let (at, verb) = (commit.at, Verb::TagOwner);
    commit.state = without_tag(state);
    let say = format!("the owner tag stays on the scale set: {why}; delete it there").into();
    let told = Told::Moved { entry: EntryId::new("release"), verb, say };
    commit.history.push(Line { at, told });
    commit
}

impl<W: World> Turn<'_, W> {
    /// Intend to take the tag away where a read shows that it is ours still, and forget it in the same write.
    pub(super) async fn give_up_tag(
        &mut self,
        tag: OwnerTag,
        state: &mut Option<PoolState>,
        now: Time,
    ) -> Result<(), StoreError> {
        let set = &self.scene.inventory.set;
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
            commit.history.push(super::told::decided(&entry, now));
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
