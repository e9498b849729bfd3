//! A machine: our record of one instance.

use super::ids::{InstanceId, Key, NodeName, Revision, VmId, Zone};
use super::time::{Skew, Span, Time};
use super::vocabulary::vocabulary;

/// The observed condition of a machine. `Unknown` means that *we* could not see it, never that it is unhealthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    Provisioning,
    Ready,
    Unready,
    Failed,
    /// The cloud is deleting it, whichever client asked.
    Deleting,
    /// Evicted, or switched off by us or by others.
    Stopped,
    Unknown,
}

/// What we are doing with it. Only the planner changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifecycle {
    InService,
    CutOff,
    Standby,
    Draining,
    Drained,
    Updating,
    Deleting,
}

/// What shows which revision a machine is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    Model,
    Stamp,
    /// The cloud's own flag: it decides nothing by itself.
    LatestModelApplied,
}

vocabulary! {
    /// Protection set on the instance in the cloud. Each kind stops every removal by us, `All` also in-place updates.
    pub enum Protection {
        None = "none",
        ScaleIn = "scaleIn",
        All = "all",
        /// The cloud does not show it: it may be any of these.
        Unknown = "unknown",
    }
}

/// A person or client asked to delete this machine. The planner replaces it and does not only remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteRequest {
    pub by: Box<str>,
    pub why: Box<str>,
    /// Accept the loss: the floor does not protect it.
    pub now: bool,
}

/// A person or client asked that we never act on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineHold {
    pub by: Box<str>,
    pub why: Box<str>,
}

/// Rare marks, stored apart so that a plain record stays small.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    pub delete: Option<DeleteRequest>,
    pub hold: Option<MachineHold>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub id: InstanceId,
    pub vm: Option<VmId>,
    pub zone: Option<Zone>,
    pub created: Time,
    /// Start of the present disk: creation or last re-image. Age and order count from it.
    pub imaged: Time,
    /// When we first saw it listed, by our clock.
    pub first_seen: Time,
    /// When our last in-place update of it ended, by our clock.
    pub updated: Option<Time>,
    /// `None`: unknown, and then never outdated.
    pub revision: Option<Revision>,
    pub evidence: Evidence,
    pub condition: Condition,
    /// Since when it has this condition.
    pub since: Time,
    /// Since when its source reports it, by the source's own clock; `None` if it does not say.
    pub claimed_since: Option<Time>,
    /// Its last condition, and since when, before we could no longer see it.
    pub before_gap: Option<(Condition, Time)>,
    pub ever_available: bool,
    pub lifecycle: Lifecycle,
    pub lifecycle_since: Time,
    /// Since when its node has not answered.
    pub unreachable_since: Option<Time>,
    pub protection: Protection,
    /// Consecutive complete listings that lacked it.
    pub missed: u8,
    /// What removing it disrupts: movable pods.
    pub workloads: u32,
    pub node: Option<NodeName>,
    /// When its node joined the cluster, by the cluster's clock; kept when the node is gone.
    pub joined: Option<Time>,
    pub marks: Option<Box<Overrides>>,
}

/// Synchronized clocks may differ by this much.
// 5 s: more than such clocks drift.
pub const CLOCK_SKEW: Span = Span::seconds(5);

impl Machine {
    /// When it was created, by our clock; `ahead`: how far the cloud's clock is ahead of ours.
    pub fn born(&self, ahead: Option<Skew>) -> Time {
        ahead.map_or(self.created, |ahead| self.created.told_by(ahead))
    }

    /// A plain machine as first seen; the caller sets the rest.
    pub fn new(id: InstanceId, vm: Option<VmId>, created: Time, condition: Condition) -> Self {
        Self {
            id,
            vm,
            zone: None,
            created,
            imaged: created,
            first_seen: created,
            updated: None,
            revision: None,
            evidence: Evidence::Model,
            condition,
            since: created,
            claimed_since: None,
            before_gap: None,
            ever_available: condition != Condition::Provisioning,
            lifecycle: Lifecycle::InService,
            lifecycle_since: created,
            unreachable_since: None,
            protection: Protection::None,
            missed: 0,
            workloads: 0,
            node: None,
            joined: None,
            marks: None,
        }
    }

    /// Since when its source reports its present condition.
    pub fn claimed(&self) -> Time {
        self.claimed_since.unwrap_or(self.since)
    }

    /// Identity that is never used again.
    pub fn key(&self) -> Key {
        identity(&self.id, self.vm.as_ref(), self.created)
    }

    /// The order of machines in every list.
    pub fn listing_order(&self, other: &Machine) -> std::cmp::Ordering {
        (self.created, &self.vm, &self.id).cmp(&(other.created, &other.vm, &other.id))
    }

    pub fn delete_request(&self) -> Option<&DeleteRequest> {
        self.marks.as_ref().and_then(|marks| marks.delete.as_ref())
    }

    pub fn hold(&self) -> Option<&MachineHold> {
        self.marks.as_ref().and_then(|marks| marks.hold.as_ref())
    }

    /// A person holds it or the cloud protects it: we never remove it.
    pub fn is_kept_by_people(&self) -> bool {
        self.protection != Protection::None || self.hold().is_some()
    }

    /// Ready for at least `min_ready`, and no operation of ours on it.
    pub fn is_available(&self, min_ready: Span, now: Time) -> bool {
        self.condition == Condition::Ready
            && self.lifecycle == Lifecycle::InService
            && now.since(self.since) >= min_ready
    }

    /// On its way out, by our request or the cloud's.
    pub fn goes(&self) -> bool {
        self.lifecycle == Lifecycle::Deleting || self.condition == Condition::Deleting
    }

    /// We switched it off.
    pub fn is_on_standby(&self) -> bool {
        self.lifecycle == Lifecycle::Standby && self.condition == Condition::Stopped
    }
}

/// How far the last listing can be trusted, by what it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingTrust {
    /// Every machine missing from the listing was already leaving, so no row was lost.
    whole: bool,
    /// Creation time of the newest machine listed: the listing is not older than that.
    newest: Option<Time>,
}

impl ListingTrust {
    pub fn of(machines: &[Machine]) -> Self {
        let there = machines.iter().filter(|machine| machine.missed == 0);
        Self {
            whole: machines.iter().all(|machine| machine.missed == 0 || machine.goes()),
            newest: there.map(|machine| machine.created).max(),
        }
    }

    /// The listing lacks this machine, but has a younger one and every machine that is to stay.
    pub fn proves_gone(self, machine: &Machine) -> bool {
        machine.missed > 0 && self.whole && self.newest.is_some_and(|at| at > machine.created)
    }
}

/// The key of a machine, from these three.
pub fn identity(id: &InstanceId, vm: Option<&VmId>, created: Time) -> Key {
    match vm {
        Some(vm) => vm.key(),
        None => Key::new(format!("{id}@{}", created.millis())),
    }
}
