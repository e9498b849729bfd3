//! How a pool stands by the Poolkeeper that keeps it: what is wrong, what moves, when it ends, what waits for a person.

use serde_json::{Value, json};

use crate::api::v1::foremost::{needs_edit, rank};
use crate::api::v1::resources::pools::AwaitedRequest;
use crate::api::v1::resources::read::{
    HoldRead, IgnoredRead, MachineRead, RolloutRead, StatusRead,
};
use crate::cli::client::served;
use crate::cli::page::{Facts, rollout, rule_and_say};
use crate::cli::text::{clock, count, list, nearer};
use crate::model::action::Class;
use crate::model::budget::HoldReason;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;

/// Ids in one line; the rest are counted.
const NAMES: usize = 12;

/// The worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grade {
    /// A law forbids what would be done.
    Frozen,
    /// Its turns come to nothing.
    Troubled,
    /// Machines are ill, or too few serve, or its rollout fails.
    Wrong,
    /// Somebody's word is needed.
    Waiting,
    /// No turn has looked at it yet.
    New,
    Moving,
    Fine,
}

impl Grade {
    pub const ALL: [Grade; 7] = [
        Grade::Frozen,
        Grade::Troubled,
        Grade::Wrong,
        Grade::Waiting,
        Grade::New,
        Grade::Moving,
        Grade::Fine,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Grade::Frozen => "frozen",
            Grade::Troubled => "troubled",
            Grade::Wrong => "wrong",
            Grade::Waiting => "waiting",
            Grade::New => "new",
            Grade::Moving => "moving",
            Grade::Fine => "fine",
        }
    }

    /// What it means, after the name of a pool.
    pub const fn says(self) -> &'static str {
        match self {
            Grade::Frozen => "is frozen: a law forbids what would be done",
            Grade::Troubled => "has trouble: its turns come to nothing",
            Grade::Wrong => "is not well",
            Grade::Waiting => "waits for you",
            Grade::New => "is new: no turn has looked at it yet",
            Grade::Moving => "is well, and moves",
            Grade::Fine => "is well",
        }
    }
}

/// How one pool stands.
#[derive(Debug)]
pub(super) struct Standing {
    pub status: StatusRead,
    pub grade: Grade,
    pub wrong: Vec<String>,
    pub moves: Vec<String>,
    pub waits: Vec<String>,
}

/// What is known of one pool beside its status.
#[derive(Debug, Default)]
pub(super) struct More {
    pub rollout: Option<RolloutRead>,
    pub machines: Vec<MachineRead>,
    pub facts: Option<Facts<'static>>,
}

impl Standing {
    /// Times are told as seen from its last turn.
    pub fn of(status: StatusRead, more: &More) -> Self {
        let now = status.at.map(|at| at.0);
        let wrong = wrong(&status, more, now);
        let moves = moves(&status, more, now);
        let waits = waits(&status, more, now);
        let grade = match () {
            () if status.frozen.is_some() => Grade::Frozen,
            () if status.trouble.is_some() => Grade::Troubled,
            () if !wrong.is_empty() => Grade::Wrong,
            () if !waits.is_empty() => Grade::Waiting,
            () if status.numbers.is_none() => Grade::New,
            () if !moves.is_empty() => Grade::Moving,
            () => Grade::Fine,
        };
        Self { status, grade, wrong, moves, waits }
    }

    pub fn finishes(&self) -> Option<Time> {
        self.status.estimate.and_then(|estimate| estimate.finishes).map(|at| at.0)
    }

    /// The reason that says most, for one line: first what a person must do, then what is wrong, then what it waits for.
    pub fn foremost(&self) -> Option<String> {
        let stands = matches!(self.grade, Grade::Frozen | Grade::Troubled);
        let task = self.waits.first().filter(|_| !stands);
        let first = task.or_else(|| self.wrong.first()).cloned();
        let now = self.status.at.map(|at| at.0);
        first.or_else(|| {
            let hold = self.status.holds.iter().min_by_key(|hold| rank(&hold.reason))?;
            Some(rule_and_say(&served::hold(hold), now.unwrap_or(hold.recheck.0)))
        })
    }

    /// For programs; what the server answered stands in it as it came.
    pub fn document(&self, status: &Value, rollout: Option<&Value>) -> Value {
        json!({
            "pool": self.status.name,
            "standing": self.grade.name(),
            "wrong": self.wrong,
            "moves": self.moves,
            "ends": self.finishes().map(|at| at.to_string()),
            "waitsForYou": self.waits,
            "status": status,
            "rollout": rollout,
        })
    }
}

fn ids(machines: &[MachineRead], is: impl Fn(Class) -> bool) -> Vec<String> {
    let of = machines.iter().filter(|machine| machine.class().is_some_and(&is));
    of.map(|machine| machine.record().id.to_string()).collect()
}

/// `3 machines are failed: 1, 2, 3`; the names where they are known.
fn named(number: u32, what: &str, ids: &[String]) -> Option<String> {
    let number = usize::try_from(number).unwrap_or(usize::MAX).max(ids.len());
    (number > 0).then(|| {
        let names = list(ids.iter().map(String::as_str).collect::<Vec<_>>().into_iter(), NAMES);
        let names = if ids.is_empty() { names } else { format!(": {names}") };
        format!("{} {what}{names}", count(number, "machine"))
    })
}

