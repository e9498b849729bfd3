//! Each machine is in exactly one group, the first that fits. An unknown machine counts as existing, and as not
//! serving.

use crate::model::action::RemovalReason;
use crate::model::ids::{Revision, Zone};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::{KeyBackOff, PoolState};
use crate::model::time::{Span, Time};

use super::activity::{Requests, follow_entries};
use super::health::{Burst, group};
use super::identity::is;
use super::journal::Journal;
use super::lookup::Lookup;
use super::tombstones::Tombs;
use super::{exceptions, in_place, setbacks};

/// A node that has been silent for this long does not return for its pods.
// 5 min: a reboot takes less, and Kubernetes itself gives up pods after as long.
const SILENT: Span = Span::minutes(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CandidateGroup {
    /// Its delete succeeded; while listings still show it, it counts only in `live`.
    Ghost,
    Leaving,
    Gray,
    Unknown,
    Updating,
    Failed,
    Young,
    Ready,
    Unready,
}

impl CandidateGroup {
    /// Counts as one of the pool's machines.
    pub const fn exists(self) -> bool {
        matches!(
            self,
            CandidateGroup::Young
                | CandidateGroup::Ready
                | CandidateGroup::Unready
                | CandidateGroup::Updating
                | CandidateGroup::Unknown
        )
    }
}

/// What is in progress with a machine that is leaving, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MachineActivity {
    Nothing,
    CloudDeletes,
    Draining,
    /// Its drain succeeded: the next step may follow.
    Drained,
    /// Its record says that it is drained, but no entry proves it: drain it again.
    DrainAgain,
    Deleting,
    /// A drain or update without any record left: back in service.
    Lost,
    /// Like lost, and our marks may still be on its node.
    TakeBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protector {
    No,
    Person,
    Cloud,
    RevisionUnknown,
    OnDelete,
    UpdateFailed,
    /// Its drains were blocked; the rollout ended without it.
    Exception,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineCandidate {
    pub index: u32,
    pub group: CandidateGroup,
    pub doing: MachineActivity,
    /// Why it was asked to leave, if an entry says so.
    pub because: Option<RemovalReason>,
    pub kept: Protector,
    pub zone: u16,
    pub outdated: bool,
    pub named: bool,
    pub now: bool,
    /// When it was last asked to leave.
    pub asked: Time,
    /// Its drain, delete or update was refused: not tried before its back-off ends.
    pub waiting: bool,
    /// Its last request had a passing refusal: it is a candidate again within minutes.
    pub waits_briefly: bool,
    /// Its delete had no effect: it is in service again from now on.
    pub given_back: bool,
    /// A delete may have removed it recently, its drain may still run, or it serves but is not settled: it does not
    /// count as available, but its removal is charged as if it were.
    pub doubted: bool,
    /// A person holds it, or the cloud protects it: never removed.
    pub stays: bool,
    /// It is dead, and its drain was tried for long enough.
    pub waits_no_more: bool,
    /// It waits for a retry: it must still leave, or the pool has more than it wants.
    pub tried_later: bool,
    /// It is leaving, and would be failed if given back.
    pub fails: bool,
    /// Leaving for longer than the deadline.
    pub overdue: bool,
    pub written_off: bool,
    /// The last complete listing lacks it.
    pub unlisted: bool,
    /// The cloud itself shows it leaving.
    pub shown_deleting: bool,
    /// An unanswered delete that no read shows: it may still run.
    pub perhaps_deleted: bool,
    /// It is returning to service: no other request before that ends.
    pub returning: bool,
    /// The rollout updated it in place, or created it while updating others.
    pub updated: bool,
    pub stands_in: bool,
    /// Our marks are still on its node, and cannot be removed while the cloud deletes it.
    pub marked: bool,
}

impl MachineCandidate {
    pub fn machine<'a>(&self, input: &Input<'a>) -> &'a Machine {
        &input.machines[self.index as usize]
    }

    /// The cloud is deleting it, so it leaves within its deadline.
    pub const fn is_being_deleted(&self) -> bool {
        matches!(self.doing, MachineActivity::Deleting | MachineActivity::CloudDeletes)
            && !self.overdue
    }

    /// Its delete does not end, whether ours or the cloud's.
    pub const fn is_stuck(&self) -> bool {
        let out = self.is_on_its_way()
            || matches!(self.doing, MachineActivity::Lost | MachineActivity::TakeBack);
        self.overdue && !out
    }

    pub const fn is_on_target(&self) -> bool {
        !self.outdated && !self.named
    }

    /// We never remove it.
    pub const fn is_untouchable(&self) -> bool {
        self.stays
    }

    /// In-place updates skip it as well.
    pub const fn is_frozen(&self) -> bool {
        matches!(self.kept, Protector::Person | Protector::Cloud)
    }

    /// Out of service for a request that is not sent yet.
    pub const fn is_on_its_way(&self) -> bool {
        matches!(
            self.doing,
            MachineActivity::Draining | MachineActivity::Drained | MachineActivity::DrainAgain
        )
    }
}

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
        named: false,
        now: false,
        asked: machine.lifecycle_since,
        waiting: false,
        waits_briefly: false,
        given_back: false,
        doubted: false,
        stays: machine.is_kept_by_people(),
        waits_no_more: false,
        tried_later: false,
        fails: false,
        overdue: false,
        written_off,
        unlisted: machine.missed > 0,
        shown_deleting: machine.condition == Condition::Deleting,
        perhaps_deleted: false,
        returning: false,
        updated: false,
        stands_in: false,
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
            row.group = match row.given_back {
                true => group(input, &in_service(machine), burst),
                false => group(input, machine, burst),
            };
        }
        row.fails = row.group == CandidateGroup::Leaving
            && group(input, &in_service(machine), burst) == CandidateGroup::Failed;
        row.written_off &= matches!(row.group, CandidateGroup::Leaving | CandidateGroup::Ghost);
        let now = !row.stays && machine.delete_request().is_some_and(|request| request.now);
        row.waiting = setbacks::holds_back(input, memory, machine, now);
        row.waits_briefly = row.waiting && setbacks::is_passing(input, memory, machine);
        row.waits_no_more = row.group == CandidateGroup::Failed
            && row.waiting
            && drain_was_long(input, memory, machine);
        // In service by our records, but its node is not given back yet: it exists, and is not available.
        let taken_back = back_already && row.doing == MachineActivity::TakeBack;
        row.waiting |= taken_back;
        if row.group == CandidateGroup::Ready {
            row.doubted |= setbacks::may_be_gone(input, memory, machine);
            row.group = if !(taken_back || row.doubted) {
                CandidateGroup::Ready
            } else if machine.ever_available {
                CandidateGroup::Unready
            } else {
                // It never served, so the promise does not include it.
                CandidateGroup::Young
            };
        } else if matches!(row.group, CandidateGroup::Unready | CandidateGroup::Young) {
            // An old listing makes a serving machine look as if it had just started.
            row.doubted = machine.condition == Condition::Ready;
        }
    }
    tombs.put_back(input, memory);
    (rows, zones)
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
    machine.needs_drain() && is_dead(input, machine) && memory.blocked.iter().any(long)
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

