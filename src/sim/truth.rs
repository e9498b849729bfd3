//! The judge of what really happened, fed with each turn in order.

use std::collections::BTreeSet;

use super::disk::Disk;
use super::stage::{Call, Stage};
use super::watch::Decision;
use crate::judge::history::Past;
use crate::judge::{self, Birth, Note, Real, Sent, Truth};
use crate::memory::Lease;
use crate::model::ids::Key;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;

/// Judge one turn; what it sent is taken off the stage.
pub(super) fn judge<S>(
    decision: &mut Decision,
    policy: &Policy,
    stage: &mut Stage,
    disk: &Disk<S>,
    turn: Turn<'_>,
    past: &mut Past,
) -> Vec<Note> {
    let calls = std::mem::take(&mut stage.calls);
    let sent: Vec<Sent> = calls.iter().map(|call| sent(call, turn.lease)).collect();
    let births: Vec<Birth> = calls.iter().flat_map(births).collect();
    let world = with_records(decision);
    let case = decision.case(policy);
    // What the cloud over-provisions is no doing of ours, and neither is what it makes up for that no read had shown.
    let asked = births.iter().filter(|birth| birth.of.is_some()).count();
    let asked = u32::try_from(asked).unwrap_or(u32::MAX);
    let lacking = calls.iter().map(|call| call.lacking).max().unwrap_or(0);
    // A delete that ends after the read lowers the number, and an old picture shows a higher one: what a raise brings
    // beyond its own machines then, no read could tell.
    let fell = calls.iter().map(|call| call.fell).max().unwrap_or(0);
    let unseen = lacking.saturating_sub(seen_lacking(decision)).max(fell);
    let coming = asked.saturating_sub(unseen);
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

/// How many the capacity asked for beyond those that were listed and stay. Who writes a machine off writes off its place in
/// the capacity as well: what comes there is asked for by that word.
fn seen_lacking(decision: &Decision) -> u32 {
    let off = &decision.planned.state.written_off;
    let stays = |machine: &&Machine| {
        let seen = !matches!(machine.condition, Condition::Deleting | Condition::Unknown);
        machine.missed == 0 && (seen || off.contains(&machine.key()))
    };
    let listed = decision.machines.iter().filter(stays).count();
    decision.set.capacity.saturating_sub(u32::try_from(listed).unwrap_or(u32::MAX))
}

/// What is on its way out by our records is out of service already. A delete takes its machine when it reaches it: one
/// that was refused, or never sent, took none.
fn with_records(decision: &mut Decision) -> Vec<Real> {
    let out: BTreeSet<Key> = decision
        .machines
        .iter()
        .filter(|m| !matches!(m.lifecycle, Lifecycle::InService | Lifecycle::Deleting))
        .map(Machine::key)
        .collect();
    let mut world = std::mem::take(&mut decision.world);
    for real in &mut world {
        real.touched |= out.contains(&real.key);
    }
    world
}

/// Machines above what was asked for are the cloud's own doing where it over-provisions.
fn births(call: &Call) -> Vec<Birth> {
    let asked = if call.spare {
        // A sixth of what came is extra: the cloud makes a fifth more than asked.
        call.born.len() * 5 / 6
    } else {
        call.born.len()
    };
    let of = |n: usize| (n < asked).then(|| call.entry.clone());
    call.born.iter().enumerate().map(|(n, key)| Birth { key: key.clone(), of: of(n) }).collect()
}
