//! Whatever is asked in whatever order, against limiters that are not ours.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{
    Admission, AdmissionAnswer, AdmissionGrant, CallCost, PacedOperation, ResponseHints, Ticket,
};
use proptest::prelude::*;

use crate::pace::server::{Answer, Server, set};
use crate::pace::stage::at;
use crate::support::long::long_or;

const OPERATIONS: [PacedOperation; 8] = [
    PacedOperation::ReadSet,
    PacedOperation::List,
    PacedOperation::NextPage,
    PacedOperation::Poll,
    PacedOperation::ReadOther,
    PacedOperation::Raise,
    PacedOperation::Delete,
    PacedOperation::ReadView,
];

#[derive(Debug, Clone)]
enum Doing {
    /// Pool, operation, machines, and for how many times a hundred milliseconds it may wait.
    Ask(u8, u8, u8, u16),
    /// Several of one kind at once.
    Burst(u8, u8, u8),
    Look(u8),
    Leave(u8),
    /// One is let through and not sent.
    Unsent(u8),
    /// The answer of one that is under way comes, with its headers or without.
    Hear(u8, bool),
    Pass(u16),
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        6 => (0_u8..4, 0_u8..8, 1_u8..40, 0_u16..700)
            .prop_map(|(pool, op, machines, wait)| Doing::Ask(pool, op, machines, wait)),
        2 => (0_u8..4, 0_u8..8, 1_u8..60).prop_map(|(pool, op, n)| Doing::Burst(pool, op, n)),
        6 => any::<u8>().prop_map(Doing::Look),
        1 => any::<u8>().prop_map(Doing::Leave),
        6 => (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(nth, told)| Doing::Hear(nth, told)),
        1 => any::<u8>().prop_map(Doing::Unsent),
        4 => (0_u16..20_000).prop_map(Doing::Pass),
    ]
}

struct Room {
    gate: Admission,
    server: Server,
    now: Time,
    waiting: Vec<(Ticket, usize, PacedOperation, u32, Time)>,
    under_way: Vec<(AdmissionGrant, Option<Answer>)>,
    /// Each call that left: pool, operation, when.
    left: Vec<(usize, PacedOperation, Time)>,
}

impl Room {
    fn new(by_minute: bool) -> Self {
        // Not at the beginning of a minute, so that the steps of the server fall where they like.
        Self {
            gate: Admission::default(),
            server: Server::new(by_minute),
            now: at(1_234_567),
            waiting: Vec::new(),
            under_way: Vec::new(),
            left: Vec::new(),
        }
    }

    fn ask(&mut self, pool: usize, operation: PacedOperation, machines: u32, wait: Span) {
        let (set, before) = (set(pool), self.now.plus(wait));
        let call = CallCost { set: &set, operation, machines, before: Some(before) };
        match self.gate.ask(&call, self.now) {
            AdmissionAnswer::Go(grant) => self.go(grant, pool, operation, machines),
            AdmissionAnswer::Wait(ticket, _) => {
                self.waiting.push((ticket, pool, operation, machines, before));
            }
            AdmissionAnswer::NotNow(why) => assert!(why.retry_at >= self.now),
        }
    }

    /// It leaves, and the server hears it at once; its answer is under way.
    fn go(&mut self, grant: AdmissionGrant, pool: usize, operation: PacedOperation, machines: u32) {
        self.left.push((pool, operation, self.now));
        let answer = self.server.hear(operation, pool, machines, self.now);
        self.under_way.push((grant, Some(answer)));
    }

    fn look(&mut self, nth: u8) {
        if self.waiting.is_empty() {
            return;
        }
        self.look_at(usize::from(nth) % self.waiting.len());
    }

    fn look_at(&mut self, at: usize) {
        let (ticket, pool, operation, machines, before) = self.waiting[at];
        match self.gate.look(ticket, self.now) {
            AdmissionAnswer::Go(grant) => {
                self.waiting.remove(at);
                self.go(grant, pool, operation, machines);
            }
            AdmissionAnswer::Wait(same, until) => {
                assert_eq!(same, ticket);
                assert!(until > self.now && until <= before, "{until} {} {before}", self.now);
            }
            AdmissionAnswer::NotNow(why) => {
                assert!(self.now >= before || why.retry_at > before, "withdrawn before its time");
                assert!(why.retry_at > self.now);
                self.waiting.remove(at);
            }
        }
    }

