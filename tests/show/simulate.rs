//! Pages and documents of rehearsals.

use serde_json::Value;

use super::support::*;

#[test]
fn a_small_pool_as_a_page() {
    golden("simulate.txt", &fine(&["simulate", SMALL, "--story"]).out);
}

#[test]
fn a_small_pool_as_a_document() {
    let document = fine(&["simulate", SMALL, "-o", "json", "--story"]).json();
    assert_eq!(document["kind"], "Simulation");
    assert_eq!(document["apiVersion"], "poolkeeper/v1");
    assert_eq!(document["pool"], "small");
    assert_eq!(document["end"]["kind"], "ended");
    assert_eq!(document["limits"], serde_json::json!({"desired": 5, "floor": 5, "ceiling": 7}));
    assert_eq!((&document["lowestAvailable"], &document["highestTotal"]), (&5.into(), &7.into()));
    let calls = document["calls"]["made"].as_object().unwrap();
    let sum: u64 = calls.values().map(|made| made.as_u64().unwrap()).sum();
    assert_eq!(document["calls"]["total"].as_u64(), Some(sum));
    assert!(calls["deleteInstances"].as_u64() >= Some(1), "{calls:?}");
    assert_eq!(document["machines"].as_array().unwrap().len(), 10);
    assert!(!document["story"].as_array().unwrap().is_empty());
    assert!(document["violations"].as_array().unwrap().is_empty());
    let without = fine(&["simulate", SMALL, "-o", "json"]).json();
    assert_eq!(without.get("story"), None, "the story is told where it is asked for");
}

#[test]
fn one_seed_one_story() {
    let storm = ["simulate", SMALL, "--faults", "storm", "--story", "--seed"];
    let with = |seed: &'static str| run(&[&storm[..], &[seed]].concat()).out;
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7").replace("seed 7", ""), with("8").replace("seed 8", ""));
}

#[test]
fn many_machines_share_lines_and_the_page_says_so() {
    let page = fine(&["simulate", SMALL, "--machines", "90"]).out;
    assert!(page.contains("180 machines on 36 lines, 5 a line"), "{page}");
    assert!(page.contains("share a line; trouble shows first"), "{page}");
    assert!(page.contains("\n  m") && !page.contains(" +4"), "{page}");
    assert!(page.lines().count() < 70, "{page}");
}

#[test]
fn machines_of_a_snapshot_are_taken_as_they_are() {
    let document = fine(&["simulate", ROLLING, "-o", "json"]).json();
    let machines = document["machines"].as_array().unwrap();
    let mut ids: Vec<&str> = machines.iter().take(7).map(|m| m["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7"]);
    let first = |id: &str| {
        let machine = machines.iter().find(|machine| machine["id"] == id).unwrap();
        machine["life"][0]["is"].as_str().unwrap().to_owned()
    };
    assert_eq!(first("1"), "serves, old");
    assert_eq!(first("4"), "serves, new");
    assert_eq!(first("6"), "failed");
}

#[test]
fn pods_are_moved_where_there_are_any() {
    let moves = |args: &[&str]| {
        let document = fine(&[&["simulate", SMALL, "-o", "json"], args].concat()).json();
        document["pods"]["moves"].as_u64().unwrap()
    };
    assert_eq!(moves(&[]), 0);
    assert!(moves(&["--pods", "8"]) >= 40);
}

#[test]
fn many_seeds_are_summarised() {
    let args = ["simulate", SMALL, "--faults", "mild", "--runs", "12", "--seed", "5"];
    let (page, document) = (run(&args), run(&[&args[..], &["-o", "json"]].concat()));
    for word in ["seeds 5 to 16", "MEDIAN", "P90", "lowest available", "ceiling 7", "succeeded"] {
        assert!(page.out.contains(word), "{word}: {page:?}");
    }
    let (code, document) = (document.code, document.json());
    assert_eq!(document["kind"], "SimulationRuns");
    assert_eq!(document["seeds"].as_array().unwrap().len(), 12);
    let ends = document["ends"].as_object().unwrap();
    assert_eq!(ends.values().filter_map(Value::as_u64).sum::<u64>(), 12);
    for spread in ["makespanSeconds", "calls", "turns", "lowestAvailable", "highestTotal"] {
        let mark = |name: &str| document[spread][name].as_i64().unwrap();
        let marks = ["min", "median", "p90", "max"].map(mark);
        assert!(marks.is_sorted(), "{spread}: {marks:?}");
    }
    // Exit 3 if, and only if, a law was broken, and then it is said with which seed.
    let broken = document["brokenSeeds"].as_array().unwrap();
    assert_eq!(
        (code, page.code),
        if broken.is_empty() { (Some(0), Some(0)) } else { (Some(3), Some(3)) }
    );
    assert!(broken.iter().all(|seed| page.out.contains(&format!("--seed {seed} --story"))));
}

#[test]
fn a_summary_of_one_seed_is_that_rehearsal() {
    let many = fine(&["simulate", SMALL, "--runs", "1", "--seed", "3", "-o", "json"]).json();
    let one = fine(&["simulate", SMALL, "--seed", "3", "-o", "json"]).json();
    assert_eq!(many["makespanSeconds"]["median"], one["makespanSeconds"]);
    assert_eq!(many["calls"]["max"], one["calls"]["total"]);
}

