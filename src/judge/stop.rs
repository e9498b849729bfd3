//! Law 13: while a person stops all pools, nothing is begun. The exception for repair lets failed machines leave, and
//! lets the pool grow back to what it had when it was stopped.

use super::facts::View;
use super::machine_view::{Aim, MachineState, MachineView};
use super::truth::Truth;
use super::{Notes, pending};
use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::machine::Machine;
use crate::model::rollout::RepairLimit;
use crate::model::stop::GlobalStop;

pub(super) fn stopped(view: &View, notes: &mut Notes) {
    let Some(stop) = view.case.stop else { return };
    kinds(stop, view.case.planned.actions.iter().map(Action::verb), notes);
    if stop.except_repair {
        only_repair(view, notes);
        size(view, stop, notes);
    }
}

/// The same of the calls that were sent since the stop that really stood, whatever the turn had read.
pub(super) fn sent(truth: &Truth, notes: &mut Notes) {
    let Some(stop) = truth.stop else { return };
    let since = truth.sent.iter().filter(|sent| sent.at > stop.since);
    kinds(stop, since.map(|sent| sent.verb), notes);
}

/// Machines return to service. Beside that, repair drains and deletes machines, and raises the capacity.
fn kinds(stop: &GlobalStop, sent: impl Iterator<Item = ActionKind>, notes: &mut Notes) {
    use ActionKind::{Delete, Drain, Raise, Restore};
    let repairs = |kind| stop.except_repair && matches!(kind, Raise | Drain | Delete);
    let but = if stop.except_repair {
        "only repair is spared from the stop"
    } else {
        "a person stopped all pools"
    };
    for kind in sent.filter(|kind| *kind != Restore && !repairs(*kind)) {
        notes.add(13, format!("sends {} though {but}", kind.name()), Vec::new());
    }
}

/// Only failed machines leave. Law 11 judges whether they failed.
fn only_repair(view: &View, notes: &mut Notes) {
    let other = |aim: &Aim, _: Option<(&Machine, &MachineView)>| {
        aim.verb != ActionKind::Restore && aim.target.because != RemovalReason::Failed
    };
    notes.about(
        13,
        "takes machines that did not fail though only repair is spared",
        view.keys(other),
    );
}

/// The limit of this stop is remembered once, and never above what was there; no raise goes beyond it.
fn size(view: &View, stop: &GlobalStop, notes: &mut Notes) {
    let of_stop = |limit: &RepairLimit| limit.since == stop.since;
    let case = view.case;
    let before = case.before.and_then(|before| before.repair_limit).filter(of_stop);
    let now = case.planned.state.repair_limit.filter(of_stop);
    let there = there(view);
    let size = match (before, now) {
        (Some(before), now) => {
            if now != Some(before) {
                notes.add(13, "changes the size that repair may fill up to", Vec::new());
            }
            i64::from(before.size)
        }
        (None, Some(now)) => {
            let size = i64::from(now.size);
            if size > there {
                let say = format!("lets repair fill up to {size} where only {there} were there");
                notes.add(13, say, Vec::new());
            }
            size
        }
        (None, None) => 0,
    };
    let (raised, exist) = (view.raised(), view.tally.exist + view.pending);
    if raised > 0 && exist + raised > size {
        let say = format!("raises {exist} by {raised} where repair may fill up to {size}");
        notes.add(13, say, Vec::new());
    }
}

/// The most machines that exist, or whose replacement repair may still owe: failed, or on their way out.
fn there(view: &View) -> i64 {
    let ghosts = view.looks.iter().filter(|look| look.standing == MachineState::Ghost).count();
    let tally = &view.tally;
    tally.exist + pending::most(view.case) + tally.failed + tally.leaving + ghosts as i64
}
