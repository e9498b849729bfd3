//! Every reason not to act, asked once. What is chosen and the holds that explain it read the same answers.

use crate::model::action::{ActionKind, READ_IS_FRESH, RemovalReason};
use crate::model::journal::Entry;
use crate::model::plan::{Input, MachineReason};
use crate::model::policy::UnconfirmedFall;
use crate::model::rollout::PoolState;
use crate::model::time::Time;

use super::backoff::{self, Supply};
use super::breaker;
use super::candidate::{CandidateGroup, MachineCandidate};
use super::counts::PoolCounts;
use super::desired;
use super::journal::Journal;
use super::machines::PoolMachines;
use super::owner;
use super::setbacks::{self, RequestWait};
use super::stop;
use super::surplus_brake;
use super::version;

#[derive(Debug)]
pub(super) struct Assessment<'i> {
    /// The read is complete, fresh, and began after the last answer to one of our writes.
    pub usable: bool,
    /// A person stopped all pools, and not even repair goes on.
    pub stopped: bool,
    /// Another store's tag on the set.
    pub foreign_owner: Option<&'i str>,
    /// Too many machines are invisible: we cannot see them, so do not treat them as unhealthy.
    pub blind: bool,
    /// Evictions lower a size that others own.
    pub evictions_take_size: bool,
    /// A request of this kind was refused as a whole, and its next try is not due.
    pub deletes_wait: Option<RequestWait>,
    pub updates_wait: Option<RequestWait>,
    pub standby_waits: Option<RequestWait>,
    /// A start was refused, and its next try is not due: the others are not tried in turn.
    pub starts_wait: bool,
    /// A delete during which nothing else is written to the set.
    pub lone_delete: Option<&'i Entry>,
    /// The repair breaker is open.
    pub breaker_open: bool,
    /// How many failed machines may leave now.
    pub repairs_left: i64,
    /// The breaker has been open for long: this failed machine makes room for a new one.
    pub for_room: Option<usize>,
    pub supply: Supply,
    pub second_writer: bool,
    /// No etag protects a raise from another writer.
    pub raise_unsafe: bool,
    /// Our writes, or the listing, explain the capacity.
    pub capacity_trusted: bool,
    /// Others have just changed the capacity: until then the planner does not believe surplus.
    pub others_settle: Option<Time>,
    /// The cloud creates more than requested and deletes the rest itself.
    pub trims_itself: bool,
    /// More machines than surge explains, and no person confirmed the excess: do not remove outdated ones either.
    pub surplus_in_doubt: bool,
    /// No surplus may leave now, whatever the brake.
    pub surplus_stays: bool,
    /// How many may leave as surplus.
    pub surplus: i64,
}

impl<'i> Assessment<'i> {
    pub fn of(
        input: &Input<'i>,
        memory: &PoolState,
        journal: &Journal,
        machines: &PoolMachines,
    ) -> Self {
        let breaker_open = memory.breaker_opened.is_some();
        let (rows, count) = (&machines.rows[..], &machines.count);
        let second_writer = desired::has_second_writer(input, memory);
        let raise_unsafe = version::is_unsafe(input, memory);
        let wait = |verb| setbacks::request_wait(input, memory, verb);
        let capacity_trusted = desired::is_trusted(input, memory, journal.pending);
        let others_settle = surplus_brake::others_settle(input, memory);
        let trims_itself = surplus_brake::trims_itself(input, journal, count);
        let surplus_stays = journal.raise_not_landed
            || count.pending > 0
            || others_settle.is_some()
            || trims_itself
            || !capacity_trusted
            || !is_surplus_agreed(input, memory)
            || memory.desired.waiting.is_some()
            || second_writer
            || input.policy.windows.at(input.now).denied;
        Self {
            usable: is_usable(input, journal),
            stopped: stop::is_whole(input),
            foreign_owner: owner::foreign(input, memory),
            blind: is_blind(input, count),
            evictions_take_size: desired::evictions_take_size(input),
            deletes_wait: wait(ActionKind::Delete),
            updates_wait: wait(ActionKind::Reimage),
            standby_waits: wait(ActionKind::Standby),
            starts_wait: rows.iter().any(|row| setbacks::did_not_start(input, memory, row)),
            lone_delete: setbacks::goes_alone(input, memory),
            breaker_open,
            repairs_left: if breaker_open { 0 } else { repairs_left(input, rows, count) },
            for_room: failed_for_room(input, memory, machines, breaker_open),
            supply: backoff::supply(input, memory, second_writer, raise_unsafe),
            second_writer,
            raise_unsafe,
            capacity_trusted,
            others_settle,
            trims_itself,
            surplus_in_doubt: is_surplus_in_doubt(input, memory, count),
            surplus_stays,
            surplus: if surplus_stays { 0 } else { surplus_brake::left(input, memory).max(0) },
        }
    }

