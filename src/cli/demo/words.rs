//! What is told to people, line by line: the pool's own history, what the script did, and Azure's refusals.

use super::script::Deed;
use super::sight::Sight;
use super::stage::{MACHINES, PATIENCE};
use crate::cli::text::{count, list, plain, short};
use crate::memory::{Line, Told};
use crate::model::ids::InstanceId;
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// Machines in one line; the rest are counted.
const NAMES: usize = 6;

/// Whose words they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The daemon decided, or says why not.
    Daemon,
    /// Something is otherwise.
    World,
    /// The script.
    Fate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    pub at: Time,
    pub by: By,
    pub say: String,
}

pub fn of_deed(deed: &Deed, at: Time) -> Words {
    let say = match deed {
        Deed::NewImage => format!("somebody applies a new image: all {MACHINES} are out of date"),
        Deed::Sicken(id) => format!("machine {id} falls ill, all by itself"),
        Deed::Throttle => "from now on Azure has had enough of calls".to_owned(),
    };
    Words { at, by: By::Fate, say }
}

/// What calls tell: that they are refused for their number, and that they no more are.
pub fn of_calls(before: Option<&Sight>, now: &Sight) -> Option<Words> {
    let refused = now.calls.throttled.checked_sub(before?.calls.throttled).filter(|n| *n > 0)?;
    let calls = count(refused as usize, "call");
    let say = format!("Azure refused {calls} with 429: nothing is asked for {}", short(PATIENCE));
    Some(Words { at: now.at, by: By::World, say })
}

/// Lines of one moment that say the same of several machines become one.
pub fn of_history(lines: &[Line]) -> Vec<Words> {
    let mut words: Vec<Words> = Vec::new();
    let alike = |a: &Line, b: &Line| {
        a.at == b.at && kind(&a.told).is_some_and(|k| Some(k) == kind(&b.told))
    };
    for same in lines.chunk_by(alike) {
        let Some(first) = same.first() else { continue };
        let ids: Vec<&str> = same.iter().filter_map(|line| machine(&line.told)).collect();
        let told = match kind(&first.told) {
            Some(kind) => Some((By::World, many(kind, &ids))),
            None => one(&first.told),
        };
        words.extend(told.map(|(by, say)| Words {
            at: first.at,
            by,
            say: plain(&say).into_owned(),
        }));
    }
    words
}

/// What is told of machines together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Came,
    Serves,
    Ill,
    Gone,
    Lost,
}

fn kind(told: &Told) -> Option<Kind> {
    match told {
        Told::Appeared { .. } => Some(Kind::Came),
        Told::FirstAvailable { .. } => Some(Kind::Serves),
        Told::Became {
            to: Condition::Unready | Condition::Failed | Condition::Stopped, ..
        } => Some(Kind::Ill),
        Told::Closed { deleted: true, .. } => Some(Kind::Gone),
        Told::Closed { deleted: false, .. } => Some(Kind::Lost),
        _ => None,
    }
}

fn machine(told: &Told) -> Option<&str> {
    match told {
        Told::Appeared { id, .. }
        | Told::Became { id, .. }
        | Told::FirstAvailable { id, .. }
        | Told::Closed { id, .. } => Some(id.as_str()),
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
        (Kind::Serves, true) => "is ready for long enough: it counts",
        (Kind::Serves, false) => "are ready for long enough: they count",
        (Kind::Ill, true) => "does not serve any more",
        (Kind::Ill, false) => "do not serve any more",
        (Kind::Gone, true) => "is gone",
        (Kind::Gone, false) => "are gone",
        (Kind::Lost, true) => "is gone, and not by us",
        (Kind::Lost, false) => "are gone, and not by us",
    };
    format!("{machines} {} {what}", list(ids.iter().copied(), NAMES))
}

fn one(told: &Told) -> Option<(By, String)> {
    Some(match told {
        Told::Decided { verb, machines, reason, .. } if machines.is_empty() => {
            (By::Daemon, format!("{}: {reason}", verb.name()))
        }
        Told::Decided { verb, machines, reason, .. } => {
            let ids = list(machines.iter().map(InstanceId::as_str), NAMES);
            (By::Daemon, format!("{} {ids}: {reason}", verb.name()))
        }
        Told::Held { say, .. } => (By::Daemon, format!("waits: {say}")),
        Told::Rollout { phase: RolloutPhase::None, .. } => return None,
        Told::Rollout { phase, .. } => (By::Daemon, format!("the rollout is {}", phase.name())),
        Told::Answered { say, .. } | Told::Frozen { say, .. } => (By::Daemon, say.to_string()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::Verb;
    use crate::model::ids::{EntryId, Key};
    use crate::model::machine::Condition;

    fn line(second: i64, told: Told) -> Line {
        Line { at: Time::from_millis(second * 1_000), told }
    }

    fn said(lines: &[Line]) -> Vec<String> {
        of_history(lines).into_iter().map(|words| words.say).collect()
    }

    fn became(id: &str, to: Condition) -> Told {
        Told::Became { id: InstanceId::new(id), key: Key::new(id), from: Condition::Ready, to }
    }

    fn gone(id: &str, deleted: bool) -> Told {
        Told::Closed { id: InstanceId::new(id), key: Key::new(id), deleted }
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
                "machine 5 is gone, and not by us",
                "machine 6 is gone",
                "machine 7 does not serve any more"
            ]
        );
    }

    #[test]
    fn what_nobody_needs_is_left_out_and_decisions_name_their_machines() {
        let decided = |machines: &[&str]| Told::Decided {
            entry: EntryId::new("e"),
            verb: Verb::Delete,
            machines: machines.iter().map(InstanceId::new).collect(),
            reason: "outdated".into(),
        };
        let lines = [
            line(1, became("7", Condition::Unknown)),
            line(1, Told::Rollout { phase: RolloutPhase::None, to: None }),
            line(1, decided(&["1", "2"])),
            line(1, decided(&[])),
        ];
        assert_eq!(said(&lines), ["delete 1, 2: outdated", "delete: outdated"]);
    }
}
