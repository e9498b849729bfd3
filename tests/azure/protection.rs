//! Protection of Flexible VMs: Azure shows it at `{set}/virtualMachines/{name}` alone, and an unknown one stops every removal.

use std::sync::{Arc, Mutex};

use poolkeeper::act::CallOutcome;
use poolkeeper::model::action::{RemovalReason, Target};
use poolkeeper::model::ids::{InstanceId, VmId};
use poolkeeper::model::inventory::Inventory;
use poolkeeper::model::journal::{CHANGED_SINCE_READ, Refusal};
use poolkeeper::model::machine::Protection;
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use crate::azure::kit::{Changes, Kit, SET, START, Sheet, kit, machine, paced_kit, set, usual};
use crate::azure::server::{Heard, Says};

/// What GET `{set}/virtualMachines/{name}` answers, by name. A name without an answer is a VM without a policy.
type Members = Arc<Mutex<Vec<(&'static str, Says)>>>;

fn vm(n: u32) -> Value {
    let mut row = machine(n);
    row["name"] = json!(format!("web_{n:08}"));
    row["instanceId"] = Value::Null;
    row["properties"]["latestModelApplied"] = Value::Null;
    row["properties"]["virtualMachineScaleSet"] = json!({"id": SET});
    row
}

fn member(n: u32, policy: Value) -> Says {
    let mut shown = vm(n);
    shown["properties"]["protectionPolicy"] = policy;
    Says::json(&shown)
}

const SCALE_IN: fn() -> Value = || json!({"protectFromScaleIn": true});
const ALL: fn() -> Value =
    || json!({"protectFromScaleIn": true, "protectFromScaleSetActions": true});

async fn flexible(machines: u32, members: &Members) -> Kit {
    kit(flexible_set(machines, members)).await
}

fn flexible_set(
    machines: u32,
    members: &Members,
) -> impl Fn(&Heard) -> Says + Send + Sync + 'static {
    let members = Arc::clone(members);
    move |heard: &Heard| {
        let single = heard.target.split("/web/virtualMachines/").nth(1);
        if heard.verb != "GET" {
            return Says::status(202, "");
        }
        if let Some(name) = single.and_then(|rest| rest.split('?').next()) {
            let all = members.lock().unwrap();
            let known = all.iter().find(|(known, _)| *known == name).map(|(_, says)| says.clone());
            let number = name.trim_start_matches("web_").parse().unwrap();
            return known.unwrap_or_else(|| Says::json(&vm(number)));
        }
        if heard.target.contains("Compute/virtualMachines?") {
            let rows: Vec<Value> = (0..machines).map(vm).collect();
            return Says::json(&json!({ "value": rows }));
        }
        if heard.target.contains("autoscale") {
            return usual(heard);
        }
        let mut shown = set();
        shown["properties"]["orchestrationMode"] = json!("Flexible");
        shown["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
            json!({"diffDiskSettings": {"option": "Local"}});
        Says::json(&shown)
    }
}

fn protections(seen: &Inventory) -> Vec<Protection> {
    seen.instances.iter().map(|row| row.protection).collect()
}

fn reads(kit: &Kit) -> usize {
    kit.server.count("GET", "/web/virtualMachines/web_")
}

fn named(n: u32) -> Target {
    let (id, vm) = (InstanceId::new(format!("web_{n:08}")), Some(VmId::new(format!("0000-{n}"))));
    Target { id, vm, created: START, because: RemovalReason::Outdated }
}

fn is_changed(answer: &CallOutcome) -> bool {
    matches!(answer, CallOutcome::Refused(no) if no.refusal == Refusal::Conflict
        && no.code.as_deref() == Some(CHANGED_SINCE_READ))
}

#[tokio::test]
async fn it_is_read_where_azure_shows_it_once_a_machine() {
    let members = Members::default();
    *members.lock().unwrap() =
        vec![("web_00000000", member(0, SCALE_IN())), ("web_00000001", member(1, ALL()))];
    let kit = paced_kit(flexible_set(4, &members)).await;
    let seen = kit.look().await.unwrap();
    let expected = [Protection::ScaleIn, Protection::All, Protection::None, Protection::None];
    assert_eq!(protections(&seen), expected);
    assert!(seen.set.complete && seen.gaps.is_empty(), "{:?}", seen.gaps);
    assert_eq!(reads(&kit), 4);
    assert!(kit.charged().contains(&("readMachine", 4)), "{:?}", kit.charged());
    assert_eq!(protections(&kit.look().await.unwrap()), expected);
    assert_eq!(reads(&kit), 4, "once a machine");
    // Protection that was taken off is seen after a while; what has none is not read again.
    members.lock().unwrap().clear();
    kit.clock.pass(Span::minutes(5));
    assert_eq!(protections(&kit.look().await.unwrap()), [Protection::None; 4]);
    assert_eq!(reads(&kit), 6);
}

#[tokio::test]
async fn what_cannot_be_read_is_unknown_and_said() {
    let members = Members::default();
    let denied = Says::fault(403, "AuthorizationFailed", "does not have authorization");
    members.lock().unwrap().push(("web_00000000", denied));
    let kit = flexible(1, &members).await;
    let seen = kit.look().await.unwrap();
    assert_eq!(protections(&seen), [Protection::Unknown]);
    assert_eq!(&*seen.gaps[0].what, "instance protection");
    assert!(seen.gaps[0].why.contains("AuthorizationFailed"), "{:?}", seen.gaps);
    assert!(seen.set.complete, "the machines are all there");
    let seen = kit.look().await.unwrap();
    assert_eq!(reads(&kit), 1, "not asked again at once");
    assert_eq!(&*seen.gaps[0].why, "of 1 VMs it is read after a later listing");
    kit.clock.pass(Span::minutes(1));
    members.lock().unwrap().clear();
    let seen = kit.look().await.unwrap();
    assert_eq!((protections(&seen), seen.gaps.len()), (vec![Protection::None], 0));
}

#[tokio::test]
async fn one_refusal_stops_the_reads_of_a_look() {
    let members = Members::default();
    let names = ["web_00000000", "web_00000001", "web_00000002", "web_00000003"];
    let denied = || Says::fault(403, "AuthorizationFailed", "no");
    *members.lock().unwrap() = names.iter().map(|name| (*name, denied())).collect();
    let kit = flexible(100, &members).await;
    let seen = kit.look().await.unwrap();
    assert!(reads(&kit) < 40, "{}", reads(&kit));
    assert!(protections(&seen).contains(&Protection::Unknown));
    // A machine that is gone stops nothing.
    let gone = Says::fault(404, "NotFound", "gone").with("x-ms-request-id", "1");
    *members.lock().unwrap() = vec![("web_00000000", gone)];
    kit.clock.pass(Span::minutes(2));
    let seen = protections(&kit.look().await.unwrap());
    assert_eq!(seen.iter().filter(|shown| **shown == Protection::None).count(), 99, "{seen:?}");
}

#[tokio::test]
async fn a_machine_that_became_protected_is_not_deleted() {
    let members = Members::default();
    let kit = flexible(3, &members).await;
    assert_eq!(protections(&kit.look().await.unwrap()), [Protection::None; 3]);
    members.lock().unwrap().push(("web_00000001", member(1, SCALE_IN())));
    let sheet = Sheet::new();
    let answer = kit.azure.delete(&sheet.order(), &[named(0), named(1)], false).await;
    assert!(is_changed(&answer), "{answer:?}");
    assert_eq!(kit.server.count("POST", ""), 0);
    let expected = [Protection::None, Protection::ScaleIn, Protection::None];
    assert_eq!(protections(&kit.look().await.unwrap()), expected, "and it is known from then on");
    let before = reads(&kit);
    let answer = kit.azure.delete(&sheet.order(), &[named(0), named(2)], false).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!((kit.server.count("POST", "/delete"), reads(&kit) - before), (1, 2));
}

#[tokio::test]
async fn what_cannot_be_read_right_before_is_not_deleted() {
    for (says, expected) in [
        (Says::Nothing, CallOutcome::NotSent),
        (Says::status(500, "{}"), CallOutcome::NotSent),
        (Says::status(200, "<html>"), CallOutcome::NotSent),
        (Says::json(&json!({"name": "web_00000000"})), CallOutcome::NotSent),
    ] {
        let members = Members::default();
        let kit = flexible(1, &members).await;
        let _ = kit.look().await.unwrap();
        members.lock().unwrap().push(("web_00000000", says));
        let answer = kit.azure.delete(&Sheet::new().order(), &[named(0)], true).await;
        assert_eq!(answer, expected);
        assert_eq!(kit.server.count("POST", ""), 0);
    }
    let refusals = [
        (Says::fault(403, "AuthorizationFailed", "no"), Refusal::Forbidden),
        (Says::fault(404, "NotFound", "gone").with("x-ms-request-id", "1"), Refusal::Conflict),
        // Another machine has the name by now.
        (member(7, Value::Null), Refusal::Conflict),
    ];
    for (says, expected) in refusals {
        let members = Members::default();
        let kit = flexible(1, &members).await;
        members.lock().unwrap().push(("web_00000000", says));
        // Nothing is known of the set: it may be a Flexible one.
        let answer = kit.azure.delete(&Sheet::new().order(), &[named(0)], false).await;
        assert!(
            matches!(&answer, CallOutcome::Refused(no) if no.refusal == expected),
            "{answer:?}"
        );
        assert_eq!(kit.server.count("POST", ""), 0);
    }
}

#[tokio::test]
async fn an_update_is_stopped_by_protection_from_all_alone() {
    let members = Members::default();
    let kit = flexible(2, &members).await;
    let _ = kit.look().await.unwrap();
    *members.lock().unwrap() =
        vec![("web_00000000", member(0, SCALE_IN())), ("web_00000001", member(1, ALL()))];
    let sheet = Sheet::new();
    assert!(is_changed(&kit.azure.reimage(&sheet.order(), &[named(1)]).await));
    assert_eq!(kit.server.count("POST", ""), 0);
    let answer = kit.azure.reimage(&sheet.order(), &[named(0)]).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!(kit.server.count("POST", ""), 1);
}

#[tokio::test]
async fn machines_of_a_uniform_set_cost_no_reads_of_their_own() {
    let kit = kit(|heard: &Heard| match heard.verb.as_str() {
        "GET" => usual(heard),
        _ => Says::status(202, ""),
    })
    .await;
    assert_eq!(protections(&kit.look().await.unwrap()), [Protection::None; 2]);
    let target = crate::azure::kit::target("0");
    let target =
        Target { vm: None, created: kit.look().await.unwrap().instances[0].created, ..target };
    let answer = kit.azure.delete(&Sheet::new().order(), &[target], false).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!(kit.server.count("GET", "/web/virtualMachines/"), 0);
}
