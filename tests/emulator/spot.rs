//! Spot VMs: their cores have a quota of their own, and a set mixes them with regular ones.

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

fn message(answer: &Reply) -> String {
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

/// Regular VMs of the Flexible set, and Spot ones.
fn mixed(client: &Client) -> (usize, usize) {
    let vms = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines");
    let filter = SET.replace('/', "%2F");
    let all = client
        .items(&format!("{vms}?{VERSION}&$filter='virtualMachineScaleSet/id'%20eq%20'{filter}'"));
    let spot = all.iter().filter(|vm| vm["properties"]["priority"] == "Spot").count();
    (all.len() - spot, spot)
}

fn mix(base: u32, percent: u32) -> Value {
    json!({ "baseRegularPriorityCount": base, "regularPriorityPercentageAboveBase": percent })
}

fn of_mix(capacity: u32, policy: &Value) -> Value {
    let profile = json!({ "priority": "Spot", "evictionPolicy": "Deallocate" });
    json!({ "name": "web", "flexible": true, "capacity": capacity, "resource":
        { "properties": { "virtualMachineProfile": profile, "priorityMixPolicy": policy } } })
}

fn scale(client: &Client, to: u32) -> (usize, usize) {
    client.patch(SET, &json!({ "sku": { "capacity": to } })).expect(200);
    client.wait(60);
    mixed(client)
}

/// The second scenario of the documents, and back.
#[test]
fn a_mix_decides_which_vms_are_spot() {
    let client = Client::new(&json!({ "scaleSets": [of_mix(20, &mix(10, 25))] }));
    assert_eq!(mixed(&client), (12, 8));
    assert_eq!(scale(&client, 50), (20, 30));
    assert_eq!(scale(&client, 110), (35, 75));
    for _ in 0..10 {
        let order = json!({ "instance": "any", "deed": "evict" });
        client.ask("POST", "/_control/deeds", &[], &order).expect(200);
    }
    client.wait(60);
    assert_eq!(scale(&client, 120), (37, 83), "what is deallocated counts");
    assert_eq!(scale(&client, 50), (20, 30), "the split is kept on the way down");
    assert_eq!(scale(&client, 8), (8, 0), "the base is regular");
    let shown = client.get(SET).expect(200).json();
    assert_eq!(shown["properties"]["priorityMixPolicy"], mix(10, 25));
    client.patch(SET, &json!({ "properties": { "priorityMixPolicy": mix(0, 0) } })).expect(200);
    client.wait(60);
    assert_eq!(mixed(&client), (8, 0), "VMs that are there stay as they are");
    assert_eq!(scale(&client, 12), (8, 4));
    let shown = client.get(SET).expect(200).json();
    assert_eq!(shown["properties"]["priorityMixPolicy"], mix(0, 0));
}

#[test]
fn a_mix_needs_both_quotas() {
    let client = Client::new(&json!({ "scaleSets": [of_mix(4, &mix(2, 50))],
        "settings": { "quotaCores": 16, "quotaSpotCores": 8 } }));
    assert_eq!((usage(&client, "cores").0, usage(&client, "lowPriorityCores").0), (12, 4));
    assert_eq!(scale(&client, 5), (3, 2));
    let refused = client.patch(SET, &json!({ "sku": { "capacity": 7 } })).expect(409);
    assert!(message(&refused).contains("approved LowPriorityCores quota."), "{refused:?}");
    assert_eq!(scale(&client, 6), (4, 2));
    let refused = client.patch(SET, &json!({ "sku": { "capacity": 8 } })).expect(409);
    assert!(message(&refused).contains("approved Total Regional Cores quota."), "{refused:?}");
}

#[test]
fn the_sizes_of_an_instance_mix_are_kept() {
    let client = Client::web();
    let sizes = json!({ "allocationStrategy": "Prioritized", "vmSizes": [
        { "name": "Standard_D2s_v5", "rank": 0 }, { "name": "Standard_D2as_v5", "rank": 1 }] });
    let mut body = wanted(1);
    body["sku"]["name"] = json!("Mix");
    body["properties"]["orchestrationMode"] = json!("Flexible");
    body["properties"]["skuProfile"] = sizes.clone();
    let new = SET.replace("/web", "/new");
    client.put(&new, &body).expect(201);
    client.wait(60);
    let shown = client.get(&new).expect(200).json();
    assert_eq!(
        (&shown["properties"]["skuProfile"], &shown["sku"]["name"]),
        (&sizes, &json!("Mix"))
    );
    client.put(&new, &shown).expect(200);
    let fewer = json!({ "vmSizes": [{ "name": "Standard_D2s_v5" }] });
    client.patch(&new, &json!({ "properties": { "skuProfile": fewer } })).expect(200);
    let shown = client.get(&new).expect(200).json();
    assert_eq!(shown["properties"]["skuProfile"]["vmSizes"], fewer["vmSizes"]);
    assert_eq!(shown["properties"]["skuProfile"]["allocationStrategy"], "Prioritized");
}
