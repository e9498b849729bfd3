//! The next step of one entry, from its phase and what the last look showed. Pure, and total over phases and verbs.

use super::Drain;
use crate::memory::births;
use crate::model::action::{Action, READ_IS_FRESH, Target, Verb};
use crate::model::ids::Revision;
use crate::model::inventory::SetSeen;
use crate::model::journal::{Entry, Operation, Outcome, Phase, Refusal, Refused};
use crate::model::machine::{Condition, Listed, Machine};
use crate::model::time::{Skew, Span, Time};

/// An accepted operation that says nothing for this long is settled by what is listed.
// 2 h: creations that hang were seen to end after 40 to 90 minutes.
const LONGEST_OPERATION: Span = Span::hours(2);

/// The code under which a delete that passed its deadline is reported.
pub const DELETE_DEADLINE: &str = "DeleteDeadline";

/// A listing may show the set as it was so long ago.
const LISTS_LAG: Span = Span::minutes(15);

/// What the look of this turn says to the executor.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    pub set: &'a SetSeen,
    /// Records with this look folded in, in listing order.
    pub machines: &'a [Machine],
    /// All open entries: what others of ours explain of a number. Needed to settle, not to send.
    pub open: &'a [Entry],
    /// How long an accepted delete may take.
    pub delete_deadline: Span,
    /// The cloud's clock, beside ours.
    pub clock_ahead: Option<Skew>,
}

/// What is known of an operation beside the journal. Forgetting it costs one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// Not polled before this time.
    pub not_before: Option<Time>,
    /// When its address turned out to be unknown.
    pub lost_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Ended: nothing is left to do.
    Rest,
    Send,
    Poll(Operation),
    /// Ask the cluster how far the drain is, or to lift what we put there.
    AskCluster,
    /// A call was cut off in the middle: write down that its answer is lost.
    Doubt,
    /// The look shows the truth.
    Settle(Outcome),
    /// Never sent, and no more to be sent.
    Withdraw,
    /// Wait for a later look, or for this time.
    Wait(Option<Time>),
}

/// The next step. An entry that is `Asking` is taken for cut off: whoever is in the middle of a call does not ask.
pub fn advance(entry: &Entry, sight: &Sight<'_>, pace: Pace, now: Time) -> Step {
    let drains = entry.verb() == Verb::Drain;
    match &entry.phase {
        Phase::Ended { .. } => Step::Rest,
        Phase::Intended if may_leave(entry, sight, now) => Step::Send,
        Phase::Intended => Step::Withdraw,
        Phase::Asking { .. } | Phase::Accepted { .. } | Phase::Doubtful { .. } if drains => {
            if entry.action.targets().iter().any(|target| sight.find(target).is_some()) {
                Step::AskCluster
            } else {
                // Its record is closed: nothing is left that could be drained.
                Step::Settle(Outcome::Done)
            }
        }
        Phase::Asking { .. } | Phase::Doubtful { .. } | Phase::Accepted { operation: None, .. }
            if entry.verb() == Verb::Restore =>
        {
            Step::AskCluster
        }
        Phase::Asking { .. } => Step::Doubt,
        Phase::Doubtful { .. } if entry.is_settled_by(sight.set) && !sight.misses(entry) => {
            Step::Settle(sight.truth(entry))
        }
        Phase::Doubtful { .. } => Step::Wait(None),
        Phase::Accepted { at, operation } => {
            accepted(entry, *at, operation.as_ref(), sight, pace, now)
        }
    }
}

/// An intent leaves in the turn that wrote it, while its read is fresh, or never.
fn may_leave(entry: &Entry, sight: &Sight<'_>, now: Time) -> bool {
    entry.read_at == sight.set.read_at
        && now.since(entry.read_at) <= READ_IS_FRESH
        && now <= entry.action.before()
}

