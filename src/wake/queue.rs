//! One slot for each pool, and the order in which due pools run.

use std::collections::{BTreeMap, BTreeSet};

use crate::ambient::Dice;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// The first wait after a failed turn; each consecutive failure doubles it.
// 2 s: a lost packet has been resent by then, and a throttling server names its own time.
pub(super) const BACK_OFF: Span = Span::seconds(2);

/// The longest wait between failing turns.
// 5 min: the interval between looks at an idle pool.
pub(super) const LONGEST_BACK_OFF: Span = Span::minutes(5);

/// A pool that is only due for its next look precedes a pool with news if it has been due this much longer.
// 5 min: as long as an idle pool waits anyway. A daemon that cannot keep up with its looks still acts on changes, and
// an endless stream of changes does not starve the looks.
pub(super) const LOOK_GIVES_WAY: Span = Span::minutes(5);

/// Why a turn is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// Something may have changed: the turn waits this long for more news, so that one turn does the work of many.
    News(Span),
    /// An operator waits for the answer: run at once, before all others, and ignore backoff.
    Operator,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    /// When the pool is due; `None`: no turn is requested.
    due: Option<Time>,
    operator: bool,
    /// There is news; otherwise it is only time for the next look.
    news: bool,
    running: bool,
    /// Forgotten while its turn runs. The slot stays until the turn ends, so that a pool that comes back in the
    /// meantime does not get a second concurrent turn.
    forgotten: bool,
    /// Consecutive failed turns, and the end of their backoff.
    failures: u32,
    not_before: Option<Time>,
    /// When something begun is looked at, between two turns.
    look: Option<Time>,
}

#[derive(Debug, Clone)]
pub struct Wake {
    slots: BTreeMap<PoolName, Slot>,
    /// Exactly the slots that wait for their time, in the order in which they run: operators' requests before the rest.
    operators: BTreeSet<(Time, PoolName)>,
    news: BTreeSet<(Time, PoolName)>,
    looks: BTreeSet<(Time, PoolName)>,
    /// The slots that wait for a look between two turns.
    between: BTreeSet<(Time, PoolName)>,
    dice: Dice,
}

/// The queue in which a slot waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Operators,
    News,
    Looks,
}

impl Slot {
    /// When the next turn may begin and in which queue it waits, if one is requested and none is running.
    fn ready(&self) -> Option<(Order, Time)> {
        let due = self.due.filter(|_| !self.running)?;
        let held = self.not_before.filter(|_| !self.operator);
        let order = match (self.operator, self.news) {
            (true, _) => Order::Operators,
            (false, true) => Order::News,
            (false, false) => Order::Looks,
        };
        Some((order, held.map_or(due, |at| at.max(due))))
    }

    fn look_ready(&self) -> Option<Time> {
        self.look.filter(|_| !self.running)
    }

