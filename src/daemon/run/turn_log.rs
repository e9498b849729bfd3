//! What a turn logs: only what is new since the last one, each thing once.

use std::collections::BTreeMap;

use crate::act::CallKind;
use crate::memory::{AuditEntry, EntryMove, JournalStore};
use crate::model::action::Action;
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::{EntryId, PoolName, Revision};
use crate::model::journal::{EntryEvent, EntryOutcome};
use crate::model::plan::{RolloutPhase, RolloutReport};
use crate::observe::{CloseReason, MachineChange, RecordChange};
use crate::reconcile::TurnReport;
use crate::telemetry::log::AUDIT;

/// The rollout of a turn: like the pool, every log line of that turn carries it.
pub(super) fn rollout(now: &TurnReport) -> Option<&str> {
    now.planned.as_ref()?.report.rollout.to.as_ref().map(Revision::as_str)
}

/// A quiet pool logs nothing. Call this inside the turn's span, which names the pool and the rollout.
pub(super) fn turn(before: Option<&TurnReport>, now: &TurnReport, journal: Option<&JournalStore>) {
    machines(now);
    frozen(before, now);
    if now.frozen.is_none()
        && let Some(planned) = &now.planned
    {
        for action in &planned.actions {
            let EntryMachines { machine, machines } = EntryMachines::of(action);
            let (verb, reason) = (action.verb().name(), action.reason());
            tracing::info!(verb, machine, machines, "decided: {reason}");
        }
        let was = before.filter(|b| b.frozen.is_none()).and_then(|before| before.planned.as_ref());
        phase(was.map(|was| &was.report.rollout), &planned.report.rollout);
        holds(was.map_or(&[], |was| &was.report.holds), &planned.report.holds);
    }
    for made in now.made.iter().filter(|made| made.what == CallKind::Sent) {
        let EntryMachines { machine, machines } = EntryMachines::by(journal, &made.entry);
        let (entry, verb, answer) = (&made.entry, made.verb.name(), made.answer);
        tracing::info!(%entry, verb, machine, machines, answer, "sent");
    }
    now.audit.iter().for_each(audited);
    for moved in &now.moved {
        entry(moved, EntryMachines::by(journal, &moved.id));
    }
    for gap in &now.gaps {
        let known = before.is_some_and(|before| before.gaps.iter().any(|old| old.what == gap.what));
        if !known {
            tracing::warn!("not seen: {}: {}", gap.what, gap.why);
        }
    }
}

/// Copies an audit line to the log, so that it leaves the machine with the log.
pub fn audited(line: &AuditEntry) {
    let AuditEntry { who, verb, on, why, came, .. } = line;
    let pool = line.pool.as_ref().map(PoolName::as_str);
    tracing::info!(target: AUDIT, who, verb, pool, on, why, came, at = %line.at, "audited");
}

/// Up to this many machines with the same change in one turn are logged one by one; more are logged as a number.
// 10: a typical rollout batch; the first read of a pool finds hundreds.
const ONE_BY_ONE: usize = 10;

fn machines(now: &TurnReport) {
    let mut by_word: BTreeMap<&'static str, Vec<&MachineChange>> = BTreeMap::new();
    for changed in &now.changes {
        by_word.entry(word(changed.what)).or_default().push(changed);
    }
    for (word, all) in by_word {
        if all.len() > ONE_BY_ONE {
            tracing::info!(machines = all.len(), "{word}");
            continue;
        }
        for changed in all {
            let machine = changed.id.as_str();
            match changed.what {
                RecordChange::Appeared(condition) => tracing::info!(machine, ?condition, "{word}"),
                RecordChange::Became { from, to } => tracing::info!(machine, ?from, ?to, "{word}"),
                RecordChange::FirstAvailable | RecordChange::Closed(_) => {
                    tracing::info!(machine, "{word}");
                }
            }
        }
    }
}

const fn word(change: RecordChange) -> &'static str {
    match change {
        RecordChange::Appeared(_) => "appeared",
        RecordChange::Became { .. } => "changed",
        RecordChange::FirstAvailable => "serves",
        RecordChange::Closed(CloseReason::Deleted) => "is deleted, as requested",
        RecordChange::Closed(_) => "is gone",
    }
}

/// The machines of an entry: a single one in the usual field, several in a joint field.
#[derive(Default)]
struct EntryMachines {
    machine: Option<String>,
    machines: Option<String>,
}

impl EntryMachines {
    fn of(action: &Action) -> Self {
        let ids: Vec<&str> = action.targets().iter().map(|target| target.id.as_str()).collect();
        match ids[..] {
            [] => Self::default(),
            [one] => Self { machine: Some(one.to_owned()), machines: None },
            _ => Self { machine: None, machines: Some(ids.join(" ")) },
        }
    }

    fn by(journal: Option<&JournalStore>, entry: &EntryId) -> Self {
        let entry = journal.and_then(|journal| journal.find(entry));
        entry.map(|entry| Self::of(&entry.action)).unwrap_or_default()
    }
}

fn frozen(before: Option<&TurnReport>, now: &TurnReport) {
    let was = before.and_then(|before| before.frozen.as_ref());
    match &now.frozen {
        Some(hold) if was.is_none_or(|was| !was.is_same_freeze(hold)) => {
            let invariant = hold.invariant().unwrap_or(0);
            tracing::error!(
                invariant,
                "the pool is frozen, and nothing of the plan was executed: {}",
                hold.message
            );
        }
        None if was.is_some() => tracing::info!("no longer frozen"),
        _ => {}
    }
}

fn phase(was: Option<&RolloutReport>, now: &RolloutReport) {
    let same = was.is_some_and(|was| was.phase == now.phase && was.to == now.to);
    if same || (was.is_none() && now.phase == RolloutPhase::None) {
        return;
    }
    let (done, total, failed) = (now.done, now.total, now.failed);
    tracing::info!(done, total, failed, "rollout: {}", now.phase.name());
}

fn holds(before: &[Hold], now: &[Hold]) {
    let has = |holds: &[Hold], reason: HoldReason| holds.iter().any(|hold| hold.reason == reason);
    for hold in now.iter().filter(|hold| !has(before, hold.reason)) {
        let recheck = hold.next_check_at;
        tracing::info!(reason = hold.reason.code(), %recheck, "waits: {}", hold.message);
    }
    for hold in before.iter().filter(|hold| !has(now, hold.reason)) {
        tracing::info!(reason = hold.reason.code(), "waits no longer");
    }
}

fn entry(moved: &EntryMove, EntryMachines { machine, machines }: EntryMachines) {
    let entry = &moved.id;
    match &moved.event {
        // Already logged with the call.
        EntryEvent::Asking | EntryEvent::Accepted(_) => {}
        EntryEvent::Lost => {
            tracing::warn!(%entry, machine, machines, "its response was lost; the next complete listing settles it");
        }
        EntryEvent::Ended(EntryOutcome::Done) => tracing::info!(%entry, machine, machines, "done"),
        EntryEvent::Ended(EntryOutcome::Withdrawn) => {
            tracing::info!(%entry, machine, machines, "withdrawn");
        }
        EntryEvent::Ended(EntryOutcome::Mixed(each)) => {
            let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
            tracing::warn!(%entry, machine, machines, refused, of = each.len(), "refused in part");
        }
        EntryEvent::Ended(EntryOutcome::Refused(refused)) => {
            let code = refused.code.as_deref();
            tracing::warn!(%entry, machine, machines, code, "refused: {}", refused.refusal.name());
        }
    }
}