/// What makes a machine outdated in this plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RevisionReference {
    /// The revision that counts as "on target".
    pub revision: Revision,
    /// Advisory evidence counts for machines created before this.
    pub advisory_before: Option<Time>,
    /// Disks older than this are due for a refresh, or over age.
    pub imaged_before: Option<Time>,
}

impl RevisionReference {
    pub fn outdates(&self, machine: &Machine) -> bool {
        if self.imaged_before.is_some_and(|before| machine.imaged < before) {
            return true;
        }
        let off = machine.revision.as_ref().is_some_and(|has| differs(has, &self.revision));
        match machine.evidence {
            Evidence::LatestModelApplied => {
                off && self.advisory_before.is_some_and(|before| machine.created < before)
            }
            Evidence::Model | Evidence::Stamp => off,
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
        row.updated = tried || in_place::was_updated(memory, machine);
        row.stands_in =
            in_place && !row.updated && in_place::was_made_beside(input, memory, machine);
        let request = machine.delete_request();
        let person = machine.hold().is_some();
        // Scale-in protection does not forbid an update, because the machine stays.
        let cloud = match machine.protection {
            Protection::None => false,
            Protection::ScaleIn => !in_place,
            Protection::All | Protection::Unknown => true,
        };
        row.named = request.is_some() && !row.stays;
        row.now = row.named && request.is_some_and(|request| request.now);
        row.outdated = reference.outdates(machine) || request.is_some();
        row.kept = if person {
            Protector::Person
        } else if cloud {
            Protector::Cloud
        } else if !row.outdated || row.named {
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
