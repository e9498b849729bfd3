//! Hand-made cases: a short description of a pool, a plan for it, and the laws that it breaks.

mod after;
mod autoscaler;
mod course;
mod gate;
mod gates;
mod gray;
mod gray_gates;
mod history;
mod loops;
mod profiles;
mod random;
mod removal;
mod rest;
mod scale;
mod seen;
mod size;
mod stop;
mod windows;

use super::{Case, Note, before};
use crate::model::action::{
    Action, ActionKind, Expect, MachineClass, ModelWrite, READ_IS_FRESH, RemovalReason, Target,
    WriteScope,
};
use crate::model::hold::Hold;
use crate::model::ids::{
    CommandId, EntryId, Epoch, Etag, InstanceId, NodeName, PoolName, Revision, ScaleSetId, VmId,
};
use crate::model::inventory::{ModelFields, SetReading};
use crate::model::journal::{Entry, EntryEvent, EntryOutcome, Phase, Refusal, Refused};
use crate::model::machine::{
    Condition, DeleteRequest, Lifecycle, Machine, MachineHold, Overrides, Protection,
};
use crate::model::plan::{
    Command, CommandAnswer, CommandArgs, CommandVerb, Decision, Estimate, Facts, MachineReason,
    MachineReport, Numbers, Report, RolloutPhase, RolloutReport, WaitKind,
};
use crate::model::policy::{Draft, Policy};
use crate::model::quantity::{Quantity, resolve};
use crate::model::rollout::{
    Desired, PoolState, Progress, Rollout, RolloutCause, RolloutStage, Wait,
};
use crate::model::size::{SizeReport, SizeSpeaker};
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

pub(super) const OLD: &str = "r1";
pub(super) const NEW: &str = "r2";
pub(super) const NOW: Time = Time::from_millis(1_772_366_400_000);

pub(super) fn ago(span: Span) -> Time {
    NOW.minus(span)
}

/// A pool of three with one surge, rolling from r1 to r2, and an empty plan.
#[derive(Clone)]
pub(super) struct Pool {
    pub(super) draft: Draft,
    pub(super) set: SetReading,
    pub(super) machines: Vec<Machine>,
    pub(super) journal: Vec<Entry>,
    pub(super) learnt: usize,
    pub(super) actions: Vec<Action>,
    pub(super) holds: Vec<Hold>,
    pub(super) before: Option<PoolState>,
    pub(super) state: PoolState,
    pub(super) facts: Facts,
    pub(super) stop: Option<GlobalStop>,
    pub(super) commands: Vec<Command>,
    pub(super) desired: Option<u32>,
    /// This plan carries out an operator's command.
    pub(super) asked: bool,
    pub(super) now: Time,
    /// When the plan requests the next turn.
    pub(super) again: Time,
}

pub(super) fn rollout() -> Rollout {
    let (from, to) = (Some(Revision::new("r1")), Revision::new("r2"));
    let mut rollout = Rollout::open(RolloutCause::Revision, from, to, ago(Span::hours(2)), 3);
    rollout.progress = Progress::from(NOW, 0);
    rollout
}

impl Pool {
    /// D machines, `surge` and `unavailable`.
    pub(super) fn of(desired: u8, surge: u8, unavailable: u8) -> Pool {
        let mut draft = Draft::with_defaults(PoolName::new("p"), ScaleSetId::new("/p"));
        draft.count = u32::from(desired);
        draft.rollout.max_surge = Quantity::of(surge);
        draft.rollout.max_unavailable = Quantity::of(unavailable);
        let read = SetReading::new(Revision::new("r2"), 0, ago(Span::seconds(2)));
        let set = SetReading { etag: Some(Etag::new("7")), ..read };
        let state = PoolState {
            adopted: Some(ago(Span::days(9))),
            surplus_confirmed: true,
            desired: Desired { count: u32::from(desired), ..Desired::default() },
            wanted: Some(Revision::new("r2")),
            rollout: Some(rollout()),
            ..PoolState::default()
        };
        Pool {
            draft,
            set,
            machines: Vec::new(),
            journal: Vec::new(),
            learnt: 0,
            actions: Vec::new(),
            holds: Vec::new(),
            before: Some(state.clone()),
            state,
            facts: Facts::default(),
            stop: None,
            commands: Vec::new(),
            desired: None,
            asked: false,
            now: NOW,
            again: NOW.plus(Span::minutes(5)),
        }
    }

