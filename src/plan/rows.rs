//! Each machine falls into exactly one group, first that fits. Unknown counts as there, and as not serving.

use crate::model::action::Because;
use crate::model::ids::{Key, Revision, Zone};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, Protection};
use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::revision::differs;
use crate::model::rollout::{KeyBackOff, PoolState};
use crate::model::time::{Span, Time};

use super::doing::{Requests, follow_entries};
use super::health::{Burst, group};
use super::journal::Journal;
use super::lookup::Lookup;
use super::tombs::Tombs;
use super::{exceptions, in_place, setbacks};

/// A node that has been silent for so long does not come back for its pods.
// 5 min: a reboot takes less, and Kubernetes itself gives pods up after as long.
const SILENT: Span = Span::minutes(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// Its delete succeeded; while listings still show it, it counts as live only.
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

impl Group {
    /// Counts as one of the machines the pool has.
    pub const fn exists(self) -> bool {
        matches!(
            self,
            Group::Young | Group::Ready | Group::Unready | Group::Updating | Group::Unknown
        )
    }
}

/// What is under way with a machine that is on its way out, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    CloudDeletes,
    Draining,
    /// Its drain ended well: the next step may be taken.
    Drained,
    /// Its record says that it is drained, and no entry proves it: it is drained again.
    DrainAgain,
    Deleting,
    /// A drain or update of which nothing is known any more: back in service.
    Lost,
    /// As lost, and what we put on its node may still be there.
    TakeBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    No,
    Person,
    Cloud,
    RevisionUnknown,
    OnDelete,
    UpdateFailed,
    /// Its drains were blocked, and the rollout ended without it.
    Exception,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub index: u32,
    pub group: Group,
    pub doing: Doing,
    /// Why it was asked to leave, where an entry says so.
    pub because: Option<Because>,
    pub kept: Kept,
    pub zone: u16,
    pub outdated: bool,
    pub named: bool,
    pub now: bool,
    /// When it was last asked to go.
    pub asked: Time,
    /// Its drain, delete or update was refused: not tried before its back-off ends.
    pub waiting: bool,
    /// Its last request was refused in passing: it is a candidate again within minutes.
    pub waits_briefly: bool,
    /// Its delete did not hold: it is in service again from now on.
    pub given_back: bool,
    /// A delete may have taken it lately, its drain may go on, or it serves and is not settled yet: it is not counted as
    /// available, and spent like one that is.
    pub doubted: bool,
    /// A person holds it, or the cloud protects it: never removed.
    pub stays: bool,
    /// It is dead, and its drain was tried for long enough.
    pub waits_no_more: bool,
    /// It waits, and is tried again: it is to go still, or one more than are wanted is.
    pub tried_later: bool,
    /// It leaves, and would be failed if it were given back.
    pub fails: bool,
    /// Leaving for longer than the deadline.
    pub overdue: bool,
    pub written_off: bool,
    /// The last complete listing lacks it.
    pub unlisted: bool,
    /// The cloud itself shows it as going.
    pub shown_deleting: bool,
    /// A delete that was not answered, and is not to be seen: it may go on all the same.
    pub perhaps_deleted: bool,
    /// It is being taken back into service: nothing else is asked of it before that ends.
    pub returning: bool,
    /// The rollout has updated it in place, or made it while it updated others.
    pub updated: bool,
    pub stands_in: bool,
    /// What we put on its node is still there, and while the cloud deletes it nothing can be taken off.
    pub marked: bool,
}

impl Row {
    pub fn machine<'a>(&self, input: &Input<'a>) -> &'a Machine {
        &input.machines[self.index as usize]
    }

    /// The cloud is at it, so it goes within its deadline.
    pub const fn is_being_deleted(&self) -> bool {
        matches!(self.doing, Doing::Deleting | Doing::CloudDeletes) && !self.overdue
    }

    /// Its delete does not end, as far as we or the cloud are at it.
    pub const fn is_stuck(&self) -> bool {
        let out = self.is_on_its_way() || matches!(self.doing, Doing::Lost | Doing::TakeBack);
        self.overdue && !out
    }

    pub const fn is_on_target(&self) -> bool {
        !self.outdated && !self.named
    }

    /// Never removed by us.
    pub const fn is_untouchable(&self) -> bool {
        self.stays
    }

    /// Left alone by updates in place as well.
    pub const fn is_frozen(&self) -> bool {
        matches!(self.kept, Kept::Person | Kept::Cloud)
    }

    /// Out of service by a request of ours that is not sent yet.
    pub const fn is_on_its_way(&self) -> bool {
        matches!(self.doing, Doing::Draining | Doing::Drained | Doing::DrainAgain)
    }
}

pub(super) fn is(key: &Key, machine: &Machine) -> bool {
    match &machine.vm {
        Some(vm) => key.as_str() == vm.as_str(),
        None => *key == machine.key(),
    }
}

