//! Which revision counts as "on target", and which machines it makes outdated.

use crate::model::ids::Revision;
use crate::model::machine::{Evidence, Machine};
use crate::model::plan::Input;
use crate::model::revision::differs;
use crate::model::rollout::{PoolState, RolloutStage};
use crate::model::time::Time;

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

/// The revision that counts as "on target" now.
pub(super) fn reference(input: &Input, memory: &PoolState) -> RevisionReference {
    let wanted = memory.wanted.clone().unwrap_or_else(|| input.set.revision.clone());
    let revision = match &memory.rollout {
        Some(rollout) => {
            let back = matches!(rollout.stage, RolloutStage::Failing { .. });
            let from = rollout.from.clone().filter(|_| back);
            from.unwrap_or_else(|| rollout.to.clone())
        }
        None => wanted,
    };
    refer_to(memory, revision)
}

pub(super) fn refer_to(memory: &PoolState, revision: Revision) -> RevisionReference {
    RevisionReference {
        revision,
        advisory_before: memory.advisory_before,
        imaged_before: memory.refresh_before,
    }
}

pub(super) fn count_outdated(input: &Input, memory: &PoolState, wanted: &Revision) -> u32 {
    let reference = refer_to(memory, wanted.clone());
    input.machines.iter().filter(|m| reference.outdates(m)).count() as u32
}
