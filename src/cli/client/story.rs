//! A history as a story: one line a fact, with the actor and the machine, and nothing of the bookkeeping.
//!
//! Pure: lines of the API in, facts out. Begin with [`Story::tell`].

use std::collections::{BTreeMap, BTreeSet};

use crate::api::v1::replacements::Replacements;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::told::{HistoryLine, is_repeated};
use crate::cli::text::{count, short};
use crate::memory::JournalStep;
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::journal::{
    BUDGET_KEEPS, CHANGED_SINCE_READ, HOOK_KEEPS, NOT_TO_DISRUPT, PODS_STAY, STILL_SERVES,
    drain_did_not_begin,
};
use crate::model::machine::Condition;
use crate::model::plan::RolloutPhase;
use crate::model::time::Time;
use crate::model::vocabulary::Vocabulary;

/// The most parts of a list of machines; the rest are counted.
const PARTS: usize = 8;

/// Conditions in which a machine does not serve.
const ILL: [Condition; 3] = [Condition::Unready, Condition::Failed, Condition::Stopped];

/// Holds of every rollout in good health, and those of which another line tells.
const BOOKKEEPING: [HoldReason; 18] = [
    HoldReason::SurgeBooting,
    HoldReason::Floor,
    HoldReason::Ceiling,
    HoldReason::Leaving,
    HoldReason::CapacityLags,
    HoldReason::Updating,
    HoldReason::Surplus,
    HoldReason::RemovalRefused,
    HoldReason::Ramp,
    HoldReason::Paused,
    HoldReason::InstancesNotListed,
    HoldReason::ScaleOutUnconfirmed,
    HoldReason::Refused,
    HoldReason::WaitingForModel,
    HoldReason::Baking,
    HoldReason::LastAvailable,
    HoldReason::RepairInTurn,
    HoldReason::Grace,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Fact {
    pub at: Time,
    pub text: String,
}

/// What the lines so far said, for those that follow.
#[derive(Debug, Default)]
pub(in crate::cli) struct Story {
    pairs: Replacements,
    /// The machines of each entry.
    entries: BTreeMap<String, Vec<String>>,
    /// Machines that no read shows.
    hidden: BTreeSet<String>,
    /// Time of the first line, and whether anything was decided since.
    first: Option<Time>,
    has_decided: bool,
    /// The last rollout line: its phase and its revision.
    rollout: Option<(String, Option<String>)>,
    /// A command paused the rollout, and a line said so.
    is_paused: bool,
}

/// What happened to machines; equal ones of a turn become one line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phrase {
    There,
    Serves,
    Ill(String),
    Well,
    Hidden,
    Visible,
    Leaves,
    Deleted(String),
    Gone,
}

#[derive(Debug)]
enum Piece {
    Of { phrase: Phrase, machines: Vec<String>, others: Vec<String> },
    Plain(String),
}

impl Story {
    /// The facts of these lines, in order of time and then of id.
    pub fn tell(&mut self, lines: &[HistoryLine]) -> Vec<Fact> {
        let mut lines: Vec<&HistoryLine> = lines.iter().collect();
        lines.sort_by_key(|line| (line.at.0, line.id));
        let mut facts = Vec::new();
        for turn in lines.chunk_by(|a, b| a.at == b.at) {
            let Some(at) = turn.first().map(|line| line.at.0) else { continue };
            let pieces = self.turn(turn);
            facts.extend(pieces.into_iter().map(|piece| Fact { at, text: piece.text() }));
        }
        facts
    }

