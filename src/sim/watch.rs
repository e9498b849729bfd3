//! Who decides in a rehearsal: the real planner and the real judge, with a note of what they went by and of what was
//! really there at that moment.

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
use crate::world::{Guid, MINUTE, Ms, Provisioning};

/// What one decision rested on.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub now: Time,
    pub set: SetSeen,
    pub machines: Vec<Machine>,
    pub journal: Vec<Entry>,
    pub learnt: usize,
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
    /// The journal as it was at the last decision: most of it does not change.
    journal: Mutex<Vec<Entry>>,
}

impl Watching {
    pub fn new(stage: Shared, plant: Plant) -> Self {
        Self { stage, plant, last: Mutex::new(None), journal: Mutex::new(Vec::new()) }
    }

    fn last(&self) -> MutexGuard<'_, Option<Decision>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Option<Decision> {
        self.last().take()
    }

    /// Hand the journal of a decision back, so that the next one copies only what is new.
    pub fn give_back(&self, journal: Vec<Entry>) {
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = journal;
    }

    fn journal(&self, now: &[Entry]) -> Vec<Entry> {
        let mut mirror =
            std::mem::take(&mut *self.journal.lock().unwrap_or_else(PoisonError::into_inner));
        let first = now.first().map(|entry| &entry.id);
        let forgotten = mirror.iter().take_while(|entry| Some(&entry.id) != first).count();
        mirror.drain(..forgotten);
        let ended = |(was, is): &(&Entry, &Entry)| was.id == is.id && was.is_ended();
        let same = mirror.iter().zip(now).take_while(ended).count();
        mirror.truncate(same);
        mirror.extend(now.iter().skip(same).cloned());
        mirror
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
            journal: self.journal(case.journal),
            learnt: case.learnt,
            before: case.before.cloned(),
            facts: case.facts.clone(),
            planned: case.planned.clone(),
            world: self.stage.lock().real(),
        });
        if self.plant.unjudged {
            return Vec::new();
        }
        judge::before(case)
    }
}

/// A complete listing shows every machine that was made this long before it.
const LISTED_WITHIN: Ms = MINUTE;

impl Stage {
    /// Nobody who reads can know of it: others made it, or it ought to be listed by now and is not.
    fn is_hidden(&self, vm: Guid, created: Ms) -> bool {
        self.foreign.contains_key(&vm) || created + LISTED_WITHIN < self.world.now()
    }

    /// Every machine there is, and every one that the last listing showed as serving: its death since is no doing of ours.
    fn real(&self) -> Vec<Real> {
        let Some(truth) = self.world.truth(self.set) else { return Vec::new() };
        let showed = self.showed.items.iter().zip(&self.showed.conditions);
        let mut shown: Vec<(Guid, Option<Time>, bool)> = showed
            .map(|(view, (condition, since))| {
                let since = since.unwrap_or(Time::from_millis(view.created));
                let serves = (*condition == Condition::Ready).then_some(since);
                (view.vm, serves, *condition == Condition::Deleting)
            })
            .collect();
        shown.sort_unstable();
        let mut all: Vec<Real> = Vec::with_capacity(truth.instances.len());
        // What the cloud over-provisions goes by itself; which ones it will be, nobody knows before.
        let mut extras = truth.extras;
        for instance in &truth.instances {
            let listed = shown.binary_search_by_key(&instance.vm, |(vm, ..)| *vm);
            // A delete that came to nothing since is no doing of ours.
            let leaving = listed.ok().and_then(|at| shown.get(at)).is_some_and(|row| row.2);
            let serves = match listed.ok().and_then(|at| shown.get_mut(at)) {
                Some((_, serves, _)) => serves.take(),
                None => instance.is_ready().then(|| Time::from_millis(instance.guest_since)),
            };
            let extra = listed.is_err() && extras > 0;
            extras -= u32::from(extra);
            let cordoned = self.cluster.as_ref().is_some_and(|c| c.is_cordoned_by_us(instance.vm));
            all.push(Real {
                serves,
                touched: cordoned || self.touched.contains_key(&instance.vm),
                cordoned,
                deleting: leaving || instance.provisioning == Provisioning::Deleting,
                unheard: extra
                    || (listed.is_err() && self.is_hidden(instance.vm, instance.created)),
                key: Key::new(instance.vm.to_string()),
            });
        }
        let gone = shown.into_iter().filter_map(|(vm, serves, _)| {
            let serves = Some(serves?);
            let touched = self.touched.contains_key(&vm);
            let key = Key::new(vm.to_string());
            Some(Real { key, serves, touched, cordoned: false, deleting: true, unheard: true })
        });
        all.extend(gone);
        all
    }
}
