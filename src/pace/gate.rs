//! Whose call may leave now. Calls that cannot all leave are served by urgency and, among equals, by turns.
//!
//! **Turns.** Each call gets a number when it asks: where the service has come to, or behind the calls of its own pool that
//! came before. Lower numbers go first. So a pool with ten calls waits with its second until all others had one.
//!
//! **Nobody starves.** A call that cannot pay holds the buckets that are short, and those of its set, against all behind
//! it; the limits of one kind of work lie inside one another, so what it waits for cannot be taken from under it. After
//! three times [`AGES_IN`] it is among the most urgent, and from then on only calls with lower numbers pass it: of each
//! other pool not more than its own pool has waiting. It leaves within those 30 s, the time the limits need to pay what is
//! before it, and the time for which somebody shut them; or it is told when to come again.

use super::counts::Counts;
use super::limits::{Bill, Key, LimitSeen, Limits};
use super::operation::{Class, FrontDoor, Operation, Priority};
use super::sets::Sets;
use super::told::Told;
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};

/// For each such time that a call has waited it is taken for more urgent by one.
// 10 s: so a background read is among the most urgent after half a minute, half the life of a read.
pub const AGES_IN: Span = Span::seconds(10);

/// A read that would wait longer is not waited for: its turn is told when to come again.
// 20 s: a turn that waits holds its lease, and what it learnt before grows old.
pub const READ_PATIENCE: Span = Span::seconds(20);

/// Of each limit a background read leaves this part to the others, until it has waited once for [`AGES_IN`].
const LEFT_BY_BACKGROUND: i64 = 4;

/// A call that would like to leave.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The pool's scale set, whatever is asked about.
    pub set: &'a ScaleSetId,
    pub operation: Operation,
    /// Machines it names; the limits of batches count them.
    pub machines: u32,
    /// It must have left by then; `None`: [`READ_PATIENCE`] from now.
    pub before: Option<Time>,
}

/// A place among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// It may leave, and is paid for. Its end must be told: [`Gate::told`], [`Gate::lost`] or [`Gate::unsent`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct Grant(Bill);

/// It will not leave in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limits of the cloud leave no room for this call before {retry_at}")]
pub struct NotNow {
    /// When it is worth asking again.
    pub retry_at: Time,
}

#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Go(Grant),
    /// Ask with [`Gate::look`] when [`Gate::moved`] names it, or at this time; give it up with [`Gate::leave`].
    Wait(Ticket, Time),
    NotNow(NotNow),
}

#[derive(Debug, Clone)]
struct Waiter {
    ticket: Ticket,
    bill: Bill,
    priority: Priority,
    since: Time,
    before: Time,
    /// Its turn among equals.
    start: u64,
    /// When to look again, and when it is likely to leave.
    until: Time,
    likely: Time,
    granted: bool,
    /// Even alone it would not leave in time.
    late: bool,
    /// Its standing changed since it looked.
    moved: bool,
}

/// Pure: time is an argument, and whoever waits asks again.
#[derive(Debug, Clone)]
pub struct Gate {
    limits: Limits,
    sets: Sets,
    waiting: Vec<Waiter>,
    tickets: u64,
    /// How far the service has come: the highest turn that was served.
    turn: u64,
    calls: u64,
    /// When those that wait were last served; nothing changed for them since.
    served: Option<Time>,
    counts: Counts,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new(FrontDoor::default())
    }
}

impl Waiter {
    /// Urgency with age, then turns, then who came first.
    fn rank(&self, now: Time) -> (i64, u64, Ticket) {
        let aged = now.since(self.since).millis() / AGES_IN.millis();
        ((self.priority as i64 - aged).max(0), self.start, self.ticket)
    }

    fn leaves_some(&self, now: Time) -> bool {
        self.priority == Priority::Background && now.since(self.since) < AGES_IN
    }

    /// When its age next makes a difference.
    fn ages_at(&self, now: Time) -> Time {
        let aged = now.since(self.since).millis() / AGES_IN.millis();
        self.since.plus(AGES_IN.times(aged + 1))
    }
}

impl Gate {
    pub fn new(door: FrontDoor) -> Self {
        Self {
            limits: Limits::new(door),
            sets: Sets::default(),
            waiting: Vec::new(),
            tickets: 0,
            turn: 0,
            calls: 0,
            served: None,
            counts: Counts::default(),
        }
    }

    /// A read showed where this set is: from now on its calls count for the subscription's part in that region.
    pub fn locate(&mut self, set: &ScaleSetId, location: &str, now: Time) {
        let limits = &mut self.limits;
        let set = self.sets.find(set, now, |gone| limits.forget(gone));
        self.sets.locate(set, location);
    }

    /// A person asks for a look at this set: it is tried once though a limit is shut.
    pub fn try_now(&mut self, set: &ScaleSetId, now: Time) {
        let limits = &mut self.limits;
        let set = self.sets.find(set, now, |gone| limits.forget(gone));
        if let Some(known) = self.sets.get_mut(set) {
            known.try_now(now);
        }
    }

