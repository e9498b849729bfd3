//! The two ambient inputs, time and randomness. All other code receives its inputs as arguments.
//!
//! [`Dice`] is a tree of seeds: branches are named, so a new branch does not change the numbers of any other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::time::{Span, Time};

/// The current time, real in production and simulated in rehearsal.
pub trait Clock {
    fn now(&self) -> Time;
}

pub type SharedClock = Arc<dyn Clock + Send + Sync>;

/// A clock with timers: real ones in production, steps of simulated time in rehearsal.
pub trait Sleep: Clock {
    /// Completes at that time or a little later; at once if it is past.
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
        let now = jiff::Timestamp::now();
        Time::from(now)
    }
}

impl Sleep for SystemClock {
    async fn sleep_until(&self, at: Time) {
        let wait = at.since(self.now()).millis().unsigned_abs();
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
    }
}

/// Time elapsed by a clock that may be set. It never goes back: a limiter would keep every call until the time that it
/// knew comes again.
#[derive(Debug, Clone)]
pub struct MonotonicSpan(Arc<Mutex<(Time, Duration)>>);

/// Concurrent readers of the clock may report their times in any order.
const AT_ONCE: Span = Span::seconds(1);

impl MonotonicSpan {
    pub fn new(now: Time) -> Self {
        Self(Arc::new(Mutex::new((now, Duration::ZERO))))
    }

    pub fn advance(&self, now: Time) {
        let mut last = self.last();
        match u64::try_from(now.since(last.0).millis()) {
            Ok(passed) => *last = (now, last.1.saturating_add(Duration::from_millis(passed))),
            Err(_) if last.0.since(now) <= AT_ONCE => {}
            // The clock was set back: continue from here.
            Err(_) => last.0 = now,
        }
    }

    fn last(&self) -> MutexGuard<'_, (Time, Duration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl governor::clock::Clock for MonotonicSpan {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.last().1
    }
}

/// The system clock, corrected by elapsed time: if the clock is set back, this one continues from where it was, because
/// stored and due times would lie in the future otherwise. Each mark lets it fall back a little, until the system clock
/// has caught up.
#[derive(Debug, Clone, Default)]
pub struct SteadyClock {
    since: Arc<Mutex<Option<MonotonicInstant>>>,
}

/// A moment, by the clock and by a monotonic timer.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicInstant {
    at: Time,
    passes: Instant,
}

/// A clock ahead of the system clock falls back by this fraction of the elapsed time.
// A tenth: an hour in a working day; the last marked time is taken back by at most a tenth of its age.
const COMES_BACK: i64 = 10;

impl MonotonicInstant {
    pub const fn at(&self) -> Time {
        self.at
    }