    /// This plan carries out an operator's command.
    pub(super) fn asked(mut self) -> Pool {
        self.asked = true;
        self
    }

    pub(super) fn no_rollout(mut self) -> Pool {
        self.change(|state| state.rollout = None);
        self
    }

    /// Changes the memory before and after the plan.
    pub(super) fn change(&mut self, how: impl Fn(&mut PoolState)) {
        self.before.as_mut().into_iter().for_each(&how);
        how(&mut self.state);
    }

    /// Serving machines on a revision, one for each letter.
    pub(super) fn serving(mut self, names: &str, revision: &str) -> Pool {
        for name in names.chars() {
            let mut machine = machine(&name.to_string(), Condition::Ready);
            machine.revision = Some(Revision::new(revision));
            self.machines.push(machine);
        }
        self
    }

    /// Machines in another condition for a few minutes.
    pub(super) fn with(mut self, names: &str, revision: &str, condition: Condition) -> Pool {
        for name in names.chars() {
            let mut machine = machine(&name.to_string(), condition);
            machine.revision = Some(Revision::new(revision));
            machine.since = ago(Span::minutes(2));
            if condition == Condition::Provisioning {
                machine.created = ago(Span::minutes(2));
                machine.imaged = machine.created;
                machine.first_seen = machine.created;
            }
            self.machines.push(machine);
        }
        self
    }

    pub(super) fn machine(&mut self, name: &str) -> &mut Machine {
        self.machines.iter_mut().find(|m| m.id.as_str() == name).unwrap()
    }

    /// Changes the plan's memory, before and after.
    pub(super) fn recall(mut self, how: impl Fn(&mut PoolState)) -> Pool {
        self.change(how);
        self
    }

    pub(super) fn set(mut self, how: impl FnOnce(&mut Pool)) -> Pool {
        how(&mut self);
        self
    }

    pub(super) fn edit(mut self, name: &str, how: impl FnOnce(&mut Machine)) -> Pool {
        how(self.machine(name));
        self
    }

    pub(super) fn targets(&mut self, names: &str, because: RemovalReason) -> Vec<Target> {
        let each = names.chars().map(|name| name.to_string());
        each.map(|name| Target::of(self.machine(&name), because)).collect()
    }

    fn last_moment(&self) -> Time {
        self.set.read_at.plus(READ_IS_FRESH)
    }

    pub(super) fn delete(mut self, names: &str, because: RemovalReason) -> Pool {
        let (targets, before) = (self.targets(names, because), self.last_moment());
        self.actions.push(Action::Delete { targets, reason: "".into(), before, force: false });
        self
    }

    pub(super) fn drain(mut self, names: &str, because: RemovalReason) -> Pool {
        let (targets, before) = (self.targets(names, because), self.last_moment());
        self.actions.push(Action::Drain { targets, reason: "".into(), before });
        self
    }

    pub(super) fn reimage(mut self, names: &str) -> Pool {
        let (targets, before) = (self.targets(names, RemovalReason::Outdated), self.last_moment());
        let to = Revision::new("r2");
        self.actions.push(Action::Reimage { targets, to, reason: "".into(), before });
        self
    }

    pub(super) fn restore(mut self, names: &str) -> Pool {
        let (targets, before) = (self.targets(names, RemovalReason::Surplus), self.last_moment());
        self.actions.push(Action::Restore { targets, reason: "".into(), before });
        self
    }

    pub(super) fn expect(&self, capacity: u32) -> Expect {
        Expect {
            etag: self.set.etag.clone(),
            capacity,
            revision: self.set.revision.clone(),
            before: self.last_moment(),
        }
    }

