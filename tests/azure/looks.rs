//! A look: what is asked, what is made of it, and what a page that fails leaves behind.

use std::time::Duration;

use poolkeeper::model::ids::{InstanceId, ScaleSetId, VmId, Zone};
use poolkeeper::model::inventory::{Orchestration, PlatformFeature};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::machine::{Condition, Evidence, Protection};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{CallCost, LimitReading, PacedOperation};
use serde_json::{Value, json};

use crate::azure::kit::{Purse, SET, START, kit, kit_of, machine, paced_kit, set, usual};
use crate::azure::server::{Heard, Says};

fn is_list(heard: &Heard) -> bool {
    heard.is("GET", "/virtualMachines?")
}

#[tokio::test]
async fn one_look_is_one_read_of_the_set_and_one_list() {
    let kit = kit(usual).await;
    let seen = kit.look().await.unwrap();
    let asked: Vec<String> = kit.server.heard().iter().map(|h| h.target.clone()).collect();
    assert_eq!(asked[0], format!("{SET}?api-version=2024-07-01&%24expand=userData"));
    let list = format!("{SET}/virtualMachines?api-version=2024-07-01&%24expand=instanceView");
    assert_eq!(asked[1], list);
    let locks = "/resourceGroups/rg/providers/Microsoft.Authorization/locks?api-version=2020-05-01";
    let beside = |what: &str| asked[2..].iter().filter(|target| target.contains(what)).count();
    assert_eq!((beside("autoscalesettings"), beside(locks), asked.len()), (1, 1, 4), "{asked:?}");
    // Others share the answers about autoscale and locks, and they are good for a while.
    kit.look().await.unwrap();
    assert_eq!(kit.server.heard().len(), 6);

    assert_eq!(seen.gaps, []);
    assert!(seen.set.complete && seen.set.read_at == START);
    assert_eq!((seen.set.capacity, seen.set.orchestration), (2, Orchestration::Uniform));
    assert_eq!(seen.set.etag.as_ref().unwrap().as_str(), "\"7\"");
    assert_eq!(seen.set.zones, ["1", "2"].map(Zone::new));
    assert_eq!(seen.set.platform_features, []);
    let model = seen.set.model.unwrap();
    assert_eq!(model.image.as_deref(), Some("p:o:s:1.0"));
    assert_eq!(model.tags.get("team").map(AsRef::as_ref), Some("web"));
    let one = &seen.instances[1];
    assert_eq!((&one.id, &one.vm), (&InstanceId::new("1"), &Some(VmId::new("0000-1"))));
    assert_eq!(one.zone, Some(Zone::new("2")));
    assert_eq!(one.created, Time::parse("2026-03-01T11:00:00.123Z").unwrap());
    let since = Time::parse("2026-03-01T11:02:00Z").unwrap();
    assert_eq!((one.condition, one.since), (Condition::Ready, Some(since)));
    assert_eq!((&one.revision, one.evidence), (&Some(seen.set.revision), Evidence::Stamp));
    assert_eq!(one.protection, Protection::None);
}

/// A list of two pages, the second answered so.
async fn second(
    says: impl Fn(&Heard) -> Says + Send + Sync + 'static,
) -> (Vec<String>, bool, usize) {
    let patience = Duration::from_millis(150);
    let kit = kit_of(Purse::default(), patience, move |heard| {
        let host = heard.header("host").unwrap();
        let next =
            format!("http://{host}{SET}/virtualMachines?api-version=2024-07-01&$skiptoken=A%2BB");
        match () {
            () if heard.target.contains("skiptoken") => says(heard),
            () if is_list(heard) => Says::json(&json!({"value": [machine(0)], "nextLink": next})),
            () => usual(heard),
        }
    });
    let kit = kit.await;
    let seen = kit.look().await.unwrap();
    let gaps = seen.gaps.iter().map(|gap| format!("{}: {}", gap.what, gap.why)).collect();
    let last = kit.server.heard().into_iter().find(|h| h.target.contains("skiptoken")).unwrap();
    assert!(last.target.ends_with("$skiptoken=A%2BB"), "followed as it stands: {}", last.target);
    (gaps, seen.set.complete, seen.instances.len())
}

