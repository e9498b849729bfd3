//! A rehearsal as people read it: one dense line for each turn or deed that changed anything.
//!
//! `12:03:20 turn 7   8 old 2 new, 10 available ≥ 9, 11 live ≤ 11; raise 10→11; delete m4 (outdated)`

use std::fmt::Write as _;

use crate::memory::Moved;
use crate::model::action::{Action, Because, Target};
use crate::model::budget::HoldReason;
use crate::model::journal::{Event, Outcome};
use crate::model::plan::{Planned, RolloutPhase};
use crate::model::quantity::Resolved;
use crate::model::time::Time;
use crate::reconcile::TurnReport;
use crate::world::{self, By, What};

/// Machines named in one line; the rest are counted.
// 6: a line that wraps is not read.
const NAMED: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Story {
    pub lines: Vec<String>,
    last: Option<Told>,
}

/// What a line tells beside what happened; a turn that changed none of it is not worth one.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    phase: RolloutPhase,
    holds: Vec<HoldReason>,
    floor: u32,
    ceiling: u32,
}

/// Hours, minutes and seconds of the virtual day, with the day where it is not the first.
pub(super) fn clock(at: Time, start: Time) -> String {
    let seconds = at.millis().div_euclid(1_000);
    let days = at.millis().div_euclid(86_400_000) - start.millis().div_euclid(86_400_000);
    let (h, m, s) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match days {
        0 => format!("{h:02}:{m:02}:{s:02}"),
        days => format!("+{days}d {h:02}:{m:02}:{s:02}"),
    }
}

impl Story {
    pub fn tell(&mut self, at: Time, start: Time, what: &str) {
        self.lines.push(format!("{}          {what}", clock(at, start)));
    }

    pub fn turn(&mut self, number: u32, start: Time, report: &TurnReport) {
        let Some(planned) = &report.planned else {
            let say = report.frozen.as_ref().map_or("nothing planned", |hold| &*hold.say);
            self.lines.push(format!("{} turn {number:<4} {say}", clock(report.at, start)));
            return;
        };
        let holds: Vec<HoldReason> = planned.report.holds.iter().map(|hold| hold.reason).collect();
        let Resolved { floor, ceiling, .. } = planned.report.resolved;
        let here = Told { phase: planned.report.rollout.phase, holds, floor, ceiling };
        let mut parts: Vec<String> = planned.actions.iter().map(action).collect();
        parts.extend(failures(report));
        parts.extend(planned.report.asks.iter().map(|ask| {
            let word = if ask.accepted { "agreed" } else { "refused" };
            format!("{word}: {}", ask.say)
        }));
        let frozen = report.frozen.as_ref().map(|hold| format!("FROZEN: {}", hold.say));
        parts.extend(frozen);
        if parts.is_empty() && self.last.as_ref() == Some(&here) {
            return;
        }
        if self.last.as_ref().is_none_or(|last| last.phase != here.phase) {
            parts.push(match here.phase {
                RolloutPhase::None => "no rollout".to_owned(),
                phase => format!("rollout {}", phase.name()),
            });
        }
        if planned.actions.is_empty() && !here.holds.is_empty() {
            let codes: Vec<&str> = here.holds.iter().map(|reason| reason.code()).collect();
            parts.push(format!("waits: {}", codes.join(", ")));
        }
        self.last = Some(here);
        let mut line = format!("{} turn {number:<4} {}", clock(report.at, start), heights(planned));
        for part in parts {
            let _infallible = write!(line, "; {part}");
        }
        self.lines.push(line);
    }

