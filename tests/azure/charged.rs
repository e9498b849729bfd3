//! Each call of the adapter, and the operations it is charged to. The words are those of the metrics.

use poolkeeper::act::{CallOutcome, ChangeCloud};
use poolkeeper::adapters::azure::auth::AuthError;
use poolkeeper::model::action::{Target, WriteScope};
use poolkeeper::model::ids::{InstanceId, StoreId};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::OperationUrl;
use poolkeeper::model::owner::{OwnerTag, OwnerWrite};
use poolkeeper::pace::{Counts, PacedOperation};
use serde_json::{Value, json};

use crate::azure::kit::{
    Changes, Kit, Pacing, Purse, SET, START, Sheet, alone, expect, kit_and_locks, machine,
    paced_kit, set, set_id, target, usual,
};
use crate::azure::server::{Heard, Says};

const IMAGE: &str =
    "/subscriptions/sub/resourceGroups/g/providers/Microsoft.Compute/galleries/G/images/I";

/// What was charged since the last time, such as `readSet 2×readOther`.
struct Charges<'a> {
    kit: &'a Kit,
    before: Counts,
}

impl<'a> Charges<'a> {
    fn of(kit: &'a Kit) -> Self {
        Self { kit, before: Counts::default() }
    }

    fn are(&mut self, call: &str, expected: &str) {
        let now = self.kit.pacer().counts();
        let sent = PacedOperation::ALL.into_iter().filter_map(|operation| {
            let name = operation.name();
            match now.of(operation).made - self.before.of(operation).made {
                0 => None,
                1 => Some(name.to_owned()),
                many => Some(format!("{many}×{name}")),
            }
        });
        assert_eq!(sent.collect::<Vec<_>>().join(" "), expected, "{call}");
        self.before = now;
    }
}

/// A Uniform set of two pages, whose second machine is not on the model. No role allows to write tags alone.
fn uniform(heard: &Heard) -> Says {
    let host = heard.header("host").unwrap();
    let no_rows = Says::json(&json!({"value": []}));
    match () {
        () if heard.target.contains("Microsoft.Resources/tags") => {
            Says::fault(403, "AuthorizationFailed", "m")
        }
        () if heard.verb != "GET" => {
            let operation = format!("http://{host}/subscriptions/sub/operations/o");
            Says::status(202, "").with("Azure-AsyncOperation", &operation)
        }
        () if heard.target.contains("/operations/") => Says::json(&json!({"status": "InProgress"})),
        () if heard.target.contains("/skus") => Says::json(&json!({"value": [
            {"resourceType": "virtualMachines", "name": "Standard_D2s_v3", "family": "f",
                "capabilities": [{"name": "vCPUs", "value": "2"}]}]})),
        () if heard.target.contains("/usages") || heard.target.contains("/versions") => no_rows,
        () if heard.target.contains("/permissions") => no_rows,
        () if heard.target.contains("page=2") => {
            let mut outdated = machine(1);
            outdated["properties"]["latestModelApplied"] = json!(false);
            Says::json(&json!({"value": [outdated]}))
        }
        () if heard.target.contains("/virtualMachines?") => {
            let next = format!("http://{host}{SET}/virtualMachines?page=2");
            Says::json(&json!({"value": [machine(0)], "nextLink": next}))
        }
        () => usual(heard),
    }
}

