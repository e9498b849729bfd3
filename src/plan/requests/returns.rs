//! Which machines return to service: those that replace lost ones, or outdated ones, and those that a failed gate brings
//! back.

use std::collections::BTreeSet;

use super::batches::{Batches, leaves_as_surplus, put, restore_waits};
use crate::model::action::RemovalReason;
use crate::model::machine::{Condition, Lifecycle};
use crate::model::plan::{Input, MachineReason};
use crate::plan::basis::Basis;
use crate::plan::candidate::{CandidateGroup, MachineCandidate};
use crate::plan::gray;

/// Machines restored before any is created.
pub(in crate::plan) fn restores(input: &Input, row: &MachineCandidate) -> bool {
    gray::comes_back(input, row) || (leaves_as_surplus(row) && !row.fails)
}

pub(super) fn restore(basis: &Basis, batches: &mut Batches) {
    let returns = |row: &MachineCandidate| row.returns() && !row.fails;
    let returning = basis.rows.iter().zip(0..).filter(|(row, _)| returns(row));
    batches.awaited = returning.map(|(_, at)| at).collect();
    batches.missing = basis.count.fill() - batches.awaited.len() as i64;
    let failed = basis.rows.iter().filter(|row| leaves_as_surplus(row) && row.fails).count() as i64;
    // Repair replaces these too, and would drain a failed machine again that was given back for them.
    let repaired = |row: &&MachineCandidate| {
        row.is_on_its_way() && row.because == Some(RemovalReason::Failed) && !row.written_off
    };
    let repaired = basis.rows.iter().filter(repaired).count() as i64;
    let failed = basis.count.failed + failed + repaired;
    batches.failed_over = basis.count.exist + failed - basis.count.desired;
    let replaced = |row: &&MachineCandidate| {
        row.group == CandidateGroup::Leaving && row.because == Some(RemovalReason::Outdated)
    };
    let replaced = basis.rows.iter().filter(replaced).count() as i64;
    for outdated in [false, true] {
        // An outdated machine restored in place of one that leaves as outdated would have to leave in turn.
        let others = if outdated { replaced } else { 0 };
        for (at, row) in basis.rows.iter().enumerate() {
            let seen = || row.machine(basis.input).condition != Condition::Unknown;
            let free = || restores(basis.input, row) && seen() && !restore_waits(basis, row);
            if batches.missing > others && row.outdated == outdated && free() {
                call_back(basis, batches, at);
                batches.missing -= 1;
            }
        }
    }
    restore_to_replace(basis, batches);
    if gray::restores_all(basis) {
        restore_what_was_cut(basis, batches);
    }
    let unseen = |row: &MachineCandidate| row.machine(basis.input).condition == Condition::Unknown;
    let dark =
        basis.rows.iter().zip(0..).filter(|(row, _)| restores(basis.input, row) && unseen(row));
    let missing = usize::try_from(batches.missing).unwrap_or(0);
    batches.awaited.extend(dark.map(|(_, at)| at).take(missing));
}

/// One that is off is in service once it was started.
fn call_back(basis: &Basis, batches: &mut Batches, at: usize) {
    let to = match basis.rows[at].is_off(basis.input) {
        true => Lifecycle::Standby,
        false => Lifecycle::InService,
    };
    put(basis, &mut batches.restore, at, RemovalReason::Surplus);
    batches.moved.push((at, to, MachineReason::Restored));
}

/// A gate of the scale-down failed. What leaves for another reason goes on leaving.
fn restore_what_was_cut(basis: &Basis, batches: &mut Batches) {
    for (at, row) in basis.rows.iter().enumerate() {
        let seen = row.machine(basis.input).condition != Condition::Unknown;
        let new = !batches.moved.iter().any(|(moved, ..)| *moved == at);
        if new && seen && gray::comes_back(basis.input, row) && !restore_waits(basis, row) {
            call_back(basis, batches, at);
        }
    }
}

/// A machine on target that is out of service replaces an outdated one before any is created for that.
fn restore_to_replace(basis: &Basis, batches: &mut Batches) {
    let back = batches.moved.iter().map(|(at, ..)| at).chain(&batches.awaited);
    let back = back.map(|at| &basis.rows[*at]);
    let mut wanted = gray::replacements(basis, &basis.count.with_back(back));
    let restored: BTreeSet<usize> = batches.moved.iter().map(|(at, ..)| *at).collect();
    for (at, row) in basis.rows.iter().enumerate() {
        let seen = row.machine(basis.input).condition != Condition::Unknown;
        let fits = gray::comes_back(basis.input, row) && row.is_on_target() && seen;
        if wanted > 0 && fits && !restored.contains(&at) && !restore_waits(basis, row) {
            call_back(basis, batches, at);
            wanted -= 1;
        }
    }
}
