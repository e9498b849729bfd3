//! Each machine is in exactly one group, the first that fits. An unknown machine counts as existing, and as not
//! serving.

use crate::model::ids::Zone;
use crate::model::machine::{Condition, Lifecycle, Machine, Protection};
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::rollout::{KeyBackOff, PoolState};
use crate::model::time::Span;

use super::activity::{Requests, follow_entries};
use super::candidate::{
    CandidateGroup, MachineActivity, MachineCandidate, Protector, RequestedRemoval, RetryWait,
    UpdateRole,
};
use super::health::{Burst, group};
use super::identity::is;
use super::journal::Journal;
use super::lookup::Lookup;
use super::reference::RevisionReference;
use super::tombstones::Tombs;
use super::{exceptions, in_place, setbacks};

/// A node that has been silent for this long does not return for its pods.
// 5 min: a reboot takes less, and Kubernetes itself gives up pods after as long.
const SILENT: Span = Span::minutes(5);

/// The row before our requests are applied.
fn fresh(machine: &Machine, index: u32, zone: u16, written_off: bool) -> MachineCandidate {
    MachineCandidate {
        index,
        group: CandidateGroup::Unknown,
        doing: MachineActivity::Nothing,
        because: None,
        kept: Protector::No,
        zone,
        outdated: false,
        request: RequestedRemoval::No,
        asked: machine.lifecycle_since,
        wait: RetryWait::No,
        given_back: false,
        doubted: false,
        balancing: false,
        stays: machine.is_kept_by_people(),
        tried_later: false,
        fails: false,
        overdue: false,
        written_off,
        unlisted: machine.missed > 0,
        shown_deleting: machine.condition == Condition::Deleting,
        perhaps_deleted: false,
        returning: false,
        stopping: false,
        became: None,
        role: UpdateRole::None,
        marked: false,
    }
}

/// All machines in listing order, with everything that does not depend on the target revision.
pub(super) fn classify(
    input: &Input,
    journal: &Journal,
    memory: &mut PoolState,
) -> (Vec<MachineCandidate>, Vec<Zone>) {
    let mut order: Vec<u32> = (0..input.machines.len() as u32).collect();
    order.sort_by(|a, b| input.machines[*a as usize].listing_order(&input.machines[*b as usize]));
    let mut zones: Vec<Zone> = Vec::new();
    let burst = Burst::of(input);
    let mut begin = |index: u32| {
        let machine = &input.machines[index as usize];
        let zone = zone_number(&mut zones, machine);
        let written_off = memory.written_off.iter().any(|key| is(key, machine));
        fresh(machine, index, zone, written_off)
    };
    let mut rows: Vec<MachineCandidate> = order.into_iter().map(&mut begin).collect();
    let tombs = Tombs::take(memory);
    tombs.bury(input, memory);
    let removals = Lookup::of(memory.removals.iter().map(|(key, _)| key));
    let known = Requests { journal, tombs: &tombs, removals };
    for row in &mut rows {
        let machine = row.machine(input);
        follow_entries(input, &known, memory, machine, row);
        // An earlier plan took it back but could not use its read: the entry is shown once more.
        let back_already = matches!(row.doing, MachineActivity::Lost | MachineActivity::TakeBack)
            && machine.lifecycle == Lifecycle::InService;
        if (row.doing == MachineActivity::Nothing || back_already)
            && row.group != CandidateGroup::Ghost
        {
            let starts = row.returning && machine.lifecycle == Lifecycle::Standby;
            let back = starts || row.given_back || row.became == Some(Lifecycle::InService);
            row.group = match row.became {
                Some(Lifecycle::CutOff | Lifecycle::Standby) => CandidateGroup::Gray,
                _ if back => group(input, &in_service(machine), burst),
                _ => group(input, machine, burst),
            };
        }
        let starts = row.returning && machine.condition == Condition::Stopped;
        if starts && row.group == CandidateGroup::Failed {
            row.group = not_yet_serving(machine);
        }
        row.fails = matches!(row.group, CandidateGroup::Leaving | CandidateGroup::Gray)
            && group(input, &in_service(machine), burst) == CandidateGroup::Failed
            && !machine.is_on_standby();
        row.written_off &= matches!(row.group, CandidateGroup::Leaving | CandidateGroup::Ghost);
        let now = !row.stays && machine.delete_request().is_some_and(|request| request.now);
        row.wait = retry_wait(input, memory, machine, (row.group, now));
        // In service by our records, but its node is not given back yet: it exists, and is not available.
        let taken_back = back_already && row.doing == MachineActivity::TakeBack;
        if taken_back && row.wait == RetryWait::No {
            row.wait = RetryWait::Long;
        }
        if row.group == CandidateGroup::Ready {
            row.doubted |= setbacks::may_be_gone(input, memory, machine);
            // It starts: it serves once our record says so.
            let starts = machine.lifecycle == Lifecycle::Standby;
            if taken_back || starts || row.doubted || row.returning {
                row.group = not_yet_serving(machine);
            }
        } else if matches!(row.group, CandidateGroup::Unready | CandidateGroup::Young) {
            // An old listing makes a serving machine look as if it had just started.
            row.doubted = machine.condition == Condition::Ready;
        }
    }
    tombs.put_back(input, memory);
    (rows, zones)
}

