//! Events: lines of a pool's history and of the audit; and the status of the daemon itself.

use std::borrow::Cow;

use super::super::wire::WordTable;
use super::schema::{When, answers};
use crate::memory::{HistoryEvent, HistoryRecord};
use crate::model::ids::InstanceId;

answers! {
    /// One line of a pool's history.
    pub struct HistoryLine {
        /// Later lines have higher ids.
        pub id: u64,
        pub pool: String,
        pub at: When,
        /// appeared, became, firstAvailable, closed, decided, moved, held, freed, rollout, answered, frozen; readers
        /// ignore others.
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
        /// The broken invariant.
        pub invariant: Option<u8>,
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
    fn blank(id: u64, pool: &str, line: &HistoryRecord) -> Self {
        Self {
            id,
            pool: pool.to_owned(),
            at: When(line.at),
            event: "".into(),
            machine: None,
            machines: Vec::new(),
            entry: None,
            verb: None,
            reason: None,
            phase: None,
            revision: None,
            command: None,
            accepted: None,
            invariant: None,
            message: String::new(),
        }
    }

    pub fn of(id: u64, pool: &str, line: &HistoryRecord) -> Self {
        let blank = Self::blank(id, pool, line);
        match &line.event {
            HistoryEvent::Appeared { id, condition, .. } => {
                let say = format!("machine {id} appeared, {}", condition.word());
                blank.machine("appeared", id, say)
            }
            HistoryEvent::Became { id, from, to, .. } => {
                let say = format!("machine {id} was {} and is {}", from.word(), to.word());
                blank.machine("became", id, say)
            }
            HistoryEvent::FirstAvailable { id, .. } => {
                let say = format!("machine {id} is available for the first time");
                blank.machine("firstAvailable", id, say)
            }
            HistoryEvent::Closed { id, deleted, .. } => {
                let by = if *deleted { "deleted by us" } else { "gone, not by us" };
                blank.machine("closed", id, format!("machine {id} is {by}"))
            }
            HistoryEvent::Decided { entry, verb, machines, reason } => Self {
                machines: machines.iter().map(ToString::to_string).collect(),
                entry: Some(entry.to_string()),
                verb: Some(verb.name().into()),
                ..blank.event("decided", format!("{}{}: {reason}", verb.name(), named(machines)))
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
                ..blank.event("freed", format!("{} holds no more", reason.code()))
            },
            HistoryEvent::Rollout { phase, to } => {
                let say = match to {
                    Some(to) => format!("the rollout to {to} is {}", phase.name()),
                    None => format!("the rollout is {}", phase.name()),
                };
                let revision = to.as_ref().map(ToString::to_string);
                let phase = Some(phase.name().into());
                Self { phase, revision, ..blank.event("rollout", say) }
            }
            HistoryEvent::Answered { command: ask, accepted, message: say } => Self {
                command: Some(ask.to_string()),
                accepted: Some(*accepted),
                ..blank.event("answered", say.to_string())
            },
            HistoryEvent::Frozen { invariant: law, message: say } => {
                Self { invariant: *law, ..blank.event("frozen", say.to_string()) }
            }
        }
    }

    fn event(self, event: &'static str, message: String) -> Self {
        Self { event: event.into(), message, ..self }
    }

    fn machine(self, event: &'static str, id: &InstanceId, say: String) -> Self {
        Self { machine: Some(id.to_string()), ..self.event(event, say) }
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

    #[test]
    fn a_decision_names_its_machines_up_to_some() {
        let ids = |n: u32| (0..n).map(|id| InstanceId::new(id.to_string())).collect::<Vec<_>>();
        assert_eq!(named(&ids(0)), "");
        assert_eq!(named(&ids(2)), " 0, 1");
        assert_eq!(named(&ids(8)), " 0, 1, 2, 3, 4, 5, 6, 7");
        assert_eq!(named(&ids(11)), " 0, 1, 2, 3, 4, 5, 6, 7 and 3 more");
    }
}
