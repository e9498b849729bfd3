//! What people see, kept as stories one screen long.

use serde_json::{Value, json};

use super::support::*;

/// A page for people is 100 columns wide here.
fn page(name: &str, args: &[&str], input: &str) -> Ended {
    let ended = run_wide("100", args, input);
    let fits = |line: &str| line.chars().count() <= 100;
    assert!(ended.out.lines().all(fits), "{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "colour without a terminal");
    golden(&format!("{name}.txt"), &transcript(args, &ended));
    ended
}

fn document(name: &str, args: &[&str], input: &str) {
    let ended = run(args, input);
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
    golden(&format!("{name}.json"), &format!("{:#}\n", ended.json()));
}

#[test]
fn plans() {
    page("plan", &["plan", "--snapshot", ROLLING], "");
    document("plan", &["plan", "--snapshot", ROLLING, "--output", "json"], "");
    page("plan-idle", &["plan", "--snapshot", "-"], &idle(6).to_string());
}

#[test]
fn lines_are_not_wrapped_for_other_programs() {
    let ended = run(&["plan", "--snapshot", ROLLING, "--all"], "");
    golden("plan-piped.txt", &ended.out);
    let machines = rolling()["machines"].as_array().map_or(0, Vec::len);
    let table = ended.out.split("WHY\n").nth(1).unwrap();
    assert_eq!(table.lines().count(), machines, "a machine is one line:\n{table}");
}

#[test]
fn narrow_terminals_are_honoured() {
    for columns in ["1", "40", "60", "80", "10000", "-3", "wide"] {
        let ended = run_wide(columns, &["plan", "--snapshot", ROLLING], "");
        assert_eq!(ended.code, Some(0));
        let most = match columns {
            "1" | "40" | "60" => 72,
            "80" => 80,
            _ => usize::MAX,
        };
        let longest = ended.out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= most, "{columns}: {longest}\n{}", ended.out);
    }
}

#[test]
fn what_operators_asked_for_is_answered() {
    let mut snapshot = rolling();
    snapshot["commands"] = json!([
        {"id": "a1", "verb": "pause", "by": "kim", "why": "a look first", "at": "2026-03-01T11:59:00Z"},
        {"id": "a2", "verb": "approve", "by": "kim", "why": "go", "at": "2026-03-01T11:59:30Z"}
    ]);
    page("plan-asked", &["plan", "--snapshot", "-"], &snapshot.to_string());
}

#[test]
fn a_cut_listing_stops_everything() {
    let mut snapshot = rolling();
    snapshot["scaleSet"]["complete"] = json!(false);
    page("plan-cut", &["plan", "--snapshot", "-"], &snapshot.to_string());
    page("explain-cut", &["explain", "--snapshot", "-"], &snapshot.to_string());
}

#[test]
fn machines_with_equal_reasons_are_one_line() {
    let mut snapshot = idle(60);
    snapshot["machines"][7]["revision"] = json!("r1");
    let ended = page("plan-large", &["plan", "--snapshot", "-"], &snapshot.to_string());
    assert!(ended.out.contains("  59  0–6, 8–59  "), "{}", ended.out);
    assert!(ended.out.lines().count() < 40, "{}", ended.out);
    let all = run(&["plan", "--snapshot", "-", "--all"], &snapshot.to_string());
    assert!(all.out.lines().count() > 70, "{}", all.out);
}

#[test]
fn explanations() {
    page("explain", &["explain", "--snapshot", ROLLING], "");
    document("explain", &["explain", "--snapshot", ROLLING, "-o", "json"], "");
    page("explain-idle", &["explain", "--snapshot", "-"], &idle(6).to_string());
    for machine in ["1", "3", "5", "6", "7"] {
        page(&format!("explain-{machine}"), &["explain", "--snapshot", ROLLING, machine], "");
    }
    document("explain-7", &["explain", "--snapshot", ROLLING, "7", "-o", "json"], "");
    let mut grace = rolling();
    grace["facts"]["drain"][0] =
        json!({"id": "7", "step": "grace", "since": "2026-03-01T11:59:40Z"});
    let ended = page("explain-grace", &["explain", "--snapshot", "-", "7"], &grace.to_string());
    assert!(ended.out.contains("open requests must end within 10s"), "{}", ended.out);
    let mut hook = rolling();
    hook["pool"]["drain"]["hooks"] = json!({"before": "app"});
    hook["facts"]["drain"][0] = json!({"id": "7", "step": "hookBefore", "since": "2026-03-01T11:59:40Z",
        "blocker": "the webhook app: it answers 202: the queue has 4 jobs"});
    let ended = page("explain-hook", &["explain", "--snapshot", "-", "7"], &hook.to_string());
    assert!(ended.out.contains("it waits for the webhook app before"), "{}", ended.out);
}

