//! Events: lines of a pool's history and of the audit; and the status of the daemon itself.

use std::borrow::Cow;

use super::super::wire::WordTable;
use super::schema::{When, answers};
use crate::memory::{EventDetail, HistoryEvent, HistoryRecord};
use crate::model::facts::Verdict;
use crate::model::ids::{InstanceId, Revision};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::revision::scheme;
use crate::model::rollout::RolloutCause;
use crate::model::size::SizeSpeaker;
use crate::model::time::Time;

answers! {
    /// One line of a pool's history.
    #[derive(Default)]
    pub struct HistoryLine {
        /// Later lines have higher ids.
        pub id: u64,
        pub pool: String,
        pub at: When,
        /// appeared, became, firstAvailable, closed, decided, moved, held, freed, rollout, answered, sized, gate, frozen;
        /// readers ignore others.
        pub event: Cow<'static, str>,
        pub machine: Option<String>,
        /// The machines that the event concerns.
        pub machines: Vec<String>,
        /// The journal entry.
        pub entry: Option<String>,
        pub verb: Option<Cow<'static, str>>,
        /// The reason of a hold.
        pub reason: Option<Cow<'static, str>>,
        pub phase: Option<Cow<'static, str>>,
        pub revision: Option<String>,
        pub command: Option<String>,
        pub accepted: Option<bool>,
        /// A machine that is gone: whether Poolkeeper deleted it.
        pub deleted: Option<bool>,
        /// The broken invariant.
        pub invariant: Option<u8>,
        /// An answered command, or a deleted machine: who asked for it.
        pub who: Option<String>,
        pub why: Option<String>,
        /// The condition of the machine, and the one before.
        pub condition: Option<Cow<'static, str>>,
        pub was: Option<Cow<'static, str>>,
        /// Why each of `machines` leaves: failed, deleteRequested, outdated or surplus.
        pub because: Vec<Cow<'static, str>>,
        /// A raise: the capacity before and after, and the size that the pool should have. `sized`: that size before and
        /// after.
        pub from: Option<u32>,
        pub to: Option<u32>,
        pub desired: Option<u32>,
        /// Who asked for the size: a profile, count, scaleSet, scale or kept.
        pub by: Option<String>,
        /// The gate that passes or fails.
        pub gate: Option<String>,
        pub verdict: Option<Cow<'static, str>>,
        /// How an entry moved: asking, accepted, lost, done, partlyRefused, refused or withdrawn.
        pub step: Option<Cow<'static, str>>,
        /// The code of a refusal.
        pub code: Option<String>,
        /// The name of `revision` that people use.
        pub revision_name: Option<String>,
        /// Why the rollout was opened: revision, refresh, maxAge, rollback or exception.
        pub cause: Option<Cow<'static, str>>,
        pub opened: Option<When>,
        /// The machines that the rollout replaces.
        pub covered: Option<u32>,
        pub message: String,
    }

    /// The last event of a stream: why it ends.
    pub struct StreamEnd {
        pub at: When,
        pub code: Cow<'static, str>,
        pub message: String,
    }

    /// A page of history, oldest first.
    pub struct HistoryPage {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub pool: String,
        pub items: Vec<HistoryLine>,
        /// Pass it as `after` for later lines; null: nothing has happened yet.
        pub next: Option<u64>,
        /// Pass it as `before` for earlier lines; null: there are none.
        pub earlier: Option<u64>,
    }

    pub struct AuditLine {
        pub id: u64,
        pub at: When,
        /// The authenticated name.
        pub who: String,
        pub verb: String,
        pub pool: Option<String>,
        /// The part of the pool, for example a machine; empty: the whole pool.
        pub on: String,
        pub why: String,
        /// The outcome, in a word.
        pub came: String,
    }

    /// A page of the audit, oldest first.
    pub struct AuditPage {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub items: Vec<AuditLine>,
        pub next: Option<u64>,
        pub earlier: Option<u64>,
    }

    /// The process answers.
    pub struct HealthStatus {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub status: Cow<'static, str>,
        pub version: Cow<'static, str>,
        /// Problems to fix before they lock users out, for example a certificate that expires soon.
        pub troubles: Vec<String>,
    }

    /// Whether the process is ready.
    pub struct ReadinessStatus {
        pub api_version: Cow<'static, str>,
        pub kind: Cow<'static, str>,
        pub ready: bool,
        /// If not ready: what the process waits for.
        pub message: String,
        pub pools: u32,
    }
}