    /// Raises by this many from the number of machines.
    pub(super) fn raise(mut self, more: u32) -> Pool {
        let from = self.machines.len() as u32;
        let expect = self.expect(from);
        let (to, drift, reason) = (from + more, 0, "".into());
        self.actions.push(Action::Raise { from, to, drift, reason, expect });
        self
    }

    pub(super) fn write_model(mut self) -> Pool {
        let expect = self.expect(self.machines.len() as u32);
        let fields = ModelFields { vm_size: Some("D8".into()), ..ModelFields::default() };
        let (why, scope) = (ModelWrite::Wanted, WriteScope::default());
        self.actions.push(Action::UpdateModel { fields, why, scope, reason: "".into(), expect });
        self
    }

    /// The last action of the plan becomes an entry written earlier, with its events.
    pub(super) fn earlier(mut self, written: Span, events: &[(Span, EntryEvent)]) -> Pool {
        let action = self.actions.pop().unwrap();
        let id = EntryId::new(format!("e{}", self.journal.len()));
        let mut entry = entry(&id, action, ago(written));
        for (at, event) in events {
            entry.apply(event.clone(), ago(*at)).unwrap();
        }
        self.journal.push(entry);
        self
    }

    pub(super) fn check<T>(&self, judge: impl FnOnce(&Case) -> T) -> T {
        let mut set = self.set.clone();
        if set.capacity == 0 {
            set.capacity = self.machines.len() as u32;
        }
        let policy = Policy::build(self.draft.clone()).unwrap();
        let planned = self.planned();
        judge(&Case {
            now: self.now,
            policy: &policy,
            set: &set,
            machines: &self.machines,
            journal: &self.journal,
            learnt: self.learnt,
            planned: &planned,
            before: self.before.as_ref(),
            facts: &self.facts,
            stop: self.stop.as_ref(),
            commands: &self.commands,
        })
    }

    fn planned(&self) -> Decision {
        let rollout = &self.draft.rollout;
        let desired = self.desired.unwrap_or(self.draft.count);
        let report = Report {
            at: NOW,
            resolved: resolve(rollout.max_surge, rollout.max_unavailable, desired),
            size: SizeReport { by: SizeSpeaker::Count, says: Some(desired), others: Vec::new() },
            numbers: Numbers { desired, ..Numbers::default() },
            notices: Vec::new(),
            machines: self.given_back(),
            holds: self.holds.clone(),
            commands: self.asked.then(answer).into_iter().collect(),
            rollout: RolloutReport {
                phase: RolloutPhase::Progressing,
                from: None,
                to: None,
                reference: None,
                done: 0,
                total: 0,
                failed: 0,
                gates: Vec::new(),
                exceptions: Vec::new(),
            },
            estimate: Estimate::default(),
            next_check_at: self.again,
        };
        Decision { actions: self.actions.clone(), report, state: self.state.clone() }
    }

    /// The report says that restored machines are in service from now on.
    fn given_back(&self) -> Vec<MachineReport> {
        let restores = self.actions.iter().filter(|action| action.verb() == ActionKind::Restore);
        let back: Vec<&Target> = restores.flat_map(Action::targets).collect();
        let machines = (0..).zip(&self.machines);
        let machines = machines.filter(|(_, m)| back.iter().any(|target| target.is(m)));
        let told = machines.map(|(index, _)| MachineReport {
            index,
            class: MachineClass::Outdated,
            lifecycle: Lifecycle::InService,
            why: MachineReason::Restored,
            next_check_at: None,
        });
        told.collect()
    }

    pub(super) fn notes(&self) -> Vec<Note> {
        self.check(before)
    }

    /// The numbers of the laws that the plan breaks.
    pub(super) fn broken(&self) -> Vec<u8> {
        let mut laws: Vec<u8> = self.notes().iter().map(|note| note.law).collect();
        laws.sort_unstable();
        laws.dedup();
        laws
    }
}

