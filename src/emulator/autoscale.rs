//! Autoscale settings (`Microsoft.Insights/autoscaleSettings`): synchronous, without etags, one for each target.
//!
//! The emulator keeps the document as it was written. Answers differ from it as Azure's do; the world gets the meaning.

use serde_json::{Map, Value, json};

use super::cloud::EmulatedCloud;
use super::document::{self, text};
use super::members;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::seed::SwitchesSeed;
use super::set;
use super::text::from_iso_span;
use crate::world::{
    AUTOSCALE_COOLDOWN, Actor, AutoscaleProfile, AutoscaleRule, AutoscaleSetting,
    MetricAggregation, MetricOperator, Millis, ProfileTime, ScaleDirection, ScaleStep, SetId,
    WeeklyTime, WorldRefusal, moment,
};

const KIND: &str = "Microsoft.Insights/autoscaleSettings";
const TARGET: &str = "/properties/targetResourceUri";
/// The type that Azure's own storage of tags leaks into answers.
const TAGS_TYPE: &str = "Microsoft.WindowsAzure.Management.Common.Storage.CasePreservedDictionary";
/// Earlier versions have no envelope around an error.
const ENVELOPES_SINCE: &str = "2021-01-01";

fn id_of(subscription: &str, group: &str, name: &str) -> String {
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/microsoft.insights/autoscalesettings/{name}"
    )
}

pub(super) fn list(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.check_scope(ask)?;
    cloud.world.neighbour(false)?;
    let scope = ask.scope();
    let here = cloud.autoscale.iter().filter(|(id, _)| id.starts_with(&scope));
    let all: Vec<Value> = here.map(|(_, setting)| shown(setting, cloud.switches)).collect();
    Ok(set::page(ask, &all))
}

pub(super) fn one(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, name: &str) -> HandledRequest {
    cloud.check_scope(ask)?;
    let id = id_of(ask.subscription(), ask.part(3), name);
    let key = id.to_ascii_lowercase();
    let done = match ask.method.as_str() {
        "GET" => {
            cloud.world.neighbour(false)?;
            let setting = cloud.autoscale.get(&key).ok_or_else(|| missing(name));
            let switches = cloud.switches;
            setting.map(|s| EmulatorReply::ok(&shown(s, switches))).map_err(Rejection::from)
        }
        "DELETE" => {
            let EmulatedCloud { world, autoscale, .. } = cloud;
            let known = world.neighbour_write(|_| Ok(autoscale.remove(&key).is_some()));
            apply(cloud);
            Ok(EmulatorReply::empty(if known? { 200 } else { 204 }))
        }
        "PUT" | "PATCH" => write(cloud, ask, &id),
        _ => Err(members::not_served(ask)),
    };
    match done {
        Err(Rejection::Refused(refusal)) if ask.version()? < ENVELOPES_SINCE => {
            let body = json!({ "code": refusal.code, "message": refusal.message });
            Ok(EmulatorReply::json(refusal.status, &body))
        }
        done => done,
    }
}

fn missing(name: &str) -> WorldRefusal {
    let text = format!("The autoscale setting '{name}' could not be found.");
    WorldRefusal::new(404, "ResourceNotFound", text)
}

fn write(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, id: &str) -> HandledRequest {
    let body = ask.object()?;
    let patches = ask.method == "PATCH";
    if !patches {
        document::location(&Value::Object(body.clone()))?;
    }
    let EmulatedCloud { world, autoscale, switches, .. } = cloud;
    let (key, switches) = (id.to_ascii_lowercase(), *switches);
    let done = world.neighbour_write(|_| {
        let known = autoscale.get(&key);
        let mut setting = match (patches, known) {
            (true, None) => return Err(missing(ask.part(7))),
            (true, Some(known)) => patched(known, body, switches)?,
            (false, _) => Value::Object(body),
        };
        complete(&mut setting, id, switches);
        check_target(&key, &setting, autoscale.iter())?;
        meaning(&setting)?.check()?;
        Ok((autoscale.insert(key, setting.clone()).is_none(), setting))
    });
    apply(cloud);
    let (is_new, setting) = done?;
    Ok(EmulatorReply::json(if is_new { 201 } else { 200 }, &shown(&setting, switches)))
}

