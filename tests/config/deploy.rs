//! What is deployed around the daemon: its role, its unit, its image, its alarms.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use poolkeeper::api::v1::node::{self, Node, NodeKind};
use poolkeeper::daemon::diagnose::{ROLE, cluster_role};
use poolkeeper::daemon::settings::keys;
use poolkeeper::memory::AUDIT_LARGE;
use serde_json::{Value, json};

use super::run::HOME;
use super::{promql, text};

#[test]
fn the_role_allows_what_is_asked_and_nothing_else() {
    let role: Value = serde_json::from_str(&text("azure/role.json")).unwrap();
    assert_eq!(role["Actions"], json!(ROLE));
    for nothing in ["NotActions", "DataActions", "NotDataActions"] {
        assert_eq!(role[nothing], json!([]));
    }
}

/// The role in the guide is what people apply to their clusters.
#[test]
fn the_cluster_role_allows_what_is_asked_and_nothing_else() {
    let guide = fs::read_to_string(Path::new(HOME).join("src/docs/operations.md")).unwrap();
    let mut blocks = guide.split("```yaml\n").filter_map(|rest| rest.split("```").next());
    let role = blocks.find(|block| block.contains("\nkind: ClusterRole\n")).unwrap();
    let asked = cluster_role().map(|of| [of.verb, of.group, of.resource].map(str::to_owned));
    assert_eq!(granted(role), asked.collect());
    // The chart's, without what its templates compute.
    let chart = text("helm/templates/account.yaml");
    let rules = chart.split("\nrules:\n").nth(1).unwrap().split("---").next().unwrap();
    assert_eq!(granted(&format!("rules:\n{rules}")), granted(role));
}

/// Verb, group and resource of each right.
fn granted(role: &str) -> BTreeSet<[String; 3]> {
    let read = node::read(Box::leak(role.to_owned().into_boxed_str()));
    assert_eq!(read.diagnostics, []);
    let mut granted = BTreeSet::new();
    for rule in list(field(&read.roots[0].node, "rules")) {
        for group in list(field(rule, "apiGroups")) {
            for resource in list(field(rule, "resources")) {
                for verb in list(field(rule, "verbs")) {
                    let right = [words(verb), words(group), words(resource)].map(str::to_owned);
                    assert!(granted.insert(right.clone()), "{right:?} is there twice");
                }
            }
        }
    }
    granted
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let read = node::read(Box::leak(text("helm/Chart.yaml").into_boxed_str()));
    for key in ["version", "appVersion"] {
        assert_eq!(words(field(&read.roots[0].node, key)), env!("CARGO_PKG_VERSION"), "{key}");
    }
}

/// Variables of ours that a text names.
fn variables(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    words.filter(|word| word.starts_with(keys::PREFIX)).collect()
}

#[test]
fn unit_and_image_start_a_command_that_exists_with_variables_that_exist() {
    let (unit, image) = (text("systemd/poolkeeper.service"), text("container/Containerfile"));
    for text in [&unit, &image] {
        for name in variables(text) {
            let of_commands = ["POOLKEEPER_SERVER", "POOLKEEPER_CA_FILE", "POOLKEEPER_TOKEN_FILE"];
            let of_serve = name == keys::FILE || keys::KEYS.iter().any(|key| key.variable == name);
            let of_build = ["POOLKEEPER_COMMIT", "POOLKEEPER_DATE"];
            let known = of_serve || of_commands.contains(&name) || of_build.contains(&name);
            assert!(known, "there is no variable {name}");
        }
    }
    let of = |key: &str| {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let value = values.next().unwrap_or_else(|| panic!("{key} is not there"));
        assert_eq!(values.next(), None, "{key} is there twice");
        value
    };
    assert_eq!(of("Type"), "notify");
    assert!(of("ExecStart").contains("poolkeeper serve --settings"));
    assert!(of("ExecReload").contains("-HUP"));
    assert!(of("TimeoutStopSec").parse::<u32>().unwrap() > 10);
    assert!(of("WatchdogSec").parse::<u32>().unwrap() >= 30);
    for line in unit.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '['])) {
        assert!(line.split_once('=').is_some_and(|(key, _)| !key.is_empty()), "{line}");
    }
    assert!(
        image.contains("ENTRYPOINT [\"/usr/local/bin/poolkeeper\"]")
            && image.contains("CMD [\"serve\"]")
    );
    assert!(image.contains("USER 10001") && image.contains("--locked"));
}

