//! The decider of a rehearsal: the real planner and the real judge, with a record of their input and of the real world
//! at that moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cluster::Cluster;
use super::mutation::Plant;
use super::stage::{SharedStage, SimStage};
use crate::judge::{self, Case, Note, Real};
use crate::model::ids::Key;
use crate::model::inventory::SetReading;
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::{Command, Decision, Facts, Input, PlanBug};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;
use crate::reconcile::Decide;
use crate::world::{Guid, MINUTE, Millis};

/// The input and result of one decision.
#[derive(Debug, Clone)]
pub(super) struct RecordedDecision {
    pub now: Time,
    pub set: SetReading,
    pub machines: Vec<Machine>,
    pub journal: Vec<Entry>,
    pub learnt: usize,
    pub before: Option<PoolState>,
    pub facts: Facts,
    pub stop: Option<GlobalStop>,
    pub commands: Vec<Command>,
    pub planned: Decision,
    /// The world before the calls of this turn.
    pub world: Vec<Real>,
}

impl RecordedDecision {
    /// In the form that the judge takes.
    pub fn case<'a>(&'a self, policy: &'a Policy) -> Case<'a> {
        Case {
            now: self.now,
            policy,
            set: &self.set,
            machines: &self.machines,
            journal: &self.journal,
            learnt: self.learnt,
            planned: &self.planned,
            before: self.before.as_ref(),
            facts: &self.facts,
            stop: self.stop.as_ref(),
            commands: &self.commands,
        }
    }
}

#[derive(Debug)]
pub(super) struct Watching {
    stage: SharedStage,
    plant: Plant,
    last: Mutex<Option<RecordedDecision>>,
    /// The journal at the last decision: most of it does not change.
    journal: Mutex<Vec<Entry>>,
}

impl Watching {
    pub fn new(stage: SharedStage, plant: Plant) -> Self {
        Self { stage, plant, last: Mutex::new(None), journal: Mutex::new(Vec::new()) }
    }

    fn last(&self) -> MutexGuard<'_, Option<RecordedDecision>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Option<RecordedDecision> {
        self.last().take()
    }

    /// Returns the journal of a decision, so that the next one copies only new entries.
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
    fn plan(&self, input: &Input<'_>) -> Result<Decision, PlanBug> {
        self.last().take();
        (self.plant.plan)(input)
    }

    fn judge(&self, case: &Case<'_>) -> Vec<Note> {
        *self.last() = Some(RecordedDecision {
            now: case.now,
            set: case.set.clone(),
            machines: case.machines.to_vec(),
            journal: self.journal(case.journal),
            learnt: case.learnt,
            before: case.before.cloned(),
            facts: case.facts.clone(),
            stop: case.stop.cloned(),
            commands: case.commands.to_vec(),
            planned: case.planned.clone(),
            world: self.stage.lock().real(case.machines),
        });
        if self.plant.unjudged {
            return Vec::new();
        }
        judge::before(case)
    }
}

/// A complete listing shows every machine created at least this long before it.
const LISTED_WITHIN: Millis = MINUTE;

struct ListingRow<'a> {
    vm: Guid,
    text: &'a Arc<str>,
    serves: Option<Time>,
    leaving: bool,
}

/// All rows of the last listing, for lookup in listing order.
struct ListingRows<'a> {
    rows: Vec<ListingRow<'a>>,
    /// The row after the last hit: most likely the next.
    next: usize,
    by_vm: Option<Vec<(Guid, usize)>>,
}

impl<'a> ListingRows<'a> {
    fn find(&mut self, vm: Guid) -> Option<&mut ListingRow<'a>> {
        let at = if self.rows.get(self.next).is_some_and(|row| row.vm == vm) {
            self.next
        } else {
            let by_vm = self.by_vm.get_or_insert_with(|| {
                let mut all: Vec<(Guid, usize)> =
                    self.rows.iter().map(|row| row.vm).zip(0..).collect();
                all.sort_unstable();
                all
            });
            let found = by_vm.binary_search_by_key(&vm, |(vm, _)| *vm).ok()?;
            by_vm.get(found)?.1
        };
        self.next = at + 1;
        self.rows.get_mut(at)
    }
}

/// Since when our records have each machine in its state.
struct Records<'a> {
    machines: &'a [Machine],
    by_vm: Option<Vec<(&'a str, Time)>>,
}

impl Records<'_> {
    fn since(&mut self, vm: &str) -> Option<Time> {
        let machines = self.machines;
        let by_vm = self.by_vm.get_or_insert_with(|| {
            let known = machines.iter().filter_map(|m| Some((m.vm.as_ref()?.as_str(), m.since)));
            let mut known: Vec<(&str, Time)> = known.collect();
            known.sort_unstable();
            known
        });
        let at = by_vm.binary_search_by_key(&vm, |(known, _)| *known).ok()?;
        Some(by_vm.get(at)?.1)
    }
}

