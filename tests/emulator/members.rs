//! VMs of both kinds of sets.

use serde_json::{Value, json};

use super::support::*;

fn vm(id: &str) -> String {
    format!("{SET}/virtualMachines/{id}")
}

#[test]
fn vms_come_in_pages_with_or_without_their_view() {
    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "web", "capacity": 7, "zones": ["1", "2"] }],
        "settings": { "pageSize": 3 } }));
    let first =
        client.get(&format!("{SET}/virtualMachines?$expand=instanceView")).expect(200).json();
    let next = first["nextLink"].as_str().unwrap();
    assert!(next.starts_with("http://localhost:1/") && next.contains("api-version=2024-07-01"));
    let all = client.items(&format!("{SET}/virtualMachines?{VERSION}&$expand=instanceView"));
    assert_eq!(client.ids(), ["0", "1", "2", "3", "4", "5", "6"]);
    let one = &all[4];
    assert_eq!((one["name"].as_str(), one["zones"].clone()), (Some("web_4"), json!(["1"])));
    let view = &one["properties"]["instanceView"];
    let codes: Vec<&str> =
        view["statuses"].as_array().unwrap().iter().map(|s| s["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["ProvisioningState/succeeded", "PowerState/running"]);
    assert_eq!(view["vmHealth"]["status"]["code"], "HealthState/healthy");
    assert_eq!(view["vmAgent"]["statuses"][0]["displayStatus"], "Ready");
    assert_eq!(one["properties"]["osProfile"]["computerName"], "web000004");
    let plain = client.items(&format!("{SET}/virtualMachines?{VERSION}"));
    assert!(plain.iter().all(|vm| vm["properties"].get("instanceView").is_none()));
    let bad = client.get(&format!("{SET}/virtualMachines?$skiptoken=zzz")).expect(400);
    assert_eq!(bad.json()["error"]["target"], "$skiptoken");
    let old = client.get(&format!("{SET}/virtualMachines?$skiptoken=fff-0")).expect(400);
    assert_eq!(old.code(), "InvalidParameter");
}

#[test]
fn keys_of_a_vm_are_in_the_order_of_the_wire() {
    let client = Client::web();
    let text = client.get(&vm("0")).expect(200).text;
    let at = |key: &str| text.find(key).unwrap_or_else(|| panic!("{key} in {text}"));
    let keys = [
        "\"name\"",
        "\"id\"",
        "\"type\"",
        "\"location\"",
        "\"instanceId\"",
        "\"sku\"",
        "\"properties\"",
        "\"etag\"",
    ];
    assert!(keys.windows(2).all(|two| at(two[0]) < at(two[1])), "{text}");
}

#[test]
fn the_disk_of_a_vm_says_how_it_was_made_where_the_set_says_nothing() {
    let client = Client::new(&json!({}));
    let mut body = wanted(1);
    let storage = &mut body["properties"]["virtualMachineProfile"]["storageProfile"];
    storage.as_object_mut().unwrap().remove("osDisk");
    client.ended(&client.put(SET, &body).expect(201));
    let vm = client.get(&vm("0")).expect(200).json();
    assert_eq!(vm["properties"]["storageProfile"]["osDisk"]["createOption"], "FromImage");
}

#[test]
fn one_vm_is_read_in_both_ways() {
    let client = Client::web();
    let plain = client.get(&vm("1")).expect(200).json();
    assert!(plain["properties"].get("instanceView").is_none());
    let with = client.get(&format!("{}?$expand=instanceView", vm("1"))).expect(200).json();
    let alone = client.get(&format!("{}/instanceView", vm("1"))).expect(200).json();
    assert_eq!(with["properties"]["instanceView"], alone);
    assert_eq!(client.get(&vm("99")).expect(404).code(), "NotFound");
    let odd = client.get(&vm("x")).expect(400);
    assert_eq!(odd.json()["error"]["target"], "instanceId");
    let none = client.get(&vm("99"));
    assert!(none.header("x-ms-failure-cause").is_none(), "the provider was asked");
    let missing = client.get(&SET.replace("/web", "/none")).expect(404);
    assert_eq!(missing.header("x-ms-failure-cause"), Some("gateway"));
}

#[test]
fn vms_are_deleted_and_the_size_goes_with_them() {
    let client = Client::web();
    let ids = json!({ "instanceIds": ["0", "2"] });
    let gone = client.post(&format!("{SET}/delete"), &ids).expect(202);
    assert_eq!(gone.header("x-ms-request-charge"), Some("2"));
    assert_eq!(client.ended(&gone)["status"], "Succeeded");
    assert_eq!(client.ids(), ["1"]);
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 1);
    let stale =
        client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["1", "0"] })).expect(400);
    let error = &stale.json()["error"];
    assert_eq!(
        (error["code"].as_str(), error["target"].as_str()),
        (Some("InvalidParameter"), Some("instanceIds"))
    );
    assert!(error["message"].as_str().unwrap().contains("instanceId 0 is not an active"));
    assert_eq!(client.ids(), ["1"], "one stale id refuses the batch");
    for body in
        [Value::Null, json!({}), json!({ "instanceIds": [] }), json!({ "instanceIds": ["*"] })]
    {
        client.post(&format!("{SET}/delete"), &body).expect(400);
    }
    let one = client.delete(&vm("1")).expect(202);
    assert_eq!(client.ended(&one)["status"], "Succeeded");
    client.delete(&vm("1")).expect(204);
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 0);
}