/// What survives a PATCH that omits it is not documented.
fn patched(
    known: &Value,
    body: Map<String, Value>,
    switches: SwitchesSeed,
) -> Result<Value, WorldRefusal> {
    let mut setting = known.clone();
    for (part, value) in body {
        match (part.as_str(), value) {
            ("properties", Value::Object(new)) => {
                if !new.contains_key("profiles") {
                    return Err(bad("properties.profiles is required"));
                }
                if switches.autoscale_patch_replaces {
                    setting["properties"] = Value::Object(new);
                } else {
                    let put = |(key, value): (String, Value)| {
                        document::put(&mut setting, &["properties", &key], value);
                    };
                    new.into_iter().for_each(put);
                }
            }
            ("tags" | "properties", value) => setting[part] = value,
            _ => {}
        }
    }
    Ok(setting)
}

fn complete(setting: &mut Value, id: &str, switches: SwitchesSeed) {
    let name = id.rsplit('/').next().unwrap_or_default();
    document::put(setting, &["id"], json!(id));
    document::put(setting, &["name"], json!(name));
    document::put(setting, &["type"], json!(KIND));
    if let Some(tags) = setting.get_mut("tags").and_then(Value::as_object_mut) {
        tags.remove("$type");
    }
    if setting.pointer("/properties/enabled").is_none_or(Value::is_null) {
        let on = switches.autoscale_on_unless_said;
        document::put(setting, &["properties", "enabled"], json!(on));
    }
}

/// A target has one setting, and a setting keeps its target.
fn check_target<'a>(
    key: &str,
    setting: &Value,
    all: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), WorldRefusal> {
    let Some(target) = text(setting, TARGET) else { return Ok(()) };
    for (other, known) in all {
        let same = text(known, TARGET).is_some_and(|known| known.eq_ignore_ascii_case(target));
        if other == key && !same && text(known, TARGET).is_some() {
            let text = format!(
                "The autoscale setting '{}' is referencing target resource '{}'. The target resource reference is \
                 immutable. If you want to change it, please create a new autoscale setting with a different name.",
                text(known, "/name").unwrap_or_default(),
                text(known, TARGET).unwrap_or_default(),
            );
            return Err(WorldRefusal::new(400, "TargetResourceIdIsImmutable", text));
        }
        if other != key && same {
            let text = format!(
                "The target resource '{target}' already has the autoscale setting '{}'.",
                text(known, "/id").unwrap_or_default()
            );
            return Err(WorldRefusal::new(409, "Conflict", text));
        }
    }
    Ok(())
}

/// A setting that exists from the start.
pub(super) fn found(
    cloud: &mut EmulatedCloud,
    set: SetId,
    name: &str,
    properties: &Value,
) -> Result<(), String> {
    let Some(place) = cloud.places.get(&set) else { return Ok(()) };
    let id = id_of(&place.subscription, &place.group, name);
    let mut setting = json!({ "location": place.location, "properties": properties });
    let target = EmulatedCloud::set_id(place, name, false);
    document::put(&mut setting, &["properties", "targetResourceUri"], json!(target));
    complete(&mut setting, &id, cloud.switches);
    let checked = meaning(&setting).and_then(|setting| setting.check());
    checked.map_err(|refusal| refusal.message)?;
    cloud.autoscale.insert(id.to_ascii_lowercase(), setting);
    apply(cloud);
    Ok(())
}

/// The setting of each set becomes an actor in the world.
pub(super) fn apply(cloud: &mut EmulatedCloud) {
    let sets: Vec<SetId> = cloud.places.keys().copied().collect();
    for set in sets {
        let Some(view) = cloud.world.peek(set) else { continue };
        let Some(place) = cloud.places.get(&set) else { continue };
        let id = EmulatedCloud::set_id(place, &view.name, false);
        let setting = of_target(cloud, &id).and_then(|setting| meaning(setting).ok());
        cloud.world.set_autoscale(set, setting, Actor::Caller);
    }
}

