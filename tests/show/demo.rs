//! The first thing that newcomers see.

use super::support::*;

#[test]
fn the_demo_is_told_in_a_page_where_nobody_watches() {
    golden("demo.txt", &fine(&["demo"]).out);
}

#[test]
fn the_demo_is_the_same_every_time_and_fast_changes_nothing_here() {
    assert_eq!(fine(&["demo"]), fine(&["demo", "--fast"]));
}

#[test]
fn nothing_steers_the_terminal_where_there_is_none() {
    let page = fine(&["demo"]).out;
    assert!(!page.contains('\u{1b}') && !page.contains('\r'), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 130), "{page}");
}

#[test]
fn the_demo_keeps_its_promise_and_meets_one_fault() {
    let document = fine(&["demo", "-o", "json"]).json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let limits = &document["limits"];
    assert_eq!(number(&limits["desired"]), 30);
    assert!(number(&document["lowestAvailable"]) >= number(&limits["floor"]), "{document}");
    assert!(number(&document["highestLive"]) <= number(&limits["ceiling"]), "{document}");
    assert_eq!(document["end"]["phase"], "Succeeded");
    let machines = document["machines"].as_array().unwrap();
    let never_served = machines.iter().filter(|machine| {
        let life = machine["life"].as_array().unwrap();
        life.iter().all(|part| !part["is"].as_str().unwrap().starts_with("serves"))
    });
    assert_eq!(never_served.count(), 1, "exactly one machine never becomes ready");
    assert_eq!(machines.len(), 61, "thirty old ones, thirty new ones, and the one that was lost");
}
