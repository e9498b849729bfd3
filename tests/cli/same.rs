//! The same snapshot gives the same bytes, whatever the order of its lists.

use serde_json::{Value, json};

use super::support::*;

/// Other orders of a list: turned round, and rotated by each of a few steps.
fn orders(list: &[Value]) -> Vec<Vec<Value>> {
    let mut orders = vec![list.iter().rev().cloned().collect::<Vec<_>>()];
    for by in [1, 2, 3, 5] {
        let mut rotated = list.to_vec();
        rotated.rotate_left(by % list.len().max(1));
        orders.push(rotated);
    }
    orders
}

#[test]
fn any_order_of_lists_gives_the_same_bytes() {
    let mut snapshot = rolling();
    snapshot["open"].as_array_mut().unwrap().push(json!({
        "id": "e11", "do": "raise", "since": "2026-03-01T11:57:00Z", "from": 6, "to": 7,
    }));
    snapshot["commands"] = json!([
        {"id": "a1", "verb": "pause", "by": "kim", "why": "wait", "at": "2026-03-01T11:59:00Z"},
        {"id": "a2", "verb": "resume", "by": "kim", "why": "go", "at": "2026-03-01T11:59:30Z"},
        {"id": "a0", "verb": "approve", "by": "kim", "why": "go", "at": "2026-03-01T11:59:30Z"}
    ]);
    snapshot["facts"]["gates"] = json!([
        {"name": "errors", "verdict": "pass", "at": "2026-03-01T11:59:00Z"},
        {"name": "latency", "verdict": "fail", "at": "2026-03-01T11:59:00Z"}
    ]);
    let answers = |snapshot: &Value| {
        let text = snapshot.to_string();
        let commands: [&[&str]; 4] = [
            &["plan", "-s", "-", "-o", "json"],
            &["plan", "-s", "-"],
            &["explain", "-s", "-"],
            &["explain", "-s", "-", "7", "-o", "json"],
        ];
        commands.map(|args| run(args, &text))
    };
    let first = answers(&snapshot);
    assert!(first.iter().all(|ended| ended.code == Some(0)), "{first:?}");
    for path in ["/machines", "/open", "/commands", "/facts/gates", "/scaleSet/zones"] {
        let list = snapshot.pointer(path).unwrap().as_array().unwrap().clone();
        for order in orders(&list) {
            let mut shuffled = snapshot.clone();
            *shuffled.pointer_mut(path).unwrap() = Value::Array(order);
            assert_eq!(answers(&shuffled), first, "{path}");
        }
    }
}

#[test]
fn the_environment_changes_no_document() {
    let args = &["plan", "-s", ROLLING, "-o", "json"];
    let first = run(args, "");
    for (name, value) in
        [("COLUMNS", "40"), ("NO_COLOR", "1"), ("TZ", "Asia/Tokyo"), ("LANG", "de")]
    {
        let mut command = command(args);
        command.env(name, value);
        assert_eq!(finish(command, b""), first, "{name}");
    }
}
