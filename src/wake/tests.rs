use super::queue::{BACK_OFF, LONGEST_BACK_OFF, LOOK_GIVES_WAY};
use super::{Wake, WakeReason};
use crate::ambient::Dice;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};
use proptest::prelude::*;

fn at(ms: i64) -> Time {
    Time::from_millis(ms)
}

fn wake() -> Wake {
    Wake::new(Dice::from_seed(1))
}

const WINDOW: WakeReason = WakeReason::News(Span::seconds(5));

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
    wake.ask(&api, WakeReason::News(Span::ZERO), at(0));
    wake.ask(&web, WINDOW, at(1_000));
    wake.ask(&web, WakeReason::Operator, at(2_000));
    assert_eq!(wake.next(at(2_000)), Some(web.clone()));
    wake.failed(&web, at(2_500), Some(at(60_000)));
    wake.ask(&web, WINDOW, at(3_000));
    assert_eq!(wake.next(at(3_000)), Some(api));
    assert_eq!(wake.next(at(59_999)), None, "news do not shorten what was told");
    wake.ask(&web, WakeReason::Operator, at(4_000));
    assert_eq!(wake.next(at(4_000)), Some(web));
}

#[test]
fn news_go_before_looks_that_cannot_be_kept_up_with() {
    let mut wake = wake();
    let (web, api, old) = (PoolName::new("web"), PoolName::new("api"), PoolName::new("old"));
    for pool in [&web, &api, &old] {
        wake.ask(pool, WakeReason::News(Span::ZERO), at(0));
        wake.next(at(0));
    }
    wake.done(&api, at(100_000));
    wake.done(&web, at(900_000));
    wake.ask(&web, WINDOW, at(200_000));
    assert_eq!(wake.next(at(205_000)), Some(web.clone()), "though another was due for longer");
    assert_eq!(wake.next(at(205_000)), Some(api.clone()));
    wake.done(&web, at(900_000));
    wake.done(&old, at(300_000));
    wake.ask(&web, WINDOW, at(595_000));
    assert_eq!(wake.next(at(600_000)), Some(old), "it gave way for long enough");
    assert_eq!(wake.next(at(600_000)), Some(web));
}

#[test]
fn failures_wait_longer_each_time_and_never_too_long() {
    let (mut wake, web) = (wake(), PoolName::new("web"));
    wake.ask(&web, WakeReason::News(Span::ZERO), at(0));
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
    assert!(wake.next_at().unwrap().since(now) <= BACK_OFF, "a good turn forgives the bad ones");
}

#[test]
fn a_pool_that_left_and_came_back_has_no_second_turn_beside_the_first() {
    let (mut wake, web) = (wake(), PoolName::new("web"));
    wake.ask(&web, WakeReason::Operator, at(0));
    assert_eq!(wake.next(at(0)), Some(web.clone()));
    wake.forget(&web);
    assert_eq!(wake.next_at(), None, "no one asks for it any more");
    wake.ask(&web, WINDOW, at(1_000));
    assert_eq!(wake.next(at(9_000)), None, "its old turn still runs");
    wake.done(&web, at(300_000));
    assert_eq!(wake.next(at(9_000)), Some(web.clone()));
    wake.forget(&web);
    wake.failed(&web, at(9_500), None);
    assert_eq!((wake.next_at(), wake.is_running(&web)), (None, false), "nothing of it is left");
    wake.done(&web, at(10_000));
    assert_eq!(wake.next_at(), None);
}

