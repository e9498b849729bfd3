//! Rolling upgrades of the platform: cancelled, and remembered.

use serde_json::{Value, json};

use super::support::*;

fn rolling() -> Client {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "capacity": 10,
        "resource": { "properties": { "upgradePolicy": { "mode": "Rolling" } } } }] }));
    client.wait(60);
    client
}

fn image(version: &str) -> Value {
    json!({ "properties": { "virtualMachineProfile": { "storageProfile":
        { "imageReference": { "version": version } } } } })
}

fn latest(client: &Client) -> Value {
    let latest = client.get(&format!("{SET}/rollingUpgrades/latest")).expect(200).json();
    latest["properties"].clone()
}

fn history(client: &Client) -> Vec<Value> {
    client.items(&format!("{SET}/osUpgradeHistory?{VERSION}"))
}

fn cancel(client: &Client) -> Reply {
    client.post(&format!("{SET}/rollingUpgrades/cancel"), &Value::Null)
}

#[test]
fn a_rolling_upgrade_is_cancelled_after_its_batch() {
    let client = rolling();
    let none = cancel(&client).expect(409);
    assert_eq!(none.code(), "OperationNotAllowed");
    assert_eq!(none.json()["error"]["message"], "There is no ongoing Rolling Upgrade to cancel.");
    client.patch(SET, &image("2.0.0")).expect(200);
    client.clock.pass(Span::seconds(5));
    assert_eq!(latest(&client)["progress"]["inProgressInstanceCount"], 2);
    let asked = cancel(&client).expect(202);
    assert!(asked.text.is_empty() && asked.header("location").is_some());
    let status = latest(&client)["runningStatus"].clone();
    assert_eq!(
        (&status["code"], &status["lastAction"]),
        (&json!("RollingForward"), &json!("Cancel"))
    );
    assert_ne!(status["lastActionTime"], status["startTime"]);
    let running = client.follow(asked.header("azure-asyncoperation").unwrap()).expect(200).json();
    assert_eq!(running["status"], "InProgress", "the batch under way is waited for");
    assert_eq!(client.ended(&asked)["status"], "Succeeded");
    let ended = latest(&client);
    assert_eq!(ended["runningStatus"]["code"], "Cancelled");
    let progress = &ended["progress"];
    let counts = ["successful", "inProgress", "pending", "failed"]
        .map(|word| progress[format!("{word}InstanceCount")].as_u64().unwrap());
    assert_eq!(counts, [2, 0, 8, 0]);
    let vms = client.items(&format!("{SET}/virtualMachines?{VERSION}"));
    let old = vms.iter().filter(|vm| vm["properties"]["latestModelApplied"] == false).count();
    assert_eq!(old, 8, "nothing more is upgraded");
    cancel(&client).expect(409);
    // Another change of the model rolls again.
    client.patch(SET, &image("3.0.0")).expect(200);
    client.wait(240);
    assert_eq!(latest(&client)["runningStatus"]["code"], "Completed");
}

#[test]
fn upgrades_of_the_image_are_remembered() {
    let client = rolling();
    assert_eq!(history(&client), Vec::<Value>::new());
    client.patch(SET, &image("2.0.0")).expect(200);
    client.clock.pass(Span::seconds(5));
    let running = &history(&client)[0];
    assert_eq!(running["properties"]["runningStatus"]["code"], "RollingForward");
    assert!(running["properties"]["runningStatus"].get("endTime").is_none());
    client.wait(240);
    client.patch(SET, &image("3.0.0")).expect(200);
    client.clock.pass(Span::seconds(5));
    cancel(&client).expect(202);
    client.wait(60);
    let script =
        json!({ "properties": { "publisher": "p", "type": "t", "typeHandlerVersion": "1.0" } });
    let profile = json!({ "extensions": [{ "name": "s", "properties": script["properties"] }] });
    client
        .patch(
            SET,
            &json!({ "properties": { "virtualMachineProfile": { "extensionProfile": profile } } }),
        )
        .expect(200);
    client.wait(240);
    assert_eq!(latest(&client)["runningStatus"]["code"], "Completed");
    let all = history(&client);
    let told: Vec<(&str, &str)> = all
        .iter()
        .map(|one| {
            let one = &one["properties"];
            let version = one["targetImageReference"]["version"].as_str().unwrap();
            (version, one["runningStatus"]["code"].as_str().unwrap())
        })
        .collect();
    // The extension came with the rest of 3.0.0: eight VMs had the older image still.
    assert_eq!(told, [("3.0.0", "Completed"), ("3.0.0", "Cancelled"), ("2.0.0", "Completed")]);
    let first = &all[2];
    assert_eq!(first["type"], "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades");
    assert_eq!(first["location"], "eastus2");
    assert_eq!(first["properties"]["startedBy"], "User");
    assert_eq!(first["properties"]["progress"]["successfulInstanceCount"], 10);
    assert!(first["properties"]["runningStatus"]["endTime"].is_string());
    let again = json!({ "extensions": [] });
    client
        .patch(
            SET,
            &json!({ "properties": { "virtualMachineProfile": { "extensionProfile": again } } }),
        )
        .expect(200);
    client.wait(240);
    assert_eq!(history(&client).len(), 3, "no disk was swapped");
}
