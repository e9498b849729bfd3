//! The judge answers every input, and the order of its lists changes nothing.

use proptest::prelude::*;

use super::*;
use crate::judge::history::History;
use crate::judge::{MachineBirth, PodEffects, Real, SentCall, Truth, after, at_goal};
use crate::model::action::{ActionKind, WriteScope};
use crate::model::machine::Evidence;
use crate::model::policy::{Method, Owner, UnconfirmedFall};
use crate::model::rollout::Fall;

/// Choices drawn from bytes; after the last byte, always the first choice.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn flip(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()].clone()
    }

    fn time(&mut self) -> Time {
        match self.byte() {
            0 => Time::from_millis(i64::MIN),
            1 => Time::from_millis(i64::MAX),
            2..=9 => NOW.plus(Span::seconds(30)),
            n => ago(Span::minutes(i64::from(n / 8))),
        }
    }

    fn number(&mut self) -> u32 {
        match self.byte() {
            0 => u32::MAX,
            1..=9 => 1_000,
            n => u32::from(n % 7),
        }
    }

    fn revision(&mut self) -> Option<Revision> {
        self.of(&[None, Some(OLD), Some(NEW), Some("v1:a"), Some("v2:a")]).map(Revision::new)
    }

    fn machine(&mut self) -> Machine {
        use Condition::*;
        let all = [Provisioning, Ready, Unready, Failed, Deleting, Stopped, Unknown];
        let mut machine = machine(self.of(&["a", "b", "c", "d@7", "e"]), self.of(&all));
        machine.vm = if self.flip() { machine.vm } else { None };
        machine.revision = self.revision();
        (machine.created, machine.imaged) = (self.time(), self.time());
        (machine.since, machine.first_seen) = (self.time(), self.time());
        machine.ever_available = self.flip();
        machine.missed = self.byte() % 4;
        machine.evidence =
            self.of(&[Evidence::Model, Evidence::Stamp, Evidence::LatestModelApplied]);
        use Lifecycle::{CutOff, Drained, Draining, InService, Standby, Updating};
        machine.lifecycle = self.of(&[InService, CutOff, Standby, Draining, Drained, Updating]);
        match self.byte() % 6 {
            0 => node(&mut machine),
            1 => named(&mut machine, self.flip()),
            2 => held(&mut machine),
            3 => machine.protection = Protection::All,
            _ => {}
        }
        machine
    }

    fn target(&mut self, machines: &[Machine]) -> Target {
        use RemovalReason::{DeleteRequested, DeleteRequestedNow, Failed, Outdated, Surplus};
        let because = self.of(&[Outdated, Surplus, Failed, DeleteRequested, DeleteRequestedNow]);
        if machines.is_empty() || self.byte().is_multiple_of(8) {
            return Target::of(&self.machine(), because);
        }
        Target::of(&self.of(machines), because)
    }

    fn action(&mut self, pool: &Pool) -> Action {
        let n = self.byte() % 4;
        let targets = (0..n).map(|_| self.target(&pool.machines)).collect();
        let (before, reason) = (self.time(), "".into());
        let expect = pool.expect(self.number());
        match self.byte() % 7 {
            0 => Action::Drain { targets, reason, before },
            1 => Action::Restore { targets, reason, before },
            2 => Action::Reimage { targets, to: Revision::new(NEW), reason, before },
            3 | 4 => Action::Delete { targets, reason, before, force: false },
            5 => {
                let (fields, why) = (ModelFields::default(), ModelWrite::PutBack);
                Action::UpdateModel { fields, why, scope: WriteScope::default(), reason, expect }
            }
            _ => {
                let (from, to, drift) = (self.number(), self.number(), self.number());
                Action::Raise { from, to, drift, reason, expect }
            }
        }
    }

    fn entry(&mut self, pool: &Pool, id: usize) -> Entry {
        let action = self.action(pool);
        let some = action.targets().first().map(Target::key);
        let mut entry = entry(&EntryId::new(format!("e{id}")), action, self.time());
        entry.epoch = Epoch(u64::from(self.byte() % 3));
        let why = Refused::plain(self.of(&Refusal::ALL));
        let mixed = some.map(|key| (key, Some(why.clone()))).into_iter().collect();
        let outcome = self.of(&[
            EntryOutcome::Done,
            EntryOutcome::Refused(why),
            EntryOutcome::Mixed(mixed),
            EntryOutcome::Withdrawn,
        ]);
        for event in [
            EntryEvent::Asking,
            EntryEvent::Accepted(None),
            EntryEvent::Lost,
            EntryEvent::Ended(outcome),
        ] {
            if self.flip() {
                let _ = entry.apply(event, self.time());
            }
        }
        entry
    }

    fn memory(&mut self, state: &mut PoolState, machines: &[Machine]) {
        state.surplus_confirmed = self.flip();
        state.wanted = self.revision();
        state.desired.count = self.number();
        let (from, to, at) = (self.number(), self.number(), self.time());
        state.desired.falls.push(Fall { from, to, at });
        for key in machines.iter().map(Machine::key) {
            match self.byte() % 4 {
                0 => state.written_off.push(key),
                1 => state.tombs.push((key, NOW)),
                _ => {}
            }
        }
        if let Some(rollout) = &mut state.rollout {
            rollout.passed = self.number();
            rollout.covered = self.number();
            let (why, at) = ("bad".into(), self.time());
            rollout.stage = self.of(&[RolloutStage::Going, RolloutStage::Failing { why, at }]);
            rollout.cause =
                self.of(&[RolloutCause::Revision, RolloutCause::Rollback, RolloutCause::MaxAge]);
        }
        if self.flip() {
            state.rollout = None;
        }
    }

    fn pool(&mut self) -> Pool {
        let mut pool = Pool::of(self.byte() % 6, 1 + self.byte() % 3, self.byte() % 3);
        let n = self.byte() % 8;
        pool.machines = (0..n).map(|_| self.machine()).collect();
        pool.set.capacity = self.number();
        pool.set.complete = !self.byte().is_multiple_of(4);
        pool.draft.owner = self.of(&[Owner::Pool, Owner::ScaleSet]);
        pool.draft.unconfirmed = self.of(&[UnconfirmedFall::Hold, UnconfirmedFall::Allow]);
        let rollout = &mut pool.draft.rollout;
        rollout.method = self.of(&[Method::Replace, Method::Reimage, Method::OnDelete]);
        rollout.count_deleting = self.flip();
        rollout.max_age = self.of(&[None, Some(Span::hours(1))]);
        pool.desired = self.flip().then(|| self.number());
        for id in 0..usize::from(self.byte() % 5) {
            let entry = self.entry(&pool, id);
            pool.journal.push(entry);
        }
        pool.actions = (0..self.byte() % 4).map(|_| self.action(&pool)).collect();
        let machines = pool.machines.clone();
        self.memory(&mut pool.state, &machines);
        if let Some(before) = &mut pool.before {
            self.memory(before, &machines);
        }
        if self.byte().is_multiple_of(4) {
            pool.before = None;
        }
        pool.now = if self.flip() { NOW } else { self.time() };
        pool
    }

    fn sent(&mut self, pool: &Pool) -> Vec<SentCall> {
        let journal = pool.journal.iter();
        let sent = journal.map(|entry| SentCall {
            at: self.time(),
            entry: entry.id.clone(),
            epoch: Epoch(u64::from(self.byte() % 3)),
            not_after: self.time(),
            verb: self.of(&ActionKind::ALL),
            hit: entry.action.targets().iter().map(Target::key).collect(),
            to: self.flip().then(|| self.number()),
            lacking: self.number(),
            took: self.flip(),
            serving: entry.action.targets().iter().map(Target::key).collect(),
            with_pods: Vec::new(),
        });
        sent.collect()
    }

    fn real(&mut self, machine: &Machine) -> Real {
        Real {
            key: machine.key(),
            serves: self.flip().then(|| self.time()),
            touched: self.flip(),
            cordoned: self.flip(),
            switched_off: self.flip(),
            deleting: self.flip(),
            failed: self.flip(),
            unheard: self.flip(),
        }
    }
}

