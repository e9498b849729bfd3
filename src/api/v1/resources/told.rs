//! What happened: lines of a pool's history, lines of the audit; and how the house itself is.

use super::super::wire::Named;
use super::schema::{When, answers};
use crate::memory::{Line, Told};
use crate::model::ids::InstanceId;

answers! {
    /// One line of a pool's history.
    pub struct HistoryLine {
        /// Higher with every later line.
        pub id: u64,
        pub pool: String,
        pub at: When,
        /// appeared, became, firstAvailable, closed, decided, moved, held, freed, rollout, answered, frozen; readers ignore others.
        pub event: &'static str,
        pub machine: Option<String>,
        /// Of what was decided.
        pub machines: Vec<String>,
        /// Entry of the journal.
        pub entry: Option<String>,
        pub verb: Option<&'static str>,
        /// Of a hold.
        pub reason: Option<&'static str>,
        pub phase: Option<&'static str>,
        pub revision: Option<String>,
        pub ask: Option<String>,
        pub accepted: Option<bool>,
        /// The law that was broken.
        pub law: Option<u8>,
        pub say: String,
    }

    /// A page of history, oldest first.
    pub struct HistoryPage {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub pool: String,
        pub items: Vec<HistoryLine>,
        /// Give it as `after` for what comes later; null where nothing has happened yet.
        pub next: Option<u64>,
        /// Give it as `before` for what came earlier; null where there is nothing.
        pub earlier: Option<u64>,
    }

    pub struct AuditLine {
        pub id: u64,
        pub at: When,
        /// As authenticated.
        pub who: String,
        pub verb: String,
        pub pool: Option<String>,
        /// What of the pool it was about, a machine for one; empty: all of it.
        pub on: String,
        pub why: String,
        /// What came of it, in a word.
        pub came: String,
    }

    /// A page of the audit, oldest first.
    pub struct AuditPage {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub items: Vec<AuditLine>,
        pub next: Option<u64>,
        pub earlier: Option<u64>,
    }

    /// The process answers.
    pub struct Health {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub status: &'static str,
        pub version: &'static str,
        /// What somebody should see to before it keeps people out, such as a certificate that is soon over.
        pub troubles: Vec<String>,
    }

    /// Whether the process does its work.
    pub struct ReadyShown {
        pub api_version: &'static str,
        pub kind: &'static str,
        pub ready: bool,
        /// What it waits for, where it is not.
        pub say: String,
        pub pools: u32,
    }
}

impl HistoryLine {
    fn blank(id: u64, pool: &str, line: &Line) -> Self {
        Self {
            id,
            pool: pool.to_owned(),
            at: When(line.at),
            event: "",
            machine: None,
            machines: Vec::new(),
            entry: None,
            verb: None,
            reason: None,
            phase: None,
            revision: None,
            ask: None,
            accepted: None,
            law: None,
            say: String::new(),
        }
    }

    pub fn of(id: u64, pool: &str, line: &Line) -> Self {
        let blank = Self::blank(id, pool, line);
        match &line.told {
            Told::Appeared { id, condition, .. } => {
                let say = format!("machine {id} appeared, {}", condition.word());
                blank.machine("appeared", id, say)
            }
            Told::Became { id, from, to, .. } => {
                let say = format!("machine {id} was {} and is {}", from.word(), to.word());
                blank.machine("became", id, say)
            }
            Told::FirstAvailable { id, .. } => {
                let say = format!("machine {id} is available for the first time");
                blank.machine("firstAvailable", id, say)
            }
            Told::Closed { id, deleted, .. } => {
                let by = if *deleted { "deleted by us" } else { "gone, not by us" };
                blank.machine("closed", id, format!("machine {id} is {by}"))
            }
            Told::Decided { entry, verb, machines, reason } => Self {
                event: "decided",
                machines: machines.iter().map(ToString::to_string).collect(),
                entry: Some(entry.to_string()),
                verb: Some(verb.name()),
                say: format!("{}{}: {reason}", verb.name(), named(machines)),
                ..blank
            },
            Told::Moved { entry, verb, say } => Self {
                event: "moved",
                entry: Some(entry.to_string()),
                verb: Some(verb.name()),
                say: format!("{}: {say}", verb.name()),
                ..blank
            },
            Told::Held { reason, say } => {
                Self { event: "held", reason: Some(reason.code()), say: say.to_string(), ..blank }
            }
            Told::Freed { reason } => {
                let say = format!("{} holds no more", reason.code());
                Self { event: "freed", reason: Some(reason.code()), say, ..blank }
            }
            Told::Rollout { phase, to } => {
                let say = match to {
                    Some(to) => format!("the rollout to {to} is {}", phase.name()),
                    None => format!("the rollout is {}", phase.name()),
                };
                let revision = to.as_ref().map(ToString::to_string);
                Self { event: "rollout", phase: Some(phase.name()), revision, say, ..blank }
            }
            Told::Answered { ask, accepted, say } => Self {
                event: "answered",
                ask: Some(ask.to_string()),
                accepted: Some(*accepted),
                say: say.to_string(),
                ..blank
            },
            Told::Frozen { law, say } => {
                Self { event: "frozen", law: *law, say: say.to_string(), ..blank }
            }
        }
    }

    fn machine(self, event: &'static str, id: &InstanceId, say: String) -> Self {
        Self { event, machine: Some(id.to_string()), say, ..self }
    }
}

/// Machines in a sentence; the field has all of them.
const NAMES: usize = 8;

/// Which, with a space before; nothing where it is about none.
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