    pub fn ask(&mut self, call: &Call<'_>, now: Time) -> Asked {
        let limits = &mut self.limits;
        let set = self.sets.find(call.set, now, |gone| limits.forget(gone));
        let Some(known) = self.sets.get(set) else {
            return Asked::NotNow(NotNow { retry_at: now });
        };
        let machines = match call.operation {
            Operation::List | Operation::NextPage => known.on_a_page,
            _ => call.machines,
        };
        let priority = call.operation.priority(known.is_open(now));
        let is_tried = call.operation.class() == Class::Reads && known.is_tried(now);
        let (region, subscription) = (known.region, known.subscription);
        let (operation, start) = (call.operation, self.turn.max(known.next_turn));
        let bill = Bill { set, region, subscription, operation, machines, call: 0 };
        let before = call.before.unwrap_or(now.plus(READ_PATIENCE));
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let mut waiter = Waiter {
            ticket,
            bill,
            priority,
            since: now,
            before,
            start,
            until: now,
            likely: now,
            granted: false,
            late: false,
            moved: false,
        };
        // The least it has to wait, if it were alone.
        waiter.until = self.ready_at(&waiter, now);
        if waiter.until > before && now <= before && is_tried {
            if let Some(known) = self.sets.get_mut(set) {
                known.used_try();
            }
            self.pay(bill, start, now);
            return Asked::Go(self.send(bill, now));
        }
        if waiter.until > before || now > before {
            self.counts.refused(call.operation);
            return Asked::NotNow(NotNow { retry_at: waiter.until.max(now) });
        }
        if let Some(known) = self.sets.get_mut(set) {
            known.next_turn = start + 1;
        }
        if self.waiting.is_empty() && waiter.until <= now {
            self.pay(bill, start, now);
            return Asked::Go(self.send(bill, now));
        }
        self.waiting.push(waiter);
        self.served = None;
        self.look(ticket, now)
    }

    /// How a call that waits stands now.
    pub fn look(&mut self, ticket: Ticket, now: Time) -> Asked {
        self.serve(now);
        let Some(at) = self.waiting.iter().position(|waiter| waiter.ticket == ticket) else {
            return Asked::NotNow(NotNow { retry_at: now });
        };
        let waiter = &mut self.waiting[at];
        waiter.moved = false;
        let operation = waiter.bill.operation;
        if waiter.granted {
            let waiter = self.waiting.swap_remove(at);
            if now > waiter.since {
                self.counts.waited(operation, now.since(waiter.since));
            }
            return Asked::Go(self.send(waiter.bill, now));
        }
        if now < waiter.before && !waiter.late {
            return Asked::Wait(ticket, waiter.until.min(waiter.before));
        }
        let waiter = self.waiting.swap_remove(at);
        self.counts.waited(operation, now.since(waiter.since));
        self.counts.refused(operation);
        self.serve_again(now);
        Asked::NotNow(NotNow { retry_at: waiter.likely.max(now.plus(Span::seconds(1))) })
    }

    /// It waits no longer, and was not sent.
    pub fn leave(&mut self, ticket: Ticket, now: Time) {
        let Some(at) = self.waiting.iter().position(|waiter| waiter.ticket == ticket) else {
            return;
        };
        let waiter = self.waiting.swap_remove(at);
        if waiter.granted {
            self.limits.give_back(waiter.bill);
        }
        self.serve_again(now);
    }

