//! The next step of one entry, from its phase and the last look. Pure, and total over phases and verbs.

use super::DrainProgress;
use crate::memory::births;
use crate::model::action::{Action, ActionKind, READ_IS_FRESH, Target};
use crate::model::ids::Revision;
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, EntryOutcome, OperationUrl, Phase, Refusal, Refused};
use crate::model::machine::{Condition, ListingTrust, Machine};
use crate::model::time::{Skew, Span, Time};

/// An accepted operation that reports nothing for this long is settled by the listing.
// 2 h: hung creations have been observed to end after 40 to 90 minutes.
const LONGEST_OPERATION: Span = Span::hours(2);

/// The code under which a delete that passed its deadline is reported.
pub const DELETE_DEADLINE: &str = "DeleteDeadline";

/// A listing may be stale by this much.
const LISTS_LAG: Span = Span::minutes(15);

/// What the executor knows from this turn's look.
#[derive(Debug, Clone, Copy)]
pub struct SetSight<'a> {
    pub set: &'a SetReading,
    /// Records with this look folded in, in listing order.
    pub machines: &'a [Machine],
    /// All open entries, because our other entries may explain part of a number. Needed to settle, not to send.
    pub open: &'a [Entry],
    /// How long an accepted delete may take.
    pub delete_deadline: Span,
    /// How far the cloud's clock is ahead of ours.
    pub clock_ahead: Option<Skew>,
}

/// What is known of an operation outside the journal. Losing it costs one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PollState {
    /// Earliest time of the next poll.
    pub not_before: Option<Time>,
    /// When the cloud no longer knew its address.
    pub lost_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvanceStep {
    /// The entry has ended: nothing is left to do.
    Rest,
    Send,
    Poll(OperationUrl),
    /// Query the progress of the drain, or remove our marks from the nodes.
    AskCluster,
    /// A call was interrupted: record that its answer is lost.
    Doubt,
    /// The look shows the outcome.
    Settle(EntryOutcome),
    /// Never sent, and too late to send.
    Withdraw,
    /// Wait for a later look, or for this time.
    Wait(Option<Time>),
}

/// The next step. An `Asking` entry counts as interrupted: while a call runs, nothing calls this function.
pub fn advance(entry: &Entry, sight: &SetSight<'_>, pace: PollState, now: Time) -> AdvanceStep {
    let drains = entry.verb() == ActionKind::Drain;
    match &entry.phase {
        Phase::Ended { .. } => AdvanceStep::Rest,
        Phase::Intended if may_leave(entry, sight, now) => AdvanceStep::Send,
        Phase::Intended => AdvanceStep::Withdraw,
        Phase::Asking { .. } | Phase::Accepted { .. } | Phase::Doubtful { .. } if drains => {
            if entry.action.targets().iter().any(|target| sight.find(target).is_some()) {
                AdvanceStep::AskCluster
            } else {
                // Its record is closed: there is nothing left to drain.
                AdvanceStep::Settle(EntryOutcome::Done)
            }
        }
        Phase::Asking { .. } | Phase::Doubtful { .. } | Phase::Accepted { operation: None, .. }
            if entry.verb() == ActionKind::Restore =>
        {
            AdvanceStep::AskCluster
        }
        Phase::Asking { .. } => AdvanceStep::Doubt,
        Phase::Doubtful { .. } if entry.is_settled_by(sight.set) && !sight.misses(entry) => {
            AdvanceStep::Settle(sight.truth(entry))
        }
        Phase::Doubtful { .. } => AdvanceStep::Wait(None),
        Phase::Accepted { at, operation } => {
            accepted(entry, *at, operation.as_ref(), sight, pace, now)
        }
    }
}

/// An intent is sent in the turn that wrote it, while its read is fresh, or never.
fn may_leave(entry: &Entry, sight: &SetSight<'_>, now: Time) -> bool {
    entry.read_at == sight.set.read_at
        && now.since(entry.read_at) <= READ_IS_FRESH
        && now <= entry.action.before()
}

