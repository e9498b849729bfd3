//! The two large sections of a pool file: the rollout and its calendar.

use super::section::{Section, SectionValue};
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::model::calendar::{Chore, Schedule, ScheduleZone, Window, WindowError, Windows};
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

const KEYS: &[&str] = &[
    "method",
    "maxSurge",
    "maxUnavailable",
    "order",
    "minReady",
    "ramp",
    "readinessDeadline",
    "progressDeadline",
    "onFailure",
    "failureThreshold",
    "checkpoints",
    "bake",
    "maxAge",
    "coalesce",
    "rollback",
    "schedule",
    "countDeleting",
];

pub(super) fn rollout(pool: &Section<'_>, to: &mut RolloutPolicy, out: &mut Vec<Diagnostic>) {
    let Some(section) = pool.section("rollout", KEYS, &[], out) else { return };
    let methods = [
        ("replace", Method::Replace),
        ("reimage", Method::Reimage),
        ("onDelete", Method::OnDelete),
    ];
    let orders = [
        ("oldest", RemovalOrder::Oldest),
        ("newest", RemovalOrder::Newest),
        ("random", RemovalOrder::Random),
    ];
    let failures = [
        ("pause", OnFailure::Pause),
        ("rollback", OnFailure::Rollback),
        ("continue", OnFailure::Continue),
    ];
    let rollbacks = [("pause", RollbackPolicy::Pause), ("writeModel", RollbackPolicy::WriteModel)];
    section.set(&mut to.method, "method", out, |value| value.one_of(&methods));
    section.set(&mut to.max_surge, "maxSurge", out, SectionValue::quantity);
    section.set(&mut to.max_unavailable, "maxUnavailable", out, SectionValue::quantity);
    section.set(&mut to.order, "order", out, |value| value.one_of(&orders).map(Some));
    section.set(&mut to.min_ready, "minReady", out, SectionValue::duration);
    section.set(&mut to.readiness_deadline, "readinessDeadline", out, SectionValue::duration);
    section.set(&mut to.progress_deadline, "progressDeadline", out, SectionValue::duration);
    section.set(&mut to.on_failure, "onFailure", out, |value| value.one_of(&failures));
    section.set(&mut to.failure_threshold, "failureThreshold", out, SectionValue::quantity);
    section.set(&mut to.bake, "bake", out, SectionValue::duration);
    section.set(&mut to.max_age, "maxAge", out, |value| {
        if value.is_off() {
            return Ok(None);
        }
        let help = "write it like 30d, or off";
        value.duration().map(Some).map_err(|fault| Box::new(fault.help(help)))
    });
    section.set(&mut to.coalesce, "coalesce", out, SectionValue::duration);
    section.set(&mut to.rollback, "rollback", out, |value| value.one_of(&rollbacks));
    section.set(&mut to.count_deleting, "countDeleting", out, SectionValue::flag);
    ramp(&section, to, out);
    checkpoints(&section, to, out);
    schedules(&section, to, out);
}

fn ramp(rollout: &Section<'_>, to: &mut RolloutPolicy, out: &mut Vec<Diagnostic>) {
    let Some(node) = rollout.get("ramp") else { return };
    if (SectionValue { node, path: String::new() }).is_off() {
        to.ramp = None;
        return;
    }
    let before = out.len();
    let section = rollout.section("ramp", &["first", "factor"], &[], out);
    let Some(section) = section else {
        if let Some(fault) = out.get_mut(before) {
            fault.help = Some("write {first: 1, factor: 2}, or off".to_owned());
        }
        return;
    };
    let mut ramp = to.ramp.unwrap_or(Ramp { first: 1, factor: 2 });
    section.set(&mut ramp.first, "first", out, |value| value.integer(0, MOST_RAMP));
    section.set(&mut ramp.factor, "factor", out, |value| value.integer(0, MOST_RAMP));
    to.ramp = Some(ramp);
}

fn checkpoints(rollout: &Section<'_>, to: &mut RolloutPolicy, out: &mut Vec<Diagnostic>) {
    let keys = ["at", "soak", "approval", "gates"];
    let sections = rollout.sections("checkpoints", &keys, out);
    too_many(rollout, "checkpoints", sections.len(), MOST_CHECKPOINTS, out);
    to.checkpoints = sections
        .iter()
        .take(MOST_CHECKPOINTS)
        .map(|section| {
            let at = section.require("at", out, SectionValue::quantity);
            let mut checkpoint = Checkpoint {
                at: at.unwrap_or(Quantity::percent(100)),
                soak: Span::ZERO,
                approval: false,
                gates: Vec::new(),
            };
            section.set(&mut checkpoint.soak, "soak", out, SectionValue::duration);
            section.set(&mut checkpoint.approval, "approval", out, SectionValue::flag);
            section.set(&mut checkpoint.gates, "gates", out, |value| value.texts(LONGEST_GATE));
            checkpoint
        })
        .collect();
}