impl StreamEnd {
    /// The name of the event; no history line has it.
    pub const EVENT: &'static str = "end";
}

impl HistoryLine {
    /// What the record says beside the event.
    fn detailed(id: u64, pool: &str, at: Time, detail: &EventDetail) -> Self {
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Self {
            id,
            pool: pool.to_owned(),
            at: When(at),
            who: text(&detail.who),
            why: text(&detail.why),
            because: detail.because.iter().map(|because| because.class().name().into()).collect(),
            from: detail.capacity.map(|(from, _)| from),
            to: detail.capacity.map(|(_, to)| to),
            desired: detail.desired,
            step: detail.step.map(|step| step.word().into()),
            code: text(&detail.code),
            cause: detail.cause.map(|cause| cause.word().into()),
            opened: detail.opened.map(When),
            covered: detail.covered,
            ..Self::default()
        }
    }

    pub fn of(id: u64, pool: &str, line: &HistoryRecord) -> Self {
        let detail = &line.detail;
        let blank = Self::detailed(id, pool, line.at, detail);
        match &line.event {
            HistoryEvent::Appeared { id, condition, .. } => {
                let say = format!("machine {id} appeared, {}", condition.word());
                let condition = Some(condition.word().into());
                Self { condition, ..blank.machine("appeared", id, say) }
            }
            HistoryEvent::Became { id, from, to, .. } => {
                let (condition, was) = (Some(to.word().into()), Some(from.word().into()));
                Self { condition, was, ..blank.machine("became", id, became(id, *from, *to)) }
            }
            HistoryEvent::FirstAvailable { id, .. } => {
                let say = format!("machine {id} is available for the first time");
                blank.machine("firstAvailable", id, say)
            }
            HistoryEvent::Closed { id, deleted, .. } => {
                let say = match (*deleted, asked_by(detail)) {
                    (true, Some(by)) => format!("machine {id} is deleted, {by}"),
                    (true, None) => format!("machine {id} is deleted"),
                    (false, _) => format!("machine {id} is gone; Poolkeeper did not delete it"),
                };
                Self { deleted: Some(*deleted), ..blank.machine("closed", id, say) }
            }
            HistoryEvent::Decided { entry, verb, machines, reason } => Self {
                machines: machines.iter().map(ToString::to_string).collect(),
                entry: Some(entry.to_string()),
                verb: Some(verb.name().into()),
                ..blank.event("decided", decided(verb.name(), machines, reason, detail))
            },
            HistoryEvent::Moved { entry, verb, message: say } => Self {
                entry: Some(entry.to_string()),
                verb: Some(verb.name().into()),
                ..blank.event("moved", format!("{}: {say}", verb.name()))
            },
            HistoryEvent::Held { reason, message: say } => {
                Self { reason: Some(reason.code().into()), ..blank.event("held", say.to_string()) }
            }
            HistoryEvent::Freed { reason } => Self {
                reason: Some(reason.code().into()),
                ..blank.event("freed", format!("the hold {} ended", reason.code()))
            },
            HistoryEvent::Rollout { phase, to } => {
                let name = revision_name(to.as_ref(), detail);
                let say = rollout(*phase, name.as_deref(), detail);
                Self {
                    phase: Some(phase.name().into()),
                    revision: to.as_ref().map(ToString::to_string),
                    revision_name: name,
                    ..blank.event("rollout", say)
                }
            }
            HistoryEvent::Answered { command: ask, accepted, message: say } => Self {
                command: Some(ask.to_string()),
                verb: detail.command.as_deref().map(|verb| verb.to_owned().into()),
                accepted: Some(*accepted),
                ..blank.event("answered", say.to_string())
            },
            HistoryEvent::Sized { from, to, by } => {
                let say = sized(*from, *to, by, detail);
                let (from, to, by) = (Some(*from), Some(*to), Some(by.word().to_owned()));
                Self { from, to, by, ..blank.event("sized", say) }
            }
            HistoryEvent::Gate { gate, verdict, message } => blank.gate(gate, *verdict, message),
            HistoryEvent::Frozen { invariant: law, message: say } => {
                Self { invariant: *law, ..blank.event("frozen", say.to_string()) }
            }
        }
    }

