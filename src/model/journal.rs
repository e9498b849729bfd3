//! The journal: what we meant to do, what we asked, and what came of it. The doubt is written before a call and the
//! truth after it; an entry's phase is the fold of its events through one table of legal moves, so recovery is replay.

use std::fmt;

use super::action::{Action, Verb};
use super::ids::{EntryId, Epoch, Key, Zone};
use super::inventory::SetSeen;
use super::machine::{CLOCK_SKEW, Listed, Machine};
use super::time::{Skew, Span, Time};

/// How the cloud (or the cluster) refused. Classified once, where it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    Throttled,
    NoCapacity,
    Quota,
    Conflict,
    Preempted,
    /// On a delete this is success.
    Gone,
    Forbidden,
    Invalid,
    /// It may have happened, or not. Settled by a fresh look, never by asking again.
    Unclear,
}

impl Refusal {
    pub const ALL: [Refusal; 9] = [
        Refusal::Throttled,
        Refusal::NoCapacity,
        Refusal::Quota,
        Refusal::Conflict,
        Refusal::Preempted,
        Refusal::Gone,
        Refusal::Forbidden,
        Refusal::Invalid,
        Refusal::Unclear,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Throttled => "throttled",
            Refusal::NoCapacity => "noCapacity",
            Refusal::Quota => "quota",
            Refusal::Conflict => "conflict",
            Refusal::Preempted => "preempted",
            Refusal::Gone => "gone",
            Refusal::Forbidden => "forbidden",
            Refusal::Invalid => "invalid",
            Refusal::Unclear => "unclear",
        }
    }
}

/// The code of a conflict that our own look right before a write found: nothing was sent.
pub const CHANGED_SINCE_READ: &str = "ChangedSinceRead";

/// Azure's code where the version of the set is not the one that the write names.
const VERSION_MOVED: &str = "PreconditionFailed";

/// The code of a machine whose batch was refused for another machine of it.
pub const REFUSED_WITH_OTHERS: &str = "RefusedWithOthers";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// The other side's own sentence, cut short.
    pub message: Option<Box<str>>,
    pub zone: Option<Zone>,
    /// Not before this time again, where the other side said so.
    pub retry_at: Option<Time>,
}

const NO_TRACE: &str = "noTrace";

impl Refused {
    pub fn plain(refusal: Refusal) -> Self {
        Self { refusal, code: None, message: None, zone: None, retry_at: None }
    }

    /// No answer came, and a later listing shows no trace of the request. That listing may be an old one.
    pub fn no_trace() -> Self {
        Self { code: Some(NO_TRACE.into()), ..Self::plain(Refusal::Preempted) }
    }

    /// The set is no more as it was read.
    pub fn met_a_change(&self) -> bool {
        self.code.as_deref().is_some_and(|code| [CHANGED_SINCE_READ, VERSION_MOVED].contains(&code))
    }

    pub fn is_no_trace(&self) -> bool {
        self.refusal == Refusal::Preempted && self.code.as_deref() == Some(NO_TRACE)
    }
}

/// `Code: "sentence"`, as far as they are known.
pub fn refusal_reason(refusal: Refusal, code: Option<&str>, message: Option<&str>) -> String {
    let code = code.unwrap_or(refusal.name());
    message.map_or_else(|| code.to_owned(), |message| format!("{code}: \"{message}\""))
}

/// The truth about an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Refused(Refused),
    /// Some machines of a batch ended otherwise than the rest (`None`: done).
    Mixed(Vec<(Key, Option<Refused>)>),
    /// Never sent: its read grew too old, or what it rested on changed.
    Withdrawn,
}

/// Where a long operation can be asked about. Signed, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Operation(Box<str>);

impl Operation {
    pub fn new(address: impl AsRef<str>) -> Self {
        Self(address.as_ref().into())
    }

    /// For the one who polls it, and for nobody else.
    pub fn address(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operation(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Written, not sent.
    Intended,
    /// About to be sent, or sent and not answered: after a crash, ask the world.
    Asking {
        at: Time,
    },
    /// Accepted; goes on in the cloud.
    Accepted {
        at: Time,
        operation: Option<Operation>,
    },
    /// The answer was lost. Only a complete listing begun later settles it.
    Doubtful {
        at: Time,
    },
    Ended {
        at: Time,
        accepted: Option<Time>,
        outcome: Outcome,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Asking,
    Accepted(Option<Operation>),
    Lost,
    Ended(Outcome),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry}: {event} is no legal move from {phase}")]
pub struct IllegalMove {
    pub entry: EntryId,
    pub phase: &'static str,
    pub event: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: EntryId,
    pub epoch: Epoch,
    /// When the intent was written.
    pub written: Time,
    /// Start of the read it rests on.
    pub read_at: Time,
    pub action: Action,
    pub phase: Phase,
}

impl Phase {
    pub const fn name(&self) -> &'static str {
        match self {
            Phase::Intended => "intended",
            Phase::Asking { .. } => "asking",
            Phase::Accepted { .. } => "accepted",
            Phase::Doubtful { .. } => "doubtful",
            Phase::Ended { .. } => "ended",
        }
    }
}

impl Event {
    pub const fn name(&self) -> &'static str {
        match self {
            Event::Asking => "asking",
            Event::Accepted(_) => "accepted",
            Event::Lost => "lost",
            Event::Ended(_) => "ended",
        }
    }
}

/// A model that the set has no room for is asked for again after this.
// 2 h: room comes only as machines of old models leave, one by one; each try is a call that is refused.
pub const NO_ROOM_AGAIN: Span = Span::hours(2);

/// A raise whose answer was lost, and that no number shows, did not happen if a read begun this much later says the same.
// 2 min: one read alone may show the set as it was before.
const RAISE_SETTLES: Span = Span::minutes(2);

impl Entry {
    /// Whether this read tells what became of a request to the set whose answer was lost. Where none was lost there is
    /// nothing to settle.
    pub fn is_settled_by(&self, read: &SetSeen) -> bool {
        let at = match &self.phase {
            Phase::Doubtful { at } => *at,
            Phase::Ended { at, outcome: Outcome::Refused(refused), .. }
                if refused.refusal == Refusal::Unclear =>
            {
                *at
            }
            _ => return true,
        };
        let later = read.complete && read.read_at > at;
        match self.action {
            Action::Raise { to, .. } => {
                later && (read.capacity >= to || read.read_at >= at.plus(RAISE_SETTLES))
            }
            Action::Delete { .. } | Action::Reimage { .. } | Action::UpdateModel { .. } => later,
            // No other request waits for what became of a tag.
            Action::Drain { .. } | Action::Restore { .. } | Action::TagOwner { .. } => true,
        }
    }

