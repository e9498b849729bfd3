//! How a cluster is opened and opened again, and that no text holds its secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolkeeper::adapters::kubernetes::{ClusterConfig, Clusters};
use poolkeeper::ambient::SharedClock;
use poolkeeper::drain::ClusterApi;
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::Span;
use serde_json::json;

use super::kit::{Rig, TOKEN, n1, refuse, write_config};
use crate::azure::server::Says;

#[tokio::test]
async fn a_token_that_changed_on_the_disk_is_used_after_a_refusal() {
    let rig = Rig::start(|heard| match heard.header("authorization") {
        Some("Bearer new") => Says::json(&json!({"items": []})),
        _ => refuse(401, "Unauthorized", "Unauthorized"),
    })
    .await;
    let ask = async || rig.clusters.pods(&rig.name, &n1()).await;
    assert_eq!(ask().await.unwrap_err().refusal, Refusal::Forbidden);
    write_config(&rig.folder, &rig.server.base, "new");
    assert!(ask().await.is_err(), "files are not read at each refusal");
    rig.clock.pass(Span::seconds(16));
    assert!(ask().await.is_err());
    assert_eq!(ask().await, Ok(Vec::new()));
}

#[tokio::test]
async fn what_cannot_be_opened_is_an_error_until_it_can() {
    let rig = Rig::start(|_| Says::json(&json!({"items": []}))).await;
    let good = std::fs::read_to_string(rig.folder.file("config")).unwrap();
    let ask = async || rig.clusters.pods(&rig.name, &n1()).await;
    let bad = [
        ("", "it has no current context"),
        ("users: [{name: u, user: {token: sEcReT-token-1", "it is no kubeconfig"),
        (&good.replace("http://127.0.0.1", "http://example.com"), "https://"),
        (&good.replace("\"token\"", "\"client-key-data\""), "its key is no base64"),
    ];
    for (text, says) in bad {
        std::fs::write(rig.folder.file("config"), text).unwrap();
        rig.clock.pass(Span::minutes(6));
        let told = ask().await.unwrap_err();
        let message = told.message.clone().unwrap();
        assert!(message.contains(says), "{message}");
        assert_eq!(told.refusal, Refusal::Unclear);
        assert!(!format!("{told:?}").contains("sEcReT"), "{told:?}");
    }
    std::fs::remove_file(rig.folder.file("config")).unwrap();
    rig.clock.pass(Span::minutes(6));
    assert!(ask().await.unwrap_err().message.unwrap().contains("cannot be read"));
    assert_eq!(rig.server.heard().len(), 0);
    std::fs::write(rig.folder.file("config"), good).unwrap();
    assert!(ask().await.is_err(), "it is not tried all the time");
    rig.clock.pass(Span::minutes(6));
    assert_eq!(ask().await, Ok(Vec::new()));
    assert!(!format!("{:?}", rig.clusters).contains(TOKEN));
}

#[tokio::test]
async fn a_command_gives_the_credentials_and_its_output_stays_hidden() {
    let rig = Rig::start(|heard| match heard.header("authorization") {
        Some("Bearer from-command") => Says::json(&json!({"items": []})),
        _ => refuse(401, "Unauthorized", "Unauthorized"),
    })
    .await;
    let credential = |token: &str| {
        json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token},
        })
    };
    let write = |script: String| {
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script], "interactiveMode": "IfAvailable",
            "env": [{"name": "SECRET", "value": "sEcReT-env"}],
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": rig.server.base}}],
            "users": [{"name": "u", "user": {"exec": exec}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        });
        std::fs::write(rig.folder.file("config"), config.to_string()).unwrap();
    };
    write("echo sEcReT-output; echo sEcReT-error >&2; exit 3".to_owned());
    let told = rig.clusters.pods(&rig.name, &n1()).await.unwrap_err();
    assert!(told.message.clone().unwrap().contains("exit status: 3"), "{told:?}");
    assert!(!format!("{told:?}").contains("sEcReT"), "{told:?}");
    write(format!("echo '{}'", credential("from-command")));
    rig.clock.pass(Span::minutes(6));
    assert_eq!(rig.clusters.pods(&rig.name, &n1()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn outside_of_a_cluster_a_kubeconfig_is_needed() {
    let rig = Rig::start(|_| Says::Nothing).await;
    let shared: SharedClock = Arc::new(rig.clock.clone());
    let configs = BTreeMap::from([("prod".into(), ClusterConfig::default())]);
    let clusters = Clusters::new(configs, &shared);
    let told = clusters.pods(&rig.name, &n1()).await.unwrap_err();
    assert!(told.message.unwrap().contains("name a kubeconfig"));
}
