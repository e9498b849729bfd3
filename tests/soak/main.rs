//! Four weeks of many pools, each through the loop that production runs, on one store in a file: with a rollout a week, a
//! size that changes, asks, power cuts, and all that goes wrong in an ordinary week. No law is broken, and nothing that is
//! remembered grows for ever.
//!
//! In every test run a week has two days, so that it takes seconds; `SOAK_POOLS=50 SOAK_WEEK=7 cargo test --release --test
//! soak` plays true months, and `integration/soak/run` does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod store;

use std::path::PathBuf;

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::model::plan::AskVerb;
use poolkeeper::model::policy::Policy;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::sim::{self, Cut, Faults, Outcome, START, Scenario, Wish};
use store::{Month, Sizes};

/// In every test run.
const POOLS: u32 = 1;
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
    let mut scenario = Scenario::from_policy(&policy, None, u64::from(n), Faults::default());
    scenario.start = START.plus(apart(week).times(i64::from(n)));
    scenario.faults = Faults::named("mild").unwrap();
    scenario.calm_after = Span::days(WEEKS * week);
    scenario.operator = true;
    scenario.wishes = wishes(week);
    // Lives end while something goes on, not all at the same place.
    let n = u64::from(n);
    scenario.cuts = vec![Cut::After(20 + n), Cut::Before(90 + n), Cut::After(240 + n)];
    scenario
}

/// Each week another image and another size; each day somebody who tries whatever might help.
fn wishes(week: i64) -> Vec<(Span, Wish)> {
    let mut wishes = Vec::new();
    for day in 0..WEEKS * week {
        let at = |hour| Span::hours(24 * day + hour);
        for (hour, verb) in [(1, AskVerb::Release), (2, AskVerb::Resume), (3, AskVerb::Retry)] {
            wishes.push((at(hour), Wish::Ask(verb)));
        }
        if day % week == 0 {
            let image = format!("images/base/{}.0.0", 2 + day / week);
            wishes.push((at(4), Wish::Image(image.into())));
        }
        if day % week == week / 2 {
            wishes.push((at(5), Wish::Count(MACHINES + (day / week % 2) as u32)));
        }
    }
    wishes
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Within a fifth, and a handful where there is next to nothing.
fn as_large(before: u64, after: u64, handful: u64) -> bool {
    after <= before + before / 5 + handful
}

fn check(name: &str, outcome: &Outcome, two: &Sizes, four: &Sizes) {
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

#[test]
fn nothing_grows_for_ever() {
    let pools = u32::try_from(told("SOAK_POOLS", POOLS.into())).unwrap();
    let week = told("SOAK_WEEK", WEEK);
    let folder =
        Folder(std::env::temp_dir().join(format!("poolkeeper-soak-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("pools.db");
    let store = SqliteStore::open(&Options::new(&path, "a soak")).unwrap();
    let (mut turns, mut commits, mut crashes, mut third) = (0, 0, 0, 0);
    for n in 0..pools {
        let scenario = weeks(n, week);
        let seen = Month::new(&store, &path, (scenario.policy.name.clone(), scenario.start), week);
        let outcome = sim::run_kept(&scenario, &seen);
        assert!(outcome.is_settled(), "{}: {:?}", scenario.policy.name, outcome.end);
        let (two, four) = seen.sizes();
        println!("{}: {two:?} {four:?}", scenario.policy.name);
        check(scenario.policy.name.as_str(), &outcome, &two, &four);
        turns += outcome.turns;
        commits += outcome.commits;
        crashes += outcome.crashes;
        let size = four.file;
        if n == pools / 3 {
            third = size;
        }
        // What is left of a pool whose month is long over: its machines and its state.
        let left = u64::from(n - (pools / 3).min(n)) * 64 * 1_024;
        assert!(n <= pools / 3 || as_large(third, size, left), "{third} bytes and then {size}");
    }
    let end: Time = START.plus(apart(week).times(i64::from(pools)));
    println!("{pools} pools until {end}: {turns} turns, {commits} commits, {crashes} power cuts");
}