#[test]
fn a_look_keeps_the_turn_where_it_is_and_is_none_once_a_turn_began() {
    let (mut wake, web) = (wake(), PoolName::new("web"));
    wake.ask(&web, WakeReason::News(Span::ZERO), at(0));
    assert_eq!((wake.next(at(0)), wake.next_look(at(0))), (Some(web.clone()), None));
    wake.done(&web, at(60_000));
    wake.look_at(&web, at(5_000));
    assert_eq!((wake.next_at(), wake.due(&web)), (Some(at(5_000)), Some(at(60_000))));
    assert_eq!((wake.next(at(5_000)), wake.next_look(at(4_999))), (None, None));
    assert_eq!(wake.next_look(at(5_000)), Some(web.clone()));
    wake.ask(&web, WakeReason::Operator, at(5_001));
    assert_eq!((wake.next(at(5_001)), wake.next_look(at(9_000))), (None, None), "one at a time");
    wake.looked(&web);
    wake.look_at(&web, at(5_001));
    assert_eq!(wake.next(at(5_001)), Some(web.clone()), "asked meanwhile");
    wake.done(&web, at(60_000));
    assert_eq!((wake.next_look(at(59_999)), wake.next_at()), (None, Some(at(60_000))));
    wake.look_at(&web, at(10_000));
    assert_eq!(wake.next_look(at(10_000)), Some(web.clone()));
    wake.forget(&web);
    wake.looked(&web);
    wake.look_at(&web, at(10_000));
    assert_eq!((wake.next_at(), wake.is_running(&web)), (None, false), "nothing of it is left");
}

/// The test's model of one pool: the earliest and the latest time at which its turn may begin.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Earliest window end since the last turn began, as a lower and an upper bound: the backoff after a failure is
    /// random.
    due: Option<(Time, Time)>,
    operator: bool,
    news: bool,
    running: bool,
    failures: u32,
    /// News waits at least until the first and at most until the second.
    held: Option<(Time, Time)>,
}

impl Known {
    fn asked(&mut self, at: Time) {
        self.asked_within(at, at);
    }

    fn asked_within(&mut self, least: Time, most: Time) {
        let sooner = |(a, b): (Time, Time)| (a.min(least), b.min(most));
        self.due = Some(self.due.map_or((least, most), sooner));
    }

    /// The time from which a turn may begin, and the time from which it must.
    fn span(&self) -> Option<(Time, Time)> {
        let due = self.due.filter(|_| !self.running)?;
        let held = self.held.filter(|_| !self.operator).unwrap_or(due);
        Some((due.0.max(held.0), due.1.max(held.1)))
    }

    fn failed(&mut self, now: Time, told: Option<Time>) {
        let whole = BACK_OFF.times(1 << self.failures.min(16)).min(LONGEST_BACK_OFF);
        let half = Span::from_millis(whole.millis() / 2);
        let least = |wait| told.map_or(now.plus(wait), |told: Time| told.max(now.plus(wait)));
        self.failures += 1;
        self.held = Some((least(half), least(whole)));
        self.asked_within(least(half), least(whole));
        self.running = false;
    }

    fn ended_well(&mut self, again: Time) {
        (self.running, self.failures, self.held) = (false, 0, None);
        self.asked(again);
    }
}

#[derive(Debug, Clone)]
enum Doing {
    News(u8, u16),
    Operator(u8),
    Next,
    End(u8, bool, Option<u32>),
    Forget(u8),
    Pass(u16),
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        4 => (0_u8..4, 0_u16..9_000).prop_map(|(pool, window)| Doing::News(pool, window)),
        1 => (0_u8..4).prop_map(Doing::Operator),
        6 => Just(Doing::Next),
        4 => (0_u8..4, any::<bool>(), prop::option::of(0_u32..600_000))
            .prop_map(|(pool, well, told)| Doing::End(pool, well, told)),
        1 => (0_u8..4).prop_map(Doing::Forget),
        4 => (0_u16..9_000).prop_map(Doing::Pass),
    ]
}

fn name(pool: usize) -> PoolName {
    PoolName::new(format!("pool-{pool}"))
}

