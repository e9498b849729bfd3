//! The journal: what we intended, what we sent, and what came of it. Write the doubt before a call and the truth after
//! it; an entry's phase is the fold of its events through one table of legal moves, so recovery is replay.

use std::fmt;

use super::action::{Action, ActionKind};
use super::ids::{EntryId, Epoch, Key, Zone};
use super::inventory::SetReading;
use super::machine::{CLOCK_SKEW, ListingTrust, Machine};
use super::time::{Skew, Span, Time};
use super::vocabulary::vocabulary;

vocabulary! {
    /// How the cloud (or the cluster) refused. Classified once, where the answer arrived.
    pub enum Refusal {
        Throttled = "throttled",
        NoCapacity = "noCapacity",
        Quota = "quota",
        Conflict = "conflict",
        Preempted = "preempted",
        /// On a delete this is success.
        Gone = "gone",
        Forbidden = "forbidden",
        Invalid = "invalid",
        /// It may or may not have happened. A fresh read settles it, never a second request.
        Unclear = "unclear",
    }
}

/// Code of a conflict that our own read found right before a write: nothing was sent.
pub const CHANGED_SINCE_READ: &str = "ChangedSinceRead";

/// Code of a drain that was given up: at its deadline, load balancers still sent connections to its machine, or open
/// requests had not had their grace.
pub const STILL_SERVES: &str = "LoadBalancer";
/// Code of a drain that was given up: pods stayed on the node.
pub const PODS_STAY: &str = "PodsStay";
/// Code of a drain that did not begin: the node or a pod on it is not to be disrupted.
pub const NOT_TO_DISRUPT: &str = "DoNotDisrupt";
/// Code of a drain that did not begin: disruption budgets keep a pod of its node.
pub const BUDGET_KEEPS: &str = "DisruptionBudget";
/// Code of a drain that a hook refused, or did not end by the deadline.
pub const HOOK_KEEPS: &str = "Hook";

/// Whether a drain that was refused with this code did not begin: nothing was written to its node.
pub fn drain_did_not_begin(code: Option<&str>) -> bool {
    matches!(code, Some(NOT_TO_DISRUPT | BUDGET_KEEPS))
}

/// Azure's code when the set's etag differs from the one in the write.
const VERSION_MOVED: &str = "PreconditionFailed";

/// Code of a machine whose batch was refused because of another machine.
pub const REFUSED_WITH_OTHERS: &str = "RefusedWithOthers";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub refusal: Refusal,
    pub code: Option<Box<str>>,
    /// Azure's or the cluster's own message, truncated.
    pub message: Option<Box<str>>,
    pub zone: Option<Zone>,
    /// Not before this time again, if the answer gave one.
    pub retry_at: Option<Time>,
}

const NO_TRACE: &str = "noTrace";

impl Refused {
    pub fn plain(refusal: Refusal) -> Self {
        Self { refusal, code: None, message: None, zone: None, retry_at: None }
    }

    /// No answer came, and a later listing shows no trace of the request. That listing may be old.
    pub fn no_trace() -> Self {
        Self { code: Some(NO_TRACE.into()), ..Self::plain(Refusal::Preempted) }
    }

    /// The set changed since it was read.
    pub fn met_a_change(&self) -> bool {
        self.code.as_deref().is_some_and(|code| [CHANGED_SINCE_READ, VERSION_MOVED].contains(&code))
    }

    pub fn is_no_trace(&self) -> bool {
        self.refusal == Refusal::Preempted && self.code.as_deref() == Some(NO_TRACE)
    }
}

/// `Code: "sentence"`, as far as known.
pub fn refusal_reason(refusal: Refusal, code: Option<&str>, message: Option<&str>) -> String {
    let code = code.unwrap_or(refusal.name());
    message.map_or_else(|| code.to_owned(), |message| format!("{code}: \"{message}\""))
}

/// The true result of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOutcome {
    Done,
    Refused(Refused),
    /// Some machines of a batch ended differently from the rest (`None`: done).
    Mixed(Vec<(Key, Option<Refused>)>),
    /// Never sent: its read grew too old, or a condition of it changed.
    Withdrawn,
}

/// URL for polling a long-running operation. Signed, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct OperationUrl(Box<str>);

impl OperationUrl {
    pub fn new(address: impl AsRef<str>) -> Self {
        Self(address.as_ref().into())
    }