#[test]
fn vms_are_asked_to_do_things_alone_and_together() {
    let client = Client::web();
    let power = |id: &str| -> String {
        let view = client.get(&format!("{}/instanceView", vm(id))).expect(200).json();
        view["statuses"][1]["code"].as_str().unwrap().to_owned()
    };
    let all = client.post(&format!("{SET}/deallocate"), &Value::Null).expect(202);
    assert_eq!(power("0"), "PowerState/deallocating");
    assert_eq!(client.ended(&all)["status"], "Succeeded");
    assert_eq!([power("0"), power("2")], ["PowerState/deallocated"; 2]);
    client.post(&format!("{SET}/start"), &json!({ "instanceIds": ["0"] })).expect(202);
    client.post(&format!("{}/powerOff", vm("1")), &Value::Null).expect(202);
    client.wait(60);
    assert_eq!(
        [power("0"), power("1"), power("2")],
        ["PowerState/running", "PowerState/stopped", "PowerState/deallocated"]
    );
    for action in ["restart", "reimage", "reimageall", "redeploy", "start"] {
        client.post(&format!("{}/{action}", vm("0")), &Value::Null).expect(202);
        client.post(&format!("{SET}/{action}"), &json!({ "instanceIds": ["1"] })).expect(202);
        client.wait(60);
    }
    client.post(&format!("{SET}/manualupgrade"), &json!({ "instanceIds": ["*"] })).expect(202);
    client.post(&format!("{SET}/manualupgrade"), &Value::Null).expect(400);
    client.post(&format!("{}/simulateEviction", vm("0")), &Value::Null).expect(204);
    client.wait(5);
    assert_eq!(power("0"), "PowerState/deallocated");
    assert_eq!(
        client.post(&format!("{SET}/dance"), &Value::Null).expect(400).code(),
        "NotEmulated"
    );
}

#[test]
fn an_upgrade_brings_the_model_and_a_reimage_the_custom_data() {
    let client = Client::web();
    let vm_now = || client.get(&vm("0")).expect(200).json();
    let before = vm_now();
    let body = json!({ "properties": { "virtualMachineProfile": { "storageProfile": { "imageReference":
        { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "7.0.0" } } } } });
    client.patch(SET, &body).expect(200);
    client.wait(60);
    assert_eq!(vm_now()["properties"]["latestModelApplied"], false);
    client.post(&format!("{SET}/manualupgrade"), &json!({ "instanceIds": ["0"] })).expect(202);
    client.wait(60);
    let after = vm_now();
    assert_eq!(after["properties"]["latestModelApplied"], true);
    assert_eq!(after["properties"]["storageProfile"]["imageReference"]["exactVersion"], "7.0.0");
    assert_eq!(after["properties"]["vmId"], before["properties"]["vmId"]);
    let disk = |vm: &Value| vm["properties"]["storageProfile"]["osDisk"]["name"].clone();
    assert_ne!(disk(&after), disk(&before), "the disk was swapped");
}

#[test]
fn protection_is_written_and_kept() {
    let client = Client::web();
    let policy = |scale_in: bool, actions: bool| {
        json!({ "location": "eastus2", "tags": { "a": "b" }, "properties": { "protectionPolicy":
            { "protectFromScaleIn": scale_in, "protectFromScaleSetActions": actions } } })
    };
    assert!(client.get(&vm("0")).json()["properties"].get("protectionPolicy").is_none());
    let written = client.put(&vm("0"), &policy(true, true)).expect(200);
    assert_eq!(written.json()["properties"]["provisioningState"], "Updating");
    assert_eq!(client.ended(&written)["status"], "Succeeded");
    let vm0 = client.get(&vm("0")).json();
    assert_eq!(vm0["properties"]["protectionPolicy"]["protectFromScaleSetActions"], true);
    assert!(vm0.get("tags").is_none(), "tags of an instance do not stick");
    assert_eq!(vm0["etag"], "\"2\"");
    let target = format!("{}?{VERSION}", vm("0"));
    let late =
        client.ask("PUT", &target, &[("if-match", "\"1\"")], &policy(false, false)).expect(412);
    assert_eq!(late.code(), "PreconditionFailed");
    client.put(&vm("0"), &policy(false, true)).expect(400);
    let batch =
        client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["0", "1"] })).expect(409);
    assert_eq!(batch.code(), "OperationNotAllowed");
    client.delete(&vm("0")).expect(202);
}