impl SimStage {
    /// No reader can know of it: others created it, or the listing should show it by now and does not.
    fn is_hidden(&self, vm: Guid, created: Millis) -> bool {
        self.foreign.contains_key(&vm) || created + LISTED_WITHIN < self.world.now()
    }

    /// Some machine exists that the listing should show by now.
    pub fn hides_any(&self) -> bool {
        let mut shown: Vec<Guid> = self.showed.iter().map(|row| row.vm).collect();
        shown.sort_unstable();
        let is_shown = |vm| shown.binary_search(&vm).is_ok();
        self.world.briefs(self.set).any(|brief| {
            !brief.deleting && self.is_hidden(brief.vm, brief.created) && !is_shown(brief.vm)
        })
    }

    /// Every existing machine, and every one that the last listing showed as serving: if it died since, that is not our
    /// doing.
    fn real(&self, machines: &[Machine]) -> Vec<Real> {
        let mut records = Records { machines, by_vm: None };
        let Some(sizes) = self.world.true_sizes(self.set) else { return Vec::new() };
        // Over-provisioned machines leave by themselves, and no reader knows in advance which: if the cloud removed a
        // listed one, an unlisted one stays.
        let mut extras = sizes.extras;
        let (mut swapped, mut not_listed) = (Vec::new(), Vec::new());
        let shown = self.showed.iter().map(|row| {
            // If no source gives the time, use our own observation.
            let since = row.since.or_else(|| records.since(&row.text));
            let since = since.unwrap_or(Time::from_millis(row.created));
            let serves = (row.condition == Condition::Ready).then_some(since);
            let leaving = row.condition == Condition::Deleting;
            ListingRow { vm: row.vm, text: &row.text, serves, leaving }
        });
        let cordoned = self.cluster.as_ref().map(Cluster::cordoned_by_us);
        let (ours, off) = (cordoned.unwrap_or_default(), self.switched_off());
        let mut shown = ListingRows { rows: shown.collect(), next: 0, by_vm: None };
        let mut all: Vec<Real> = Vec::with_capacity(shown.rows.len());
        for brief in self.world.briefs(self.set) {
            let listed = shown.find(brief.vm);
            // A delete that has failed since is not our doing.
            let leaving = listed.as_ref().is_some_and(|row| row.leaving);
            let extra = listed.is_none() && !brief.deleting && extras > 0;
            extras -= u32::from(extra);
            let hidden = || listed.is_none() && self.is_hidden(brief.vm, brief.created);
            // A leaving machine that the read does not show is gone for every reader.
            let unheard = extra || hidden() || (listed.is_none() && brief.deleting);
            let unseen = |row: &&mut ListingRow| {
                brief.deleting && !row.leaving && !self.touched.contains_key(&brief.vm)
            };
            if listed.as_ref().is_some_and(unseen) {
                swapped.push(all.len());
            }
            if listed.is_none() && !brief.deleting {
                not_listed.push(all.len());
            }
            let serves = match listed {
                Some(row) => row.serves.take(),
                None => brief.ready.then(|| Time::from_millis(brief.guest_since)),
            };
            let (cordoned, switched_off) = (ours.contains(&brief.vm), off.contains(&brief.vm));
            all.push(Real {
                serves,
                touched: cordoned || switched_off || self.touched.contains_key(&brief.vm),
                cordoned,
                switched_off,
                deleting: leaving || brief.deleting,
                failed: brief.failed,
                unheard,
                key: Key::shared(brief.vm_text),
            });
        }
        not_listed.retain(|at| all.get(*at).is_some_and(|real| !real.unheard));
        // What comes in the place of one may be there already, or be on its way.
        let on_their_way = swapped.len().saturating_sub(not_listed.len());
        not_listed.truncate(swapped.len());
        for at in not_listed.into_iter().chain(swapped.into_iter().take(on_their_way)) {
            if let Some(real) = all.get_mut(at) {
                real.unheard = true;
            }
        }
        all.extend(shown.rows.into_iter().filter_map(|row| self.gone(&row)));
        all
    }

    /// A machine that the listing showed as serving and that is no more.
    fn gone(&self, row: &ListingRow<'_>) -> Option<Real> {
        Some(Real {
            key: Key::shared(row.text),
            serves: Some(row.serves?),
            touched: self.touched.contains_key(&row.vm),
            cordoned: false,
            switched_off: false,
            deleting: true,
            failed: false,
            unheard: true,
        })
    }
}
