//! One slot for each pool, and the order in which due ones are taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::ambient::Dice;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// The first wait after a failed turn; each further failure in a row doubles it.
// 2 s: a lost packet is over by then, and a throttled caller has said its own time.
pub(super) const BACK_OFF: Span = Span::seconds(2);

/// The longest wait between failing turns.
// 5 min: as often as an idle pool is looked at.
pub(super) const LONGEST_BACK_OFF: Span = Span::minutes(5);

/// A pool that only wants its next look goes before one of which there is news when it waits so much longer.
// 5 min: as long as an idle pool waits anyway. A house that cannot keep up with its looks acts on a change all the same, and
// changes without end keep nobody from his look.
pub(super) const LOOK_GIVES_WAY: Span = Span::minutes(5);

/// Who asks for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Something may have changed: it waits this long for more news, so that one turn does the work of many.
    News(Span),
    /// A person waits for the answer: at once, before all others, whatever failed before.
    Operator,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    /// When the pool is due; `None`: nobody asked.
    due: Option<Time>,
    operator: bool,
    /// Somebody told news; else it is only time for the next look.
    news: bool,
    running: bool,
    /// Forgotten while its turn runs: the slot stays until the turn is over, so that a pool that comes back meanwhile has
    /// no second turn beside it.
    forgotten: bool,
    /// Failed turns in a row, and until when they keep the next one waiting.
    failures: u32,
    not_before: Option<Time>,
}

#[derive(Debug, Clone)]
pub struct Wake {
    slots: BTreeMap<PoolName, Slot>,
    /// The slots that wait for their time, and no others, in the order in which they are taken: operators' before the rest.
    operators: BTreeSet<(Time, PoolName)>,
    news: BTreeSet<(Time, PoolName)>,
    looks: BTreeSet<(Time, PoolName)>,
    dice: Dice,
}

/// Among which others a slot waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Operators,
    News,
    Looks,
}

impl Slot {
    /// When a turn may begin, if one was asked for and none is running, and among whom it waits.
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

    /// Bring the next turn forward, never back: the window of the first ask holds, or a busy pool would never run.
    fn sooner(&mut self, at: Time) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Wake {
    pub fn new(dice: Dice) -> Self {
        let (operators, news, looks) = Default::default();
        Self { slots: BTreeMap::new(), operators, news, looks, dice }
    }

    /// Ask for a turn. Asked while one runs, another follows it.
    pub fn ask(&mut self, pool: &PoolName, why: Why, now: Time) {
        if !self.slots.contains_key(pool) {
            self.slots.insert(pool.clone(), Slot::default());
        }
        self.change(pool, |slot| {
            slot.forgotten = false;
            match why {
                Why::News(window) => {
                    slot.news = true;
                    slot.sooner(now.plus(window));
                }
                Why::Operator => {
                    slot.operator = true;
                    slot.sooner(now);
                }
            }
        });
    }

    /// Take the next pool whose turn it is: it runs until [`Wake::done`] or [`Wake::failed`]. Operators first, then
    /// news, then looks; of each whoever is due longest, and none of the last two starves the other.
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
        });
        Some(pool)
    }

    /// When [`Wake::next`] has something to give, if nothing else happens; in the past where it has already.
    pub fn next_at(&self) -> Option<Time> {
        let first = |order: &BTreeSet<(Time, PoolName)>| order.first().map(|(at, _)| *at);
        [&self.operators, &self.news, &self.looks].into_iter().filter_map(first).min()
    }

    /// When the next turn of a pool is due; `None`: nobody asked for one.
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

    /// Its turn failed: again after a while, longer each time, no two pools in step; not before `retry_at`, if one was told.
    pub fn failed(&mut self, pool: &PoolName, now: Time, retry_at: Option<Time>) {
        let Some(slot) = self.slots.get(pool) else { return };
        let doubled = BACK_OFF.times(1_i64 << slot.failures.min(16)).min(LONGEST_BACK_OFF);
        // Between a half and the whole.
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

    /// The pool is no longer ours: nothing that was asked for it is done. A turn that runs is not cut off.
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

    /// Change a slot, and its place in the order with it.
    fn change(&mut self, pool: &PoolName, how: impl FnOnce(&mut Slot)) {
        let Some(slot) = self.slots.get_mut(pool) else { return };
        let before = slot.ready();
        how(slot);
        let after = slot.ready();
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
            self.change(pool, |slot| slot.due = None);
            self.slots.remove(pool);
        }
    }
}
