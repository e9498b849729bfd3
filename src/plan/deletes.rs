//! Learn when the capacity falls for a delete of ours: at its acceptance or at its end. Azure does not document it.

use crate::model::action::Verb;
use crate::model::inventory::{Native, Orchestration};
use crate::model::journal::{Entry, Outcome};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::Input;
use crate::model::rollout::{DeleteEffect, PoolState};
use crate::model::time::Span;

use super::journal::{Journal, born};
use super::numbers::Count;
use super::rows::{Group, Row};
use crate::model::machine::CLOCK_SKEW;

/// A read begun so long after the answer to a delete is no old picture.
const NO_OLD_PICTURE: Span = Span::seconds(60);

/// Mostly, a machine that is gone is listed no longer than this.
// 10 s: lists lag by seconds; for the few that lag longer, a second delete has to tell the same.
const LISTED_GONE: Span = Span::seconds(10);

/// So many deletes in a row that are counted to their end are no chance.
const IN_A_ROW: usize = 2;

/// A raise from a number that counts deletes brings what was asked for, where they are in it until they end. Where the
/// number only shows them, those deletes are made up for as well: more machines come, or the number lacks some of them.
fn hear_probe(input: &Input, memory: &mut PoolState, counted: i64, rows: &[Row]) {
    // What a raise asked for and did not bring looks like a delete that is counted still.
    let lacks = memory.undelivered.is_some();
    let effects = &mut memory.deletes;
    let Some(probe) = &mut effects.probe else { return };
    if input.set.complete && input.set.read_at >= probe.at.plus(LISTED_GONE) {
        // Another than the one that told it before: one alone may be in no number for a reason of its own.
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
        let not_sent = matches!(outcome, Some(Outcome::Refused(_) | Outcome::Withdrawn));
        entry.verb() == Verb::Raise
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
    // Where one came up failed for want of room, another may not have come at all.
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

/// The listing shows a machine of this delete going.
fn goes_on(entry: &Entry, input: &Input, rows: &[Row]) -> bool {
    rows.iter().any(|row| is_going(row) && names(entry, input, row))
}

const fn is_going(row: &Row) -> bool {
    row.shown_deleting && !row.unlisted
}

pub(super) fn learn(
    input: &Input,
    memory: &mut PoolState,
    journal: &Journal,
    count: &Count,
    rows: &[Row],
) {
    let counted = i64::from(input.set.capacity) - count.staying();
    hear_probe(input, memory, counted, rows);
    let plain = input.set.orchestration == Orchestration::Uniform
        && !input.set.natives.contains(&Native::Overprovision);
    let lacks = memory.undelivered.is_some();
    let makes = journal.raise_not_landed || journal.making;
    if !plain || !input.set.complete || makes || lacks {
        return;
    }
    let mut deletes: Vec<&Entry> = input.open.iter().filter(|entry| is_taken(entry)).collect();
    deletes.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    let named = |row: &Row| deletes.iter().any(|entry| names(entry, input, row));
    // What others delete, and what just went, may be counted or not: then no read tells anything.
    let ours = rows.iter().filter(|row| is_going(row)).filter(|row| named(row)).count() as i64;
    let others = rows.iter().filter(|row| is_going(row)).any(|row| !named(row));
    let ghosts = rows.iter().any(|row| row.group == Group::Ghost);
    if ours == 0 || others || ghosts {
        return;
    }
    let effects = &mut memory.deletes;
    // Raises have proven it. Reads prove nothing against it: a list shows for a while who is in no number any more.
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

/// Accepted, and not refused since.
fn is_taken(entry: &Entry) -> bool {
    let well = entry.outcome().is_none_or(|(_, outcome)| *outcome == Outcome::Done);
    entry.verb() == Verb::Delete && entry.accepted().is_some() && well
}

fn names(entry: &Entry, input: &Input, row: &Row) -> bool {
    let machine = row.machine(input);
    machine.condition == Condition::Deleting
        && entry.action.targets().iter().any(|target| target.is(machine))
}
