//! Who decides in a rehearsal: the real planner and the real judge, with a note of what they went by and of what was
//! really there at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plant::Plant;
use super::stage::{Shared, Stage};
use crate::judge::{self, Case, Note, Real};
use crate::model::ids::Key;
use crate::model::inventory::SetSeen;
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::{Facts, Input, PlanBug, Planned};
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::reconcile::Decide;
use crate::world::Provisioning;

/// What one decision rested on.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub now: Time,
    pub set: SetSeen,
    pub machines: Vec<Machine>,
    pub journal: Vec<Entry>,
    pub before: Option<PoolState>,
    pub facts: Facts,
    pub planned: Planned,
    /// The world before the calls of this turn.
    pub world: Vec<Real>,
}

#[derive(Debug)]
pub(super) struct Watching {
    stage: Shared,
    plant: Plant,
    last: Mutex<Option<Decision>>,
}

impl Watching {
    pub fn new(stage: Shared, plant: Plant) -> Self {
        Self { stage, plant, last: Mutex::new(None) }
    }

    fn last(&self) -> MutexGuard<'_, Option<Decision>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Option<Decision> {
        self.last().take()
    }
}

impl Decide for Watching {
    fn plan(&self, input: &Input<'_>) -> Result<Planned, PlanBug> {
        self.last().take();
        (self.plant.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        *self.last() = Some(Decision {
            now: case.now,
            set: case.set.clone(),
            machines: case.machines.to_vec(),
            journal: case.journal.to_vec(),
            before: case.before.cloned(),
            facts: case.facts.clone(),
            planned: case.planned.clone(),
            world: self.stage.lock().real(),
        });
        if self.plant.unjudged { Vec::new() } else { judge::before(case) }
    }
}

impl Stage {
    /// Every machine there is, and every one that the last listing showed as serving: its death since is no doing of ours.
    fn real(&self) -> Vec<Real> {
        let Some(truth) = self.world.truth(self.set) else { return Vec::new() };
        let showed = self.showed.items.iter().zip(&self.showed.conditions);
        let mut serving: BTreeMap<Key, Time> = showed
            .clone()
            .filter(|(_, (condition, _))| *condition == Condition::Ready)
            .map(|(view, (_, since))| {
                let since = since.unwrap_or(Time::from_millis(view.created));
                (Key::new(view.vm.to_string()), since)
            })
            .collect();
        let shown: BTreeSet<Key> = showed.map(|(view, _)| Key::new(view.vm.to_string())).collect();
        let mut all: Vec<Real> = Vec::with_capacity(truth.instances.len());
        for instance in &truth.instances {
            let key = Key::new(instance.vm.to_string());
            let serves = match serving.remove(&key) {
                Some(since) => Some(since),
                None if shown.contains(&key) => None,
                None => instance.is_ready().then(|| Time::from_millis(instance.guest_since)),
            };
            let cordoned = self.cluster.as_ref().is_some_and(|c| c.is_cordoned_by_us(instance.vm));
            all.push(Real {
                serves,
                touched: cordoned || self.touched.contains_key(&key),
                cordoned,
                deleting: instance.provisioning == Provisioning::Deleting,
                unheard: self.foreign.contains_key(&key) && !shown.contains(&key),
                key,
            });
        }
        let gone = serving.into_iter().map(|(key, since)| Real {
            serves: Some(since),
            touched: self.touched.contains_key(&key),
            cordoned: false,
            deleting: true,
            unheard: true,
            key,
        });
        all.extend(gone);
        all
    }
}
