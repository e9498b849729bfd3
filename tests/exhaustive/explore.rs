//! The graph of one setting: a turn of the production planner and every calm event from every state.

use std::collections::BTreeMap;

use poolkeeper::judge::Note;
use poolkeeper::model::action::{Action, ActionKind, RemovalReason, Target};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::{Hold, HoldReason};
use poolkeeper::model::ids::{EntryId, Epoch, NodeName, PoolName, Revision, ScaleSetId};
use poolkeeper::model::journal::{Entry, EntryOutcome, Phase};
use poolkeeper::model::machine::{Condition, Machine, Protection};
use poolkeeper::model::plan::{Decision, Facts, Input};
use poolkeeper::model::policy::{
    Checkpoint, Draft, Method, OnFailure, Policy, Ramp, UnconfirmedFall,
};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{
    DeleteEffect, DeleteEffects, KeyBackOff, PoolState, Progress, Rollout, RolloutCause,
    RolloutStage,
};
use poolkeeper::model::size::{GrayPolicy, GrayState};
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::Span;

use super::kinds::{
    CALM, IN_PLACE, KINDS, Kind, NOW, State, drain, draining, in_service, is_new, machine,
};
use super::laws::{AVAILABLE, Limits, Turn, broken, goal};
use crate::support::pool::{self, judged};

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub ramp: bool,
    pub checkpoint: Option<u8>,
    pub paused: bool,
    /// A person stopped all pools.
    pub stopped: bool,
    /// Whether the cloud lowers the capacity when a delete is done, or when it is accepted.
    pub late_capacity: bool,
    /// That it falls when a delete is done was learnt: raises do not wait for deletes.
    pub known_late: bool,
    /// Machines carry nodes, and are drained before they go.
    pub nodes: bool,
    pub count_deleting: bool,
    pub in_place: bool,
    /// What failed did so lately: more than one of them stop repair.
    pub breaker: bool,
    /// Surplus leaves service first, and goes once it was seen there.
    pub gray: bool,
    /// It is switched off before it goes.
    pub off: bool,
}

impl Setting {
    /// The gate of the rollout is closed.
    const fn is_closed(&self) -> bool {
        self.paused || self.stopped
    }
}

#[derive(Debug, Default)]
pub struct Found {
    pub states: usize,
    pub edges: usize,
    pub longest: usize,
    pub waiting: usize,
    pub broken: Vec<String>,
}

pub struct Case {
    pub setting: Setting,
    policy: Policy,
    memory: PoolState,
    pub limits: Limits,
    /// One machine of each kind and slot, made once, and the request that is on its way for it.
    stock: Vec<Vec<(Machine, Option<Entry>)>>,
}

/// More than any state reaches; a state beyond it means that the planner grows a pool without end.
pub const SLOTS: usize = 16;

impl Case {
    pub fn new(setting: Setting, desired: u8, surge: u8, unavailable: u8) -> Self {
        let mut draft = Draft::with_defaults(PoolName::new("small"), ScaleSetId::new("/small"));
        draft.count = u32::from(desired);
        draft.unconfirmed = UnconfirmedFall::Allow;
        // Long enough for every machine to be unready at a time of its own.
        draft.repair.after = Span::minutes(20);
        if !setting.breaker {
            // What is proven here is the order of repair; what stops it has settings of its own.
            draft.repair.breaker_percent = 10_000;
        }
        draft.gray = setting.gray.then_some(GrayPolicy {
            state: if setting.off { GrayState::Standby } else { GrayState::Cutoff },
            change_percent: 100,
            interval: Span::seconds(1),
            observation: Span::ZERO,
            ..GrayPolicy::default()
        });
        let rollout = &mut draft.rollout;
        rollout.max_surge = Quantity::of(surge);
        rollout.max_unavailable = Quantity::of(unavailable);
        rollout.ramp = setting.ramp.then_some(Ramp { first: 1, factor: 2 });
        rollout.on_failure = OnFailure::Continue;
        rollout.count_deleting = setting.count_deleting;
        if setting.in_place {
            rollout.method = Method::Reimage;
        }
        rollout.checkpoints = setting
            .checkpoint
            .map(|at| Checkpoint {
                at: Quantity::of(at),
                soak: Span::ZERO,
                approval: true,
                gates: Vec::new(),
            })
            .into_iter()
            .collect();
        let policy = Policy::build(draft).unwrap();
        let stock = KINDS
            .iter()
            .map(|kind| (0..SLOTS).map(|slot| made(setting, *kind, slot)).collect())
            .collect();
        let limits = Limits {
            count_deleting: setting.count_deleting,
            in_place: setting.in_place,
            gray: setting.gray,
            ..Limits::resolve(i64::from(desired), i64::from(surge), i64::from(unavailable))
        };
        Self { setting, memory: memory(setting, desired), policy, limits, stock }
    }