fn accepted(
    entry: &Entry,
    at: Time,
    operation: Option<&OperationUrl>,
    sight: &SetSight<'_>,
    pace: PollState,
    now: Time,
) -> AdvanceStep {
    let seen = sight.tells_about(at);
    if seen && sight.shows_done(entry) {
        return AdvanceStep::Settle(EntryOutcome::Done);
    }
    if let Action::Delete { targets, .. } = &entry.action {
        if seen && now.since(at) >= sight.delete_deadline {
            let late =
                Refused { code: Some(DELETE_DEADLINE.into()), ..Refused::plain(Refusal::Conflict) };
            return AdvanceStep::Settle(sight.what_left(targets, &late, false));
        }
        // The listing shows that the delete continues, so a poll adds nothing: it ends with the last of its machines.
        let stays = |target| matches!(sight.shown(target), ListingState::There(_));
        let leaves = |target| matches!(sight.shown(target), ListingState::Leaving);
        if seen && targets.iter().any(leaves) && !targets.iter().any(stays) {
            return AdvanceStep::Wait(Some(at.plus(sight.delete_deadline)));
        }
    } else if seen && now.since(at) >= LONGEST_OPERATION {
        return AdvanceStep::Settle(sight.truth(entry));
    }
    match (operation, pace.lost_at) {
        (Some(_), Some(lost)) if sight.tells_about(lost) && !sight.misses(entry) => {
            AdvanceStep::Settle(sight.truth(entry))
        }
        (None, _) | (_, Some(_)) => AdvanceStep::Wait(None),
        (Some(operation), None) => match pace.not_before.filter(|at| *at > now) {
            Some(later) => AdvanceStep::Wait(Some(later)),
            None => AdvanceStep::Poll(operation.clone()),
        },
    }
}

/// What a complete listing shows of a target.
#[derive(Debug, Clone, Copy)]
enum ListingState<'a> {
    /// Certainly deleted.
    Gone,
    /// Not in this listing, but missing from too few listings to be certain.
    Missing,
    /// Being deleted.
    Leaving,
    There(&'a Machine),
}

impl<'a> SetSight<'a> {
    /// True if the listing is complete and began after this time.
    fn tells_about(&self, at: Time) -> bool {
        self.set.complete && self.set.read_at > at
    }

