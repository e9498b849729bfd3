//! The activity log of a subscription (`Microsoft.Insights/eventtypes/management/values`): writes of capacities and
//! autoscale settings, and what the autoscale service did. Newest first.

use serde_json::{Value, json};

use super::autoscale;
use super::cloud::{EmulatedCloud, ResourcePlace};
use super::document::text;
use super::reply::{HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::set;
use super::text::{guid_of, rfc3339};
use crate::world::{ActivityEntry, ActivityKind, ActivityStatus, Actor, Millis, moment};

/// One of the fixed combinations: a span of time, and one more field.
#[derive(Debug, Default, PartialEq, Eq)]
struct ActivityFilter {
    from: Millis,
    until: Option<Millis>,
    of: Option<(String, String)>,
}

impl ActivityFilter {
    fn parse(filter: &str) -> Option<Self> {
        let (mut all, mut begins) = (Self::default(), false);
        for clause in filter.split(" and ") {
            let mut words = clause.trim().splitn(3, ' ');
            let (field, operator) = (words.next()?.to_ascii_lowercase(), words.next()?);
            let value = words.next()?.trim().trim_matches('\'');
            match (field.as_str(), operator) {
                ("eventtimestamp", "ge") => {
                    (all.from, begins) = (moment(value, "UTC")?, true);
                }
                ("eventtimestamp", "le") => all.until = Some(moment(value, "UTC")?),
                (
                    "resourcegroupname" | "resourceprovider" | "resourceuri" | "correlationid",
                    "eq",
                ) if all.of.is_none() => all.of = Some((field, value.to_owned())),
                _ => return None,
            }
        }
        begins.then_some(all)
    }

    fn takes(&self, entry: &ActivityEntry, shown: &Value) -> bool {
        let in_time = entry.at >= self.from && self.until.is_none_or(|until| entry.at <= until);
        in_time
            && self.of.as_ref().is_none_or(|(field, wanted)| {
                let pointer = match field.as_str() {
                    "resourcegroupname" => "/resourceGroupName",
                    "resourceprovider" => "/resourceProviderName/value",
                    "resourceuri" => "/resourceId",
                    _ => "/correlationId",
                };
                text(shown, pointer).is_some_and(|is| is.eq_ignore_ascii_case(wanted))
            })
    }
}

pub(super) fn list(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.check_scope(ask)?;
    cloud.world.neighbour(false)?;
    let given = ask.get("$filter").unwrap_or_default();
    let Some(filter) = ActivityFilter::parse(given) else {
        let text = format!("The filter '{given}' is not supported.");
        return Err(Rejection::refused(400, "BadRequest", text));
    };
    let mut all = Vec::new();
    for entry in cloud.world.activity().rev().filter(|entry| is_on_the_wire(entry.what)) {
        let Some(place) = cloud.places.get(&entry.set) else { continue };
        if !place.subscription.eq_ignore_ascii_case(ask.subscription()) {
            continue;
        }
        if let Some(shown) = shown(cloud, entry, place).filter(|s| filter.takes(entry, s)) {
            all.push(selected(shown, ask.get("$select")));
        }
    }
    Ok(set::page(ask, &all))
}

fn selected(mut entry: Value, select: Option<&str>) -> Value {
    if let (Some(select), Some(entry)) = (select, entry.as_object_mut()) {
        entry.retain(|key, _| select.split(',').any(|s| s.trim().eq_ignore_ascii_case(key)));
    }
    entry
}

/// Entries of which documents tell the name of the operation.
fn is_on_the_wire(what: ActivityKind) -> bool {
    what.name().contains('/')
}

fn shown(cloud: &EmulatedCloud, entry: &ActivityEntry, place: &ResourcePlace) -> Option<Value> {
    let view = cloud.world.peek(entry.set)?;
    let target = EmulatedCloud::set_id(place, &view.name, false);
    let setting = autoscale::of_target(cloud, &target).and_then(|setting| text(setting, "/id"));
    let (event, category) = match entry.what {
        ActivityKind::ScaleUp | ActivityKind::ScaleDown => ("AutoscaleAction", "Autoscale"),
        ActivityKind::ScaleUpResult | ActivityKind::ScaleDownResult => {
            ("GetOperationStatusResult", "Autoscale")
        }
        _ => ("EndRequest", "Administrative"),
    };
    let resource = match entry.what {
        ActivityKind::CapacityWrite => &*target,
        _ => setting.unwrap_or(&target),
    };
    let caller = match entry.by {
        Actor::Person => "admin@contoso.com",
        Actor::Native | Actor::Azure => "Microsoft.Insights/autoscaleSettings",
        Actor::Caller => "client@contoso.com",
    };
    let operation = entry.what.name();
    let provider = operation.split('/').next().unwrap_or_default();
    let unique = guid_of(&format!("{}/{}", entry.number, entry.at)).to_string();
    let named = |value: &str| json!({ "value": value, "localizedValue": value });
    let failed = entry.status == ActivityStatus::Failed;
    Some(json!({
        "authorization": { "action": operation, "scope": resource },
        "caller": caller, "correlationId": unique, "operationId": unique, "eventDataId": unique,
        "description": description(entry, &target), "eventName": named(event), "category": named(category),
        "id": format!("{resource}/events/{unique}/ticks/{}", entry.at),
        "level": if failed { "Error" } else { "Informational" },
        "resourceGroupName": place.group, "resourceProviderName": named(provider),
        "resourceId": resource, "operationName": named(operation), "properties": properties(entry, &target),
        "status": named(entry.status.name()), "eventTimestamp": rfc3339(entry.at),
        "submissionTimestamp": rfc3339(entry.at), "subscriptionId": place.subscription,
    }))
}

fn description(entry: &ActivityEntry, target: &str) -> String {
    match (entry.what, entry.sizes) {
        (ActivityKind::ScaleUp | ActivityKind::ScaleDown, Some((from, to))) => format!(
            "The autoscale engine attempting to scale resource '{target}' from {from} instances count to {to} \
             instances count."
        ),
        _ => String::new(),
    }
}

fn properties(entry: &ActivityEntry, target: &str) -> Value {
    match entry.sizes {
        Some((from, to)) if entry.by == Actor::Native => json!({ "ResourceName": target,
            "OldInstancesCount": from.to_string(), "NewInstancesCount": to.to_string() }),
        _ => json!({ "statusCode": "OK" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_a_time_and_one_more_field() {
        let time = "eventTimestamp ge '2026-01-21T20:00:00Z'";
        for good in [
            time.to_owned(),
            format!("{time} and eventTimestamp le '2026-01-23T20:00:00Z'"),
            format!("{time} and resourceGroupName eq 'rg'"),
            format!("{time} and resourceUri eq '/subscriptions/a'"),
        ] {
            assert!(ActivityFilter::parse(&good).is_some(), "{good}");
        }
        for bad in [
            "",
            "resourceGroupName eq 'rg'",
            "eventTimestamp ge 'soon'",
            &format!("{time} and caller eq 'me'"),
            &format!("{time} and resourceGroupName eq 'a' and resourceUri eq 'b'"),
        ] {
            assert_eq!(ActivityFilter::parse(bad), None, "{bad}");
        }
    }
}
