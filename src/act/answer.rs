//! What an answer makes of an entry. Pure.

use super::advance::{Pace, Sight};
use super::{Answer, Poll};
use crate::model::action::{Action, Target};
use crate::model::ids::InstanceId;
use crate::model::journal::{Entry, Event, Outcome, REFUSED_WITH_OTHERS, Refusal, Refused};
use crate::model::time::{Span, Time};

/// Pace of polling where the other side names none.
// 30 s: what the cloud's own clients do.
const POLL_EVERY: Span = Span::seconds(30);

/// The event that an answer is.
pub fn heard(action: &Action, answer: Answer) -> Event {
    match answer {
        Answer::Accepted(operation) => Event::Accepted(operation),
        Answer::Done => Event::Ended(Outcome::Done),
        Answer::Refused(refused) if refused.refusal == Refusal::Unclear => Event::Lost,
        Answer::Refused(refused) => Event::Ended(refusal(action, refused)),
        Answer::RefusedFor(refused, machines) => {
            Event::Ended(refusal_for(action, refused, &machines))
        }
        Answer::Lost => Event::Lost,
        Answer::NotSent => Event::Ended(Outcome::Withdrawn),
    }
}

/// A delete of what is gone is a success. A batch is refused whole for one stale id, so "gone" says nothing about the
/// others: that batch is planned again from a new listing.
fn refusal(action: &Action, refused: Refused) -> Outcome {
    match action {
        Action::Delete { targets, .. } if refused.refusal == Refusal::Gone => match targets.len() {
            0 | 1 => Outcome::Done,
            _ => Outcome::Refused(Refused { refusal: Refusal::Conflict, ..refused }),
        },
        _ => Outcome::Refused(refused),
    }
}

/// The machines that the refusal names are refused; the others of the batch are planned again without them.
fn refusal_for(action: &Action, refused: Refused, machines: &[InstanceId]) -> Outcome {
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
    Outcome::Mixed(each.collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Digest {
    Ended(Outcome),
    Later(Pace),
}

/// What a poll tells about an accepted entry.
pub fn digest(entry: &Entry, poll: Poll, sight: &Sight<'_>, now: Time) -> Digest {
    let lost = Digest::Later(Pace { not_before: None, lost_at: Some(now) });
    match poll {
        Poll::Running { retry_at } => {
            let not_before = retry_at.unwrap_or(now.plus(POLL_EVERY));
            Digest::Later(Pace { not_before: Some(not_before), lost_at: None })
        }
        Poll::Done => Digest::Ended(Outcome::Done),
        Poll::Lost => lost,
        Poll::Failed(refused) if refused.refusal == Refusal::Unclear => lost,
        Poll::Failed(refused) => match &entry.action {
            Action::Delete { .. } if refused.refusal == Refusal::Gone => lost,
            // The look is older than this answer: what it shows as leaving may have stopped leaving.
            Action::Delete { targets, .. } if sight.set.complete => {
                Digest::Ended(sight.what_left(targets, &refused, false))
            }
            _ => Digest::Ended(Outcome::Refused(refused)),
        },
    }
}