    /// Move the next turn earlier, never later: if later requests extended the window, a busy pool would never run.
    fn sooner(&mut self, at: Time) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Wake {
    pub fn new(dice: Dice) -> Self {
        let (operators, news, looks, between) = Default::default();
        Self { slots: BTreeMap::new(), operators, news, looks, between, dice }
    }

    /// Request a turn. A request during a turn causes another turn after it.
    pub fn ask(&mut self, pool: &PoolName, why: WakeReason, now: Time) {
        if !self.slots.contains_key(pool) {
            self.slots.insert(pool.clone(), Slot::default());
        }
        self.change(pool, |slot| {
            slot.forgotten = false;
            match why {
                WakeReason::News(window) => {
                    slot.news = true;
                    slot.sooner(now.plus(window));
                }
                WakeReason::Operator => {
                    slot.operator = true;
                    slot.sooner(now);
                }
            }
        });
    }

    /// Take the next due pool: its turn runs until [`Wake::done`] or [`Wake::failed`]. Operators come first, then news,
    /// then looks; within each, the pool that has been due longest. News and looks do not starve each other.
    pub fn next(&mut self, now: Time) -> Option<PoolName> {
        fn due(order: &BTreeSet<(Time, PoolName)>, now: Time) -> Option<&(Time, PoolName)> {
            order.first().filter(|(at, _)| *at <= now)
        }
        let (news, look) = (due(&self.news, now), due(&self.looks, now));
        let rest = match (news, look) {
            (Some(news), Some(look)) if news.0.since(look.0) >= LOOK_GIVES_WAY => Some(look),
            (news, look) => news.or(look),
        };
        let (_, pool) = due(&self.operators, now).or(rest)?.clone();
        self.change(&pool, |slot| {
            (slot.due, slot.operator, slot.news, slot.running) = (None, false, false, true);
            slot.look = None;
        });
        Some(pool)
    }

    /// Take the pool whose look has been due longest. It lasts until [`Wake::looked`], and no turn of the pool begins
    /// before that. Take due turns first: a turn looks as well.
    pub fn next_look(&mut self, now: Time) -> Option<PoolName> {
        let (_, pool) = self.between.first().filter(|(at, _)| *at <= now)?.clone();
        self.change(&pool, |slot| (slot.look, slot.running) = (None, true));
        Some(pool)
    }

    /// When [`Wake::next`] or [`Wake::next_look`] will return a pool, if nothing else happens; in the past if one of
    /// them would already.
    pub fn next_at(&self) -> Option<Time> {
        let first = |order: &BTreeSet<(Time, PoolName)>| order.first().map(|(at, _)| *at);
        let all = [&self.operators, &self.news, &self.looks, &self.between];
        all.into_iter().filter_map(first).min()
    }

    /// When the next turn of a pool is due; `None`: none is requested.
    pub fn due(&self, pool: &PoolName) -> Option<Time> {
        self.slots.get(pool)?.ready().map(|(_, at)| at)
    }

    /// Its turn ended well, and wants another no later than `again`.
    pub fn done(&mut self, pool: &PoolName, again: Time) {
        self.change(pool, |slot| {
            (slot.running, slot.failures, slot.not_before) = (false, 0, None);
            slot.sooner(again);
        });
        self.drop_forgotten(pool);
    }

    /// Look at the pool at this time, unless a turn of it begins before.
    pub fn look_at(&mut self, pool: &PoolName, at: Time) {
        self.change(pool, |slot| slot.look = Some(at));
    }

    /// A look has ended. Its turn stays due when it was.
    pub fn looked(&mut self, pool: &PoolName) {
        self.change(pool, |slot| slot.running = false);
        self.drop_forgotten(pool);
    }

    /// Its turn failed: retry with exponential backoff and jitter, not before `retry_at` if there is one.
    pub fn failed(&mut self, pool: &PoolName, now: Time, retry_at: Option<Time>) {
        let Some(slot) = self.slots.get(pool) else { return };
        let doubled = BACK_OFF.times(1_i64 << slot.failures.min(16)).min(LONGEST_BACK_OFF);
        // Between half of the backoff and all of it.
        let half = doubled.millis() / 2;
        let jitter = i64::try_from(self.dice.below(half.unsigned_abs() + 1)).unwrap_or(0);
        let again = now.plus(Span::from_millis(half + jitter));
        let again = retry_at.map_or(again, |told| told.max(again));
        self.change(pool, |slot| {
            slot.running = false;
            slot.failures = slot.failures.saturating_add(1);
            slot.not_before = Some(again);
            slot.sooner(again);
        });
        self.drop_forgotten(pool);
    }

    /// The pool is no longer managed: drop its requests. A running turn is not interrupted.
    pub fn forget(&mut self, pool: &PoolName) {
        self.change(pool, |slot| {
            *slot = Slot { running: slot.running, forgotten: true, ..Slot::default() };
        });
        if !self.is_running(pool) {
            self.slots.remove(pool);
        }
    }

    pub fn is_running(&self, pool: &PoolName) -> bool {
        self.slots.get(pool).is_some_and(|slot| slot.running)
    }

    /// Change a slot, and its place in the queues with it.
    fn change(&mut self, pool: &PoolName, how: impl FnOnce(&mut Slot)) {
        let Some(slot) = self.slots.get_mut(pool) else { return };
        let (before, look_before) = (slot.ready(), slot.look_ready());
        how(slot);
        let (after, look_after) = (slot.ready(), slot.look_ready());
        if look_before != look_after {
            if let Some(at) = look_before {
                self.between.remove(&(at, pool.clone()));
            }
            self.between.extend(look_after.map(|at| (at, pool.clone())));
        }
        if before == after {
            return;
        }
        if let Some((order, at)) = before {
            self.order(order).remove(&(at, pool.clone()));
        }
        if let Some((order, at)) = after {
            self.order(order).insert((at, pool.clone()));
        }
    }

    fn order(&mut self, order: Order) -> &mut BTreeSet<(Time, PoolName)> {
        match order {
            Order::Operators => &mut self.operators,
            Order::News => &mut self.news,
            Order::Looks => &mut self.looks,
        }
    }

    fn drop_forgotten(&mut self, pool: &PoolName) {
        if self.slots.get(pool).is_some_and(|slot| slot.forgotten) {
            self.change(pool, |slot| (slot.due, slot.look) = (None, None));
            self.slots.remove(pool);
        }
    }
}
