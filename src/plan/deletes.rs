//! Learns when the capacity falls for our deletes: at acceptance or at the end. Azure does not document it.

use crate::model::action::ActionKind;
use crate::model::inventory::{Orchestration, PlatformFeature};
use crate::model::journal::{Entry, EntryOutcome};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::rollout::{DeleteEffect, DeleteEffects, PoolState};
use crate::model::time::Span;

use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::journal::{Journal, born};
use crate::model::machine::CLOCK_SKEW;

/// A read begun this long after a delete's answer is not old.
const NO_OLD_PICTURE: Span = Span::seconds(60);

/// Most gone machines stay listed no longer than this.
// 10 s: listings lag by seconds; for the few that lag longer, a second delete must show the same.
const LISTED_GONE: Span = Span::seconds(10);

/// Longest wait for a number that counts deletes.
// 2 min: reads lag behind a write by less; a delete counted longer counts until it ends, or machines are lacking.
pub(super) const DELETES_SHOW: Span = Span::minutes(2);

/// This many deletes in a row that are counted to their end are not a coincidence.
const IN_A_ROW: usize = 2;

/// If the capacity really counts deletes until they end, a raise from that number brings as many machines as it asked
/// for. If reads only show it so, Azure replaces those deletes as well: more machines come, or the number lacks some of
/// them.
fn hear_probe(input: &Input, memory: &mut PoolState, counted: i64, rows: &[MachineCandidate]) {
    // Machines that a raise requested but did not bring look like a delete that is still counted.
    let lacks = memory.undelivered.is_some();
    let effects = &mut memory.deletes;
    let Some(probe) = &mut effects.probe else { return };
    if input.set.complete && input.set.read_at >= probe.at.plus(LISTED_GONE) {
        // A delete other than the earlier proof: a single one may be missing from the number for a reason of its own.
        let other = |entry: &&Entry| {
            entry.written < probe.at
                && effects.agreed.as_ref() != Some(&entry.id)
                && is_taken(entry)
                && goes_on(entry, input, rows)
        };
        let others = input.open.iter().filter(other).map(|entry| &entry.id);
        probe.beside = probe.beside.take().or_else(|| others.min().cloned());
    }
    let probe = probe.clone();
    let refused = |entry: &Entry| {
        let outcome = entry.outcome().map(|(_, outcome)| outcome);
        let not_sent = matches!(outcome, Some(EntryOutcome::Refused(_) | EntryOutcome::Withdrawn));
        entry.verb() == ActionKind::Raise
            && entry.written == probe.at
            && not_sent
            && entry.accepted().is_none()
    };
    if input.open.iter().any(refused) {
        effects.probe = None;
        return;
    }
    let since =
        |m: &&Machine| m.first_seen > probe.at && born(input, m).plus(CLOCK_SKEW) >= probe.at;
    let born: Vec<&Machine> = input.machines.iter().filter(since).collect();
    let many = born.len();
    // If one machine failed for lack of room, another may not have come at all.
    let lacks = lacks || born.iter().any(|machine| machine.condition == Condition::Failed);
    let asked = probe.births as usize;
    if many > asked {
        (effects.verdict, effects.proven) = (DeleteEffect::AtAccept, true);
        (effects.agreed, effects.probe) = (None, None);
        effects.late.clear();
        return;
    }
    if input.set.complete && input.set.read_at >= probe.at.plus(NO_OLD_PICTURE) {
        effects.probe = None;
        let going = rows.iter().filter(|row| is_going(row)).count() as i64;
        let same = many == asked && counted == going && !lacks;
        effects.proven = same && probe.beside.is_some() && effects.agreed.is_some();
        effects.agreed = if same { probe.beside.or(effects.agreed.take()) } else { None };
    }
}

/// The listing shows a machine of this delete leaving.
fn goes_on(entry: &Entry, input: &Input, rows: &[MachineCandidate]) -> bool {
    rows.iter().any(|row| is_going(row) && names(entry, input, row))
}

const fn is_going(row: &MachineCandidate) -> bool {
    row.shown_deleting && !row.unlisted
}

pub(super) fn learn(
    input: &Input,
    memory: &mut PoolState,
    journal: &Journal,
    count: &PoolCounts,
    rows: &[MachineCandidate],
) {
    let counted = i64::from(input.set.capacity) - count.staying();
    hear_probe(input, memory, counted, rows);
    let plain = input.set.orchestration == Orchestration::Uniform
        && !input.set.platform_features.contains(&PlatformFeature::Overprovision);
    let lacks = memory.undelivered.is_some();
    let makes = journal.raise_not_landed || journal.making;
    if !plain || !input.set.complete || makes || lacks {
        return;
    }
    let mut deletes: Vec<&Entry> = input.open.iter().filter(|entry| is_taken(entry)).collect();
    deletes.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    let named = |row: &MachineCandidate| deletes.iter().any(|entry| names(entry, input, row));
    // Others' deletes and machines that have just gone may be counted or not: then no read proves anything.
    let ours = rows.iter().filter(|row| is_going(row)).filter(|row| named(row)).count() as i64;
    let others = rows.iter().filter(|row| is_going(row)).any(|row| !named(row));
    let ghosts = rows.iter().any(|row| row.group == CandidateGroup::Ghost);
    if others || ghosts {
        return;
    }
    if ours == 0 {
        return hear_end(input, memory, counted);
    }
    let effects = &mut memory.deletes;
    // Raises have proven it. Reads beside a delete cannot disprove it: a listing shows machines for a while after the
    // number drops them.
    if effects.proven {
        return;
    }
    if counted == 0 {
        (effects.verdict, effects.proven) = (DeleteEffect::AtAccept, false);
        effects.agreed = None;
        effects.late.clear();
    } else if counted == ours {
        for entry in deletes {
            let asked = entry.accepted().unwrap_or(entry.written);
            let late = input.set.read_at >= asked.plus(NO_OLD_PICTURE);
            let goes = goes_on(entry, input, rows);
            if late && goes && !effects.late.contains(&entry.id) && effects.late.len() < IN_A_ROW {
                effects.late.push(entry.id.clone());
            }
        }
        if effects.late.len() >= IN_A_ROW {
            effects.verdict = DeleteEffect::AtEnd;
        }
    }
}

/// All deletes have ended. A number of ours that still counts them did not fall at their end: what raises seemed to prove
/// was a coincidence.
fn hear_end(input: &Input, memory: &mut PoolState, counted: i64) {
    let ended = memory.tombs.iter().map(|(_, at)| *at).max();
    let late = ended.is_some_and(|at| input.set.read_at >= at.plus(DELETES_SHOW));
    let explained = memory.desired.explained == input.set.capacity;
    let effects = &mut memory.deletes;
    let known = effects.verdict == DeleteEffect::AtEnd && effects.probe.is_none();
    if known && late && explained && counted > 0 {
        *effects = DeleteEffects::default();
    }
}

/// Accepted, and not refused since.
fn is_taken(entry: &Entry) -> bool {
    let well = entry.outcome().is_none_or(|(_, outcome)| *outcome == EntryOutcome::Done);
    entry.verb() == ActionKind::Delete && entry.accepted().is_some() && well
}

fn names(entry: &Entry, input: &Input, row: &MachineCandidate) -> bool {
    let machine = row.machine(input);
    machine.condition == Condition::Deleting
        && entry.action.targets().iter().any(|target| target.is(machine))
}