    /// The record of a target, listed or not.
    pub fn find(&self, target: &Target) -> Option<&'a Machine> {
        let from =
            self.machines.partition_point(|m| (m.created, &m.vm) < (target.created, &target.vm));
        let born_then = |m: &&Machine| m.created == target.created;
        self.machines.iter().skip(from).take_while(born_then).find(|m| target.is(m))
    }

    /// An earlier listing showed it as deleting, at least two have lacked it since, and it is too old for a stale
    /// listing from before its creation.
    fn was_seen_going(&self, machine: &Machine) -> bool {
        let old = self.set.read_at.since(machine.first_seen) >= LISTS_LAG;
        machine.condition == Condition::Deleting && machine.missed > 1 && old
    }

    /// Some target of a delete is missing, but not certainly gone yet.
    fn misses(&self, entry: &Entry) -> bool {
        let mut targets = entry.action.targets().iter();
        let missing = |target: &Target| matches!(self.shown(target), ListingState::Missing);
        entry.verb() == ActionKind::Delete && targets.any(missing)
    }

    fn shown(&self, target: &Target) -> ListingState<'a> {
        match self.find(target) {
            None => ListingState::Gone,
            Some(machine) if machine.missed > 0 && self.was_seen_going(machine) => {
                ListingState::Gone
            }
            Some(machine) if machine.missed > 0 => ListingState::Missing,
            Some(machine) if machine.condition == Condition::Deleting => ListingState::Leaving,
            Some(machine) => ListingState::There(machine),
        }
    }

    /// The look shows everything the entry wanted, so its operation needs no poll.
    fn shows_done(&self, entry: &Entry) -> bool {
        match &entry.action {
            Action::Delete { targets, .. } => {
                let listed = ListingTrust::of(self.machines);
                let took = |target: &Target| {
                    self.find(target).is_some_and(|m| entry.has_taken(m, self.set, listed))
                };
                targets.iter().all(|t| matches!(self.shown(t), ListingState::Gone) || took(t))
            }
            Action::Raise { to, .. } => {
                let born = births(self.open, self.machines, self.clock_ahead);
                let mine = self.open.iter().position(|other| other.id == entry.id);
                let born = mine.and_then(|i| born.get(i)).copied().unwrap_or(0);
                let asked = entry.action.births();
                asked > 0 && born >= asked && self.has_landed(entry, *to, false)
            }
            Action::UpdateModel { fields, .. } => {
                self.set.model.as_ref().is_some_and(|model| model.carries(fields))
            }
            Action::TagOwner { write, .. } => write.is_done(self.set.owner()),
            Action::WriteAutoscaler { write, .. } => write.is_done(self.set.autoscaler.as_ref()),
            Action::Reimage { targets, to, .. } => targets.iter().all(|target| {
                matches!(self.shown(target), ListingState::There(m)
                    if m.condition == Condition::Ready && is_updated(m, to, entry.written))
            }),
            Action::Restore { targets, .. } => targets.iter().all(|target| {
                matches!(self.shown(target), ListingState::There(m) if m.condition == Condition::Ready)
            }),
            Action::CutOff { .. } => true,
            Action::Standby { targets, .. } => {
                targets.iter().all(|target| match self.shown(target) {
                    ListingState::There(machine) => machine.condition == Condition::Stopped,
                    _ => true,
                })
            }
            Action::Drain { .. } => false,
        }
    }

    /// The outcome of a call whose answer is lost, from a complete listing that began later. A call that left no trace
    /// is `Preempted`, as if something newer had replaced it. This leads to a new plan, does not blame the cloud for a
    /// refusal that it never gave, and keeps counting a raise that may land late for a while.
    fn truth(&self, entry: &Entry) -> EntryOutcome {
        let none = Refused::no_trace();
        let whole = |done: bool| {
            if done { EntryOutcome::Done } else { EntryOutcome::Refused(none.clone()) }
        };
        match &entry.action {
            // If a delete may have lowered the capacity before or after the read, the raise counts as one that may have
            // landed: no trace.
            Action::Raise { to, .. } => whole(self.has_landed(entry, *to, true)),
            Action::UpdateModel { fields, expect, .. } => whole(match &self.set.model {
                Some(model) => model.carries(fields),
                None => self.set.revision != expect.revision,
            }),
            Action::TagOwner { write, .. } => whole(write.is_done(self.set.owner())),
            Action::WriteAutoscaler { write, .. } => {
                whole(write.is_done(self.set.autoscaler.as_ref()))
            }
            Action::Delete { targets, .. } => self.what_left(targets, &none, true),
            Action::Reimage { targets, to, .. } => self.of_each(targets, |shown| match shown {
                ListingState::There(m) if !is_updated(m, to, entry.written) => Some(none.clone()),
                _ => None,
            }),
            Action::Restore { targets, .. } => self.of_each(targets, |shown| match shown {
                ListingState::There(m) if is_down(m) => Some(none.clone()),
                _ => None,
            }),
            Action::CutOff { .. } => EntryOutcome::Done,
            Action::Standby { targets, .. } => self.of_each(targets, |shown| match shown {
                ListingState::There(m) if m.condition != Condition::Stopped => Some(none.clone()),
                _ => None,
            }),
            Action::Drain { .. } => EntryOutcome::Withdrawn,
        }
    }

    /// The capacity reached `to`, or would have without our own deletes, which may have lowered it since.
    /// `surely`: deletes that ran when the raise was read do not count.
    fn has_landed(&self, entry: &Entry, to: u32, surely: bool) -> bool {
        let lowers = |other: &&Entry| {
            let ended = other.outcome().is_some_and(|(ended, _)| ended < entry.read_at);
            let before = ended || (surely && other.written < entry.read_at);
            other.verb() == ActionKind::Delete && !before && other.phase != Phase::Intended
        };
        // What was withdrawn or refused lowered nothing.
        let took = |other: &Entry, target: &Target| match other.outcome_for(&target.key()) {
            None | Some(Ok(())) => true,
            Some(Err(no)) => {
                matches!(no.refusal, Refusal::Unclear | Refusal::Preempted | Refusal::Gone)
            }
        };
        let taken = |other: &Entry| {
            other.action.targets().iter().filter(|target| took(other, target)).count()
        };
        let deleted: usize = self.open.iter().filter(lowers).map(taken).sum();
        let deleted = u32::try_from(deleted).unwrap_or(u32::MAX);
        self.set.capacity.saturating_add(deleted) >= to
    }

    /// Outcome of a delete for each target: a machine that is still there gets `refused`.
    pub(super) fn what_left(
        &self,
        targets: &[Target],
        refused: &Refused,
        leaving_is_done: bool,
    ) -> EntryOutcome {
        self.of_each(targets, |shown| match shown {
            ListingState::Gone | ListingState::Missing => None,
            ListingState::Leaving if leaving_is_done => None,
            _ => Some(refused.clone()),
        })
    }

    fn of_each(
        &self,
        targets: &[Target],
        of: impl Fn(ListingState<'_>) -> Option<Refused>,
    ) -> EntryOutcome {
        let each: Vec<_> =
            targets.iter().map(|target| (target.key(), of(self.shown(target)))).collect();
        let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
        if refused == 0 {
            EntryOutcome::Done
        } else if refused < each.len() {
            EntryOutcome::Mixed(each)
        } else {
            let first = each.into_iter().find_map(|(_, refused)| refused);
            first.map_or(EntryOutcome::Done, EntryOutcome::Refused)
        }
    }
}