proptest! {
    #[test]
    fn it_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut draw = Draw(&bytes);
        let mut past = History::default();
        for _ in 0..3 {
            let pool = draw.pool();
            let sent = draw.sent(&pool);
            let world: Vec<Real> = pool.machines.iter().map(|m| draw.real(m)).collect();
            let birth = |real: &Real| MachineBirth { key: real.key.clone(), of: Some(EntryId::new("e0")) };
            let births: Vec<MachineBirth> = world.iter().map(birth).collect();
            let (coming, stored, calm) = (draw.number(), draw.number(), draw.flip());
            pool.check(|case| {
                let _ = (before(case), at_goal(case));
                let (sent, births, world) = (&sent[..], &births[..], &world[..]);
                let journal = &pool.journal[..];
                let truth = Truth { case, world, coming, sent, pods: &PodEffects::default(), births, journal, stored, calm, stop: None };
                let _ = (after(&truth, &mut past), after(&truth, &mut past));
            });
        }
    }

    #[test]
    fn the_order_of_lists_is_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut pool = Draw(&bytes).pool();
        // A list of machines has no two records of one machine.
        pool.machines.sort_by(|a, b| a.id.cmp(&b.id));
        pool.machines.dedup_by(|a, b| a.id == b.id);
        let broken = pool.broken();
        pool.machines.reverse();
        pool.journal.reverse();
        prop_assert_eq!(broken, pool.broken());
    }
}