    /// Its answer came.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn told(&mut self, grant: Grant, told: &Told<'_>, now: Time) {
        let bill = grant.0;
        if let (Operation::List | Operation::NextPage, Some(charge), Some(set)) =
            (bill.operation, told.charge, self.sets.get_mut(bill.set))
        {
            set.on_a_page = charge.max(1);
        }
        if !told.throttled && self.sets.get(bill.set).is_some_and(|set| set.is_tried(now)) {
            self.limits.reopen(bill);
        }
        if self.limits.told(bill, told, now) {
            self.counts.throttled(bill.operation);
            self.call_back();
            if let Some(set) = self.sets.get_mut(bill.set) {
                set.refused();
            }
        }
        self.serve_again(now);
    }

    /// It was sent, and no answer came: what it cost stays spent.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn lost(&mut self, grant: Grant, now: Time) {
        self.limits.ended(grant.0);
        self.serve_again(now);
    }

    /// It was not sent after all.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn unsent(&mut self, grant: Grant, now: Time) {
        self.limits.give_back(grant.0);
        self.counts.unmade(grant.0.operation);
        self.serve_again(now);
    }

    /// Those whose standing changed since they looked.
    pub fn moved(&self) -> impl Iterator<Item = Ticket> + '_ {
        self.waiting.iter().filter(|waiter| waiter.moved).map(|waiter| waiter.ticket)
    }

    pub fn is_moved(&self, ticket: Ticket) -> bool {
        self.waiting.iter().all(|waiter| waiter.ticket != ticket || waiter.moved)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// All limits that are known, as they stand.
    pub fn limits(&mut self, now: Time) -> Vec<LimitSeen> {
        let seen = self.limits.seen(now).into_iter().map(|(holder, seen)| {
            let set = self.sets.get(holder).map(|set| set.id.as_str().into());
            LimitSeen { set, ..seen }
        });
        seen.collect()
    }

    /// When all its buckets can pay, if it were alone.
    fn ready_at(&mut self, waiter: &Waiter, now: Time) -> Time {
        let mut at = now;
        for n in 0..self.limits.charged(waiter.bill.operation) {
            if let Some((key, cost)) = self.limits.nth(waiter.bill, n) {
                at = at.max(self.paid_at(waiter, key, cost, 0, now));
            }
        }
        at
    }

    /// When one bucket can pay it, after `ahead` tokens went to others.
    fn paid_at(&mut self, waiter: &Waiter, key: Key, cost: i64, ahead: i64, now: Time) -> Time {
        let pages = match waiter.bill.operation {
            // All pages, or it would stand still in the middle.
            Operation::List => self.sets.get(waiter.bill.set).map_or(1, super::sets::Set::pages),
            _ => 1,
        };
        let bucket = self.limits.bucket(key, now);
        let need = cost.saturating_mul(i64::from(pages));
        if !waiter.leaves_some(now) {
            return bucket.ready_at(need, ahead, now);
        }
        let left = bucket.most() / LEFT_BY_BACKGROUND;
        let modest = bucket.ready_at(need.saturating_add(left), ahead, now);
        let greedy = bucket.ready_at(need, ahead, now).max(waiter.since.plus(AGES_IN));
        modest.min(greedy)
    }

    /// Those that were let through and did not leave yet stand in line again: what let them through is no longer so.
    fn call_back(&mut self) {
        for waiter in self.waiting.iter_mut().filter(|waiter| waiter.granted) {
            self.limits.give_back(waiter.bill);
            waiter.granted = false;
        }
    }

    fn pay(&mut self, bill: Bill, turn: u64, now: Time) {
        self.limits.take(bill, now);
        self.turn = self.turn.max(turn);
    }

    fn send(&mut self, bill: Bill, now: Time) -> Grant {
        self.calls += 1;
        if let Some(set) = self.sets.get_mut(bill.set) {
            match bill.operation {
                Operation::List => set.begin_listing(),
                Operation::NextPage => set.turn_page(),
                _ => {}
            }
            if bill.operation.class() != Class::Reads {
                set.wrote(now);
            }
        }
        self.counts.made(bill.operation);
        Grant(Bill { call: self.calls, ..bill })
    }

    fn serve_again(&mut self, now: Time) {
        self.served = None;
        self.serve(now);
    }

    /// Let through all that may leave now. In order: who cannot pay keeps those behind him from the buckets that are short,
    /// and from those of his own set, so that nobody is passed for ever.
    fn serve(&mut self, now: Time) {
        if self.served == Some(now) || self.waiting.iter().all(|waiter| waiter.granted) {
            return;
        }
        self.served = Some(now);
        let mut order: Vec<_> = (self.waiting.iter().enumerate())
            .filter(|(_, waiter)| !waiter.granted)
            .map(|(at, waiter)| (waiter.rank(now), at))
            .collect();
        order.sort_unstable();
        let mut spoken = Vec::new();
        for (_, at) in order {
            self.serve_one(at, &mut spoken, now);
        }
    }

    /// `spoken`: by bucket, the tokens that those before it wait for, and whether those behind must leave it alone.
    fn serve_one(&mut self, at: usize, spoken: &mut Vec<(Key, i64, bool)>, now: Time) {
        let waiter = self.waiting[at].clone();
        let (mut until, mut alone, mut free) = (now, now, true);
        let mut wanted: Vec<(Key, i64, bool)> = Vec::new();
        for n in 0..self.limits.charged(waiter.bill.operation) {
            let Some((key, cost)) = self.limits.nth(waiter.bill, n) else { continue };
            let before = spoken.iter().find(|(spoken, ..)| *spoken == key);
            let (ahead, held) = before.map_or((0, false), |(_, ahead, held)| (*ahead, *held));
            let paid = self.paid_at(&waiter, key, cost, 0, now);
            alone = alone.max(paid);
            free &= !held;
            until = until.max(match held {
                true => self.paid_at(&waiter, key, cost, ahead, now),
                false => paid,
            });
            wanted.push((key, cost, paid > now || key.0 == waiter.bill.set));
        }
        if free && until <= now {
            self.pay(waiter.bill, waiter.start, now);
            let waiter = &mut self.waiting[at];
            (waiter.granted, waiter.moved) = (true, true);
            return;
        }
        for (key, cost, hold) in wanted {
            match spoken.iter_mut().find(|(spoken, ..)| *spoken == key) {
                Some((_, ahead, held)) => {
                    *ahead += cost;
                    *held |= hold;
                }
                None => spoken.push((key, cost, hold)),
            }
        }
        // Whoever is before it may leave at any time, so what is spoken for tells only the likely time.
        let likely = until.max(now.plus(Span::from_millis(1)));
        let until = likely.min(waiter.ages_at(now));
        let waiter = &mut self.waiting[at];
        waiter.late = alone > waiter.before;
        waiter.moved |= until < waiter.until || waiter.late;
        (waiter.until, waiter.likely) = (until, likely);
    }
}
