//! Turns an answer into an event of its entry. Pure.

use super::advance::{PollState, SetSight};
use super::{CallOutcome, Poll};
use crate::model::action::{Action, ActionKind, Target};
use crate::model::ids::InstanceId;
use crate::model::journal::{
    Entry, EntryEvent, EntryOutcome, REFUSED_WITH_OTHERS, Refusal, Refused,
};
use crate::model::time::{Span, Time};

/// Poll interval if the cloud names none.
// 30 s: the default of Azure's own clients.
const POLL_EVERY: Span = Span::seconds(30);

/// The event that an answer causes.
pub fn heard(action: &Action, answer: CallOutcome) -> EntryEvent {
    match answer {
        CallOutcome::Accepted(operation) => EntryEvent::Accepted(operation),
        CallOutcome::Done => EntryEvent::Ended(EntryOutcome::Done),
        CallOutcome::Refused(refused) if refused.refusal == Refusal::Unclear => EntryEvent::Lost,
        CallOutcome::Refused(refused) => EntryEvent::Ended(refusal(action, refused)),
        CallOutcome::RefusedFor(refused, machines) => {
            EntryEvent::Ended(refusal_for(action, refused, &machines))
        }
        CallOutcome::Lost => EntryEvent::Lost,
        CallOutcome::NotSent => EntryEvent::Ended(EntryOutcome::Withdrawn),
    }
}

/// Deleting a machine that is gone is a success. One stale id makes the cloud refuse a whole batch, so "gone" says
/// nothing about the other machines: the planner plans that batch again from a new listing.
fn refusal(action: &Action, refused: Refused) -> EntryOutcome {
    match action {
        Action::Delete { targets, .. } if refused.refusal == Refusal::Gone => match targets.len() {
            0 | 1 => EntryOutcome::Done,
            _ => EntryOutcome::Refused(Refused { refusal: Refusal::Conflict, ..refused }),
        },
        _ => EntryOutcome::Refused(refused),
    }
}

/// The refusal applies to the machines that it names; the planner plans the rest of the batch again without them.
fn refusal_for(action: &Action, refused: Refused, machines: &[InstanceId]) -> EntryOutcome {
    let targets = action.targets();
    let is_named = |target: &Target| {
        machines.iter().any(|id| id.as_str().eq_ignore_ascii_case(target.id.as_str()))
    };
    let named = targets.iter().filter(|target| is_named(target)).count();
    if named == 0 || named == targets.len() {
        return refusal(action, refused);
    }
    let others =
        || Refused { code: Some(REFUSED_WITH_OTHERS.into()), ..Refused::plain(Refusal::Conflict) };
    let each = targets.iter().map(|target| {
        let refused = if is_named(target) { refused.clone() } else { others() };
        (target.key(), Some(refused))
    });
    EntryOutcome::Mixed(each.collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Digest {
    Ended(EntryOutcome),
    Later(PollState),
}

/// What a poll result means for an accepted entry.
pub fn digest(entry: &Entry, poll: Poll, sight: &SetSight<'_>, now: Time) -> Digest {
    let lost = Digest::Later(PollState { not_before: None, lost_at: Some(now) });
    match poll {
        Poll::Running { retry_at } => {
            let not_before = retry_at.unwrap_or(now.plus(POLL_EVERY));
            Digest::Later(PollState { not_before: Some(not_before), lost_at: None })
        }
        // Whether a machine runs is what the planner acts on: the next listing has to show it.
        Poll::Done if matches!(entry.verb(), ActionKind::Restore | ActionKind::Standby) => lost,
        Poll::Done => Digest::Ended(EntryOutcome::Done),
        Poll::Lost => lost,
        Poll::Failed(refused) if refused.refusal == Refusal::Unclear => lost,
        Poll::Failed(refused) => match &entry.action {
            Action::Delete { .. } if refused.refusal == Refusal::Gone => lost,
            // The look is older than this answer: a machine that it shows as being deleted may no longer be.
            Action::Delete { targets, .. } if sight.set.complete => {
                Digest::Ended(sight.what_left(targets, &refused, false))
            }
            _ => Digest::Ended(EntryOutcome::Refused(refused)),
        },
    }
}
