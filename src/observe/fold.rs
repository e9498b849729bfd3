//! Folds one read into the machine records. Pure.
//!
//! A row without a record opens one. A record is closed only when the machine is certainly gone: absent from every
//! complete listing for a while, or from one begun after a plan learnt that it went. Any other unseen machine is
//! unknown.

use std::borrow::Cow;

use super::join::{Match, Matches, SEED, hash, join};
use super::nodes::{JOINS_WITHIN, LISTED_WITHIN};
use crate::model::ids::{InstanceId, Key, Revision};
use crate::model::inventory::{Instance, Inventory};
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine, identity};
use crate::model::revision::{comparable, is_partial, same_head};
use crate::model::time::{Span, Time};

/// Before a record is closed, this many complete listings over this time must lack a machine that was not seen leaving.
/// Listings lag and lose rows.
// 4 within 2 min: a lagging listing shows the set as it was minutes ago, but not repeatedly.
const LOST_IS_GONE: u8 = 4;
const LOST_FOR: Span = Span::minutes(2);

/// Complete listings that must lack a machine that was seen leaving.
// 2: the capacity read just before the first may still count it, and a plan has to know that.
const SEEN_GONE: u8 = 2;

/// A serving machine of this age has served before.
// 2 h: creations that hang were seen to end after 40 to 90 minutes.
const OLDER_THAN_BOOTS: Span = Span::hours(2);

/// Two nodes of one machine id did not join within this time.
// 1 min: no machine goes and comes again within it.
const ONE_NODE: Span = Span::minutes(1);

/// One read, and what is needed to interpret it.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub inventory: &'a Inventory,
    /// Machines that are gone, and since when we know it: rows that show them are ghosts.
    pub tombs: &'a [(Key, Time)],
    /// Machines that we took out of service and whose records may be closed: their nodes carry our marks.
    pub vanished: &'a [(Key, Time)],
    pub min_ready: Span,
    pub now: Time,
    /// When the previous listing began; `None`: this process has folded none yet.
    pub before: Option<Time>,
    /// False: this listing was already folded, so its absences do not count again.
    pub fresh: bool,
}

/// Why a record was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// We deleted it, know that it went, and a later complete listing lacks it.
    Deleted,
    /// Gone without our action.
    Vanished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordChange {
    Appeared(Condition),
    Became { from: Condition, to: Condition },
    FirstAvailable,
    Closed(CloseReason),
}

/// What the read changed, for operators who ask later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineChange {
    pub id: InstanceId,
    pub key: Key,
    /// Since when we wanted of the machine what we want now.
    pub lifecycle_since: Time,
    /// When its node joined.
    pub joined: Option<Time>,
    pub what: RecordChange,
}

#[derive(Debug, Clone, Default)]
pub struct FoldResult {
    /// In listing order.
    pub machines: Vec<Machine>,
    /// Which machines differ from their stored records; as long as `machines`.
    pub touched: Vec<bool>,
    /// Keys of records that were closed.
    pub closed: Vec<Key>,
    pub changes: Vec<MachineChange>,
    /// Machines that are not seen: nodes with their ids joined so short a time ago that they may be of the next machines.
    pub nodes_anew: Vec<InstanceId>,
}

/// Folds a read into the records, which are in listing order.
pub fn fold(mut records: Vec<Machine>, look: &Observation<'_>) -> FoldResult {
    let rows = &look.inventory.instances;
    let Matches { rows: met, records: row_of } = join(&records, rows);
    let mut work = Work::new(look, records.is_empty());
    let mut touched = vec![false; records.len()];
    let mut gone = Vec::new();
    let each = records.iter_mut().zip(&row_of).zip(&mut touched).enumerate();
    for (i, ((machine, row), touched)) in each {
        match row.and_then(|row| rows.get(row)) {
            Some(row) => *touched = work.seen(machine, row),
            None => match work.unseen(machine) {
                Fate::Stays { changed } => *touched = changed,
                Fate::Gone => gone.push(i),
            },
        }
    }
    let new: Vec<Machine> = met
        .iter()
        .zip(rows)
        .filter(|(met, _)| **met == Match::New)
        .map(|(_, row)| work.open(row))
        .collect();
    let mut folded = FoldResult {
        closed: gone.iter().filter_map(|&i| records.get(i)).map(Machine::key).collect(),
        changes: work.changes,
        nodes_anew: work.nodes_anew,
        machines: records,
        touched,
    };
    if !new.is_empty() || !gone.is_empty() {
        folded.replace(&gone, new);
    }
    folded
}

