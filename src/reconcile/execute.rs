//! Turns decided actions into journal entries, and entries into calls, in order.

use crate::act::{AskHooks, ChangeCloud, ChangeCluster, Executor, Observed, Ports};
use crate::ambient::Clock;
use crate::memory::{StoreError, TurnStore};
use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::ids::{EntryId, Epoch};
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, EntryEvent, EntryOutcome, Phase};
use crate::model::machine::Lifecycle;
use crate::model::plan::Decision;
use crate::model::time::Time;

/// One entry for each action, in the order of sending. Each drain gets its own entry, so that a stuck drain does not
/// delay the others.
pub(super) fn intents(
    planned: &Decision,
    set: &SetReading,
    epoch: Epoch,
    now: Time,
    taken: impl Fn(&EntryId) -> bool,
) -> Vec<Entry> {
    let mut number = 0_u32;
    let mut next_id = || loop {
        number += 1;
        let id = EntryId::new(format!("{}-{}-{number}", epoch.0, now.millis()));
        if !taken(&id) {
            return id;
        }
    };
    let entry = |action| Entry {
        id: next_id(),
        epoch,
        written: now,
        read_at: set.read_at,
        action,
        phase: Phase::Intended,
    };
    let mut actions: Vec<&Action> = planned.actions.iter().collect();
    actions.sort_by_key(|action| action.verb());
    actions.into_iter().flat_map(one_drain_each).map(entry).collect()
}

fn one_drain_each(action: &Action) -> Vec<Action> {
    match action {
        Action::Drain { targets, reason, before } if targets.len() > 1 => targets
            .iter()
            .map(|target| Action::Drain {
                targets: vec![target.clone()],
                reason: reason.clone(),
                before: *before,
            })
            .collect(),
        other => vec![other.clone()],
    }
}

/// What this turn may still send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Open,
    /// The model was not written: no machine may be created on, or reimaged to, the one in the set.
    NoBirths,
    /// An answer was lost: a listing settles it before any further write to that set, except deletes of failed
    /// machines.
    Shut,
}

pub(super) struct Execution<'c, 't, S, W, K, H, C> {
    pub book: &'c mut Executor<'t, S>,
    pub seen: Observed<'c>,
    pub ports: Ports<'c, W, K, H, C>,
}

impl<S: TurnStore, W: ChangeCloud, K: ChangeCluster, H: AskHooks, C: Clock>
    Execution<'_, '_, S, W, K, H, C>
{
    /// Carry out the intents of this turn, one request at a time. Returns true if some were withdrawn.
    pub(super) async fn carry(mut self, written: &[EntryId]) -> Result<bool, StoreError> {
        self.cancel_drains(written).await?;
        let set = self.seen.set;
        let shut = self.book.journal.open().iter().any(|entry| !entry.is_settled_by(set));
        let mut way = if shut { Way::Shut } else { Way::Open };
        let mut withdrew = false;
        for id in written {
            let Some(entry) = self.book.journal.find(id) else { continue };
            if may_go(way, &entry.action) {
                self.book.send(id, &self.seen, self.ports).await?;
            } else {
                self.book.note(
                    id,
                    EntryEvent::Ended(EntryOutcome::Withdrawn),
                    self.ports.clock.now(),
                )?;
            }
            let Some(entry) = self.book.journal.find(id) else { continue };
            withdrew |= matches!(entry.outcome(), Some((_, EntryOutcome::Withdrawn)));
            way = way_after(way, entry);
        }
        self.book.write(self.ports.clock.now()).await?;
        Ok(withdrew)
    }

    /// Lift drains of machines that return to service. Drains of machines that are being updated or deleted just end.
    async fn cancel_drains(&mut self, written: &[EntryId]) -> Result<(), StoreError> {
        let of_this_turn = |entry: &&Entry| written.contains(&entry.id);
        let open = self.book.journal.open().iter();
        let drains: Vec<Entry> = open
            .filter(|entry| entry.verb() == ActionKind::Drain && !entry.is_ended())
            .filter(|entry| !of_this_turn(entry))
            .cloned()
            .collect();
        for entry in drains {
            let lifecycle = self.seen.lifecycle(&entry);
            match lifecycle {
                None | Some(Lifecycle::Draining | Lifecycle::Drained) => {}
                Some(Lifecycle::InService | Lifecycle::CutOff | Lifecycle::Standby) => {
                    self.book
                        .release(&entry, &self.seen, EntryOutcome::Withdrawn, self.ports)
                        .await?;
                }
                Some(Lifecycle::Updating | Lifecycle::Deleting) => {
                    let now = self.ports.clock.now();
                    self.book.note(&entry.id, EntryEvent::Ended(EntryOutcome::Withdrawn), now)?;
                }
            }
        }
        Ok(())
    }
}

fn may_go(way: Way, action: &Action) -> bool {
    let verb = action.verb();
    match way {
        Way::Open => true,
        Way::NoBirths => !matches!(verb, ActionKind::Raise | ActionKind::Reimage),
        Way::Shut if verb == ActionKind::Delete => {
            action.targets().iter().all(|target| target.because == RemovalReason::Failed)
        }
        Way::Shut => {
            matches!(verb, ActionKind::CutOff | ActionKind::Drain | ActionKind::Restore)
        }
    }
}

fn way_after(way: Way, entry: &Entry) -> Way {
    let verb = entry.verb();
    match &entry.phase {
        Phase::Doubtful { .. }
            if !matches!(
                verb,
                ActionKind::Drain
                    | ActionKind::TagOwner
                    | ActionKind::SuspendAutoscaler
                    | ActionKind::PutBackAutoscaler
            ) =>
        {
            Way::Shut
        }
        Phase::Ended { outcome, .. }
            if verb == ActionKind::UpdateModel && *outcome != EntryOutcome::Done =>
        {
            way.max(Way::NoBirths)
        }
        _ => way,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::StoreId;
    use crate::model::owner::{OwnerTag, OwnerWrite};

    #[test]
    fn a_lost_answer_about_the_owner_tag_stops_no_other_request() {
        let at = Time::from_millis(0);
        let tag = OwnerTag { store: StoreId::new("a"), since: at };
        let write = OwnerWrite::Put { tag, over: None };
        let (id, epoch, phase) = (EntryId::new("e"), Epoch(1), Phase::Doubtful { at });
        let action = Action::TagOwner { write, reason: "".into(), before: at };
        let tags = Entry { id, epoch, written: at, read_at: at, action, phase };
        assert_eq!(way_after(Way::Open, &tags), Way::Open);
        let (targets, force) = (Vec::new(), false);
        let action = Action::Delete { targets, reason: "".into(), before: at, force };
        assert_eq!(way_after(Way::Open, &Entry { action, ..tags }), Way::Shut);
    }
}
