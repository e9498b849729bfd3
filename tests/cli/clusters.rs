//! `doctor` and the Kubernetes clusters of pools: a server on this machine plays the cluster.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::azure::{Azure, SECRET, SETS, set};
use super::support::*;

/// A cluster that answers each path, and what it was asked.
pub(super) struct Cluster {
    pub settings: String,
    pub asked: Arc<Mutex<Vec<String>>>,
}

type Mouth = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;

impl Cluster {
    /// `name`: of the test, for its files.
    pub fn start(
        name: &str,
        says: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, says): (_, Arc<Mouth>) = (Arc::clone(&asked), Arc::new(says));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, heard, says) =
                    (stream.unwrap(), Arc::clone(&heard), Arc::clone(&says));
                thread::spawn(move || answer(stream, &heard, &*says));
            }
        });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": SECRET}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        });
        let kubeconfig = written(&format!("{name}.kubeconfig"), kubeconfig.to_string().as_bytes());
        let settings = json!({"clusters": {"prod": {"kubeconfig": kubeconfig}}});
        let settings = written(&format!("{name}-settings.yaml"), settings.to_string().as_bytes());
        Self { settings, asked }
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<Vec<String>>, says: &Mouth) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    heard.lock().unwrap().push(format!("{} {path}", first.split(' ').next().unwrap_or_default()));
    if path.contains("watch=true") {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        // It says nothing more until the other end closes.
        let _closed = reader.read_to_end(&mut Vec::new());
        return;
    }
    let (status, json) = says(&path, &serde_json::from_slice(&body).unwrap_or_default());
    let json = json.to_string();
    let head = format!(
        "HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        json.len()
    );
    stream.write_all(format!("{head}{json}").as_bytes()).unwrap();
}

pub(super) fn list(items: impl IntoIterator<Item = Value>) -> (u16, Value) {
    let items: Vec<Value> = items.into_iter().collect();
    (200, json!({"metadata": {"resourceVersion": "10"}, "items": items}))
}

/// The node of a machine of the set `web`; without a machine, one without an id.
pub(super) fn node(name: &str, machine: Option<u32>) -> Value {
    let id = machine.map(|id| json!(format!("azure://{SETS}/web/virtualMachines/{id}")));
    json!({
        "metadata": {"name": name, "resourceVersion": "1", "creationTimestamp": "2100-01-01T00:00:00Z"},
        "spec": {"providerID": id},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub(super) fn budget(name: &str, [healthy, desired, allowed, expected]: [u32; 4]) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"observedGeneration": 1, "currentHealthy": healthy, "desiredHealthy": desired,
            "disruptionsAllowed": allowed, "expectedPods": expected},
    })
}

fn azure() -> Azure {
    Azure::plain(json!({"scaleSets": [{"name": "web", "capacity": 3}]}))
}

pub(super) fn pool(file: &str, more: &str) -> String {
    let web = set("web");
    let text = format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: web\nscaleSet: {web}\ncluster: prod\n\
         replicas: {{owner: pool, count: 3}}\n{more}"
    );
    written(file, text.as_bytes())
}

/// The outcomes and sentences of the checks of a cluster, and of the pool's check of nodes.
fn told(ended: &Ended) -> (Vec<String>, String) {
    let document = ended.json();
    let say = |check: &Value| {
        let [outcome, name, say] = ["outcome", "check", "message"].map(|key| check[key].as_str());
        format!("{} {}: {}", outcome.unwrap(), name.unwrap(), say.unwrap())
    };
    assert_eq!(document["clusters"][0]["cluster"], "prod", "{document}");
    let cluster = document["clusters"][0]["checks"].as_array().unwrap().iter().map(say).collect();
    let of_pool = document["pools"][0]["checks"].as_array().unwrap();
    let nodes = of_pool.iter().find(|check| check["check"] == "nodes").map(say).unwrap();
    (cluster, nodes)
}

