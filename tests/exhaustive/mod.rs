//! Every state of small pools, reachable or not, explored with the production planner.
//!
//! A state is a multiset of machine kinds. From each state every turn and every calm event is followed; no law may be
//! broken, no state may be a dead end without a named outside cause, and no cycle may exist without an outside event.
//! `cargo test` explores pools of one machine at first, `POOLKEEPER_EXHAUSTIVE=5` of up to five.
//! `POOLKEEPER_TURNS=10000000` plays until so many turns were planned and judged: all these, then larger pools from drawn
//! states (`integration/exhaustive/run` does both, optimised).

mod explore;
mod kinds;
mod laws;
mod walks;

use crate::support::long::long_or;
use explore::{Found, Setting, explore};
use kinds::Kind::*;
use kinds::{DRAINS, GRAY, IN_PLACE, Kind, OFF, PLAIN, multisets};

/// Settings that are explored from the same states.
#[derive(Debug)]
pub struct Suite {
    settings: Vec<Setting>,
    kinds: Vec<Kind>,
    /// Machines at first.
    top: u8,
    /// The largest size asked for.
    desired: u8,
}

const OPEN: Setting = Setting {
    name: "ramp off",
    ramp: false,
    checkpoint: None,
    paused: false,
    stopped: false,
    late_capacity: false,
    known_late: false,
    nodes: false,
    count_deleting: true,
    in_place: false,
    breaker: false,
    gray: false,
    off: false,
};

/// Machines of the largest pool that is explored, where it is `of_five` when five are asked for.
fn top(of_five: u8) -> u8 {
    let asked = std::env::var("POOLKEEPER_EXHAUSTIVE").ok().and_then(|n| n.parse::<u8>().ok());
    asked.map_or(long_or(2, 1).min(of_five - 2), |asked| (asked + of_five).saturating_sub(5))
}

fn replaced() -> Suite {
    let late = "ramp off, capacity falls when a delete is done";
    let settings = vec![
        OPEN,
        Setting { name: late, late_capacity: true, ..OPEN },
        Setting { name: "the same, and known to", late_capacity: true, known_late: true, ..OPEN },
        Setting { name: "ramp 1, 2, 4", ramp: true, ..OPEN },
        Setting { name: "ramp, checkpoint at 1", ramp: true, checkpoint: Some(1), ..OPEN },
        Setting { name: "ramp, checkpoint at 2", ramp: true, checkpoint: Some(2), ..OPEN },
        Setting { name: "paused", paused: true, ..OPEN },
        Setting { name: "stopped", stopped: true, ..OPEN },
    ];
    Suite { settings, kinds: PLAIN.to_vec(), top: top(5), desired: 4 }
}

const NODES: Setting = Setting { name: "nodes", nodes: true, ..OPEN };

/// A machine is drained first, and may be taken back on the way.
fn drained() -> Suite {
    let settings = vec![
        NODES,
        Setting { name: "nodes, ramp", ramp: true, ..NODES },
        Setting { name: "nodes, paused", paused: true, ..NODES },
        Setting { name: "nodes, stopped", stopped: true, ..NODES },
        Setting { name: "nodes, deleting ones do not count", count_deleting: false, ..NODES },
    ];
    Suite { settings, kinds: with_nodes(), top: top(3), desired: 3 }
}

fn drained_in_place() -> Suite {
    let in_place = Setting { name: "nodes, in place", in_place: true, ..NODES };
    let settings = vec![
        in_place,
        Setting { name: "nodes, in place, paused", paused: true, ..in_place },
        Setting { name: "nodes, in place, stopped", stopped: true, ..in_place },
    ];
    let kinds = with_nodes().into_iter().chain(IN_PLACE).collect();
    Suite { settings, kinds, top: top(3), desired: 3 }
}

fn with_nodes() -> Vec<Kind> {
    let ways = DRAINS.iter().flat_map(|row| [row.0, row.1]);
    let others = PLAIN.iter().copied().filter(|kind| *kind != UnknownRevision);
    others.chain(ways).collect()
}

/// Those being deleted are made up for before they are gone.
fn ahead() -> Suite {
    let ahead = Setting { name: "deleting ones do not count", count_deleting: false, ..OPEN };
    let late = "deleting ones do not count, capacity falls when a delete is done";
    let late = Setting { name: late, late_capacity: true, ..ahead };
    let known = Setting { name: "the same, and known not to count", known_late: true, ..late };
    let settings = vec![ahead, late, known];
    Suite { settings, kinds: PLAIN.to_vec(), top: top(4), desired: 3 }
}

fn in_place() -> Suite {
    let in_place = Setting { name: "in place", in_place: true, ..OPEN };
    let settings = vec![
        in_place,
        Setting { name: "in place, ramp", ramp: true, ..in_place },
        Setting { name: "in place, paused", paused: true, ..in_place },
    ];
    let kinds = PLAIN.iter().copied().chain(IN_PLACE).collect();
    Suite { settings, kinds, top: top(4), desired: 3 }
}

/// What had served and looks failed stays while the breaker is open, and nothing waits without naming it.
fn breaker() -> Suite {
    let breaker = Setting { name: "breaker", breaker: true, ..OPEN };
    let settings = vec![breaker, Setting { name: "breaker, paused", paused: true, ..breaker }];
    Suite { settings, kinds: PLAIN.to_vec(), top: top(4), desired: 4 }
}

