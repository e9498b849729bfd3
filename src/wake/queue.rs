//! One slot for each pool, and the order in which due ones are taken.

use std::collections::BTreeMap;

use crate::ambient::Dice;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// The first wait after a failed turn; each further failure in a row doubles it.
// 2 s: a lost packet is over by then, and a throttled caller has said its own time.
const BACK_OFF: Span = Span::seconds(2);

/// The longest wait between failing turns.
// 5 min: as often as an idle pool is looked at.
const LONGEST_BACK_OFF: Span = Span::minutes(5);

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
    running: bool,
    /// Failed turns in a row, and until when they keep the next one waiting.
    failures: u32,
    not_before: Option<Time>,
}

#[derive(Debug, Clone)]
pub struct Wake {
    slots: BTreeMap<PoolName, Slot>,
    dice: Dice,
}

impl Slot {
    /// When a turn may begin, if one was asked for and none is running.
    fn ready_at(&self) -> Option<Time> {
        let due = self.due.filter(|_| !self.running)?;
        if self.operator { Some(due) } else { Some(self.not_before.map_or(due, |at| at.max(due))) }
    }

    /// Bring the next turn forward, never back: the window of the first ask holds, or a busy pool would never run.
    fn sooner(&mut self, at: Time) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Wake {
    pub fn new(dice: Dice) -> Self {
        Self { slots: BTreeMap::new(), dice }
    }

    /// Ask for a turn. Asked while one runs, another follows it.
    pub fn ask(&mut self, pool: &PoolName, why: Why, now: Time) {
        let slot = self.slots.entry(pool.clone()).or_default();
        match why {
            Why::News(window) => slot.sooner(now.plus(window)),
            Why::Operator => {
                slot.operator = true;
                slot.sooner(now);
            }
        }
    }

    /// Take the next pool whose turn it is: it runs until [`Wake::done`], [`Wake::failed`] or [`Wake::forget`]. Operators
    /// first, then whoever is due longest, so that no pool starves another.
    pub fn next(&mut self, now: Time) -> Option<PoolName> {
        let ready = self.slots.iter().filter_map(|(pool, slot)| {
            let at = slot.ready_at().filter(|at| *at <= now)?;
            Some((!slot.operator, at, pool))
        });
        let pool = ready.min().map(|(.., pool)| pool.clone())?;
        let slot = self.slots.get_mut(&pool)?;
        (slot.due, slot.operator, slot.running) = (None, false, true);
        Some(pool)
    }

    /// When [`Wake::next`] has something to give, if nothing else happens; in the past where it has already.
    pub fn next_at(&self) -> Option<Time> {
        self.slots.values().filter_map(Slot::ready_at).min()
    }

    /// Its turn ended well, and wants another no later than `again`.
    pub fn done(&mut self, pool: &PoolName, again: Time) {
        let Some(slot) = self.slots.get_mut(pool) else { return };
        (slot.running, slot.failures, slot.not_before) = (false, 0, None);
        slot.sooner(again);
    }

    /// Its turn failed: again after a while, longer each time, no two pools in step; not before `retry_at`, if one was told.
    pub fn failed(&mut self, pool: &PoolName, now: Time, retry_at: Option<Time>) {
        let Some(slot) = self.slots.get_mut(pool) else { return };
        let doubled = BACK_OFF.times(1_i64 << slot.failures.min(16)).min(LONGEST_BACK_OFF);
        // Between a half and the whole.
        let half = doubled.millis() / 2;
        let jitter = i64::try_from(self.dice.below(half.unsigned_abs() + 1)).unwrap_or(0);
        let again = now.plus(Span::from_millis(half + jitter));
        let again = retry_at.map_or(again, |told| told.max(again));
        slot.running = false;
        slot.failures = slot.failures.saturating_add(1);
        slot.not_before = Some(again);
        slot.sooner(again);
    }

    /// The pool is no longer ours.
    pub fn forget(&mut self, pool: &PoolName) {
        self.slots.remove(pool);
    }

    pub fn is_running(&self, pool: &PoolName) -> bool {
        self.slots.get(pool).is_some_and(|slot| slot.running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn wake() -> Wake {
        Wake::new(Dice::from_seed(1))
    }

    const WINDOW: Why = Why::News(Span::seconds(5));

    #[test]
    fn many_asks_make_one_turn_at_the_end_of_the_window() {
        let (mut wake, web) = (wake(), PoolName::new("web"));
        for ms in [0, 1_000, 4_999] {
            wake.ask(&web, WINDOW, at(ms));
        }
        assert_eq!(wake.next_at(), Some(at(5_000)));
        assert_eq!(wake.next(at(4_999)), None);
        assert_eq!(wake.next(at(5_000)), Some(web.clone()));
        assert_eq!(wake.next(at(9_000)), None, "all of them were one turn");
        wake.ask(&web, WINDOW, at(6_000));
        assert_eq!(wake.next(at(20_000)), None, "its turn is not over");
        wake.done(&web, at(300_000));
        assert_eq!(wake.next(at(20_000)), Some(web), "an ask during a turn is not lost");
    }

    #[test]
    fn an_operator_goes_first_and_at_once() {
        let mut wake = wake();
        let (web, api) = (PoolName::new("web"), PoolName::new("api"));
        wake.ask(&api, Why::News(Span::ZERO), at(0));
        wake.ask(&web, WINDOW, at(1_000));
        wake.ask(&web, Why::Operator, at(2_000));
        assert_eq!(wake.next(at(2_000)), Some(web.clone()));
        wake.failed(&web, at(2_500), Some(at(60_000)));
        wake.ask(&web, WINDOW, at(3_000));
        assert_eq!(wake.next(at(3_000)), Some(api));
        assert_eq!(wake.next(at(59_999)), None, "news do not shorten what was told");
        wake.ask(&web, Why::Operator, at(4_000));
        assert_eq!(wake.next(at(4_000)), Some(web));
    }

    #[test]
    fn failures_wait_longer_each_time_and_never_too_long() {
        let (mut wake, web) = (wake(), PoolName::new("web"));
        wake.ask(&web, Why::News(Span::ZERO), at(0));
        let mut now = at(0);
        for n in 0..40_u32 {
            assert_eq!(wake.next(now), Some(web.clone()));
            wake.failed(&web, now, None);
            let next = wake.next_at().unwrap();
            let most = BACK_OFF.times(1 << n.min(16)).min(LONGEST_BACK_OFF);
            assert!(next.since(now) <= most && next.since(now).millis() >= most.millis() / 2);
            now = next;
        }
        assert_eq!(wake.next(now), Some(web.clone()));
        wake.done(&web, now);
        assert_eq!(wake.next(now), Some(web.clone()));
        wake.failed(&web, now, None);
        assert!(
            wake.next_at().unwrap().since(now) <= BACK_OFF,
            "a good turn forgives the bad ones"
        );
    }

    #[derive(Debug, Clone)]
    enum Doing {
        News(u8, u16),
        Operator(u8),
        Next,
        End(u8, bool),
        Pass(u16),
    }

    fn doing() -> impl Strategy<Value = Doing> {
        prop_oneof![
            (0_u8..4, 0_u16..9_000).prop_map(|(pool, window)| Doing::News(pool, window)),
            (0_u8..4).prop_map(Doing::Operator),
            Just(Doing::Next),
            (0_u8..4, any::<bool>()).prop_map(|(pool, well)| Doing::End(pool, well)),
            (0_u16..9_000).prop_map(Doing::Pass),
        ]
    }

    proptest! {
        /// Whatever comes in whatever order: no pool runs twice at a time, none runs before it is due, an operator waits
        /// for nobody, and after every ask a turn begins.
        #[test]
        fn no_ask_is_lost_and_no_pool_runs_twice(steps in prop::collection::vec(doing(), 0..200)) {
            let (mut wake, mut now) = (wake(), at(0));
            let name = |pool: u8| PoolName::new(format!("pool-{pool}"));
            // By pool: asked and not yet begun, by an operator, running.
            let mut asked = [false; 4];
            let mut operator = [false; 4];
            let mut running = [false; 4];
            for step in steps {
                match step {
                    Doing::News(pool, window) => {
                        wake.ask(&name(pool), Why::News(Span::from_millis(i64::from(window))), now);
                        asked[usize::from(pool)] = true;
                    }
                    Doing::Operator(pool) => {
                        wake.ask(&name(pool), Why::Operator, now);
                        (asked[usize::from(pool)], operator[usize::from(pool)]) = (true, true);
                    }
                    Doing::Next => {
                        let due = wake.next_at();
                        let next = wake.next(now);
                        prop_assert_eq!(next.is_some(), due.is_some_and(|due| due <= now));
                        let waiting = (0..4).any(|p| operator[p] && !running[p]);
                        if let Some(pool) = next {
                            let pool: usize = pool.as_str()[5..].parse().unwrap();
                            prop_assert!(!running[pool], "one turn at a time");
                            prop_assert!(!waiting || operator[pool], "an operator goes first");
                            (asked[pool], operator[pool], running[pool]) = (false, false, true);
                        } else {
                            prop_assert!(!waiting, "an operator waits for nobody");
                        }
                    }
                    Doing::End(pool, well) => {
                        if std::mem::take(&mut running[usize::from(pool)]) {
                            if well {
                                wake.done(&name(pool), now.plus(Span::minutes(5)));
                            } else {
                                wake.failed(&name(pool), now, None);
                            }
                        }
                    }
                    Doing::Pass(ms) => now = now.plus(Span::from_millis(i64::from(ms))),
                }
            }
            for pool in 0..4_u8 {
                if std::mem::take(&mut running[usize::from(pool)]) {
                    wake.done(&name(pool), now.plus(Span::minutes(5)));
                }
            }
            now = now.plus(LONGEST_BACK_OFF);
            while let Some(pool) = wake.next(now) {
                asked[pool.as_str()[5..].parse::<usize>().unwrap()] = false;
            }
            prop_assert_eq!(asked, [false; 4], "no ask is lost");
        }
    }
}