fn accepted(
    entry: &Entry,
    at: Time,
    operation: Option<&Operation>,
    sight: &Sight<'_>,
    pace: Pace,
    now: Time,
) -> Step {
    let seen = sight.tells_about(at);
    if seen && sight.shows_done(entry) {
        return Step::Settle(Outcome::Done);
    }
    if let Action::Delete { targets, .. } = &entry.action {
        if seen && now.since(at) >= sight.delete_deadline {
            let late =
                Refused { code: Some(DELETE_DEADLINE.into()), ..Refused::plain(Refusal::Conflict) };
            return Step::Settle(sight.what_left(targets, &late, false));
        }
        // The listing shows that it goes on: no call is needed to know it, for it ends with the last of them.
        let stays = |target| matches!(sight.shown(target), Shown::There(_));
        let leaves = |target| matches!(sight.shown(target), Shown::Leaving);
        if seen && targets.iter().any(leaves) && !targets.iter().any(stays) {
            return Step::Wait(Some(at.plus(sight.delete_deadline)));
        }
    } else if seen && now.since(at) >= LONGEST_OPERATION {
        return Step::Settle(sight.truth(entry));
    }
    match (operation, pace.lost_at) {
        (Some(_), Some(lost)) if sight.tells_about(lost) && !sight.misses(entry) => {
            Step::Settle(sight.truth(entry))
        }
        (None, _) | (_, Some(_)) => Step::Wait(None),
        (Some(operation), None) => match pace.not_before.filter(|at| *at > now) {
            Some(later) => Step::Wait(Some(later)),
            None => Step::Poll(operation.clone()),
        },
    }
}

/// What a complete listing shows of a target.
#[derive(Debug, Clone, Copy)]
enum Shown<'a> {
    /// For sure.
    Gone,
    /// The listing lacks it, and so did too few before it to be sure.
    Missing,
    /// On its way out.
    Leaving,
    There(&'a Machine),
}

impl<'a> Sight<'a> {
    /// A complete listing that was begun after this time.
    fn tells_about(&self, at: Time) -> bool {
        self.set.complete && self.set.read_at > at
    }

    /// The record of a target, whether or not it was listed.
    pub fn find(&self, target: &Target) -> Option<&'a Machine> {
        let from =
            self.machines.partition_point(|m| (m.created, &m.vm) < (target.created, &target.vm));
        let born_then = |m: &&Machine| m.created == target.created;
        self.machines.iter().skip(from).take_while(born_then).find(|m| target.is(m))
    }

    /// Shown as deleting before, lacking twice, and too old for the list to be a picture from before its birth.
    fn was_seen_going(&self, machine: &Machine) -> bool {
        let old = self.set.read_at.since(machine.first_seen) >= LISTS_LAG;
        machine.condition == Condition::Deleting && machine.missed > 1 && old
    }

    /// Some target of a delete is missing, and whether it is gone is not sure yet.
    fn misses(&self, entry: &Entry) -> bool {
        let mut targets = entry.action.targets().iter();
        let missing = |target: &Target| matches!(self.shown(target), Shown::Missing);
        entry.verb() == Verb::Delete && targets.any(missing)
    }

    fn shown(&self, target: &Target) -> Shown<'a> {
        match self.find(target) {
            None => Shown::Gone,
            Some(machine) if machine.missed > 0 && self.was_seen_going(machine) => Shown::Gone,
            Some(machine) if machine.missed > 0 => Shown::Missing,
            Some(machine) if machine.condition == Condition::Deleting => Shown::Leaving,
            Some(machine) => Shown::There(machine),
        }
    }

    /// All that was asked for is to be seen, so that no operation need be asked.
    fn shows_done(&self, entry: &Entry) -> bool {
        match &entry.action {
            Action::Delete { targets, .. } => {
                let listed = Listed::of(self.machines);
                let took = |target: &Target| {
                    self.find(target).is_some_and(|m| entry.has_taken(m, self.set, listed))
                };
                targets.iter().all(|t| matches!(self.shown(t), Shown::Gone) || took(t))
            }
            Action::Raise { to, .. } => {
                let born = births(self.open, self.machines, self.clock_ahead);
                let mine = self.open.iter().position(|other| other.id == entry.id);
                let born = mine.and_then(|i| born.get(i)).copied().unwrap_or(0);
                let asked = entry.action.births();
                asked > 0 && born >= asked && self.has_landed(entry, *to)
            }
            Action::UpdateModel { fields, .. } => {
                self.set.model.as_ref().is_some_and(|model| model.carries(fields))
            }
            Action::TagOwner { write, .. } => write.is_done(self.set.owner()),
            Action::Reimage { targets, to, .. } => targets.iter().all(|target| {
                matches!(self.shown(target), Shown::There(m)
                    if m.condition == Condition::Ready && is_updated(m, to, entry.written))
            }),
            Action::Restore { targets, .. } => targets.iter().all(|target| {
                matches!(self.shown(target), Shown::There(m) if m.condition == Condition::Ready)
            }),
            Action::Drain { .. } => false,
        }
    }

    /// What became of a call whose answer is lost, by a complete listing begun later. What left no trace is `Preempted`:
    /// something newer stands in its place. That asks for a new plan, without blaming the cloud for a refusal it never
    /// gave, and keeps a raise that may land late in the count for a while.
    fn truth(&self, entry: &Entry) -> Outcome {
        let none = Refused::no_trace();
        let whole = |done: bool| if done { Outcome::Done } else { Outcome::Refused(none.clone()) };
        match &entry.action {
            Action::Raise { to, .. } => whole(self.has_landed(entry, *to)),
            Action::UpdateModel { fields, expect, .. } => whole(match &self.set.model {
                Some(model) => model.carries(fields),
                None => self.set.revision != expect.revision,
            }),
            Action::TagOwner { write, .. } => whole(write.is_done(self.set.owner())),
            Action::Delete { targets, .. } => self.what_left(targets, &none, true),
            Action::Reimage { targets, to, .. } => self.of_each(targets, |shown| match shown {
                Shown::There(m) if !is_updated(m, to, entry.written) => Some(none.clone()),
                _ => None,
            }),
            Action::Restore { targets, .. } => self.of_each(targets, |shown| match shown {
                Shown::There(m) if m.condition == Condition::Stopped => Some(none.clone()),
                _ => None,
            }),
            Action::Drain { .. } => Outcome::Withdrawn,
        }
    }

    /// A capacity that reached `to`, or would have without deletes of ours that may have lowered it since.
    fn has_landed(&self, entry: &Entry, to: u32) -> bool {
        let lowers = |other: &&Entry| {
            let ended_before = other.outcome().is_some_and(|(ended, _)| ended < entry.read_at);
            other.verb() == Verb::Delete && !ended_before && other.phase != Phase::Intended
        };
        let deleted: usize =
            self.open.iter().filter(lowers).map(|other| other.action.targets().len()).sum();
        let deleted = u32::try_from(deleted).unwrap_or(u32::MAX);
        self.set.capacity.saturating_add(deleted) >= to
    }

    /// How a delete ended for each target: what is still there was refused so.
    pub(super) fn what_left(
        &self,
        targets: &[Target],
        refused: &Refused,
        leaving_is_done: bool,
    ) -> Outcome {
        self.of_each(targets, |shown| match shown {
            Shown::Gone | Shown::Missing => None,
            Shown::Leaving if leaving_is_done => None,
            _ => Some(refused.clone()),
        })
    }

    fn of_each(&self, targets: &[Target], of: impl Fn(Shown<'_>) -> Option<Refused>) -> Outcome {
        let each: Vec<_> =
            targets.iter().map(|target| (target.key(), of(self.shown(target)))).collect();
        let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
        if refused == 0 {
            Outcome::Done
        } else if refused < each.len() {
            Outcome::Mixed(each)
        } else {
            let first = each.into_iter().find_map(|(_, refused)| refused);
            first.map_or(Outcome::Done, Outcome::Refused)
        }
    }
}