    fn event(self, event: &'static str, message: String) -> Self {
        Self { event: event.into(), message, ..self }
    }

    fn gate(self, gate: &str, verdict: Verdict, found: &str) -> Self {
        let does = if verdict == Verdict::Pass { "passes" } else { "fails" };
        let colon = if found.is_empty() { "" } else { ": " };
        let say = format!("gate {gate} {does}{colon}{found}");
        let (gate, verdict) = (Some(gate.to_owned()), Some(verdict.name().into()));
        Self { gate, verdict, ..self.event("gate", say) }
    }

    fn machine(self, event: &'static str, id: &InstanceId, say: String) -> Self {
        Self { machine: Some(id.to_string()), ..self.event(event, say) }
    }
}

/// `asked by ann (odd)`.
fn asked_by(detail: &EventDetail) -> Option<String> {
    let who = detail.who.as_ref()?;
    let why = detail.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    Some(format!("asked by {who}{why}"))
}

fn sized(from: u32, to: u32, by: &SizeSpeaker, detail: &EventDetail) -> String {
    let who = match by {
        SizeSpeaker::Kept => String::new(),
        by => format!(", by {by}"),
    };
    let asked = asked_by(detail).map(|asked| format!(", {asked}")).unwrap_or_default();
    format!("the size is {to} instead of {from}{who}{asked}")
}

fn became(id: &InstanceId, from: Condition, to: Condition) -> String {
    match (from, to) {
        (from, Condition::Unknown) => {
            format!("machine {id} is no longer visible; it was {}", from.word())
        }
        (Condition::Unknown, to) => format!("machine {id} is visible again, {}", to.word()),
        (from, to) => format!("machine {id} was {} and is {}", from.word(), to.word()),
    }
}

fn decided(verb: &str, machines: &[InstanceId], reason: &str, detail: &EventDetail) -> String {
    let numbers = detail.capacity.map(|(from, to)| format!(" {from} → {to}"));
    format!("{verb}{}{}: {reason}", numbers.unwrap_or_default(), named(machines))
}

/// A refresh goes to the revision that the machines have.
pub fn is_repeated(cause: &str) -> bool {
    [RolloutCause::Refresh, RolloutCause::MaxAge].iter().any(|known| known.word() == cause)
}

/// The name that was recorded, or a revision that is a name itself. A fingerprint is none.
fn revision_name(to: Option<&Revision>, detail: &EventDetail) -> Option<String> {
    let plain = || to.filter(|to| scheme(to).is_none()).map(Revision::as_str);
    detail.revision_name.as_deref().or_else(plain).map(str::to_owned)
}

fn rollout(phase: RolloutPhase, name: Option<&str>, detail: &EventDetail) -> String {
    let again = detail.cause.filter(|cause| is_repeated(cause.word())).map(|_| " (again)");
    let to = name.map(|name| format!(" to {name}{}", again.unwrap_or_default()));
    let to = to.unwrap_or_default();
    match phase {
        RolloutPhase::None => "no rollout is open".to_owned(),
        RolloutPhase::Progressing => format!("the rollout{to} progresses"),
        RolloutPhase::Waiting => format!("the rollout{to} waits"),
        RolloutPhase::Paused => format!("the rollout{to} is paused"),
        RolloutPhase::Stalled => format!("the rollout{to} is stalled"),
        RolloutPhase::Baking => format!("the rollout{to} bakes: every machine is done"),
        RolloutPhase::RollingBack => format!("the rollback{to} is under way"),
        RolloutPhase::Succeeded => format!("the rollout{to} is done"),
        RolloutPhase::SucceededWithExceptions => {
            format!("the rollout{to} is done, except for machines that were left as they are")
        }
        RolloutPhase::Aborted => format!("the rollout{to} is aborted"),
        RolloutPhase::RolledBack => format!("the rollback{to} is done"),
    }
}

