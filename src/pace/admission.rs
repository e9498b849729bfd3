//! Decides which call may leave now. [`Admission`] serves waiting calls by urgency and, at equal urgency, by turn.
//!
//! **Turns.** Each call gets a turn when it asks: the highest turn served so far, or the turn after the last call of
//! its own pool, if that is higher. Lower turns go first. So a pool with ten calls waits with its second until all
//! other pools had one.
//!
//! **No starvation.** A call that cannot pay reserves the buckets that are short, and the buckets of its set, against
//! all calls behind it; limits of one kind of work are nested, so no other call can take what it waits for. After three
//! times [`AGES_IN`] it has the highest urgency, and from then on only calls with lower turns pass it: at most as many
//! of each other pool as its own pool has waiting. It leaves within those 30 s, plus the time the limits need to pay
//! for the calls before it, plus the time for which a refusal shut them; otherwise it is told when to ask again.

use super::counts::Counts;
use super::limits::{Bill, LimitKey, LimitReading, LimitTable};
use super::operation::{CallPriority, FrontDoor, OperationClass, PacedOperation};
use super::response_hints::ResponseHints;
use super::sets::{Sets, subscription_of};
use crate::model::ids::ScaleSetId;
use crate::model::time::{Span, Time};

/// A waiting call gains one step of urgency for each such period.
// 10 s: a background read reaches the highest urgency after half a minute, half the life of a read.
pub const AGES_IN: Span = Span::seconds(10);

/// Longest wait of a read. A read that would wait longer is refused and told when to ask again.
// 20 s: a waiting turn holds its lease, and its earlier reads age.
pub const READ_PATIENCE: Span = Span::seconds(20);

/// A background read leaves this part of each limit to other calls, until it has waited for [`AGES_IN`].
const LEFT_BY_BACKGROUND: i64 = 4;

/// A call that asks to leave.
#[derive(Debug, Clone, Copy)]
pub struct CallCost<'a> {
    /// The scale set that the call concerns. If it concerns none: the id of the subscription, whose limits alone count.
    pub set: &'a ScaleSetId,
    pub operation: PacedOperation,
    /// Machines the call names; batch limits count them.
    pub machines: u32,
    /// Deadline for leaving; `None`: [`READ_PATIENCE`] from now.
    pub before: Option<Time>,
}

impl CallCost<'_> {
    /// The id of the subscription that is charged.
    pub fn subscription(&self) -> &str {
        subscription_of(self.set.as_str())
    }
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The call is paid for and may leave. The caller must report its end: [`Admission::observe`], [`Admission::lost`] or
/// [`Admission::unsent`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct AdmissionGrant(Bill);

/// The call will not leave in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limits of the cloud leave no room for this call before {retry_at}")]
pub struct NotNow {
    /// Earliest useful time to ask again.
    pub retry_at: Time,
}

#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum AdmissionAnswer {
    Go(AdmissionGrant),
    /// Ask with [`Admission::look`] when [`Admission::moved`] names it, or at this time; give up with
    /// [`Admission::leave`].
    Wait(Ticket, Time),
    NotNow(NotNow),
}

#[derive(Debug, Clone)]
struct Waiter {
    ticket: Ticket,
    bill: Bill,
    priority: CallPriority,
    since: Time,
    before: Time,
    /// Its turn among calls of equal urgency.
    start: u64,
    /// When to look again, and when it probably leaves.
    until: Time,
    likely: Time,
    granted: bool,
    /// It would miss its deadline even if it were alone.
    late: bool,
    /// Its state changed since the caller last looked.
    moved: bool,
}

/// Pure: time is an argument, and a waiting caller asks again.
#[derive(Debug, Clone)]
pub struct Admission {
    limits: LimitTable,
    sets: Sets,
    waiting: Vec<Waiter>,
    tickets: u64,
    /// The highest turn served so far.
    turn: u64,
    calls: u64,
    /// When the queue was last served; nothing changed since.
    served: Option<Time>,
    counts: Counts,
}

impl Default for Admission {
    fn default() -> Self {
        Self::new(FrontDoor::default())
    }
}