    fn turn(&mut self, turn: &[&HistoryLine]) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        // A turn writes the new phase before the answer to the command that caused it.
        self.is_paused |= turn.iter().any(|line| is_command(line, CommandName::Pause));
        for line in turn {
            let Some(piece) = self.piece(line, turn) else { continue };
            match &piece {
                Piece::Of { phrase, machines, others } => {
                    let same = pieces.iter_mut().find_map(|known| known.joins(phrase, others));
                    match same {
                        Some((known, known_others)) => {
                            known.extend(machines.iter().cloned());
                            known_others.extend(others.iter().cloned());
                        }
                        None => pieces.push(piece),
                    }
                }
                Piece::Plain(_) => pieces.push(piece),
            }
        }
        pieces
    }

    /// `None`: bookkeeping.
    fn piece(&mut self, line: &HistoryLine, turn: &[&HistoryLine]) -> Option<Piece> {
        let because = line.machine.as_deref().and_then(|id| self.pairs.because(id));
        let because = because.map(str::to_owned);
        let other = self.pairs.note(line);
        let first = *self.first.get_or_insert(line.at.0);
        match &*line.event {
            "appeared" => {
                let is_ready = is(line.condition.as_deref(), Condition::Ready);
                let is_found = is_ready && line.at.0 == first && !self.has_decided;
                (!is_found).then(|| of(Phrase::There, line, other)).flatten()
            }
            "firstAvailable" => of(Phrase::Serves, line, None),
            "became" => self.became(line),
            "closed" => {
                let id = line.machine.as_deref()?;
                self.hidden.remove(id);
                let phrase = match line.deleted {
                    Some(true) => Phrase::Deleted(why_deleted(line, because.as_deref())),
                    _ => Phrase::Gone,
                };
                of(phrase, line, other)
            }
            "decided" => self.decided(line).map(Piece::Plain),
            "moved" => self.moved(line).map(Piece::Plain),
            "held" => is_told(line.reason.as_deref()).then(|| waits(line)),
            "rollout" => self.rollout(line).map(Piece::Plain),
            "answered" => Some(Piece::Plain(self.answered(line, turn))),
            "sized" | "gate" => Some(Piece::Plain(line.message.clone())),
            "frozen" => Some(Piece::Plain(format!("the pool is frozen: {}", line.message))),
            _ => None,
        }
    }

    fn became(&mut self, line: &HistoryLine) -> Option<Piece> {
        let id = line.machine.as_deref()?;
        let (to, from) = (line.condition.as_deref(), line.was.as_deref());
        let leaves = self.pairs.because(id).is_some();
        let was_hidden = self.hidden.remove(id);
        let phrase = if is(to, Condition::Unknown) {
            self.hidden.insert(id.to_owned());
            Phrase::Hidden
        } else if is(to, Condition::Deleting) {
            Phrase::Leaves
        } else if ILL.iter().any(|ill| is(to, *ill)) {
            Phrase::Ill(to.unwrap_or_default().to_owned())
        } else if was_hidden {
            Phrase::Visible
        } else if is(to, Condition::Ready) && !is(from, Condition::Provisioning) {
            Phrase::Well
        } else {
            // Of a machine that was provisioned, the line that it serves follows.
            return None;
        };
        // Of a machine that leaves, the line that it is deleted follows.
        if leaves {
            return None;
        }
        of(phrase, line, None)
    }

    fn decided(&mut self, line: &HistoryLine) -> Option<String> {
        self.has_decided = true;
        let verb = verb(line)?;
        if let Some(entry) = &line.entry {
            self.entries.insert(entry.clone(), line.machines.clone());
        }
        match verb {
            ActionKind::Raise => Some(match (line.from, line.to) {
                (Some(from), Some(to)) if to > from => format!("raised capacity {from} → {to}"),
                (Some(from), Some(to)) if to < from => format!("lowered capacity {from} → {to}"),
                (Some(_), Some(to)) => format!("repeated capacity {to}: machines are missing"),
                _ => line.message.clone(),
            }),
            ActionKind::Reimage => Some(format!("updates {} in place", machines(&line.machines))),
            ActionKind::Restore => {
                Some(format!("takes {} back into service", machines(&line.machines)))
            }
            ActionKind::CutOff | ActionKind::Standby => Some(line.message.clone()),
            ActionKind::UpdateModel => Some("writes the model of the scale set".to_owned()),
            ActionKind::SuspendAutoscaler | ActionKind::PutBackAutoscaler => {
                Some(line.message.clone())
            }
            ActionKind::Drain | ActionKind::Delete | ActionKind::TagOwner => None,
        }
    }

    fn moved(&mut self, line: &HistoryLine) -> Option<String> {
        let (verb, step) = (verb(line)?, step(line)?);
        let who = if verb == ActionKind::Drain { "the cluster" } else { "Azure" };
        let given_up = match line.code.as_deref().filter(|_| verb == ActionKind::Drain) {
            Some(STILL_SERVES) => {
                Some("the machine was not out of its load balancers by the deadline")
            }
            Some(HOOK_KEEPS) => Some("a webhook refused, or did not agree by the deadline"),
            Some(BUDGET_KEEPS) => Some("a disruption budget keeps a pod of its node"),
            Some(NOT_TO_DISRUPT) => Some("its node, or a pod there, is to be left alone"),
            Some(PODS_STAY) => Some("pods stayed on its node until the last step was over"),
            _ => None,
        };
        let end = match drain_did_not_begin(line.code.as_deref()) {
            true => "did not begin",
            false => "was given up",
        };
        let ids = line.entry.as_ref().and_then(|entry| self.entries.get(entry));
        let of = ids.filter(|ids| !ids.is_empty()).map(|ids| format!(" of {}", ranges(ids)));
        let what = format!("{}{}", noun(verb), of.unwrap_or_default());
        let goes_on = [JournalStep::Asking, JournalStep::Accepted, JournalStep::Lost];
        if let Some(entry) = line.entry.as_ref().filter(|_| !goes_on.contains(&step)) {
            self.entries.remove(entry);
        }
        // Our own read found the conflict: nothing was sent.
        let code = line.code.as_deref().filter(|code| *code != CHANGED_SINCE_READ);
        match step {
            JournalStep::Refused => Some(match given_up {
                Some(why) => format!("{what} {end}: {why}{}", said(&line.message)),
                None => format!("{who} refused {what}: {}{}", code?, said(&line.message)),
            }),
            JournalStep::PartlyRefused => Some(format!("{who} refused {what} in part: {}", code?)),
            JournalStep::Lost => Some(format!("the answer to {what} was lost")),
            JournalStep::Asking
            | JournalStep::Accepted
            | JournalStep::Done
            | JournalStep::Withdrawn => None,
        }
    }

    fn rollout(&mut self, line: &HistoryLine) -> Option<String> {
        let (phase, revision) = (line.phase.as_deref()?.to_owned(), line.revision.clone());
        let is_open = RolloutPhase::is_open(&phase);
        let before = self.rollout.replace((phase.clone(), revision.clone()));
        if before.as_ref().is_some_and(|(was, to)| *was == phase && *to == revision) {
            return None;
        }
        let name = rollout_name(line);
        let is_back = phase == RolloutPhase::RollingBack.name();
        let what = if is_back { "rollback" } else { "rollout" };
        let machines = line.covered.map(|covered| count(covered as usize, "machine"));
        let machines = machines.map(|machines| format!(": {machines}")).unwrap_or_default();
        if is_open && line.opened == Some(line.at) {
            return Some(format!("{what}{name} began{machines}"));
        }
        let other = before.is_some_and(|(was, to)| RolloutPhase::is_open(&was) && to != revision);
        if is_open && other {
            return Some(format!("the {what} goes{name} instead{machines}"));
        }
        let took = line.opened.map(|opened| short(line.at.0.since(opened.0)));
        let within = took.as_ref().map(|took| format!(" in {took}")).unwrap_or_default();
        let after = took.as_ref().map(|took| format!(" after {took}")).unwrap_or_default();
        let of = |known: RolloutPhase| known.name() == phase;
        if of(RolloutPhase::Paused) {
            (!self.is_paused).then(|| format!("rollout{name} paused"))
        } else if of(RolloutPhase::Baking) {
            Some(format!("rollout{name} bakes: every machine is done"))
        } else if of(RolloutPhase::Succeeded) {
            Some(format!("rollout{name} done{within}"))
        } else if of(RolloutPhase::SucceededWithExceptions) {
            Some(format!("rollout{name} done{within}, except for machines left as they are"))
        } else if of(RolloutPhase::Aborted) {
            Some(format!("rollout{name} aborted{after}"))
        } else if of(RolloutPhase::RolledBack) {
            Some(format!("rollback{name} done{within}"))
        } else {
            None
        }
    }

    fn answered(&mut self, line: &HistoryLine, turn: &[&HistoryLine]) -> String {
        let (Some(who), Some(verb)) = (&line.who, line.verb.as_deref()) else {
            return line.message.clone();
        };
        let why = line.why.as_deref().unwrap_or_default();
        if line.accepted == Some(false) {
            return format!("{who} ran {verb} ({why}); refused: {}", line.message);
        }
        if verb == CommandName::Resume.name() {
            self.is_paused = false;
        }
        let is = |command: CommandName| verb == command.name();
        let turned = |to: &dyn Fn(&str) -> bool| {
            turn.iter().filter_map(|line| line.phase.as_deref()).any(to)
        };
        let paused = RolloutPhase::Paused.name();
        let goes_on = |phase: &str| RolloutPhase::is_open(phase) && phase != paused;
        let deed = if is(CommandName::Pause) && turned(&|phase| phase == paused) {
            Some("paused")
        } else if is(CommandName::Resume) && turned(&goes_on) {
            Some("resumed")
        } else if is(CommandName::Abort) && turned(&|phase| phase == RolloutPhase::Aborted.name()) {
            Some("aborted")
        } else {
            None
        };
        match deed {
            Some(deed) => format!("{who} {deed} the rollout: {why}"),
            None => format!("{who} ran {verb} ({why}): {}", line.message),
        }
    }
}