fn schedules(rollout: &Section<'_>, to: &mut RolloutPolicy, out: &mut Vec<Diagnostic>) {
    let sections = rollout.sections("schedule", &["cron", "timeZone", "what"], out);
    too_many(rollout, "schedule", sections.len(), MOST_SCHEDULES, out);
    let each = sections.iter().take(MOST_SCHEDULES).filter_map(|section| {
        let cron = section.require("cron", out, SectionValue::cron);
        let zone = zone(section, out);
        let what = section.read("what", out, |value| value.one_of(&[("refresh", Chore::Refresh)]));
        Some(Schedule { cron: cron?, zone: zone?, what: what.unwrap_or(Chore::Refresh) })
    });
    to.schedule = each.collect();
}

fn too_many(of: &Section<'_>, key: &str, n: usize, most: usize, out: &mut Vec<Diagnostic>) {
    if n > most {
        let say = format!("{n} are more than the {most} that are read");
        out.push(Diagnostic::new(of.place(key), of.path_of(key), Code::BadValue, say));
    }
}

/// The zone of a section; UTC by default.
fn zone(section: &Section<'_>, out: &mut Vec<Diagnostic>) -> Option<ScheduleZone> {
    match section.get("timeZone") {
        Some(_) => section.read("timeZone", out, SectionValue::zone),
        None => Some(ScheduleZone::utc()),
    }
}

pub(super) fn windows(pool: &Section<'_>, to: &mut Windows, out: &mut Vec<Diagnostic>) {
    let Some(section) = pool.section("windows", &["allow", "deny"], &[], out) else { return };
    let allow = window_list(&section, "allow", out);
    let deny = window_list(&section, "deny", out);
    let (many, key) = (allow.len() < deny.len(), ["allow", "deny"]);
    match Windows::new(allow, deny) {
        Ok(windows) => *to = windows,
        Err(error) => {
            let key = key[usize::from(many)];
            let (at, path) = (section.place(key), section.path_of(key));
            out.push(Diagnostic::new(at, path, Code::BadValue, error.to_string()));
        }
    }
}

fn window_list(of: &Section<'_>, key: &str, out: &mut Vec<Diagnostic>) -> Vec<Window> {
    let keys = ["cron", "duration", "timeZone", "from", "until"];
    let sections = of.sections(key, &keys, out);
    sections.iter().filter_map(|section| window(section, out)).collect()
}

/// Recurring times (`cron`, `duration`), or one period (`from`, `until`).
fn window(section: &Section<'_>, out: &mut Vec<Diagnostic>) -> Option<Window> {
    let zone = zone(section, out);
    let is_dated = ["from", "until"].iter().any(|key| section.has(key));
    if is_dated {
        for key in ["cron", "duration"].into_iter().filter(|key| section.has(key)) {
            let say = "a window has either cron and duration, or from and until";
            let (at, path) = (section.place(key), section.path_of(key));
            out.push(Diagnostic::new(at, path, Code::Contradiction, say));
        }
        let text = |value: &SectionValue<'_>| value.text(LONGEST_GATE).map(str::to_owned);
        let from = section.require("from", out, text);
        let until = section.require("until", out, text);
        let (from, until, zone) = (from?, until?, zone?);
        let made = Window::dated(&from, &until, &zone);
        return made.map_err(|error| out.push(dated_fault(section, &from, &error))).ok();
    }
    let cron = section.require("cron", out, SectionValue::cron);
    let lasts = section.require("duration", out, SectionValue::duration);
    let made = Window::recurring(cron?, lasts?, zone?);
    let (at, path) = (section.place("duration"), section.path_of("duration"));
    made.map_err(|error| out.push(Diagnostic::new(at, path, Code::BadValue, error.to_string())))
        .ok()
}

fn dated_fault(section: &Section<'_>, from: &str, error: &WindowError) -> Diagnostic {
    let is_from = matches!(error, WindowError::NotADate(text) if from.starts_with(text.as_str()));
    let key = if is_from { "from" } else { "until" };
    let (at, path) = (section.place(key), section.path_of(key));
    Diagnostic::new(at, path, Code::BadValue, error.to_string())
}
