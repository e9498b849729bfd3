//! What clients read around scale sets.

use serde_json::{Value, json};

use super::support::*;

#[test]
fn subscriptions_groups_and_providers_are_there() {
    let client = Client::web();
    let one = &client.get("/subscriptions").expect(200).json()["value"][0];
    for key in ["id", "subscriptionId", "tenantId", "displayName", "state"] {
        assert!(one[key].is_string(), "{key}");
    }
    client.get(SUB).expect(200);
    let group = format!("{SUB}/resourceGroups/fresh");
    assert_eq!(client.ask("HEAD", &format!("{group}?{VERSION}"), &[], &Value::Null).status, 404);
    client.put(&group, &json!({ "location": "eastus2" })).expect(201);
    client.put(&group, &json!({ "location": "eastus2" })).expect(200);
    assert_eq!(client.ask("HEAD", &format!("{group}?{VERSION}"), &[], &Value::Null).status, 204);
    assert_eq!(client.get(&group).expect(200).json()["name"], "fresh");
    let provider = client.get(&format!("{SUB}/providers/Microsoft.Compute")).expect(200).json();
    assert_eq!(provider["registrationState"], "Registered");
}

#[test]
fn usage_and_sizes_follow_the_world() {
    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "web" }], "settings": { "quotaCores": 40 } }));
    let usages = client
        .get(&format!("{SUB}/providers/Microsoft.Compute/locations/eastus2/usages"))
        .expect(200)
        .json();
    let of = |name: &str| -> (u64, u64) {
        let all = usages["value"].as_array().unwrap();
        let one =
            all.iter().find(|one| one["name"]["value"] == name).unwrap_or_else(|| panic!("{name}"));
        (one["currentValue"].as_u64().unwrap(), one["limit"].as_u64().unwrap())
    };
    assert_eq!(of("cores"), (12, 40));
    assert_eq!(of("standardDSv5Family").0, 12);
    assert_eq!(of("virtualMachineScaleSets").0, 1);
    let skus = client
        .get(&format!("{SUB}/providers/Microsoft.Compute/skus?$filter=location%20eq%20'eastus2'"));
    let skus = skus.expect(200).json();
    let d4 =
        skus["value"].as_array().unwrap().iter().find(|s| s["name"] == "Standard_D4s_v5").unwrap();
    assert_eq!(d4["family"], "standardDSv5Family");
    assert_eq!(d4["capabilities"][0], json!({ "name": "vCPUs", "value": "4" }));
    let elsewhere = client
        .get(&format!("{SUB}/providers/Microsoft.Compute/skus?$filter=location%20eq%20'westus'"));
    assert_eq!(elsewhere.json()["value"], json!([]));
    client.get(&format!("{SET}/skus")).expect(200);
}

#[test]
fn versions_of_gallery_images_reach_new_vms() {
    let image = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i";
    let version = |version: &str| json!({ "gallery": "g", "image": "i", "version": version });
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "image": image }],
        "galleries": [version("1.9.0"), version("1.10.0")] }));
    let names = || -> Vec<String> {
        let all = client.get(&format!("{image}/versions")).expect(200).json();
        all["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(), ["1.9.0", "1.10.0"]);
    let one =
        client.get(&format!("{image}/versions/1.9.0?$expand=ReplicationStatus")).expect(200).json();
    assert_eq!(one["properties"]["publishingProfile"]["targetRegions"][0]["name"], "eastus2");
    assert_eq!(one["properties"]["replicationStatus"]["summary"][0]["region"], "eastus2");
    let plain = client.get(&format!("{image}/versions/1.9.0")).expect(200).json();
    assert!(plain["properties"].get("replicationStatus").is_none(), "only where it is asked for");
    client.get(&format!("{image}/versions/3.0.0")).expect(404);
    client.get(&image.replace("/images/i", "/images/j")).expect(404);
    let exact = |id: &str| {
        let vm = client.get(&format!("{SET}/virtualMachines/{id}")).expect(200).json();
        vm["properties"]["storageProfile"]["imageReference"]["exactVersion"].clone()
    };
    assert_eq!(exact("0"), "1.10.0");
    client.ask("POST", "/_control/images", &[], &version("1.11.0")).expect(200);
    client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    assert_eq!((exact("0"), exact("3")), (json!("1.10.0"), json!("1.11.0")));
    let flags = client.get(&format!("{SET}/virtualMachines/0")).json();
    assert_eq!(
        flags["properties"]["latestModelApplied"], true,
        "a new version alone outdates nothing"
    );
}