impl Piece {
    /// Its machines and others, if it says the same.
    fn joins(
        &mut self,
        same: &Phrase,
        with: &[String],
    ) -> Option<(&mut Vec<String>, &mut Vec<String>)> {
        match self {
            Piece::Of { phrase, machines, others }
                if phrase == same && others.is_empty() == with.is_empty() =>
            {
                Some((machines, others))
            }
            _ => None,
        }
    }

    fn text(&self) -> String {
        let (phrase, ids, others) = match self {
            Piece::Plain(text) => return text.clone(),
            Piece::Of { phrase, machines, others } => (phrase, machines, others),
        };
        let one = ids.len() == 1;
        let verb = |single: &'static str, several: &'static str| if one { single } else { several };
        let who = machines(ids);
        let other = ranges(others);
        let has_other = !others.is_empty();
        match phrase {
            Phrase::There if has_other => {
                format!("{who} {} there, in place of {other}", verb("is", "are"))
            }
            Phrase::There if ids.len() > PARTS => {
                format!("{} machines are there: {}", ids.len(), ranges(ids))
            }
            Phrase::There => format!("{who} {} there", verb("is", "are")),
            Phrase::Serves => format!("{who} {}", verb("serves", "serve")),
            Phrase::Ill(condition) => {
                format!("{who} {} not serve any more: {condition}", verb("does", "do"))
            }
            Phrase::Well => format!("{who} {} ready again", verb("is", "are")),
            Phrase::Hidden => format!("{who} {} no longer visible", verb("is", "are")),
            Phrase::Visible => format!("{who} {} visible again", verb("is", "are")),
            Phrase::Leaves => {
                format!("{who} {} being deleted", verb("is", "are"))
            }
            Phrase::Deleted(tail) if has_other => {
                format!("{who} deleted{tail}; replaced by {other}")
            }
            Phrase::Deleted(tail) => format!("{who} deleted{tail}"),
            Phrase::Gone if has_other => {
                format!("{who} {} gone, not by Poolkeeper; replaced by {other}", verb("is", "are"))
            }
            Phrase::Gone => format!("{who} {} gone, not by Poolkeeper", verb("is", "are")),
        }
    }
}