/// Surplus leaves service first, comes back before any is made, and goes once it was watched.
fn watched() -> Suite {
    let gray = Setting { name: "gray", gray: true, ..OPEN };
    let settings = vec![
        gray,
        Setting { name: "gray, ramp", ramp: true, ..gray },
        Setting { name: "gray, paused", paused: true, ..gray },
        Setting { name: "gray, stopped", stopped: true, ..gray },
    ];
    let kinds = PLAIN.iter().copied().chain(GRAY).collect();
    Suite { settings, kinds, top: top(4), desired: 3 }
}

/// The same, drained and switched off before it goes, and started before any is made.
fn switched_off() -> Suite {
    let off = Setting { name: "off", gray: true, off: true, ..OPEN };
    let settings = vec![off, Setting { name: "off, paused", paused: true, ..off }];
    let kinds = PLAIN.iter().copied().chain(GRAY).chain(OFF).collect();
    Suite { settings, kinds, top: top(4), desired: 3 }
}

#[test]
fn every_small_pool_is_safe_and_ends() {
    are_safe_and_end(&[replaced()]);
}

#[test]
fn pools_with_nodes_are_safe_and_end() {
    are_safe_and_end(&[drained(), drained_in_place()]);
}

#[test]
fn pools_that_do_not_count_what_is_deleted_are_safe_and_end() {
    are_safe_and_end(&[ahead()]);
}

#[test]
fn pools_updated_in_place_are_safe_and_end() {
    are_safe_and_end(&[in_place()]);
}

#[test]
fn pools_whose_repair_stopped_itself_are_safe_and_end() {
    are_safe_and_end(&[breaker()]);
}

#[test]
fn pools_that_watch_their_surplus_are_safe_and_end() {
    are_safe_and_end(&[watched()]);
}

#[test]
fn pools_that_switch_their_surplus_off_are_safe_and_end() {
    are_safe_and_end(&[switched_off()]);
}

/// Turns of larger pools in every test run.
const TURNS: usize = 20_000;

#[test]
fn larger_pools_are_safe_and_end() {
    let suites = [
        replaced(),
        drained(),
        drained_in_place(),
        ahead(),
        in_place(),
        breaker(),
        watched(),
        switched_off(),
    ];
    let asked = std::env::var("POOLKEEPER_TURNS").ok().map(|turns| turns.parse().unwrap());
    let seed = std::env::var("POOLKEEPER_SEED").map_or(0, |seed| seed.parse().unwrap());
    // Each state of a pool that is explored whole is one turn.
    let explored = if asked.is_some() { are_safe_and_end(&suites) } else { 0 };
    let walked = walks::until(&suites, seed, asked.unwrap_or(TURNS).saturating_sub(explored));
    println!(
        "{} turns, {} states, laws {}: {explored} of small pools explored whole, {} in {} walks of larger ones, seed {seed}",
        explored + walked.turns,
        explored + walked.states,
        laws::LAWS,
        walked.turns,
        walked.walks,
    );
    none_broken(walked.broken);
}

/// How many states there were.
fn are_safe_and_end(suites: &[Suite]) -> usize {
    let mut broken = Vec::new();
    let mut states = 0;
    for suite in suites {
        let found = explored(suite);
        for setting in &suite.settings {
            let of = found.iter().filter(|(of, _)| *of == setting.name).map(|(_, found)| found);
            let mine: Vec<&Found> = of.collect();
            println!(
                "{:<64} {:>9} states {:>10} edges, longest calm path {}, waiting for a person {}",
                setting.name,
                mine.iter().map(|f| f.states).sum::<usize>(),
                mine.iter().map(|f| f.edges).sum::<usize>(),
                mine.iter().map(|f| f.longest).max().unwrap_or(0),
                mine.iter().map(|f| f.waiting).sum::<usize>(),
            );
        }
        states += found.iter().map(|(_, found)| found.states).sum::<usize>();
        broken.extend(found.into_iter().flat_map(|(_, found)| found.broken));
    }
    none_broken(broken);
    states
}

/// Each setting at each size, with each surge and each number that may be missing.
fn explored(suite: &Suite) -> Vec<(&'static str, Found)> {
    let states = multisets(suite.top, &suite.kinds);
    let mut all = Vec::new();
    for setting in &suite.settings {
        for desired in 0..=suite.desired {
            for (surge, unavailable) in (1..9).map(|n| (n / 3, n % 3)) {
                all.push((*setting, desired, surge, unavailable));
            }
        }
    }
    std::thread::scope(|scope| {
        let shares = (0..cores()).map(|core| {
            let (all, states) = (&all, &states);
            scope.spawn(move || {
                let mine = all.iter().skip(core).step_by(cores());
                mine.map(|(setting, d, s, u)| (setting.name, explore(states, *setting, *d, *s, *u)))
                    .collect::<Vec<_>>()
            })
        });
        let shares: Vec<_> = shares.collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn none_broken(mut broken: Vec<String>) {
    // Of each kind the shortest.
    let kind = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    broken.sort_by_key(|line| (kind(line), line.len()));
    broken.dedup_by_key(|line| kind(line));
    assert!(broken.is_empty(), "{} kinds of breach:\n{}", broken.len(), broken.join("\n"));
}
