//! Two clocks that the test drives: one that stands until a test moves it, and one that goes from timer to timer.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use poolkeeper::ambient::{Clock, Sleep};
use poolkeeper::model::time::{Span, Time};

/// Stands until a test or a sleeping task moves it. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(start: Time) -> Self {
        Self(Arc::new(AtomicI64::new(start.millis())))
    }

    pub fn pass(&self, span: Span) {
        self.0.fetch_add(span.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A task that sleeps moves the clock.
impl Sleep for ManualClock {
    async fn sleep_until(&self, at: Time) {
        self.0.fetch_max(at.millis(), Ordering::SeqCst);
    }
}

/// Sleepers wait until the test goes to their time. Clones share time and sleepers.
#[derive(Debug, Clone, Default)]
pub struct TimerClock(Arc<Mutex<Timers>>);

#[derive(Debug, Default)]
struct Timers {
    now: Time,
    sleepers: BTreeMap<(Time, u64), Waker>,
    last: u64,
}

impl TimerClock {
    pub fn at(start: Time) -> Self {
        Self(Arc::new(Mutex::new(Timers { now: start, ..Timers::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Timers> {
        self.0.lock().unwrap()
    }

    pub async fn pass(&self, span: Span) {
        let at = self.now().plus(span);
        self.sleep_until(at).await;
    }

    /// When the next sleeper is due.
    pub fn next(&self) -> Option<Time> {
        self.lock().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// Goes to that time and wakes all who are due at it, in the order in which they went to sleep.
    pub fn advance(&self) {
        let Some(next) = self.next() else { return };
        let mut timers = self.lock();
        timers.now = timers.now.max(next);
        let later = timers.sleepers.split_off(&(next, u64::MAX));
        let due = std::mem::replace(&mut timers.sleepers, later);
        drop(timers);
        due.into_values().for_each(Waker::wake);
    }
}

impl Clock for TimerClock {
    fn now(&self) -> Time {
        self.lock().now
    }
}

impl Sleep for TimerClock {
    async fn sleep_until(&self, at: Time) {
        let number = {
            let mut timers = self.lock();
            timers.last += 1;
            timers.last
        };
        let sleeper = Sleeper { clock: self, key: (at, number) };
        poll_fn(|context| {
            let mut timers = sleeper.clock.lock();
            if timers.now >= at {
                return Poll::Ready(());
            }
            timers.sleepers.insert(sleeper.key, context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Leaves the list when its task is dropped.
struct Sleeper<'a> {
    clock: &'a TimerClock,
    key: (Time, u64),
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.key);
    }
}