    /// A write of the model that was refused because the set holds as many as it can, and that is not to be repeated yet.
    pub fn waits_for_room(&self, read_at: Time) -> bool {
        let Some((at, Outcome::Refused(refused))) = self.outcome() else { return false };
        let full = self.verb() == Verb::UpdateModel && refused.refusal == Refusal::Quota;
        full && read_at < at.plus(NO_ROOM_AGAIN)
    }

    /// Fold one event; the only way an entry moves.
    pub fn apply(&mut self, event: Event, at: Time) -> Result<(), IllegalMove> {
        let next = match (&self.phase, event) {
            (Phase::Intended, Event::Asking) => Phase::Asking { at },
            (Phase::Asking { .. }, Event::Accepted(operation)) => Phase::Accepted { at, operation },
            (Phase::Asking { .. }, Event::Lost) => Phase::Doubtful { at },
            // An intent may only be withdrawn; what was asked may end in any way; a doubt is ended by a fresh look.
            (Phase::Intended, Event::Ended(Outcome::Withdrawn)) => {
                Phase::Ended { at, accepted: None, outcome: Outcome::Withdrawn }
            }
            (Phase::Asking { .. } | Phase::Doubtful { .. }, Event::Ended(outcome)) => {
                Phase::Ended { at, accepted: None, outcome }
            }
            (Phase::Accepted { at: accepted, .. }, Event::Ended(outcome)) => {
                Phase::Ended { at, accepted: Some(*accepted), outcome }
            }
            (phase, event) => {
                let (phase, event) = (phase.name(), event.name());
                return Err(IllegalMove { entry: self.id.clone(), phase, event });
            }
        };
        self.phase = next;
        Ok(())
    }

    pub const fn verb(&self) -> Verb {
        self.action.verb()
    }

    pub const fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    pub fn outcome(&self) -> Option<(Time, &Outcome)> {
        match &self.phase {
            Phase::Ended { at, outcome, .. } => Some((*at, outcome)),
            _ => None,
        }
    }

    /// When the cloud accepted it, if it did.
    pub const fn accepted(&self) -> Option<Time> {
        match &self.phase {
            Phase::Accepted { at, .. } => Some(*at),
            Phase::Ended { accepted, .. } => *accepted,
            _ => None,
        }
    }

    /// The last moment that may have changed the world: what was read before it began does not show it.
    pub const fn last_answer(&self) -> Option<Time> {
        match &self.phase {
            Phase::Intended => None,
            Phase::Asking { at } | Phase::Accepted { at, .. } | Phase::Doubtful { at } => Some(*at),
            Phase::Ended { at, accepted, .. } => match accepted {
                Some(accepted) => Some(*accepted),
                None => Some(*at),
            },
        }
    }

    /// Whether this raise may have brought that machine. What the read showed on which the raise rests is none of its own,
    /// and neither is one that was born before and listed late.
    pub fn bore(&self, machine: &Machine, ahead: Option<Skew>) -> bool {
        let seen = machine.first_seen;
        let younger = machine.born(ahead).plus(CLOCK_SKEW) >= self.written;
        younger && (seen > self.written || (seen == self.written && machine.created == seen))
    }

    /// Whether this turn's listing, begun after the delete was accepted, shows that it has taken a machine.
    pub fn has_taken(&self, machine: &Machine, set: &SetSeen, listed: Listed) -> bool {
        let begun = matches!(self.phase, Phase::Accepted { at, .. } if set.read_at > at);
        let asked = || self.action.targets().iter().any(|target| target.is(machine));
        set.complete
            && begun
            && self.verb() == Verb::Delete
            && listed.proves_gone(machine)
            && asked()
    }

    /// How it ended for one machine of the batch; `None` while it goes on.
    pub fn outcome_for(&self, key: &Key) -> Option<Result<(), Refused>> {
        let (_, outcome) = self.outcome()?;
        Some(match outcome {
            Outcome::Done => Ok(()),
            Outcome::Refused(refused) => Err(refused.clone()),
            Outcome::Withdrawn => Err(Refused::plain(Refusal::Conflict)),
            Outcome::Mixed(each) => match each.iter().find(|(k, _)| k == key) {
                Some((_, Some(refused))) => Err(refused.clone()),
                _ => Ok(()),
            },
        })
    }
}
