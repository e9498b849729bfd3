//! Every body that the adapter sends, kept where clients made by others read it with models of their own.

use poolkeeper::act::ChangeCloud;
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::ids::{InstanceId, Revision};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::machine::Protection;
use serde_json::{Map, Value, json};

use crate::golden::golden;
use crate::kit::{Kit, Sheet, alone, expect, kit, machine, set, target, usual};
use crate::server::{Heard, Says};

async fn answering(set: Value, machines: Value) -> Kit {
    let kit = kit(move |heard: &Heard| match () {
        () if heard.verb != "GET" => Says::status(202, ""),
        () if heard.target.contains("/web/virtualMachines/") => {
            alone(heard, machines.as_array().unwrap()).unwrap()
        }
        () if heard.target.contains("/virtualMachines?") => Says::json(&json!({"value": machines})),
        () if heard.target.contains("userData") => Says::json(&set),
        () => usual(heard),
    })
    .await;
    kit.look().await.unwrap();
    kit
}

/// What was written last.
fn body(kit: &Kit) -> Value {
    let heard = kit.server.heard();
    heard.iter().rfind(|heard| heard.verb != "GET").unwrap().json()
}

async fn of_a_uniform_set(sent: &mut Map<String, Value>) {
    let mut outdated = machine(1);
    outdated["properties"]["latestModelApplied"] = json!(false);
    let kit = answering(set(), json!([machine(0), outdated])).await;
    let (azure, sheet) = (&kit.azure, Sheet::new());
    let order = sheet.order();
    let expect = expect(&kit.look().await.unwrap().set.revision, Some("\"7\""));
    let _ = azure.raise(&order, 2, 5, &expect).await;
    sent.insert("raise".into(), body(&kit));
    let fields = ModelFields {
        image: Some("p:o:s:2.0".into()),
        vm_size: Some("Standard_D4s_v3".into()),
        tags: [("stage".into(), "two".into())].into(),
    };
    let _ = azure.update_model(&order, &fields, WriteScope::Image, &expect).await;
    sent.insert("model".into(), body(&kit));
    let _ = azure.delete(&order, &[target("0"), target("1")], true).await;
    sent.insert("delete".into(), body(&kit));
    let _ = azure.reimage(&order, &[target("1")], &Revision::new("r")).await;
    sent.insert("upgrade".into(), body(&kit));
    let _ = azure.reimage(&order, &[target("0")], &Revision::new("r")).await;
    sent.insert("reimage".into(), body(&kit));
    let _ = azure.restore(&order, &[target("0")]).await;
    sent.insert("start".into(), body(&kit));
    let _ = azure.deallocate(&order, &[target("0")]).await;
    sent.insert("deallocate".into(), body(&kit));
    let _ = azure.protect(&order, &target("0"), Protection::All).await;
    sent.insert("protect".into(), body(&kit));
}

/// On hosts of its own kind: disks that are asked to take the model.
async fn of_local_disks(sent: &mut Map<String, Value>) {
    let mut local = set();
    local["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
        json!({"diffDiskSettings": {"option": "Local"}});
    let kit = answering(local.clone(), json!([machine(0)])).await;
    let sheet = Sheet::new();
    let _ = kit.azure.reimage(&sheet.order(), &[target("0")], &Revision::new("r")).await;
    sent.insert("reimageLocalDisk".into(), body(&kit));
    local["properties"]["orchestrationMode"] = json!("Flexible");
    let mut vm = machine(0);
    vm["name"] = json!("web_0000000a");
    vm["properties"]["virtualMachineScaleSet"] = json!({"id": crate::kit::SET});
    let kit = answering(local, json!([vm])).await;
    let one =
        [poolkeeper::model::action::Target { id: InstanceId::new("web_0000000a"), ..target("0") }];
    let _ = kit.azure.reimage(&sheet.order(), &one, &Revision::new("r")).await;
    sent.insert("reimageVm".into(), body(&kit));
}

#[tokio::test]
async fn all_that_is_sent_is_as_it_was_agreed() {
    let mut sent = Map::new();
    of_a_uniform_set(&mut sent).await;
    of_local_disks(&mut sent).await;
    let text = serde_json::to_string_pretty(&Value::Object(sent)).unwrap();
    golden("azure/sent.json", &format!("{text}\n"));
}
