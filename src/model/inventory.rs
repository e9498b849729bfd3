//! What one read of the cloud showed, and what it could not show.

use std::collections::BTreeMap;
use std::fmt;

use super::autoscaler::Autoscaler;
use super::ids::{BackendPoolId, Etag, InstanceId, NodeName, Revision, VmId, Zone};
use super::machine::{Condition, Evidence, Protection};
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

/// A missing part of the read, and why. The planner waits for machines inside a gap and never disrupts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub what: Box<str>,
    pub why: Box<str>,
}

/// The gap of a cluster that did not answer.
pub const NODES: &str = "nodes";

/// The gap that says why the cloud's autoscale could not be read.
pub const AUTOSCALE_SETTINGS: &str = "autoscale settings";

/// The gap that says why locks could not be read.
pub const LOCKS: &str = "locks";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Orchestration {
    Uniform,
    Flexible,
}

vocabulary! {
    /// A feature of the cloud that changes the pool besides us.
    pub enum PlatformFeature {
        RollingUpgrade = "rollingUpgrade",
        AutoOsUpgrade = "autoOsUpgrade",
        AutomaticRepairs = "automaticRepairs",
        Autoscale = "autoscale",
        Overprovision = "overprovision",
    }
}

/// What the cloud does with an evicted machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Eviction {
    Deallocate,
    Delete,
}

/// What a lock forbids. The later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockLevel {
    CanNotDelete,
    ReadOnly,
}

impl LockLevel {
    /// The cloud's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            LockLevel::CanNotDelete => "CanNotDelete",
            LockLevel::ReadOnly => "ReadOnly",
        }
    }

    /// The protection that a lock gives to a machine that it covers.
    pub const fn protects(self) -> Protection {
        match self {
            LockLevel::CanNotDelete => Protection::ScaleIn,
            LockLevel::ReadOnly => Protection::All,
        }
    }
}

/// A lock that people put on the set, on a parent of it, or on one of its machines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    pub level: LockLevel,
    pub name: Box<str>,
    /// `<scope>/providers/Microsoft.Authorization/locks/<name>`.
    pub id: Box<str>,
}

impl Lock {
    /// The id of the locked resource.
    pub fn scope(&self) -> &str {
        let parts: Vec<&str> = self.id.rsplitn(5, '/').collect();
        parts.get(4).copied().filter(|scope| !scope.is_empty()).unwrap_or(&self.id)
    }

    /// The one locked machine; `None`: it covers all machines of the set.
    pub fn machine(&self) -> Option<&str> {
        let (above, name) = self.scope().rsplit_once('/')?;
        let (_, kind) = above.rsplit_once('/')?;
        kind.eq_ignore_ascii_case("virtualMachines").then_some(name)
    }

    pub fn covers(&self, id: &InstanceId) -> bool {
        self.machine().is_none_or(|machine| machine.eq_ignore_ascii_case(id.as_str()))
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lock `{}` ({}) on {}", self.name, self.level.name(), self.scope())
    }
}

/// What a Flexible set creates: first this many Regular VMs, then this share of those above them. The rest is Spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityMix {
    pub base_regular: u32,
    pub regular_percent: u32,
}

impl PriorityMix {
    /// How many of `all` VMs are Regular. Above the base, Spot gets the remainder.
    pub fn regular_of(self, all: u32) -> u32 {
        let above = all.saturating_sub(self.base_regular);
        let share = u64::from(above) * u64::from(self.regular_percent.min(100)) / 100;
        (all - above).saturating_add(u32::try_from(share).unwrap_or(above))
    }
}

/// An operation on the scale set that another client began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    pub operation: Box<str>,
    pub since: Time,
}

/// Model fields that a pool may own and write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFields {
    pub image: Option<Box<str>>,
    pub vm_size: Option<Box<str>>,
    pub tags: BTreeMap<Box<str>, Box<str>>,
}

impl ModelFields {
    /// Whether this model has every field of `wanted`.
    pub fn carries(&self, wanted: &ModelFields) -> bool {
        // The cloud may return names in different case.
        let same = |has: &Option<Box<str>>, want: &Option<Box<str>>| match (has, want) {
            (_, None) => true,
            (Some(has), Some(want)) => has.eq_ignore_ascii_case(want),
            (None, Some(_)) => false,
        };
        same(&self.image, &wanted.image)
            && same(&self.vm_size, &wanted.vm_size)
            && wanted.tags.iter().all(|(key, value)| self.tags.get(key) == Some(value))
    }

    /// Whether these fields make different machines than `before`: tags make no difference.
    pub fn moves(&self, before: &ModelFields) -> bool {
        let other = |now: &Option<Box<str>>, was: &Option<Box<str>>| match (now, was) {
            (None, _) => false,
            (Some(now), Some(was)) => !now.eq_ignore_ascii_case(was),
            (Some(_), None) => true,
        };
        other(&self.image, &before.image) || other(&self.vm_size, &before.vm_size)
    }

    /// Whether writing these fields makes different machines at all.
    pub const fn names_machine(&self) -> bool {
        self.image.is_some() || self.vm_size.is_some()
    }

    pub fn without_tags(&self) -> ModelFields {
        ModelFields { tags: BTreeMap::new(), ..self.clone() }
    }

    pub fn only_tags(&self) -> ModelFields {
        ModelFields { tags: self.tags.clone(), ..ModelFields::default() }
    }
}

