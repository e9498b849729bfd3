//! One rehearsal, from its start to its end: events wake the pool, turns are made, people act, the power goes, and the
//! judge looks on after every turn.

use std::collections::BTreeMap;

use super::cluster::Cluster;
use super::disk::Disk;
use super::house::{House, Measured};
use super::leftovers::Leftovers;
use super::outcome::{Breach, End, Outcome};
use super::people::Operator;
use super::plant::{Plant, Slip};
use super::road::{Backstage, NotReady, Noted, Road, now_or_never};
use super::scenario::{LONGEST, Scenario, Wish};
use super::stage::{Shared, Stage};
use super::story::Story;
use super::timeline::Recorder;
use super::truth::{self, Turn};
use super::upsets::calm_down;
use super::wakes::wakes;
use super::watch::{Decision, Watching};
use crate::ambient::{Clock, Dice};
use crate::judge::history::Past;
use crate::memory::{Lease, MemoryStore, Store, StoreError};
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};
use crate::reconcile::{PoolTurn, TurnError, TurnReport};
use crate::wake::{Wake, Why};
use crate::world;

/// A life of the process leads for this long and asks for more in each turn.
// 2 min: longer than the slowest turn, short enough that a crash stops the pool only for moments.
const LEASE: Span = Span::minutes(2);

/// A process that lost its power comes up after this.
const STARTS_AFTER: Span = Span::seconds(5);

/// Machines that a storm left ill are replaced within this time, or they are to stay.
// 2 h: each is given up after 20 to 40 minutes, and a tripped breaker waits for an hour before it goes on.
const RECOVERS_WITHIN: Span = Span::hours(2);

/// Rehearse it.
pub fn run(scenario: &Scenario) -> Outcome {
    run_planted(scenario, Plant::default())
}

/// Rehearse it with a fault planted into the loop.
pub fn run_planted(scenario: &Scenario, plant: Plant) -> Outcome {
    rehearse(scenario, plant, MemoryStore::new())
}

/// Rehearse it with a store of one's own, whose every future is ready when it is polled.
pub fn run_kept(scenario: &Scenario, store: impl Store + Sync) -> Outcome {
    rehearse(scenario, Plant::default(), store)
}

fn rehearse(scenario: &Scenario, plant: Plant, store: impl Store + Sync) -> Outcome {
    let mut stage = set_up(scenario);
    stage.slip = plant.slip;
    let recorder = recorder(scenario, &stage);
    let stage = Shared::new(stage);
    let mut run = Run::new(scenario, plant, stage.clone(), stage, store, recorder);
    let end = run.until_it_ends();
    run.outcome(end)
}

/// Rehearse it over a road of one's own, in this world, whose set is as the scenario says.
pub fn run_over<R>(
    scenario: &Scenario,
    world: world::World,
    set: world::SetId,
    road: impl FnOnce(Backstage) -> R,
) -> Outcome
where
    R: Road + Sync,
    R::Cloud: Sync,
{
    let stage = furnished(scenario, world, set);
    let recorder = recorder(scenario, &stage);
    let stage = Shared::new(stage);
    let road = road(Backstage::new(stage.clone()));
    let road = Noted::new(stage.clone(), road);
    let mut run = Run::new(scenario, Plant::default(), stage, road, MemoryStore::new(), recorder);
    let end = run.until_it_ends();
    run.outcome(end)
}

fn recorder(scenario: &Scenario, stage: &Stage) -> Recorder {
    Recorder::new(stage, scenario.policy.rollout.min_ready.millis())
}

