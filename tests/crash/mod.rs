//! The power goes before and after every write of a rollout, be it a commit, the lease or what a person asks; in the calm
//! and with faults; once, and again while it recovers. Whatever was cut, nothing is done twice, forgotten or left over.
//!
//! `cargo test` thins the cuts out; the long form, as CI plays it, cuts where each suite says, and `CRASH_CUTS=all` at
//! every write everywhere.

mod balanced;
mod calm;
mod faults;
mod file;
mod sizes;

use crate::support::long::long_or;
use crate::support::waiting;
use poolkeeper::model::policy::{Draft, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::sim::{self, DiskCut, RunOutcome, Scenario, TimelineState};
use poolkeeper::world::WorldFaults;

fn policy(count: u32, surge: u8, down: u8, change: impl FnOnce(&mut Draft)) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::of(surge);
    draft.rollout.max_unavailable = Quantity::of(down);
    draft.rollout.ramp = None;
    change(&mut draft);
    Policy::build(draft).unwrap()
}

fn scenario(count: u32, surge: u8, down: u8, seed: u64) -> Scenario {
    let policy = policy(count, surge, down, |_| {});
    Scenario::from_policy(&policy, None, seed, WorldFaults::default())
}

/// The short form cuts at so much fewer writes.
// 7: a prime, so that strides of the suites do not hide what comes every few writes.
const THINNED: usize = 7;

/// Every `stride`-th write, or each one where all are wanted.
fn writes_of(outcome: &RunOutcome, stride: usize) -> impl Iterator<Item = u64> + use<> {
    let all = std::env::var("CRASH_CUTS").is_ok_and(|cuts| cuts == "all");
    let stride = if all { 1 } else { stride * long_or(1, THINNED) };
    (1..=outcome.writes).step_by(stride)
}

fn both(number: u64) -> [DiskCut; 2] {
    [DiskCut::Before(number), DiskCut::After(number)]
}

/// What holds after any cut: no law was broken, and the store is not owed anything.
fn nothing_is_lost(outcome: &RunOutcome, said: &dyn Fn() -> String) {
    assert_eq!(outcome.breaches, [], "{}", said());
    assert_eq!((outcome.unended, outcome.unheard), (0, 0), "a lost intent: {}", said());
}

/// What the world looks like when all is over: machines made and gone, and on what the rest runs.
fn what_is_left(outcome: &RunOutcome) -> (usize, usize, Vec<u32>) {
    let rows = &outcome.timeline.rows;
    let left: Vec<_> = rows.iter().filter(|row| row.gone.is_none()).collect();
    assert!(left.iter().all(|row| row.segments.last().unwrap().doing == TimelineState::Serving));
    let models = left.iter().map(|row| row.segments.last().unwrap().model).collect();
    (rows.len(), rows.len() - left.len(), models)
}
