//! Single extensions of a set, as Azure Policy writes them.

use serde_json::{Value, json};

use super::support::*;

fn extension(name: &str) -> String {
    format!("{SET}/extensions/{name}")
}

fn agent(version: &str) -> Value {
    json!({ "properties": { "publisher": "Microsoft.Azure.Monitor", "type": "AzureMonitorLinuxAgent",
        "typeHandlerVersion": version, "autoUpgradeMinorVersion": true,
        "settings": { "a": 1 }, "protectedSettings": { "key": "secret" } } })
}

fn outdated(client: &Client) -> usize {
    let vms = client.items(&format!("{SET}/virtualMachines?{VERSION}"));
    vms.iter().filter(|vm| vm["properties"]["latestModelApplied"] == false).count()
}

#[test]
fn an_extension_that_is_put_changes_the_model() {
    let client = Client::web();
    let before = client.get(SET).expect(200).json();
    assert_eq!(client.get(&extension("agent")).expect(404).code(), "NotFound");
    let made = client.put(&extension("agent"), &agent("1.0")).expect(201);
    assert_eq!(made.json()["properties"]["provisioningState"], "Creating");
    assert!(made.header("location").is_none(), "the resource is answered");
    assert_eq!(client.ended(&made)["status"], "Succeeded");
    let after = client.get(SET).expect(200).json();
    assert_ne!(after["etag"], before["etag"]);
    assert_eq!(outdated(&client), 3);
    let all = &after["properties"]["virtualMachineProfile"]["extensionProfile"]["extensions"];
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["agent", "health"]);
    let shown = client.get(&extension("AGENT")).expect(200);
    assert!(!shown.text.contains("secret"));
    let shown = shown.json();
    assert_eq!(shown["id"], extension("agent"));
    assert_eq!(shown["type"], "Microsoft.Compute/virtualMachineScaleSets/extensions");
    assert_eq!(shown["properties"]["typeHandlerVersion"], "1.0");
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    client.post(&format!("{SET}/manualupgrade"), &json!({ "instanceIds": ["*"] })).expect(202);
    client.wait(60);
    assert_eq!(outdated(&client), 0);
    // What was read and is written back has no protected settings, and loses none.
    let again = client.put(&extension("agent"), &shown).expect(200);
    assert_eq!(again.json()["properties"]["provisioningState"], "Updating");
    client.wait(60);
    assert_eq!(outdated(&client), 0);
    let changed = client.put(&extension("Agent"), &agent("1.1")).expect(200);
    client.ended(&changed);
    assert_eq!(outdated(&client), 3);
    assert_eq!(client.get(&format!("{SET}/extensions")).json()["value"][0]["name"], "agent");
}

#[test]
fn an_extension_is_patched_and_deleted() {
    let client = Client::web();
    client.ended(&client.put(&extension("agent"), &agent("1.0")).expect(201));
    let part = json!({ "properties": { "typeHandlerVersion": "1.2" } });
    client.ended(&client.patch(&extension("agent"), &part).expect(200));
    let shown = client.get(&extension("agent")).expect(200).json();
    assert_eq!(shown["properties"]["typeHandlerVersion"], "1.2");
    assert_eq!(shown["properties"]["type"], "AzureMonitorLinuxAgent", "the rest stays");
    assert_eq!(client.patch(&extension("none"), &part).expect(404).code(), "NotFound");
    client.post(&format!("{SET}/manualupgrade"), &json!({ "instanceIds": ["*"] })).expect(202);
    client.wait(60);
    let gone = client.delete(&extension("agent")).expect(202);
    assert!(gone.header("location").is_some());
    assert_eq!(client.ended(&gone)["status"], "Succeeded");
    client.get(&extension("agent")).expect(404);
    client.delete(&extension("agent")).expect(204);
    assert_eq!(outdated(&client), 3);
    client.ended(&client.delete(&extension("health")).expect(202));
    let set = client.get(SET).expect(200).json();
    let left = "/properties/virtualMachineProfile/extensionProfile/extensions";
    assert_eq!(set.pointer(left), None, "{set}");
}

#[test]
fn an_extension_says_what_it_is_and_a_policy_rolls_it_out() {
    let client = Client::web();
    for missing in ["publisher", "type", "typeHandlerVersion"] {
        let mut body = agent("1.0");
        body["properties"].as_object_mut().unwrap().remove(missing);
        let refused = client.put(&extension("agent"), &body).expect(400);
        assert_eq!(refused.code(), "InvalidParameter", "{missing}");
    }
    client
        .patch(SET, &json!({ "properties": { "upgradePolicy": { "mode": "Rolling" } } }))
        .expect(200);
    client.wait(60);
    client.put(&extension("agent"), &agent("1.0")).expect(201);
    let run = client.get(&format!("{SET}/rollingUpgrades/latest")).expect(200).json();
    assert_eq!(run["properties"]["runningStatus"]["code"], "RollingForward");
    client.wait(240);
    assert_eq!(outdated(&client), 0);
}