pub(super) fn of_target<'a>(cloud: &'a EmulatedCloud, target: &str) -> Option<&'a Value> {
    let is = |setting: &&Value| {
        text(setting, TARGET).is_some_and(|named| named.eq_ignore_ascii_case(target))
    };
    cloud.autoscale.values().find(is)
}

fn bad(what: &str) -> WorldRefusal {
    let text = format!("The autoscale setting is not valid: {what}.");
    WorldRefusal::new(400, "BadRequest", text)
}

/// Numbers may come as texts.
fn whole(value: Option<&Value>) -> Option<u32> {
    match value? {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
        _ => None,
    }
}

fn meaning(setting: &Value) -> Result<AutoscaleSetting, WorldRefusal> {
    let profiles = setting.pointer("/properties/profiles").and_then(Value::as_array);
    let profiles = profiles.ok_or_else(|| bad("properties.profiles is required"))?;
    Ok(AutoscaleSetting {
        name: text(setting, "/id").unwrap_or_default().to_owned(),
        enabled: setting.pointer("/properties/enabled") == Some(&Value::Bool(true)),
        profiles: profiles.iter().map(profile).collect::<Result<_, _>>()?,
        rest: setting.to_string(),
    })
}

fn profile(given: &Value) -> Result<AutoscaleProfile, WorldRefusal> {
    let limit = |key: &str| {
        whole(given.pointer(&format!("/capacity/{key}")))
            .ok_or_else(|| bad(&format!("capacity.{key} is a number in quotes")))
    };
    let rules = given.get("rules").and_then(Value::as_array);
    Ok(AutoscaleProfile {
        name: text(given, "/name").unwrap_or_default().to_owned(),
        minimum: limit("minimum")?,
        maximum: limit("maximum")?,
        default: limit("default")?,
        rules: rules.into_iter().flatten().map(rule).collect::<Result<_, _>>()?,
        when: when(given)?,
    })
}

fn when(profile: &Value) -> Result<ProfileTime, WorldRefusal> {
    if let Some(date) = profile.get("fixedDate").filter(|date| date.is_object()) {
        let zone = text(date, "/timeZone").unwrap_or("UTC");
        let at = |key: &str| {
            let at = text(date, &format!("/{key}")).and_then(|at| moment(at, zone));
            at.ok_or_else(|| bad(&format!("fixedDate.{key} is no time in the zone '{zone}'")))
        };
        return Ok(ProfileTime::Date { from: at("start")?, until: at("end")? });
    }
    let Some(recurrence) = profile.get("recurrence").filter(|of| of.is_object()) else {
        return Ok(ProfileTime::Always);
    };
    let schedule = recurrence.get("schedule").cloned().unwrap_or_default();
    let numbers = |key: &str, below: u32| -> Result<Vec<u8>, WorldRefusal> {
        let list = schedule.get(key).and_then(Value::as_array).into_iter().flatten();
        let number = |value: &Value| {
            let number = whole(Some(value)).or_else(|| day(value)).filter(|n| *n < below);
            number.map(|n| n as u8).ok_or_else(|| bad(&format!("schedule.{key}: {value}")))
        };
        list.map(number).collect()
    };
    Ok(ProfileTime::Weekly(WeeklyTime {
        zone: text(&schedule, "/timeZone").unwrap_or("UTC").to_owned(),
        days: numbers("days", 7)?,
        hours: numbers("hours", 24)?,
        minutes: numbers("minutes", 60)?,
    }))
}

fn day(value: &Value) -> Option<u32> {
    const DAYS: [&str; 7] =
        ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let day = value.as_str()?.to_ascii_lowercase();
    DAYS.iter().position(|known| *known == day).map(|n| n as u32)
}