    fn machines(&self, state: &State) -> (Vec<Machine>, Vec<Entry>) {
        let of = |kind: &Kind| self.stock[*kind as usize][..state.of(*kind) as usize].iter();
        let machines = KINDS.iter().flat_map(of).map(|(machine, _)| machine.clone()).collect();
        let open = KINDS.iter().flat_map(of).filter_map(|(_, entry)| entry.clone()).collect();
        (machines, open)
    }

    fn decide(&self, state: &State) -> (Decision, Turn, Vec<Note>) {
        let (machines, open) = self.machines(state);
        let leaving = state.of(Kind::OldLeaving) + state.of(Kind::NewLeaving);
        let capacity = state.total() - if self.setting.late_capacity { 0 } else { leaving };
        let set = pool::set(capacity as u32);
        let mut memory = self.memory.clone();
        memory.desired.explained = capacity as u32;
        let facts = Facts::default();
        let stop = Some(GlobalStop {
            since: NOW.minus(Span::minutes(5)),
            by: "ops".into(),
            why: "test".into(),
            except_repair: false,
        });
        let input = Input {
            now: NOW,
            seed: 0,
            policy: &self.policy,
            set: &set,
            machines: &machines,
            open: &open,
            commands: &[],
            facts: &facts,
            stop: stop.as_ref().filter(|_| self.setting.stopped),
            state: Some(&memory),
        };
        let (planned, notes) = judged(&input, &[]);
        let turn = Self::counted(state, &planned);
        (planned, turn, notes)
    }

    fn counted(state: &State, planned: &Decision) -> Turn {
        let mut turn = Turn::default();
        for action in &planned.actions {
            if action.verb() == ActionKind::Raise {
                turn.create = action.births() as u8;
            }
            for target in action.targets() {
                let from =
                    KINDS[target.id.as_str().split('-').next().unwrap().parse::<usize>().unwrap()];
                let to = match action.verb() {
                    ActionKind::Delete if is_new(from) => Kind::NewLeaving,
                    ActionKind::Delete => Kind::OldLeaving,
                    ActionKind::Drain => draining(from, target.because),
                    ActionKind::Restore => in_service(from),
                    ActionKind::Reimage => Kind::OldUpdating,
                    ActionKind::CutOff if is_new(from) => Kind::NewCut,
                    ActionKind::CutOff => Kind::OldCut,
                    ActionKind::Standby => Kind::NewStopping,
                    other => panic!("{other:?} in {}", state.show()),
                };
                match turn.moved.iter_mut().find(|moved| (moved.0, moved.1) == (from, to)) {
                    Some(moved) => moved.2 += 1,
                    None => turn.moved.push((from, to, 1)),
                }
            }
        }
        turn
    }

    pub fn after(state: &State, turn: &Turn) -> State {
        let next = state.add(Kind::NewYoung, turn.create);
        turn.moved.iter().fold(next, |next, (from, to, n)| next.shift(*from, Some(*to), *n))
    }
}