fn answer() -> CommandAnswer {
    CommandAnswer { id: CommandId::new("a"), accepted: true, message: "done".into() }
}

pub(super) fn machine(name: &str, condition: Condition) -> Machine {
    let vm = Some(VmId::new(format!("vm-{name}")));
    let mut machine = Machine::new(InstanceId::new(name), vm, ago(Span::hours(9)), condition);
    machine.lifecycle_since = machine.created;
    machine
}

pub(super) fn entry(id: &EntryId, action: Action, written: Time) -> Entry {
    Entry {
        id: id.clone(),
        epoch: Epoch(1),
        written,
        read_at: written.minus(Span::seconds(1)),
        action,
        phase: Phase::Intended,
    }
}

pub(super) fn node(machine: &mut Machine) {
    machine.node = Some(NodeName::new(format!("node-{}", machine.id)));
}

pub(super) fn named(machine: &mut Machine, now: bool) {
    let delete = DeleteRequest { by: "ops".into(), why: "test".into(), now };
    machine.marks = Some(Box::new(Overrides { delete: Some(delete), hold: None }));
}

pub(super) fn paused(state: &mut PoolState) {
    let (by, why) = ("ops".into(), "test".into());
    let stage = RolloutStage::Paused { by, why, at: ago(Span::minutes(5)) };
    state.rollout.as_mut().unwrap().stage = stage;
}

pub(super) fn failing(state: &mut PoolState) {
    let stage = RolloutStage::Failing { why: "bad".into(), at: ago(Span::minutes(5)) };
    state.rollout.as_mut().unwrap().stage = stage;
}

/// The plan carries out an operator's command.
pub(super) fn asked(pool: Pool, verb: CommandVerb) -> Pool {
    approving(pool, verb, CommandArgs::default())
}

pub(super) fn approving(pool: Pool, verb: CommandVerb, about: CommandArgs) -> Pool {
    pool.set(|pool| {
        let (by, why) = ("ann".into(), "test".into());
        pool.commands.push(Command { id: CommandId::new("ask"), verb, by, why, at: NOW, about });
        pool.state.honoured.push(CommandId::new("ask"));
    })
}

/// The wait has stood in the memory for a minute, and an operator approves it.
pub(super) fn approved(pool: Pool, what: WaitKind, number: Option<u32>) -> Pool {
    let since = ago(Span::minutes(1));
    let pool = pool.set(|pool| {
        let before = pool.before.as_mut().unwrap();
        before.waiting.push(Wait { what, number, revision: None, since });
    });
    asked(pool, CommandVerb::Approve)
}

pub(super) fn held(machine: &mut Machine) {
    let hold = MachineHold { by: "ops".into(), why: "test".into() };
    machine.marks = Some(Box::new(Overrides { delete: None, hold: Some(hold) }));
}

/// Sent and accepted this long ago.
pub(super) fn accepted(at: Span) -> [(Span, EntryEvent); 2] {
    [(at, EntryEvent::Asking), (at, EntryEvent::Accepted(None))]
}

pub(super) fn refused(why: Refusal, at: Span) -> [(Span, EntryEvent); 2] {
    let outcome = EntryOutcome::Refused(Refused::plain(why));
    [(at.plus(Span::seconds(1)), EntryEvent::Asking), (at, EntryEvent::Ended(outcome))]
}

pub(super) fn done(ended: Span) -> [(Span, EntryEvent); 2] {
    [
        (ended.plus(Span::seconds(1)), EntryEvent::Asking),
        (ended, EntryEvent::Ended(EntryOutcome::Done)),
    ]
}

/// The plan breaks nothing.
#[track_caller]
pub(super) fn lawful(name: &str, pool: &Pool) {
    breaks(&[], name, pool);
}

/// The plan breaks these laws and no other.
#[track_caller]
pub(super) fn breaks(laws: &[u8], name: &str, pool: &Pool) {
    assert_eq!(pool.broken(), laws, "{name}: {:?}", pool.notes());
}
