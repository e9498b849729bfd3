//! The rollout of a pool file.

use super::form::*;
use super::scalar::*;
use super::section::SectionValue;
use super::table::{Key, KeyTable, tables};
use crate::api::v1::diagnostic::Diagnostic;
use crate::model::calendar::{Chore, Cron, Schedule, ScheduleZone};
use crate::model::policy::{
    Checkpoint, Method, OnFailure, Ramp, RemovalOrder, RollbackPolicy, RolloutPolicy,
};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// Longest name of a gate.
const LONGEST_GATE: usize = 63;
/// Far more checkpoints than a person wants; every turn examines each of them.
const MOST_CHECKPOINTS: usize = 100;
const MOST_SCHEDULES: usize = 64;
/// The budget caps the ramp long before this.
const MOST_RAMP: u32 = 1_000;

tables! {
    ROLLOUT(r: RolloutPolicy) = {
        "method": word::<Method>() => r.method;
        "maxSurge": AMOUNT => r.max_surge;
        "maxUnavailable": AMOUNT => r.max_unavailable;
        "order": Maybe(word::<RemovalOrder>()) => r.order;
        "minReady": DURATION => r.min_ready;
        "ramp": RAMP_OR_OFF => r.ramp;
        "readinessDeadline": DURATION => r.readiness_deadline;
        "progressDeadline": DURATION => r.progress_deadline;
        "onFailure": word::<OnFailure>() => r.on_failure;
        "failureThreshold": AMOUNT => r.failure_threshold;
        "checkpoints": CHECKPOINTS => r.checkpoints;
        "bake": DURATION => r.bake;
        "maxAge": DURATION_OR_OFF => r.max_age;
        "coalesce": DURATION => r.coalesce;
        "rollback": word::<RollbackPolicy>() => r.rollback;
        "schedule": SCHEDULES => r.schedule;
        "countDeleting": FLAG => r.count_deleting;
    }
    RAMP(r: Ramp) = {
        "first": whole::<MOST_RAMP>() => r.first;
        "factor": whole::<MOST_RAMP>() => r.factor;
    }
    CHECKPOINT(c: Checkpoint) = {
        required "at": AMOUNT => c.at;
        "soak": DURATION => c.soak;
        "approval": FLAG => c.approval;
        "gates": lines::<LONGEST_GATE>() => c.gates;
    }
    SCHEDULE(s: (Option<Cron>, ScheduleZone, Chore)) = {
        required "cron": Maybe(CRON) => s.0;
        "timeZone": ZONE => s.1;
        "what": word::<Chore>() => s.2;
    }
}

const CHECKPOINTS: List<Checkpoint> = List {
    most: MOST_CHECKPOINTS,
    item: |value, out| {
        let (at, soak, gates) = (Quantity::percent(100), Span::ZERO, Vec::new());
        let mut checkpoint = Checkpoint { at, soak, approval: false, gates };
        CHECKPOINT.open(value, &mut checkpoint, out)?;
        Some(checkpoint)
    },
    print: |of| CHECKPOINT.pairs(of),
};

const SCHEDULES: List<Schedule> = List {
    most: MOST_SCHEDULES,
    item: |value, out| {
        let mut parts = (None, ScheduleZone::utc(), Chore::Refresh);
        SCHEDULE.open(value, &mut parts, out)?;
        let (cron, zone, what) = parts;
        Some(Schedule { cron: cron?, zone, what })
    },
    print: |of| SCHEDULE.pairs(&(Some(of.cron.clone()), of.zone.clone(), of.what)),
};

const RAMP_OR_OFF: Special<Option<Ramp>> = Special {
    read: ramp,
    write: |of| of.as_ref().map_or_else(|| Some(text("off")), |ramp| RAMP.write(ramp)),
    schema: || None,
};

fn ramp(value: &SectionValue<'_>, slot: &mut Option<Ramp>, out: &mut Vec<Diagnostic>) {
    if value.is_off() {
        *slot = None;
        return;
    }
    let mut ramp = slot.unwrap_or(Ramp { first: 1, factor: 2 });
    let before = out.len();
    if RAMP.open(value, &mut ramp, out).is_some() {
        *slot = Some(ramp);
    } else if let Some(fault) = out.get_mut(before) {
        fault.help = Some("write {first: 1, factor: 2}, or off".to_owned());
    }
}
