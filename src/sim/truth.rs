//! The judge of what really happened, fed with each turn in order.

use std::collections::BTreeSet;

use super::disk::Disk;
use super::stage::{Call, Stage};
use super::watch::Decision;
use crate::judge::history::Past;
use crate::judge::{self, Birth, Case, Note, Real, Sent, Truth};
use crate::memory::Lease;
use crate::model::ids::Key;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::policy::Policy;

/// Judge one turn; what it sent is taken off the stage.
pub(super) fn judge(
    decision: &mut Decision,
    policy: &Policy,
    stage: &mut Stage,
    disk: &Disk,
    turn: Turn<'_>,
    past: &mut Past,
) -> Vec<Note> {
    let calls = std::mem::take(&mut stage.calls);
    let spare = stage.world.true_sizes(stage.set).is_some_and(|sizes| sizes.extras > 0);
    let sent: Vec<Sent> = calls.iter().map(|call| sent(call, turn.lease)).collect();
    let births: Vec<Birth> = calls.iter().flat_map(|call| births(call, spare)).collect();
    let world = with_records(decision);
    let case = Case {
        now: decision.now,
        policy,
        set: &decision.set,
        machines: &decision.machines,
        journal: &decision.journal,
        planned: &decision.planned,
        before: decision.before.as_ref(),
        facts: &decision.facts,
    };
    let coming: u32 = calls.iter().map(coming).sum();
    let journal = disk.entries();
    let truth = Truth {
        case: &case,
        world: &world,
        coming,
        sent: &sent,
        births: &births,
        journal: &journal,
        stored: turn.stored,
        calm: turn.calm,
    };
    judge::after(&truth, past)
}

/// What the run knows of a turn beside its decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    pub lease: &'a Lease,
    /// Commits it made.
    pub stored: u32,
    pub calm: bool,
}

fn sent(call: &Call, lease: &Lease) -> Sent {
    Sent {
        at: call.at,
        entry: call.entry.clone(),
        epoch: lease.epoch,
        not_after: lease.not_after,
        verb: call.verb,
        hit: call.hit.clone(),
        to: call.to,
        lacking: call.lacking,
        took: call.took,
    }
}

/// What is on its way out by our records is out of service already, whatever became of the request.
fn with_records(decision: &mut Decision) -> Vec<Real> {
    let out: BTreeSet<Key> = decision
        .machines
        .iter()
        .filter(|machine| machine.lifecycle != Lifecycle::InService)
        .map(Machine::key)
        .collect();
    let mut world = std::mem::take(&mut decision.world);
    for real in &mut world {
        real.touched |= out.contains(&real.key);
    }
    world
}

/// Where the capacity is shown higher than it is, as while machines are deleted, a raise brings more than its
/// difference; nobody who reads can know it, so no more than that is held against us.
fn coming(call: &Call) -> u32 {
    let born = u32::try_from(call.born.len()).unwrap_or(u32::MAX);
    born.saturating_sub(call.lacking).min(call.asked)
}

/// Machines above what was asked for are the cloud's own doing where it over-provisions.
fn births(call: &Call, over_provisioned: bool) -> Vec<Birth> {
    let asked = if over_provisioned {
        // A sixth of what came is extra: the cloud makes a fifth more than asked.
        call.born.len() * 5 / 6
    } else {
        call.born.len()
    };
    let of = |n: usize| (n < asked).then(|| call.entry.clone());
    call.born.iter().enumerate().map(|(n, key)| Birth { key: key.clone(), of: of(n) }).collect()
}