/// It is off, or its start failed.
const fn is_down(machine: &Machine) -> bool {
    matches!(machine.condition, Condition::Stopped | Condition::Failed)
}

fn is_updated(machine: &Machine, to: &Revision, asked: Time) -> bool {
    machine.revision.as_ref() == Some(to) || machine.imaged >= asked
}

/// Next step of a restore once its nodes carry none of our marks.
pub(super) fn restored(entry: &Entry, sight: &SetSight<'_>) -> AdvanceStep {
    let stopped = |target: &Target| {
        sight.find(target).is_some_and(|machine| machine.condition == Condition::Stopped)
    };
    match &entry.phase {
        _ if !entry.action.targets().iter().any(stopped) => AdvanceStep::Settle(EntryOutcome::Done),
        Phase::Asking { .. } => AdvanceStep::Doubt,
        Phase::Doubtful { at } | Phase::Accepted { at, .. } if sight.tells_about(*at) => {
            AdvanceStep::Settle(sight.truth(entry))
        }
        _ => AdvanceStep::Wait(None),
    }
}

/// What a drain's state means for its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DrainStep {
    Wait,
    /// The drain runs, but the entry does not say so yet.
    Accepted,
    End(EntryOutcome),
    /// Remove our marks from the node, then end.
    Release(EntryOutcome),
}

pub(super) fn drain_step(entry: &Entry, drain: &DrainProgress) -> DrainStep {
    match drain {
        DrainProgress::Running { .. } if matches!(entry.phase, Phase::Asking { .. }) => {
            DrainStep::Accepted
        }
        DrainProgress::Running { .. } | DrainProgress::Unseen => DrainStep::Wait,
        DrainProgress::Done => DrainStep::End(EntryOutcome::Done),
        DrainProgress::Blocked { code, say, retry_at } => {
            DrainStep::Release(EntryOutcome::Refused(Refused {
                code: Some(code.clone()),
                message: say.clone(),
                retry_at: *retry_at,
                ..Refused::plain(Refusal::Conflict)
            }))
        }
        // Never begun, or accepted and then lifted by another actor. Either way the planner plans it again.
        DrainProgress::NotBegun => {
            DrainStep::End(EntryOutcome::Refused(Refused::plain(Refusal::Preempted)))
        }
    }
}

#[cfg(test)]
mod tests;
