//! The control API for the user of the emulator: the true state, ordered faults, external events, and the clock. It
//! needs no token, and Azure has nothing like it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::cloud::EmulatedCloud;
use super::faults::{FaultSeed, shown};
use super::locks;
use super::record;
use super::reply::EmulatorReply;
use super::request::EmulatorRequest;
use super::seed::{ImageSeed, LoadSeed, image_reference};
use super::text::{from_span, rfc3339};
use super::traffic;
use crate::world::{
    ActivityEntry, Actor, Bad, ExternalEvent, InstanceId, InstanceProtection, Millis, Provisioning,
    SetId, TrueInstance, Which, WorldChange,
};

pub(super) fn answer(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Option<EmulatorReply> {
    let words = ask.words();
    let ["_control", what] = words.as_slice() else { return None };
    let done = match (ask.method.as_str(), *what) {
        ("GET", "state") => Ok(state(cloud)),
        ("GET", "clock") => Ok(clock(cloud)),
        ("GET", "faults") => Ok(faults(cloud)),
        ("GET", "record") => record::shown(cloud, ask),
        ("GET", "switches") => Ok(json!(cloud.switches)),
        ("GET", "activity") => Ok(activity(cloud)),
        ("POST", "clock") => read(ask).and_then(|order| turn(cloud, &order)),
        ("POST", "faults") => read(ask).and_then(|order| trouble(cloud, &order)),
        ("POST", "deeds") => read(ask).and_then(|order| happen(cloud, &order)),
        ("POST", "images") => read(ask).and_then(|image| publish(cloud, &image)),
        ("POST", "tokens") => Ok(revoke(cloud)),
        ("POST", "switches") => read(ask).and_then(|order| switch(cloud, order)),
        _ => Err("there are: GET state, clock, faults, record, switches, activity; POST clock, faults, deeds, images, tokens, \
             switches"
            .to_owned()),
    };
    Some(match done {
        Ok(body) => EmulatorReply::ok(&body),
        Err(why) => {
            EmulatorReply::json(400, &json!({ "error": { "code": "BadOrder", "message": why } }))
        }
    })
}

fn read<T: DeserializeOwned>(ask: &EmulatorRequest) -> Result<T, String> {
    serde_json::from_slice(&ask.body).map_err(|error| error.to_string())
}

/// A duration: a number of seconds, or a text such as `5m`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Length {
    Seconds(u32),
    Text(String),
}

