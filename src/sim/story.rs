//! A rehearsal for readers: one dense line for each turn or deed that changed something.
//!
//! `12:03:20 turn 7   8 old 2 new, 10 available ≥ 9, 11 live ≤ 11; raise 10→11; delete m4 (outdated)`

use std::fmt::Write as _;

use crate::memory::EntryMove;
use crate::model::action::{Action, RemovalReason, Target};
use crate::model::autoscaler::AutoscalerTarget;
use crate::model::hold::HoldReason;
use crate::model::journal::{EntryEvent, EntryOutcome};
use crate::model::plan::{Decision, RolloutPhase};
use crate::model::quantity::Resolved;
use crate::model::time::Time;
use crate::reconcile::TurnReport;
use crate::world::{self, Actor, EventKind};

/// The most machines named in one line; the rest are counted.
// 6: readers skip lines that wrap.
const NAMED: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Story {
    pub lines: Vec<String>,
    last: Option<LineState>,
}

/// State that a line shows beside its events; a turn that changes none of it gets no line.
#[derive(Debug, PartialEq, Eq)]
struct LineState {
    phase: RolloutPhase,
    holds: Vec<HoldReason>,
    floor: u32,
    ceiling: u32,
}

/// Time of the virtual day, preceded by the day unless it is the first.
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

    /// `acts`: the actions of the plan, also if the judge refused it.
    pub fn turn(&mut self, number: u32, start: Time, report: &TurnReport, acts: &[Action]) {
        let Some(planned) = &report.planned else {
            let say = report.frozen.as_ref().map_or("nothing planned", |hold| &*hold.message);
            self.lines.push(format!("{} turn {number:<4} {say}", clock(report.at, start)));
            return;
        };
        let holds: Vec<HoldReason> = planned.report.holds.iter().map(|hold| hold.reason).collect();
        let Resolved { floor, ceiling, .. } = planned.report.resolved;
        let here = LineState { phase: planned.report.rollout.phase, holds, floor, ceiling };
        let mut parts: Vec<String> = acts.iter().map(action).collect();
        parts.extend(failures(report));
        parts.extend(planned.report.commands.iter().map(|ask| {
            let word = if ask.accepted { "agreed" } else { "refused" };
            format!("{word}: {}", ask.message)
        }));
        let frozen = report.frozen.as_ref().map(|hold| format!("FROZEN: {}", hold.message));
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
        if acts.is_empty() && !here.holds.is_empty() {
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

    /// External changes that the pool will notice.
    pub fn deed(&mut self, start: Time, event: &world::WorldEvent) {
        let who = |by: Actor| match by {
            Actor::Person => Some("another client"),
            Actor::Native => Some("a platform feature"),
            Actor::Azure => Some("the cloud"),
            Actor::Caller => None,
        };
        let said = match &event.what {
            EventKind::CapacityWritten { by, from, to } if *by != Actor::Caller => {
                who(*by).map(|who| format!("{who} sets the capacity {from}→{to}"))
            }
            EventKind::ModelWritten { by, .. } => {
                who(*by).map(|who| format!("{who} changes the model of the set"))
            }
            EventKind::InstanceSick { id, .. } => Some(format!("m{id} becomes unhealthy")),
            EventKind::InstanceFailed { id, code, .. } => Some(format!("m{id} failed ({code})")),
            EventKind::InstanceStopped { id, by, .. } => {
                who(*by).map(|who| format!("{who} stops m{id}"))
            }
            EventKind::InstanceDeleting { id, by, .. } => {
                who(*by).map(|who| format!("{who} deletes m{id}"))
            }
            EventKind::InstanceGone { id, by: Actor::Azure, .. } => Some(format!("m{id} is lost")),
            EventKind::InstanceKept { id, .. } => {
                Some(format!("the delete of m{id} failed or was undone"))
            }
            EventKind::Shortage { until, .. } if *until <= event.at => None,
            EventKind::Shortage { zone: Some(zone), .. } => {
                Some(format!("zone {zone} has no capacity"))
            }
            EventKind::Shortage { zone: None, .. } => Some("the region has no capacity".to_owned()),
            EventKind::FaultsSet(faults) => {
                Some(if faults.is_calm() { "the trouble is over" } else { "trouble begins" }.into())
            }
            EventKind::SetGone => Some("the scale set is gone".to_owned()),
            _ => None,
        };
        if let Some(said) = said {
            self.tell(Time::from_millis(event.at), start, &said);
        }
    }
}

fn heights(planned: &Decision) -> String {
    let (n, r) = (&planned.report.numbers, &planned.report.resolved);
    // The planner counts machines requested but not yet listed as new; the story does not.
    let new = n.current.saturating_sub(n.requested);
    let coming = if n.requested > 0 { format!(" {} coming", n.requested) } else { String::new() };
    let above = if n.available >= r.floor { '≥' } else { '<' };
    let below = if n.total <= r.ceiling { '≤' } else { '>' };
    format!(
        "{} old {new} new{coming}, {} available {above} {}, {} in total {below} {}",
        n.outdated, n.available, r.floor, n.total, r.ceiling
    )
}

fn action(action: &Action) -> String {
    match action {
        Action::Raise { from, to, .. } if from <= to => format!("raise {from}→{to}"),
        Action::Raise { from, to, .. } => format!("reset capacity {from}→{to}"),
        Action::UpdateModel { fields, .. } => {
            format!("write model {}", fields.image.as_deref().unwrap_or("fields"))
        }
        Action::TagOwner { write, .. } => format!("tag owner {}", write.tag()),
        Action::WriteAutoscaler { write, .. } => match write.to {
            AutoscalerTarget::Suspended => "switch autoscaler off".to_owned(),
            AutoscalerTarget::PutBack => "put autoscaler back".to_owned(),
        },
        other => format!("{} {}", other.verb().name(), names(other.targets())),
    }
}

/// `m4, m7 (outdated)`, by reason.
fn names(targets: &[Target]) -> String {
    let mut reasons: Vec<RemovalReason> = targets.iter().map(|target| target.because).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let of = |because: RemovalReason| {
        let all: Vec<&Target> = targets.iter().filter(|t| t.because == because).collect();
        let named: Vec<String> = all.iter().take(NAMED).map(|t| format!("m{}", t.id)).collect();
        let more = all.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more} ({})", named.join(", "), because_name(because))
    };
    reasons.into_iter().map(of).collect::<Vec<_>>().join(", ")
}