/// The scale set as one read showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetReading {
    /// Fingerprint of the model now.
    pub revision: Revision,
    pub capacity: u32,
    /// `None`: this API version gives none.
    pub etag: Option<Etag>,
    pub orchestration: Orchestration,
    /// Empty: regional.
    pub zones: Vec<Zone>,
    /// VMs that people attached; the set did not create them. The planner never counts or acts on them.
    pub attached: Vec<InstanceId>,
    /// When the successful read began.
    pub read_at: Time,
    /// False: the listing was cut short.
    pub complete: bool,
    pub busy: Option<Busy>,
    pub platform_features: Vec<PlatformFeature>,
    /// Features whose state could not be read.
    pub platform_features_unknown: Vec<PlatformFeature>,
    /// The cloud's own autoscaler of the set, enabled or not; `None`: there is none, or it is unknown.
    pub autoscaler: Option<Autoscaler>,
    /// Locks on the set or on machines of it.
    pub locks: Vec<Lock>,
    /// How long a machine that is to be deleted may go on at most, after it was told; zero: it is not told.
    pub terminate_notice: Span,
    /// The backend pools that its model puts machines into.
    pub backends: Vec<BackendPoolId>,
    /// `None`: its machines are not spot machines.
    pub spot: Option<Eviction>,
    /// Only some of its machines are spot.
    pub priority_mix: Option<PriorityMix>,
    pub vm_size: Option<Box<str>>,
    pub model: Option<ModelFields>,
    /// The rest of the model, by name: each field of the disks, and a fingerprint of every other part. Empty: the
    /// source does not show it.
    pub model_rest: ModelRest,
}

/// Names and values, for people.
pub type ModelRest = BTreeMap<Box<str>, Box<str>>;

impl SetReading {
    /// A plain set as a complete read showed it; the caller sets the rest.
    pub fn new(revision: Revision, capacity: u32, read_at: Time) -> Self {
        Self {
            revision,
            capacity,
            etag: None,
            orchestration: Orchestration::Uniform,
            zones: Vec::new(),
            attached: Vec::new(),
            read_at,
            complete: true,
            busy: None,
            platform_features: Vec::new(),
            platform_features_unknown: Vec::new(),
            autoscaler: None,
            locks: Vec::new(),
            terminate_notice: Span::ZERO,
            backends: Vec::new(),
            spot: None,
            priority_mix: None,
            vm_size: None,
            model: None,
            model_rest: ModelRest::new(),
        }
    }

    /// What is known of its autoscaler. One that is enabled acts on the set.
    pub fn show_autoscaler(&mut self, found: Option<Autoscaler>) {
        if found.as_ref().is_some_and(|found| found.enabled) {
            self.platform_features.push(PlatformFeature::Autoscale);
            self.platform_features.sort_unstable();
            self.platform_features.dedup();
        }
        self.autoscaler = found;
    }

    /// Whether it has an autoscaler could not be read.
    pub fn hides_autoscaler(&self) -> bool {
        self.platform_features_unknown.contains(&PlatformFeature::Autoscale)
    }

    /// The strictest lock that covers all machines.
    pub fn lock(&self) -> Option<&Lock> {
        self.locks.iter().filter(|lock| lock.machine().is_none()).max()
    }

    /// No part of the set may be written.
    pub fn is_read_only(&self) -> bool {
        self.lock().is_some_and(|lock| lock.level == LockLevel::ReadOnly)
    }

    /// The strictest lock that covers this machine.
    pub fn lock_of(&self, id: &InstanceId) -> Option<&Lock> {
        self.locks.iter().filter(|lock| lock.covers(id)).max()
    }

    /// Protection of a machine: the stronger of its own policy and the locks.
    pub fn protection_of(&self, id: &InstanceId, own: Protection) -> Protection {
        self.lock_of(id).map_or(own, |lock| own.max(lock.level.protects()))
    }
}

/// One row of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub id: InstanceId,
    pub vm: Option<VmId>,
    pub zone: Option<Zone>,
    pub created: Time,
    /// Start of the present disk, if the cloud reports it.
    pub imaged: Option<Time>,
    pub revision: Option<Revision>,
    pub evidence: Evidence,
    pub condition: Condition,
    /// Since when, if the source reports it.
    pub since: Option<Time>,
    pub protection: Protection,
    pub workloads: u32,
    pub node: Option<NodeName>,
    /// When its node joined the cluster, by the cluster's clock.
    pub joined: Option<Time>,
    /// Since when its node has not answered.
    pub unreachable_since: Option<Time>,
    /// Its node carries a mark of ours.
    pub marked: bool,
    /// The cluster-autoscaler is removing its node.
    pub autoscaler_removes: bool,
}

/// One read: the set, its instances, and the gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    pub set: SetReading,
    pub instances: Vec<Instance>,
    pub gaps: Vec<Gap>,
}

impl Inventory {
    /// Why the cluster's nodes were not seen. `None`: they were, or there is no cluster. Other gaps do not concern nodes.
    pub fn nodes_unseen(&self) -> Option<&str> {
        self.gaps.iter().find(|gap| &*gap.what == NODES).map(|gap| &*gap.why)
    }

    pub fn saw_nodes(&self) -> bool {
        self.nodes_unseen().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::PriorityMix;

    /// Microsoft's own tables of Spot Priority Mix.
    #[test]
    fn a_mix_shares_what_is_above_its_base() {
        for (percent, all, regular) in [
            (50, 10, 10),
            (50, 20, 15),
            (50, 30, 20),
            (50, 41, 25),
            (50, 42, 26),
            (25, 20, 12),
            (25, 110, 35),
            (25, 120, 37),
            (0, 4, 4),
            (0, 12, 10),
            (100, 12, 12),
        ] {
            let mix = PriorityMix { base_regular: 10, regular_percent: percent };
            assert_eq!(mix.regular_of(all), regular, "{percent}% of {all}");
        }
    }
}
