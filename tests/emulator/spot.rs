//! Spot VMs: their cores have a quota of their own.

use serde_json::{Value, json};

use super::support::*;

fn spot(name: &str, capacity: u32) -> Value {
    let profile = json!({ "priority": "Spot", "evictionPolicy": "Delete" });
    json!({ "name": name, "capacity": capacity,
        "resource": { "properties": { "virtualMachineProfile": profile } } })
}

/// What is used of a quota, and its limit.
fn usage(client: &Client, name: &str) -> (u64, u64) {
    let path = format!("{SUB}/providers/Microsoft.Compute/locations/eastus2/usages");
    let all = client.get(&path).expect(200).json();
    let all = all["value"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"]["value"] == name).expect(name);
    (one["currentValue"].as_u64().unwrap(), one["limit"].as_u64().unwrap())
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn spot_cores_count_in_a_quota_of_their_own() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }, spot("cheap", 2)],
        "settings": { "quotaCores": 20, "quotaSpotCores": 12 } }));
    assert_eq!(usage(&client, "cores"), (12, 20));
    assert_eq!(usage(&client, "standardDSv5Family"), (12, 20));
    assert_eq!(usage(&client, "lowPriorityCores"), (8, 12));
    let cheap = SET.replace("/web", "/cheap");
    client.patch(&cheap, &json!({ "sku": { "capacity": 3 } })).expect(200);
    let refused = client.patch(&cheap, &json!({ "sku": { "capacity": 4 } })).expect(409);
    assert_eq!(refused.code(), "OperationNotAllowed");
    let text = message(&refused);
    assert!(text.contains("exceeding approved LowPriorityCores quota."), "{text}");
    assert!(
        text.contains(
            "Current Limit: 12, Current Usage: 12, Additional Required: 4, (Minimum) New Limit Required: 16."
        ),
        "{text}"
    );
    // The other quota has room for two machines more, and no Spot machine takes it.
    client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    let refused = client.patch(SET, &json!({ "sku": { "capacity": 6 } })).expect(409);
    let text = message(&refused);
    assert!(text.contains("approved Total Regional Cores quota."), "{text}");
    client.wait(60);
    client.patch(&cheap, &json!({ "sku": { "capacity": 1 } })).expect(200);
    client.wait(60);
    assert_eq!((usage(&client, "cores"), usage(&client, "lowPriorityCores")), ((20, 20), (4, 12)));
}
