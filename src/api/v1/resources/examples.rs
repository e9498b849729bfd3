//! Examples of the documents that clients meet first. A test compares each with its schema.

use serde_json::{Map, Value, json};

pub fn add_examples(schemas: &mut Map<String, Value>) {
    let all =
        [("PoolStatus", pool_status()), ("Problem", problem()), ("CommandReceipt", receipt())];
    for (name, example) in all {
        if let Some(schema) = schemas.get_mut(name).and_then(Value::as_object_mut) {
            schema.insert("examples".into(), json!([example]));
        }
    }
}

fn pool_status() -> Value {
    json!({
        "name": "web",
        "scaleSet": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.Compute/virtualMachineScaleSets/web",
        "origin": "file",
        "file": "/etc/poolkeeper/pools/web.yaml",
        "at": "2026-03-01T12:00:00Z",
        "nextCheckAt": "2026-03-01T12:00:30Z",
        "numbers": {
            "desired": 30, "surge": 3, "unavailable": 0, "floor": 30, "ceiling": 33, "total": 33,
            "available": 30, "current": 12, "outdated": 18, "failed": 0, "notYetAvailable": 3,
            "deleting": 0, "requested": 0,
        },
        "phase": "Progressing",
        "holds": [{
            "reason": "floor",
            "meaning": "The number of available machines is at the floor: no more may be removed.",
            "message": "30 available, 30 committed; the floor is 30",
            "numbers": { "available": 30, "committed": 30, "floor": 30 },
            "blockers": [],
            "nextCheckAt": "2026-03-01T12:00:30Z",
            "remedy": null,
        }],
        "frozen": null,
        "trouble": null,
        "ignored": null,
        "estimate": {
            "finishes": "2026-03-01T12:40:00Z", "peakMachines": 33, "peakCores": 132, "calls": 60,
        },
        "awaitingSecondPerson": [],
        "stopAll": null,
    })
}

fn problem() -> Value {
    json!({
        "type": "urn:poolkeeper:problem:notFound",
        "title": "Not Found",
        "status": 404,
        "code": "notFound",
        "detail": "there is no pool wbe",
        "help": "did you mean web?",
        "errors": [],
    })
}

fn receipt() -> Value {
    json!({
        "apiVersion": "poolkeeper/v1",
        "kind": "Accepted",
        "id": "c-7f3a",
        "verb": "pause",
        "pool": "web",
        "machine": null,
        "who": "kim",
        "why": "errors since noon",
        "at": "2026-03-01T12:00:00Z",
        "look": "/api/v1/pools/web/commands/c-7f3a",
        "state": "waiting",
        "message": null,
    })
}
