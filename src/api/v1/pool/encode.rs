//! Converts a policy back to its document, with every key written out.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::{Serialize, Serializer};

use crate::api::v1::API_VERSION;
use crate::model::action::WriteScope;
use crate::model::calendar::{Chore, Schedule, Window, WindowText};
use crate::model::policy::{
    Adopt, Checkpoint, HealthPolicy, Image, Method, OnFailure, OwnedModel, Owner, PlatformFeatures,
    Policy, Ramp, RemovalOrder, RollbackPolicy, RolloutPolicy, UnconfirmedFall,
};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// The pool document of a policy, on one line. Reading it gives the same policy.
pub fn to_json(policy: &Policy) -> String {
    // Serializing to a string fails only for maps with keys that are not text; there are none here.
    serde_json::to_string(&document(policy)).unwrap_or_default()
}

/// The pool document of a policy, ready to serialize.
pub fn document(policy: &Policy) -> impl Serialize + '_ {
    let is_owner = policy.owner == Owner::Pool;
    Pool {
        api_version: API_VERSION,
        kind: "Pool",
        name: policy.name.as_str(),
        scale_set: policy.scale_set.as_str(),
        replicas: Replicas {
            owner: if is_owner { "pool" } else { "scaleSet" },
            count: is_owner.then_some(policy.count),
        },
        model: model(&policy.model),
        rollout: rollout(&policy.rollout),
        windows: Windows {
            allow: policy.windows.allow().iter().map(window).collect(),
            deny: policy.windows.deny().iter().map(window).collect(),
        },
        health: BTreeMap::from([("source", health(policy.health))]),
        adopt: match policy.adopt {
            Adopt::Hold => "hold",
            Adopt::Roll => "roll",
        },
        platform_features: match policy.platform_features {
            PlatformFeatures::Refuse => "refuse",
            PlatformFeatures::Warn => "warn",
        },
        owner: BTreeMap::from([("tag", if policy.tags_owner { "on" } else { "off" })]),
        repair: Repair {
            after: AsText(policy.repair.after),
            window: AsText(policy.repair.window),
            max_at_once: policy.repair.max_at_once,
            breaker: format!("{}%", policy.repair.breaker_percent),
        },
        deletion: Deletion {
            force: policy.deletion.force,
            deadline: AsText(policy.deletion.deadline),
        },
        drain: Drain {
            max_blocked: policy.drain.max_blocked,
            failed_after: AsText(policy.drain.failed_after),
        },
        scale_down: BTreeMap::from([(
            "unconfirmed",
            match policy.unconfirmed {
                UnconfirmedFall::Hold => "hold",
                UnconfirmedFall::Allow => "allow",
            },
        )]),
    }
}

/// Serialized as its display text.
struct AsText<T>(T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A number, or a percent as text.
struct Number(Quantity);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.to_string();
        match text.parse::<u32>() {
            Ok(number) => serializer.serialize_u32(number),
            Err(_) => serializer.serialize_str(&text),
        }
    }
}

/// A value, or `off`.
enum OrOff<T> {
    On(T),
    Off,
}

impl<T: Serialize> Serialize for OrOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrOff::On(value) => value.serialize(serializer),
            OrOff::Off => serializer.serialize_str("off"),
        }
    }
}

impl<T> From<Option<T>> for OrOff<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(OrOff::Off, OrOff::On)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pool<'a> {
    api_version: &'static str,
    kind: &'static str,
    name: &'a str,
    scale_set: &'a str,
    replicas: Replicas,
    model: Model<'a>,
    rollout: Rollout<'a>,
    windows: Windows<'a>,
    health: BTreeMap<&'static str, &'static str>,
    adopt: &'static str,
    platform_features: &'static str,
    owner: BTreeMap<&'static str, &'static str>,
    repair: Repair,
    deletion: Deletion,
    drain: Drain,
    scale_down: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Drain {
    max_blocked: u32,
    failed_after: AsText<Span>,
}

