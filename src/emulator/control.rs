//! The door for whoever runs the emulator: what is true, faults on order, deeds of fate, and the clock. No token is
//! needed, and nothing here is Azure's.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ask::Ask;
use super::cloud::Cloud;
use super::faults::{FaultSeed, shown};
use super::locks;
use super::record;
use super::reply::Reply;
use super::seed::{ImageSeed, image_reference};
use super::text::{from_span, rfc3339};
use crate::world::{
    Bad, Call, Deed, InstanceId, Ms, Power, Protection, Provisioning, SetId, TrueInstance, Which,
};

pub(super) fn answer(cloud: &mut Cloud, ask: &Ask) -> Option<Reply> {
    let words = ask.words();
    let ["_control", what] = words.as_slice() else { return None };
    let done = match (ask.method.as_str(), *what) {
        ("GET", "state") => Ok(state(cloud)),
        ("GET", "clock") => Ok(clock(cloud)),
        ("GET", "faults") => Ok(faults(cloud)),
        ("GET", "record") => record::shown(cloud, ask),
        ("POST", "clock") => read(ask).and_then(|order| turn(cloud, &order)),
        ("POST", "faults") => read(ask).and_then(|order| trouble(cloud, &order)),
        ("POST", "deeds") => read(ask).and_then(|order| happen(cloud, &order)),
        ("POST", "images") => read(ask).and_then(|image| publish(cloud, &image)),
        ("POST", "tokens") => Ok(revoke(cloud)),
        _ => Err("there are: GET state, clock, faults, record; POST clock, faults, deeds, images, tokens"
            .to_owned()),
    };
    Some(match done {
        Ok(body) => Reply::ok(&body),
        Err(why) => Reply::json(400, &json!({ "error": { "code": "BadOrder", "message": why } })),
    })
}

fn read<T: DeserializeOwned>(ask: &Ask) -> Result<T, String> {
    serde_json::from_slice(&ask.body).map_err(|error| error.to_string())
}

/// A length of time: a number of seconds, or a text such as `5m`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Length {
    Seconds(u32),
    Text(String),
}

