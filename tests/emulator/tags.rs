//! The tags resource of a scale set, as ARM documents it.

use serde_json::{Value, json};

use crate::emulator::support::{Client, Reply, SET};

fn tags() -> String {
    format!("{SET}/providers/Microsoft.Resources/tags/default")
}

fn shown(client: &Client) -> Value {
    client.get(&tags()).expect(200).json()["properties"]["tags"].clone()
}

fn patch(client: &Client, operation: &str, tags: &Value) -> Reply {
    let body = json!({ "operation": operation, "properties": { "tags": tags } });
    client.patch(&self::tags(), &body)
}

#[test]
fn tags_are_merged_replaced_and_taken_away_by_name_or_by_name_and_value() {
    let client = Client::web();
    assert_eq!(shown(&client), json!({}));
    let merged = patch(&client, "Merge", &json!({ "Team": "a", "cost": "b" })).expect(200).json();
    assert_eq!(merged["type"], "Microsoft.Resources/tags");
    assert_eq!(merged["id"], tags());
    // Names count the same in any case, and values do not.
    patch(&client, "Merge", &json!({ "TEAM": "A" })).expect(200);
    assert_eq!(shown(&client), json!({ "Team": "A", "cost": "b" }));
    assert_eq!(client.get(SET).expect(200).json()["tags"], shown(&client));
    patch(&client, "Delete", &json!({ "team": "a", "cost": "other" })).expect(200);
    assert_eq!(shown(&client), json!({ "Team": "A", "cost": "b" }));
    patch(&client, "Delete", &json!({ "team": "A" })).expect(200);
    assert_eq!(shown(&client), json!({ "cost": "b" }));
    patch(&client, "Delete", &json!({ "COST": "" })).expect(200);
    assert_eq!(shown(&client), json!({}));
    patch(&client, "Replace", &json!({ "x": "1", "y": "2" })).expect(200);
    client.put(&tags(), &json!({ "properties": { "tags": { "z": "3" } } })).expect(200);
    assert_eq!(shown(&client), json!({ "z": "3" }));
    client.delete(&tags()).expect(200);
    assert_eq!(shown(&client), json!({}));
}

#[test]
fn a_resource_has_fifty_tags_at_most() {
    let client = Client::web();
    let many = |from: usize, to: usize| -> Value {
        (from..to).map(|n| (format!("t{n}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
    };
    patch(&client, "Merge", &many(0, 50)).expect(200);
    assert_eq!(patch(&client, "Merge", &many(50, 51)).expect(400).code(), "InvalidTags");
    patch(&client, "Merge", &json!({ "T0": "y" })).expect(200);
    for bad in [json!({ "a": 1 }), json!([]), Value::Null] {
        patch(&client, "Merge", &bad).expect(400);
    }
    patch(&client, "Stir", &json!({ "a": "b" })).expect(400);
    client.patch(&tags().replace("/web/", "/none/"), &json!({})).expect(404);
}

#[test]
fn a_read_only_lock_refuses_tags_and_a_delete_lock_lets_them_pass() {
    let client = Client::web();
    let lock = format!("{SET}/providers/Microsoft.Authorization/locks/l");
    client.put(&lock, &json!({ "properties": { "level": "CanNotDelete" } })).expect(201);
    patch(&client, "Merge", &json!({ "a": "b" })).expect(200);
    client.put(&lock, &json!({ "properties": { "level": "ReadOnly" } })).expect(200);
    assert_eq!(patch(&client, "Merge", &json!({ "a": "c" })).expect(409).code(), "ScopeLocked");
    assert_eq!(shown(&client), json!({ "a": "b" }));
}
