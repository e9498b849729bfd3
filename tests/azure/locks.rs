//! Management locks: one list for all sets of a group, protection for what a lock covers, one more read before a removal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolkeeper::act::CallOutcome;
use poolkeeper::model::ids::ScaleSetId;
use poolkeeper::model::inventory::{LOCKS, Lock, LockLevel};
use poolkeeper::model::journal::{CHANGED_SINCE_READ, Refusal};
use poolkeeper::model::machine::Protection;
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadCloud;
use serde_json::{Value, json};

use crate::azure::kit::{
    Changes, Kit, Pacing, Purse, SET, Sheet, asks_for_locks, kit_and_locks, machine, set, target,
    usual,
};
use crate::azure::server::{Heard, Says};

const SUBSCRIPTION: &str = "/subscriptions/sub";
const GROUP: &str = "/subscriptions/sub/resourceGroups/RG";

/// What the list of the group answers now.
type Now = Arc<Mutex<Says>>;

fn now(says: Says) -> Now {
    Arc::new(Mutex::new(says))
}

fn lock(scope: &str, level: &str) -> Value {
    json!({"id": format!("{scope}/providers/Microsoft.Authorization/locks/keep"), "name": "keep",
        "type": "Microsoft.Authorization/locks", "properties": {"level": level, "notes": "x"}})
}

fn list(locks: &[Value]) -> Says {
    Says::json(&json!({ "value": locks }))
}

