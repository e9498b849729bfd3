//! `snapshot` of live pools, and what `plan` and `simulate` make of what it writes.

use serde_json::{Value, json};

use super::azure::{Azure, SECRET, SETS, set};
use super::clusters::{Cluster, budget, list, node, pool};
use super::support::*;

/// Three machines, the first of an older image.
fn azure() -> Azure {
    let older =
        json!({"publisher": "Canonical", "offer": "ubuntu", "sku": "22_04", "version": "1.0.0"});
    Azure::plain(json!({"scaleSets": [
        {"name": "web", "capacity": 3, "instances": [{"image": older}, {}, {}]}
    ]}))
}

/// A pod that says all that a pod can say.
fn pod(namespace: &str, name: &str, owner: Option<(&str, &str)>, app: &str) -> Value {
    let owners = owner.map(|(kind, name)| {
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}])
    });
    json!({
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"),
            "labels": {"app": app, "tier": "hush-label"}, "annotations": {"note": "hush-note"},
            "ownerReferences": owners.unwrap_or_else(|| json!([]))},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "hush-image", "args": ["hush-args"],
            "env": [{"name": "PASSWORD", "value": "hush-env"}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn cluster(name: &str) -> Cluster {
    Cluster::start(name, |path, _| match path {
        _ if path.starts_with("/api/v1/nodes") => {
            list([node("n0", Some(0)), node("n1", Some(1)), node("n2", Some(2))])
        }
        _ if path.contains("/api/v1/pods?fieldSelector=spec.nodeName%3Dn0") => list([
            pod("shop", "db-0", Some(("StatefulSet", "db")), "db"),
            pod("shop", "web-a", Some(("ReplicaSet", "web")), "web"),
            pod("system", "agent-x", Some(("DaemonSet", "agent")), "agent"),
        ]),
        _ if path.contains("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1") => {
            list([pod("shop", "lone", None, "lone")])
        }
        _ if path.contains("/api/v1/pods") => list([]),
        _ => list([
            budget("db", [1, 1, 0, 1]),
            budget("web", [3, 2, 1, 3]),
            budget("elsewhere", [2, 2, 0, 2]),
        ]),
    })
}

#[test]
fn the_pods_of_its_nodes_and_their_budgets_are_in_it() {
    let (azure, cluster, file) = (azure(), cluster("shot"), pool("shot.yaml", "adopt: roll\n"));
    let args = ["snapshot", "web", "--pool-file", &file, "--settings", &cluster.settings];
    let ended = azure.run(&args);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(!ended.out.contains("hush") && !ended.out.contains(SECRET), "{}", ended.out);
    let written = ended.json();
    assert_eq!((&written["kind"], &written["pool"]["name"]), (&json!("Snapshot"), &json!("web")));
    let budgets = json!([
        {"name": "shop/db", "healthy": 1, "desired": 1, "allowed": 0, "pods": 1},
        {"name": "shop/web", "healthy": 3, "desired": 2, "allowed": 1, "pods": 3},
    ]);
    assert_eq!(written["cluster"]["budgets"], budgets);
    let nodes = &written["cluster"]["nodes"];
    let db = json!({"namespace": "shop", "name": "db-0", "owner": {"kind": "StatefulSet", "name": "db"},
        "ready": true, "budgets": ["shop/db"]});
    assert_eq!((&nodes[0]["name"], &nodes[0]["pods"][0]), (&json!("n0"), &db));
    assert_eq!(nodes[1]["pods"][0]["owner"], Value::Null);
    let workloads = json!([
        {"pods": 2, "budgets": ["shop/db", "shop/web"]}, {"pods": 1, "budgets": []}, {"pods": 0, "budgets": []}
    ]);
    let of_machines: Vec<&Value> = written["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|machine| &machine["workloads"])
        .collect();
    assert_eq!(json!(of_machines), workloads);
    let asked = cluster.asked.lock().unwrap().clone();
    let pods = asked.iter().filter(|asked| asked.contains("/api/v1/pods?"));
    assert_eq!(pods.count(), 3, "one list a node: {asked:?}");
    assert!(asked.iter().all(|asked| asked.starts_with("GET ")), "{asked:?}");

    let now = written_to("shot.json", &ended.out);
    let plan = run(&["plan", "--snapshot", &now, "-o", "json"], "").json();
    let notices = plan["resolved"]["notices"].to_string();
    let says =
        "1 disruption budget can allow no eviction: shop/db (wants 1 healthy of 1 pod, has 1)";
    assert!(notices.contains(says), "{plan}");
    let explained = run(&["explain", "--snapshot", &now], "");
    assert!(explained.out.contains("shop/db"), "{explained:?}");
    let simulated = run(&["simulate", &now], "");
    assert_eq!(simulated.code, Some(0), "{simulated:?}");
}

#[test]
fn substitutes_hide_all_names_and_change_no_decision() {
    let (azure, cluster) = (azure(), cluster("veiled"));
    let file = pool("veiled.yaml", "adopt: roll\n");
    let args = ["snapshot", "web", "--pool-file", &file, "--settings", &cluster.settings];
    let (plain, veiled) = (azure.run(&args), azure.run(&[&args[..], &["--anonymous"]].concat()));
    assert_eq!((veiled.code, veiled.err.as_str()), (Some(0), ""), "{veiled:?}");
    for name in [
        "web",
        "shop",
        "db",
        "agent",
        "lone",
        "system",
        "n0",
        "prod",
        "/rg/",
        "00000000-0000-0000-0000",
    ] {
        assert!(plain.out.contains(name), "{name}: {}", plain.out);
        assert!(!veiled.out.contains(name), "{name}: {}", veiled.out);
    }
    let plan = |ended: &Ended, name: &str| {
        let now = written_to(name, &ended.out);
        run(&["plan", "--snapshot", &now, "-o", "json"], "").json()
    };
    let (plain, veiled) = (plan(&plain, "plain.json"), plan(&veiled, "veiled.json"));
    let verbs = |plan: &Value| {
        let actions = plan["actions"].as_array().unwrap().iter();
        actions.map(|action| (action["do"].clone(), action["machines"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(verbs(&plain), verbs(&veiled));
    assert!(!verbs(&plain).is_empty(), "{plain}");
    let says = "namespace-1/budget-1 (wants 1 healthy of 1 pod, has 1)";
    assert!(veiled["resolved"]["notices"].to_string().contains(says), "{veiled}");
}

#[test]
fn a_set_of_plain_machines_gives_the_plan_of_the_live_one() {
    let azure = azure();
    let ended = azure.run(&["snapshot", &set("web")]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let now = written_to("plain-set.json", &ended.out);
    let snapshot = run(&["plan", "--snapshot", &now, "-o", "json"], "").json();
    let live = azure.run(&["plan", "--resource", &set("web"), "-o", "json"]).json();
    for key in ["pool", "resolved", "rollout"] {
        assert_eq!(snapshot[key], live[key], "{key}");
    }
    let reasons = |plan: &Value| {
        let holds = plan["holds"].as_array().unwrap().iter();
        holds.map(|hold| hold["reason"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&snapshot), reasons(&live));
    assert_eq!(ended.json().get("cluster"), None);
}

#[test]
fn what_is_missing_is_said_with_a_remedy() {
    let (azure, file) = (azure(), pool("lacking.yaml", ""));
    let of = |more: &[&str]| {
        azure.run(&[&["snapshot", "web", "--pool-file", &file, "-o", "json"], more].concat())
    };
    let ended = of(&[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.out.contains("--settings FILE"), "{ended:?}");
    let ended = azure.run(&["snapshot", "other", "--pool-file", &file]);
    assert_eq!(ended.code, Some(4), "{ended:?}");

    let no = |say: &str| {
        (403, json!({"kind": "Status", "reason": "Forbidden", "code": 403, "message": say}))
    };
    let shut = Cluster::start("shut-pods", move |path, _| match path {
        _ if path.starts_with("/api/v1/nodes") => {
            list([node("n0", Some(0)), node("n1", Some(1)), node("n2", Some(2))])
        }
        _ => no("you may not"),
    });
    let ended = of(&["--settings", &shut.settings]);
    assert_eq!(ended.code, Some(6), "{ended:?}");
    assert!(
        ended.out.contains("the pods of node n0 of cluster prod could not be read"),
        "{ended:?}"
    );

    let unbudgeted = Cluster::start("no-budgets", move |path, _| match path {
        _ if path.starts_with("/api/v1/nodes") => {
            list([node("n0", Some(0)), node("n1", Some(1)), node("n2", Some(2))])
        }
        _ if path.contains("/api/v1/pods") => list([]),
        _ => no("you may not"),
    });
    let ended = of(&["--settings", &unbudgeted.settings]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let says = "disruption budgets: you may not; allow list poddisruptionbudgets.policy";
    assert!(ended.err.contains(says), "{ended:?}");
    assert!(ended.out.contains(SETS), "{ended:?}");
}

fn written_to(name: &str, text: &str) -> String {
    written(name, text.as_bytes())
}