fn of(phrase: Phrase, line: &HistoryLine, other: Option<String>) -> Option<Piece> {
    let machines = vec![line.machine.clone()?];
    Some(Piece::Of { phrase, machines, others: other.into_iter().collect() })
}

fn is(word: Option<&str>, condition: Condition) -> bool {
    word == Some(WordOf(condition).word())
}

fn is_command(line: &HistoryLine, command: CommandName) -> bool {
    line.accepted == Some(true) && line.verb.as_deref() == Some(command.name())
}

fn is_told(reason: Option<&str>) -> bool {
    !BOOKKEEPING.iter().any(|hold| Some(hold.code()) == reason)
}

fn waits(line: &HistoryLine) -> Piece {
    Piece::Plain(format!("waits: {}", line.message))
}

/// What the other side said besides its code.
fn said(message: &str) -> String {
    let said = message.split_once(": \"").and_then(|(_, said)| said.strip_suffix('"'));
    said.map(|said| format!(" ({said})")).unwrap_or_default()
}

fn verb(line: &HistoryLine) -> Option<ActionKind> {
    ActionKind::parse(line.verb.as_deref()?)
}

fn step(line: &HistoryLine) -> Option<JournalStep> {
    JournalStep::parse(line.step.as_deref()?)
}

/// Why a machine is deleted, if another word than that of the rollout.
fn why_deleted(line: &HistoryLine, because: Option<&str>) -> String {
    if let Some(who) = &line.who {
        let why = line.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return format!(", asked by {who}{why}");
    }
    let of = |reason: RemovalReason| because == Some(WordOf(reason).word());
    if of(RemovalReason::Failed) {
        ", because it had failed".to_owned()
    } else if of(RemovalReason::Surplus) {
        ", because it was surplus".to_owned()
    } else {
        String::new()
    }
}

