//! Locks: kept, listed by scope, and refusing what documents say they refuse.

use serde_json::{Value, json};

use crate::emulator::support::{Client, Reply, SET, SUB};

const VERSION: &str = "api-version=2020-05-01";
const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg";

fn lock(scope: &str, name: &str) -> String {
    format!("{scope}/providers/Microsoft.Authorization/locks/{name}?{VERSION}")
}

fn locks(client: &Client, scope: &str, filter: &str) -> Vec<String> {
    let path = format!("{scope}/providers/Microsoft.Authorization/locks?{VERSION}{filter}");
    let shown = client.get(&path).expect(200).json();
    let name = |lock: &Value| lock["name"].as_str().unwrap().to_owned();
    shown["value"].as_array().unwrap().iter().map(name).collect()
}

fn put(client: &Client, scope: &str, name: &str, level: &str) -> Reply {
    client.put(&lock(scope, name), &json!({ "properties": { "level": level, "notes": "kept" } }))
}

fn delete(client: &Client, path: &str) -> Reply {
    client.ask("DELETE", &format!("{path}?api-version=2024-07-01"), &[], &Value::Null)
}

fn refused(answer: Reply, locked: &str, verb: &str) {
    let answer = answer.expect(409);
    assert_eq!(answer.code(), "ScopeLocked");
    let said = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    let scopes = format!("following scope(s) are locked: '{locked}'. Please remove the lock");
    assert!(
        said.contains(&scopes) && said.contains(&format!("perform {verb} operation")),
        "{said}"
    );
}

#[test]
fn locks_are_kept_and_listed_by_scope() {
    let client = Client::web();
    let machine = format!("{SET}/virtualMachines/1");
    for (scope, name) in [(SUB, "sub"), (GROUP, "group"), (SET, "set"), (&machine, "vm")] {
        put(&client, scope, name, "CanNotDelete").expect(201);
        put(&client, scope, name, "CanNotDelete").expect(200);
    }
    let shown = client.get(&lock(SET, "SET")).expect(200).json();
    assert_eq!(shown["id"], format!("{SET}/providers/Microsoft.Authorization/locks/set"));
    assert_eq!(shown["type"], "Microsoft.Authorization/locks");
    assert_eq!(shown["properties"], json!({ "level": "CanNotDelete", "notes": "kept" }));
    assert_eq!(shown["systemData"]["createdBy"], "emulator");
    let old = lock(SET, "set").replace("2020-05-01", "2016-09-01");
    assert_eq!(client.get(&old).expect(200).json().get("systemData"), None);
    assert_eq!(locks(&client, GROUP, ""), ["sub", "group", "set", "vm"]);
    assert_eq!(locks(&client, SET, "&$filter=atScope()"), ["sub", "group", "set"]);
    assert_eq!(locks(&client, SUB, "&$filter=atScope()"), ["sub"]);
    let remove = |status: u16| {
        client.ask("DELETE", &lock(SET, "set"), &[], &Value::Null).expect(status);
    };
    remove(200);
    remove(204);
    assert_eq!(client.get(&lock(SET, "set")).expect(404).code(), "LockNotFound");
    put(&client, &format!("{SET}/virtualMachines/77"), "none", "ReadOnly").expect(404);
    for bad in [json!({}), json!({ "level": "Loose" }), json!({ "level": "ReadOnly", "notes": 1 })]
    {
        client.put(&lock(SET, "bad"), &json!({ "properties": bad })).expect(400);
    }
}

#[test]
fn a_read_only_lock_refuses_every_write_at_its_scope_and_below() {
    let client = Client::web();
    for scope in [SUB, GROUP, SET] {
        put(&client, scope, "still", "ReadOnly").expect(201);
        refused(client.patch(SET, &json!({ "sku": { "capacity": 4 } })), scope, "write");
        refused(client.post(&format!("{SET}/restart"), &Value::Null), scope, "write");
        let ids = json!({ "instanceIds": ["0"] });
        refused(client.post(&format!("{SET}/delete"), &ids), scope, "delete");
        client.get(SET).expect(200);
        client.ask("DELETE", &lock(scope, "still"), &[], &Value::Null).expect(200);
    }
    client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
}

#[test]
fn a_delete_lock_refuses_the_method_and_lets_a_batch_pass() {
    let client = Client::web();
    put(&client, SET, "keep", "CanNotDelete").expect(201);
    refused(delete(&client, SET), SET, "delete");
    refused(delete(&client, &format!("{SET}/virtualMachines/0")), SET, "delete");
    client.patch(SET, &json!({ "tags": { "a": "b" } })).expect(200);
    client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["0"] })).expect(202);
    client.ask("DELETE", &lock(SET, "keep"), &[], &Value::Null).expect(200);
    // A lock below stops a delete of what is above it, and ends with its machine.
    let machine = format!("{SET}/virtualMachines/1");
    put(&client, &machine, "keep", "CanNotDelete").expect(201);
    refused(delete(&client, &machine), &machine, "delete");
    refused(delete(&client, SET), &machine, "delete");
    client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["1"] })).expect(202);
    client.emulator.advance(3_600_000);
    assert_eq!(locks(&client, GROUP, ""), Vec::<String>::new());
    delete(&client, SET).expect(202);
}

#[test]
fn a_lock_on_a_flexible_vm_stops_a_batch_where_the_switch_says_so() {
    for stops in [false, true] {
        let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "flexible": true }],
            "settings": { "switches": { "lockedVmStopsBatch": stops } } }));
        let listed = client.get(&format!("{SET}/virtualMachines")).expect(200).json();
        let name = |n: usize| listed["value"][n]["name"].as_str().unwrap().to_owned();
        let vm = format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/{}", name(0));
        put(&client, &vm, "keep", "CanNotDelete").expect(201);
        refused(delete(&client, &vm), &vm, "delete");
        let batch =
            |n: usize| client.post(&format!("{SET}/delete"), &json!({ "instanceIds": [name(n)] }));
        match stops {
            true => refused(batch(0), &vm, "delete"),
            false => drop(batch(0).expect(202)),
        }
        batch(1).expect(202);
    }
}

#[test]
fn a_seed_locks_and_says_where_it_cannot() {
    let seed = |scope: &str| {
        json!({ "scaleSets": [{ "name": "web" }],
            "locks": [{ "scope": scope, "name": "keep", "level": "ReadOnly", "notes": "x" }] })
    };
    let client = Client::new(&seed(SET));
    refused(client.patch(SET, &json!({ "tags": {} })), SET, "write");
    let bad = serde_json::from_value(seed("/subscriptions/none")).unwrap();
    let why = poolkeeper::emulator::Emulator::by_the_clock(&bad, 1.0).unwrap_err().to_string();
    assert_eq!(why, "locks[0]: nothing can be locked at \"/subscriptions/none\"");
}