impl Waiter {
    /// Urgency with age, then turn, then order of arrival.
    fn rank(&self, now: Time) -> (i64, u64, Ticket) {
        let aged = now.since(self.since).millis() / AGES_IN.millis();
        ((self.priority as i64 - aged).max(0), self.start, self.ticket)
    }

    fn leaves_some(&self, now: Time) -> bool {
        self.priority == CallPriority::Background && now.since(self.since) < AGES_IN
    }

    /// When age next raises its urgency.
    fn ages_at(&self, now: Time) -> Time {
        let aged = now.since(self.since).millis() / AGES_IN.millis();
        self.since.plus(AGES_IN.times(aged + 1))
    }
}

impl Admission {
    pub fn new(door: FrontDoor) -> Self {
        Self {
            limits: LimitTable::new(door),
            sets: Sets::default(),
            waiting: Vec::new(),
            tickets: 0,
            turn: 0,
            calls: 0,
            served: None,
            counts: Counts::default(),
        }
    }

    /// A read showed the region of this set: from now on its calls count against the subscription's limits there.
    pub fn locate(&mut self, set: &ScaleSetId, location: &str, now: Time) {
        let limits = &mut self.limits;
        let set = self.sets.find(set, now, |gone| limits.forget(gone));
        self.sets.locate(set, location);
    }

    /// A person asked for a read of this set: it may leave once although a limit is shut.
    pub fn try_now(&mut self, set: &ScaleSetId, now: Time) {
        let limits = &mut self.limits;
        let set = self.sets.find(set, now, |gone| limits.forget(gone));
        if let Some(known) = self.sets.get_mut(set) {
            known.try_now(now);
        }
    }

    pub fn ask(&mut self, call: &CallCost<'_>, now: Time) -> AdmissionAnswer {
        let limits = &mut self.limits;
        let set = self.sets.find(call.set, now, |gone| limits.forget(gone));
        let Some(known) = self.sets.get(set) else {
            return AdmissionAnswer::NotNow(NotNow { retry_at: now });
        };
        let machines = match call.operation {
            PacedOperation::List | PacedOperation::NextPage => known.on_a_page,
            _ => call.machines,
        };
        let priority = call.operation.priority(known.is_open(now));
        let is_tried = call.operation.class() == OperationClass::Reads && known.is_tried(now);
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
        // Its minimum wait, if it were alone.
        waiter.until = self.ready_at(&waiter, now);
        if waiter.until > before && now <= before && is_tried {
            if let Some(known) = self.sets.get_mut(set) {
                known.used_try();
            }
            self.pay(bill, start, now);
            return AdmissionAnswer::Go(self.send(bill, now));
        }
        if waiter.until > before || now > before {
            self.counts.refused(call.operation);
            return AdmissionAnswer::NotNow(NotNow { retry_at: waiter.until.max(now) });
        }
        if let Some(known) = self.sets.get_mut(set) {
            known.next_turn = start + 1;
        }
        if self.waiting.is_empty() && waiter.until <= now {
            self.pay(bill, start, now);
            return AdmissionAnswer::Go(self.send(bill, now));
        }
        self.waiting.push(waiter);
        self.served = None;
        self.look(ticket, now)
    }

    /// Current state of a waiting call.
    pub fn look(&mut self, ticket: Ticket, now: Time) -> AdmissionAnswer {
        self.serve(now);
        let Some(at) = self.waiting.iter().position(|waiter| waiter.ticket == ticket) else {
            return AdmissionAnswer::NotNow(NotNow { retry_at: now });
        };
        let waiter = &mut self.waiting[at];
        waiter.moved = false;
        let operation = waiter.bill.operation;
        if waiter.granted {
            let waiter = self.waiting.swap_remove(at);
            if now > waiter.since {
                self.counts.waited(operation, now.since(waiter.since));
            }
            return AdmissionAnswer::Go(self.send(waiter.bill, now));
        }
        if now < waiter.before && !waiter.late {
            return AdmissionAnswer::Wait(ticket, waiter.until.min(waiter.before));
        }
        let waiter = self.waiting.swap_remove(at);
        self.counts.waited(operation, now.since(waiter.since));
        self.counts.refused(operation);
        self.serve_again(now);
        AdmissionAnswer::NotNow(NotNow { retry_at: waiter.likely.max(now.plus(Span::seconds(1))) })
    }

