//! A rehearsal that begins with the machines of a snapshot: their ids, zones, ages and models.

use super::scenario::{NEW_IMAGE, OLD_IMAGE, Scenario};
use crate::model::inventory::SetReading;
use crate::model::machine::{Condition, Machine};
use crate::model::policy::Policy;
use crate::world::{InitialState, InstanceId, InstanceSpec, ModelSpec, SetSpec, WorldFaults};

impl Scenario {
    /// The pool as a snapshot shows it. Machines outdated there are outdated here; if none is, the image changes at the
    /// start.
    pub fn from_snapshot(
        policy: &Policy,
        set: &SetReading,
        machines: &[Machine],
        seed: u64,
        faults: WorldFaults,
    ) -> Self {
        let mut scenario = Self::from_policy(policy, Some(set.capacity), seed, faults);
        let outdated = |machine: &&Machine| {
            machine.revision.as_ref().is_some_and(|revision| *revision != set.revision)
        };
        let changed = machines.iter().any(|machine| outdated(&machine));
        let image = if changed { NEW_IMAGE } else { OLD_IMAGE };
        let mut spec = SetSpec::new(policy.name.as_str(), set.capacity, image);
        spec.model.vm_size.clone_from(&scenario.set.model.vm_size);
        spec.zones = set.zones.iter().filter_map(|zone| zone.as_str().parse().ok()).collect();
        let old = ModelSpec { image: OLD_IMAGE.to_owned(), ..spec.model.clone() };
        spec.instances = machines
            .iter()
            .map(|machine| InstanceSpec {
                id: Some(InstanceId::from(machine.id.as_str())),
                zone: machine.zone.as_ref().and_then(|zone| zone.as_str().parse().ok()),
                model: outdated(&machine).then(|| old.clone()),
                // Their ages, counted back from a fixed start.
                created: Some(scenario.start.millis() - age(machine, set)),
                found: found(machine.condition),
                ..InstanceSpec::default()
            })
            .collect();
        if changed {
            scenario.deeds.clear();
        }
        scenario.set = spec;
        scenario
    }
}

fn age(machine: &Machine, set: &SetReading) -> i64 {
    set.read_at.since(machine.created).millis().max(0)
}

const fn found(condition: Condition) -> InitialState {
    match condition {
        Condition::Provisioning => InitialState::Booting,
        Condition::Ready | Condition::Unknown => InitialState::Ready,
        Condition::Unready => InitialState::Sick,
        Condition::Failed => InitialState::Failed,
        Condition::Deleting => InitialState::Deleting,
        Condition::Stopped => InitialState::Stopped,
    }
}
