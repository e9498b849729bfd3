//! The activity log: who wrote a capacity or an autoscale setting, and what the autoscale service did.

use super::World;
use super::events::Actor;
use super::names::named;
use super::spec::{Millis, SetId};

/// Older entries are dropped.
const ENTRIES: usize = 1_000;

named! {
    pub enum ActivityKind {
        CapacityWrite = "Microsoft.Compute/virtualMachineScaleSets/write",
        SettingWrite = "Microsoft.Insights/AutoscaleSettings/Write",
        SettingDelete = "Microsoft.Insights/AutoscaleSettings/Delete",
        ScaleUp = "Microsoft.Insights/AutoscaleSettings/Scaleup/Action",
        ScaleUpResult = "Microsoft.Insights/AutoscaleSettings/ScaleupResult/Action",
        ScaleDown = "Microsoft.Insights/AutoscaleSettings/Scaledown/Action",
        ScaleDownResult = "Microsoft.Insights/AutoscaleSettings/ScaledownResult/Action",
        MetricFailure = "MetricFailure",
        MetricRecovery = "MetricRecovery",
        /// A scale-in that would cause a scale-out at once was given up.
        Flapping = "Flapping",
        /// Such a scale-in took fewer VMs.
        FlappingOccurred = "FlappingOccurred",
    }

    pub enum ActivityStatus {
        Started = "Started",
        Succeeded = "Succeeded",
        Failed = "Failed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityEntry {
    /// Counts up; no two entries share one.
    pub number: u64,
    pub at: Millis,
    pub set: SetId,
    pub by: Actor,
    pub what: ActivityKind,
    pub status: ActivityStatus,
    /// The capacity before and after.
    pub sizes: Option<(u32, u32)>,
}

impl World {
    /// Oldest first.
    pub fn activity(&self) -> impl DoubleEndedIterator<Item = &ActivityEntry> {
        self.activity.iter()
    }

    pub(super) fn note(
        &mut self,
        set: SetId,
        by: Actor,
        what: ActivityKind,
        status: ActivityStatus,
        sizes: Option<(u32, u32)>,
    ) {
        if self.activity.len() == ENTRIES {
            self.activity.pop_front();
        }
        let number = self.activity.back().map_or(1, |last| last.number + 1);
        let entry = ActivityEntry { number, at: self.now, set, by, what, status, sizes };
        self.activity.push_back(entry);
    }
}
