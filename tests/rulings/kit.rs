//! A pool in a few words, one turn of the planner over it, and what was decided. Every turn is judged as well.

use poolkeeper::model::action::{Action, READ_IS_FRESH, RemovalReason, Target};
use poolkeeper::model::autoscaler::Autoscaler;
use poolkeeper::model::ids::{CommandId, EntryId, Epoch, NodeName, PoolName, ScaleSetId, Zone};
use poolkeeper::model::inventory::{PlatformFeature, SetReading};
use poolkeeper::model::journal::{Entry, EntryOutcome, Phase, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle, Machine, Protection};
use poolkeeper::model::plan::{
    Command, CommandArgs, CommandVerb, Facts, Gate, Input, Verdict, WaitKind,
};
use poolkeeper::model::policy::{Draft, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::{Span, Time};

pub use super::turn::Turn;
pub use crate::support::pool::{NOW, good, rev};
use crate::support::pool::{delete_request, judged, machine, machine_hold, memory, set};

#[derive(Clone)]
pub struct Pool {
    pub now: Time,
    pub seed: u64,
    pub draft: Draft,
    pub set: SetReading,
    /// `None`: as many as are listed.
    pub capacity: Option<u32>,
    pub machines: Vec<Machine>,
    pub open: Vec<Entry>,
    /// Entries that ended and were dropped: the judge remembers them.
    pub dropped: Vec<Entry>,
    pub commands: Vec<Command>,
    pub facts: Facts,
    pub stop: Option<GlobalStop>,
    pub state: Option<PoolState>,
}

impl Pool {
    /// A pool known for long, that completed r1 and whose model is r2 now. The ramp is off.
    pub fn new(desired: u32, surge: &str, unavailable: &str) -> Self {
        let mut draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new("/web"));
        draft.count = desired;
        draft.rollout.max_surge = Quantity::parse(surge).unwrap();
        draft.rollout.max_unavailable = Quantity::parse(unavailable).unwrap();
        draft.rollout.ramp = None;
        Self {
            now: NOW,
            seed: 0,
            draft,
            set: set(0),
            capacity: None,
            machines: Vec::new(),
            open: Vec::new(),
            dropped: Vec::new(),
            commands: Vec::new(),
            facts: Facts::default(),
            stop: None,
            state: Some(memory(desired)),
        }
    }

    pub fn first_sight(mut self) -> Self {
        self.state = None;
        self
    }

    /// r2 was completed long ago: nothing is old.
    pub fn settled(self) -> Self {
        self.state(|state| state.good_revisions.push(good("r2")))
    }

    pub fn policy(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        change(&mut self.draft);
        self
    }

    pub fn state(mut self, change: impl FnOnce(&mut PoolState)) -> Self {
        change(self.state.as_mut().unwrap());
        self
    }

    pub fn set(mut self, change: impl FnOnce(&mut SetReading)) -> Self {
        change(&mut self.set);
        self
    }

    /// Somebody put this revision back into the set, and every read of two minutes has shown it.
    pub fn put_back(mut self, revision: &str) -> Self {
        self.set.revision = rev(revision);
        self.state(|s| {
            s.model.again = Some(rev(revision));
            s.model.again_since = Some(NOW.minus(Span::minutes(3)));
        })
    }

    pub fn switch_autoscaler(&mut self, enabled: bool) {
        self.set.platform_features.retain(|feature| *feature != PlatformFeature::Autoscale);
        let found = self.set.autoscaler.take();
        self.set.show_autoscaler(found.map(|found| Autoscaler { enabled, ..found }));
    }

    pub fn capacity(mut self, capacity: u32) -> Self {
        self.capacity = Some(capacity);
        self
    }

    fn add(mut self, many: usize, old: bool, shape: impl Fn(&mut Machine, usize)) -> Self {
        let letter = if old { 'o' } else { 'n' };
        let has = self.machines.iter().filter(|m| m.id.as_str().starts_with(letter)).count();
        for at in has..has + many {
            let id = format!("{letter}{}", at + 1);
            // Older ones were born earlier; nobody a whole hour ago exactly.
            let age = Span::hours(if old { 50 } else { 5 }).plus(Span::minutes(60 - at as i64));
            let mut machine = machine(&id, self.now.minus(age), Condition::Ready);
            machine.revision = Some(rev(if old { "r1" } else { "r2" }));
            machine.since = self.now.minus(Span::hours(1));
            shape(&mut machine, at);
            self.machines.push(machine);
        }
        self
    }

    fn ready(self, many: usize, old: bool) -> Self {
        self.add(many, old, |_, _| {})
    }

    fn young(self, many: usize, old: bool) -> Self {
        let now = self.now;
        self.add(many, old, |machine, _| {
            let born = now.minus(Span::minutes(2));
            (machine.created, machine.imaged, machine.first_seen) = (born, born, born);
            (machine.condition, machine.since) = (Condition::Provisioning, born);
            machine.ever_available = false;
        })
    }

    /// Within their grace, and far enough apart that it is not us who are blind.
    fn unready(self, many: usize, old: bool) -> Self {
        let now = self.now;
        self.add(many, old, |machine, at| {
            machine.condition = Condition::Unready;
            machine.since = now.minus(Span::seconds(30 + 65 * at as i64));
        })
    }

    fn failed(self, many: usize, old: bool) -> Self {
        let now = self.now;
        self.add(many, old, |machine, _| {
            (machine.condition, machine.since) = (Condition::Failed, now.minus(Span::hours(3)));
        })
    }

    pub fn old_ready(self, many: usize) -> Self {
        self.ready(many, true)
    }

    pub fn new_ready(self, many: usize) -> Self {
        self.ready(many, false)
    }

    pub fn new_young(self, many: usize) -> Self {
        self.young(many, false)
    }

    pub fn old_unready(self, many: usize) -> Self {
        self.unready(many, true)
    }

    pub fn new_unready(self, many: usize) -> Self {
        self.unready(many, false)
    }

    pub fn old_failed(self, many: usize) -> Self {
        self.failed(many, true)
    }

    pub fn new_failed(self, many: usize) -> Self {
        self.failed(many, false)
    }

    pub fn edit(mut self, id: &str, change: impl FnOnce(&mut Machine)) -> Self {
        change(self.machine_mut(id));
        self
    }

    pub fn each(mut self, change: impl FnMut(&mut Machine)) -> Self {
        self.machines.iter_mut().for_each(change);
        self
    }

    /// Every machine is a Kubernetes node.
    pub fn nodes(self) -> Self {
        self.each(|machine| machine.node = Some(NodeName::new(machine.id.as_str())))
    }

    pub fn machine(&self, id: &str) -> &Machine {
        self.machines.iter().find(|machine| machine.id.as_str() == id).unwrap()
    }

    pub fn machine_mut(&mut self, id: &str) -> &mut Machine {
        self.machines.iter_mut().find(|machine| machine.id.as_str() == id).unwrap()
    }

    pub fn named(self, id: &str, now: bool) -> Self {
        self.edit(id, |machine| machine.marks = delete_request(now))
    }

    pub fn held(self, id: &str) -> Self {
        self.edit(id, |machine| machine.marks = machine_hold())
    }

    pub fn protected(self, id: &str) -> Self {
        self.edit(id, |machine| machine.protection = Protection::ScaleIn)
    }

    pub fn zone(self, id: &str, zone: &str) -> Self {
        self.edit(id, |machine| machine.zone = Some(Zone::new(zone)))
    }

    pub fn gone_for(self, id: &str, condition: Condition, span: Span) -> Self {
        let since = self.now.minus(span);
        self.edit(id, |machine| (machine.condition, machine.since) = (condition, since))
    }

    pub fn lifecycle(self, id: &str, lifecycle: Lifecycle, ago: Span) -> Self {
        let since = self.now.minus(ago);
        self.edit(id, |m| (m.lifecycle, m.lifecycle_since) = (lifecycle, since))
    }

    pub fn ask(mut self, verb: CommandVerb) -> Self {
        self.speak(verb);
        self
    }

    pub fn speak(&mut self, verb: CommandVerb) {
        // The time tells commands of one verb apart.
        let id = CommandId::new(format!("{}-{}", verb.name(), self.now.millis()));
        let (by, why) = ("ops".into(), "test".into());
        let about = CommandArgs::default();
        self.commands.push(Command { id, verb, by, why, at: self.now, about });
    }

    pub fn gate(mut self, name: &str, verdict: Verdict) -> Self {
        self.facts.gates = vec![Gate { name: name.into(), verdict, at: self.now, say: None }];
        self
    }

    /// Gates are measured at every look.
    pub fn measure(&mut self) {
        for gate in &mut self.facts.gates {
            gate.at = self.now;
        }
    }

    /// A person stops all pools, perhaps except repair.
    pub fn stopped(mut self, except_repair: bool) -> Self {
        let (since, by, why) = (self.now, "kim".into(), "quota incident".into());
        self.stop = Some(GlobalStop { since, by, why, except_repair });
        self
    }

    /// Approves this very thing.
    pub fn approve(mut self, what: WaitKind, number: Option<u32>) -> Self {
        self.speak(CommandVerb::Approve);
        let about = CommandArgs { what: Some(what), number, ..CommandArgs::default() };
        self.commands.last_mut().unwrap().about = about;
        self
    }

    /// Skips every wait of the rollout.
    pub fn promote_fully(mut self) -> Self {
        self.speak(CommandVerb::Promote);
        let about = CommandArgs { full: true, ..CommandArgs::default() };
        self.commands.last_mut().unwrap().about = about;
        self
    }

    /// Asks to go back to this revision.
    pub fn go_back(&mut self, to: &str) {
        self.speak(CommandVerb::Rollback);
        let about = CommandArgs { revision: Some(rev(to)), ..CommandArgs::default() };
        self.commands.last_mut().unwrap().about = about;
    }

    /// Approves each thing that waits, by its name.
    pub fn approve_all(&mut self) {
        let waiting = self.state.as_ref().map_or(&[][..], |state| &state.waiting).to_vec();
        for (at, wait) in waiting.into_iter().enumerate() {
            self.speak(CommandVerb::Approve);
            let ask = self.commands.last_mut().unwrap();
            ask.id = CommandId::new(format!("{}-{at}", ask.id));
            ask.about = CommandArgs {
                what: Some(wait.what),
                number: wait.number,
                revision: wait.revision,
                ..CommandArgs::default()
            };
        }
    }

    pub fn after_hours(self, hours: i64) -> Self {
        let turn = self.plan();
        self.after(&turn, Span::hours(hours))
    }

    /// The pool one turn later, with what waits on show.
    pub fn shown(self) -> Self {
        let turn = self.plan();
        self.after(&turn, Span::minutes(1))
    }

    /// An entry of ours, written `ago`.
    pub fn entry(mut self, action: Action, ago: Span, phase: Phase) -> Self {
        let written = self.now.minus(ago);
        let id = EntryId::new(format!("e{}", self.open.len()));
        let epoch = Epoch(1);
        self.open.push(Entry { id, epoch, written, read_at: written, action, phase });
        self
    }

    pub fn raise_open(self, from: u32, to: u32, ago: Span) -> Self {
        let at = self.now.minus(ago);
        let action = raise_action(from, to, &self.set);
        self.entry(action, ago, Phase::Accepted { at, operation: None })
    }

    pub fn raise_ended(self, from: u32, to: u32, ended_ago: Span, outcome: EntryOutcome) -> Self {
        let at = self.now.minus(ended_ago);
        let accepted = (outcome == EntryOutcome::Done).then(|| at.minus(Span::minutes(1)));
        let action = raise_action(from, to, &self.set);
        self.entry(action, ended_ago.plus(Span::minutes(1)), Phase::Ended { at, accepted, outcome })
    }

    pub fn targets(&self, ids: &[&str], because: RemovalReason) -> Vec<Target> {
        ids.iter().map(|id| Target::of(self.machine(id), because)).collect()
    }

    pub fn delete_open(self, ids: &[&str], ago: Span) -> Self {
        let at = self.now.minus(ago);
        self.delete_entry(
            ids,
            RemovalReason::Outdated,
            ago,
            Phase::Accepted { at, operation: None },
        )
    }

    pub fn delete_ended(self, ids: &[&str], ended_ago: Span, outcome: EntryOutcome) -> Self {
        let at = self.now.minus(ended_ago);
        let phase = Phase::Ended { at, accepted: None, outcome };
        self.delete_entry(ids, RemovalReason::Outdated, ended_ago.plus(Span::minutes(1)), phase)
    }

    pub fn delete_entry(
        self,
        ids: &[&str],
        because: RemovalReason,
        ago: Span,
        phase: Phase,
    ) -> Self {
        let targets = self.targets(ids, because);
        let before = self.now.plus(Span::seconds(30));
        let action = Action::Delete { targets, reason: "".into(), before, force: false };
        self.entry(action, ago, phase)
    }

    pub fn drain_entry(self, id: &str, because: RemovalReason, ago: Span, phase: Phase) -> Self {
        let targets = self.targets(&[id], because);
        let before = self.now.plus(Span::seconds(30));
        self.lifecycle(id, Lifecycle::Draining, ago).entry(
            Action::Drain { targets, reason: "".into(), before },
            ago,
            phase,
        )
    }

    pub fn restore_entry(self, id: &str, ago: Span, phase: Phase) -> Self {
        let (targets, before) = (self.targets(&[id], RemovalReason::Surplus), self.now);
        self.entry(Action::Restore { targets, reason: "".into(), before }, ago, phase)
    }

    /// It was given back half a minute ago, and that ended 25 s later.
    pub fn restore_ended(self, id: &str) -> Self {
        let at = self.now.minus(Span::seconds(5));
        let done = Phase::Ended { at, accepted: Some(at), outcome: EntryOutcome::Done };
        self.restore_entry(id, Span::seconds(30), done)
    }

    pub fn drain_open(self, id: &str, because: RemovalReason) -> Self {
        let at = self.now.minus(Span::minutes(1));
        let phase = Phase::Accepted { at, operation: None };
        self.drain_entry(id, because, Span::minutes(1), phase)
    }

    pub fn drain_ended(self, id: &str, because: RemovalReason, outcome: EntryOutcome) -> Self {
        let at = self.now.minus(Span::seconds(5));
        let accepted = Some(at.minus(Span::seconds(50)));
        let phase = Phase::Ended { at, accepted, outcome };
        self.drain_entry(id, because, Span::minutes(1), phase)
    }

    pub fn plan(&self) -> Turn {
        let turn = self.unjudged();
        assert!(turn.notes.is_empty(), "{:?}\n{turn:?}", turn.notes);
        turn
    }

    pub fn seen_set(&self) -> SetReading {
        let mut set = self.set.clone();
        set.capacity = self.capacity.unwrap_or(self.machines.len() as u32);
        set
    }

    /// A plan that the judge is not asked about.
    pub fn unjudged(&self) -> Turn {
        let policy = Policy::build(self.draft.clone()).unwrap();
        let set = self.seen_set();
        let mut state = self.state.clone();
        if let Some(state) = &mut state
            && state.desired.explained == 0
        {
            state.desired.explained = set.capacity;
        }
        let input = Input {
            now: self.now,
            seed: self.seed,
            policy: &policy,
            set: &set,
            machines: &self.machines,
            open: &self.open,
            commands: &self.commands,
            facts: &self.facts,
            stop: self.stop.as_ref(),
            state: state.as_ref(),
        };
        let (planned, notes) = judged(&input, &self.dropped);
        Turn { planned, notes, machines: self.machines.clone(), before: state }
    }

    /// The same pool with what was answered, some time later.
    pub fn after(mut self, turn: &Turn, later: Span) -> Self {
        self.state = Some(turn.planned.state.clone());
        self.commands.clear();
        self.now = self.now.plus(later);
        self.measure();
        self.set.read_at = self.now.minus(Span::seconds(1));
        self
    }
}

pub fn raise_action(from: u32, to: u32, set: &SetReading) -> Action {
    let expect = poolkeeper::model::action::Expect {
        etag: set.etag.clone(),
        capacity: from,
        revision: set.revision.clone(),
        before: set.read_at.plus(READ_IS_FRESH),
    };
    Action::Raise { from, to, drift: 0, reason: "".into(), expect }
}

pub fn refused(refusal: Refusal) -> EntryOutcome {
    EntryOutcome::Refused(Refused::plain(refusal))
}

pub fn blocked(code: &str) -> EntryOutcome {
    EntryOutcome::Refused(Refused { code: Some(code.into()), ..Refused::plain(Refusal::Conflict) })
}
