//! The size of a pool with profiles over days. The model of its set does not change: nothing but the size moves.

use super::load::{LoadCurve, LoadReading};
use super::operators::intervention;
use super::outcome::SizeSample;
use super::recorder::RecordedDecision;
use super::run::Run;
use super::scenario::{OLD_IMAGE, Scenario};
use super::transport::Road;
use crate::memory::{InboxStore, TurnStore};
use crate::model::machine::Lifecycle;
use crate::model::policy::{Draft, OwnedModel, Policy};
use crate::model::size::{Decimal, MetricFact, SizeMemory, SizePolicy, SizeSource};
use crate::model::time::{Span, Time};
use crate::reconcile::TurnReport;
use crate::size::{SizeQuestion, weigh};
use crate::world::{Guid, SetSpec, WorldFaults};

/// How often a metric server is asked, as in production.
const ASKED_EVERY: Span = Span::seconds(15);

/// What moves the size, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeTest {
    pub lasts: Span,
    /// `None`: no profile reads a metric.
    pub load: Option<LoadCurve>,
}

impl SizeTest {
    pub(super) fn load_at(&self, at: Time, serving: u32) -> Option<LoadReading> {
        let load = self.load.as_ref()?.at(at);
        Some(LoadReading { load, serving })
    }
}

impl Scenario {
    /// A pool whose machines serve and are as many as its profiles say at the start. The faults last as long as the test.
    pub fn of_size(
        policy: &Policy,
        test: SizeTest,
        start: Time,
        seed: u64,
        faults: WorldFaults,
    ) -> Self {
        let mut draft = Draft::clone(policy);
        // Each of these would begin a rollout.
        (draft.model, draft.rollout.max_age) = (OwnedModel::default(), None);
        draft.rollout.schedule.clear();
        let load = test.load_at(start, 1).map(|reading| reading.load);
        let machines = size_at(&policy.size, start, load);
        let mut set = SetSpec::new(policy.name.as_str(), machines, OLD_IMAGE);
        if let Some(vm_size) = &policy.model.fields.vm_size {
            set.model.vm_size = vm_size.to_string();
        }
        let built = Policy::build(draft).unwrap_or_else(|_| policy.clone());
        let mut scenario = Self::plain(built, seed, set);
        scenario.settings.switches.pages_cost = false;
        scenario.start = start;
        scenario.calm_after = if faults.is_calm() { Span::ZERO } else { test.lasts };
        scenario.faults = faults;
        scenario.size_test = Some(test);
        scenario
    }
}

/// What the profiles say at the start; without an opinion the fewest that they may say.
fn size_at(policy: &SizePolicy, now: Time, load: Option<f64>) -> u32 {
    let value = load.and_then(Decimal::new);
    let fact = |name: &str| MetricFact { profile: name.into(), value, at: now, since: None };
    let metrics: Vec<MetricFact> = policy.profiles.iter().map(|of| fact(&of.name)).collect();
    // One machine that serves carries the whole load, so the average is the total.
    let (serving, desired) = (1, policy.min.max(1));
    let ask = SizeQuestion { now, policy, metrics: &metrics, pools: &[], serving, desired };
    let decision = weigh(&ask, &mut SizeMemory::default());
    decision.spoken.map_or(policy.min, |(_, machines)| machines)
}

impl<R: Road, S: TurnStore + InboxStore + Sync> Run<'_, R, S> {
    /// What a metric server would read at this moment.
    fn load_at(&self, at: Time) -> Option<LoadReading> {
        let serving = self.recorder.available(at.millis());
        self.scenario.size_test.as_ref()?.load_at(at, serving)
    }

    /// The turn that begins now reads the load of now.
    pub(super) fn read_load(&mut self) {
        self.load_read = self.load_at(self.now());
        self.ports.facts.load(self.load_read);
    }

    /// The metric server has news for the last turn.
    fn has_news(&self, at: Time) -> bool {
        let (Some(now), Some(read)) = (self.load_at(at), self.load_read) else { return false };
        let mut profiles = self.policy.size.profiles.iter();
        profiles.any(|profile| match &profile.source {
            SizeSource::Metric(of) => now.is_news(read, of.mode),
            _ => false,
        })
    }

    pub(super) fn hear_load(&mut self) {
        let now = self.now();
        if is_asked_at(now) && self.has_news(now) {
            self.wake(now);
        }
    }

    /// When a metric first has news, `until` at the latest.
    pub(super) fn next_load(&self, now: Time, until: Time) -> Time {
        if self.load_read.is_none() {
            return until;
        }
        let each = ASKED_EVERY.millis();
        let first = (now.millis().div_euclid(each) + 1) * each;
        let mut asked = (first..until.millis()).step_by(each as usize).map(Time::from_millis);
        asked.find(|at| self.has_news(*at)).unwrap_or(until)
    }

    /// While the size moves, the pool is not at rest: what was reached before may be reached again.
    pub(super) fn size_moves(&self, decision: &RecordedDecision) -> bool {
        let desired = decision.planned.report.numbers.desired;
        let last = self.sizes.last().map(|last| last.desired);
        self.scenario.size_test.is_some() && last != Some(desired)
    }

    /// Records the size that the turn settled, what waits for a person, and which machines are out of service.
    pub(super) fn note_size(&mut self, report: &TurnReport) {
        let Some(planned) = &report.planned else { return };
        let waits = planned.report.holds.iter().find(|hold| intervention(hold).is_some());
        let (desired, waits) =
            (planned.report.numbers.desired, waits.map(|hold| hold.reason.code()));
        let sample = SizeSample { at: report.at, desired, waits };
        let last = self.sizes.last().copied();
        if last.is_none_or(|last| (last.desired, last.waits) != (desired, waits)) {
            self.sizes.push(sample);
        }
        if self.policy.gray.is_none() {
            return;
        }
        for machine in self.process.remembered().into_iter().flat_map(|pool| &pool.machines) {
            let vm = machine.vm.as_ref().and_then(|vm| vm.as_str().parse::<Guid>().ok());
            let (Some(vm), at) = (vm, report.at.millis()) else { continue };
            match machine.lifecycle {
                Lifecycle::CutOff | Lifecycle::Standby => self.recorder.leaves_service(vm, at),
                Lifecycle::InService => self.recorder.returns(vm, at),
                _ => {}
            }
        }
    }
}

/// Servers are asked at whole multiples of the interval.
const fn is_asked_at(now: Time) -> bool {
    now.millis().rem_euclid(ASKED_EVERY.millis()) == 0
}
