//! Wrong usage and bad input: what is said, and with which exit code.

use super::support::*;

const SEVERAL: &str = "config/pools/careful.yaml";
const OWNED: &str = "config/pools/batch.yaml";

#[test]
fn what_cannot_be_rehearsed_is_said_with_the_documented_code() {
    let bad = written("bad.yaml", b"apiVersion: poolkeeper/v1\nkind: Pool\nnam: web\n");
    let cut = written("cut.json", b"{\"kind\": \"Snapshot\", \"machines\": [");
    let empty = written("empty.yaml", b"");
    let latin = written("latin.yaml", b"name: \xe9\n");
    let long = written("long.yaml", &b"#".repeat((1 << 20) + 1));
    let cases: &[(&[&str], i32, &str)] = &[
        (&["simulate"], 2, "<FILE>"),
        (&["simulate", "no-such-file"], 1, "cannot be read"),
        (&["simulate", &bad], 2, "bad.yaml:"),
        (&["simulate", &cut], 2, "cut.json:"),
        (&["simulate", &empty], 2, "has no pool"),
        (&["simulate", SMALL, "--faults", "strom"], 2, "storm"),
        (&["simulate", SMALL, "--machines", "0"], 2, "from 1 to 1000"),
        (&["simulate", SMALL, "--machines", "1001"], 2, "from 1 to 1000"),
        (&["simulate", SMALL, "--machines", "-1"], 2, "from 1 to 1000"),
        (&["simulate", SMALL, "--machines", "5000000000"], 2, "from 1 to 1000"),
        (&["simulate", SMALL, "--seed", "-1"], 2, "from 0 to 18446744073709551615"),
        (&["simulate", SMALL, "--seed", "x"], 2, "from 0 to 18446744073709551615"),
        (&["simulate", SMALL, "--runs", "99999999999"], 2, "from 1 to 100000"),
        (&["simulate", SMALL, "--pool", ""], 2, "--pool"),
        (&["simulate", &latin], 2, "latin.yaml:1:7"),
        (&["simulate", &long], 2, "several files"),
        (&["simulate", "tests"], 1, "name a file in that folder"),
        (&["simulate", SMALL, "--svg", "tests"], 1, "written: Is a directory\n"),
        (&["simulate", SMALL, "--compare", "tides"], 2, "one-by-one"),
        (&["simulate", SMALL, "--compare", "poolkeeper:maxSurge"], 2, "KEY=VALUE"),
        (&["simulate", SMALL, "--compare", "poolkeeper:maxSurg=3"], 2, "maxSurg"),
        (&["simulate", SMALL, "--compare", "poolkeeper:ramp=on"], 2, "rollout.ramp"),
        (&["simulate", SMALL, "--compare", "waves", "--story"], 2, "--story"),
        (&["simulate", SMALL, "--compare", "waves", "--svg", "no/such/x.svg"], 1, "written"),
        (&["simulate", SMALL, "--runs", "0"], 2, "--runs"),
        (&["simulate", SMALL, "--runs", "2", "--svg", "x.svg"], 2, "--svg"),
        (&["simulate", SMALL, "--start", "noon"], 2, "--start"),
        (&["simulate", SMALL, "--svg", "no/such/folder/x.svg"], 1, "cannot be written"),
        (&["simulate", SMALL, "-o", "ndjson"], 2, "--output json"),
        (&["simulate", SEVERAL], 2, "careful-cache"),
        (&["simulate", SEVERAL, "--pool", "wobble"], 4, "careful-cache"),
        (&["simulate", OWNED], 2, "--machines"),
        (&["simulate", ROLLING, "--machines", "3"], 2, "brings its machines"),
        (&["simulate", SMALL, "--storms", "3"], 2, "--storms"),
        (&["simulate", "--storms", "0"], 2, "--storms"),
        (&["simulate", "--storms", "1", "--svg", "x.svg"], 2, "--svg"),
        (&["simulate", "--storms", "1", "--story"], 2, "--story"),
        (&["simulate", "--first-seed", "3"], 2, "--storms"),
        (&["simulate", "--storm-seed", "3", "--runs", "2"], 2, "--runs"),
        (&["demo", "now"], 2, "Usage:"),
        (&["demo", "-o", "ndjson"], 2, "--output json"),
    ];
    for (args, code, hint) in cases {
        let ended = run(args);
        assert_eq!(ended.code, Some(*code), "{args:?}: {ended:?}");
        let said = format!("{}{}", ended.err, ended.out);
        assert!(said.contains(hint), "{args:?} should speak of {hint}: {said}");
    }
}

#[test]
fn errors_are_documents_where_json_is_asked_for() {
    let ended = run(&["simulate", "no-such-file", "-o", "json"]);
    assert_eq!(ended.json()["kind"], "Error");
    assert_eq!(ended.json()["code"], "unreadable");
    assert_eq!(ended.err, "");
}

#[test]
fn a_pool_of_several_is_chosen_and_a_size_given() {
    let page = fine(&["simulate", SEVERAL, "--pool", "careful-cache"]).out;
    assert!(page.starts_with("careful-cache: 2 machines"), "{page}");
    let page = fine(&["simulate", OWNED, "--machines", "6", "--start", "2026-03-02T21:30:00Z"]).out;
    assert!(page.starts_with("batch: 6 machines, floor 1, ceiling 6"), "{page}");
    assert!(page.contains("succeeded"), "{page}");
}