/// Who says how many: one profile speaks, and the others say why they do not.
#[test]
fn a_size_is_explained_by_its_profiles() {
    let mut snapshot = idle(6);
    snapshot["pool"]["replicas"] = json!({ "min": 2, "max": 20, "profiles": [
        { "name": "base", "static": { "count": 6 } },
        { "name": "night", "priority": 2, "cron": { "start": "0 22 * * *", "end": "0 5 * * *", "count": 3 } },
        { "name": "load", "priority": 1, "metric": { "server": "main", "query": "q", "target": 10 } },
        { "name": "share", "share": { "of": ["blue"], "percent": "50%" } },
    ] });
    snapshot["facts"] = json!({ "pools": [{ "name": "blue", "available": 8, "desired": 8 }] });
    let text = snapshot.to_string();
    page("explain-size", &["explain", "--snapshot", "-", "size"], &text);
    document("explain-size", &["explain", "--snapshot", "-", "size", "-o", "json"], &text);
    page("plan-profiles", &["plan", "--snapshot", "-"], &text);
    let counted = run(&["explain", "--snapshot", ROLLING, "size"], "");
    assert!(
        counted.out.starts_with("The size is 6, by the document (replicas.count)."),
        "{}",
        counted.out
    );
}

/// A snapshot is explained in the document that a server answers.
#[test]
fn an_explanation_has_the_keys_of_the_api() {
    let api: Value = serde_json::from_str(include_str!("../../config/openapi.json")).unwrap();
    let keys = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let of_schema = |name: &str| keys(&api["components"]["schemas"][name]["properties"]);
    let args = ["explain", "--snapshot", ROLLING, "7", "-o", "json"];
    let pool = run(&[&args[..3], &args[4..]].concat(), "").json();
    let machine = run(&args, "").json();
    for explained in [&pool, &machine] {
        assert_eq!(keys(explained), of_schema("Explanation"), "{explained}");
    }
    assert_eq!(keys(&machine["machine"]), of_schema("MachineStatus"), "{machine}");
    assert_eq!((&pool["machine"], &pool["becomes"]), (&Value::Null, &Value::Null));
    assert_eq!(pool["reason"]["reason"], "surgeBooting");
}

#[test]
fn machines_are_known_by_vm_and_node_too() {
    let by = |name| run(&["explain", "--snapshot", ROLLING, name], "").out;
    assert_eq!(by("7"), by("vm-7"));
    assert_eq!(by("7"), by("node-7"));
    assert_eq!(by("7"), by("VM-7"));
}

#[test]
fn an_unknown_machine_is_not_found() {
    let ended = page("explain-unknown", &["explain", "--snapshot", ROLLING, "77"], "");
    assert_eq!(ended.code, Some(4));
    let ended = run(&["explain", "--snapshot", ROLLING, "77", "-o", "json"], "");
    assert_eq!((ended.code, &ended.json()["code"]), (Some(4), &json!("notFound")));
}

#[test]
fn checked_pool_files() {
    let ended = page("validate", &["validate", "tests/cli/inputs/pools"], "");
    assert_eq!(ended.code, Some(2));
    document("validate", &["validate", "tests/cli/inputs/pools", "-o", "json"], "");
    let ended = page("validate-fine", &["validate", "config/pools"], "");
    assert_eq!(ended.code, Some(0));
}

#[test]
fn help_texts() {
    page("help", &["--help"], "");
    for command in [
        "demo",
        "serve",
        "status",
        "plan",
        "explain",
        "doctor",
        "simulate",
        "snapshot",
        "validate",
        "emulate",
        "completions",
    ] {
        page(&format!("help-{command}"), &[command, "--help"], "");
        let short = run(&[command, "-h"], "");
        assert_eq!(run(&["help", command], "").out, run(&[command, "--help"], "").out);
        assert!(short.out.len() < 1_600 && short.code == Some(0), "{}", short.out);
    }
}

#[test]
fn texts_of_strangers_do_not_steer_the_terminal() {
    let mut snapshot = rolling();
    snapshot["machines"][2]["hold"] = json!({"by": "\u{1b}[2Jkim", "why": "a\u{7}b\nc"});
    snapshot["machines"][1]["zone"] = json!("1\u{1b}[31m");
    for args in [&["plan", "--snapshot", "-"][..], &["explain", "--snapshot", "-", "3"]] {
        let ended = run(args, &snapshot.to_string());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(!ended.out.contains(['\u{1b}', '\u{7}']), "{}", ended.out);
    }
    let typed = run(&["explain", "--snapshot", ROLLING, "\u{1b}[2J"], "");
    assert!(!typed.err.contains('\u{1b}'), "{}", typed.err);
}

#[test]
fn a_plan_gives_back_what_the_next_snapshot_takes() {
    let mut snapshot = rolling();
    let first = run(&["plan", "-s", "-", "-o", "json"], &snapshot.to_string()).json();
    snapshot["state"] = first["state"].clone();
    for machine in first["machines"].as_array().unwrap() {
        let all = snapshot["machines"].as_array_mut().unwrap();
        let of: &mut Value = all.iter_mut().find(|m| m["id"] == machine["id"]).unwrap();
        of["lifecycle"] = machine["lifecycle"].clone();
    }
    let second = run(&["plan", "-s", "-", "-o", "json"], &snapshot.to_string());
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert_eq!(second.json()["kind"], "Plan");
}