const fn because_name(because: RemovalReason) -> &'static str {
    match because {
        RemovalReason::Failed => "failed",
        RemovalReason::DeleteRequested => "asked for",
        RemovalReason::DeleteRequestedNow => "asked for now",
        RemovalReason::Outdated => "outdated",
        RemovalReason::Surplus => "surplus",
    }
}

/// Our requests that failed.
fn failures(report: &TurnReport) -> Vec<String> {
    let bad = |event: &EntryEvent| match event {
        EntryEvent::Lost => Some("its answer was lost".to_owned()),
        EntryEvent::Ended(EntryOutcome::Refused(refused)) => {
            let code = refused.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            Some(format!("refused, {}{code}", refused.refusal.name()))
        }
        EntryEvent::Ended(EntryOutcome::Mixed(_)) => Some("done in part".to_owned()),
        EntryEvent::Ended(EntryOutcome::Withdrawn) => Some("withdrawn".to_owned()),
        _ => None,
    };
    let what = |moved: &EntryMove| {
        let made = report.made.iter().find(|made| made.entry == moved.id);
        made.map_or("an entry", |made| made.verb.name())
    };
    let each = report.moved.iter();
    each.filter_map(|moved| Some(format!("{}: {}", what(moved), bad(&moved.event)?))).collect()
}
