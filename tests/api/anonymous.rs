//! Snapshots as they are written, and under substitute names.

use std::collections::BTreeMap;

use poolkeeper::api::v1::plan;
use poolkeeper::api::v1::snapshot::{NotFirstSight, SnapshotInput, Snapshots, anonymous, encode};
use poolkeeper::plan::plan as decide;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::support::snapshot_with;

/// A name that people could have given, found again in any text. Names sort in no order that the test knows.
fn name(number: u32) -> String {
    format!("zq{:05}zq", number.wrapping_mul(48_271) % 99_991)
}

const TOKEN: usize = 9;

/// Where the next such name begins.
fn find(text: &str) -> Option<usize> {
    let is_one = |at: &usize| {
        let token = text.get(*at..at + TOKEN);
        token.is_some_and(|token| {
            token.ends_with("zq") && token[2..7].bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    text.match_indices("zq").map(|(at, _)| at).find(is_one)
}

fn group(number: u32) -> String {
    format!("/subscriptions/{}/resourceGroups/{}/providers", name(1), name(number))
}

fn set() -> String {
    format!("{}/Microsoft.Compute/virtualMachineScaleSets/{}", group(2), name(3))
}

fn image(version: &str) -> String {
    format!(
        "{}/Microsoft.Compute/galleries/{}/images/{}/versions/{version}",
        group(5),
        name(6),
        name(7)
    )
}

/// A pool with a name wherever it can have one.
fn pool(by_profiles: bool, rolls: bool) -> Value {
    let replicas = match by_profiles {
        true => json!({"min": 1, "max": 20, "profiles": [
            {"name": name(20), "static": {"count": 5}},
            {"name": name(21), "priority": 1, "metric": {"server": name(22), "query": name(23), "target": 10}},
            {"name": name(24), "priority": 2, "share": {"of": [name(25), name(26)], "percent": "50%"}},
        ]}),
        false => json!({"owner": "pool", "count": 5}),
    };
    json!({
        "apiVersion": "poolkeeper/v1", "kind": "Pool", "name": name(4), "scaleSet": set(), "cluster": name(8),
        "replicas": replicas,
        "model": {"image": image("2.0.0"), "vmSize": "Standard_D2s_v5", "tags": {"team": name(9)}},
        "adopt": if rolls { "roll" } else { "hold" },
        "rollout": {"maxUnavailable": 1, "checkpoints": [{"at": 1, "gates": [name(10), name(11)]}]},
        "gates": [
            {"name": name(10), "prometheus": {"server": name(22), "query": name(12), "pass": "< 1"}},
            {"name": name(11), "http": {"endpoint": name(13)}},
            {"name": name(14), "command": {"run": name(15)}},
        ],
        "notifications": [{"webhook": name(16)}],
        "drain": {
            "loadBalancer": [format!("{}/Microsoft.Network/loadBalancers/{}/backendAddressPools/{}", group(2), name(17), name(18))],
            "hooks": {"before": name(16), "after": name(19)},
            "rules": [{"match": {"namespace": name(30), "labels": {"app": name(90)}}, "do": "skip"}],
        },
    })
}

/// What is drawn of one machine.
#[derive(Debug, Clone)]
struct MachineDraw {
    current: bool,
    condition: usize,
    zone: usize,
    minutes: i64,
    workloads: u32,
    budgets: Vec<bool>,
    node: bool,
    mark: u8,
}

fn machine_draw() -> impl Strategy<Value = MachineDraw> {
    let parts = (
        any::<bool>(),
        0..8_usize,
        0..3_usize,
        0..4_i64,
        0..4_u32,
        prop::collection::vec(any::<bool>(), 3),
        any::<bool>(),
        0..12_u8,
    );
    parts.prop_map(|(current, condition, zone, minutes, workloads, budgets, node, mark)| {
        MachineDraw { current, condition, zone, minutes, workloads, budgets, node, mark }
    })
}

fn budget(at: usize) -> String {
    format!("{}/{}", name(30 + at as u32), name(40 + at as u32))
}

fn machine(at: usize, of: &MachineDraw, counted: bool) -> Value {
    const CONDITIONS: [&str; 8] =
        ["Ready", "Ready", "Ready", "Ready", "Unready", "Failed", "Provisioning", "Stopped"];
    let number = at as u32;
    let budgets = (0..3).filter(|nth| of.budgets[*nth]).map(budget).collect::<Vec<_>>();
    let since = format!("2026-03-01T09:{:02}:00Z", 10 + of.minutes);
    let mut machine = json!({
        "id": if counted { at.to_string() } else { name(100 + number) },
        "vmId": name(200 + number),
        "zone": (of.zone + 1).to_string(),
        "createdAt": since, "since": since,
        "revision": if of.current { "r2" } else { "r1" },
        "condition": CONDITIONS[of.condition],
        "workloads": {"pods": of.workloads, "budgets": budgets},
    });
    if of.node {
        machine["node"] = name(300 + number).into();
    }
    match of.mark {
        0 => machine["deleteRequested"] = json!({"by": name(60), "why": name(61)}),
        1 => machine["hold"] = json!({"by": name(62), "why": name(63)}),
        _ => {}
    }
    machine
}

fn document(
    all: &[MachineDraw],
    capacity: i64,
    by_profiles: bool,
    rolls: bool,
    counted: bool,
) -> Value {
    let capacity = (all.len() as i64 + capacity).max(0);
    let (first, attached) = if counted { ("0".into(), "90".into()) } else { (name(100), name(80)) };
    let lock = format!("{}/Microsoft.Compute/virtualMachines/{first}", group(2));
    let pods = |at: usize| {
        json!([
            {"namespace": name(30), "name": name(400 + at as u32), "ready": true, "budgets": [budget(0)],
                "owner": {"kind": "ReplicaSet", "name": name(70)}},
            {"namespace": name(31), "name": name(500 + at as u32), "ready": false},
            {"namespace": name(31), "name": name(600 + at as u32), "ready": true,
                "owner": {"kind": "DaemonSet", "name": name(71)}},
        ])
    };
    let nodes = all.iter().enumerate().filter(|(_, of)| of.node);
    let nodes: Vec<Value> =
        nodes.map(|(at, _)| json!({"name": name(300 + at as u32), "pods": pods(at)})).collect();
    json!({
        "apiVersion": "poolkeeper/v1", "kind": "Snapshot", "now": "2026-03-01T12:00:00Z", "seed": 3,
        "pool": pool(by_profiles, rolls),
        "scaleSet": {
            "revision": "r2", "capacity": capacity, "readAt": "2026-03-01T11:59:58Z", "etag": "\"7\"",
            "orchestration": if counted { "Uniform" } else { "Flexible" },
            "zones": ["1", "2", "3"], "attached": [attached], "platformFeatures": ["autoscale"],
            "autoscaler": {"setting": format!("{}/Microsoft.Insights/autoscaleSettings/{}", group(2), name(81)),
                "enabled": true, "bounds": {"profile": name(82), "minimum": 1, "maximum": 30}},
            "locks": [{"name": name(83), "level": "canNotDelete",
                "id": format!("{lock}/providers/Microsoft.Authorization/locks/{}", name(83))}],
            "loadBalancers": [format!("{}/Microsoft.Network/loadBalancers/{}/backendAddressPools/{}", group(2), name(17), name(18))],
            "model": {"image": image("1.0.0"), "vmSize": "Standard_D2s_v5", "tags": {"team": name(9), "cost": name(84)}},
            "modelRest": {"disk": name(85)},
        },
        "machines": all.iter().enumerate().map(|(at, of)| machine(at, of, counted)).collect::<Vec<_>>(),
        "facts": {"quota": {"family": "standardDSv5Family", "coresLeft": 40, "coresEach": 2},
            "follow": {"image": image("2.0.0"), "at": "2026-03-01T11:59:00Z"}, "clockAheadSeconds": -3},
        "cluster": {"nodes": nodes, "budgets": (0..3).map(|at| json!(
            {"name": budget(at), "healthy": 3, "desired": 2 + at, "allowed": i32::from(at == 0), "pods": 3}
        )).collect::<Vec<_>>()},
    })
}

fn read(text: &str) -> SnapshotInput {
    Snapshots::default().read(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem}: {text}"))
}

fn planned(snapshot: &SnapshotInput) -> String {
    plan::encode(&snapshot.input(), &decide(&snapshot.input()).unwrap())
}

/// What stands for each name, from two documents of one shape.
fn substitutes(one: &Value, other: &Value, found: &mut BTreeMap<String, String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            assert!(one.keys().eq(other.keys()), "{one:?} {other:?}");
            one.iter().for_each(|(key, value)| substitutes(value, &other[key], found));
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(one, other)| substitutes(one, other, found));
        }
        (Value::String(one), Value::String(other)) => {
            let (mut one, mut other) = (one.as_str(), other.as_str());
            while let Some(at) = find(one) {
                assert_eq!(one[..at], other[..at]);
                let token = &one[at..at + TOKEN];
                (one, other) = (&one[at + TOKEN..], &other[at..]);
                let ends = other.find('/').filter(|_| !one.is_empty()).unwrap_or(other.len());
                let before = found.insert(token.to_owned(), other[..ends].to_owned());
                assert!(before.is_none_or(|before| before == other[..ends]), "{token}");
                other = &other[ends..];
            }
            assert_eq!(one, other);
        }
        _ => assert_eq!(one, other),
    }
}

