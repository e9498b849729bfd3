//! What an answer makes of an entry. Pure.

use super::advance::{Pace, Sight};
use super::{Answer, Poll};
use crate::model::action::Action;
use crate::model::journal::{Entry, Event, Outcome, Refusal, Refused};
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