/// ` to 2.0.0`; a fingerprint is no name.
fn rollout_name(line: &HistoryLine) -> String {
    let again = line.cause.as_deref().is_some_and(is_repeated);
    let again = if again { " (again)" } else { "" };
    line.revision_name.as_ref().map(|name| format!(" to {name}{again}")).unwrap_or_default()
}

const fn noun(verb: ActionKind) -> &'static str {
    match verb {
        ActionKind::UpdateModel => "the write of the model",
        ActionKind::Restore => "the return to service",
        ActionKind::Raise => "the raise",
        ActionKind::CutOff => "the cut-off",
        ActionKind::Standby => "the switching off",
        ActionKind::Drain => "the drain",
        ActionKind::Reimage => "the update",
        ActionKind::Delete => "the delete",
        ActionKind::TagOwner => "the write of the owner tag",
        ActionKind::SuspendAutoscaler => "the switching off of the autoscaler",
        ActionKind::PutBackAutoscaler => "the putting back of the autoscaler",
    }
}

fn machines(ids: &[String]) -> String {
    format!("{} {}", if ids.len() == 1 { "machine" } else { "machines" }, ranges(ids))
}

/// `0–11, 14`: numbers in order, neighbours as a range.
fn ranges(ids: &[String]) -> String {
    let numbers: Vec<Option<u64>> = ids.iter().map(|id| id.parse().ok()).collect();
    let mut parts: Vec<String> = Vec::new();
    if let Some(mut numbers) = numbers.into_iter().collect::<Option<Vec<u64>>>() {
        numbers.sort_unstable();
        numbers.dedup();
        for run in numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            match run {
                [first, _, .., last] => parts.push(format!("{first}–{last}")),
                few => parts.extend(few.iter().map(ToString::to_string)),
            }
        }
    } else {
        parts.extend(ids.iter().cloned());
    }
    let more = parts.len().saturating_sub(PARTS);
    parts.truncate(PARTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    parts.join(", ") + &more
}

#[cfg(test)]
mod tests;