/// What a daemon that was taken over could still do: each line takes something from it.
#[test]
fn the_unit_grants_no_more_than_the_daemon_needs() {
    let unit = text("systemd/poolkeeper.service");
    for line in [
        "StartLimitIntervalSec=300",
        "StartLimitBurst=20",
        "StateDirectoryMode=0700",
        "LimitNOFILE=8192",
        "LimitCORE=0",
        "MemoryMax=2G",
        "TasksMax=1024",
        "DynamicUser=yes",
        "PrivateUsers=yes",
        "NoNewPrivileges=yes",
        "RestrictSUIDSGID=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectProc=invisible",
        "ProcSubset=pid",
        "SystemCallFilter=~@privileged @resources",
        "#LoadCredential=client-secret:/etc/poolkeeper/client-secret",
        "#Environment=AZURE_CLIENT_SECRET_FILE=%d/client-secret",
    ] {
        assert!(unit.lines().any(|known| known == line), "{line}");
    }
    assert!(!unit.contains("AZURE_CLIENT_SECRET="), "no secret goes into an environment");
}

#[test]
fn the_image_is_pinned_and_holds_nothing_but_the_daemon() {
    let image = text("container/Containerfile");
    let (build, last) = image.split_once("\nFROM ${BASE}\n").unwrap();
    let pinned = |name: &str| {
        let line = build.lines().find_map(|line| line.strip_prefix(&format!("ARG {name}=")));
        line.is_some_and(|image| image.bytes().filter(u8::is_ascii_digit).count() >= 4)
    };
    assert!(pinned("BUILD") && pinned("BASE"));
    assert_eq!(image.matches("\nFROM ").count(), 2);
    for line in image.lines().filter(|line| line.starts_with("COPY ")) {
        assert!(!line.contains("tests"), "{line}");
    }
    assert!(!last.lines().any(|line| line.starts_with("RUN ")), "the last image runs nothing");
    assert!(last.contains("\nHEALTHCHECK "));
    for option in ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"] {
        assert!(build.contains(option), "{option}");
    }
}

pub(super) fn field<'n>(node: &'n Node, key: &str) -> &'n Node {
    &node.entry(key).unwrap_or_else(|| panic!("{key} is missing on line {}", node.at.line)).value
}

fn list(node: &Node) -> &[Node] {
    let NodeKind::List(items) = &node.kind else {
        panic!("a list is needed on line {}", node.at.line)
    };
    items
}

pub(super) fn words(node: &Node) -> &str {
    let NodeKind::Text(text) = &node.kind else {
        panic!("text is needed on line {}", node.at.line)
    };
    &text.text
}

pub(super) fn alarms() -> Vec<Node> {
    let read = node::read(Box::leak(text("alerts.yaml").into_boxed_str()));
    assert_eq!(read.diagnostics, []);
    let groups = list(field(&read.roots[0].node, "groups"));
    groups.iter().flat_map(|group| list(field(group, "rules"))).cloned().collect()
}

#[test]
fn alarms_come_before_tokens_end_and_before_health_tells_of_the_audit() {
    let alarms = alarms();
    let of = |name: &str| {
        let rule = alarms.iter().find(|rule| words(field(rule, "alert")) == name);
        words(field(rule.unwrap_or_else(|| panic!("there is no {name}")), "expr")).to_owned()
    };
    let left = "poolkeeper_api_token_expires_timestamp_seconds - time()";
    let soon = format!("{left} < 14 * 86400 and {left} > 0");
    assert_eq!(of("PoolkeeperTokenEnds"), soon);
    assert_eq!(of("PoolkeeperTokenEnded"), format!("{left} <= 0"));
    let audit = of("PoolkeeperAuditLarge");
    let lines = audit.strip_prefix("max(poolkeeper_audit_lines) > ").unwrap();
    assert!((AUDIT_LARGE / 2..AUDIT_LARGE).contains(&lines.parse().unwrap()), "{audit}");
}

#[test]
fn alarms_name_metrics_that_exist() {
    let mut names = BTreeSet::new();
    let alarms = alarms();
    for rule in &alarms {
        assert!(names.insert(words(field(rule, "alert"))), "twice on line {}", rule.at.line);
        let expr = words(field(rule, "expr"));
        let read = promql::read(expr).unwrap_or_else(|wrong| panic!("{expr}: {wrong}"));
        assert!(!read.metrics.is_empty(), "{expr}");
        let about = field(rule, "annotations");
        for part in [field(about, "summary"), field(about, "description")] {
            for label in words(part).split("$labels.").skip(1) {
                let label = label.split(|c: char| !c.is_ascii_lowercase()).next().unwrap();
                assert!(read.labels.iter().any(|known| known == label), "{label}: {expr}");
            }
        }
        assert!(
            words(field(about, "summary")).len() > 10
                && words(field(about, "description")).len() > 20
        );
        assert!(["page", "ticket"].contains(&words(field(field(rule, "labels"), "severity"))));
    }
    assert!(names.len() >= 8, "{names:?}");
}