pub(super) struct Run<'a, R, S> {
    pub(super) scenario: &'a Scenario,
    pub(super) house: House<R, S>,
    pub(super) policy: Policy,
    pub(super) process: PoolTurn,
    life: u32,
    lease: Option<Lease>,
    wake: Wake,
    /// No turn before this time: the cloud answers no more listings, or another life leads.
    paced: Time,
    first_lease: Option<Lease>,
    pub(super) wishes: Vec<(Time, Wish)>,
    pub(super) next_ask: u32,
    asked: u64,
    turns: u32,
    failed: u32,
    last_failure: Option<Box<str>>,
    crashes: u32,
    past: Past,
    pub(super) operator: Operator,
    pub(super) story: Story,
    recorder: Recorder,
    breaches: Vec<Breach>,
    storms: bool,
    pub(super) settled: u32,
    pub(super) idle_since: Option<Time>,
    /// Turns since then inside the pool's window.
    pub(super) idle_inside: u32,
    /// Something came from outside since the last turn: people, a power cut, or what the storm left.
    pub(super) stirred: bool,
    leftovers: Leftovers,
}

/// What one turn was, to the rehearsal.
enum Made {
    Turn(Box<TurnReport>, Option<Box<Decision>>),
    Nothing,
}

impl<'a, R: Road, S: Store + Sync> Run<'a, R, S> {
    fn new(
        scenario: &'a Scenario,
        plant: Plant,
        stage: Shared,
        road: R,
        store: S,
        recorder: Recorder,
    ) -> Self {
        let start = scenario.start;
        let house = House {
            road,
            facts: Measured::new(stage.clone(), scenario),
            disk: Disk::new(store, scenario.cuts.clone(), plant.slip),
            decide: Watching::new(stage.clone(), plant),
            stage,
        };
        let mut wishes: Vec<(Time, Wish)> =
            scenario.wishes.iter().map(|(at, wish)| (start.plus(*at), wish.clone())).collect();
        wishes.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self {
            scenario,
            house,
            policy: scenario.policy.clone(),
            process: PoolTurn::new(scenario.policy.name.clone(), scenario.seed),
            life: 1,
            lease: None,
            wake: first_wake(scenario, 1),
            paced: start,
            first_lease: None,
            wishes,
            next_ask: 0,
            asked: 0,
            turns: 0,
            failed: 0,
            last_failure: None,
            crashes: 0,
            past: Past::default(),
            operator: Operator::default(),
            story: Story::default(),
            recorder,
            breaches: Vec::new(),
            storms: !scenario.faults.is_calm(),
            settled: 0,
            idle_since: None,
            idle_inside: 0,
            stirred: false,
            leftovers: Leftovers::default(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.house.stage.now()
    }

    fn until_it_ends(&mut self) -> End {
        let last = self.scenario.calm_from().plus(LONGEST);
        loop {
            self.wait(last);
            let now = self.now();
            if now >= last || self.turns >= self.scenario.most_turns() {
                let why = format!("{} turns until {now}", self.turns);
                return End::NotSettled { why: why.into() };
            }
            self.hear();
            self.people_act();
            if self.paced > now || self.wake.next(now).is_none() {
                continue;
            }
            match self.turn() {
                Err(NotReady) => return End::NotSettled { why: NotReady.to_string().into() },
                Ok(Made::Nothing) => {}
                Ok(Made::Turn(report, decision)) => {
                    if let Some(end) = self.after_turn(&report, decision.as_deref()) {
                        return end;
                    }
                    if let Some(decision) = decision {
                        self.house.decide.give_back(decision.journal);
                    }
                }
            }
        }
    }

    /// Until the next moment at which anything may happen.
    fn wait(&mut self, last: Time) {
        let mut stage = self.house.stage.lock();
        let event = stage.next_event().map_or(last, Time::from_millis);
        let wish = self.wishes.last().map_or(last, |(at, _)| *at);
        let calm = if self.storms { self.scenario.calm_from() } else { last };
        let due = self.wake.next_at().map_or(last, |at| at.max(self.paced));
        let next = event.min(wish).min(calm).min(due).min(last);
        stage.advance_to(next.millis());
        if self.storms && stage.now() >= self.scenario.calm_from() {
            self.storms = false;
            let set = stage.set;
            calm_down(&mut stage.world, set, self.scenario);
            stage.hear();
            self.leftovers.begin(&stage);
        }
    }

    /// What happened wakes the pool; all that comes within the window is done by one turn.
    fn hear(&mut self) {
        let mut stage = self.house.stage.lock();
        let news = std::mem::take(&mut stage.events);
        let drains = stage.cluster.as_mut().map(Cluster::take_news).unwrap_or_default();
        self.recorder.hear(&stage, &news);
        drop(stage);
        for event in &news {
            // In the storm nothing is left over yet, and nobody looks.
            self.stirred |= !self.storms && self.leftovers.is_one(event);
            self.story.deed(self.scenario.start, event);
            if wakes(&event.what, self.scenario.hears) {
                self.wake(Time::from_millis(event.at));
            }
        }
        for (at, vm, begins) in drains {
            self.stirred |= !self.storms && self.leftovers.is_drain(vm, begins.is_some());
            self.recorder.drains(vm, at, begins);
            if begins.is_none() {
                self.wake(Time::from_millis(at));
            }
        }
    }

    pub(super) fn wake(&mut self, at: Time) {
        self.asked += 1;
        self.wake.ask(&self.policy.name, Why::News(self.policy.rollout.coalesce), at);
    }

    /// A person waits for the answer.
    pub(super) fn wake_for_person(&mut self, at: Time) {
        self.asked += 1;
        self.wake.ask(&self.policy.name, Why::Operator, at);
    }

    fn turn(&mut self) -> Result<Made, NotReady> {
        let Some(mut lease) = self.lead()? else { return Ok(Made::Nothing) };
        let first = self.first_lease.get_or_insert_with(|| lease.clone());
        if self.house.stage.lock().slip == Slip::OldLease && self.turns % 2 == 1 {
            lease = Lease { not_after: lease.not_after, ..first.clone() };
        }
        self.turns += 1;
        let (commits, told) = (self.house.disk.commits(), self.house.disk.told());
        let starts = self.process.remembered().is_none();
        let done = self.house.road.go(self.process.turn(&self.house, &self.policy, &lease))?;
        let mut decision = self.house.decide.take();
        // A process that starts tells once which holds it found: it does not know what it told before.
        let excused = if starts { self.house.disk.told() - told } else { 0 };
        let stored = self.house.disk.commits() - commits - excused;
        let now = self.now();
        self.paced = Time::from_millis(self.house.stage.lock().listing_from);
        let frozen = matches!(&done, Ok(report) if report.frozen.is_some());
        if let Some(decision) = decision.as_mut().filter(|_| !frozen) {
            self.judge(decision, &lease, stored as u32);
        }
        self.house.stage.lock().calls.clear();
        match done {
            Ok(report) => {
                self.wake.done(&self.policy.name, report.again);
                Ok(Made::Turn(Box::new(report), decision.map(Box::new)))
            }
            Err(error) => {
                self.failed(&error, now);
                Ok(Made::Nothing)
            }
        }
    }

    /// The lease of this life, kept longer.
    fn lead(&mut self) -> Result<Option<Lease>, NotReady> {
        let now = self.now();
        let holder = format!("life-{}", self.life);
        match now_or_never(self.house.disk.acquire(&holder, now, LEASE))? {
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
        if self.house.disk.is_dead() || error.is_deposed() {
            self.restart(now);
            return;
        }
        self.wake.failed(&self.policy.name, now, error.retry_at());
    }

    /// All that was only in memory is gone; what is on the disk, and the world, are as they were.
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
        self.house.disk.start();
        self.process = PoolTurn::new(self.policy.name.clone(), self.scenario.seed);
        self.wake = first_wake(self.scenario, self.life);
        self.paced = now.plus(STARTS_AFTER);
    }

    fn judge(&mut self, decision: &mut Decision, lease: &Lease, stored: u32) {
        let calm = !std::mem::take(&mut self.stirred) && self.is_calm() && !self.recovers();
        let mut stage = self.house.stage.lock();
        // Whoever is shown at last is a change that nobody here made.
        let calm = calm && !stage.hides_any();
        let turn = Turn { lease, stored, calm };
        let disk = &self.house.disk;
        let notes = truth::judge(decision, &self.policy, &mut stage, disk, turn, &mut self.past);
        drop(stage);
        for note in notes {
            self.breach(decision.now, note.law, false, note.say);
        }
    }

    fn breach(&mut self, at: Time, law: u8, before: bool, say: Box<str>) {
        let line = format!("LAW {law} broken: {say}");
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

    /// Tell it, let the operator read it, and see whether it is over.
    fn after_turn(&mut self, report: &TurnReport, decision: Option<&Decision>) -> Option<End> {
        for note in &report.notes {
            self.breach(report.at, note.law, true, note.say.clone());
        }
        if report.planned.is_none() {
            let say = report.frozen.as_ref().map(|hold| hold.say.clone()).unwrap_or_default();
            self.breach(report.at, 0, true, say);
        }
        self.story.turn(self.turns, self.scenario.start, report);
        if !self.breaches.is_empty() {
            return Some(End::Broken);
        }
        if !self.is_calm() {
            self.settled = 0;
            self.goes_on();
            return None;
        }
        let planned = report.planned.as_ref()?;
        if self.scenario.operator {
            for act in self.operator.read(&planned.report.holds, &planned.state.waiting, report.at)
            {
                self.do_for_hold(act);
            }
        }
        self.is_over(report, decision?)
    }

    fn outcome(mut self, end: End) -> Outcome {
        self.hear();
        let end = if self.breaches.is_empty() { end } else { End::Broken };
        let (unended, unheard) = self.left_open();
        let stage = self.house.stage.lock();
        let timeline = self.recorder.finish(&stage);
        let heights = timeline.heights();
        let calls: BTreeMap<world::Call, u64> =
            stage.world.calls().iter().map(|(call, count)| (*call, count.made)).collect();
        let (pod_moves, most_evictions) =
            stage.cluster.as_ref().map(Cluster::moves).unwrap_or_default();
        let made = u64::from(self.turns);
        let reads = calls.get(&world::Call::GetSet).copied().unwrap_or(0)
            + calls.get(&world::Call::ListInstances).copied().unwrap_or(0);
        let coalesced = self.asked.saturating_sub(made);
        Outcome {
            end,
            makespan: timeline.done().map(|done| Span::from_millis(done - timeline.from)),
            lowest_available: heights.lowest_available,
            highest_live: heights.highest_live,
            calls,
            asks_coalesced: coalesced,
            calls_saved: coalesced * reads / made.max(1),
            pod_moves,
            most_evictions,
            turns: self.turns,
            failed: self.failed,
            last_failure: self.last_failure,
            crashes: self.crashes,
            commits: self.house.disk.commits(),
            writes: self.house.disk.writes(),
            unended,
            unheard,
            breaches: self.breaches,
            story: self.story.lines,
            timeline,
            finished: stage.now(),
        }
    }
}

/// A process that starts asks for its first turn itself.
fn first_wake(scenario: &Scenario, life: u32) -> Wake {
    let dice = Dice::from_seed(scenario.seed).branch("wake").branch_number(life.into());
    let mut wake = Wake::new(dice);
    wake.ask(&scenario.policy.name, Why::News(Span::ZERO), scenario.start);
    wake
}

/// The world as the scenario finds it.
pub(super) fn set_up(scenario: &Scenario) -> Stage {
    let start = scenario.start.millis();
    let mut world = world::World::new(scenario.seed, start, scenario.settings.clone());
    let set = world.create_set(&scenario.set);
    furnished(scenario, world, set)
}

fn furnished(scenario: &Scenario, mut world: world::World, set: world::SetId) -> Stage {
    let start = scenario.start;
    if !scenario.faults.is_calm() {
        world.set_faults(scenario.faults);
    }
    for (at, deed) in &scenario.deeds {
        world.schedule(start.plus(*at).millis(), set, deed.clone());
    }
    let dice = Dice::from_seed(scenario.seed).branch("cluster");
    let calm = scenario.calm_from().millis();
    let machines = scenario.set.capacity;
    let cluster = scenario.cluster.map(|spec| Cluster::new(spec, machines, dice, calm));
    let _told_before_the_start = world.take_events();
    Stage::new(world, set, scenario.adapter, cluster)
}