    /// Callers look as soon as something changed for them.
    fn wake(&mut self) {
        let moved: Vec<Ticket> = self.gate.moved().collect();
        for ticket in moved {
            if let Some(at) = self.waiting.iter().position(|(of, ..)| *of == ticket) {
                self.look_at(at);
            }
        }
    }

    fn hear(&mut self, nth: u8, told: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let (grant, answer) = self.under_way.remove(usize::from(nth) % self.under_way.len());
        match answer.filter(|_| told) {
            Some(answer) => self.gate.observe(grant, &answer.hints(), self.now),
            None => self.gate.lost(grant, self.now),
        }
    }

    fn step(&mut self, step: &Doing) {
        match *step {
            Doing::Ask(pool, op, machines, wait) => {
                let wait = Span::from_millis(i64::from(wait) * 100);
                self.ask(pool.into(), OPERATIONS[usize::from(op)], machines.into(), wait);
            }
            Doing::Burst(pool, op, n) => {
                for _ in 0..n {
                    self.ask(pool.into(), OPERATIONS[usize::from(op)], 1, Span::seconds(60));
                }
            }
            Doing::Look(nth) => self.look(nth),
            Doing::Leave(nth) if !self.waiting.is_empty() => {
                let (ticket, ..) = self.waiting.remove(usize::from(nth) % self.waiting.len());
                self.gate.leave(ticket, self.now);
            }
            Doing::Hear(nth, told) => self.hear(nth, told),
            Doing::Leave(_) => {}
            Doing::Unsent(pool) => {
                let (set, before) = (set(usize::from(pool) % 4), Some(self.now));
                let operation = PacedOperation::List;
                let call = CallCost { set: &set, operation, machines: 1, before };
                if let AdmissionAnswer::Go(grant) = self.gate.ask(&call, self.now) {
                    self.gate.unsent(grant, self.now);
                }
            }
            Doing::Pass(ms) => self.now = self.now.plus(Span::from_millis(ms.into())),
        }
    }

