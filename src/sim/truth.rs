//! The judge of what really happened, fed with each turn in order.

use super::disk::Disk;
use super::stage::{Call, Stage};
use super::watch::Decision;
use crate::judge::history::Past;
use crate::judge::{self, Birth, Case, Note, Sent, Truth};
use crate::memory::Lease;
use crate::model::policy::Policy;

/// Judge one turn; what it sent is taken off the stage.
pub(super) fn judge(
    decision: &Decision,
    policy: &Policy,
    stage: &mut Stage,
    disk: &Disk,
    turn: Turn<'_>,
    past: &mut Past,
) -> Vec<Note> {
    let calls = std::mem::take(&mut stage.calls);
    let spare = stage.world.truth(stage.set).is_some_and(|truth| truth.extras > 0);
    let sent: Vec<Sent> = calls.iter().map(|call| sent(call, turn.lease)).collect();
    let births: Vec<Birth> = calls.iter().flat_map(|call| births(call, spare)).collect();
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
    let ours = births.iter().filter(|birth| birth.of.is_some()).count();
    let journal = disk.entries();
    let truth = Truth {
        case: &case,
        world: &decision.world,
        coming: u32::try_from(ours).unwrap_or(u32::MAX),
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