/// Before anything of our requests is known.
fn fresh(machine: &Machine, index: u32, zone: u16, written_off: bool) -> Row {
    Row {
        index,
        group: Group::Unknown,
        doing: Doing::Nothing,
        because: None,
        kept: Kept::No,
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

/// All machines in listing order, with what does not depend on the target revision.
pub(super) fn classify(
    input: &Input,
    journal: &Journal,
    memory: &mut PoolState,
) -> (Vec<Row>, Vec<Zone>) {
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
    let mut rows: Vec<Row> = order.into_iter().map(&mut begin).collect();
    let tombs = Tombs::take(memory);
    tombs.bury(input, memory);
    let removals = Lookup::of(memory.removals.iter().map(|(key, _)| key));
    let known = Requests { journal, tombs: &tombs, removals };
    for row in &mut rows {
        let machine = row.machine(input);
        follow_entries(input, &known, memory, machine, row);
        // Taken back by an earlier plan, which could not use its look: the entry is shown once more.
        let back_already = matches!(row.doing, Doing::Lost | Doing::TakeBack)
            && machine.lifecycle == Lifecycle::InService;
        if (row.doing == Doing::Nothing || back_already) && row.group != Group::Ghost {
            row.group = match row.given_back {
                true => group(input, &in_service(machine), burst),
                false => group(input, machine, burst),
            };
        }
        row.fails = row.group == Group::Leaving
            && group(input, &in_service(machine), burst) == Group::Failed;
        row.written_off &= matches!(row.group, Group::Leaving | Group::Ghost);
        let now = !row.stays && machine.delete_request().is_some_and(|request| request.now);
        row.waiting = setbacks::holds_back(input, memory, machine, now);
        row.waits_briefly = row.waiting && setbacks::is_passing(input, memory, machine);
        row.waits_no_more =
            row.group == Group::Failed && row.waiting && drain_was_long(input, memory, machine);
        // In service by our records, though its node was not given back yet: there, and not available.
        let taken_back = back_already && row.doing == Doing::TakeBack;
        row.waiting |= taken_back;
        if row.group == Group::Ready {
            row.doubted |= setbacks::may_be_gone(input, memory, machine);
            row.group = if !(taken_back || row.doubted) {
                Group::Ready
            } else if machine.ever_available {
                Group::Unready
            } else {
                // It never served, so the promise does not include it.
                Group::Young
            };
        } else if matches!(row.group, Group::Unready | Group::Young) {
            // An old listing makes one that serves look as if it had only just begun.
            row.doubted = machine.condition == Condition::Ready;
        }
    }
    tombs.put_back(input, memory);
    (rows, zones)
}

fn in_service(machine: &Machine) -> Machine {
    Machine { lifecycle: Lifecycle::InService, ..machine.clone() }
}

/// Nothing on it runs any more, or will be heard of.
pub(super) fn is_dead(input: &Input, machine: &Machine) -> bool {
    let silent = machine.unreachable_since.is_some_and(|at| input.now.since(at) >= SILENT);
    matches!(machine.condition, Condition::Failed | Condition::Stopped) || silent
}

/// Its drain was given up so long ago that a dead machine waits for it no more.
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
pub(super) struct Reference {
    /// The revision that counts as "on target".
    pub revision: Revision,
    /// Advisory evidence counts for machines born before this.
    pub advisory_before: Option<Time>,
    /// Disks older than this were asked to be refreshed, or are over age.
    pub imaged_before: Option<Time>,
}

impl Reference {
    pub fn outdates(&self, machine: &Machine) -> bool {
        if self.imaged_before.is_some_and(|before| machine.imaged < before) {
            return true;
        }
        let off = machine.revision.as_ref().is_some_and(|has| differs(has, &self.revision));
        match machine.evidence {
            Evidence::Advisory => {
                off && self.advisory_before.is_some_and(|before| machine.created < before)
            }
            Evidence::Model | Evidence::Stamp => off,
        }
    }
}

/// The second half of the classification: what depends on the target.
pub(super) fn mark(input: &Input, memory: &PoolState, reference: &Reference, rows: &mut [Row]) {
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
        // Protection from scale-in is no protection from an update of what stays.
        let cloud = match machine.protection {
            Protection::None => false,
            Protection::ScaleIn => !in_place,
            Protection::All | Protection::Unknown => true,
        };
        row.named = request.is_some() && !row.stays;
        row.now = row.named && request.is_some_and(|request| request.now);
        row.outdated = reference.outdates(machine) || request.is_some();
        row.kept = if person {
            Kept::Person
        } else if cloud {
            Kept::Cloud
        } else if !row.outdated || row.named {
            Kept::No
        } else if machine.revision.is_none() {
            Kept::RevisionUnknown
        } else if on_delete {
            Kept::OnDelete
        } else if in_place
            && row.group != Group::Updating
            && (tried || in_place::is_in_vain(memory, machine, &reference.revision))
        {
            Kept::UpdateFailed
        } else if exceptions::stands(memory, &reference.revision, machine) {
            Kept::Exception
        } else {
            Kept::No
        };
    }
}