    /// In no window more than the limit holds and what comes back in it.
    fn within(&self, operations: &[PacedOperation], of_set: bool, size: u32, a_minute: u32) {
        let quota = Quota::with_period(Duration::from_secs(60) / a_minute).unwrap();
        let quota = quota.allow_burst(NonZeroU32::new(size).unwrap());
        for pool in 0..if of_set { 4 } else { 1 } {
            let calls = (self.left.iter())
                .filter(|(p, op, _)| operations.contains(op) && (!of_set || *p == pool));
            let (clock, mut last) = (FakeRelativeClock::default(), Time::default());
            let judge = RateLimiter::direct_with_clock(quota, clock.clone());
            for (.., at) in calls {
                clock.advance(Duration::from_millis(at.since(last).millis().unsigned_abs()));
                last = *at;
                assert!(judge.check().is_ok(), "{operations:?} of {pool} at {at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long_or(96, 32)))]

    /// A server that only we ask never refuses, however its tokens come back, whichever order its answers come in and
    /// whichever of them are lost.
    #[test]
    fn nothing_is_refused_where_nobody_else_asks(
        by_minute: bool,
        is_prompt: bool,
        steps in prop::collection::vec(doing(), 0..250),
    ) {
        let mut room = Room::new(by_minute);
        for step in &steps {
            room.step(step);
            if is_prompt {
                room.wake();
            }
        }
        prop_assert_eq!(room.server.refused, 0);
        // A call that leaves long after it was let through leaves beside those of a bucket that is full again.
        if !is_prompt {
            return Ok(());
        }
        let lists = [PacedOperation::List, PacedOperation::NextPage, PacedOperation::ReadView];
        room.within(&lists, true, 20, 10);
        room.within(&[PacedOperation::Raise], true, 8, 4);
        room.within(&[PacedOperation::ReadSet], true, 24, 12);
        room.within(&lists, false, 720, 360);
        let reads = [&lists[..], &[PacedOperation::ReadSet, PacedOperation::Poll, PacedOperation::ReadOther]];
        room.within(&reads.concat(), false, 250, 1_500);
        room.within(&[PacedOperation::Raise, PacedOperation::Delete], false, 200, 600);
    }

    /// Everybody who waits leaves or is told to come again when his time is over, and what is left behind is nothing.
    #[test]
    fn nobody_is_forgotten(steps in prop::collection::vec(doing(), 0..150)) {
        let mut room = Room::new(false);
        for step in &steps {
            room.step(step);
        }
        for _ in 0..2_000 {
            if room.waiting.is_empty() {
                break;
            }
            room.now = room.now.plus(Span::from_millis(100));
            for nth in (0..room.waiting.len()).rev() {
                room.look(nth as u8);
            }
        }
        prop_assert_eq!(room.waiting.len(), 0);
        prop_assert_eq!(room.gate.waiting(), 0);
        let made: u64 = room.gate.counts().iter().map(|(_, tally)| tally.made).sum();
        prop_assert_eq!(made as usize, room.left.len());
    }

    /// Where others use the subscription too, a refusal is answered by silence: nobody who shares the limit asks before the
    /// time that was told.
    #[test]
    fn a_refusal_is_answered_by_silence(steps in prop::collection::vec((doing(), 0_u8..40), 0..250)) {
        let mut room = Room::new(false);
        // Until when nobody may list this set, or any.
        let mut shut = [Time::default(); 5];
        for (step, drain) in &steps {
            if *drain < 4 {
                room.server.drain(PacedOperation::List, usize::from(*drain), room.now);
            }
            let before = room.left.len();
            room.step(step);
            for (pool, operation, at) in &room.left[before..] {
                if matches!(operation, PacedOperation::List | PacedOperation::NextPage | PacedOperation::ReadView) {
                    prop_assert!(*at >= shut[*pool] && *at >= shut[4], "{at} {shut:?}");
                }
            }
            // All answers come at once, so that what was told is known.
            while let Some((grant, answer)) = room.under_way.pop() {
                let answer = answer.unwrap();
                room.gate.observe(grant, &answer.hints(), room.now);
                let Some(wait) = answer.retry_after else { continue };
                let all = answer.remaining[0].0 == "HighCostGetVMScaleSetSubscriptionMaximum";
                if all {
                    shut[4] = room.now.plus(wait);
                } else if answer.remaining[0].0 == "HighCostGetVMScaleSetResource" {
                    let (pool, ..) = room.left[before];
                    // A burst is of one pool, and whoever looks is one.
                    shut[pool] = shut[pool].max(room.now.plus(wait));
                }
            }
        }
    }
}

#[test]
fn a_pool_that_is_looked_at_each_second_meets_no_limit() {
    for by_minute in [false, true] {
        let mut room = Room::new(by_minute);
        let mut listed = 0;
        for _ in 0..3_600 {
            if room.waiting.is_empty() {
                room.ask(0, PacedOperation::ReadSet, 1, Span::seconds(20));
                room.ask(0, PacedOperation::List, 1, Span::seconds(20));
            }
            for nth in (0..room.waiting.len()).rev() {
                room.look(nth as u8);
            }
            while !room.under_way.is_empty() {
                room.hear(0, true);
            }
            room.now = room.now.plus(Span::seconds(1));
            listed = room.left.iter().filter(|(_, op, _)| *op == PacedOperation::List).count();
        }
        assert_eq!(room.server.refused, 0);
        assert!((600..=620).contains(&listed), "ten a minute, and what was there: {listed}");
    }
}

#[test]
fn a_throttled_answer_without_a_time_is_a_minute() {
    let mut gate = Admission::default();
    let set = set(0);
    let call = CallCost { set: &set, operation: PacedOperation::Poll, machines: 0, before: None };
    let AdmissionAnswer::Go(grant) = gate.ask(&call, at(0)) else { panic!("nothing is before it") };
    gate.observe(grant, &ResponseHints { throttled: true, ..ResponseHints::default() }, at(0));
    let AdmissionAnswer::NotNow(why) = gate.ask(&call, at(0)) else { panic!("it is shut") };
    assert_eq!(why.retry_at, at(60_000));
}
