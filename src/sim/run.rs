//! One rehearsal from start to end: events wake the pool, turns run, people act, the power is cut, each turn is judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chaos::calm_down;
use super::cluster::{Cluster, NodeNews};
use super::disk::SimDisk;
use super::load::LoadReading;
use super::mutation::{Plant, Slip};
use super::operators::Operator;
use super::outcome::{Breach, End, RunOutcome, SizeSample};
use super::ports::{SimFacts, SimPorts};
use super::recorder::{RecordedDecision, Watching};
use super::residual_faults::Leftovers;
use super::scenario::{Scenario, UserAction, changed};
use super::set_up::{furnished, set_up};
use super::stage::{SharedStage, SimStage};
use super::story::Story;
use super::termination::Idle;
use super::timeline::Recorder;
use super::transport::{Backstage, NotReady, Recording, Road, now_or_never};
use super::truth::{self, Turn};
use super::wakes::wakes;
use crate::ambient::{Clock, Dice};
use crate::drain::Drainer;
use crate::judge::history::History;
use crate::memory::{InboxStore, Lease, MemoryStore, StoreError, TurnStore};
use crate::model::ids::ClusterName;
use crate::model::policy::Policy;
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};
use crate::reconcile::{PoolTurn, TurnError, TurnReport};
use crate::wake::{Wake, WakeReason};
use crate::world;

/// Lease duration of one process life; each turn renews it.
// 2 min: longer than the slowest turn, short enough that a crash stops the pool only briefly.
const LEASE: Span = Span::minutes(2);

/// A process restarts this long after a power cut.
const STARTS_AFTER: Span = Span::seconds(5);

/// Within this time the planner must replace the unhealthy machines that a storm left; after it they count as
/// permanent.
// 2 h: each is given up after 20 to 40 minutes, and a tripped breaker waits for an hour before it resumes.
const RECOVERS_WITHIN: Span = Span::hours(2);

pub fn run(scenario: &Scenario) -> RunOutcome {
    run_planted(scenario, Plant::default())
}

/// Rehearses it with a fault planted into the loop.
pub fn run_planted(scenario: &Scenario, plant: Plant) -> RunOutcome {
    rehearse(scenario, plant, MemoryStore::new())
}

/// Rehearses it with the caller's store, whose futures must all be ready when polled.
pub fn run_kept(scenario: &Scenario, store: impl TurnStore + InboxStore + Sync) -> RunOutcome {
    rehearse(scenario, Plant::default(), store)
}

fn rehearse(
    scenario: &Scenario,
    plant: Plant,
    store: impl TurnStore + InboxStore + Sync,
) -> RunOutcome {
    let mut stage = set_up(scenario);
    stage.slip = plant.slip;
    let recorder = recorder(scenario, &stage);
    let stage = SharedStage::new(stage);
    let mut run = Run::new(scenario, plant, stage.clone(), stage, store, recorder);
    let end = run.until_it_ends();
    run.outcome(end)
}

/// Rehearses it over the caller's road, in this world, whose set matches the scenario.
pub fn run_over<R: Road>(
    scenario: &Scenario,
    world: world::World,
    set: world::SetId,
    road: impl FnOnce(Backstage) -> R,
) -> RunOutcome {
    let stage = furnished(scenario, world, set);
    let recorder = recorder(scenario, &stage);
    let stage = SharedStage::new(stage);
    let road = road(Backstage::new(stage.clone()));
    let road = Recording::new(stage.clone(), road);
    let mut run = Run::new(scenario, Plant::default(), stage, road, MemoryStore::new(), recorder);
    let end = run.until_it_ends();
    run.outcome(end)
}

fn recorder(scenario: &Scenario, stage: &SimStage) -> Recorder {
    Recorder::new(stage, scenario.policy.rollout.min_ready.millis())
}

pub(super) struct Run<'a, R, S> {
    pub(super) scenario: &'a Scenario,
    pub(super) ports: SimPorts<R, S>,
    pub(super) policy: Policy,
    pub(super) process: PoolTurn,
    life: u32,
    pub(super) lease: Option<Lease>,
    pub(super) wake: Wake,
    /// No turn before this time: the cloud would throttle the listing, or another life holds the lease.
    paced: Time,
    first_lease: Option<Lease>,
    pub(super) wishes: Vec<(Time, UserAction)>,
    pub(super) next_ask: u32,
    /// The stop of all pools, as persons gave it.
    pub(super) stop: Option<GlobalStop>,
    pub(super) asked: u64,
    pub(super) turned_at: Time,
    pub(super) turns: u32,
    failed: u32,
    last_failure: Option<Box<str>>,
    crashes: u32,
    past: History,
    pub(super) operator: Operator,
    pub(super) story: Story,
    pub(super) recorder: Recorder,
    pub(super) sizes: Vec<SizeSample>,
    /// Of the last turn.
    pub(super) load_read: Option<LoadReading>,
    breaches: Vec<Breach>,
    storms: bool,
    pub(super) settled: u32,
    pub(super) idle: Idle,
    /// An external change since the last turn: a person's action, a power cut, or a leftover of the storm.
    pub(super) stirred: bool,
    leftovers: Leftovers,
}