/// The text with each name replaced.
fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    let (mut left, mut out) = (text, String::new());
    while let Some(at) = find(left) {
        out.push_str(&left[..at]);
        out.push_str(&names[&left[at..at + TOKEN]]);
        left = &left[at + TOKEN..];
    }
    out + left
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn the_plan_under_substitute_names_is_the_same_plan(
        all in prop::collection::vec(machine_draw(), 0..9),
        capacity in -1..3_i64,
        by_profiles: bool,
        rolls: bool,
        counted: bool,
    ) {
        let text = document(&all, capacity, by_profiles, rolls, counted).to_string();
        let snapshot = read(&text);
        let written = encode(&snapshot).unwrap();
        prop_assert_eq!(&read(&written), &snapshot);
        let other = anonymous(&snapshot).unwrap();
        let other_text = encode(&other).unwrap();
        prop_assert_eq!(find(&other_text), None, "a name is left: {}", other_text);
        prop_assert_eq!(&read(&other_text), &other);
        prop_assert_eq!(&anonymous(&other).unwrap(), &other, "substitutes stand for themselves");

        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let mut names = BTreeMap::new();
        substitutes(&json(&written), &json(&other_text), &mut names);
        prop_assert_eq!(renamed(&planned(&snapshot), &names), planned(&other));
    }
}

