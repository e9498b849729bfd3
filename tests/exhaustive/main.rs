//! Every state of small pools, reachable or not, explored with the production planner.
//!
//! A state is a multiset of machine kinds. From each state every turn and every calm event is followed; no law may be
//! broken, no state may be a dead end without a named outside cause, and no cycle may exist without an outside event.
//! `POOLKEEPER_EXHAUSTIVE=6` explores six machines instead of five.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod explore;
mod kinds;
mod laws;

use explore::{Found, Setting, explore};
use kinds::Kind::*;
use kinds::{DRAINS, Kind, PLAIN, State, multisets};

const OPEN: Setting = Setting {
    name: "ramp off",
    ramp: false,
    checkpoint: None,
    paused: false,
    late_capacity: false,
    nodes: false,
    count_deleting: true,
    in_place: false,
    breaker: false,
};

/// As many machines as asked for, or so many.
fn top(usual: u8) -> u8 {
    let asked = std::env::var("POOLKEEPER_EXHAUSTIVE").ok().and_then(|n| n.parse::<u8>().ok());
    // What was asked for is one more than five, or less: the others follow.
    asked.map_or(usual, |asked| (asked + usual).saturating_sub(5))
}

#[test]
fn every_small_pool_is_safe_and_ends() {
    let late = "ramp off, capacity falls when a delete is done";
    let settings = [
        OPEN,
        Setting { name: late, late_capacity: true, ..OPEN },
        Setting { name: "ramp 1, 2, 4", ramp: true, ..OPEN },
        Setting { name: "ramp, checkpoint at 1", ramp: true, checkpoint: Some(1), ..OPEN },
        Setting { name: "ramp, checkpoint at 2", ramp: true, checkpoint: Some(2), ..OPEN },
        Setting { name: "paused", paused: true, ..OPEN },
    ];
    are_safe_and_end(&settings, &multisets(top(5), PLAIN), 4);
}

/// A machine is drained first, and may be taken back on the way.
#[test]
fn pools_with_nodes_are_safe_and_end() {
    let nodes = Setting { name: "nodes", nodes: true, ..OPEN };
    let settings = [
        nodes,
        Setting { name: "nodes, ramp", ramp: true, ..nodes },
        Setting { name: "nodes, paused", paused: true, ..nodes },
        Setting { name: "nodes, deleting ones do not count", count_deleting: false, ..nodes },
    ];
    are_safe_and_end(&settings, &multisets(top(3), &with_nodes()), 3);
    let in_place = Setting { name: "nodes, in place", in_place: true, ..nodes };
    let settings =
        [in_place, Setting { name: "nodes, in place, paused", paused: true, ..in_place }];
    let kinds: Vec<Kind> = with_nodes().into_iter().chain([OldUpdating, OldTried]).collect();
    are_safe_and_end(&settings, &multisets(top(3), &kinds), 3);
}

fn with_nodes() -> Vec<Kind> {
    let ways = DRAINS.iter().flat_map(|row| [row.0, row.1]);
    let others = PLAIN.iter().copied().filter(|kind| *kind != UnknownRevision);
    others.chain(ways).collect()
}

/// Those being deleted are made up for before they are gone.
#[test]
fn pools_that_do_not_count_what_is_deleted_are_safe_and_end() {
    let ahead = Setting { name: "deleting ones do not count", count_deleting: false, ..OPEN };
    let late = "deleting ones do not count, capacity falls when a delete is done";
    let settings = [ahead, Setting { name: late, late_capacity: true, ..ahead }];
    are_safe_and_end(&settings, &multisets(top(4), PLAIN), 3);
}

#[test]
fn pools_updated_in_place_are_safe_and_end() {
    let in_place = Setting { name: "in place", in_place: true, ..OPEN };
    let settings = [
        in_place,
        Setting { name: "in place, ramp", ramp: true, ..in_place },
        Setting { name: "in place, paused", paused: true, ..in_place },
    ];
    let kinds: Vec<Kind> = PLAIN.iter().copied().chain([OldUpdating, OldTried]).collect();
    are_safe_and_end(&settings, &multisets(top(4), &kinds), 3);
}

/// What had served and looks failed stays while the breaker is open, and nothing waits without naming it.
#[test]
fn pools_whose_repair_stopped_itself_are_safe_and_end() {
    let breaker = Setting { name: "breaker", breaker: true, ..OPEN };
    let settings = [breaker, Setting { name: "breaker, paused", paused: true, ..breaker }];
    are_safe_and_end(&settings, &multisets(top(4), PLAIN), 4);
}

fn are_safe_and_end(settings: &[Setting], states: &[State], most: u8) {
    let mut all = Vec::new();
    for setting in settings {
        for desired in 0..=most {
            for (surge, unavailable) in
                (0..9).map(|n| (n / 3, n % 3)).filter(|pair| *pair != (0, 0))
            {
                all.push((*setting, desired, surge, unavailable));
            }
        }
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let results: Vec<(usize, Found)> = std::thread::scope(|scope| {
        let shares = (0..cores).map(|core| {
            let all = &all;
            scope.spawn(move || {
                let mine = all.iter().enumerate().skip(core).step_by(cores);
                mine.map(|(at, (setting, d, s, u))| (at, explore(states, *setting, *d, *s, *u)))
                    .collect::<Vec<_>>()
            })
        });
        let shares: Vec<_> = shares.collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    let mut broken = Vec::new();
    for setting in settings {
        let of = |at: &usize| all[*at].0.name == setting.name;
        let mine: Vec<&Found> =
            results.iter().filter(|(at, _)| of(at)).map(|(_, found)| found).collect();
        println!(
            "{:<64} {:>9} states {:>10} edges, longest calm path {}, waiting for a person {}",
            setting.name,
            mine.iter().map(|f| f.states).sum::<usize>(),
            mine.iter().map(|f| f.edges).sum::<usize>(),
            mine.iter().map(|f| f.longest).max().unwrap_or(0),
            mine.iter().map(|f| f.waiting).sum::<usize>(),
        );
        broken.extend(mine.iter().flat_map(|found| found.broken.iter().cloned()));
    }
    // Of each kind the shortest.
    let kind = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    broken.sort_by_key(|line| (kind(line), line.len()));
    broken.dedup_by_key(|line| kind(line));
    assert!(broken.is_empty(), "{} kinds of breach:\n{}", broken.len(), broken.join("\n"));
}