async fn accepted(answer: impl Future<Output = CallOutcome>) -> Option<OperationUrl> {
    match answer.await {
        CallOutcome::Accepted(operation) => operation,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn reads_are_charged_to_their_operations() {
    let kit = paced_kit(uniform).await;
    let mut charges = Charges::of(&kit);
    kit.look().await.unwrap();
    charges.are("list", "readSet list nextPage 2×readOther");
    kit.azure.anatomy(&set_id()).await.unwrap();
    charges.are("anatomy", "readSet");
    kit.azure.quota(&set_id()).await;
    charges.are("quota", "2×readOther");
    kit.azure.followed(IMAGE, &set_id()).await;
    charges.are("followed", "readOther");
    kit.azure.permissions(SET).await.unwrap();
    charges.are("permissions", "readOther");
}

#[tokio::test]
async fn changes_of_a_uniform_set_are_charged_to_their_operations() {
    let kit = paced_kit(uniform).await;
    let (azure, sheet, mut charges) = (&kit.azure, Sheet::new(), Charges::of(&kit));
    let order = sheet.order();
    let revision = kit.look().await.unwrap().set.revision;
    charges.are("list", "readSet list nextPage 2×readOther");
    let expect = expect(&revision, Some("\"7\""));
    let operation = accepted(azure.raise(&order, 2, 3, &expect)).await.unwrap();
    charges.are("raise", "readSet raise");
    azure.poll(&set_id(), &operation).await;
    charges.are("poll", "poll");
    let tags = [("new".into(), "x".into())].into();
    let fields = ModelFields { tags, ..ModelFields::default() };
    accepted(azure.update_model(&order, &fields, WriteScope::Image, &expect)).await;
    charges.are("update_model", "updateModel");
    accepted(azure.delete(&order, &[target("0")], false)).await;
    charges.are("delete", "delete");
    accepted(azure.reimage(&order, &[target("0")])).await;
    charges.are("reimage of a machine on the model", "reimage");
    accepted(azure.reimage(&order, &[target("1")])).await;
    charges.are("reimage of a machine that is not", "upgrade");
    accepted(azure.restore(&order, &[target("1")])).await;
    charges.are("restore", "start");
    accepted(azure.standby(&order, &[target("1")])).await;
    charges.are("standby", "deallocate");
    let tag = OwnerTag { store: StoreId::new("aa"), since: START };
    accepted(azure.tag_owner(&order, &OwnerWrite::Put { tag, over: None })).await;
    charges.are("tag_owner, which may not write tags alone", "readSet updateModel writeOther");
}

#[tokio::test]
async fn calls_to_a_flexible_set_are_charged_to_their_operations() {
    let vms: Vec<Value> = [("web_0000000a", 0), ("web_0000000b", 1)].map(flexible_vm).into();
    let kit = paced_kit(move |heard| {
        if let Some(alone) = alone(heard, &vms).filter(|_| heard.verb == "GET") {
            return alone;
        }
        match () {
            () if heard.verb != "GET" => Says::status(202, ""),
            () if heard.target.contains("/virtualMachines?") => Says::json(&json!({"value": vms})),
            () if heard.target.contains("userData") => {
                let mut shown = set();
                shown["properties"]["orchestrationMode"] = json!("Flexible");
                Says::json(&shown)
            }
            () => usual(heard),
        }
    })
    .await;
    let (azure, sheet, mut charges) = (&kit.azure, Sheet::new(), Charges::of(&kit));
    let order = sheet.order();
    let one = [Target { id: InstanceId::new("web_0000000a"), ..target("0") }];
    kit.look().await.unwrap();
    charges.are("list", "readSet 2×readMachine listVms 2×readOther");
    accepted(azure.delete(&order, &one, false)).await;
    charges.are("delete", "readMachine delete");
    accepted(azure.restore(&order, &one)).await;
    charges.are("restore", "updateMachine");
    accepted(azure.standby(&order, &one)).await;
    charges.are("standby", "readMachine updateMachine");
}

fn flexible_vm((name, n): (&str, u32)) -> Value {
    let mut vm = machine(n);
    vm["name"] = json!(name);
    vm["properties"]["virtualMachineScaleSet"] = json!({"id": SET});
    vm["properties"].as_object_mut().unwrap().remove("latestModelApplied");
    vm
}

#[tokio::test]
async fn what_a_listing_cost_is_what_the_next_one_is_charged() {
    let kit = paced_kit(|heard| match heard.is("GET", "/virtualMachines?") {
        true => usual(heard).with("x-ms-request-charge", "8"),
        false => usual(heard),
    })
    .await;
    let mut spent = Vec::new();
    for _ in 0..2 {
        kit.look().await.unwrap();
        let limits = kit.pacer().limits();
        let views = "VMScaleSetVMViewsSubscriptionMaximum";
        let views = limits.iter().find(|limit| &*limit.name == views).unwrap();
        spent.push(views.most - views.left);
    }
    assert_eq!(spent, [1, 1 + 8]);
}

#[tokio::test]
async fn a_call_without_a_token_is_charged_to_none() {
    let purse = Purse { empty: Some(AuthError { tried: Vec::new() }), ..Purse::default() };
    let patience = std::time::Duration::from_secs(5);
    let kit = kit_and_locks(purse, Pacing::On, patience, usual).await;
    kit.look().await.unwrap_err();
    Charges::of(&kit).are("list", "");
}
