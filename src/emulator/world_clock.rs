//! The time of the world beside the time of its clients.

use crate::world::Millis;

/// World time runs at its own speed and can be advanced.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorldClock {
    pub speed: f64,
    real: Millis,
    world: Millis,
}

impl WorldClock {
    pub fn new(real: Millis, speed: f64) -> Self {
        Self { speed, real, world: real }
    }

    pub fn at(&self, real: Millis) -> Millis {
        self.world + ((real - self.real).max(0) as f64 * self.speed) as Millis
    }

    pub fn turn(&mut self, real: Millis, speed: f64) {
        *self = Self { speed, real, world: self.at(real) };
    }

    pub fn skip(&mut self, by: Millis) {
        self.world += by.max(0);
    }

    /// Whole real seconds, at least one: clients treat zero as no Retry-After at all.
    pub fn seconds(&self, world_seconds: u32) -> u32 {
        let real = f64::from(world_seconds) / self.speed.max(0.001);
        (real.ceil() as u32).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn world_time_runs_at_its_speed_and_can_be_sent_ahead() {
        let mut pace = WorldClock::new(1_000, 60.0);
        assert_eq!(pace.at(2_000), 61_000);
        pace.skip(5_000);
        assert_eq!(pace.at(2_000), 66_000);
        pace.turn(2_000, 1.0);
        assert_eq!(pace.at(3_000), 67_000);
        assert_eq!(WorldClock::new(0, 60.0).seconds(10), 1);
        assert_eq!(WorldClock::new(0, 1.0).seconds(10), 10);
    }
}