/// A machine as the setting has it, and the request that is on its way for it.
fn made(setting: Setting, kind: Kind, slot: usize) -> (Machine, Option<Entry>) {
    let mut machine = machine(kind, slot);
    if setting.nodes {
        machine.node = Some(NodeName::new(machine.id.as_str()));
    }
    if setting.breaker && machine.condition == Condition::Failed {
        machine.since = NOW.minus(Span::minutes(25));
    }
    if setting.in_place && machine.protection == Protection::ScaleIn {
        // The weaker one does not keep it from an update.
        machine.protection = Protection::All;
    }
    let (written, before) = (machine.lifecycle_since, NOW.plus(Span::seconds(30)));
    let targets = |because| vec![Target::of(&machine, because)];
    let (action, done) = if let Some((because, done)) = drain(kind) {
        (Action::Drain { targets: targets(because), reason: "".into(), before }, done)
    } else if kind == Kind::OldUpdating {
        let (to, reason) = (Revision::new("r2"), "".into());
        (Action::Reimage { targets: targets(RemovalReason::Outdated), to, reason, before }, false)
    } else if matches!(kind, Kind::NewStopping | Kind::NewStarting) {
        let targets = targets(RemovalReason::Surplus);
        let action = match kind {
            Kind::NewStarting => Action::Restore { targets, reason: "".into(), before },
            _ => Action::Standby { targets, reason: "".into(), before },
        };
        (action, false)
    } else {
        return (machine, None);
    };
    let phase = if done {
        let at = NOW.minus(Span::seconds(30));
        Phase::Ended { at, accepted: Some(written), outcome: EntryOutcome::Done }
    } else {
        Phase::Accepted { at: written, operation: None }
    };
    let id = EntryId::new(format!("e-{}", machine.id));
    let entry = Entry { id, epoch: Epoch(1), written, read_at: written, action, phase };
    (machine, Some(entry))
}

fn memory(setting: Setting, desired: u8) -> PoolState {
    let (r1, r2) = (Revision::new("r1"), Revision::new("r2"));
    let stage = if setting.paused {
        RolloutStage::Paused {
            by: "ops".into(),
            why: "test".into(),
            at: NOW.minus(Span::minutes(5)),
        }
    } else {
        RolloutStage::Going
    };
    let opened = NOW.minus(Span::hours(6));
    let covered = u32::from(desired);
    let rollout =
        Rollout::open(RolloutCause::Revision, Some(r1.clone()), r2.clone(), opened, covered);
    let progress = Progress::from(NOW, 0);
    let blocked = (0..SLOTS).map(|slot| KeyBackOff {
        key: machine(Kind::OldBlocked, slot).key(),
        times: 1,
        at: NOW.minus(Span::minutes(5)),
        until: NOW.plus(Span::minutes(25)),
        message: None,
        code: None,
        retry_at: None,
        now: false,
    });
    PoolState {
        model_accepted: Some(r2),
        deletes: DeleteEffects {
            verdict: if setting.known_late { DeleteEffect::AtEnd } else { DeleteEffect::Unknown },
            proven: setting.known_late,
            ..DeleteEffects::default()
        },
        blocked: blocked.collect(),
        rollout: Some(Rollout {
            stage,
            progress,
            answered: Some(NOW),
            tried: IN_PLACE
                .iter()
                .filter(|kind| **kind != Kind::OldUpdating)
                .flat_map(|kind| (0..SLOTS).map(|slot| machine(*kind, slot).key()))
                .collect(),
            ..rollout
        }),
        ..pool::memory(covered)
    }
}

/// Reasons that name something outside: a person, or a machine that never recovers by itself.
const OUTSIDE: [HoldReason; 2] = [HoldReason::Checkpoint, HoldReason::Paused];

/// The breaker is open: a person releases it, or time does.
fn stopped(case: &Case, state: &State, planned: &Decision, whole: bool) -> bool {
    let mut holds = planned.report.holds.iter();
    let hold = holds.find(|hold| hold.reason == HoldReason::Breaker);
    let full = state.total() >= case.limits.desired + case.limits.surge;
    hold.is_some_and(|hold| hold.verb() == Some(CommandName::ResetBreaker)) && (whole || full)
}

