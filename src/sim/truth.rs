//! The judge of real effects, called with each turn in order.

use std::collections::BTreeSet;

use super::disk::SimDisk;
use super::recorder::RecordedDecision;
use super::stage::{SimCall, SimStage};
use crate::judge::history::History;
use crate::judge::{self, MachineBirth, Note, Real, SentCall, Truth};
use crate::memory::Lease;
use crate::model::cluster::NodeReady;
use crate::model::ids::Key;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::policy::Policy;
use crate::model::stop::GlobalStop;

/// Judges one turn and takes its calls off the stage.
pub(super) fn judge<S>(
    decision: &mut RecordedDecision,
    policy: &Policy,
    stage: &mut SimStage,
    disk: &SimDisk<S>,
    turn: Turn<'_>,
    past: &mut History,
) -> Vec<Note> {
    let calls = std::mem::take(&mut stage.calls);
    let pool = &policy.name;
    stage.pods.tainted = stage.left_signed(|node| node.is_tainted_by(pool));
    stage.pods.shielded = stage.left_signed(|node| node.is_shielded_by(pool));
    stage.pods.out =
        stage.left_signed(|node| node.ready == NodeReady::True && node.is_out_by(pool));
    let pods = std::mem::take(&mut stage.pods);
    let sent: Vec<SentCall> = calls.iter().map(|call| sent(call, turn.lease)).collect();
    let births: Vec<MachineBirth> = calls.iter().flat_map(births).collect();
    let world = with_records(decision);
    let case = decision.case(policy);
    // Over-provisioned machines do not count as ours, nor does a shortfall that the cloud makes up and no read showed.
    let asked = births.iter().filter(|birth| birth.of.is_some()).count();
    let asked = u32::try_from(asked).unwrap_or(u32::MAX);
    let lacking = calls.iter().map(|call| call.lacking).max().unwrap_or(0);
    // A delete that ends after the read lowers the number, and a stale listing shows a higher one. No read could show
    // what a raise then creates beyond its own machines.
    let fell = calls.iter().map(|call| call.fell).max().unwrap_or(0);
    let unseen = lacking.saturating_sub(seen_lacking(decision)).max(fell);
    let coming = asked.saturating_sub(unseen);
    let journal = disk.entries();
    let truth = Truth {
        case: &case,
        world: &world,
        coming,
        sent: &sent,
        pods: &pods,
        births: &births,
        journal: &journal,
        stored: turn.stored,
        calm: turn.calm,
        stop: turn.stop,
    };
    judge::after(&truth, past)
}

/// What the run knows of a turn beside its decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    pub lease: &'a Lease,
    /// Commits of this turn.
    pub stored: u32,
    pub calm: bool,
    /// What the persons of the rehearsal said last about all pools.
    pub stop: Option<&'a GlobalStop>,
}

fn sent(call: &SimCall, lease: &Lease) -> SentCall {
    SentCall {
        at: call.at,
        entry: call.entry.clone(),
        epoch: lease.epoch,
        not_after: lease.not_after,
        verb: call.verb,
        hit: call.hit.clone(),
        to: call.to,
        lacking: call.lacking,
        took: call.took,
        serving: call.serving.clone(),
        with_pods: call.with_pods.clone(),
    }
}

/// How many machines the capacity asks for beyond those that are listed and stay. An operator who writes a machine off
/// also writes off its place in the capacity: a machine created there counts as requested by that command.
fn seen_lacking(decision: &RecordedDecision) -> u32 {
    let off = &decision.planned.state.written_off;
    let stays = |machine: &&Machine| {
        let seen = machine.condition != Condition::Deleting;
        machine.missed == 0 && (seen || off.contains(&machine.key()))
    };
    let listed = decision.machines.iter().filter(stays).count();
    decision.set.capacity.saturating_sub(u32::try_from(listed).unwrap_or(u32::MAX))
}

/// A machine that leaves by our records is already out of service. A delete takes its machine when it reaches it: a
/// refused or unsent one takes none.
fn with_records(decision: &mut RecordedDecision) -> Vec<Real> {
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

/// Machines above the number requested are the cloud's own doing if it over-provisions.
fn births(call: &SimCall) -> Vec<MachineBirth> {
    let asked = if call.spare {
        // A sixth of what came is extra: the cloud makes a fifth more than requested.
        call.born.len() * 5 / 6
    } else {
        call.born.len()
    };
    let of = |n: usize| (n < asked).then(|| call.entry.clone());
    call.born
        .iter()
        .enumerate()
        .map(|(n, key)| MachineBirth { key: key.clone(), of: of(n) })
        .collect()
}
