//! The rate of all calls to one cluster: ours alone, besides the server's own priority and fairness.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::ambient::{MonotonicSpan, SharedClock};
use crate::model::time::Time;

// What controllers of the field allow themselves for each cluster.
const A_SECOND: u32 = 20;
const BURST: u32 = 30;

type Limiter = RateLimiter<NotKeyed, InMemoryState, MonotonicSpan, NoOpMiddleware<Duration>>;

pub(super) struct Gate {
    limiter: Limiter,
    /// The limiter's clock.
    elapsed: MonotonicSpan,
    clock: SharedClock,
    closed: Mutex<Option<Time>>,
}

/// Why a call may not leave now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shut {
    /// Too many left just now.
    For(Duration),
    /// The cluster asked for it.
    Until(Time),
}

impl Gate {
    pub fn new(clock: &SharedClock) -> Self {
        let elapsed = MonotonicSpan::new(clock.now());
        let most = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(most(A_SECOND)).allow_burst(most(BURST));
        let limiter = RateLimiter::direct_with_clock(quota, elapsed.clone());
        Self { limiter, elapsed, clock: Arc::clone(clock), closed: Mutex::default() }
    }

    pub fn admit(&self) -> Result<(), Shut> {
        let now = self.clock.now();
        self.elapsed.advance(now);
        if let Some(until) = *self.closed()
            && now < until
        {
            return Err(Shut::Until(until));
        }
        let checked = self.limiter.check();
        checked.map_err(|not_yet| Shut::For(not_yet.wait_time_from(self.elapsed.now())))
    }

    /// Nothing leaves before that time.
    pub fn close(&self, until: Time) {
        let mut closed = self.closed();
        *closed = Some(closed.map_or(until, |known| known.max(until)));
    }

    fn closed(&self) -> MutexGuard<'_, Option<Time>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