fn is_updated(machine: &Machine, to: &Revision, asked: Time) -> bool {
    machine.revision.as_ref() == Some(to) || machine.imaged >= asked
}

/// What becomes of a restore once nothing of ours is left on its nodes.
pub(super) fn restored(entry: &Entry, sight: &Sight<'_>) -> Step {
    let stopped = |target: &Target| {
        sight.find(target).is_some_and(|machine| machine.condition == Condition::Stopped)
    };
    match &entry.phase {
        _ if !entry.action.targets().iter().any(stopped) => Step::Settle(Outcome::Done),
        Phase::Asking { .. } => Step::Doubt,
        Phase::Doubtful { at } | Phase::Accepted { at, .. } if sight.tells_about(*at) => {
            Step::Settle(sight.truth(entry))
        }
        _ => Step::Wait(None),
    }
}

/// What a drain's state makes of its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DrainStep {
    Wait,
    /// It goes on; the entry did not know yet.
    Accepted,
    End(Outcome),
    /// Lift what we put on the node, then end.
    Release(Outcome),
}

pub(super) fn drain_step(entry: &Entry, drain: &Drain) -> DrainStep {
    match drain {
        Drain::Running { .. } if matches!(entry.phase, Phase::Asking { .. }) => DrainStep::Accepted,
        Drain::Running { .. } | Drain::Unseen => DrainStep::Wait,
        Drain::Done => DrainStep::End(Outcome::Done),
        Drain::Blocked { code, retry_at } => DrainStep::Release(Outcome::Refused(Refused {
            code: Some(code.clone()),
            retry_at: *retry_at,
            ..Refused::plain(Refusal::Conflict)
        })),
        // Accepted once and not under way any more: somebody lifted it. Either way it is planned again.
        Drain::NotBegun => DrainStep::End(Outcome::Refused(Refused::plain(Refusal::Preempted))),
    }
}

#[cfg(test)]
mod tests;
