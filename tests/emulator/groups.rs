//! Resource groups go with all that is in them.

use serde_json::{Value, json};

use super::support::*;

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg";

fn head(client: &Client) -> u16 {
    client.ask("HEAD", &format!("{GROUP}?{VERSION}"), &[], &Value::Null).status
}

#[test]
fn a_group_is_deleted_with_all_that_is_in_it() {
    let version = json!({ "gallery": "g", "image": "i", "version": "1.0.0" });
    let client = Client::new(&json!({ "galleries": [version],
        "scaleSets": [{ "name": "web" }, { "name": "flex", "flexible": true },
            { "name": "far", "resourceGroup": "other" }] }));
    let autoscale = format!("{GROUP}/providers/Microsoft.Insights/autoscalesettings/mine");
    let capacity = json!({ "minimum": "3", "maximum": "3", "default": "3" });
    let setting = json!({ "location": "eastus2", "properties": { "targetResourceUri": SET,
        "profiles": [{ "name": "all", "capacity": capacity, "rules": [] }] } });
    client.put(&autoscale, &setting).expect(201);
    let gone = client.delete(GROUP).expect(202);
    assert!(gone.text.is_empty() && gone.header("retry-after").is_some());
    let poll = gone.header("location").unwrap().to_owned();
    assert!(poll.contains("/operationresults/"), "{poll}");
    assert!(gone.header("azure-asyncoperation").is_none());
    assert_eq!(client.get(GROUP).expect(200).json()["properties"]["provisioningState"], "Deleting");
    assert_eq!(client.get(SET).expect(200).json()["properties"]["provisioningState"], "Deleting");
    let new = SET.replace("/web", "/new");
    let refused = client.put(&new, &wanted(1)).expect(409);
    assert_eq!(refused.code(), "ResourceGroupBeingDeleted");
    let refused = client.put(GROUP, &json!({ "location": "eastus2" })).expect(409);
    assert_eq!(refused.code(), "ResourceGroupBeingDeleted");
    client.delete(GROUP).expect(202);
    let waits = client.follow(&poll).expect(202);
    assert!(waits.header("location").is_some());
    client.wait(60);
    client.follow(&poll).expect(200);
    assert_eq!(head(&client), 404);
    assert_eq!(client.get(SET).expect(404).code(), "ResourceGroupNotFound");
    assert_eq!(client.delete(GROUP).expect(404).code(), "ResourceGroupNotFound");
    client.get(&SET.replace("/rg/", "/other/").replace("/web", "/far")).expect(200);
    // A new group of the name has nothing of the old one.
    client.put(GROUP, &json!({ "location": "eastus2" })).expect(201);
    client.get(SET).expect(404);
    client.get(&autoscale).expect(404);
    client.get(&format!("{GROUP}/providers/Microsoft.Compute/galleries/g/images/i")).expect(404);
}

#[test]
fn a_lock_in_the_group_or_above_it_keeps_it() {
    let lock = |scope: &str| {
        format!("{scope}/providers/Microsoft.Authorization/locks/keep?api-version=2020-05-01")
    };
    let client = Client::web();
    for scope in [SUB, GROUP, SET] {
        let body = json!({ "properties": { "level": "CanNotDelete" } });
        client.ask("PUT", &lock(scope), &[], &body).expect(201);
        let refused = client.delete(GROUP).expect(409);
        assert_eq!(refused.code(), "ScopeLocked", "{scope}");
        client.ask("DELETE", &lock(scope), &[], &Value::Null).expect(200);
    }
    assert_eq!(client.get(SET).expect(200).json()["properties"]["provisioningState"], "Succeeded");
    client.delete(GROUP).expect(202);
    client.wait(60);
    assert_eq!(head(&client), 404);
}

#[test]
fn a_group_is_patched() {
    let client = Client::web();
    let tags = json!({ "team": "a" });
    let patched = client.patch(GROUP, &json!({ "tags": tags })).expect(200).json();
    assert_eq!(patched["tags"], tags);
    let put = client.put(GROUP, &json!({ "location": "eastus2", "tags": { "team": "b" } }));
    assert_eq!(put.expect(200).json()["tags"]["team"], "b", "a PUT replaces the tags");
    let moved = client.put(GROUP, &json!({ "location": "westus" })).expect(409);
    assert_eq!(moved.code(), "InvalidResourceGroupLocation");
}
