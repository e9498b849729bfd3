//! WHEN. A pool's calendar: when it may be worked on, and when work on it is due.
//!
//! Never here: a clock. Every question takes the moment it is asked about.
//! Begin with [`Windows::at`]; [`Cron`] is how people write recurring times, [`Zone`] whose wall clock they mean.

mod cron;
mod firing;
#[cfg(test)]
mod tests;
mod window;
mod zone;

pub use cron::{Cron, CronError};
pub use window::{Window, WindowError, WindowState, Windows, Written};
pub use zone::{Zone, ZoneError};

use super::time::Time;

/// What a schedule asks for when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chore {
    /// Replace every machine that was there when it fired.
    Refresh,
}

/// Recurring work: at these times, on this zone's wall clock, do this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub cron: Cron,
    pub zone: Zone,
    pub what: Chore,
}

impl Schedule {
    /// The latest firing after `after` and not after `now`. Firings missed in between count as one.
    pub fn due(&self, after: Time, now: Time) -> Option<Time> {
        self.cron.prev_at_or_before(now, &self.zone).filter(|fired| *fired > after)
    }
}