/// Machines named in the sentence; the field has all of them.
const NAMES: usize = 8;

/// The machines, after a space; empty if there are none.
fn named(machines: &[InstanceId]) -> String {
    let first = machines.iter().take(NAMES).map(|id| format!(" {id}"));
    let mut text = first.collect::<Vec<_>>().join(",");
    if let Some(more) = machines.len().checked_sub(NAMES).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{EntryId, Key};

    fn said(event: HistoryEvent, detail: EventDetail) -> String {
        let record = HistoryRecord { at: Time::from_millis(0), event, detail };
        HistoryLine::of(1, "web", &record).message
    }

    #[test]
    fn a_rollout_has_the_name_that_people_use_and_never_a_fingerprint() {
        let to = || Some(Revision::new("v1:6215aa.00ff"));
        let rollout = |phase, to, name: Option<&str>, cause| {
            let revision_name = name.map(Into::into);
            let detail = EventDetail { revision_name, cause, ..EventDetail::default() };
            said(HistoryEvent::Rollout { phase, to }, detail)
        };
        let refresh = Some(RolloutCause::Refresh);
        for (is, says) in [
            (rollout(RolloutPhase::None, None, None, None), "no rollout is open"),
            (
                rollout(RolloutPhase::Progressing, to(), Some("2.0.0"), None),
                "the rollout to 2.0.0 progresses",
            ),
            (rollout(RolloutPhase::Waiting, to(), None, None), "the rollout waits"),
            (
                rollout(RolloutPhase::Baking, Some(Revision::new("r2")), None, None),
                "the rollout to r2 bakes: every machine is done",
            ),
            (
                rollout(RolloutPhase::Succeeded, to(), Some("2.0.0"), refresh),
                "the rollout to 2.0.0 (again) is done",
            ),
        ] {
            assert_eq!(is, says);
        }
    }

    #[test]
    fn a_machine_that_leaves_is_told_with_who_asked() {
        let closed = |deleted, who: Option<&str>| {
            let (id, key) = (InstanceId::new("6"), Key::new("vm-6"));
            let (who, why) = (who.map(Into::into), who.map(|_| "odd".into()));
            let detail = EventDetail { who, why, ..EventDetail::default() };
            said(HistoryEvent::Closed { id, key, deleted }, detail)
        };
        assert_eq!(closed(true, None), "machine 6 is deleted");
        assert_eq!(closed(true, Some("ann")), "machine 6 is deleted, asked by ann (odd)");
        assert_eq!(closed(false, None), "machine 6 is gone; Poolkeeper did not delete it");
        let raise = HistoryEvent::Decided {
            entry: EntryId::new("e1"),
            verb: crate::model::action::ActionKind::Raise,
            machines: Vec::new(),
            reason: "2 machines missing".into(),
        };
        let detail = EventDetail { capacity: Some((12, 14)), ..EventDetail::default() };
        assert_eq!(said(raise, detail), "raise 12 → 14: 2 machines missing");
    }

    #[test]
    fn a_decision_names_its_machines_up_to_some() {
        let ids = |n: u32| (0..n).map(|id| InstanceId::new(id.to_string())).collect::<Vec<_>>();
        assert_eq!(named(&ids(0)), "");
        assert_eq!(named(&ids(2)), " 0, 1");
        assert_eq!(named(&ids(8)), " 0, 1, 2, 3, 4, 5, 6, 7");
        assert_eq!(named(&ids(11)), " 0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
    }
}