    fn now(at: Time) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
        let passes = Instant::now();
        Self { at, passes }
    }

    fn passed(&self) -> Span {
        Span::from_millis(i64::try_from(self.passes.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

impl SteadyClock {
    fn since(&self) -> MutexGuard<'_, Option<MonotonicInstant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current moment, for measuring; [`SteadyClock::keep_up`] then binds this clock to it.
    pub fn mark(&self) -> MonotonicInstant {
        let now = SystemClock.now();
        let least = self.since().map(|mark| {
            let passed = mark.passed().millis();
            mark.at.plus(Span::from_millis(passed - passed / COMES_BACK))
        });
        MonotonicInstant::now(least.map_or(now, |least| least.max(now)))
    }

    /// From now on the clock never shows less than this moment plus the time elapsed since.
    pub fn keep_up(&self, since: MonotonicInstant) {
        *self.since() = Some(since);
    }

    /// It is at least this late, according to stored times.
    pub fn reach(&self, at: Time) {
        if at > self.now() {
            self.keep_up(MonotonicInstant::now(at));
        }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Time {
        let now = SystemClock.now();
        let least = self.since().map(|mark| mark.at.plus(mark.passed()));
        least.map_or(now, |least| least.max(now))
    }
}

impl Sleep for SteadyClock {
    async fn sleep_until(&self, at: Time) {
        let wait = at.since(self.now()).millis().unsigned_abs();
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
    }
}

/// Time that passes this many times as fast as the system clock, for demos and tests. It cannot be set.
#[derive(Debug, Clone, Copy)]
pub struct FastClock {
    began: MonotonicInstant,
    times: u32,
}

impl FastClock {
    pub fn new(times: u32) -> Self {
        Self { began: MonotonicInstant::now(SystemClock.now()), times: times.max(1) }
    }

    pub fn times(self) -> u32 {
        self.times
    }
}

impl Clock for FastClock {
    fn now(&self) -> Time {
        self.began.at.plus(self.began.passed().times(i64::from(self.times)))
    }
}

impl Sleep for FastClock {
    async fn sleep_until(&self, at: Time) {
        let now = self.now();
        if at > now {
            // Timers have millisecond resolution, and an early one is polled again at once.
            let wait = at.since(now).millis().unsigned_abs() / u64::from(self.times) + 1;
            tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        }
    }
}

/// Seeded random numbers (splitmix64): the same seed and branch give the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    pub fn from_seed(seed: u64) -> Self {
        Self { seed, state: mix(seed ^ 0x9e37_79b9_7f4a_7c15) }
    }

    /// A child whose numbers depend only on this seed and `name`, not on earlier draws.
    pub fn branch(&self, name: &str) -> Dice {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Dice::from_seed(mix(self.seed ^ hash.rotate_left(17)))
    }

    /// A child by number: for the n-th instance, operation or run.
    pub fn branch_number(&self, n: u64) -> Dice {
        Dice::from_seed(mix(self.seed.wrapping_add(mix(n.wrapping_add(0x5851_f42d_4c95_7f2d)))))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next_u64() % n }
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Standard normal (Box–Muller).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit().max(f64::MIN_POSITIVE), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Log-normal with this median and this σ of the logarithm.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_goes_on_from_where_it_was() {
        let clock = SteadyClock::default();
        let hour = Span::hours(1);
        let ahead = MonotonicInstant { at: clock.now().plus(hour), ..clock.mark() };
        clock.keep_up(ahead);
        let (before, wall) = (clock.now(), SystemClock.now());
        assert!(
            before.since(wall) > Span::minutes(59),
            "the wall's clock seems to be an hour behind"
        );
        assert!(clock.now() >= before);
        // Bound by a clock that is ahead, it stays ahead.
        clock.keep_up(clock.mark());
        assert!(clock.now().since(SystemClock.now()) > Span::minutes(59));
    }

    #[test]
    fn it_comes_back_by_a_tenth_of_what_passes() {
        let clock = SteadyClock::default();
        let long_ago = MonotonicInstant::now(clock.now())
            .passes
            .checked_sub(std::time::Duration::from_secs(60));
        let Some(passes) = long_ago else { return };
        // A minute ago it was an hour ahead.
        clock.keep_up(MonotonicInstant { at: SystemClock.now().plus(Span::minutes(59)), passes });
        let ahead = |clock: &SteadyClock| clock.now().since(SystemClock.now()).millis();
        assert!((ahead(&clock) - 3_600_000).abs() < 5_000, "{}", ahead(&clock));
        let mark = clock.mark();
        clock.keep_up(mark);
        assert!((ahead(&clock) - 3_594_000).abs() < 5_000, "{}", ahead(&clock));
        clock.reach(SystemClock.now());
        assert!(ahead(&clock) > 3_500_000, "it is later already");
        clock.reach(SystemClock.now().plus(Span::hours(2)));
        assert!((ahead(&clock) - 7_200_000).abs() < 5_000, "{}", ahead(&clock));
    }

    #[test]
    fn a_branch_does_not_depend_on_what_was_rolled() {
        let mut a = Dice::from_seed(7);
        let before = a.branch("boot").next_u64();
        a.next_u64();
        assert_eq!(a.branch("boot").next_u64(), before);
        assert_ne!(a.branch("delete").next_u64(), before);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut dice = Dice::from_seed(1);
        for _ in 0..1_000 {
            assert!(dice.below(7) < 7);
            let u = dice.unit();
            assert!((0.0..1.0).contains(&u));
            assert!(dice.log_normal(45.0, 0.4) > 0.0);
        }
        assert_eq!(dice.below(0), 0);
    }
}