impl Length {
    fn ms(&self) -> Result<Ms, String> {
        match self {
            Self::Seconds(seconds) => Ok(Ms::from(*seconds) * 1_000),
            Self::Text(text) => from_span(text)
                .ok_or_else(|| format!("\"{text}\" is no length of time such as 90s, 5m or 2h")),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Turn {
    /// World time that passes at once.
    #[serde(default)]
    advance: Option<Length>,
    /// World seconds in a real one, from now on.
    #[serde(default)]
    speed: Option<f64>,
}

fn clock(cloud: &Cloud) -> Value {
    let next = cloud.world.next_event().map(rfc3339);
    json!({ "now": rfc3339(cloud.world.now()), "speed": cloud.pace.speed, "nextEvent": next })
}

fn turn(cloud: &mut Cloud, order: &Turn) -> Result<Value, String> {
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

fn faults(cloud: &Cloud) -> Value {
    let rules: Vec<Value> = cloud
        .rules
        .iter()
        .map(|r| json!({ "method": r.method, "path": r.path, "times": r.times, "skip": r.skip }))
        .collect();
    json!({ "chances": shown(cloud.world.faults()), "rules": rules })
}

/// Weather takes the place of weather; rules are added, and an order without any takes them all away.
fn trouble(cloud: &mut Cloud, order: &FaultSeed) -> Result<Value, String> {
    let Some(weather) = order.faults() else {
        let known = crate::world::Faults::NAMES.join(", ");
        return Err(format!("there is no such weather; there are: {known}"));
    };
    cloud.world.set_faults(weather);
    if order.rules.is_empty() {
        cloud.rules.clear();
    }
    cloud.rules.extend(order.rules.iter().cloned());
    Ok(faults(cloud))
}

/// Something that befalls a set or one of its VMs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    /// A name, or the id of a resource; the only set where absent.
    #[serde(default)]
    set: Option<String>,
    /// An instance id, or `oldest`, `newest`, `any`.
    #[serde(default)]
    instance: Option<String>,
    deed: Doing,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Doing {
    Sicken {
        lasting: Option<Length>,
    },
    Fail,
    Stop,
    Evict,
    Vanish,
    Delete,
    FlipLatestModelApplied,
    Protect {
        scale_in: bool,
        set_actions: bool,
    },
    SetCapacity(u32),
    /// A version behind an image reference; sets that name the image get it with their next VM.
    Publish {
        image: Value,
        version: String,
    },
    /// An image whose VMs never serve, or fall ill after a while.
    BadImage {
        image: Value,
        sick_after: Option<Length>,
        fails: Option<bool>,
    },
    GoodImage {
        image: Value,
    },
    NoCapacity {
        zone: Option<u8>,
        lasting: Length,
    },
    Quota(Option<u32>),
    /// A ReadOnly lock on the set.
    Lock(bool),
    DeleteSet,
}

pub(super) fn befall(cloud: &mut Cloud, order: &Value) -> Result<(), String> {
    let order: Order = serde_json::from_value(order.clone()).map_err(|error| error.to_string())?;
    happen(cloud, &order).map(|_| ())
}

fn happen(cloud: &mut Cloud, order: &Order) -> Result<Value, String> {
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
    if let Deed::Publish { image, version } = &deed {
        let image: Value = serde_json::from_str(image).unwrap_or_default();
        cloud.new_version(&image, version);
    } else {
        cloud.world.happens(set, deed);
    }
    Ok(json!({ "done": true }))
}

fn deed(cloud: &Cloud, doing: &Doing, which: Which) -> Result<Deed, String> {
    let name = |image: &Value| image_reference(image).to_string();
    Ok(match doing {
        Doing::Sicken { lasting } => {
            Deed::Sicken(which, lasting.as_ref().map(Length::ms).transpose()?)
        }
        Doing::Fail => Deed::FailInstance(which),
        Doing::Stop => Deed::StopInstance(which),
        Doing::Evict => Deed::Evict(which),
        Doing::Vanish => Deed::Vanish(which),
        Doing::Delete => Deed::DeleteInstance(which),
        Doing::FlipLatestModelApplied => Deed::FlipLatestModelApplied(which),
        Doing::Protect { scale_in, set_actions } => {
            let protection = Protection { scale_in: *scale_in, set_actions: *set_actions };
            Deed::Protect(which, protection)
        }
        Doing::SetCapacity(to) => Deed::SetCapacity(*to),
        Doing::Publish { image, version } => {
            Deed::Publish { image: name(image), version: version.clone() }
        }
        Doing::BadImage { image, sick_after, fails } => {
            let bad = match (sick_after, fails) {
                (Some(after), _) => Bad::SickAfter(after.ms()?),
                (None, Some(true)) => Bad::FailsProvisioning,
                (None, _) => Bad::NeverReady,
            };
            Deed::MarkModelBad { image: name(image), bad: Some(bad) }
        }
        Doing::GoodImage { image } => Deed::MarkModelBad { image: name(image), bad: None },
        Doing::NoCapacity { zone, lasting } => {
            Deed::NoCapacity { zone: *zone, until: cloud.world.now() + lasting.ms()? }
        }
        Doing::Quota(limit) => Deed::SetQuota(*limit),
        Doing::Lock(locked) => Deed::Lock(*locked),
        Doing::DeleteSet => Deed::DeleteSet,
    })
}

fn set_named(cloud: &Cloud, name: Option<&str>) -> Result<SetId, String> {
    let fits = |set: &SetId| {
        let (Some(view), Some(place)) = (cloud.world.peek(*set), cloud.places.get(set)) else {
            return false;
        };
        let Some(name) = name.filter(|_| !place.alone) else { return !place.alone };
        name.eq_ignore_ascii_case(&view.name)
            || name.eq_ignore_ascii_case(&Cloud::set_id(place, &view.name, false))
    };
    let found: Vec<SetId> = cloud.places.keys().copied().filter(fits).collect();
    match (found.as_slice(), name) {
        ([one], _) => Ok(*one),
        ([], Some(name)) => Err(format!("there is no scale set \"{name}\"")),
        ([], None) => Err("there is no scale set".to_owned()),
        _ => Err("several scale sets are meant: name one by its id".to_owned()),
    }
}

fn publish(cloud: &mut Cloud, image: &ImageSeed) -> Result<Value, String> {
    if image.version.split('.').any(|part| part.parse::<u64>().is_err()) {
        return Err(format!("\"{}\" is no version such as 1.2.3", image.version));
    }
    Ok(json!({ "id": cloud.publish(image) }))
}

/// Every token given out so far is expired.
fn revoke(cloud: &mut Cloud) -> Value {
    cloud.generation += 1;
    json!({ "generation": cloud.generation })
}

/// What is really there, whatever lists show, and how often it was asked about.
pub(super) fn state(cloud: &Cloud) -> Value {
    let sets = cloud.places.iter().filter(|(_, place)| !place.alone);
    let sets: Vec<Value> = sets.filter_map(|(set, _)| set_state(cloud, *set)).collect();
    let calls = cloud.world.calls().iter();
    let calls: serde_json::Map<String, Value> = calls
        .map(|(call, count)| {
            let counts = json!({ "made": count.made, "refused": count.refused,
                "throttled": count.throttled, "unclear": count.unclear });
            (name_of(*call), counts)
        })
        .collect();
    json!({ "clock": clock(cloud), "faults": faults(cloud), "scaleSets": sets,
        "calls": calls, "requests": cloud.requests })
}

/// `ListInstances` becomes `listInstances`.
fn name_of(call: Call) -> String {
    let name = format!("{call:?}");
    let (head, tail) = name.split_at_checked(1).unwrap_or((&name, ""));
    format!("{}{tail}", head.to_ascii_lowercase())
}

fn set_state(cloud: &Cloud, set: SetId) -> Option<Value> {
    let (truth, view) = (cloud.world.truth(set)?, cloud.world.peek(set)?);
    let place = cloud.places.get(&set)?;
    let vm = |vm: &TrueInstance| {
        json!({ "id": vm.id.to_string(), "vmId": *vm.vm_text, "zone": vm.zone,
            "created": rfc3339(vm.created), "image": *vm.exact_image, "model": vm.model_no,
            "provisioning": super::instance::provisioning(vm.provisioning), "power": power(vm.power),
            "guest": format!("{:?}", vm.guest).to_ascii_lowercase(),
            "ready": vm.is_ready() && vm.provisioning != Provisioning::Deleting })
    };
    Some(json!({ "id": Cloud::set_id(place, &view.name, false), "capacity": truth.capacity,
        "active": truth.active(), "ready": truth.ready(), "outdated": truth.outdated(),
        "model": truth.model_no, "etag": *view.etag.0, "image": truth.model.image,
        "operations": truth.running.len(),
        "instances": truth.instances.iter().map(vm).collect::<Vec<_>>() }))
}

fn power(power: Power) -> String {
    format!("{power:?}").to_ascii_lowercase()
}
