//! WHEN. A pool's calendar: when it may be changed, and when work on it is due.
//!
//! Never here: a clock. Each question takes its time as an argument. Begin with [`Windows::at`]; [`Cron`] is how people
//! write recurring times, [`ScheduleZone`] whose wall clock they mean.

mod cron;
mod firing;
#[cfg(test)]
mod tests;
mod window;
mod zone;

pub use cron::{Cron, CronError};
pub use window::{Window, WindowError, WindowState, WindowText, Windows};
pub use zone::{ScheduleZone, ZoneError};

use super::time::Time;

/// The work of a schedule when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chore {
    /// Replace every machine that existed when it fired.
    Refresh,
}

/// Recurring work: at these times, on this zone's wall clock, do this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub cron: Cron,
    pub zone: ScheduleZone,
    pub what: Chore,
}

impl Schedule {
    /// The latest firing after `after` and not after `now`. Missed firings in between count as one.
    pub fn due(&self, after: Time, now: Time) -> Option<Time> {
        self.cron.prev_at_or_before(now, &self.zone).filter(|fired| *fired > after)
    }
}
