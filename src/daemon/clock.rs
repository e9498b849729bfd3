//! The daemon's clock: time that never goes back, so that leases and waits expire.

use std::fmt::Debug;

use crate::ambient::{Clock, FastClock, MonotonicInstant, Sleep, SteadyClock, SystemClock};
use crate::model::time::Time;

/// A clock that tasks share. It may lag after the machine's clock was set back; leases and waits must expire all the
/// same.
pub trait MonotonicClock: Sleep + Clone + Debug + Send + Sync + 'static {
    /// A moment on a monotonic clock.
    type Instant: Send;

    fn mark(&self) -> Self::Instant;

    /// The time of that moment.
    fn moment(&self, mark: &Self::Instant) -> Time;

    /// From now on, never return a time earlier than this moment plus the time elapsed since.
    fn keep_up(&self, since: Self::Instant);

    /// Move the clock forward to at least this time, which stored records prove.
    fn reach(&self, at: Time);

    /// The clock of the rest of the world: token validity depends on it.
    type WallClock: Sleep + Clone + Debug + Send + Sync + 'static;

    fn wall_clock(&self) -> Self::WallClock;
}

impl MonotonicClock for SteadyClock {
    type Instant = MonotonicInstant;

    fn mark(&self) -> MonotonicInstant {
        SteadyClock::mark(self)
    }

    fn moment(&self, mark: &MonotonicInstant) -> Time {
        mark.at()
    }

    fn keep_up(&self, since: MonotonicInstant) {
        SteadyClock::keep_up(self, since);
    }

    fn reach(&self, at: Time) {
        SteadyClock::reach(self, at);
    }

    type WallClock = SystemClock;

    fn wall_clock(&self) -> SystemClock {
        SystemClock
    }
}

/// Nothing can set it back.
impl MonotonicClock for FastClock {
    type Instant = ();

    fn mark(&self) {}

    fn moment(&self, (): &()) -> Time {
        self.now()
    }

    fn keep_up(&self, (): ()) {}

    fn reach(&self, _: Time) {}

    type WallClock = FastClock;

    fn wall_clock(&self) -> FastClock {
        *self
    }
}