    /// The call stops waiting and was not sent.
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

    /// The call was answered.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn observe(&mut self, grant: AdmissionGrant, hints: &ResponseHints, now: Time) {
        let bill = grant.0;
        if let (PacedOperation::List | PacedOperation::NextPage, Some(charge), Some(set)) =
            (bill.operation, hints.charge, self.sets.get_mut(bill.set))
        {
            set.on_a_page = charge.max(1);
        }
        if !hints.throttled && self.sets.get(bill.set).is_some_and(|set| set.is_tried(now)) {
            self.limits.reopen(bill);
        }
        if self.limits.observe(bill, hints, now) {
            self.counts.throttled(bill.operation);
            self.call_back();
            if let Some(set) = self.sets.get_mut(bill.set) {
                set.refused();
            }
        }
        self.serve_again(now);
    }

    /// The call was sent and not answered: its cost stays spent.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn lost(&mut self, grant: AdmissionGrant, now: Time) {
        self.limits.ended(grant.0);
        self.serve_again(now);
    }

    /// The call was not sent after all.
    #[expect(clippy::needless_pass_by_value, reason = "a grant ends once")]
    pub fn unsent(&mut self, grant: AdmissionGrant, now: Time) {
        self.limits.give_back(grant.0);
        self.counts.unmade(grant.0.operation);
        self.serve_again(now);
    }

    /// Waiting calls whose state changed since their callers last looked.
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

    /// All known limits in their current state.
    pub fn limits(&mut self, now: Time) -> Vec<LimitReading> {
        let seen = self.limits.seen(now).into_iter().map(|(holder, seen)| {
            let set = self.sets.get(holder).map(|set| set.id.as_str().into());
            LimitReading { set, ..seen }
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

    /// When one bucket can pay, after `ahead` tokens went to other calls.
    fn paid_at(
        &mut self,
        waiter: &Waiter,
        key: LimitKey,
        cost: i64,
        ahead: i64,
        now: Time,
    ) -> Time {
        let pages = match waiter.bill.operation {
            // Pay for all pages; otherwise the listing would stall halfway.
            PacedOperation::List => {
                self.sets.get(waiter.bill.set).map_or(1, super::sets::SetLane::pages)
            }
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

    /// Calls that were let through but have not left wait again: their grants no longer hold.
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

    fn send(&mut self, bill: Bill, now: Time) -> AdmissionGrant {
        self.calls += 1;
        if let Some(set) = self.sets.get_mut(bill.set) {
            match bill.operation {
                PacedOperation::List => set.begin_listing(),
                PacedOperation::NextPage => set.turn_page(),
                _ => {}
            }
            if bill.operation.class() != OperationClass::Reads {
                set.wrote(now);
            }
        }
        self.counts.made(bill.operation);
        AdmissionGrant(Bill { call: self.calls, ..bill })
    }

    fn serve_again(&mut self, now: Time) {
        self.served = None;
        self.serve(now);
    }

    /// Let through all calls that may leave now, in order of rank. A call that cannot pay blocks later calls from the
    /// buckets that are short and from the buckets of its own set, so no call is passed for ever.
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

    /// `spoken`: for each bucket, the tokens that earlier calls wait for, and whether later calls must leave it alone.
    fn serve_one(&mut self, at: usize, spoken: &mut Vec<(LimitKey, i64, bool)>, now: Time) {
        let waiter = self.waiting[at].clone();
        let (mut until, mut alone, mut free) = (now, now, true);
        let mut wanted: Vec<(LimitKey, i64, bool)> = Vec::new();
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
        // Earlier calls may leave the queue at any time, so their reservations only give the probable time.
        let likely = until.max(now.plus(Span::from_millis(1)));
        let until = likely.min(waiter.ages_at(now));
        let waiter = &mut self.waiting[at];
        waiter.late = alone > waiter.before;
        waiter.moved |= until < waiter.until || waiter.late;
        (waiter.until, waiter.likely) = (until, likely);
    }
}