fn take(wake: &mut Wake, known: &mut [Known; 4], now: Time) -> Result<(), TestCaseError> {
    let due = wake.next_at();
    let next = wake.next(now);
    prop_assert_eq!(next.is_some(), due.is_some_and(|due| due <= now));
    let owed = |k: &Known| k.span().is_some_and(|(_, latest)| latest <= now);
    let Some(pool) = next else {
        prop_assert!(!known.iter().any(owed), "a turn that is owed at {now} is not given");
        return Ok(());
    };
    let pool: usize = pool.as_str()[5..].parse().unwrap();
    let Some((earliest, latest)) = known[pool].span() else {
        return Err(TestCaseError::fail("no one asked, or its turn still runs"));
    };
    prop_assert!(earliest <= now, "a turn before its window was over");
    let operator = known[pool].operator;
    prop_assert!(operator || !known.iter().any(|k| k.operator && owed(k)), "an operator first");
    let news = known[pool].news;
    let due_by = |k: &Known| k.span().map(|(_, due)| due);
    let alike = |k: &&Known| k.operator == operator && (operator || k.news == news);
    let longer = known.iter().filter(alike).filter_map(due_by).any(|due| due < earliest);
    prop_assert!(!longer, "{latest}: another one was due longer");
    // Pools of the other kind, if no operator waits: news goes first, unless the look has been due much longer.
    let others = || known.iter().filter(|k| !operator && !k.operator && k.news != news);
    let fair = match news {
        true => !others().filter_map(due_by).any(|due| earliest.since(due) >= LOOK_GIVES_WAY),
        false => !others()
            .filter(|k| owed(k))
            .filter_map(Known::span)
            .any(|(_, due)| due.since(earliest) < LOOK_GIVES_WAY),
    };
    prop_assert!(fair, "{latest}: news before looks, and looks before long");
    let known = &mut known[pool];
    (known.due, known.operator, known.news, known.running) = (None, false, false, true);
    Ok(())
}

proptest! {
    /// For any sequence of events: no pool has two turns at a time; none runs before it is due or while another has
    /// been due longer (news goes before looks for a while); an operator waits for no other pool; each request causes a
    /// turn as soon as it is due.
    #[test]
    fn no_ask_is_lost_and_no_pool_runs_twice(steps in prop::collection::vec(doing(), 0..300)) {
        let (mut wake, mut now) = (wake(), at(0));
        let mut known = [Known::default(); 4];
        for step in steps {
            match step {
                Doing::News(pool, window) => {
                    let window = Span::from_millis(window.into());
                    wake.ask(&name(pool.into()), WakeReason::News(window), now);
                    let known = &mut known[usize::from(pool)];
                    known.news = true;
                    known.asked(now.plus(window));
                }
                Doing::Operator(pool) => {
                    wake.ask(&name(pool.into()), WakeReason::Operator, now);
                    let known = &mut known[usize::from(pool)];
                    known.operator = true;
                    known.asked(now);
                }
                Doing::Next => take(&mut wake, &mut known, now)?,
                Doing::End(pool, well, told) if known[usize::from(pool)].running => {
                    let (name, known) = (name(pool.into()), &mut known[usize::from(pool)]);
                    let told = told.map(|ms| now.plus(Span::from_millis(ms.into())));
                    if well {
                        let again = told.unwrap_or(now.plus(LONGEST_BACK_OFF));
                        wake.done(&name, again);
                        known.ended_well(again);
                    } else {
                        wake.failed(&name, now, told);
                        known.failed(now, told);
                    }
                }
                // A forgotten pool stays away until it is requested again, whatever its last turn returns.
                Doing::Forget(pool) if !known[usize::from(pool)].running => {
                    wake.forget(&name(pool.into()));
                    known[usize::from(pool)] = Known::default();
                }
                Doing::End(..) | Doing::Forget(_) => {}
                Doing::Pass(ms) => now = now.plus(Span::from_millis(ms.into())),
            }
        }
        for (pool, known) in known.iter_mut().enumerate().filter(|(_, k)| k.running) {
            wake.done(&name(pool), now);
            known.ended_well(now);
        }
        now = now.plus(Span::minutes(15));
        while known.iter().any(|k| k.due.is_some()) {
            take(&mut wake, &mut known, now)?;
        }
        prop_assert_eq!(wake.next(now), None, "no turn that no one asked for");
    }
}