fn wrong(status: &StatusRead, more: &More, now: Option<Time>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(status.frozen.as_ref().map(|hold| {
        let hold = served::hold(hold);
        rule_and_say(&hold, now.unwrap_or(hold.recheck))
    }));
    found.extend(status.trouble.as_ref().map(|trouble| {
        let since = trouble.since.0;
        let retry = trouble.retry.map(|at| format!("; tried again at {}", clock(at.0, since)));
        format!("since {since}: {}{}", trouble.say, retry.unwrap_or_default())
    }));
    found.extend(status.ignored.as_ref().map(|ignored| {
        format!("{} has a fault, so its changes are ignored: {}", ignored.file, ignored.say)
    }));
    let refusals = status.holds.iter().filter(|hold| hold.is_lasting_refusal());
    found.extend(refusals.map(|hold| {
        let hold = served::hold(hold);
        rule_and_say(&hold, now.unwrap_or(hold.recheck))
    }));
    if let Some(numbers) = status.numbers {
        if numbers.available < numbers.floor.min(numbers.desired) {
            let (available, floor) = (numbers.available, numbers.floor);
            found.push(format!(
                "{available} of at least {} available",
                count(floor as usize, "machine")
            ));
        }
        let failed = ids(&more.machines, |class| class == Class::Failed);
        found.extend(named(numbers.failed, "failed", &failed));
    }
    if status.phase == RolloutPhase::Stalled.name() {
        found.push("the rollout is stalled: it has not moved for longer than it may".to_owned());
    }
    let open = more.rollout.as_ref().and_then(|rollout| rollout.open.as_ref());
    if let Some(open) = open.filter(|open| open.stage == "failing") {
        found.push(format!("the rollout fails: {}", open.why.as_deref().unwrap_or_default()));
    }
    found
}

fn moves(status: &StatusRead, more: &More, now: Option<Time>) -> Vec<String> {
    let mut found = Vec::new();
    match more.rollout.as_ref().map(|shown| served::rollout(&shown.progress)) {
        Some(shown) if shown.is_open() => found.push(format!("rollout {}", rollout(&shown))),
        Some(_) => {}
        None if RolloutPhase::is_open(&status.phase) => {
            found.push(format!("rollout {}", status.phase));
        }
        None => {}
    }
    if let Some(numbers) = status.numbers {
        let of = |wanted: Class| ids(&more.machines, |class| class == wanted);
        found.extend(named(numbers.pending, "raised for and not seen yet", &[]));
        found.extend(named(numbers.young, "new, proving itself", &of(Class::Replacement)));
        found.extend(named(0, "updated in place", &of(Class::Updating)));
        found.extend(named(numbers.leaving, "on the way out", &of(Class::Leaving)));
    }
    let actions = more.facts.iter().flat_map(|facts| &facts.actions);
    found.extend(actions.map(|action| {
        let why = now.map_or_else(|| action.reason.clone(), |now| nearer(&action.reason, now));
        format!("{} {}: {why}", action.verb, action.object)
    }));
    found
}

/// Holds that end by themselves too, sooner or later, however much somebody may hurry them.
const BY_ITSELF: [&str; 3] = ["promote", "abort", "explain"];

/// The holds that need a person, the one that stops most first.
fn waits(status: &StatusRead, more: &More, now: Option<Time>) -> Vec<String> {
    let mut needed: Vec<&HoldRead> = status.holds.iter().collect();
    needed.sort_by_key(|hold| rank(&hold.reason));
    // A person holds or protects these machines on purpose: that is a state and no task.
    needed.retain(|hold| hold.reason != HoldReason::Kept.code());
    let holds = needed.into_iter().filter_map(|hold| {
        let told = served::hold(hold);
        let say = rule_and_say(&told, now.unwrap_or(told.recheck));
        if needs_edit(&hold.reason) {
            return Some(say);
        }
        let verb = hold.verb.as_deref().filter(|verb| !BY_ITSELF.contains(verb))?;
        let command = command(verb, &status.name, &hold.blockers);
        Some(format!("{say}; {command}"))
    });
    let file = status.ignored.as_ref().map(|IgnoredRead { file, .. }| {
        format!("correct {file}; `poolkeeper validate {file}` names every fault")
    });
    let persons = status.awaited.iter().flatten().map(awaited);
    let mut found: Vec<String> = persons.chain(file).chain(holds).collect();
    // The next turn answers it; it is told so that nobody asks twice.
    let asked = more.rollout.as_ref().and_then(|rollout| rollout.asks.last());
    if let Some(ask) = asked.filter(|_| !found.is_empty()) {
        found.push(format!("{} was asked by {}; the next turn answers", ask.verb, ask.by));
    }
    found
}

/// What another person must ask for too.
fn awaited(request: &AwaitedRequest) -> String {
    let AwaitedRequest { verb, machine, who, why, at, until, command } = request;
    let of = machine.as_ref().map(|machine| format!(" of machine {machine}"));
    let (of, until) = (of.unwrap_or_default(), clock(until.0, at.0));
    format!(
        "{who} asked for {verb}{of} ({why}); a second person must ask before {until}: `{command}`"
    )
}

/// What a person would type.
fn command(verb: &str, pool: &str, blockers: &[String]) -> String {
    let mut name = String::new();
    for letter in verb.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    let of_machine = match (name.as_str(), blockers.first()) {
        ("release" | "delete-machine" | "write-off", Some(machine)) => format!(" {machine}"),
        _ => String::new(),
    };
    format!("`poolkeeper {name} {pool}{of_machine} --why …`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_is_what_a_person_would_type() {
        let blockers = ["3".to_owned()];
        for (verb, blockers, typed) in [
            ("resume", &blockers[..0], "`poolkeeper resume web --why …`"),
            ("approve", &blockers, "`poolkeeper approve web --why …`"),
            ("settleCapacity", &[], "`poolkeeper settle-capacity web --why …`"),
            ("release", &blockers, "`poolkeeper release web 3 --why …`"),
            ("release", &[], "`poolkeeper release web --why …`"),
            ("write-off", &blockers, "`poolkeeper write-off web 3 --why …`"),
        ] {
            assert_eq!(command(verb, "web", blockers), typed);
        }
    }
}