async fn kit_of(now: &Now, says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Kit {
    let now = Arc::clone(now);
    let says = move |heard: &Heard| match heard.verb.as_str() {
        "GET" if asks_for_locks(heard) => now.lock().unwrap().clone(),
        "GET" => says(heard),
        _ => Says::status(202, ""),
    };
    kit_and_locks(Purse::default(), Pacing::Off, Duration::from_secs(5), says).await
}

async fn kit(now: &Now) -> Kit {
    kit_of(now, usual).await
}

fn reads(kit: &Kit) -> usize {
    kit.server.count("GET", "/providers/Microsoft.Authorization/locks?")
}

async fn protections(kit: &Kit) -> Vec<Protection> {
    kit.look().await.unwrap().instances.iter().map(|row| row.protection).collect()
}

fn is_changed(answer: &CallOutcome) -> bool {
    matches!(answer, CallOutcome::Refused(no) if no.refusal == Refusal::Conflict
        && no.code.as_deref() == Some(CHANGED_SINCE_READ))
}

#[tokio::test]
async fn a_lock_protects_what_it_covers() {
    use Protection::{All, None, ScaleIn};
    let one = format!("{SET}/virtualMachines/1");
    for (locks, expected) in [
        (vec![], [None, None]),
        (vec![lock(SET, "CanNotDelete")], [ScaleIn, ScaleIn]),
        (vec![lock(GROUP, "ReadOnly")], [All, All]),
        (vec![lock(SUBSCRIPTION, "canNotDelete")], [ScaleIn, ScaleIn]),
        (vec![lock(&one, "CanNotDelete")], [None, ScaleIn]),
        (vec![lock(&one, "ReadOnly"), lock(SET, "CanNotDelete")], [ScaleIn, All]),
        // Of others, or of nothing: it says nothing of ours.
        (vec![lock(&format!("{SET}-2"), "ReadOnly")], [None, None]),
        (vec![lock(&format!("{SET}/virtualMachines/7"), "ReadOnly")], [None, None]),
        (
            vec![lock(
                &format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/1"),
                "ReadOnly",
            )],
            [None, None],
        ),
        (
            vec![lock(
                &format!("{GROUP}/providers/Microsoft.Network/virtualNetworks/v"),
                "ReadOnly",
            )],
            [None, None],
        ),
        (vec![lock(SET, "NotSpecified"), json!({"name": "bare"})], [None, None]),
        // A level of which nobody knows is the strictest.
        (vec![lock(SET, "CanNotBreathe")], [All, All]),
    ] {
        let kit = kit(&now(list(&locks))).await;
        let seen = kit.look().await.unwrap();
        let shown: Vec<Protection> = seen.instances.iter().map(|row| row.protection).collect();
        assert_eq!(shown, expected, "{locks:?}");
        let told = seen.set.locks.len();
        assert_eq!(told > 0, expected != [None, None], "{:?}", seen.set.locks);
        assert!(seen.set.complete && seen.gaps.is_empty(), "{:?}", seen.gaps);
    }
}

#[tokio::test]
async fn the_stronger_of_a_lock_and_the_own_policy_counts() {
    let kit = kit_of(&now(list(&[lock(SET, "CanNotDelete")])), |heard| {
        if !heard.is("GET", "/virtualMachines?") {
            return usual(heard);
        }
        let mut rows = [machine(0), machine(1)];
        rows[0]["properties"]["protectionPolicy"] =
            json!({"protectFromScaleIn": true, "protectFromScaleSetActions": true});
        Says::json(&json!({ "value": rows }))
    })
    .await;
    assert_eq!(protections(&kit).await, [Protection::All, Protection::ScaleIn]);
    let seen = kit.look().await.unwrap();
    let lock = seen.set.lock().unwrap();
    assert_eq!((&*lock.name, lock.level, lock.scope()), ("keep", LockLevel::CanNotDelete, SET));
}

#[tokio::test]
async fn a_vm_of_a_flexible_set_has_two_ids_that_may_be_locked() {
    let vms = format!("{GROUP}/providers/microsoft.compute/virtualmachines");
    let locks = [
        lock(&format!("{vms}/WEB_00000000"), "CanNotDelete"),
        lock(&format!("{SET}/virtualMachines/web_00000001"), "ReadOnly"),
        lock(&format!("{vms}/other"), "ReadOnly"),
    ];
    let kit = kit_of(&now(list(&locks)), |heard| {
        let row = |n: u32| {
            let mut row = machine(n);
            row["name"] = json!(format!("web_{n:08}"));
            row["properties"]["virtualMachineScaleSet"] = json!({"id": SET});
            row
        };
        let rows = [row(0), row(1), row(2)];
        if let Some(alone) = crate::azure::kit::alone(heard, &rows) {
            return alone;
        }
        if heard.target.contains("Compute/virtualMachines?") {
            return Says::json(&json!({ "value": rows }));
        }
        if heard.target.contains("autoscale") {
            return usual(heard);
        }
        let mut shown = set();
        shown["properties"]["orchestrationMode"] = json!("Flexible");
        Says::json(&shown)
    })
    .await;
    use Protection::{All, None, ScaleIn};
    assert_eq!(protections(&kit).await, [ScaleIn, All, None]);
    assert_eq!(kit.look().await.unwrap().set.lock(), Option::None, "none covers all of them");
}

#[tokio::test]
async fn the_list_is_read_once_a_quarter_of_an_hour_for_a_group_page_by_page() {
    let next = Arc::new(Mutex::new(String::new()));
    let link = Arc::clone(&next);
    let says = move |heard: &Heard| match (asks_for_locks(heard), heard.target.contains("page=2")) {
        (true, false) => {
            let next = link.lock().unwrap().clone();
            Says::json(&json!({"value": [lock(SUBSCRIPTION, "CanNotDelete")], "nextLink": next}))
        }
        (true, true) => list(&[lock(SET, "ReadOnly")]),
        _ => usual(heard),
    };
    let kit = kit_and_locks(Purse::default(), Pacing::On, Duration::from_secs(5), says).await;
    let group = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Authorization/locks";
    *next.lock().unwrap() = format!("{}{group}?api-version=2020-05-01&page=2", kit.server.base);
    assert_eq!(protections(&kit).await, [Protection::All; 2]);
    assert_eq!(reads(&kit), 2, "two pages");
    let other = ScaleSetId::new(SET.replace("/rg/", "/RG/").replace("/web", "/api"));
    let beside = kit.azure.list(&other).await.unwrap();
    let names: Vec<&Lock> = beside.set.locks.iter().collect();
    assert_eq!((names.len(), reads(&kit)), (1, 2), "the subscription's alone covers it: {names:?}");
    kit.clock.pass(Span::minutes(14));
    let _ = kit.look().await.unwrap();
    assert_eq!(reads(&kit), 2);
    kit.clock.pass(Span::minutes(1));
    let _ = kit.look().await.unwrap();
    assert_eq!(reads(&kit), 4);
    let autoscale = kit.server.count("GET", "/autoscalesettings") as u64;
    assert!(kit.charged().contains(&("readOther", 4 + autoscale)), "{:?}", kit.charged());
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_stops_nothing() {
    let now = now(Says::fault(403, "AuthorizationFailed", "no"));
    let kit = kit(&now).await;
    let seen = kit.look().await.unwrap();
    assert!(seen.set.complete && seen.set.locks.is_empty());
    let gap = &seen.gaps[0];
    assert_eq!((&*gap.what, seen.gaps.len()), (LOCKS, 1));
    assert!(gap.why.contains("Microsoft.Authorization/locks/read"), "{gap:?}");
    assert!(gap.why.contains("AuthorizationFailed"), "{gap:?}");
    let answer = kit.azure.delete(&Sheet::new().order(), &[own(&kit).await], false).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!(reads(&kit), 1, "not asked again at once");
    // What was known counts on while the list fails, but not where we may not see it any more.
    *now.lock().unwrap() = list(&[lock(SET, "CanNotDelete")]);
    kit.clock.pass(Span::minutes(1));
    assert_eq!(protections(&kit).await, [Protection::ScaleIn; 2]);
    *now.lock().unwrap() = Says::status(500, "{}");
    kit.clock.pass(Span::minutes(15));
    let seen = kit.look().await.unwrap();
    assert_eq!((seen.set.locks.len(), &*seen.gaps[0].what), (1, LOCKS));
    *now.lock().unwrap() = Says::fault(403, "AuthorizationFailed", "no");
    kit.clock.pass(Span::minutes(1));
    assert_eq!(protections(&kit).await, [Protection::None; 2]);
}

async fn own(kit: &Kit) -> poolkeeper::model::action::Target {
    let seen = kit.look().await.unwrap();
    poolkeeper::model::action::Target { created: seen.instances[0].created, ..target("0") }
}

#[tokio::test]
async fn a_lock_that_is_new_is_seen_right_before_a_removal() {
    let elsewhere = format!("{GROUP}/providers/Microsoft.Network/virtualNetworks/v");
    let now = now(list(&[lock(&elsewhere, "CanNotDelete")]));
    let kit = kit(&now).await;
    let (target, sheet) = (own(&kit).await, Sheet::new());
    let answer = kit.azure.delete(&sheet.order(), std::slice::from_ref(&target), false).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!((reads(&kit), kit.server.count("POST", "/delete")), (2, 1));
    *now.lock().unwrap() = list(&[lock(SET, "CanNotDelete")]);
    let answer = kit.azure.delete(&sheet.order(), std::slice::from_ref(&target), false).await;
    assert!(is_changed(&answer), "{answer:?}");
    assert_eq!((reads(&kit), kit.server.count("POST", "/delete")), (3, 1));
    // An update takes nothing away, so that lock lets it pass; a stricter one does not.
    let targets = [target];
    let answer = kit.azure.reimage(&sheet.order(), &targets).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    *now.lock().unwrap() = list(&[lock(&format!("{SET}/virtualMachines/0"), "ReadOnly")]);
    assert!(is_changed(&kit.azure.reimage(&sheet.order(), &targets).await));
    assert_eq!(protections(&kit).await, [Protection::All, Protection::None], "and it is known");
    assert_eq!(kit.server.count("POST", ""), 2);
}

#[tokio::test]
async fn in_a_group_without_locks_a_removal_costs_no_read_of_them() {
    let kit = kit(&now(list(&[]))).await;
    let target = own(&kit).await;
    let answer = kit.azure.delete(&Sheet::new().order(), &[target], false).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!(reads(&kit), 1);
}