    /// What others did that the pool will notice.
    pub fn deed(&mut self, start: Time, event: &world::Event) {
        let who = |by: By| match by {
            By::Person => Some("somebody"),
            By::Native => Some("the cloud's own actor"),
            By::Azure => Some("the cloud"),
            By::Caller => None,
        };
        let said = match &event.what {
            What::CapacityWritten { by, from, to } if *by != By::Caller => {
                who(*by).map(|who| format!("{who} sets the capacity {from}→{to}"))
            }
            What::ModelWritten { by, .. } => {
                who(*by).map(|who| format!("{who} changes the model of the set"))
            }
            What::InstanceSick { id, .. } => Some(format!("m{id} falls ill")),
            What::InstanceFailed { id, code, .. } => Some(format!("m{id} failed ({code})")),
            What::InstanceStopped { id, by, .. } => {
                who(*by).map(|who| format!("{who} stops m{id}"))
            }
            What::InstanceDeleting { id, by, .. } => {
                who(*by).map(|who| format!("{who} deletes m{id}"))
            }
            What::InstanceGone { id, by: By::Azure, .. } => Some(format!("m{id} is lost")),
            What::InstanceKept { id, .. } => Some(format!("the delete of m{id} came to nothing")),
            What::Shortage { until, .. } if *until <= event.at => None,
            What::Shortage { zone: Some(zone), .. } => Some(format!("zone {zone} has no room")),
            What::Shortage { zone: None, .. } => Some("the region has no room".to_owned()),
            What::FaultsSet(faults) => {
                Some(if faults.is_calm() { "the trouble is over" } else { "trouble begins" }.into())
            }
            What::SetGone => Some("the scale set is gone".to_owned()),
            _ => None,
        };
        if let Some(said) = said {
            self.tell(Time::from_millis(event.at), start, &said);
        }
    }
}

fn heights(planned: &Planned) -> String {
    let (n, r) = (&planned.report.numbers, &planned.report.resolved);
    // What was asked for and not listed yet counts as new where it is planned; nobody knows yet.
    let new = n.current.saturating_sub(n.pending);
    let coming = if n.pending > 0 { format!(" {} coming", n.pending) } else { String::new() };
    let above = if n.available >= r.floor { '≥' } else { '<' };
    let below = if n.live <= r.ceiling { '≤' } else { '>' };
    format!(
        "{} old {new} new{coming}, {} available {above} {}, {} live {below} {}",
        n.outdated, n.available, r.floor, n.live, r.ceiling
    )
}

fn action(action: &Action) -> String {
    match action {
        Action::Raise { from, to, .. } if from <= to => format!("raise {from}→{to}"),
        Action::Raise { from, to, .. } => format!("settle capacity {from}→{to}"),
        Action::UpdateModel { fields, .. } => {
            format!("write model {}", fields.image.as_deref().unwrap_or("fields"))
        }
        Action::TagOwner { write, .. } => format!("tag owner {}", write.tag()),
        other => format!("{} {}", other.verb().name(), names(other.targets())),
    }
}

/// `m4, m7 (outdated)`, by reason.
fn names(targets: &[Target]) -> String {
    let mut reasons: Vec<Because> = targets.iter().map(|target| target.because).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let of = |because: Because| {
        let all: Vec<&Target> = targets.iter().filter(|t| t.because == because).collect();
        let named: Vec<String> = all.iter().take(NAMED).map(|t| format!("m{}", t.id)).collect();
        let more = all.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more} ({})", named.join(", "), because_name(because))
    };
    reasons.into_iter().map(of).collect::<Vec<_>>().join(", ")
}

const fn because_name(because: Because) -> &'static str {
    match because {
        Because::Failed => "failed",
        Because::Named => "asked for",
        Because::NamedNow => "asked for now",
        Because::Outdated => "outdated",
        Because::Surplus => "surplus",
    }
}

/// What of our requests came to nothing.
fn failures(report: &TurnReport) -> Vec<String> {
    let bad = |event: &Event| match event {
        Event::Lost => Some("its answer was lost".to_owned()),
        Event::Ended(Outcome::Refused(refused)) => {
            let code = refused.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            Some(format!("refused, {}{code}", refused.refusal.name()))
        }
        Event::Ended(Outcome::Mixed(_)) => Some("done in part".to_owned()),
        Event::Ended(Outcome::Withdrawn) => Some("withdrawn".to_owned()),
        _ => None,
    };
    let what = |moved: &Moved| {
        let made = report.made.iter().find(|made| made.entry == moved.id);
        made.map_or("an entry", |made| made.verb.name())
    };
    let each = report.moved.iter();
    each.filter_map(|moved| Some(format!("{}: {}", what(moved), bad(&moved.event)?))).collect()
}
