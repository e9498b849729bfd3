//! How often the world fails. All zero is calm.

/// Chances are per call, listing or VM, as noted; rates are per hour.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WorldFaults {
    // Any call.
    /// Refused with 429: another client drained the bucket.
    pub throttled: f64,
    /// 500, 502 or 503 without effect.
    pub server_error: f64,
    /// No answer or 504, without effect.
    pub lost_before: f64,
    // Writes.
    /// No answer or 504, **after** the effect.
    pub doubt: f64,
    /// 409: another client's operation on the set.
    pub conflict: f64,
    /// A write ends every other running operation of the set.
    pub preempts: f64,
    // Operations: the address is no longer known.
    pub op_lost: f64,
    // Reads.
    /// A listing shows the state of minutes ago.
    pub stale_list: f64,
    /// A GET of the set shows the state of minutes ago.
    pub stale_set: f64,
    /// A listing whose next page fails.
    pub cut_list: f64,
    /// A listing that silently omits VMs.
    pub silent_cut: f64,
    /// A listing that shows every VM as outdated.
    pub flag_flaps: f64,
    /// A new VM is missing from listings for minutes.
    pub latecomer: f64,
    /// A deleted VM stays in listings for minutes.
    pub ghost: f64,
    // Creation of a VM.
    pub allocation_fails: f64,
    pub boot_fails: f64,
    /// Stays Creating until the timeout.
    pub boot_hangs: f64,
    /// Ends Failed, but runs and serves.
    pub serves_failed: f64,
    pub never_ready: f64,
    // Delete or change of a VM.
    pub delete_hangs: f64,
    pub delete_fails: f64,
    pub change_fails: f64,
    /// No capacity for a deallocated VM that is started.
    pub start_fails: f64,
    // Rates per VM.
    pub sickens: f64,
    pub fails: f64,
    pub stops: f64,
    pub vanishes: f64,
    /// Spot VMs only.
    pub evictions: f64,
    pub flag_flips: f64,
    // Rates per set.
    pub shortages: f64,
    pub person_capacity: f64,
    pub person_deletes: f64,
}

impl WorldFaults {
    pub const NAMES: [&'static str; 8] =
        ["calm", "mild", "storm", "throttle", "nocapacity", "stale", "doubt", "evict"];

    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "calm" => Self::default(),
            "mild" => Self::mild(),
            "storm" => Self::storm(),
            "throttle" => Self { throttled: 0.15, ..Self::default() },
            "nocapacity" => Self {
                allocation_fails: 0.10,
                start_fails: 0.25,
                shortages: 2.0,
                ..Self::default()
            },
            "stale" => Self {
                stale_list: 0.25,
                stale_set: 0.15,
                cut_list: 0.10,
                latecomer: 0.15,
                ghost: 0.15,
                flag_flaps: 0.05,
                flag_flips: 0.1,
                ..Self::default()
            },
            "doubt" => Self {
                lost_before: 0.05,
                doubt: 0.15,
                op_lost: 0.10,
                preempts: 0.05,
                ..Self::default()
            },
            "evict" => Self { evictions: 1.0, vanishes: 0.02, ..Self::default() },
            _ => return None,
        })
    }

    pub fn is_calm(&self) -> bool {
        *self == Self::default()
    }

    /// Sum of the hourly rates; zero if no random deed happens.
    pub(super) fn an_hour(&self) -> f64 {
        self.sickens
            + self.fails
            + self.stops
            + self.vanishes
            + self.evictions
            + self.flag_flips
            + self.shortages
            + self.person_capacity
            + self.person_deletes
    }

    /// A quiet week: rare faults, but a large fleet meets all of them.
    fn mild() -> Self {
        Self {
            throttled: 0.005,
            server_error: 0.003,
            lost_before: 0.002,
            doubt: 0.002,
            conflict: 0.003,
            op_lost: 0.001,
            stale_list: 0.01,
            stale_set: 0.01,
            cut_list: 0.003,
            latecomer: 0.01,
            ghost: 0.01,
            allocation_fails: 0.001,
            boot_fails: 0.003,
            boot_hangs: 0.003,
            serves_failed: 0.001,
            never_ready: 0.002,
            delete_hangs: 0.003,
            delete_fails: 0.001,
            change_fails: 0.002,
            start_fails: 0.005,
            sickens: 0.002,
            fails: 0.000_5,
            stops: 0.000_5,
            vanishes: 0.000_2,
            evictions: 0.01,
            ..Self::default()
        }
    }

    fn storm() -> Self {
        Self {
            throttled: 0.04,
            server_error: 0.03,
            lost_before: 0.02,
            doubt: 0.04,
            conflict: 0.04,
            preempts: 0.05,
            op_lost: 0.03,
            stale_list: 0.08,
            stale_set: 0.05,
            cut_list: 0.03,
            silent_cut: 0.02,
            flag_flaps: 0.02,
            latecomer: 0.05,
            ghost: 0.05,
            allocation_fails: 0.02,
            boot_fails: 0.03,
            boot_hangs: 0.02,
            serves_failed: 0.02,
            never_ready: 0.02,
            delete_hangs: 0.02,
            delete_fails: 0.02,
            change_fails: 0.02,
            start_fails: 0.05,
            sickens: 0.05,
            fails: 0.02,
            stops: 0.02,
            vanishes: 0.01,
            evictions: 0.10,
            flag_flips: 0.02,
            shortages: 0.2,
            person_capacity: 0.2,
            person_deletes: 0.2,
        }
    }
}
