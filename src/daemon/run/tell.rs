//! What of a turn goes into the log: what is new since the last one, each thing once.

use std::collections::BTreeMap;

use crate::act::What;
use crate::memory::{Audit, Journal, Moved};
use crate::model::action::Action;
use crate::model::budget::{Hold, HoldReason};
use crate::model::ids::{EntryId, PoolName, Revision};
use crate::model::journal::{Event, Outcome};
use crate::model::plan::{RolloutPhase, RolloutReport};
use crate::observe::{Change, Changed, Closing};
use crate::reconcile::TurnReport;
use crate::telemetry::log::AUDIT;

/// The rollout that a turn was about: every line of that turn carries it, as it carries the pool.
pub(super) fn rollout(now: &TurnReport) -> Option<&str> {
    now.planned.as_ref()?.report.rollout.to.as_ref().map(Revision::as_str)
}

/// A pool that is quiet says nothing here. Said inside the span of its turn, which names the pool and the rollout.
pub(super) fn turn(before: Option<&TurnReport>, now: &TurnReport, journal: Option<&Journal>) {
    machines(now);
    frozen(before, now);
    if now.frozen.is_none()
        && let Some(planned) = &now.planned
    {
        for action in &planned.actions {
            let Named { machine, machines } = Named::of(action);
            let (verb, reason) = (action.verb().name(), action.reason());
            tracing::info!(verb, machine, machines, "decided: {reason}");
        }
        phase(before, &planned.report.rollout);
        let was = before.filter(|b| b.frozen.is_none()).and_then(|before| before.planned.as_ref());
        holds(was.map_or(&[], |was| &was.report.holds), &planned.report.holds);
    }
    for made in now.made.iter().filter(|made| made.what == What::Sent) {
        let Named { machine, machines } = Named::by(journal, &made.entry);
        let (entry, verb, answer) = (&made.entry, made.verb.name(), made.answer);
        tracing::info!(%entry, verb, machine, machines, answer, "sent");
    }
    now.audit.iter().for_each(audited);
    for moved in &now.moved {
        entry(moved, Named::by(journal, &moved.id));
    }
    for gap in &now.gaps {
        let known = before.is_some_and(|before| before.gaps.iter().any(|old| old.what == gap.what));
        if !known {
            tracing::warn!("not seen: {}: {}", gap.what, gap.why);
        }
    }
}

/// A line of the audit, copied to the log so that it leaves the machine with it.
pub fn audited(line: &Audit) {
    let Audit { who, verb, on, why, came, .. } = line;
    let pool = line.pool.as_ref().map(PoolName::as_str);
    tracing::info!(target: AUDIT, who, verb, pool, on, why, came, at = %line.at, "audited");
}

/// Machines that did the same in one turn and are told one by one; more are told as a number.
// 10: a batch of a rollout; a pool at first sight has hundreds.
const ONE_BY_ONE: usize = 10;

fn machines(now: &TurnReport) {
    let mut by_word: BTreeMap<&'static str, Vec<&Changed>> = BTreeMap::new();
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
                Change::Appeared(condition) => tracing::info!(machine, ?condition, "{word}"),
                Change::Became { from, to } => tracing::info!(machine, ?from, ?to, "{word}"),
                Change::FirstAvailable | Change::Closed(_) => tracing::info!(machine, "{word}"),
            }
        }
    }
}

const fn word(change: Change) -> &'static str {
    match change {
        Change::Appeared(_) => "appeared",
        Change::Became { .. } => "changed",
        Change::FirstAvailable => "serves",
        Change::Closed(Closing::Deleted) => "is gone, as it was asked",
        Change::Closed(_) => "is gone",
    }
}

/// The machines that an entry is about: one as every other line names it, several together.
#[derive(Default)]
struct Named {
    machine: Option<String>,
    machines: Option<String>,
}

impl Named {
    fn of(action: &Action) -> Self {
        let ids: Vec<&str> = action.targets().iter().map(|target| target.id.as_str()).collect();
        match ids[..] {
            [] => Self::default(),
            [one] => Self { machine: Some(one.to_owned()), machines: None },
            _ => Self { machine: None, machines: Some(ids.join(" ")) },
        }
    }

    fn by(journal: Option<&Journal>, entry: &EntryId) -> Self {
        let entry = journal.and_then(|journal| journal.find(entry));
        entry.map(|entry| Self::of(&entry.action)).unwrap_or_default()
    }
}

fn frozen(before: Option<&TurnReport>, now: &TurnReport) {
    let was = before.and_then(|before| before.frozen.as_ref());
    match &now.frozen {
        Some(hold) if was.is_none_or(|was| was.say != hold.say) => {
            let law = hold.law.unwrap_or(0);
            tracing::error!(
                law,
                "the pool froze itself, and nothing of the plan was carried out: {}",
                hold.say
            );
        }
        None if was.is_some() => tracing::info!("no longer frozen"),
        _ => {}
    }
}

fn phase(before: Option<&TurnReport>, now: &RolloutReport) {
    let was =
        before.and_then(|before| before.planned.as_ref()).map(|planned| &planned.report.rollout);
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
        let recheck = hold.recheck;
        tracing::info!(reason = hold.reason.code(), %recheck, "waits: {}", hold.say);
    }
    for hold in before.iter().filter(|hold| !has(now, hold.reason)) {
        tracing::info!(reason = hold.reason.code(), "waits no longer");
    }
}

fn entry(moved: &Moved, Named { machine, machines }: Named) {
    let entry = &moved.id;
    match &moved.event {
        // Told where it was sent.
        Event::Asking | Event::Accepted(_) => {}
        Event::Lost => {
            tracing::warn!(%entry, machine, machines, "its answer was lost; the next complete look settles it");
        }
        Event::Ended(Outcome::Done) => tracing::info!(%entry, machine, machines, "done"),
        Event::Ended(Outcome::Withdrawn) => tracing::info!(%entry, machine, machines, "withdrawn"),
        Event::Ended(Outcome::Mixed(each)) => {
            let refused = each.iter().filter(|(_, refused)| refused.is_some()).count();
            tracing::warn!(%entry, machine, machines, refused, of = each.len(), "refused in part");
        }
        Event::Ended(Outcome::Refused(refused)) => {
            let code = refused.code.as_deref();
            tracing::warn!(%entry, machine, machines, code, "refused: {}", refused.refusal.name());
        }
    }
}
