//! Four weeks of many pools, each through the loop that production runs, on a store in a file (one for each core): with a
//! rollout a week, a size that changes, commands, power cuts, and all that goes wrong in an ordinary week. No law is
//! broken, and nothing that is remembered grows for ever.
//!
//! In every test run a week has two days, so that it takes seconds; `SOAK_POOLS=50 SOAK_WEEK=7 cargo test --release --test
//! soak` plays true months, and `integration/soak/run` does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

#[path = "../support/folder.rs"]
mod folder;
mod store;
#[path = "../support/waiting.rs"]
mod waiting;

use folder::Folder;
use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, DiskCut, RunOutcome, START, Scenario, UserAction, WorldFaults};
use store::{Month, Sizes};
use waiting::Waiting;

/// In every test run.
const POOLS: u32 = 2;
const WEEK: i64 = 2;
const WEEKS: i64 = 4;
/// Longer than a rehearsal may take to settle after its weeks.
const SETTLES: i64 = 16;
const MACHINES: u32 = 12;

fn told(name: &str, usual: i64) -> i64 {
    std::env::var(name).map_or(usual, |told| told.parse().unwrap())
}

/// From the start of one pool to that of the next.
fn apart(week: i64) -> Span {
    Span::days(WEEKS * week + SETTLES)
}

/// Four weeks of one pool; of so many days each.
fn weeks(n: u32, week: i64) -> Scenario {
    let mut draft = sim::draft(&format!("pool-{n:02}"), MACHINES);
    draft.rollout.max_surge = Quantity::of(1 + (n % 3) as u8);
    draft.rollout.max_unavailable = Quantity::of((n % 2) as u8);
    let policy = Policy::build(draft).unwrap();
    let mut scenario = Scenario::from_policy(&policy, None, u64::from(n), WorldFaults::default());
    scenario.start = START.plus(apart(week).times(i64::from(n)));
    scenario.faults = WorldFaults::named("mild").unwrap();
    scenario.calm_after = Span::days(WEEKS * week);
    scenario.operator = true;
    scenario.wishes = wishes(week);
    // Lives end while something goes on, not all at the same place.
    let n = u64::from(n);
    scenario.cuts = vec![DiskCut::After(20 + n), DiskCut::Before(90 + n), DiskCut::After(240 + n)];
    scenario
}

/// Each week another image and another size; each day somebody who tries whatever might help.
fn wishes(week: i64) -> Vec<(Span, UserAction)> {
    let mut wishes = Vec::new();
    for day in 0..WEEKS * week {
        let at = |hour| Span::hours(24 * day + hour);
        let helps = [
            CommandVerb::ResetBreaker,
            CommandVerb::Resume,
            CommandVerb::Retry,
            CommandVerb::ResetCapacity,
        ];
        for (hour, verb) in (0..).zip(helps) {
            wishes.push((at(hour), UserAction::Ask(verb)));
        }
        if day % week == 0 {
            let image = format!("images/base/{}.0.0", 2 + day / week);
            wishes.push((at(4), UserAction::Image(image.into())));
        }
        if day % week == week / 2 {
            wishes.push((at(5), UserAction::Count(MACHINES + (day / week % 2) as u32)));
        }
    }
    wishes
}

/// Within a fifth, and a handful where there is next to nothing.
fn as_large(before: u64, after: u64, handful: u64) -> bool {
    after <= before + before / 5 + handful
}

fn check(name: &str, outcome: &RunOutcome, two: &Sizes, four: &Sizes) {
    let last = outcome.story.len().saturating_sub(30);
    let said = || format!("{name}: {:?}\n{}", outcome.end, outcome.story[last..].join("\n"));
    assert_eq!(outcome.breaches, [], "{}", said());
    assert!(outcome.is_settled(), "{}", said());
    assert!(outcome.crashes >= 2, "the power went {} times: {}", outcome.crashes, said());
    for (what, handful, of) in Sizes::ALL {
        let (before, after) = (of(two), of(four));
        assert!(as_large(before, after, handful), "{name}: {what} {before} and then {after}");
    }
}

/// One pool after the other on one store, whose time goes on.
fn play(pools: std::ops::Range<u32>, week: i64) {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = SqliteStore::open(&Options::new(&path, "a soak")).unwrap();
    let mut third = None;
    for n in pools.clone() {
        let scenario = weeks(n, week);
        let name = scenario.policy.name.clone();
        let seen = Month::new(&store, &path, (name.clone(), scenario.start), week);
        let outcome = sim::run_kept(&scenario, Waiting(&seen));
        assert!(outcome.is_settled(), "{name}: {:?}", outcome.end);
        let (two, four) = seen.sizes();
        let RunOutcome { turns, commits, crashes, .. } = outcome;
        println!(
            "{name}: {turns} turns, {commits} commits, {crashes} power cuts, {two:?} {four:?}"
        );
        check(name.as_str(), &outcome, &two, &four);
        // Of a pool whose weeks are long over its machines and its state are left.
        let after = n - pools.start;
        if after == pools.len() as u32 / 3 {
            third = Some((after, four.file));
        }
        let (at, before) = third.unwrap_or((after, four.file));
        let left = u64::from(after - at) * 64 * 1_024;
        assert!(as_large(before, four.file, left), "{before} bytes and then {}", four.file);
    }
}

#[test]
fn nothing_grows_for_ever() {
    let pools = u32::try_from(told("SOAK_POOLS", POOLS.into())).unwrap();
    let week = told("SOAK_WEEK", WEEK);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let each = pools.div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        for first in (1..=pools).step_by(each as usize) {
            scope.spawn(move || play(first..(first + each).min(pools + 1), week));
        }
    });
}