#[tokio::test]
async fn pages_are_followed_as_they_are_told() {
    let (gaps, complete, rows) =
        second(|_| Says::json(&json!({"value": [machine(1), machine(2)]}))).await;
    assert_eq!((gaps, complete, rows), (vec![], true, 3));
    let (gaps, complete, rows) =
        second(|_| Says::json(&json!({"value": [], "nextLink": ""}))).await;
    assert_eq!((gaps, complete, rows), (vec![], true, 1));
}

#[tokio::test]
async fn a_page_that_does_not_come_whole_is_a_gap() {
    let whole = json!({"value": [machine(1)]}).to_string();
    let half = whole[..whole.len() / 2].to_owned();
    let token = "The value of parameter $skiptoken is invalid.";
    for says in [
        Says::fault(500, "InternalServerError", "m"),
        Says::fault(429, "OperationNotAllowed", "too many"),
        Says::fault(400, "InvalidParameter", token),
        Says::status(200, "<html>please sign in</html>"),
        Says::status(200, &half),
        Says::status(200, "{}"),
        Says::status(200, r#"{"value":null}"#),
        Says::status(200, r#"{"value":[],"nextLink":"not an address"}"#),
        Says::status(302, "").with("location", "http://127.0.0.1:1/"),
        Says::Half(whole.clone()),
        Says::Stall(half.clone()),
        Says::Nothing,
    ] {
        let shown = format!("{says:?}");
        let (gaps, complete, rows) = second(move |_| says.clone()).await;
        assert_eq!((gaps.len(), complete, rows), (1, false, 1), "{shown}: {gaps:?}");
        assert!(gaps[0].starts_with("listing: page 2: "), "{gaps:?}");
    }
}

#[tokio::test]
async fn pages_in_a_circle_end() {
    let (gaps, complete, _) = second(|heard| {
        let again = format!("http://{}{}", heard.header("host").unwrap(), heard.target);
        Says::json(&json!({"value": [machine(1)], "nextLink": again}))
    })
    .await;
    assert!(!complete && gaps[0].contains("circles"), "{gaps:?}");
    let (gaps, _, rows) = second(|heard| {
        let (here, there) = match heard.target.ends_with("A%2BB") {
            true => ("A%2BB", "C"),
            false => ("skiptoken=C", "skiptoken=A%2BB"),
        };
        let other = heard.target.replace(here, there);
        let next = format!("http://{}{other}", heard.header("host").unwrap());
        Says::json(&json!({"value": [machine(1)], "nextLink": next}))
    })
    .await;
    assert_eq!((gaps.len(), rows), (1, 3), "no page is asked for twice: {gaps:?}");
}

#[tokio::test]
async fn what_cannot_be_read_at_all_is_said() {
    for (says, refusal) in [
        (Says::fault(404, "ResourceNotFound", "The Resource was not found."), Refusal::Gone),
        (Says::fault(403, "AuthorizationFailed", "no permission"), Refusal::Forbidden),
        (Says::fault(503, "ServiceUnavailable", "later"), Refusal::Unclear),
        (Says::status(404, "<html>"), Refusal::Unclear),
        (Says::status(200, "<html>"), Refusal::Unclear),
        (Says::status(200, "{}"), Refusal::Unclear),
        (Says::status(200, r#"{"sku":{},"properties":{}}"#), Refusal::Unclear),
        (Says::Nothing, Refusal::Unclear),
    ] {
        // Of the set, and of the first page of its machines.
        for of_list in [false, true] {
            if of_list && matches!(&says, Says::Reply { body, .. } if body.contains("sku")) {
                continue;
            }
            let said = says.clone();
            let kit = kit(
                move |heard| if is_list(heard) == of_list { said.clone() } else { usual(heard) },
            )
            .await;
            let failed = kit.look().await.unwrap_err();
            assert_eq!(failed.refusal, refusal, "{says:?} of list {of_list}: {failed}");
        }
    }
    let kit = kit(|_| Says::status(429, "").with("Retry-After", "17")).await;
    let failed = kit.look().await.unwrap_err();
    assert_eq!(failed.refusal, Refusal::Throttled);
    assert_eq!(failed.retry_at, Some(START.plus(Span::seconds(17))));
}

#[tokio::test]
async fn a_read_that_is_refused_for_a_day_is_tried_again_within_a_quarter_of_an_hour() {
    let kit = kit(|_| Says::status(429, "").with("Retry-After", "86400")).await;
    let failed = kit.look().await.unwrap_err();
    assert_eq!(failed.refusal, Refusal::Throttled);
    assert_eq!(failed.retry_at, Some(START.plus(Span::minutes(15))));
}

async fn rows(rows: Vec<Value>) -> poolkeeper::model::inventory::Inventory {
    let kit = kit(move |heard| match is_list(heard) {
        true => Says::json(&json!({"value": rows})),
        false => usual(heard),
    });
    kit.await.look().await.unwrap()
}

#[tokio::test]
async fn a_machine_that_nobody_could_name_is_a_gap_and_no_absence() {
    let mut nameless = machine(1);
    nameless["instanceId"] = Value::Null;
    let mut all = machine(2);
    all["instanceId"] = json!("*");
    let mut bare = machine(3);
    bare["properties"] = json!({"latestModelApplied": true});
    let seen = rows(vec![machine(0), nameless, all, bare]).await;
    assert_eq!(seen.instances.len(), 1);
    assert!(!seen.set.complete);
    let what: Vec<&str> = seen.gaps.iter().map(|gap| &*gap.what).collect();
    assert_eq!(what, ["machine web_1", "machine web_2", "machine web_3"]);
}

#[tokio::test]
async fn a_row_of_another_shape_is_a_gap_and_the_others_are_read() {
    let strange = |n: u32, at: &str, value: Value| {
        let mut row = machine(n);
        *row.pointer_mut(at).unwrap() = value;
        row
    };
    let seen = rows(vec![
        machine(0),
        strange(1, "/properties/latestModelApplied", json!("true")),
        strange(2, "/zones", json!("1")),
        strange(3, "/properties", json!(7)),
        machine(4),
        json!("no machine"),
    ])
    .await;
    assert_eq!(seen.instances.len(), 2);
    assert!(!seen.set.complete, "what was not read may be anything");
    let what: Vec<&str> = seen.gaps.iter().map(|gap| &*gap.what).collect();
    assert_eq!(what, ["machine web_1", "machine web_2", "machine web_3", "machine ?"]);
    assert!(seen.gaps[0].why.contains("expected a boolean"), "{:?}", seen.gaps);
}

#[tokio::test]
async fn the_pacer_learns_the_region_of_a_set() {
    let kit = paced_kit(usual).await;
    let _ = kit.look().await.unwrap();
    let front = |limits: Vec<LimitReading>| {
        limits.iter().filter(|limit| &*limit.name == "subscription-reads").count()
    };
    assert_eq!(front(kit.pacer().limits()), 2, "before the region is known, and in the region");
    // A set that is known to be there is counted there.
    let api = ScaleSetId::new(SET.replace("/web", "/api"));
    kit.pacer().locate(&api, "westeurope");
    let call =
        CallCost { set: &api, operation: PacedOperation::ReadSet, machines: 0, before: None };
    kit.pacer().permit(call).await.unwrap().unsent();
    assert_eq!(front(kit.pacer().limits()), 2);
}

#[tokio::test]
async fn a_flexible_set_without_a_vm_profile_cannot_be_kept() {
    let kit = kit(|heard| {
        let mut shown = set();
        shown["properties"] = json!({"orchestrationMode": "Flexible"});
        shown.as_object_mut().unwrap().remove("sku");
        if is_list(heard) { usual(heard) } else { Says::json(&shown) }
    });
    let failed = kit.await.look().await.unwrap_err();
    assert_eq!(failed.refusal, Refusal::Invalid, "no later try brings one");
    assert!(failed.say.contains("no VM profile"), "{failed}");
}

#[tokio::test]
async fn what_a_row_does_not_tell_is_unknown_and_young() {
    let mut bare = machine(0);
    bare["properties"] = json!({"vmId": "x"});
    bare["zones"] = Value::Null;
    let mut birthless = machine(1);
    birthless["properties"]["vmId"] = Value::Null;
    let seen = rows(vec![bare, birthless]).await;
    assert!(seen.set.complete);
    let [bare, birthless] = &seen.instances[..] else { panic!() };
    assert_eq!((bare.condition, bare.created, &bare.zone), (Condition::Unknown, START, &None));
    assert_eq!(
        (bare.evidence, &bare.revision),
        (Evidence::LatestModelApplied, &Some(seen.set.revision.clone()))
    );
    assert_eq!(birthless.vm, None);
}

#[tokio::test]
async fn protection_is_seen() {
    let with = |n: u32, policy: Value| {
        let mut row = machine(n);
        row["properties"]["protectionPolicy"] = policy;
        row
    };
    let seen = rows(vec![
        with(0, json!({"protectFromScaleIn": true})),
        with(1, json!({"protectFromScaleIn": true, "protectFromScaleSetActions": true})),
        with(2, json!({"protectFromScaleIn": null})),
        with(3, Value::Null),
    ])
    .await;
    let seen: Vec<Protection> = seen.instances.iter().map(|row| row.protection).collect();
    assert_eq!(seen, [Protection::ScaleIn, Protection::All, Protection::None, Protection::None]);
}

#[tokio::test]
async fn actors_of_the_clouds_own_are_found() {
    let of = |properties: Value, autoscaled: bool| async move {
        let mut shown = set();
        for (key, value) in properties.as_object().unwrap() {
            shown["properties"][key] = value.clone();
        }
        let setting = |on: bool| json!({"properties": {"enabled": on, "targetResourceUri": SET.to_uppercase()}});
        let settings =
            json!({"value": [setting(false), setting(autoscaled), {"properties": null}]});
        let kit = kit(move |heard| match () {
            () if heard.target.contains("autoscale") => Says::json(&settings),
            () if is_list(heard) => usual(heard),
            () => Says::json(&shown),
        });
        kit.await.look().await.unwrap().set.platform_features
    };
    assert_eq!(of(json!({}), false).await, []);
    assert_eq!(of(json!({"overprovision": null}), false).await, [PlatformFeature::Overprovision]);
    let all = json!({
        "upgradePolicy": {"mode": "rolling", "automaticOSUpgradePolicy": {"enableAutomaticOSUpgrade": true}},
        "automaticRepairsPolicy": {"enabled": true, "gracePeriod": "PT10M"},
        "overprovision": true,
    });
    use PlatformFeature::{
        AutoOsUpgrade, AutomaticRepairs, Autoscale, Overprovision, RollingUpgrade,
    };
    let every = [RollingUpgrade, AutoOsUpgrade, AutomaticRepairs, Autoscale, Overprovision];
    assert_eq!(of(all, true).await, every);
    // Flexible sets never make more machines than asked.
    let flexible = json!({"orchestrationMode": "Flexible", "overprovision": null});
    assert_eq!(of(flexible, false).await, []);
}

fn member(name: &str, set: Value) -> Value {
    let mut row = machine(0);
    row["name"] = json!(name);
    row["instanceId"] = Value::Null;
    row["sku"] = Value::Null;
    row["properties"]["latestModelApplied"] = Value::Null;
    row["properties"]["hardwareProfile"] = json!({"vmSize": "Standard_D2s_v3"});
    row["properties"]["vmId"] = json!(format!("id-{name}"));
    row["properties"]["virtualMachineScaleSet"] = set;
    row
}

#[tokio::test]
async fn machines_of_a_flexible_set_are_the_vms_that_say_so() {
    let kit = kit(|heard| match () {
        () if heard.target.contains("autoscale") => usual(heard),
        () if is_list(heard) => Says::json(&json!({"value": [
            member("web_1a2b3c4d", json!({"id": SET.to_uppercase()})),
            member("other", json!({"id": format!("{SET}2")})),
        ]})),
        () => {
            let mut shown = set();
            shown["properties"]["orchestrationMode"] = json!("Flexible");
            Says::json(&shown)
        }
    })
    .await;
    let seen = kit.look().await.unwrap();
    let list = kit.server.heard().into_iter().find(is_list).unwrap().target;
    assert!(list.starts_with(
        "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines?"
    ));
    assert!(list.contains("%24filter=%27virtualMachineScaleSet%2Fid%27+eq+%27"), "{list}");
    assert!(list.contains("%24expand=instanceView"), "{list}");
    assert_eq!(seen.instances.len(), 1);
    let row = &seen.instances[0];
    assert_eq!((row.id.as_str(), row.condition), ("web_1a2b3c4d", Condition::Ready));
    assert_eq!((row.revision.as_ref(), row.evidence), (Some(&seen.set.revision), Evidence::Stamp));
    assert!(seen.set.complete);
}

#[tokio::test]
async fn a_vm_that_does_not_say_whose_it_is_may_be_ours() {
    let kit = kit(|heard| match () {
        () if is_list(heard) => Says::json(&json!({"value": [member("web_x", Value::Null)]})),
        () if heard.target.contains("autoscale") => usual(heard),
        () => {
            let mut shown = set();
            shown["properties"]["orchestrationMode"] = json!("flexible");
            Says::json(&shown)
        }
    });
    let seen = kit.await.look().await.unwrap();
    assert!(seen.instances.is_empty() && !seen.set.complete);
}

#[tokio::test]
async fn an_update_in_place_is_seen_once_the_model_was_seen_to_change() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let step = std::sync::Arc::new(AtomicU32::new(0));
    let at = std::sync::Arc::clone(&step);
    // 0: before. 1: the model moved on, and the list is still of before. 2: told so. 3: brought to the model.
    let kit = kit(move |heard| {
        let at = at.load(Ordering::SeqCst);
        let mut shown = set();
        let extension =
            json!({"extensions": [{"name": "a", "properties": {"typeHandlerVersion": at.min(1)}}]});
        shown["properties"]["virtualMachineProfile"]["extensionProfile"] = extension;
        let mut row = machine(0);
        row["properties"]["latestModelApplied"] = json!(at != 2);
        if at == 3 {
            row["properties"]["instanceView"]["statuses"][0]["time"] =
                json!("2026-03-01T12:05:00+00:00");
        }
        match () {
            () if heard.target.contains("autoscale") => usual(heard),
            () if is_list(heard) => Says::json(&json!({"value": [row]})),
            () => Says::json(&shown),
        }
    })
    .await;
    let mut told = Vec::new();
    for now in 0..4 {
        step.store(now, Ordering::SeqCst);
        let seen = kit.look().await.unwrap();
        let row = &seen.instances[0];
        told.push((row.revision.as_ref() == Some(&seen.set.revision), row.evidence));
        kit.clock.pass(Span::minutes(2));
    }
    use Evidence::{LatestModelApplied, Model, Stamp};
    assert_eq!(told, [(true, Stamp), (true, Stamp), (false, LatestModelApplied), (true, Model)]);
}

#[tokio::test]
async fn a_capacity_may_be_written_as_a_float_and_as_nothing_else() {
    let look = async |capacity: Value| {
        let says = move |heard: &Heard| {
            if !heard.target.contains("userData") {
                return usual(heard);
            }
            let mut shown = set();
            shown["sku"]["capacity"] = capacity.clone();
            Says::json(&shown)
        };
        kit(says).await.look().await
    };
    assert_eq!(look(json!(5.0)).await.unwrap().set.capacity, 5);
    assert_eq!(look(json!(5)).await.unwrap().set.capacity, 5);
    for strange in [json!(5.5), json!(-1), json!("5"), json!(1e12), json!([5]), json!(true)] {
        let why = look(strange.clone()).await.unwrap_err().say;
        assert!(why.contains("sku.capacity"), "{strange}: {why}");
    }
    let none = look(Value::Null).await.unwrap_err().say;
    assert!(none.contains("capacity"), "{none}");
}
