//! `config/grafana.json`: the board for people who look.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{promql, text};

fn board() -> Value {
    serde_json::from_str(&text("grafana.json")).unwrap()
}

/// As Grafana puts its own variables in; those of the board stand in texts.
fn filled_in(query: &str) -> String {
    query.replace("$__rate_interval", "5m").replace("$__range", "1h")
}

fn targets(panel: &Value) -> &[Value] {
    panel["targets"].as_array().map_or(&[], Vec::as_slice)
}

/// Names in `{{…}}`.
fn named(legend: &str) -> Vec<&str> {
    legend.split("{{").skip(1).map(|part| part.split_once("}}").unwrap().0).collect()
}

#[test]
fn every_query_is_sound_and_its_legend_names_what_it_gives() {
    let board = board();
    let mut count = 0;
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert_eq!(targets(panel).is_empty(), panel["type"] == "row", "{title}");
        let mut ids = BTreeSet::new();
        for target in targets(panel) {
            let query = filled_in(target["expr"].as_str().unwrap());
            let read = promql::read(&query);
            let read = read.unwrap_or_else(|wrong| panic!("{title}: {query}: {wrong}"));
            assert!(!read.metrics.is_empty(), "{title}: {query}");
            for label in named(target["legendFormat"].as_str().unwrap()) {
                assert!(read.labels.iter().any(|known| known == label), "{title}: {label}");
            }
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            assert!(ids.insert(target["refId"].as_str().unwrap()), "{title}");
            count += 1;
        }
    }
    assert!(count >= 30, "{count}");
}

#[test]
fn it_shows_what_people_look_for() {
    let board = board();
    let mut shown = BTreeSet::new();
    for target in board["panels"].as_array().unwrap().iter().flat_map(targets) {
        shown.extend(promql::read(&filled_in(target["expr"].as_str().unwrap())).unwrap().metrics);
    }
    for (what, metrics) in [
        ("leader", &["ready", "lease_remaining_seconds"][..]),
        ("invariants", &["invariant_violations_total"]),
        ("pools", &["pool_desired_machines", "pool_available_machines", "pool_outdated_machines"]),
        ("what waits", &["pool_in_flight", "pool_held"]),
        ("rollouts", &["rollout_done_machines", "rollout_finishes_timestamp_seconds"]),
        ("calls", &["arm_calls_total", "arm_calls_saved_total", "arm_throttled_total"]),
        ("turns", &["turn_seconds_bucket", "turns_total"]),
        ("journal", &["pool_in_flight", "pool_oldest_entry_seconds"]),
        ("API", &["api_requests_total", "api_certificate_expires_timestamp_seconds"]),
        ("tokens", &["api_token_expires_timestamp_seconds"]),
        ("audit", &["audit_lines"]),
    ] {
        for metric in metrics {
            assert!(shown.contains(&format!("poolkeeper_{metric}")), "{what}: {metric}");
        }
    }
}

#[test]
fn panels_have_a_place_of_their_own() {
    let board = board();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in board["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        let (left, right) = (at("x"), at("x") + at("w"));
        assert!(right <= 24 && at("w") > 0 && at("h") > 0, "{}", panel["title"]);
        for row in at("y")..at("y") + at("h") {
            for column in left..right {
                assert!(taken.insert((row, column)), "{} lies on another", panel["title"]);
            }
        }
        if panel["type"] != "row" {
            assert!(panel["description"].as_str().unwrap().ends_with('.'), "{}", panel["title"]);
        }
    }
}

#[test]
fn its_variables_are_those_its_queries_use() {
    let board = board();
    let variables = board["templating"]["list"].as_array().unwrap();
    let names: Vec<&str> = variables.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "pool"]);
    let asked = variables[1]["query"]["query"].as_str().unwrap();
    let inside = asked.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    let (metric, label) = inside.unwrap().split_once(", ").unwrap();
    assert!(promql::read(metric).unwrap().labels.iter().any(|known| known == label), "{asked}");
    for target in board["panels"].as_array().unwrap().iter().flat_map(targets) {
        let query = filled_in(target["expr"].as_str().unwrap());
        assert_eq!(query.matches('$').count(), query.matches("\"$pool\"").count(), "{query}");
    }
}