impl Length {
    fn ms(&self) -> Result<Millis, String> {
        match self {
            Self::Seconds(seconds) => Ok(Millis::from(*seconds) * 1_000),
            Self::Text(text) => from_span(text)
                .ok_or_else(|| format!("\"{text}\" is no length of time such as 90s, 5m or 2h")),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Turn {
    /// World time to skip at once.
    advance: Option<Length>,
    /// World seconds per real second from now on.
    speed: Option<f64>,
}

fn clock(cloud: &EmulatedCloud) -> Value {
    let next = cloud.world.next_event().map(rfc3339);
    json!({ "now": rfc3339(cloud.world.now()), "speed": cloud.pace.speed, "nextEvent": next })
}

fn turn(cloud: &mut EmulatedCloud, order: &Turn) -> Result<Value, String> {
    if let Some(speed) = order.speed {
        if !(speed.is_finite() && speed >= 0.0) {
            return Err("speed is a number from 0 on".to_owned());
        }
        cloud.pace.turn(cloud.real, speed);
    }
    if let Some(length) = &order.advance {
        cloud.pace.skip(length.ms()?);
    }
    cloud.catch_up(cloud.real);
    Ok(clock(cloud))
}

fn faults(cloud: &EmulatedCloud) -> Value {
    let rules: Vec<Value> = cloud
        .rules
        .iter()
        .map(|r| json!({ "method": r.method, "path": r.path, "times": r.times, "skip": r.skip }))
        .collect();
    json!({ "chances": shown(cloud.world.faults()), "rules": rules })
}

/// A fault profile replaces the current one. Rules are added; an order without rules removes all of them.
fn trouble(cloud: &mut EmulatedCloud, order: &FaultSeed) -> Result<Value, String> {
    let Some(weather) = order.faults() else {
        let known = crate::world::WorldFaults::NAMES.join(", ");
        return Err(format!("there is no such weather; there are: {known}"));
    };
    cloud.world.set_faults(weather);
    if order.rules.is_empty() {
        cloud.rules.clear();
    }
    cloud.rules.extend(order.rules.iter().cloned());
    Ok(faults(cloud))
}

/// An external event for a set or one of its VMs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    /// A name, or a resource id. If absent: the only set.
    set: Option<String>,
    /// An instance id, or `oldest`, `newest`, `any`.
    instance: Option<String>,
    deed: Doing,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Doing {
    Sicken { lasting: Option<Length> },
    Fail,
    // The guest approves its delete before the notice ends.
    ApproveDelete,
    // Its network interface gets the state Failed, or is repaired.
    FailInterface(bool),
    Stop,
    Evict,
    Vanish,
    Delete,
    Deallocate,
    Start,
    FlipLatestModelApplied,
    Protect { scale_in: bool, set_actions: bool },
    SetCapacity(u32),
    // What the metric of its autoscale rules shows.
    SetLoad(LoadSeed),
    // A new version of an image; sets that reference the image use it for their next VM.
    Publish { image: Value, version: String },
    // An image whose VMs never become ready, or become unhealthy after a while.
    BadImage { image: Value, sick_after: Option<Length>, fails: Option<bool> },
    GoodImage { image: Value },
    NoCapacity { zone: Option<u8>, lasting: Length },
    Quota(Option<u32>),
    // A ReadOnly lock on the set.
    Lock(bool),
    DeleteSet,
}

pub(super) fn befall(cloud: &mut EmulatedCloud, order: &Value) -> Result<(), String> {
    let order: Order = serde_json::from_value(order.clone()).map_err(|error| error.to_string())?;
    happen(cloud, &order).map(|_| ())
}

fn happen(cloud: &mut EmulatedCloud, order: &Order) -> Result<Value, String> {
    let set = set_named(cloud, order.set.as_deref())?;
    let which = match order.instance.as_deref() {
        None | Some("any") => Which::Any,
        Some("oldest") => Which::Oldest,
        Some("newest") => Which::Newest,
        Some(id) => Which::Id(InstanceId::from(id)),
    };
    if let Which::Id(id) = &which
        && cloud.world.peek_instance(set, id).is_none()
    {
        return Err(format!("there is no instance {id} in that set"));
    }
    if let Doing::Lock(locked) = order.deed {
        locks::order(cloud, set, locked)?;
        return Ok(json!({ "done": true }));
    }
    let deed = deed(cloud, &order.deed, which)?;
    if let ExternalEvent::Publish { image, version } = &deed {
        let image: Value = serde_json::from_str(image).unwrap_or_default();
        cloud.new_version(&image, version);
    } else {
        cloud.world.happens(set, deed);
    }
    Ok(json!({ "done": true }))
}

fn deed(cloud: &EmulatedCloud, doing: &Doing, which: Which) -> Result<ExternalEvent, String> {
    let name = |image: &Value| image_reference(image).to_string();
    Ok(match doing {
        Doing::Sicken { lasting } => {
            ExternalEvent::Sicken(which, lasting.as_ref().map(Length::ms).transpose()?)
        }
        Doing::Fail => ExternalEvent::FailInstance(which),
        Doing::ApproveDelete => ExternalEvent::ApproveDelete(which),
        Doing::FailInterface(failed) => ExternalEvent::FailInterface(which, *failed),
        Doing::Stop => ExternalEvent::StopInstance(which),
        Doing::Evict => ExternalEvent::Evict(which),
        Doing::Vanish => ExternalEvent::Vanish(which),
        Doing::Delete => ExternalEvent::DeleteInstance(which),
        Doing::Deallocate => ExternalEvent::ChangeInstance(which, WorldChange::Deallocate),
        Doing::Start => ExternalEvent::ChangeInstance(which, WorldChange::Start),
        Doing::FlipLatestModelApplied => ExternalEvent::FlipLatestModelApplied(which),
        Doing::Protect { scale_in, set_actions } => {
            let protection = InstanceProtection { scale_in: *scale_in, set_actions: *set_actions };
            ExternalEvent::Protect(which, protection)
        }
        Doing::SetCapacity(to) => ExternalEvent::SetCapacity(*to),
        Doing::SetLoad(load) => ExternalEvent::SetLoad((*load).into()),
        Doing::Publish { image, version } => {
            ExternalEvent::Publish { image: name(image), version: version.clone() }
        }
        Doing::BadImage { image, sick_after, fails } => {
            let bad = match (sick_after, fails) {
                (Some(after), _) => Bad::SickAfter(after.ms()?),
                (None, Some(true)) => Bad::FailsProvisioning,
                (None, _) => Bad::NeverReady,
            };
            ExternalEvent::MarkModelBad { image: name(image), bad: Some(bad) }
        }
        Doing::GoodImage { image } => ExternalEvent::MarkModelBad { image: name(image), bad: None },
        Doing::NoCapacity { zone, lasting } => {
            ExternalEvent::NoCapacity { zone: *zone, until: cloud.world.now() + lasting.ms()? }
        }
        Doing::Quota(limit) => ExternalEvent::SetQuota(*limit),
        Doing::Lock(locked) => ExternalEvent::Lock(*locked),
        Doing::DeleteSet => ExternalEvent::DeleteSet,
    })
}

fn set_named(cloud: &EmulatedCloud, name: Option<&str>) -> Result<SetId, String> {
    let fits = |set: &SetId| {
        let (Some(view), Some(place)) = (cloud.world.peek(*set), cloud.places.get(set)) else {
            return false;
        };
        let Some(name) = name.filter(|_| !place.alone) else { return !place.alone };
        name.eq_ignore_ascii_case(&view.name)
            || name.eq_ignore_ascii_case(&EmulatedCloud::set_id(place, &view.name, false))
    };
    let found: Vec<SetId> = cloud.places.keys().copied().filter(fits).collect();
    match (found.as_slice(), name) {
        ([one], _) => Ok(*one),
        ([], Some(name)) => Err(format!("there is no scale set \"{name}\"")),
        ([], None) => Err("there is no scale set".to_owned()),
        _ => Err("several scale sets are meant: name one by its id".to_owned()),
    }
}

fn publish(cloud: &mut EmulatedCloud, image: &ImageSeed) -> Result<Value, String> {
    if image.version.split('.').any(|part| part.parse::<u64>().is_err()) {
        return Err(format!("\"{}\" is no version such as 1.2.3", image.version));
    }
    Ok(json!({ "id": cloud.publish(image) }))
}

/// Undocumented behaviours from now on; a switch that the order does not name stays.
fn switch(cloud: &mut EmulatedCloud, order: Map<String, Value>) -> Result<Value, String> {
    let mut all = json!(cloud.switches);
    if let Some(all) = all.as_object_mut() {
        all.extend(order);
    }
    cloud.switches = serde_json::from_value(all).map_err(|error| error.to_string())?;
    cloud.world.set_switches(cloud.switches.switches());
    Ok(json!(cloud.switches))
}

/// Oldest first, with the entries that ARM's log names in ways that no document tells.
fn activity(cloud: &EmulatedCloud) -> Value {
    let one = |entry: &ActivityEntry| {
        let sizes = entry.sizes.map(|(from, to)| json!({ "from": from, "to": to }));
        let by = match entry.by {
            Actor::Caller => "client",
            Actor::Native => "autoscale",
            Actor::Person => "person",
            Actor::Azure => "azure",
        };
        json!({ "at": rfc3339(entry.at), "by": by, "what": entry.what.name(),
            "status": entry.status.name(), "sizes": sizes })
    };
    json!({ "entries": cloud.world.activity().map(one).collect::<Vec<_>>() })
}

/// Expires every token issued so far.
fn revoke(cloud: &mut EmulatedCloud) -> Value {
    cloud.generation += 1;
    json!({ "generation": cloud.generation })
}

/// The true state, whatever lists show, and the number of requests.
pub(super) fn state(cloud: &EmulatedCloud) -> Value {
    let sets = cloud.places.iter().filter(|(_, place)| !place.alone);
    let sets: Vec<Value> = sets.filter_map(|(set, _)| set_state(cloud, *set)).collect();
    let calls = cloud.world.calls().iter();
    let calls: serde_json::Map<String, Value> = calls
        .map(|(call, count)| {
            let counts = json!({ "made": count.made, "refused": count.refused,
                "throttled": count.throttled, "unclear": count.unclear });
            (call.name().to_owned(), counts)
        })
        .collect();
    json!({ "clock": clock(cloud), "faults": faults(cloud), "scaleSets": sets,
        "loadBalancers": traffic::state(cloud), "calls": calls, "requests": cloud.requests })
}

fn set_state(cloud: &EmulatedCloud, set: SetId) -> Option<Value> {
    let (truth, view) = (cloud.world.truth(set)?, cloud.world.peek(set)?);
    let place = cloud.places.get(&set)?;
    let vm = |vm: &TrueInstance| {
        json!({ "id": vm.id.to_string(), "vmId": *vm.vm_text, "zone": vm.zone,
            "created": rfc3339(vm.created), "image": *vm.exact_image, "model": vm.model_no,
            "provisioning": super::instance::provisioning(vm.provisioning), "power": vm.power.name(),
            "guest": vm.guest.name(),
            "ready": vm.is_ready() && vm.provisioning != Provisioning::Deleting })
    };
    Some(json!({ "id": EmulatedCloud::set_id(place, &view.name, false), "capacity": truth.capacity,
        "active": truth.active(), "ready": truth.ready(), "outdated": truth.outdated(),
        "model": truth.model_no, "etag": *view.etag.0, "image": truth.model.image,
        "operations": truth.running.len(),
        "instances": truth.instances.iter().map(vm).collect::<Vec<_>>() }))
}