    /// For the poller only.
    pub fn address(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OperationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperationUrl(…)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    // Written, not sent.
    Intended,
    // About to be sent, or sent and not answered: after a crash, read the world.
    Asking { at: Time },
    // Accepted; the cloud is still working on it.
    Accepted { at: Time, operation: Option<OperationUrl> },
    // The answer was lost. Only a complete listing begun later settles it.
    Doubtful { at: Time },
    Ended { at: Time, accepted: Option<Time>, outcome: EntryOutcome },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEvent {
    Asking,
    Accepted(Option<OperationUrl>),
    Lost,
    Ended(EntryOutcome),
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
    /// Start of the read it is based on.
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

impl EntryEvent {
    pub const fn name(&self) -> &'static str {
        match self {
            EntryEvent::Asking => "asking",
            EntryEvent::Accepted(_) => "accepted",
            EntryEvent::Lost => "lost",
            EntryEvent::Ended(_) => "ended",
        }
    }
}

/// Retry delay for a model that the set has no room for.
// 2 h: room comes only as machines of old models leave, one by one; each try is a refused call.
pub const NO_ROOM_AGAIN: Span = Span::hours(2);

/// A raise whose answer was lost and that no number shows did not happen, if a read begun this much later agrees.
// 2 min: a single read may show the set as it was before.
const RAISE_SETTLES: Span = Span::minutes(2);

impl Entry {
    /// Whether this read settles a request to the set whose answer was lost. Without a lost answer there is nothing to
    /// settle.
    pub fn is_settled_by(&self, read: &SetReading) -> bool {
        let at = match &self.phase {
            Phase::Doubtful { at } => *at,
            Phase::Ended { at, outcome: EntryOutcome::Refused(refused), .. }
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
            // No other request waits for the result of these: what they write is read anew before they count.
            Action::WriteAutoscaler { .. }
            | Action::CutOff { .. }
            | Action::Drain { .. }
            | Action::Standby { .. }
            | Action::Restore { .. }
            | Action::TagOwner { .. } => true,
        }
    }

    /// A write of the model was refused because the set is full of models, and it must not be repeated yet.
    pub fn waits_for_room(&self, read_at: Time) -> bool {
        let Some((at, EntryOutcome::Refused(refused))) = self.outcome() else { return false };
        let full = self.verb() == ActionKind::UpdateModel && refused.refusal == Refusal::Quota;
        full && read_at < at.plus(NO_ROOM_AGAIN)
    }

    /// Apply one event; the only way to move an entry.
    pub fn apply(&mut self, event: EntryEvent, at: Time) -> Result<(), IllegalMove> {
        let next = match (&self.phase, event) {
            (Phase::Intended, EntryEvent::Asking) => Phase::Asking { at },
            (Phase::Asking { .. }, EntryEvent::Accepted(operation)) => {
                Phase::Accepted { at, operation }
            }
            (Phase::Asking { .. }, EntryEvent::Lost) => Phase::Doubtful { at },
            // An intent may only be withdrawn; a sent request may end in any way; a fresh read ends a doubt.
            (Phase::Intended, EntryEvent::Ended(EntryOutcome::Withdrawn)) => {
                Phase::Ended { at, accepted: None, outcome: EntryOutcome::Withdrawn }
            }
            (Phase::Asking { .. } | Phase::Doubtful { .. }, EntryEvent::Ended(outcome)) => {
                Phase::Ended { at, accepted: None, outcome }
            }
            (Phase::Accepted { at: accepted, .. }, EntryEvent::Ended(outcome)) => {
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

    pub const fn verb(&self) -> ActionKind {
        self.action.verb()
    }

    pub const fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    pub fn outcome(&self) -> Option<(Time, &EntryOutcome)> {
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

    /// The last moment that may have changed the world: a read that began earlier does not show it.
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

    /// Whether this raise may have created that machine. A machine in the raise's own read is not its own, and neither
    /// is one created before and listed late.
    pub fn bore(&self, machine: &Machine, ahead: Option<Skew>) -> bool {
        let seen = machine.first_seen;
        let younger = machine.born(ahead).plus(CLOCK_SKEW) >= self.written;
        younger && (seen > self.written || (seen == self.written && machine.created == seen))
    }

    /// Whether this turn's listing, begun after the delete was accepted, shows that the delete removed this machine.
    pub fn has_taken(&self, machine: &Machine, set: &SetReading, listed: ListingTrust) -> bool {
        let begun = matches!(self.phase, Phase::Accepted { at, .. } if set.read_at > at);
        let asked = || self.action.targets().iter().any(|target| target.is(machine));
        set.complete
            && begun
            && self.verb() == ActionKind::Delete
            && listed.proves_gone(machine)
            && asked()
    }

    /// Result for one machine of the batch; `None` while it is running.
    pub fn outcome_for(&self, key: &Key) -> Option<Result<(), Refused>> {
        let (_, outcome) = self.outcome()?;
        Some(match outcome {
            EntryOutcome::Done => Ok(()),
            EntryOutcome::Refused(refused) => Err(refused.clone()),
            EntryOutcome::Withdrawn => Err(Refused::plain(Refusal::Conflict)),
            EntryOutcome::Mixed(each) => match each.iter().find(|(k, _)| k == key) {
                Some((_, Some(refused))) => Err(refused.clone()),
                _ => Ok(()),
            },
        })
    }
}
