//! Disruption budgets, with the arithmetic of their controller.

use crate::world::Millis;

/// What a budget asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisruptionRule {
    MinAvailable(u32),
    /// In percent of the replicas.
    MaxUnavailable(u32),
}

/// What the controller of budgets counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BudgetNumbers {
    pub expected: u32,
    pub desired: u32,
    pub healthy: u32,
    pub allowed: u32,
}

impl BudgetNumbers {
    const fn of(expected: u32, desired: u32, healthy: u32) -> Self {
        let allowed = if expected == 0 { 0 } else { healthy.saturating_sub(desired) };
        Self { expected, desired, healthy, allowed }
    }

    /// The eviction of a pod is refused. A pod that is not ready may go while the others suffice.
    pub const fn refuses(&self, ready: bool) -> bool {
        let suffices = self.healthy >= self.desired && self.desired > 0;
        self.allowed == 0 && (ready || !suffices)
    }
}

impl DisruptionRule {
    /// `replicas`: what the controllers of the pods should run; `matching`: the pods that exist, ending ones too.
    pub fn numbers(self, replicas: u32, matching: u32, healthy: u32) -> BudgetNumbers {
        match self {
            DisruptionRule::MinAvailable(least) => BudgetNumbers::of(matching, least, healthy),
            DisruptionRule::MaxUnavailable(percent) => {
                let may_miss = (replicas * percent).div_ceil(100);
                BudgetNumbers::of(replicas, replicas.saturating_sub(may_miss), healthy)
            }
        }
    }

    /// No healthy pod is needed: its owner let it go.
    pub const fn let_go(matching: u32, healthy: u32) -> BudgetNumbers {
        BudgetNumbers::of(matching, 0, healthy)
    }
}

/// A budget of a person on one pod, and on a second one elsewhere that is ill: it allows nothing meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    pub uid: u64,
    pub until: Millis,
    /// The budget of the pod's Deployment counts it too.
    pub double: bool,
}

impl Guard {
    pub fn numbers(pod_is_healthy: bool) -> BudgetNumbers {
        BudgetNumbers::of(2, 1, u32::from(pod_is_healthy))
    }

    /// The label by which its budget selects the pod.
    pub const fn label(double: bool) -> &'static str {
        if double { TWICE } else { GUARDED }
    }
}

/// Pods with this label have a budget of their own.
pub(super) const GUARDED: &str = "guarded";

/// Pods with this label have a second budget.
const TWICE: &str = "twice";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_as_the_controller_does() {
        let of = |rule: DisruptionRule, replicas, matching, healthy| {
            let numbers = rule.numbers(replicas, matching, healthy);
            (numbers.expected, numbers.desired, numbers.healthy, numbers.allowed)
        };
        // A percentage rounds up: of three, one may miss.
        assert_eq!(of(DisruptionRule::MaxUnavailable(25), 3, 4, 3), (3, 2, 3, 1));
        assert_eq!(of(DisruptionRule::MaxUnavailable(25), 8, 8, 5), (8, 6, 5, 0));
        assert_eq!(of(DisruptionRule::MaxUnavailable(25), 0, 2, 2), (0, 0, 2, 0), "bare pods");
        assert_eq!(of(DisruptionRule::MinAvailable(2), 2, 3, 3), (3, 2, 3, 1), "one is ending");
        assert_eq!(of(DisruptionRule::MinAvailable(2), 2, 2, 2), (2, 2, 2, 0));
        assert_eq!(of(DisruptionRule::MinAvailable(0), 0, 0, 0), (0, 0, 0, 0));
    }

    #[test]
    fn a_pod_that_is_not_ready_may_go_while_the_others_suffice() {
        let spent = DisruptionRule::MinAvailable(2).numbers(3, 3, 2);
        assert!(spent.refuses(true) && !spent.refuses(false));
        let too_few = DisruptionRule::MinAvailable(2).numbers(3, 3, 1);
        assert!(too_few.refuses(false));
        assert!(!DisruptionRule::MinAvailable(2).numbers(3, 3, 3).refuses(true));
        assert!(!DisruptionRule::let_go(3, 1).refuses(true));
        assert!(Guard::numbers(true).refuses(true), "the other pod is ill");
    }
}
