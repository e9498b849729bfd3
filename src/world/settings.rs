//! How long things take in the world, and its other settings.

use super::quirks::Switches;
use super::spec::{HOUR, MINUTE, Millis, SECOND};
use crate::ambient::Dice;

/// Log-normal, clipped. Median and σ of the logarithm; all times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub sigma: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub const fn new(median: f64, sigma: f64, min: f64, max: f64) -> Self {
        Self { median, sigma, min, max }
    }

    pub fn draw(&self, dice: &mut Dice) -> Millis {
        let seconds = dice.log_normal(self.median, self.sigma);
        (seconds.clamp(self.min, self.max.max(self.min)) * 1_000.0) as Millis
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Durations {
    pub visible: Spread,
    pub provision: Spread,
    pub provision_windows: Spread,
    pub boot: Spread,
    pub delete: Spread,
    pub leaves_list: Spread,
    pub reimage: Spread,
    pub upgrade_current: Spread,
    pub upgrade_settings: Spread,
    pub upgrade_image: Spread,
    pub deallocate: Spread,
    pub start: Spread,
    /// Between two runs of the autoscale service.
    pub autoscale: Spread,
    /// A write of a load balancer.
    pub balancer: Spread,
    /// Minimum duration of an operation.
    pub accept: Spread,
    /// Azure gives up a creation that hangs after this.
    pub create_timeout: Millis,
    /// A delete that hangs takes this much longer.
    pub delete_timeout: Millis,
    pub eviction_notice: Millis,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            visible: Spread::new(4.0, 0.5, 1.0, 60.0),
            provision: Spread::new(55.0, 0.35, 25.0, 2_400.0),
            provision_windows: Spread::new(110.0, 0.35, 25.0, 2_400.0),
            boot: Spread::new(45.0, 0.4, 15.0, 900.0),
            delete: Spread::new(35.0, 0.5, 8.0, 1_800.0),
            leaves_list: Spread::new(2.0, 1.0, 0.0, 120.0),
            reimage: Spread::new(85.0, 0.3, 40.0, 1_800.0),
            upgrade_current: Spread::new(15.0, 0.3, 5.0, 120.0),
            upgrade_settings: Spread::new(30.0, 0.3, 10.0, 600.0),
            upgrade_image: Spread::new(100.0, 0.3, 40.0, 1_800.0),
            deallocate: Spread::new(35.0, 0.4, 10.0, 600.0),
            start: Spread::new(25.0, 0.4, 8.0, 600.0),
            autoscale: Spread::new(45.0, 0.3, 30.0, 60.0),
            balancer: Spread::new(8.0, 0.4, 3.0, 120.0),
            accept: Spread::new(2.0, 0.3, 1.0, 10.0),
            create_timeout: 40 * MINUTE,
            delete_timeout: 30 * MINUTE,
            eviction_notice: 30 * SECOND,
        }
    }
}

#[derive(Debug, Clone)]
pub struct WorldSettings {
    pub durations: Durations,
    pub switches: Switches,
    pub location: String,
    /// The subscription's core quota in this region.
    pub quota_cores: Option<u32>,
    /// Its separate quota for Spot cores; `None`: the same number.
    pub quota_spot_cores: Option<u32>,
    /// VMs per page of a listing.
    pub page_size: usize,
    /// Off: no rate limits.
    pub throttling: bool,
    /// Seconds that a status answer asks the caller to wait before the next poll.
    pub poll_retry_after: Option<u32>,
    /// How long an ended operation can still be read.
    pub operations_kept: Millis,
}

impl Default for WorldSettings {
    fn default() -> Self {
        Self {
            durations: Durations::default(),
            switches: Switches::default(),
            location: "eastus2".to_owned(),
            quota_cores: None,
            quota_spot_cores: None,
            page_size: 100,
            throttling: true,
            poll_retry_after: Some(10),
            operations_kept: 24 * HOUR,
        }
    }
}