impl FoldResult {
    /// Removes the closed records and inserts the new ones in order.
    fn replace(&mut self, gone: &[usize], mut new: Vec<Machine>) {
        new.sort_by(Machine::listing_order);
        keep_others(&mut self.machines, gone);
        keep_others(&mut self.touched, gone);
        self.machines.extend(new);
        self.touched.resize(self.machines.len(), true);
        // New machines are usually the youngest, and so already in order.
        if self.machines.is_sorted_by(|a, b| a.listing_order(b).is_le()) {
            return;
        }
        let (machines, touched) = (&mut self.machines, &mut self.touched);
        let mut all: Vec<(Machine, bool)> = machines.drain(..).zip(touched.drain(..)).collect();
        all.sort_by(|(a, _), (b, _)| a.listing_order(b));
        (self.machines, self.touched) = all.into_iter().unzip();
    }
}

/// All but those at these indices, which are sorted.
fn keep_others<T>(all: &mut Vec<T>, gone: &[usize]) {
    let mut gone = gone.iter().copied().peekable();
    let mut place = 0..;
    all.retain(|_| place.next().is_none_or(|place| gone.next_if_eq(&place).is_none()));
}

/// The outcome for a record that no row shows.
enum Fate {
    Stays { changed: bool },
    Gone,
}

struct Work<'a> {
    look: &'a Observation<'a>,
    tombs: Tombs<'a>,
    /// The pool has no records yet: we have not watched it, so creation times are the best since-times available.
    first_sight: bool,
    changes: Vec<MachineChange>,
    nodes_anew: Vec<InstanceId>,
}

impl<'a> Work<'a> {
    fn new(look: &'a Observation<'a>, first_sight: bool) -> Self {
        let (changes, nodes_anew) = Default::default();
        Self { look, tombs: Tombs::of(look.tombs), first_sight, changes, nodes_anew }
    }

    fn tell(&mut self, machine: &Machine, what: RecordChange) {
        let (id, key) = (machine.id.clone(), machine.key());
        let Machine { lifecycle_since, joined, .. } = *machine;
        self.changes.push(MachineChange { id, key, lifecycle_since, joined, what });
    }

    fn turn_to(&mut self, machine: &mut Machine, to: Condition, since: Time) {
        let from = std::mem::replace(&mut machine.condition, to);
        if to == Condition::Unknown {
            machine.before_gap = Some((from, machine.since));
        }
        machine.since = since;
        self.tell(machine, RecordChange::Became { from, to });
    }

    /// Returns true if the record changed.
    fn seen(&mut self, machine: &mut Machine, row: &Instance) -> bool {
        let mut touched = std::mem::take(&mut machine.missed) > 0;
        // A machine in service that was never seen leaving cannot have a tomb.
        if machine.goes()
            && let Some(died) = self.tombs.find(machine)
        {
            if machine.condition != Condition::Deleting {
                self.turn_to(machine, Condition::Deleting, died);
                touched = true;
            }
            return touched;
        }
        let seen = self.without_next(machine.joined, row);
        touched |= self.look_at(machine, &seen);
        touched |= copy_facts(machine, &seen, self.look.inventory.saw_nodes());
        if !machine.ever_available && machine.is_available(self.look.min_ready, self.look.now) {
            machine.ever_available = true;
            self.tell(machine, RecordChange::FirstAvailable);
            touched = true;
        }
        touched
    }

