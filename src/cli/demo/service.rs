//! Whether the pool kept serving, from the emulated machines themselves and not from what the daemon saw.

use crate::cli::text::{list, short};
use crate::emulator::ReadyCount;
use crate::model::time::Span;

/// The most machines that a sentence names.
const NAMES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    pub desired: u32,
    pub floor: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReport {
    limits: ServiceLimits,
    fewest: usize,
    /// How long fewer served than the floor.
    pub below: Span,
    /// A delete took away a machine that served, and fewer than the floor were left.
    removed_below: bool,
    /// The machines that failed by themselves.
    failed: Vec<Box<str>>,
}

impl ServiceReport {
    /// `None`: nothing was recorded.
    pub fn new(
        counts: &[ReadyCount],
        until: i64,
        limits: ServiceLimits,
        failed: &[Box<str>],
    ) -> Option<Self> {
        let floor = limits.floor as usize;
        let fewest = counts.iter().map(|count| count.ready).min()?;
        let ends = counts.iter().skip(1).map(|count| count.at).chain([until]);
        let short = counts.iter().zip(ends).filter(|(count, _)| count.ready < floor);
        let below = short.map(|(count, end)| (end - count.at).max(0)).sum();
        let removed_below = counts.iter().zip(counts.iter().skip(1)).any(|(before, after)| {
            after.deleting > before.deleting && after.ready < before.ready.min(floor)
        });
        let failed = failed.to_vec();
        Some(Self { limits, fewest, below: Span::from_millis(below), removed_below, failed })
    }

    /// `29 of 30 always served, except for 2m when machine 30 failed by itself (28).`
    pub fn sentence(&self) -> String {
        let (fewest, ServiceLimits { desired, floor }) = (self.fewest, self.limits);
        if fewest >= floor as usize {
            return format!("{fewest} of {desired} always served (the floor is {floor}).");
        }
        let names = list(self.failed.iter().map(|id| &**id), NAMES);
        let cause = match self.failed.len() {
            0 => String::new(),
            1 => format!(" when machine {names} failed by itself"),
            _ => format!(" when machines {names} failed by themselves"),
        };
        let below = short(self.below);
        format!("{floor} of {desired} always served, except for {below}{cause} ({fewest}).")
    }

    /// What Poolkeeper itself did. `None`: it removed a machine before it could see that another one had failed.
    pub fn own_part(&self) -> Option<String> {
        let floor = self.limits.floor;
        (!self.removed_below).then(|| format!("Poolkeeper took none away below {floor}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ServiceLimits = ServiceLimits { desired: 30, floor: 29 };

    fn report(counts: &[(i64, usize, usize)], failed: &[&str]) -> ServiceReport {
        let counts: Vec<ReadyCount> = counts
            .iter()
            .map(|(second, ready, deleting)| ReadyCount {
                at: second * 1_000,
                ready: *ready,
                deleting: *deleting,
            })
            .collect();
        let failed: Vec<Box<str>> = failed.iter().map(|id| (*id).into()).collect();
        ServiceReport::new(&counts, 600_000, LIMITS, &failed).unwrap()
    }

    #[test]
    fn service_that_never_fell_says_so() {
        let kept = report(&[(0, 30, 0), (60, 29, 1), (120, 30, 0)], &["30"]);
        assert_eq!(kept.sentence(), "29 of 30 always served (the floor is 29).");
        assert_eq!(kept.below, Span::ZERO);
        assert_eq!(kept.own_part().as_deref(), Some("Poolkeeper took none away below 29."));
    }

    #[test]
    fn a_failure_is_named_with_its_time_and_its_number() {
        let fell = report(&[(0, 30, 0), (60, 29, 1), (100, 28, 1), (220, 29, 1)], &["30"]);
        assert_eq!(
            fell.sentence(),
            "29 of 30 always served, except for 2m when machine 30 failed by itself (28)."
        );
        assert!(fell.own_part().is_some());
        let two = report(&[(0, 30, 0), (590, 28, 0)], &["30", "31"]);
        assert!(two.sentence().contains("10s when machines 30, 31 failed by themselves (28)"));
    }

    #[test]
    fn a_removal_below_the_floor_is_not_denied() {
        let fell = report(&[(0, 29, 0), (60, 28, 1)], &[]);
        assert_eq!(fell.sentence(), "29 of 30 always served, except for 9m (28).");
        assert_eq!(fell.own_part(), None);
        // The removal of a machine that had failed takes no service away.
        let cleared = report(&[(0, 29, 0), (60, 28, 0), (90, 28, 1), (100, 29, 1)], &["7"]);
        assert!(cleared.own_part().is_some());
        assert_eq!(ServiceReport::new(&[], 0, LIMITS, &[]), None);
    }
}