    /// Nothing may be begun on the set.
    pub const fn begins_nothing(&self) -> bool {
        self.stopped || self.foreign_owner.is_some()
    }

    /// What blocks every removal of this turn.
    pub fn removals(&self) -> Option<MachineReason> {
        match () {
            () if self.stopped => Some(MachineReason::WaitsStopped),
            () if self.foreign_owner.is_some() => Some(MachineReason::WaitsOwner),
            () if !self.usable || self.blind => Some(MachineReason::WaitsPicture),
            () if self.evictions_take_size => Some(MachineReason::WaitsPicture),
            () if self.deletes_wait.is_some() => Some(MachineReason::WaitsRefused),
            () => None,
        }
    }

    pub const fn wait_of(&self, verb: ActionKind) -> Option<RequestWait> {
        match verb {
            ActionKind::Reimage => self.updates_wait,
            _ => self.deletes_wait,
        }
    }
}

/// At first sight no person has agreed to any surplus.
fn is_surplus_agreed(input: &Input, memory: &PoolState) -> bool {
    let allowed = input.policy.unconfirmed == UnconfirmedFall::Allow;
    allowed || (memory.surplus_confirmed && !input.is_first_sight())
}

fn is_usable(input: &Input, journal: &Journal) -> bool {
    let set = input.set;
    let fresh = input.now.since(set.read_at) <= READ_IS_FRESH && set.read_at <= input.now;
    set.complete && fresh && journal.last_answer <= Some(set.read_at)
}

fn is_blind(input: &Input, count: &PoolCounts) -> bool {
    let percent = i64::from(input.policy.repair.breaker_percent);
    count.unknown > (count.desired * percent / 100).max(1)
}

fn is_surplus_in_doubt(input: &Input, memory: &PoolState, count: &PoolCounts) -> bool {
    let allowed = input.policy.unconfirmed == UnconfirmedFall::Allow;
    let agreed = memory.surplus_confirmed || allowed;
    !agreed && count.exist + count.failed > count.ceiling
}

fn repairs_left(input: &Input, rows: &[MachineCandidate], count: &PoolCounts) -> i64 {
    let failed = |row: &MachineCandidate| {
        row.group == CandidateGroup::Leaving && row.because == Some(RemovalReason::Failed)
    };
    // One that is on its way back was perhaps taken as failed, and does not serve yet.
    let leaving =
        rows.iter().filter(|row| (failed(row) && !row.written_off) || row.is_on_its_way_back());
    let missing = (count.desired - count.exist + count.returning).max(0);
    let unreplaced = (leaving.count() as i64).min(missing);
    i64::from(input.policy.repair.max_at_once) - unreplaced
}

/// The breaker has been open for long, and failed machines fill the pool: remove one, so that a new machine can show
/// whether the cause is over.
fn failed_for_room(
    input: &Input,
    memory: &PoolState,
    machines: &PoolMachines,
    breaker_open: bool,
) -> Option<usize> {
    let (rows, c) = (&machines.rows[..], &machines.count);
    // A machine that is gone but still listed makes room once the listing drops it: wait for its replacement first.
    let gone =
        rows.iter().filter(|row| row.group == CandidateGroup::Ghost && !row.unlisted).count();
    let full = c.live - gone as i64 >= c.ceiling;
    let moving = c.leaving + c.updating + c.young;
    let still = moving + c.pending == 0;
    let tells = breaker_open && full && still;
    tells.then(|| breaker::let_one_go(input, memory, rows)).flatten()
}