    /// The row without a node that joined after the machine's own, which joined at `known`: where the cloud used its id
    /// again and this listing is behind, that node is the next machine's. Nothing tells then how this one is.
    fn without_next<'r>(&mut self, known: Option<Time>, row: &'r Instance) -> Cow<'r, Instance> {
        let both = known.zip(row.joined);
        let read_at = self.look.inventory.set.read_at;
        let is_next = |known: Time, joined: Time| {
            joined.since(known) > ONE_NODE && read_at.since(joined) < LISTED_WITHIN
        };
        if !both.is_some_and(|(known, joined)| is_next(known, joined)) {
            return Cow::Borrowed(row);
        }
        let condition = match row.condition {
            Condition::Deleting => Condition::Deleting,
            _ => Condition::Unknown,
        };
        if condition == Condition::Unknown {
            self.nodes_anew.push(row.id.clone());
        }
        let (since, node, joined, unreachable_since) = (None, None, None, None);
        Cow::Owned(Instance { condition, since, node, joined, unreachable_since, ..row.clone() })
    }

    fn look_at(&mut self, machine: &mut Machine, row: &Instance) -> bool {
        let claims_later = |known: Time| row.since.filter(|told| *told > known);
        if machine.condition == row.condition {
            let Some(told) = claims_later(machine.claimed()) else { return false };
            // It changed away and back between two reads.
            machine.since = self.by_our_clock(machine, told);
            machine.claimed_since = Some(told);
            return true;
        }
        // A gap in our view does not change the machine: it kept its earlier condition throughout.
        let before = machine.before_gap.take().filter(|(was, _)| *was == row.condition);
        let before = before.map(|(_, since)| since);
        if let Some(since) = before
            && claims_later(machine.claimed_since.unwrap_or(since)).is_none()
        {
            self.turn_to(machine, row.condition, since);
            return true;
        }
        if row.condition == Condition::Unknown {
            self.turn_to(machine, Condition::Unknown, self.look.now);
            return true;
        }
        let since = row.since.map_or(self.look.now, |told| self.by_our_clock(machine, told));
        self.turn_to(machine, row.condition, since);
        machine.claimed_since = row.since;
        true
    }

    /// The clock of a source may be wrong by hours: a change lies between the last read that showed the earlier
    /// condition and this one. The record keeps the source's claim too, so that repeating it is not news.
    fn by_our_clock(&self, machine: &Machine, told: Time) -> Time {
        let seen = self.look.before.filter(|_| machine.condition != Condition::Unknown);
        let earliest = seen.map_or(machine.since, |seen| seen.max(machine.since));
        told.max(earliest).min(self.look.now)
    }

    fn unseen(&mut self, machine: &mut Machine) -> Fate {
        let set = &self.look.inventory.set;
        let mut touched = false;
        if set.complete && self.look.fresh {
            machine.missed = machine.missed.saturating_add(1);
            touched = true;
            let known = machine.missed >= SEEN_GONE && machine.goes();
            let buried = known && self.tombs.find(machine).is_some_and(|at| set.read_at > at);
            let long = self.look.now.since(machine.since) >= LOST_FOR;
            let lost = machine.condition == Condition::Unknown && machine.missed >= LOST_IS_GONE;
            let ours = machine.lifecycle == Lifecycle::Deleting;
            if buried || (lost && long && !ours) {
                let how = if ours { CloseReason::Deleted } else { CloseReason::Vanished };
                self.tell(machine, RecordChange::Closed(how));
                return Fate::Gone;
            }
        }
        // An unlisted machine that was being deleted is most likely gone; it must not count as existing again.
        if !matches!(machine.condition, Condition::Unknown | Condition::Deleting) {
            self.turn_to(machine, Condition::Unknown, self.look.now);
            touched = true;
        }
        Fate::Stays { changed: touched }
    }

    fn open(&mut self, row: &Instance) -> Machine {
        // Its record may have been closed, and with it when its own node joined: no earlier than it was created.
        let late = |joined: &Time| joined.since(row.created) >= JOINS_WITHIN;
        let known = row.joined.filter(late).filter(|_| !self.first_sight).map(|_| row.created);
        let row = &*self.without_next(known, row);
        let mut machine = Machine::new(row.id.clone(), row.vm.clone(), row.created, row.condition);
        let now = self.look.now;
        machine.first_seen = now;
        machine.joined = known;
        // How long a newly seen machine has had its condition is unknown; the later time is safer.
        let watched = !self.first_sight && row.condition != Condition::Provisioning;
        let told = row.since.unwrap_or(if watched { now } else { row.created });
        let earliest = self.look.before.filter(|_| !self.first_sight).unwrap_or(told);
        machine.since = told.max(earliest).min(now);
        machine.claimed_since = row.since;
        machine.lifecycle_since = now;
        machine.ever_available = false;
        machine.evidence = row.evidence;
        machine.imaged = row.imaged.unwrap_or(row.created);
        copy_facts(&mut machine, row, true);
        if let Some(died) = self.tombs.find(&machine) {
            // Its record was closed after its delete, but a row still shows it: it exists and is leaving.
            machine.condition = Condition::Deleting;
            machine.since = died;
            machine.lifecycle = Lifecycle::Deleting;
            machine.lifecycle_since = died;
            machine.ever_available = true;
        } else if self.is_out(&machine) {
            machine.lifecycle = Lifecycle::Draining;
        }
        machine.ever_available |= machine.is_available(self.look.min_ready, now)
            || self.served_before_we_looked(&machine);
        self.tell(&machine, RecordChange::Appeared(machine.condition));
        machine
    }

    /// We took it out of service before its record was closed.
    fn is_out(&self, machine: &Machine) -> bool {
        let key = machine.key();
        self.look.vanished.iter().any(|(known, _)| *known == key)
    }

    /// On first sight of a pool, every machine that is not booting counts as having served, which protects it. The
    /// first read may have been truncated, so a serving machine older than any boot counts as such at any time.
    fn served_before_we_looked(&self, machine: &Machine) -> bool {
        let old = self.look.now.since(machine.created) >= OLDER_THAN_BOOTS;
        let serves = machine.condition == Condition::Ready && old;
        serves || self.first_sight && machine.condition != Condition::Provisioning
    }
}