/// What one turn leads to: nothing, where the pool is at rest.
pub fn follow(case: &Case, state: &State, place: &str, found: &mut Found) -> Vec<State> {
    let (planned, turn, notes) = case.decide(state);
    let place = format!("{place}: {} -> {turn:?}", state.show());
    for law in broken(state, &case.limits, &turn, case.setting.is_closed()) {
        found.broken.push(format!("{law}: {place}"));
    }
    let puts_back = |(from, to, _): &(Kind, Kind, u8)| in_service(*from) == *to;
    if case.setting.stopped && !(turn.create == 0 && turn.moved.iter().all(puts_back)) {
        found.broken.push(format!("begins something while all pools are stopped: {place}"));
    }
    for note in notes {
        found.broken.push(format!("law {} ({}): {place}", note.law, note.say));
    }
    let at_goal = goal(state, case.limits.desired);
    // What is kept may be more than is wanted.
    if at_goal && state.total() <= case.limits.desired && !turn.is_empty() {
        found.broken.push(format!("acts at its goal: {place}"));
    }
    let mut next: Vec<State> = CALM
        .iter()
        .filter(|(from, _)| state.of(*from) > 0)
        .map(|(from, to)| state.shift(*from, *to, 1))
        .collect();
    if !turn.is_empty() {
        next.push(Case::after(state, &turn));
    }
    if next.is_empty() && !at_goal {
        judge_end(case, state, &planned, &place, found);
    }
    next
}

pub fn explore(states: &[State], setting: Setting, d: u8, s: u8, u: u8) -> Found {
    let case = Case::new(setting, d, s, u);
    let mut found = Found::default();
    let place = format!("D{d} S{s} U{u} {}", setting.name);
    let mut graph: BTreeMap<State, Vec<State>> = BTreeMap::new();
    let mut todo: Vec<State> = states.to_vec();
    while let Some(state) = todo.pop() {
        if graph.contains_key(&state) {
            continue;
        }
        let next = follow(&case, &state, &place, &mut found);
        found.edges += next.len();
        todo.extend(next.iter().filter(|next| !graph.contains_key(next)));
        graph.insert(state, next);
    }
    found.states = graph.len();
    found.longest = longest_path(&graph, &mut found.broken, &place);
    found
}

/// A state in which nothing happens any more, and which is not the goal, must name who has to act.
fn judge_end(case: &Case, state: &State, planned: &Decision, place: &str, found: &mut Found) {
    if case.setting.stopped {
        let stops = |hold: &Hold| hold.reason == HoldReason::Stopped && hold.remedy.is_some();
        match planned.report.holds.iter().any(stops) {
            true => found.waiting += 1,
            false => found.broken.push(format!("says nothing of the stop: {place}")),
        }
        return;
    }
    let waits = planned.report.holds.iter().any(|hold| OUTSIDE.contains(&hold.reason));
    let served: i64 = AVAILABLE.iter().map(|kind| state.of(*kind)).sum();
    let whole = served >= case.limits.desired;
    if (waits && whole) || stopped(case, state, planned, whole) {
        found.waiting += 1;
    } else {
        let holds: Vec<&str> = planned.report.holds.iter().map(|h| h.reason.code()).collect();
        found.broken.push(format!("dead end: {place} holds {holds:?}"));
    }
}

/// The longest calm path; a cycle is a breach.
fn longest_path(
    graph: &BTreeMap<State, Vec<State>>,
    broken: &mut Vec<String>,
    place: &str,
) -> usize {
    let keys: Vec<&State> = graph.keys().collect();
    let at = |state: &State| keys.binary_search(&state).unwrap();
    let edges: Vec<Vec<usize>> = graph.values().map(|next| next.iter().map(at).collect()).collect();
    let mut incoming = vec![0_usize; keys.len()];
    for next in edges.iter().flatten() {
        incoming[*next] += 1;
    }
    let mut depth = vec![0_usize; keys.len()];
    let mut ready: Vec<usize> = (0..keys.len()).filter(|n| incoming[*n] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for next in &edges[node] {
            depth[*next] = depth[*next].max(depth[node] + 1);
            incoming[*next] -= 1;
            if incoming[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    if done != keys.len() {
        let stuck = (0..keys.len()).filter(|n| incoming[*n] > 0).min_by_key(|n| keys[*n].total());
        broken.push(format!("cycle: {place}: {}", stuck.map_or(String::new(), |n| keys[n].show())));
    }
    depth.into_iter().max().unwrap_or(0)
}
