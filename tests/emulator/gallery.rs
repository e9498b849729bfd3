//! Versions of gallery images, published and deleted by ARM.

use serde_json::{Value, json};

use super::support::*;

const IMAGE: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i";

fn client() -> Client {
    Client::new(&json!({ "scaleSets": [{ "name": "web", "image": IMAGE }],
        "galleries": [{ "gallery": "g", "image": "i", "version": "1.0.0" }] }))
}

fn version(name: &str) -> String {
    format!("{IMAGE}/versions/{name}")
}

/// A version as a client asks for one; its profile on top.
fn wanted(profile: &Value) -> Value {
    let source = format!("{SUB}/resourceGroups/rg/providers/Microsoft.Compute/images/built");
    json!({ "location": "eastus2", "tags": { "built": "today" }, "properties": {
        "publishingProfile": profile,
        "storageProfile": { "source": { "id": source } } } })
}

/// The version that the next VM of the set gets.
fn next(client: &Client) -> Value {
    let before = client.ids();
    let more = json!({ "sku": { "capacity": before.len() + 1 } });
    client.patch(SET, &more).expect(200);
    client.wait(10);
    let new = client.ids().into_iter().find(|id| !before.contains(id)).unwrap();
    let vm = client.get(&format!("{SET}/virtualMachines/{new}")).expect(200).json();
    vm["properties"]["storageProfile"]["imageReference"]["exactVersion"].clone()
}

#[test]
fn a_version_is_created_and_stands_behind_the_image_once_it_is_replicated() {
    let client = client();
    let profile = json!({ "replicaCount": 3, "endOfLifeDate": "2030-01-01T00:00:00Z",
        "targetRegions": [{ "name": "East US 2", "regionalReplicaCount": 2 }, { "name": "westus" }] });
    let made = client.put(&version("1.1.0"), &wanted(&profile)).expect(201);
    assert_eq!(made.json()["properties"]["provisioningState"], "Creating");
    assert!(made.header("azure-asyncoperation").is_some() && made.header("location").is_none());
    let expanded = format!("{}?$expand=ReplicationStatus", version("1.1.0"));
    let status = |client: &Client| {
        let shown = client.get(&expanded).expect(200).json();
        shown["properties"]["replicationStatus"].clone()
    };
    assert_eq!(status(&client)["aggregatedState"], "InProgress");
    assert_eq!(status(&client)["summary"][1]["state"], "Replicating");
    client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    let vm = client.get(&format!("{SET}/virtualMachines/3")).expect(200).json();
    let exact = "/properties/storageProfile/imageReference/exactVersion";
    assert_eq!(vm.pointer(exact), Some(&json!("1.0.0")), "it is not replicated yet");
    assert_eq!(client.ended(&made)["status"], "Succeeded");
    let shown = client.get(&version("1.1.0")).expect(200).json();
    let properties = &shown["properties"];
    assert_eq!(properties["provisioningState"], "Succeeded");
    assert_eq!(shown["tags"], json!({ "built": "today" }));
    assert!(properties.get("replicationStatus").is_none(), "only where it is asked for");
    let kept = &properties["publishingProfile"];
    assert_eq!((&kept["replicaCount"], &kept["excludeFromLatest"]), (&json!(3), &json!(false)));
    assert_eq!(kept["endOfLifeDate"], "2030-01-01T00:00:00Z");
    assert_eq!(kept["targetRegions"][0]["regionalReplicaCount"], 2);
    assert_eq!(kept["targetRegions"][1]["regionalReplicaCount"], 3, "the count of the version");
    assert!(kept["publishedDate"].is_string());
    assert_eq!(status(&client)["aggregatedState"], "Completed");
    assert_eq!(next(&client), "1.1.0");
}

#[test]
fn a_put_updates_a_version_and_a_delete_brings_back_the_one_before() {
    let client = client();
    let made = client.put(&version("2.0.0"), &wanted(&json!({}))).expect(201);
    client.ended(&made);
    assert_eq!(next(&client), "2.0.0");
    let hidden = client.put(&version("2.0.0"), &wanted(&json!({ "excludeFromLatest": true })));
    let hidden = hidden.expect(200);
    assert_eq!(hidden.json()["properties"]["provisioningState"], "Updating");
    client.ended(&hidden);
    assert_eq!(next(&client), "1.0.0", "the newest that is not excluded");
    let shown = client.put(&version("2.0.0"), &wanted(&json!({ "excludeFromLatest": false })));
    client.ended(&shown.expect(200));
    assert_eq!(next(&client), "2.0.0");
    let elsewhere = json!({ "targetRegions": [{ "name": "westus" }] });
    let made = client.put(&version("3.0.0"), &wanted(&elsewhere)).expect(201);
    client.ended(&made);
    assert_eq!(next(&client), "2.0.0", "a version that is not copied to this region");
    let gone = client.delete(&version("2.0.0")).expect(202);
    assert!(gone.header("location").is_some());
    let leaving = client.get(&version("2.0.0")).expect(200).json();
    assert_eq!(leaving["properties"]["provisioningState"], "Deleting");
    assert_eq!(client.ended(&gone)["status"], "Succeeded");
    client.follow(gone.header("location").unwrap()).expect(200);
    assert_eq!(client.get(&version("2.0.0")).expect(404).code(), "ResourceNotFound");
    client.delete(&version("2.0.0")).expect(204);
    assert_eq!(next(&client), "1.0.0");
}

#[test]
fn a_version_needs_its_image_and_a_version_for_a_name() {
    let client = client();
    let put = |path: &str| client.put(path, &wanted(&json!({})));
    for missing in ["/galleries/none/", "/images/none/"] {
        let (kind, _) = missing.trim_start_matches('/').split_once('/').unwrap();
        let own = if kind == "galleries" { "/galleries/g/" } else { "/images/i/" };
        let refused = put(&version("1.1.0").replace(own, missing)).expect(404);
        assert_eq!(refused.code(), "ParentResourceNotFound", "{missing}");
    }
    let group = put(&version("1.1.0").replace("/rg/", "/none/")).expect(404);
    assert_eq!(group.code(), "ResourceGroupNotFound");
    for odd in ["latest", "1.0", "1.0.x", "1.0.0.0", "1.0.99999999999"] {
        assert_eq!(put(&version(odd)).expect(400).code(), "InvalidParameter", "{odd}");
    }
    for (part, code) in [("location", "LocationRequired"), ("properties", "InvalidParameter")] {
        let mut body = wanted(&json!({}));
        body.as_object_mut().unwrap().remove(part);
        assert_eq!(client.put(&version("1.1.0"), &body).expect(400).code(), code);
    }
    // A definition outlives its last version.
    let gone = client.delete(&version("1.0.0")).expect(202);
    client.ended(&gone);
    client.get(IMAGE).expect(200);
    assert_eq!(client.get(&format!("{IMAGE}/versions")).expect(200).json()["value"], json!([]));
    put(&version("1.1.0")).expect(201);
}