/// Copies what the row says besides its condition. Returns true if something changed.
fn copy_facts(machine: &mut Machine, row: &Instance, cluster_seen: bool) -> bool {
    // With vmIds, use the row's instance id; without, it is part of the identity.
    let renamed = machine.vm.is_some()
        && row.vm.is_some()
        && !machine.id.as_str().eq_ignore_ascii_case(row.id.as_str());
    if renamed {
        machine.id = row.id.clone();
    }
    let new_disk = row.imaged.is_some_and(|at| at > machine.imaged);
    let mut touched = renamed | new_disk | copy_revision(machine, row, new_disk);
    if new_disk {
        machine.imaged = row.imaged.unwrap_or(machine.imaged);
    }
    if row.zone.is_some() && machine.zone != row.zone {
        machine.zone.clone_from(&row.zone);
        touched = true;
    }
    // If part of the cluster could not be read, a node that is not shown still exists.
    if machine.node != row.node && (row.node.is_some() || cluster_seen) {
        machine.node.clone_from(&row.node);
        touched = true;
    }
    if row.joined.is_some() {
        touched |= put(&mut machine.joined, row.joined);
    }
    if cluster_seen {
        touched |= put(&mut machine.unreachable_since, row.unreachable_since);
    }
    touched |= put(&mut machine.protection, row.protection);
    touched |= put(&mut machine.workloads, row.workloads);
    touched
}

/// Our stamp overrides the cloud's own flag until the disk changes.
fn copy_revision(machine: &mut Machine, row: &Instance, new_disk: bool) -> bool {
    let stands = match (&machine.revision, &row.revision) {
        _ if new_disk => false,
        (None, _) => false,
        (Some(_), None) => true,
        (Some(has), Some(shown)) => {
            row.evidence == Evidence::LatestModelApplied || adds_nothing(has, shown, row.evidence)
        }
    };
    if stands {
        return false;
    }
    let mut touched = put(&mut machine.evidence, row.evidence);
    if machine.revision != row.revision {
        machine.revision.clone_from(&row.revision);
        touched = true;
    }
    touched
}

/// The row matches as far as machines show a revision, and the rest is unknown or comes from the set's current model.
fn adds_nothing(has: &Revision, shown: &Revision, evidence: Evidence) -> bool {
    comparable(has, shown)
        && same_head(has, shown)
        && (evidence == Evidence::Stamp || is_partial(shown))
}

fn put<T: PartialEq>(slot: &mut T, value: T) -> bool {
    let differs = *slot != value;
    *slot = value;
    differs
}

/// The tombs by hash of their key: a rollout of a big pool leaves thousands within a day.
struct Tombs<'a> {
    all: &'a [(Key, Time)],
    by_hash: Option<Vec<(u64, u32)>>,
}

impl<'a> Tombs<'a> {
    fn of(all: &'a [(Key, Time)]) -> Self {
        Self { all, by_hash: None }
    }

    fn find(&mut self, machine: &Machine) -> Option<Time> {
        if self.all.is_empty() {
            return None;
        }
        let born;
        let key = if let Some(vm) = &machine.vm {
            vm.as_str()
        } else {
            born = identity(&machine.id, None, machine.created);
            born.as_str()
        };
        let all = self.all;
        let index = self.by_hash.get_or_insert_with(|| {
            let hashes = all.iter().map(|(key, _)| hash(SEED, key.as_str().as_bytes()));
            let mut index: Vec<(u64, u32)> = hashes.zip(0_u32..).collect();
            index.sort_unstable();
            index
        });
        let wanted = hash(SEED, key.as_bytes());
        let from = index.partition_point(|(h, _)| *h < wanted);
        index
            .iter()
            .skip(from)
            .take_while(|(h, _)| *h == wanted)
            .filter_map(|&(_, i)| all.get(i as usize))
            .filter(|(tomb, _)| tomb.as_str().eq_ignore_ascii_case(key))
            .map(|(_, at)| *at)
            .max()
    }
}

#[cfg(test)]
mod tests;
