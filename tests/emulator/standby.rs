//! Deallocated VMs over HTTP: what they show, what refuses them, and how a start ends.

use serde_json::{Value, json};

use super::support::*;

fn vm(id: &str) -> String {
    format!("{SET}/virtualMachines/{id}")
}

fn order(client: &Client, what: &str, body: &Value) -> Reply {
    client.ask("POST", &format!("/_control/{what}"), &[], body)
}

/// Codes of the instance view of the VM at this address, and its health.
fn shown(client: &Client, path: &str) -> (Vec<String>, Value) {
    let view = client.get(&format!("{path}/instanceView")).expect(200).json();
    let codes = view["statuses"].as_array().unwrap().iter();
    let codes = codes.map(|status| status["code"].as_str().unwrap().to_owned());
    (codes.collect(), view["vmHealth"]["status"]["code"].clone())
}

fn one(client: &Client) -> Reply {
    let ids = json!({ "instanceIds": ["1"] });
    client.post(&format!("{SET}/deallocate"), &ids).expect(202)
}

#[test]
fn a_deallocated_vm_is_listed_and_counted() {
    let client = Client::web();
    let before = client.get(&vm("1")).expect(200).json();
    let usage = format!("{SUB}/providers/Microsoft.Compute/locations/eastus2/usages");
    let used = client.get(&usage).expect(200).json();
    let accepted = one(&client);
    assert!(accepted.header("location").is_some_and(|at| at.contains("monitor=true")));
    assert_eq!(client.ended(&accepted)["status"], "Succeeded");
    let want = ["ProvisioningState/succeeded", "PowerState/deallocated"].map(str::to_owned);
    assert_eq!(shown(&client, &vm("1")), (want.to_vec(), json!("HealthState/unknown")));
    let after = client.get(&vm("1")).expect(200).json();
    assert_eq!(after["properties"]["provisioningState"], "Succeeded");
    for key in ["vmId", "timeCreated", "storageProfile", "latestModelApplied"] {
        assert_eq!(after["properties"][key], before["properties"][key], "{key}");
    }
    assert_eq!(
        (client.ids().len(), client.get(SET).json()["sku"]["capacity"].clone()),
        (3, json!(3))
    );
    assert_eq!(client.get(&usage).expect(200).json(), used, "the quota stays used");
    order(&client, "switches", &json!({ "stoppedHidesHealth": true })).expect(200);
    assert_eq!(shown(&client, &vm("1")).1, Value::Null);
    let started = client.post(&format!("{}/start", vm("1")), &Value::Null).expect(202);
    assert_eq!(client.ended(&started)["status"], "Succeeded");
    assert_eq!(shown(&client, &vm("1")).1, "HealthState/healthy");
}

#[test]
fn without_a_body_or_by_a_star_all_vms_are_meant_and_by_no_id_none() {
    let power = |client: &Client| -> Vec<bool> {
        let off = |id| shown(client, &vm(id)).0[1] == "PowerState/deallocated";
        ["0", "1", "2"].map(off).to_vec()
    };
    for body in [Value::Null, json!({}), json!({ "instanceIds": ["*"] })] {
        let client = Client::web();
        client.ended(&client.post(&format!("{SET}/deallocate"), &body).expect(202));
        assert_eq!(power(&client), [true; 3], "{body}");
        client.ended(&client.post(&format!("{SET}/start"), &body).expect(202));
        assert_eq!(power(&client), [false; 3], "{body}");
    }
    let client = Client::web();
    for action in ["deallocate", "start"] {
        client.post(&format!("{SET}/{action}"), &json!({ "instanceIds": [] })).expect(400);
    }
    assert_eq!(power(&client), [false; 3]);
}

#[test]
fn a_start_without_capacity_is_refused_or_fails_and_leaves_the_vm() {
    let client = Client::web();
    let before = client.get(&vm("1")).expect(200).json()["properties"]["vmId"].clone();
    client.ended(&one(&client));
    let short = json!({ "deed": { "noCapacity": { "lasting": "10h" } } });
    order(&client, "deeds", &short).expect(200);
    let start = json!({ "instanceIds": ["1"] });
    let failed = client.ended(&client.post(&format!("{SET}/start"), &start).expect(202));
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!("Failed"), &json!("AllocationFailed"))
    );
    assert_eq!(failed["error"]["target"], "1");
    let want = ["ProvisioningState/failed/AllocationFailed", "PowerState/deallocated"];
    assert_eq!(shown(&client, &vm("1")).0, want);
    order(&client, "switches", &json!({ "startRefusedAtOnce": true })).expect(200);
    for path in [format!("{SET}/start"), format!("{}/start", vm("1"))] {
        assert_eq!(client.post(&path, &start).expect(409).code(), "AllocationFailed");
    }
    order(&client, "deeds", &json!({ "deed": { "noCapacity": { "lasting": "0s" } } })).expect(200);
    client.ended(&client.post(&format!("{SET}/start"), &start).expect(202));
    let after = client.get(&vm("1")).expect(200).json();
    assert_eq!(after["properties"]["vmId"], before);
    assert_eq!(shown(&client, &vm("1")).0[1], "PowerState/running");
    order(&client, "faults", &json!({ "chances": { "startFails": 1.0 } })).expect(200);
    order(&client, "switches", &json!({ "startRefusedAtOnce": false })).expect(200);
    client.ended(&one(&client));
    let failed = client.ended(&client.post(&format!("{SET}/start"), &start).expect(202));
    assert_eq!(failed["status"], "Failed", "{failed}");
    order(&client, "switches", &json!({ "startRefused": true })).expect(400);
    let all = client.ask("GET", "/_control/switches", &[], &Value::Null).expect(200).json();
    assert_eq!(
        (&all["startRefusedAtOnce"], &all["stoppedHidesHealth"]),
        (&json!(false), &json!(false))
    );
}

#[test]
fn an_ephemeral_disk_cannot_be_deallocated() {
    let disk = json!({ "properties": { "virtualMachineProfile": { "storageProfile": { "osDisk": {
        "caching": "ReadOnly", "diffDiskSettings": { "option": "Local" } } } } } });
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "resource": disk }] }));
    for path in [format!("{SET}/deallocate"), format!("{}/deallocate", vm("1"))] {
        let refused = client.post(&path, &Value::Null).expect(409);
        assert_eq!(refused.code(), "OperationNotAllowed");
        assert!(refused.text.contains("instances using an ephemeral OS disk."), "{}", refused.text);
    }
}

#[test]
fn vms_of_a_flexible_set_are_deallocated_one_by_one() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "flexible": true }] }));
    let list = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines");
    let path = client.get(&list).expect(200).json()["value"][0]["id"].as_str().unwrap().to_owned();
    let accepted = client.post(&format!("{path}/deallocate"), &Value::Null).expect(202);
    assert!(accepted.header("azure-asyncoperation").is_some());
    client.ended(&accepted);
    assert_eq!(shown(&client, &path).0[1], "PowerState/deallocated");
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 3);
    client.ended(&client.post(&format!("{path}/start"), &Value::Null).expect(202));
    assert_eq!(shown(&client, &path).0[1], "PowerState/running");
}

#[test]
fn people_deallocate_and_start_by_order() {
    let client = Client::web();
    for (deed, power) in [("deallocate", "PowerState/deallocated"), ("start", "PowerState/running")]
    {
        order(&client, "deeds", &json!({ "instance": "2", "deed": deed })).expect(200);
        client.wait(30);
        assert_eq!(shown(&client, &vm("2")).0[1], power);
    }
}