#[test]
fn only_a_first_sight_is_written() {
    let first = read(&snapshot_with("seed", "1"));
    assert_eq!(read(&encode(&first).unwrap()), first);
    let asked = r#"[{"id":"a","verb":"pause"}]"#;
    assert_eq!(encode(&read(&snapshot_with("commands", asked))), Err(NotFirstSight));
    let gate = r#"{"gates":[{"name":"a","verdict":"pass","at":"2026-03-01T11:00:00Z"}]}"#;
    assert_eq!(encode(&read(&snapshot_with("facts", gate))), Err(NotFirstSight));
}

#[test]
fn the_pods_of_a_snapshot_are_read_with_their_budgets() {
    let cluster = |pods: &str| {
        let text = format!(
            r#"{{"budgets":[{{"name":"shop/db","healthy":1,"desired":1,"allowed":0}}],"nodes":[{{"name":"n1","pods":[{pods}]}}]}}"#
        );
        Snapshots::default().read(snapshot_with("cluster", &text).as_bytes())
    };
    let pod = r#"{"namespace":"shop","name":"db-0","ready":true,"owner":{"kind":"StatefulSet","name":"db"},"budgets":["shop/db"]}"#;
    let found = cluster(pod).unwrap();
    let pods = found.cluster.unwrap().0.into_values().next().unwrap();
    assert_eq!((&*pods[0].name, &*pods[0].budgets[0]), ("db-0", "shop/db"));
    assert_eq!(&*found.facts.budgets[0].name, "shop/db");
    let wrong = cluster(&pod.replace("[\"shop/db\"]", "[\"shop/bd\"]")).unwrap_err().to_string();
    assert!(wrong.contains("cluster.nodes[0].pods[0].budgets[0]"), "{wrong}");
    let secret = cluster(&pod.replace("\"ready\"", "\"env\":[],\"ready\"")).unwrap_err();
    assert!(secret.to_string().contains("env"), "{secret}");
}
