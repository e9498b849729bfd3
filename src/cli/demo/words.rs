//! The lines that people read: the pool's own history, the events of the script, and Azure's refusals.

use super::script::ScriptStep;
use super::sight::DemoSight;
use super::stage::{MACHINES, PATIENCE};
use crate::cli::text::{count, list, plain, short};
use crate::memory::{HistoryEvent, HistoryRecord};
use crate::model::ids::InstanceId;
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// The most machines on a line; the rest are counted.
const NAMES: usize = 6;

/// The source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The daemon decided something, or reports why it waits.
    Daemon,
    /// Something in the cloud changed.
    World,
    /// The script triggered an event.
    Fate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    pub at: Time,
    pub by: Speaker,
    pub say: String,
}

pub fn of_deed(deed: &ScriptStep, at: Time) -> Words {
    let say = match deed {
        ScriptStep::NewImage => {
            format!("new image applied: all {MACHINES} machines are outdated")
        }
        ScriptStep::Sicken(id) => format!("machine {id} fails by itself"),
        ScriptStep::Throttle => "Azure starts to throttle calls".to_owned(),
    };
    Words { at, by: Speaker::Fate, say }
}

/// A line about the calls that Azure throttled since the last read.
pub fn of_calls(before: Option<&DemoSight>, now: &DemoSight) -> Option<Words> {
    let refused = now.calls.throttled.checked_sub(before?.calls.throttled).filter(|n| *n > 0)?;
    let calls = count(refused as usize, "call");
    let say = format!("Azure throttled {calls} with 429: no calls for {}", short(PATIENCE));
    Some(Words { at: now.at, by: Speaker::World, say })
}

/// Converts history lines. Merges lines of the same moment that report the same event for several machines.
pub fn of_history(lines: &[HistoryRecord]) -> Vec<Words> {
    let mut words: Vec<Words> = Vec::new();
    let alike = |a: &HistoryRecord, b: &HistoryRecord| {
        a.at == b.at && kind(&a.event).is_some_and(|k| Some(k) == kind(&b.event))
    };
    for same in lines.chunk_by(alike) {
        let Some(first) = same.first() else { continue };
        let ids: Vec<&str> = same.iter().filter_map(|line| machine(&line.event)).collect();
        let event = match kind(&first.event) {
            Some(kind) => Some((Speaker::World, many(kind, &ids))),
            None => one(&first.event),
        };
        words.extend(event.map(|(by, say)| Words {
            at: first.at,
            by,
            say: plain(&say).into_owned(),
        }));
    }
    words
}

/// Events that are merged when they happen to several machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Came,
    Serves,
    Ill,
    Gone,
    Lost,
}

fn kind(event: &HistoryEvent) -> Option<Kind> {
    match event {
        HistoryEvent::Appeared { .. } => Some(Kind::Came),
        HistoryEvent::FirstAvailable { .. } => Some(Kind::Serves),
        HistoryEvent::Became {
            to: Condition::Unready | Condition::Failed | Condition::Stopped,
            ..
        } => Some(Kind::Ill),
        HistoryEvent::Closed { deleted: true, .. } => Some(Kind::Gone),
        HistoryEvent::Closed { deleted: false, .. } => Some(Kind::Lost),
        _ => None,
    }
}

fn machine(event: &HistoryEvent) -> Option<&str> {
    match event {
        HistoryEvent::Appeared { id, .. }
        | HistoryEvent::Became { id, .. }
        | HistoryEvent::FirstAvailable { id, .. }
        | HistoryEvent::Closed { id, .. } => Some(id.as_str()),
        _ => None,
    }
}

fn many(kind: Kind, ids: &[&str]) -> String {
    let (machines, one) = match ids.len() {
        1 => ("machine", true),
        _ => ("machines", false),
    };
    let what = match (kind, one) {
        (Kind::Came, true) => "is there",
        (Kind::Came, false) => "are there",
        (Kind::Serves, true) => "has been ready for `minReady` and counts as available",
        (Kind::Serves, false) => "have been ready for `minReady` and count as available",
        (Kind::Ill, true) => "does not serve any more",
        (Kind::Ill, false) => "do not serve any more",
        (Kind::Gone, true) => "is gone",
        (Kind::Gone, false) => "are gone",
        (Kind::Lost, true) => "is gone; Poolkeeper did not delete it",
        (Kind::Lost, false) => "are gone; Poolkeeper did not delete them",
    };
    format!("{machines} {} {what}", list(ids.iter().copied(), NAMES))
}

fn one(event: &HistoryEvent) -> Option<(Speaker, String)> {
    Some(match event {
        HistoryEvent::Decided { verb, machines, reason, .. } if machines.is_empty() => {
            (Speaker::Daemon, format!("{}: {reason}", verb.name()))
        }
        HistoryEvent::Decided { verb, machines, reason, .. } => {
            let ids = list(machines.iter().map(InstanceId::as_str), NAMES);
            (Speaker::Daemon, format!("{} {ids}: {reason}", verb.name()))
        }
        HistoryEvent::Held { message: say, .. } => (Speaker::Daemon, format!("waiting: {say}")),
        HistoryEvent::Rollout { phase: RolloutPhase::None, .. } => return None,
        HistoryEvent::Rollout { phase, .. } => {
            (Speaker::Daemon, format!("the rollout is {}", phase.name()))
        }
        HistoryEvent::Answered { message: say, .. } | HistoryEvent::Frozen { message: say, .. } => {
            (Speaker::Daemon, say.to_string())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::ActionKind;
    use crate::model::ids::{EntryId, Key};
    use crate::model::machine::Condition;

    fn line(second: i64, event: HistoryEvent) -> HistoryRecord {
        HistoryRecord::new(Time::from_millis(second * 1_000), event)
    }

    fn said(lines: &[HistoryRecord]) -> Vec<String> {
        of_history(lines).into_iter().map(|words| words.say).collect()
    }

    fn became(id: &str, to: Condition) -> HistoryEvent {
        HistoryEvent::Became {
            id: InstanceId::new(id),
            key: Key::new(id),
            from: Condition::Ready,
            to,
        }
    }

    fn gone(id: &str, deleted: bool) -> HistoryEvent {
        HistoryEvent::Closed { id: InstanceId::new(id), key: Key::new(id), deleted }
    }

    #[test]
    fn what_is_said_of_several_machines_at_once_is_one_line() {
        let lines = [
            line(1, gone("3", true)),
            line(1, gone("4", true)),
            line(1, gone("5", false)),
            line(2, gone("6", true)),
            line(2, became("7", Condition::Unready)),
        ];
        assert_eq!(
            said(&lines),
            [
                "machines 3, 4 are gone",
                "machine 5 is gone; Poolkeeper did not delete it",
                "machine 6 is gone",
                "machine 7 does not serve any more"
            ]
        );
    }

    #[test]
    fn what_is_not_needed_is_left_out_and_decisions_name_their_machines() {
        let decided = |machines: &[&str]| HistoryEvent::Decided {
            entry: EntryId::new("e"),
            verb: ActionKind::Delete,
            machines: machines.iter().map(InstanceId::new).collect(),
            reason: "outdated".into(),
        };
        let lines = [
            line(1, became("7", Condition::Unknown)),
            line(1, HistoryEvent::Rollout { phase: RolloutPhase::None, to: None }),
            line(1, decided(&["1", "2"])),
            line(1, decided(&[])),
        ];
        assert_eq!(said(&lines), ["delete 1, 2: outdated", "delete: outdated"]);
    }
}