enum TurnAttempt {
    Turn(Box<TurnReport>, Option<Box<RecordedDecision>>),
    Nothing,
}

impl<'a, R: Road, S: TurnStore + InboxStore + Sync> Run<'a, R, S> {
    fn new(
        scenario: &'a Scenario,
        plant: Plant,
        stage: SharedStage,
        road: R,
        store: S,
        recorder: Recorder,
    ) -> Self {
        let start = scenario.start;
        let ports = SimPorts {
            road,
            facts: SimFacts::new(stage.clone(), scenario),
            disk: SimDisk::new(store, scenario.cuts.clone(), plant.slip),
            decide: Watching::new(stage.clone(), plant),
            cluster: drainer(&stage),
            stage,
        };
        let mut wishes: Vec<(Time, UserAction)> =
            scenario.wishes.iter().map(|(at, wish)| (start.plus(*at), wish.clone())).collect();
        wishes.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self {
            scenario,
            ports,
            policy: policy(scenario),
            process: PoolTurn::new(scenario.policy.name.clone(), scenario.seed),
            life: 1,
            lease: None,
            wake: first_wake(scenario, 1),
            paced: start,
            first_lease: None,
            wishes,
            next_ask: 0,
            stop: None,
            asked: 0,
            turned_at: start,
            turns: 0,
            failed: 0,
            last_failure: None,
            crashes: 0,
            past: History::default(),
            operator: Operator::default(),
            story: Story::default(),
            recorder,
            sizes: Vec::new(),
            load_read: None,
            breaches: Vec::new(),
            storms: !scenario.faults.is_calm(),
            settled: 0,
            idle: Idle::default(),
            stirred: false,
            leftovers: Leftovers::default(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.ports.stage.now()
    }

    fn until_it_ends(&mut self) -> End {
        let last = self.scenario.last();
        loop {
            self.wait(last);
            let now = self.now();
            if now >= last || self.turns >= self.scenario.most_turns() {
                return self.out_of_time(now);
            }
            self.hear();
            self.people_act();
            self.hear_load();
            let done = match self.paced <= now && self.wake.next(now).is_some() {
                true => self.turn(),
                false => self.look(now).map(|()| TurnAttempt::Nothing),
            };
            match done {
                Err(NotReady) => return End::NotSettled { why: NotReady.to_string().into() },
                Ok(TurnAttempt::Nothing) => {}
                Ok(TurnAttempt::Turn(report, decision)) => {
                    if let Some(end) = self.after_turn(&report, decision.as_deref()) {
                        return end;
                    }
                    if let Some(decision) = decision {
                        self.ports.decide.give_back(decision.journal);
                    }
                }
            }
        }
    }

    /// Advances to the next moment at which anything may happen.
    fn wait(&mut self, last: Time) {
        let mut stage = self.ports.stage.lock();
        let event = stage.next_event().map_or(last, Time::from_millis);
        let wish = self.wishes.last().map_or(last, |(at, _)| *at);
        let calm = if self.storms { self.scenario.calm_from() } else { last };
        let due = self.wake.next_at().map_or(last, |at| at.max(self.paced));
        let next = self.next_load(stage.now(), event.min(wish).min(calm).min(due).min(last));
        stage.advance_to(next.millis());
        if self.storms && stage.now() >= self.scenario.calm_from() {
            self.storms = false;
            let set = stage.set;
            calm_down(&mut stage.world, set, self.scenario);
            stage.hear();
            self.leftovers.begin(&stage);
        }
    }

    /// Events wake the pool; one turn handles all that arrive within the window.
    fn hear(&mut self) {
        let mut stage = self.ports.stage.lock();
        let news = std::mem::take(&mut stage.events);
        let drains = stage.cluster.as_mut().map(Cluster::take_news).unwrap_or_default();
        self.recorder.hear(&stage, &news);
        drop(stage);
        for event in &news {
            // Leftovers exist only after the storm.
            self.stirred |= !self.storms && self.leftovers.is_one(event);
            self.story.deed(self.scenario.start, event);
            if wakes(&event.what, self.scenario.hears) {
                self.wake(Time::from_millis(event.at));
            }
        }
        for (at, vm, news) in drains {
            self.stirred |= !self.storms && self.leftovers.is_drain(vm, news);
            self.recorder.drains(vm, at, news);
            if news == NodeNews::Started && self.scenario.hears {
                self.wake(Time::from_millis(at));
            }
        }
    }

    pub(super) fn wake(&mut self, at: Time) {
        self.asked += 1;
        self.wake.ask(&self.policy.name, WakeReason::News(self.policy.rollout.coalesce), at);
    }

    /// Wakes the pool because a person waits for the answer.
    pub(super) fn wake_for_person(&mut self, at: Time) {
        self.asked += 1;
        self.wake.ask(&self.policy.name, WakeReason::Operator, at);
    }

    fn turn(&mut self) -> Result<TurnAttempt, NotReady> {
        let Some(mut lease) = self.lead()? else { return Ok(TurnAttempt::Nothing) };
        self.read_load();
        let first = self.first_lease.get_or_insert_with(|| lease.clone());
        if self.ports.stage.lock().slip == Slip::OldLease && self.turns % 2 == 1 {
            lease = Lease { not_after: lease.not_after, ..first.clone() };
        }
        self.turns += 1;
        let (commits, told) = (self.ports.disk.commits(), self.ports.disk.told());
        let starts = self.process.remembered().is_none();
        let done = self.ports.road.go(self.process.turn(&self.ports, &self.policy, &lease))?;
        let mut decision = self.ports.decide.take();
        // A restarted process writes the holds it finds to the history once: it does not know what it wrote before.
        let excused = if starts { self.ports.disk.told() - told } else { 0 };
        let stored = self.ports.disk.commits() - commits - excused;
        let now = self.now();
        self.paced = Time::from_millis(self.ports.stage.lock().listing_from);
        let frozen = matches!(&done, Ok(report) if report.frozen.is_some());
        if let Some(decision) = decision.as_mut().filter(|_| !frozen) {
            self.judge(decision, &lease, stored as u32);
        }
        self.ports.stage.lock().calls.clear();
        match done {
            Ok(report) => {
                self.wake.done(&self.policy.name, report.again);
                self.turned(report.at);
                Ok(TurnAttempt::Turn(Box::new(report), decision.map(Box::new)))
            }
            Err(error) => {
                self.failed(&error, now);
                Ok(TurnAttempt::Nothing)
            }
        }
    }

    /// Renews the lease of this life.
    fn lead(&mut self) -> Result<Option<Lease>, NotReady> {
        let now = self.now();
        let holder = format!("life-{}", self.life);
        match now_or_never(self.ports.disk.acquire(&holder, now, LEASE))? {
            Ok(lease) => {
                self.lease = Some(lease.clone());
                Ok(Some(lease))
            }
            Err(StoreError::Held { until, .. }) => {
                self.paced = until;
                self.wake.done(&self.policy.name, until);
                Ok(None)
            }
            Err(_) => {
                self.restart(now);
                Ok(None)
            }
        }
    }

    fn failed(&mut self, error: &TurnError, now: Time) {
        self.failed += 1;
        let why = std::error::Error::source(error);
        self.last_failure = Some(why.map_or_else(|| error.to_string(), ToString::to_string).into());
        if self.ports.disk.is_dead() || error.is_deposed() {
            self.restart(now);
            return;
        }
        self.wake.failed(&self.policy.name, now, error.retry_at());
    }

    /// All memory is lost; the disk and the world stay as they were.
    pub(super) fn restart(&mut self, now: Time) {
        self.start_again(now);
        let story = "the power goes; the process starts again";
        self.story.tell(now, self.scenario.start, story);
    }

    pub(super) fn start_again(&mut self, now: Time) {
        self.crashes += 1;
        self.stirred = true;
        self.life += 1;
        self.lease = None;
        self.ports.disk.start();
        self.ports.cluster = drainer(&self.ports.stage);
        self.process = PoolTurn::new(self.policy.name.clone(), self.scenario.seed);
        self.wake = first_wake(self.scenario, self.life);
        self.paced = now.plus(STARTS_AFTER);
    }

    fn judge(&mut self, decision: &mut RecordedDecision, lease: &Lease, stored: u32) {
        let calm = !std::mem::take(&mut self.stirred) && self.is_calm() && !self.recovers();
        let mut stage = self.ports.stage.lock();
        // A machine that the listing still hides will appear later as a change that none of our calls made.
        let calm = calm && !stage.hides_any() && !self.size_moves(decision);
        let turn = Turn { lease, stored, calm, stop: self.stop.as_ref() };
        let disk = &self.ports.disk;
        let notes = truth::judge(decision, &self.policy, &mut stage, disk, turn, &mut self.past);
        drop(stage);
        for note in notes {
            self.breach(decision.now, note.law, false, note.say);
        }
    }

    fn breach(&mut self, at: Time, law: u8, before: bool, say: Box<str>) {
        let line = format!("INVARIANT {law} violated: {say}");
        self.story.tell(at, self.scenario.start, &line);
        self.breaches.push(Breach { at, turn: self.turns, law, before, say });
    }

    fn is_calm(&self) -> bool {
        !self.storms && self.wishes.is_empty() && self.deeds_done()
    }

    fn recovers(&self) -> bool {
        self.leftovers.are_ill() && self.now() < self.scenario.calm_from().plus(RECOVERS_WITHIN)
    }

    fn deeds_done(&self) -> bool {
        let last = self.scenario.deeds.iter().map(|(at, _)| *at).max().unwrap_or(Span::ZERO);
        self.now() > self.scenario.start.plus(last)
    }

    /// Writes the story, lets the operator read the turn, and checks for the end.
    fn after_turn(
        &mut self,
        report: &TurnReport,
        decision: Option<&RecordedDecision>,
    ) -> Option<End> {
        for note in &report.notes {
            self.breach(report.at, note.law, true, note.say.clone());
        }
        if report.planned.is_none() {
            let say = report.frozen.as_ref().map(|hold| hold.message.clone()).unwrap_or_default();
            self.breach(report.at, 0, true, say);
        }
        let acts = decision.map_or(&[][..], |decision| &decision.planned.actions);
        self.story.turn(self.turns, self.scenario.start, report, acts);
        self.note_size(report);
        if !self.breaches.is_empty() {
            return Some(End::Broken);
        }
        if !self.is_calm() || self.scenario.size_test.is_some() {
            self.settled = 0;
            self.goes_on();
            return None;
        }
        let planned = report.planned.as_ref()?;
        if self.scenario.operator {
            let holds = &planned.report.holds;
            for act in self.operator.read(holds, &planned.state.waiting, report.at) {
                self.do_for_hold(act);
            }
        }
        self.is_over(report, decision?)
    }

    fn outcome(mut self, end: End) -> RunOutcome {
        self.hear();
        let end = if self.breaches.is_empty() { end } else { End::Broken };
        let (unended, unheard) = self.left_open();
        let stage = self.ports.stage.lock();
        let timeline = self.recorder.finish(&stage);
        let heights = timeline.heights();
        let calls: BTreeMap<world::FrontDoorCall, u64> =
            stage.world.calls().iter().map(|(call, count)| (*call, count.made)).collect();
        let (pod_moves, most_evictions) =
            stage.cluster.as_ref().map(Cluster::moves).unwrap_or_default();
        let made = u64::from(self.turns);
        let reads = calls.get(&world::FrontDoorCall::GetSet).copied().unwrap_or(0)
            + calls.get(&world::FrontDoorCall::ListInstances).copied().unwrap_or(0);
        let coalesced = self.asked.saturating_sub(made);
        RunOutcome {
            end,
            makespan: timeline.done().map(|done| Span::from_millis(done - timeline.from)),
            lowest_available: heights.lowest_available,
            highest_live: heights.highest_live,
            calls,
            asks_coalesced: coalesced,
            calls_saved: coalesced * reads / made.max(1),
            pod_moves,
            most_evictions,
            node_events: stage.cluster.as_ref().map(Cluster::events).unwrap_or_default(),
            turns: self.turns,
            failed: self.failed,
            last_failure: self.last_failure,
            crashes: self.crashes,
            commits: self.ports.disk.commits(),
            writes: self.ports.disk.writes(),
            unended,
            unheard,
            switched_off: stage.switched_off().len(),
            breaches: self.breaches,
            story: self.story.lines,
            timeline,
            sizes: self.sizes,
            finished: stage.now(),
        }
    }
}

/// What a process remembers of drains ends with it.
fn drainer(stage: &SharedStage) -> Drainer<SharedStage, SharedStage> {
    Drainer::new(Arc::new(stage.clone()), stage.clone())
}

/// Where machines have nodes, the pool names their cluster.
fn policy(scenario: &Scenario) -> Policy {
    match scenario.cluster {
        Some(_) => changed(&scenario.policy, |draft| {
            draft.cluster.get_or_insert_with(|| ClusterName::new("rehearsal"));
        }),
        None => scenario.policy.clone(),
    }
}

/// A starting process requests its first turn itself.
fn first_wake(scenario: &Scenario, life: u32) -> Wake {
    let dice = Dice::from_seed(scenario.seed).branch("wake").branch_number(life.into());
    let mut wake = Wake::new(dice);
    wake.ask(&scenario.policy.name, WakeReason::News(Span::ZERO), scenario.start);
    wake
}