#[test]
fn a_summary_fits_eighty_columns_uncut() {
    let args = ["simulate", SMALL, "--faults", "mild", "--runs", "4"];
    let wide = run(&args).out;
    let narrow = run_with(&[("COLUMNS", "80")], &args).out;
    assert!(!narrow.contains('…'), "{narrow}");
    let table = |page: &str| {
        let rows = page.lines().skip_while(|line| !line.contains("MEDIAN"));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(table(&narrow), table(&wide));
    assert!(table(&narrow).iter().all(|line| line.chars().count() <= 80), "{narrow}");
}

#[test]
fn other_ways_are_compared_in_the_same_world() {
    let args = ["simulate", SMALL, "--compare", "waves,batch:20%,one-by-one"];
    let page = fine(&args).out;
    let row = |name: &str| {
        let found = page.lines().find(|line| line.ends_with(name));
        found.unwrap_or_else(|| panic!("{name}: {page}")).trim_start()
    };
    assert!(row("STRATEGY").starts_with("SERVING "), "{page}");
    for name in ["poolkeeper", "waves", "one-by-one"] {
        assert!(row(&format!("  {name}")).starts_with("5 (floor 5) "), "{name}: {page}");
    }
    assert!(row("  batch:20%").starts_with("4 (below floor 5) "), "{page}");
    let result = "poolkeeper, waves and one-by-one kept 5 serving; batch:20% fell to 4\n";
    assert!(page.contains(result), "{page}");
    let document = fine(&[&args[..], &["-o", "json"]].concat()).json();
    assert_eq!(document["kind"], "SimulationComparison");
    let rows = document["strategies"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["strategy"] == name).unwrap();
    assert_eq!(row("poolkeeper")["ratio"], 1.0);
    assert!(row("one-by-one")["ratio"].as_f64() > Some(1.0), "two slots beat one: {document}");
    assert!(
        row("batch:20%")["lowestAvailable"].as_u64() < Some(5),
        "a batch goes below: {document}"
    );
}

#[test]
fn marks_are_drawn_where_the_locale_writes_them() {
    let args = ["simulate", SMALL, "--compare", "batch:20%"];
    let page = run_with(&[("LC_ALL", "C.UTF-8")], &args).out;
    assert!(page.contains("5 (floor 5) ✓") && page.contains("4 (floor 5) ✗"), "{page}");
    let page = run_with(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], &args).out;
    assert!(!page.contains('✓') && page.contains("4 (below floor 5)"), "{page}");
}

#[test]
fn a_pool_is_compared_with_other_settings_of_its_own() {
    let same = "poolkeeper:maxSurge=2+minReady=30s";
    let slow = "poolkeeper:maxSurge=1+maxUnavailable=0";
    let lower = "poolkeeper:maxSurge=0+maxUnavailable=1";
    let ways = [same, slow, lower].join(",");
    let args = ["simulate", SMALL, "--compare", &ways];
    let document = fine(&[&args[..], &["-o", "json"]].concat()).json();
    let rows = document["strategies"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["strategy"] == name).unwrap();
    // The pool's own settings, written out, change nothing.
    for key in ["makespanSeconds", "calls", "lowestAvailable", "highestTotal", "floor", "ceiling"] {
        assert_eq!(row(same)[key], row("poolkeeper")[key], "{key}: {document}");
    }
    assert_eq!((&row(slow)["floor"], &row(slow)["ceiling"]), (&5.into(), &6.into()));
    assert!(row(slow)["ratio"].as_f64() > Some(1.0), "one slot is slower than two: {document}");
    assert_eq!((&row(lower)["floor"], &row(lower)["ceiling"]), (&4.into(), &5.into()));
    let page = fine(&args).out;
    assert!(page.contains("poolkeeper with maxSurge=1 maxUnavailable=0"), "{page}");
    assert!(page.contains("4 (floor 4)"), "{page}");
}

#[test]
fn storms_are_played_and_each_can_be_told_again() {
    let args = ["simulate", "--storms", "6", "--first-seed", "40"];
    let (page, document) = (run(&args), run(&[&args[..], &["-o", "json"]].concat()));
    assert!(page.out.starts_with("6 storms, seeds 40 to 45"), "{page:?}");
    assert!(page.out.contains("   invariants 13   "), "{page:?}");
    let (code, document) = (document.code, document.json());
    assert_eq!((&document["kind"], &document["storms"]), (&"Storms".into(), &6.into()));
    let ends = document["ends"].as_object().unwrap();
    assert_eq!(ends.values().filter_map(Value::as_u64).sum::<u64>(), 6);
    let waits = ends.keys().any(|end| end.starts_with("waits for "));
    assert_eq!(page.out.contains("waits for X (hold)"), waits, "{page:?}");
    let failed = document["failed"].as_array().unwrap();
    assert_eq!(code, Some(if failed.is_empty() { 0 } else { 3 }));
    assert_eq!(page.code, code);
    let told = run(&["simulate", "--storm-seed", "41"]);
    assert!(told.out.contains("drawn by storm 41") && told.out.contains("\nStory\n"), "{told:?}");
    assert_eq!(told, run(&["simulate", "--storm-seed", "41", "--story"]));
}