#[test]
fn a_cluster_is_examined_and_nothing_is_changed() {
    let cluster = Cluster::start("examined", |path, body| match path {
        _ if path.starts_with("/api/v1/nodes") => list([
            node("n0", Some(0)),
            node("n1", Some(1)),
            node("n2", Some(2)),
            node("other", None),
        ]),
        _ if path.ends_with("selfsubjectaccessreviews") => {
            let allowed = body["spec"]["resourceAttributes"]["resource"] != "volumeattachments";
            (201, json!({"status": {"allowed": allowed}}))
        }
        _ => list([
            budget("db", [2, 2, 0, 2]),
            budget("web", [3, 2, 1, 3]),
            budget("old", [0, 0, 0, 0]),
        ]),
    });
    let (azure, file) = (azure(), pool("clustered.yaml", ""));
    let args = ["doctor", "--pool-file", &file, "--settings", &cluster.settings];
    let ended = azure.run(&[&args[..], &["-o", "json"]].concat());
    assert_eq!(ended.code, Some(7), "{ended:?}");
    let (checks, nodes) = told(&ended);
    assert_eq!(nodes, "ok nodes: 3 of 3 machines with a node in cluster prod");
    let starts = [
        "note cluster: it answers, with 4 nodes, 1 of them without a providerID",
        "ok permissions: 7 of 8 that are needed are held",
        "finding permissions: list volumeattachments.storage.k8s.io is not held",
        "ok budgets: 3 budgets",
        "note budgets: even with all pods healthy, 1 budget can allow no eviction: shop/db (2 healthy of 2); ",
        "note budgets: 1 budget without a pod now, so nothing is protected: shop/old",
    ];
    assert_eq!(checks.len(), starts.len(), "{checks:#?}");
    for (check, start) in checks.iter().zip(starts) {
        assert!(check.starts_with(start), "{start}: {check}");
    }
    assert!(!ended.out.contains(SECRET) && !ended.err.contains(SECRET), "{ended:?}");
    let asked = cluster.asked.lock().unwrap().clone();
    let is_question =
        |asked: &&String| asked.starts_with("GET ") || asked.ends_with("selfsubjectaccessreviews");
    assert_eq!(asked.iter().filter(is_question).count(), asked.len(), "{asked:?}");
    let text = azure.run(&args).out;
    assert!(text.contains("\nCluster prod\n"), "{text}");
    assert!(text.contains("→ bind this identity to the ClusterRole"), "{text}");
}

#[test]
fn a_pool_that_deletes_nothing_needs_no_right_to() {
    let cluster = Cluster::start("gentle", |path, body| match path {
        _ if path.ends_with("selfsubjectaccessreviews") => {
            let allowed = body["spec"]["resourceAttributes"]["verb"] != "delete";
            (201, json!({"status": {"allowed": allowed}}))
        }
        _ => list([]),
    });
    let azure = azure();
    for (drain, held) in [
        ("ladder: {shorterGrace: off}, nodeDeletion: off", "6 of 6"),
        ("ladder: {shorterGrace: 5m}, nodeDeletion: off", "6 of 7"),
        ("ladder: {shorterGrace: off}", "6 of 7"),
    ] {
        let file = pool("gentle.yaml", &format!("drain: {{{drain}}}\n"));
        let args = ["doctor", "--pool-file", &file, "--settings", &cluster.settings, "-o", "json"];
        let (checks, _) = told(&azure.run(&args));
        let says = format!("ok permissions: {held} that are needed are held");
        assert!(checks.contains(&says), "{drain}: {checks:?}");
    }
}

#[test]
fn what_a_cluster_does_not_tell_is_not_guessed() {
    let forbids = Cluster::start("forbids", |path, _| match path {
        _ if path.ends_with("selfsubjectaccessreviews") => {
            (201, json!({"status": {"allowed": false}}))
        }
        _ => (
            403,
            json!({"kind": "Status", "reason": "Forbidden", "code": 403, "message": "you may not"}),
        ),
    });
    let (azure, file) = (azure(), pool("silent.yaml", ""));
    let run = |more: &[&str]| {
        azure.run(&[&["doctor", "--pool-file", &file, "-o", "json"], more].concat())
    };
    let (checks, nodes) = told(&run(&["--settings", &forbids.settings]));
    assert!(checks[0].starts_with("finding cluster: its nodes could not be read: "), "{checks:?}");
    assert!(checks[1].starts_with("ok permissions: 0 of 8"), "{checks:?}");
    let last = checks.last().unwrap();
    assert_eq!(last, "unknown budgets: they could not be read: you may not");
    assert_eq!(nodes, "unknown nodes: not known: see what is said of the cluster above");

    let (checks, nodes) = told(&run(&[]));
    let say = "unknown cluster: not checked: only the settings of the daemon say how it is reached";
    assert_eq!(checks, [say]);
    assert!(nodes.starts_with("unknown nodes"), "{nodes}");

    let none = written("none-settings.yaml", b"clusters: {other: {}}\n");
    let ended = run(&["--settings", &none]);
    let (checks, _) = told(&ended);
    let say = "finding cluster: its nodes could not be read: the settings name no such cluster";
    assert_eq!((ended.code, &checks[..]), (Some(7), &[say.to_owned()][..]));

    let bad = written("bad-settings.yaml", b"clusters: {prod: {kubeconfigs: x}}\n");
    let ended = run(&["--settings", &bad]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.out.contains("kubeconfigs") && ended.out.contains("--print-settings"),
        "{ended:?}"
    );
}
