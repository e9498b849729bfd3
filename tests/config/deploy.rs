//! What is deployed around the daemon: its role, its unit, its image, its alarms.

use std::collections::BTreeSet;

use poolkeeper::api::v1::node::{self, Kind, Node};
use poolkeeper::daemon::checkup::ROLE;
use poolkeeper::daemon::settings::keys;
use serde_json::{Value, json};

use super::{promql, text};

#[test]
fn the_role_allows_what_is_asked_and_nothing_else() {
    let role: Value = serde_json::from_str(&text("azure/role.json")).unwrap();
    assert_eq!(role["Actions"], json!(ROLE));
    for nothing in ["NotActions", "DataActions", "NotDataActions"] {
        assert_eq!(role[nothing], json!([]));
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
            let known = name == keys::FILE || keys::KEYS.iter().any(|key| key.variable == name);
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

fn field<'n>(node: &'n Node, key: &str) -> &'n Node {
    &node.entry(key).unwrap_or_else(|| panic!("{key} is missing on line {}", node.at.line)).value
}

fn list(node: &Node) -> &[Node] {
    let Kind::List(items) = &node.kind else { panic!("a list is needed on line {}", node.at.line) };
    items
}

fn words(node: &Node) -> &str {
    let Kind::Text(text) = &node.kind else { panic!("text is needed on line {}", node.at.line) };
    &text.text
}

#[test]
fn alarms_name_metrics_that_exist() {
    let read = node::read(Box::leak(text("alerts.yaml").into_boxed_str()));
    assert_eq!(read.diagnostics, []);
    let mut names = BTreeSet::new();
    let groups = list(field(&read.roots[0].node, "groups"));
    for rule in groups.iter().flat_map(|group| list(field(group, "rules"))) {
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