fn rule(given: &Value) -> Result<AutoscaleRule, WorldRefusal> {
    use MetricAggregation::{Average, Count, Last, Maximum, Minimum, Total};
    use MetricOperator::{
        Equals, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, NotEquals,
    };
    use ScaleDirection::{Decrease, Increase, None};
    let trigger = |key: &str| text(given, &format!("/metricTrigger/{key}")).unwrap_or_default();
    let action = |key: &str| text(given, &format!("/scaleAction/{key}")).unwrap_or_default();
    let operators = [Equals, NotEquals, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual];
    let operator = operators.into_iter().find(|o| same(o.name(), trigger("operator")));
    let aggregations = [Average, Minimum, Maximum, Total, Count, Last];
    let aggregation = aggregations.into_iter().find(|a| same(a.name(), trigger("timeAggregation")));
    let direction =
        [None, Increase, Decrease].into_iter().find(|d| same(d.name(), action("direction")));
    let threshold = given.pointer("/metricTrigger/threshold").and_then(Value::as_f64);
    let value = whole(given.pointer("/scaleAction/value")).unwrap_or(1);
    let step = match action("type").to_ascii_lowercase().as_str() {
        "changecount" => ScaleStep::Change(value),
        "percentchangecount" => ScaleStep::Percent(value),
        "exactcount" => ScaleStep::Exact(value),
        "serviceallowednextvalue" => ScaleStep::Next,
        other => return Err(bad(&format!("scaleAction.type '{other}'"))),
    };
    let span = |given: &str, usual: Millis| match given {
        "" => Ok(usual),
        given => from_iso_span(given).ok_or_else(|| bad(&format!("'{given}' is no duration"))),
    };
    Ok(AutoscaleRule {
        operator: operator.ok_or_else(|| bad("metricTrigger.operator"))?,
        threshold: threshold.ok_or_else(|| bad("metricTrigger.threshold is a number"))?,
        window: span(trigger("timeWindow"), 0)?,
        aggregation: aggregation.ok_or_else(|| bad("metricTrigger.timeAggregation"))?,
        divides: given.pointer("/metricTrigger/dividePerInstance") == Some(&Value::Bool(true)),
        direction: direction.ok_or_else(|| bad("scaleAction.direction"))?,
        step,
        cooldown: span(action("cooldown"), AUTOSCALE_COOLDOWN)?,
    })
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The document as answers show it.
fn shown(setting: &Value, switches: SwitchesSeed) -> Value {
    let mut shown = setting.clone();
    if switches.autoscale_answers_plain {
        return shown;
    }
    if let Some(location) = text(setting, "/location") {
        shown["location"] = json!(display_name(location));
    }
    if let Some(tags) = shown.get_mut("tags").and_then(Value::as_object_mut) {
        tags.insert("$type".to_owned(), json!(TAGS_TYPE));
    }
    let name = shown["name"].clone();
    document::put(&mut shown, &["properties", "name"], name);
    let policy = shown.pointer_mut("/properties/predictiveAutoscalePolicy");
    if let Some(policy) = policy.and_then(Value::as_object_mut) {
        policy.entry("scaleLookAheadTime").or_insert(Value::Null);
    }
    let profiles = shown.pointer_mut("/properties/profiles").and_then(Value::as_array_mut);
    for profile in profiles.into_iter().flatten() {
        for limit in profile["capacity"].as_object_mut().into_iter().flatten() {
            as_text(limit.1);
        }
        for rule in profile["rules"].as_array_mut().into_iter().flatten() {
            if let Some(value) = rule.pointer_mut("/scaleAction/value") {
                as_text(value);
            }
            if let Some(threshold) = rule.pointer_mut("/metricTrigger/threshold") {
                *threshold = threshold.as_f64().map_or(Value::Null, |number| json!(number));
            }
        }
    }
    shown
}

fn as_text(value: &mut Value) {
    if value.is_number() {
        *value = json!(value.to_string());
    }
}

/// `eastus2` is shown as `East US 2`.
fn display_name(location: &str) -> &str {
    const SHOWN: [&str; 18] = [
        "East US",
        "East US 2",
        "West US",
        "West US 2",
        "West US 3",
        "Central US",
        "North Central US",
        "South Central US",
        "Canada Central",
        "North Europe",
        "West Europe",
        "UK South",
        "France Central",
        "Germany West Central",
        "Sweden Central",
        "Southeast Asia",
        "Japan East",
        "Australia East",
    ];
    SHOWN.into_iter().find(|shown| document::same_location(shown, location)).unwrap_or(location)
}