#[test]
fn a_new_image_has_new_vms_that_fail_as_they_fail_there() {
    let client = Client::web();
    client.emulator.with_world(|world| {
        world.set_faults(poolkeeper::world::WorldFaults { boot_fails: 1.0, ..Default::default() });
    });
    let raise = client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    let end = client.ended(&raise);
    assert_eq!(
        (end["status"].as_str(), end["error"]["code"].as_str()),
        (Some("Failed"), Some("OSProvisioningInternalError"))
    );
    assert_eq!(end["error"]["target"], "3");
    let failed = client.get(&format!("{}?$expand=instanceView", vm("3"))).json();
    assert_eq!(failed["properties"]["provisioningState"], "Failed");
    let statuses = failed["properties"]["instanceView"]["statuses"].as_array().unwrap();
    assert_eq!(statuses.len(), 1, "no power state at all");
    assert_eq!(statuses[0]["code"], "ProvisioningState/failed/OSProvisioningInternalError");
    assert_eq!(client.get(SET).json()["properties"]["provisioningState"], "Failed");
}

const FLEX: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/flex";

#[test]
fn vms_of_a_flexible_set_are_resources() {
    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "flex", "flexible": true, "capacity": 5 }],
        "settings": { "pageSize": 2 } }));
    let group = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines");
    let filter = FLEX.replace('/', "%2F");
    let target = format!(
        "{group}?{VERSION}&$filter='virtualMachineScaleSet/id'%20eq%20'{filter}'&$expand=instanceView"
    );
    let vms = client.items(&target);
    assert_eq!(vms.len(), 5);
    let first = &vms[0];
    assert_eq!(first["type"], "Microsoft.Compute/virtualMachines");
    assert!(first["properties"].get("latestModelApplied").is_none());
    assert!(first["properties"]["instanceView"]["vmHealth"].is_object());
    let set_id = first["properties"]["virtualMachineScaleSet"]["id"].as_str().unwrap();
    assert!(set_id.eq_ignore_ascii_case(FLEX));
    let name = first["name"].as_str().unwrap().to_owned();
    let ids = client.items(&format!("{FLEX}/virtualMachines?{VERSION}"));
    assert!(ids.len() == 5 && ids[0].get("properties").is_none(), "ids and no more: {}", ids[0]);
    assert_eq!(
        client.get(&format!("{group}/{name}")).expect(200).json()["properties"]["vmId"],
        first["properties"]["vmId"]
    );
    client.get(&format!("{group}/{name}/instanceView")).expect(200);
    client.get(&format!("{FLEX}/instanceView")).expect(400);
    client.delete(&format!("{group}/{name}")).expect(202);
    client.wait(60);
    client.get(&format!("{group}/{name}")).expect(404);
    client.delete(&format!("{group}/{name}")).expect(204);
    assert_eq!(client.get(FLEX).json()["sku"]["capacity"], 5, "the number stays");
    let next = vms[1]["name"].clone();
    client.post(&format!("{FLEX}/delete"), &json!({ "instanceIds": [next] })).expect(202);
    assert_eq!(client.get(FLEX).json()["sku"]["capacity"], 4, "by batch it falls");
    client.get(&format!("{group}?$expand=instanceView")).expect(400);
    assert_eq!(client.get(&group).expect(200).json()["value"].as_array().unwrap().len(), 3);
}

#[test]
fn machines_of_a_uniform_set_are_no_resources_of_their_own() {
    let client = Client::web();
    let group = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines");
    let filter = SET.replace('/', "%2F");
    let listed = format!("{group}?{VERSION}&$filter='virtualMachineScaleSet/id'%20eq%20'{filter}'");
    assert_eq!(client.items(&listed), Vec::<Value>::new());
    let vm = json!({ "location": "eastus2", "properties": {} });
    assert_eq!(client.put(&format!("{group}/alone"), &vm).expect(400).code(), "NotEmulated");
}

#[test]
fn protection_of_a_flexible_vm_stands_under_its_set_alone() {
    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "flex", "flexible": true, "capacity": 1 }] }));
    let group = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines");
    let listed = client.items(&format!("{group}?{VERSION}"));
    let name = listed[0]["name"].as_str().unwrap();
    let member = format!("{FLEX}/virtualMachines/{name}");
    let body = json!({ "location": "eastus2", "properties": { "protectionPolicy":
        { "protectFromScaleIn": true } } });
    let written = client.put(&member, &body).expect(200);
    assert_eq!(written.json()["properties"]["protectionPolicy"]["protectFromScaleIn"], true);
    let shown = client.get(&member).expect(200).json();
    assert_eq!(shown["properties"]["protectionPolicy"]["protectFromScaleIn"], true);
    assert!(shown["properties"].get("virtualMachineScaleSet").is_none(), "the path names it");
    let filter = FLEX.replace('/', "%2F");
    let of_set = format!("{group}?{VERSION}&$filter='virtualMachineScaleSet/id'%20eq%20'{filter}'");
    let resource = client.get(&format!("{group}/{name}")).expect(200).json();
    for vm in [client.items(&of_set), client.items(&format!("{group}?{VERSION}")), vec![resource]] {
        assert!(vm[0]["properties"].get("protectionPolicy").is_none(), "{}", vm[0]);
        assert_eq!(vm[0]["properties"]["vmId"], shown["properties"]["vmId"]);
    }
}
