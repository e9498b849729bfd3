//! Snapshots that are refused, and where the mistake is said to be.

use poolkeeper::api::v1::diagnostic::Code;
use poolkeeper::api::v1::snapshot::Snapshots;

use super::snapshots::{machine_with, read};
use crate::api::support::{snapshot, snapshot_with};

/// A key, what is put there, and what is said of it.
const BAD: &[(&str, &str, &str)] = &[
    ("apiVersion", "\"poolkeeper/v2\"", "apiVersion wrongVersion"),
    ("kind", "\"Plan\"", "kind wrongVersion"),
    ("now", "null", "now wrongType"),
    ("now", "\"noon\"", "now badValue"),
    ("now", "\"2026-02-30T00:00:00Z\"", "now badValue"),
    ("now", "\"99999-01-01T00:00:00Z\"", "now badValue"),
    ("seed", "-1", "seed badValue"),
    ("seed", "1.5", "seed wrongType"),
    ("pool", "null", "pool wrongType"),
    ("pool", "[]", "pool wrongType"),
    ("pool", "{}", "pool.name missingKey"),
    ("colour", "1", "colour unknownKey"),
    ("scaleSet", "{}", "scaleSet.revision missingKey"),
    (
        "scaleSet",
        r#"{"revision":"r","capacity":-1,"readAt":"2026-03-01T11:59:58Z"}"#,
        "scaleSet.capacity badValue",
    ),
    (
        "scaleSet",
        r#"{"revision":"r","capacity":4000000000,"readAt":"2026-03-01T11:59:58Z"}"#,
        "scaleSet.capacity badValue",
    ),
    (
        "scaleSet",
        r#"{"revision":null,"capacity":1,"readAt":"2026-03-01T11:59:58Z"}"#,
        "scaleSet.revision wrongType",
    ),
    (
        "scaleSet",
        r#"{"revision":"r","capacity":1,"readAt":"2026-03-01T12:00:01.001Z"}"#,
        "scaleSet.readAt contradiction",
    ),
    (
        "scaleSet",
        r#"{"revision":"r","capacity":1,"readAt":"2026-03-01T11:00:00Z","platformFeatures":["repairs"]}"#,
        "scaleSet.platformFeatures[0] badValue",
    ),
    ("machines", "null", "machines wrongType"),
    ("machines", "[1]", "machines[0] wrongType"),
    ("machines", "[{}]", "machines[0].id missingKey"),
    ("open", "[{}]", "open[0].id missingKey"),
    ("open", r#"[{"id":"e","do":"reboot","since":"2026-03-01T11:00:00Z"}]"#, "open[0].do badValue"),
    (
        "open",
        r#"[{"id":"e","do":"raise","since":"2026-03-01T11:00:00Z","from":1}]"#,
        "open[0].to missingKey",
    ),
    (
        "open",
        r#"[{"id":"e","do":"raise","since":"2026-03-01T11:00:00Z","from":2,"to":1}]"#,
        "open[0].to contradiction",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z"}]"#,
        "open[0].machines missingKey",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z","machines":["1"],"vmIds":{"2":"v"}}]"#,
        "open[0].vmIds badValue",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z","machines":["1"],"to":1}]"#,
        "open[0].to badValue",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z","machines":["1"],"outcome":{"ok":false}}]"#,
        "open[0].outcome.refusal missingKey",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z","machines":["1"],"outcome":{"ok":true,"machines":{"x":{"ok":true}}}}]"#,
        "open[0].outcome.machines badValue",
    ),
    ("commands", r#"[{"id":"a","verb":"stop"}]"#, "commands[0].verb badValue"),
    ("commands", r#"[{"id":"a","verb":"abandon"}]"#, "commands[0].args.machine missingKey"),
    (
        "commands",
        r#"[{"id":"a","verb":"pause"},{"id":"a","verb":"resume"}]"#,
        "commands[1].id duplicateKey",
    ),
    (
        "open",
        r#"[{"id":"e","do":"delete","since":"2026-03-01T11:00:00Z","machines":["1","2","1"]}]"#,
        "open[0].machines[2] duplicateKey",
    ),
    (
        "open",
        r#"[{"id":"e","do":"raise","since":"2026-03-01T11:00:00Z","from":1,"to":2},
            {"id":"e","do":"raise","since":"2026-03-01T11:00:00Z","from":2,"to":3}]"#,
        "open[1].id duplicateKey",
    ),
    ("commands", r#"[{"id":"","verb":"pause"}]"#, "commands[0].id badValue"),
    (
        "commands",
        r#"[{"id":"a","verb":"pause","args":{"machine":"1"}}]"#,
        "commands[0].args.machine badValue",
    ),
    (
        "facts",
        r#"{"gates":[{"name":"g","verdict":"pass","at":"2026-03-01T11:00:00Z"},
            {"name":"g","verdict":"fail","at":"2026-03-01T11:00:00Z"}]}"#,
        "facts.gates[1].name duplicateKey",
    ),
    (
        "facts",
        r#"{"gates":[{"name":"g","verdict":"maybe","at":"2026-03-01T11:00:00Z"}]}"#,
        "facts.gates[0].verdict badValue",
    ),
    (
        "facts",
        r#"{"budgets":[{"name":"a","healthy":3,"desired":2,"allowed":1},
            {"name":"a","healthy":3,"desired":2,"allowed":1}]}"#,
        "facts.budgets[1].name duplicateKey",
    ),
    (
        "facts",
        r#"{"budgets":[{"name":"","healthy":3,"desired":2,"allowed":1}]}"#,
        "facts.budgets[0].name badValue",
    ),
    (
        "facts",
        r#"{"budgets":[{"name":"a","healthy":3,"desired":2}]}"#,
        "facts.budgets[0].allowed missingKey",
    ),
    ("state", r#"{"v":2,"new":1}"#, "state wrongVersion"),
    ("state", r#"{"v":1,"strange":1}"#, "state badValue"),
    ("state", "7", "state badValue"),
];

#[test]
fn what_is_wrong_is_refused_by_name() {
    for (key, value, expected) in BAD {
        let text = snapshot_with(key, value);
        let problem = read(&text).expect_err(value);
        assert_eq!(format!("{} {}", problem.field, problem.code.name()), *expected, "{problem}");
        assert!(problem.column > 1, "{problem}");
    }
    for (more, expected) in [
        (",\"vmid\":\"x\"", "machines[0].vmid unknownKey"),
        (",\"id\":\"x\"", "machines[0].id duplicateKey"),
        (",\"zone\":1", "machines[0].zone wrongType"),
        (",\"lifecycle\":\"Gone\"", "machines[0].lifecycle badValue"),
        (",\"deleteRequested\":1", "machines[0].deleteRequested wrongType"),
        (",\"deleteRequested\":{\"who\":1}", "machines[0].deleteRequested.who unknownKey"),
        (",\"workloads\":-1", "machines[0].workloads badValue"),
        (",\"workloads\":4294967296", "machines[0].workloads badValue"),
        (",\"workloads\":\"7\"", "machines[0].workloads wrongType"),
        (",\"workloads\":{}", "machines[0].workloads.pods missingKey"),
        (",\"workloads\":{\"pods\":1,\"all\":2}", "machines[0].workloads.all unknownKey"),
        (
            ",\"workloads\":{\"pods\":1,\"budgets\":[\"a\"]}",
            "machines[0].workloads.budgets[0] badValue",
        ),
        (
            ",\"workloads\":{\"pods\":1,\"budgets\":[\"a\",\"a\"]}",
            "machines[0].workloads.budgets[1] duplicateKey",
        ),
        (",\"vmId\":\"\"", "machines[0].vmId badValue"),
    ] {
        let problem = read(&machine_with(more)).expect_err(more);
        assert_eq!(format!("{} {}", problem.field, problem.code.name()), expected, "{problem}");
    }
    for (twice, expected) in [("id", "machines[1].id"), ("vmId", "machines[1].vmId")] {
        let text = snapshot(3).replace(
            if twice == "id" { "\"id\":\"2\"" } else { "\"vmId\":\"v2\"" },
            if twice == "id" { "\"id\":\"1\"" } else { "\"vmId\":\"v1\"" },
        );
        let problem = read(&text).expect_err(twice);
        assert_eq!((problem.field.as_str(), problem.code), (expected, Code::DuplicateKey));
    }
}

#[test]
fn problems_stand_where_the_mistake_is() {
    let text = "{\n  \"now\": \"2026-03-01T12:00:00Z\",\n  \"pool\": {\"name\": \"web\",\n    \"rollout\": {\"bake\": 5}},\n  \
        \"scaleSet\": {}, \"machines\": []}";
    let text = text.replace(
        "\"scaleSet\": {}",
        r#""scaleSet": {"revision":"r","capacity":1,"readAt":"2026-03-01T11:00:00Z"}"#,
    );
    let problem = read(&text).unwrap_err();
    assert_eq!((problem.line, problem.column, problem.field.as_str()), (3, 11, "pool.scaleSet"));
    assert!(problem.message.ends_with("(and 2 more)"), "{problem}");
    let problem =
        read("{\"now\": \"2026-03-01T12:00:00Z\",\n \"pool\": {},\n \"état\": 1}").unwrap_err();
    assert_eq!((problem.line, problem.column, problem.code), (3, 2, Code::UnknownKey));
    let problem = read("{\"now\": \"2026-03-01T12:00:00Z\",\n \"pool\" {}").unwrap_err();
    assert_eq!((problem.line, problem.column, problem.code), (2, 9, Code::Syntax));
    let problem = Snapshots::default().read(b"{\"a\": \"\xff\"}").unwrap_err();
    assert_eq!((problem.line, problem.column, problem.code), (1, 8, Code::Syntax));
    assert_eq!(read("").unwrap_err().clone().on_line(7).line, 7);
    let json = read("{\"seed\":\"x\"}").unwrap_err().to_json();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["kind"], &json["field"], &json["line"]),
        (&"Error".into(), &"seed".into(), &1.into())
    );
}