const fn not_yet_serving(machine: &Machine) -> CandidateGroup {
    // One that never served is not in the promise.
    if machine.ever_available { CandidateGroup::Unready } else { CandidateGroup::Young }
}

fn retry_wait(
    input: &Input,
    memory: &PoolState,
    machine: &Machine,
    (group, now): (CandidateGroup, bool),
) -> RetryWait {
    match () {
        () if !setbacks::holds_back(input, memory, machine, now) => RetryWait::No,
        () if group == CandidateGroup::Failed && drain_was_long(input, memory, machine) => {
            RetryWait::Over
        }
        () if setbacks::is_passing(input, memory, machine) => RetryWait::Brief,
        () => RetryWait::Long,
    }
}

fn in_service(machine: &Machine) -> Machine {
    Machine { lifecycle: Lifecycle::InService, ..machine.clone() }
}

/// Nothing runs on it any more, or it no longer reports.
pub(super) fn is_dead(input: &Input, machine: &Machine) -> bool {
    let silent = machine.unreachable_since.is_some_and(|at| input.now.since(at) >= SILENT);
    matches!(machine.condition, Condition::Failed | Condition::Stopped) || silent
}

/// Its drain was given up so long ago that a dead machine no longer waits for it.
fn drain_was_long(input: &Input, memory: &PoolState, machine: &Machine) -> bool {
    let long = |blocked: &KeyBackOff| {
        input.now.since(blocked.at) >= input.policy.drain.failed_after && is(&blocked.key, machine)
    };
    input.policy.drains(input.set, machine)
        && is_dead(input, machine)
        && memory.blocked.iter().any(long)
}

fn zone_number(zones: &mut Vec<Zone>, machine: &Machine) -> u16 {
    let Some(zone) = &machine.zone else { return 0 };
    match zones.iter().position(|known| known == zone) {
        Some(at) => at as u16 + 1,
        None => {
            zones.push(zone.clone());
            zones.len() as u16
        }
    }
}

/// The second half of the classification: the parts that depend on the target.
pub(super) fn mark(
    input: &Input,
    memory: &PoolState,
    reference: &RevisionReference,
    rows: &mut [MachineCandidate],
) {
    let on_delete = input.policy.rollout.method == Method::OnDelete;
    let in_place = input.policy.rollout.method == Method::Reimage;
    let all_tried = memory.rollout.as_ref().map_or(&[][..], |rollout| &rollout.tried);
    let lookup = Lookup::of(all_tried.iter());
    for row in rows {
        let machine = row.machine(input);
        let tried = lookup.has(machine, all_tried);
        row.role = if tried || in_place::was_updated(memory, machine) {
            UpdateRole::Updated
        } else if in_place && in_place::was_made_beside(input, memory, machine) {
            UpdateRole::StandIn
        } else {
            UpdateRole::None
        };
        let request = machine.delete_request();
        let person = machine.hold().is_some();
        // Scale-in protection does not forbid an update, because the machine stays.
        let cloud = match machine.protection {
            Protection::None => false,
            Protection::ScaleIn => !in_place,
            Protection::All | Protection::Unknown => true,
        };
        row.request = match request {
            Some(request) if !row.stays && request.now => RequestedRemoval::Now,
            Some(_) if !row.stays => RequestedRemoval::InTurn,
            _ => RequestedRemoval::No,
        };
        row.outdated = reference.outdates(machine) || request.is_some();
        row.kept = if person {
            Protector::Person
        } else if cloud {
            Protector::Cloud
        } else if !row.outdated || row.is_named() {
            Protector::No
        } else if machine.revision.is_none() {
            Protector::RevisionUnknown
        } else if on_delete {
            Protector::OnDelete
        } else if in_place
            && row.group != CandidateGroup::Updating
            && (tried || in_place::is_in_vain(memory, machine, &reference.revision))
        {
            Protector::UpdateFailed
        } else if exceptions::stands(memory, &reference.revision, machine) {
            Protector::Exception
        } else {
            Protector::No
        };
    }
}
