//! The rollout of a pool file.

use super::form::*;
use super::scalar::*;
use super::section::SectionValue;
use super::table::{Key, KeyTable, tables};
use super::value_form::KeyReference;
use crate::api::v1::diagnostic::Diagnostic;
use crate::model::calendar::{Chore, Cron, Schedule, ScheduleZone};
use crate::model::policy::{
    Checkpoint, Method, OnFailure, Ramp, RemovalOrder, RollbackPolicy, RolloutPolicy,
};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// Far more checkpoints than a person wants; every turn examines each of them.
const MOST_CHECKPOINTS: usize = 100;
const MOST_SCHEDULES: usize = 64;
/// The budget caps the ramp long before this.
const MOST_RAMP: u32 = 1_000;

tables! {
    ROLLOUT(r: RolloutPolicy) = {
        /// How a machine gets the new revision. replace: a new machine takes its place. reimage: the machine is updated in
        /// place. onDelete: only machines that an operator marks are replaced.
        "method": word::<Method>() => r.method, like "reimage";
        /// How many machines beyond the desired size may run while others are replaced; a percentage of the size is
        /// rounded up. With owner scaleSet at most 1.
        "maxSurge": AMOUNT => r.max_surge, like "10%";
        /// How many machines fewer than the desired size may serve; a percentage of the size is rounded down. It and
        /// maxSurge are not both 0.
        "maxUnavailable": AMOUNT => r.max_unavailable, like 1;
        /// Which outdated machine leaves first. Without it, the one with the fewest workloads does, then the oldest.
        "order": Maybe(word::<RemovalOrder>()) => r.order, like "oldest";
        /// How long a new machine must be ready before it counts as available.
        "minReady": DURATION => r.min_ready, like "2m";
        /// How many machines may be on their way to a revision that is not proven yet: few at first, more after each stage
        /// that succeeds. off: as many as maxSurge and maxUnavailable allow.
        "ramp": RAMP_OR_OFF => r.ramp, like {"first": 2, "factor": 3};
        /// How long a new machine may take to become available before it counts as failed. It is longer than minReady.
        "readinessDeadline": DURATION => r.readiness_deadline, like "30m";
        /// How long a rollout may make no progress before it is stalled.
        "progressDeadline": DURATION => r.progress_deadline, like "2h";
        /// What a failed rollout does. pause: it stops and waits for a person. rollback: it returns to the last completed
        /// revision. continue: it continues.
        "onFailure": word::<OnFailure>() => r.on_failure, like "rollback";
        /// How many failed replacements make the rollout fail; a percentage is of the machines that it began with.
        "failureThreshold": SOME => r.failure_threshold, like "5%";
        /// Points at which the rollout stops for a time or for an approval.
        "checkpoints": CHECKPOINTS => r.checkpoints,
            like [{"at": "10%", "soak": "15m", "approval": true}];
        /// How long the gates are watched after the last machine, before the rollout is complete. They must pass at its end.
        "bake": DURATION => r.bake, like "1h";
        /// Machines older than this are replaced, even if they have the current revision; at least 1h. off: never.
        "maxAge": DURATION_OR_OFF => r.max_age, like "30d";
        /// The shortest time between two turns, so that one turn answers all changes of that time; at most 1m.
        "coalesce": DURATION => r.coalesce, like "10s";
        /// What a rollback may do if others own the model. pause: the rollout stops. writeModel: the pool writes the model of
        /// the earlier revision.
        "rollback": word::<RollbackPolicy>() => r.rollback, like "writeModel";
        /// When all machines are replaced, whatever their revision.
        "schedule": SCHEDULES => r.schedule,
            like [{"cron": "0 3 * * sun", "timeZone": "Europe/Berlin", "what": "refresh"}];
        /// Whether machines in deletion count towards the most that may run. false: a replacement does not wait for
        /// deletions to end.
        "countDeleting": FLAG => r.count_deleting, like false;
    }
    RAMP(r: Ramp) = {
        /// Machines of the first stage; at least 1.
        "first": whole::<1, MOST_RAMP>() => r.first, like 2;
        /// How many times as many machines the next stage has; at least 2.
        "factor": whole::<2, MOST_RAMP>() => r.factor, like 3;
    }
    CHECKPOINT(c: Checkpoint) = {
        /// The number of machines on the new revision at which the rollout stops; a percentage is of the size.
        required "at": SOME => c.at, like "10%";
        /// How long the rollout waits there.
        "soak": DURATION => c.soak, like "15m";
        /// Whether the rollout also waits there for the command approve.
        "approval": FLAG => c.approval, like true;
        /// The gates that must pass there, by name.
        "gates": lines::<LONGEST_NAME>() => c.gates, like ["errors"];
    }
    SCHEDULE(s: (Option<Cron>, ScheduleZone, Chore)) = {
        /// When it is due.
        required "cron": Maybe(CRON) => s.0, like "0 3 * * sun";
        /// The time zone of the pattern.
        "timeZone": ZONE => s.1, like "Europe/Berlin";
        /// What is due. refresh: every machine is replaced.
        "what": word::<Chore>() => s.2, like "refresh";
    }
}

fn no_checkpoint() -> Checkpoint {
    let (at, soak, gates) = (Quantity::percent(100), Span::ZERO, Vec::new());
    Checkpoint { at, soak, approval: false, gates }
}

fn no_schedule() -> (Option<Cron>, ScheduleZone, Chore) {
    (None, ScheduleZone::utc(), Chore::Refresh)
}

const CHECKPOINTS: List<Checkpoint> = List {
    most: MOST_CHECKPOINTS,
    item: |value, out| {
        let mut checkpoint = no_checkpoint();
        CHECKPOINT.open(value, &mut checkpoint, out)?;
        Some(checkpoint)
    },
    print: |of| CHECKPOINT.pairs(of),
    form: || CHECKPOINT.form(&no_checkpoint()).title("Checkpoint"),
};

const SCHEDULES: List<Schedule> = List {
    most: MOST_SCHEDULES,
    item: |value, out| {
        let mut parts = no_schedule();
        SCHEDULE.open(value, &mut parts, out)?;
        let (cron, zone, what) = parts;
        Some(Schedule { cron: cron?, zone, what })
    },
    print: |of| SCHEDULE.pairs(&(Some(of.cron.clone()), of.zone.clone(), of.what)),
    form: || SCHEDULE.form(&no_schedule()).title("RolloutSchedule"),
};

/// The ramp of a file that writes only one of its keys.
const GENTLE: Ramp = Ramp { first: 1, factor: 2 };

const RAMP_OR_OFF: Special<Option<Ramp>> = Special {
    read: ramp,
    write: |of| of.as_ref().map_or_else(|| Some(text("off")), |ramp| RAMP.write(ramp)),
    form: |of| RAMP.form(&of.unwrap_or(GENTLE)).title("Ramp").or(off()),
};

fn ramp(value: &SectionValue<'_>, slot: &mut Option<Ramp>, out: &mut Vec<Diagnostic>) {
    if value.is_off() {
        *slot = None;
        return;
    }
    let mut ramp = slot.unwrap_or(GENTLE);
    let before = out.len();
    if RAMP.open(value, &mut ramp, out).is_some() {
        *slot = Some(ramp);
        let faults = out.iter_mut().skip(before);
        for fault in faults.filter(|fault| fault.key.ends_with(".factor")) {
            fault.help.get_or_insert_with(|| "write `ramp: off` for no ramp".to_owned());
        }
    } else if let Some(fault) = out.get_mut(before) {
        fault.help = Some("write {first: 1, factor: 2}, or off".to_owned());
    }
}
