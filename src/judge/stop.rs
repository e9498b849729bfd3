//! Law 13: while a person stops all pools, nothing is begun. The exception for repair lets failed machines leave, and
//! lets the pool grow back to what it had when it was stopped.

use super::facts::View;
use super::machine_view::{Aim, MachineState, MachineView};
use super::{Notes, pending};
use crate::model::action::{Action, ActionKind, RemovalReason};
use crate::model::machine::Machine;
use crate::model::rollout::RepairLimit;
use crate::model::stop::GlobalStop;

pub(super) fn stopped(view: &View, notes: &mut Notes) {
    let Some(stop) = view.case.stop else { return };
    if !stop.except_repair {
        let begun = view.case.planned.actions.iter().map(Action::verb);
        for kind in begun.filter(|kind| *kind != ActionKind::Restore) {
            let say = format!("sends {} though a person stopped all pools", kind.name());
            notes.add(13, say, Vec::new());
        }
        return;
    }
    only_repair(view, notes);
    size(view, stop, notes);
}

/// Failed machines leave, restored ones come back, and the capacity is raised: nothing else. Law 11 judges whether they
/// failed.
fn only_repair(view: &View, notes: &mut Notes) {
    let repairs = |kind| {
        use ActionKind::{Delete, Drain, Raise, Restore};
        matches!(kind, Raise | Drain | Delete | Restore)
    };
    let others = view.case.planned.actions.iter().map(Action::verb);
    for kind in others.filter(|kind| !repairs(*kind)) {
        let say = format!("sends {} though only repair is spared from the stop", kind.name());
        notes.add(13, say, Vec::new());
    }
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