#[derive(Serialize)]
struct Replicas {
    owner: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Model<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm_size: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: &'a BTreeMap<Box<str>, Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ImageText<'a> {
    Exact(&'a str),
    Follow { follow: &'a str },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rollout<'a> {
    method: &'static str,
    max_surge: Number,
    max_unavailable: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
    min_ready: AsText<Span>,
    ramp: OrOff<RampKeys>,
    readiness_deadline: AsText<Span>,
    progress_deadline: AsText<Span>,
    on_failure: &'static str,
    failure_threshold: Number,
    checkpoints: Vec<CheckpointKeys<'a>>,
    bake: AsText<Span>,
    max_age: OrOff<AsText<Span>>,
    coalesce: AsText<Span>,
    rollback: &'static str,
    schedule: Vec<ScheduleKeys<'a>>,
    count_deleting: bool,
}

#[derive(Serialize)]
struct RampKeys {
    first: u32,
    factor: u32,
}

#[derive(Serialize)]
struct CheckpointKeys<'a> {
    at: Number,
    soak: AsText<Span>,
    approval: bool,
    gates: &'a [Box<str>],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScheduleKeys<'a> {
    cron: AsText<&'a crate::model::calendar::Cron>,
    time_zone: &'a str,
    what: &'static str,
}

#[derive(Serialize)]
struct Windows<'a> {
    allow: Vec<WindowKeys<'a>>,
    deny: Vec<WindowKeys<'a>>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum WindowKeys<'a> {
    Recurring {
        cron: AsText<&'a crate::model::calendar::Cron>,
        duration: AsText<Span>,
        time_zone: &'a str,
    },
    Dated {
        from: &'a str,
        until: &'a str,
        time_zone: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Repair {
    after: AsText<Span>,
    window: AsText<Span>,
    max_at_once: u32,
    breaker: String,
}

#[derive(Serialize)]
struct Deletion {
    force: bool,
    deadline: AsText<Span>,
}

fn model(model: &OwnedModel) -> Model<'_> {
    let image = model.image.as_ref().map(|image| match image {
        Image::Exact(id) => ImageText::Exact(id),
        Image::Follow(id) => ImageText::Follow { follow: id },
    });
    let write = match model.write {
        WriteScope::Image => None,
        WriteScope::StorageProfile => Some("storageProfile"),
    };
    Model { image, vm_size: model.fields.vm_size.as_deref(), tags: &model.fields.tags, write }
}

fn rollout(rollout: &RolloutPolicy) -> Rollout<'_> {
    let ramp = |Ramp { first, factor }| RampKeys { first, factor };
    Rollout {
        method: match rollout.method {
            Method::Replace => "replace",
            Method::Reimage => "reimage",
            Method::OnDelete => "onDelete",
        },
        max_surge: Number(rollout.max_surge),
        max_unavailable: Number(rollout.max_unavailable),
        order: rollout.order.map(|order| match order {
            RemovalOrder::Oldest => "oldest",
            RemovalOrder::Newest => "newest",
            RemovalOrder::Random => "random",
        }),
        min_ready: AsText(rollout.min_ready),
        ramp: rollout.ramp.map(ramp).into(),
        readiness_deadline: AsText(rollout.readiness_deadline),
        progress_deadline: AsText(rollout.progress_deadline),
        on_failure: match rollout.on_failure {
            OnFailure::Pause => "pause",
            OnFailure::Rollback => "rollback",
            OnFailure::Continue => "continue",
        },
        failure_threshold: Number(rollout.failure_threshold),
        checkpoints: rollout.checkpoints.iter().map(checkpoint).collect(),
        bake: AsText(rollout.bake),
        max_age: rollout.max_age.map(AsText).into(),
        coalesce: AsText(rollout.coalesce),
        rollback: match rollout.rollback {
            RollbackPolicy::Pause => "pause",
            RollbackPolicy::WriteModel => "writeModel",
        },
        schedule: rollout.schedule.iter().map(schedule).collect(),
        count_deleting: rollout.count_deleting,
    }
}

fn checkpoint(checkpoint: &Checkpoint) -> CheckpointKeys<'_> {
    CheckpointKeys {
        at: Number(checkpoint.at),
        soak: AsText(checkpoint.soak),
        approval: checkpoint.approval,
        gates: &checkpoint.gates,
    }
}

fn schedule(schedule: &Schedule) -> ScheduleKeys<'_> {
    let Chore::Refresh = schedule.what;
    ScheduleKeys { cron: AsText(&schedule.cron), time_zone: schedule.zone.name(), what: "refresh" }
}

fn window(window: &Window) -> WindowKeys<'_> {
    match window.written() {
        WindowText::Recurring { cron, lasts, zone } => WindowKeys::Recurring {
            cron: AsText(cron),
            duration: AsText(lasts),
            time_zone: zone.name(),
        },
        WindowText::Dated { from, until, zone } => {
            WindowKeys::Dated { from, until, time_zone: zone }
        }
    }
}

fn health(health: HealthPolicy) -> &'static str {
    match health {
        HealthPolicy::Auto => "auto",
        HealthPolicy::Node => "node",
        HealthPolicy::ApplicationHealth => "applicationHealth",
        HealthPolicy::Provisioning => "provisioning",
    }
}
