//! Token buckets: ARM's front door by kind of call; Compute by policy, per resource and per subscription.

use std::collections::BTreeMap;

use super::spec::{MINUTE, Millis};

/// Each policy with its name, its tokens per minute, and the size of its bucket.
macro_rules! policies {
    ($($(#[$about:meta])* $policy:ident = $name:literal, $a_minute:literal, $size:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ThrottlePolicy {
            $($(#[$about])* $policy,)*
        }

        impl ThrottlePolicy {
            /// Tokens per minute, and the size of the bucket.
            pub fn limit(self) -> (u32, u32) {
                match self {
                    $(Self::$policy => ($a_minute, $size),)*
                }
            }

            /// As in `x-ms-ratelimit-remaining-resource`, or the suffix of the front door's header.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$policy => $name,)*
                }
            }
        }
    };
}

policies! {
    FrontReads = "subscription-reads", 1_500, 250;
    FrontWrites = "subscription-writes", 600, 200;
    FrontDeletes = "subscription-deletes", 600, 200;
    CreateSubscription = "PutVMScaleSetSubscriptionMaximum", 125, 375;
    DeleteSubscription = "DeleteVMScaleSetSubscriptionMaximum", 175, 525;
    UpdateSet = "UpdateVMScaleSetResource", 4, 12;
    UpdateSubscription = "UpdateVMScaleSetSubscriptionMaximum", 500, 1_500;
    LowCostGetSet = "LowCostGetVMScaleSetResource", 12, 36;
    LowCostGetSubscription = "LowCostGetVMScaleSetSubscriptionMaximum", 800, 2_400;
    HighCostGetSet = "HighCostGetVMScaleSetResource", 10, 30;
    HighCostGetSubscription = "HighCostGetVMScaleSetSubscriptionMaximum", 360, 1_080;
    /// Lists of VMs that are resources of their own.
    VmList = "HighCostGetVMSubscriptionMaximum", 300, 900;
    VmViews = "VMScaleSetVMViewsSubscriptionMaximum", 10_000, 30_000;
    Actions = "VMScaleSetActionsSubscriptionMaximum", 500, 1_500;
    BatchedVms = "VMScaleSetBatchedVMRequestsSubscriptionMaximum", 2_000, 6_000;
    GetVm = "GetVMScaleSetVMResource", 12, 36;
    GetVmSubscription = "GetVMScaleSetVMSubscriptionMaximum", 2_000, 6_000;
    UpdateVm = "UpdateVMScaleSetVMResource", 4, 12;
    UpdateVmSubscription = "UpdateVMScaleSetVMSubscriptionMaximum", 500, 1_500;
    DeleteVm = "DeleteVMScaleSetVMResource", 4, 12;
    DeleteVmSubscription = "DeleteVMScaleSetVMSubscriptionMaximum", 500, 1_500;
    GetOperation = "GetOperationResource", 15, 45;
    GetOperationSubscription = "GetOperationSubscriptionMaximum", 5_000, 15_000;
}

impl ThrottlePolicy {
    pub fn is_front_door(self) -> bool {
        matches!(self, Self::FrontReads | Self::FrontWrites | Self::FrontDeletes)
    }
}

/// Refills are sums of fractions: a smaller deficit than this counts as zero.
const ROUNDING: f64 = 1e-6;

/// A policy, the resource that it counts for (0: the subscription), and the cost of a call.
pub(super) type Charge = (ThrottlePolicy, u64, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Buckets(BTreeMap<(ThrottlePolicy, u64), Bucket>);

#[derive(Debug, Clone)]
struct Bucket {
    level: f64,
    at: Millis,
}

impl Buckets {
    /// Takes all charges or none; a refusal gives the policy and the whole seconds to wait.
    pub fn take(
        &mut self,
        charges: &[Charge],
        now: Millis,
        by_minute: bool,
    ) -> Result<Vec<(ThrottlePolicy, u32)>, (ThrottlePolicy, u32)> {
        for &(policy, scope, cost) in charges {
            let (a_minute, holds) = policy.limit();
            let cost = f64::from(cost.min(holds));
            let level = self.refill(policy, scope, now, by_minute).level;
            if level + ROUNDING < cost {
                let missing = (cost - level) / f64::from(a_minute) * 60.0;
                let wait =
                    if by_minute { 60.0 - (now.rem_euclid(MINUTE) as f64) / 1e3 } else { 0.0 };
                return Err((policy, missing.max(wait).ceil().max(1.0) as u32));
            }
        }
        let take = |&(policy, scope, cost): &Charge| {
            let bucket = self.refill(policy, scope, now, by_minute);
            bucket.level = (bucket.level - f64::from(cost)).max(0.0);
            (policy, bucket.level as u32)
        };
        Ok(charges.iter().map(take).collect())
    }

    /// Another client of the same subscription used it up.
    pub fn drain(&mut self, policy: ThrottlePolicy, scope: u64, now: Millis) {
        self.0.insert((policy, scope), Bucket { level: 0.0, at: now });
    }

    fn refill(
        &mut self,
        policy: ThrottlePolicy,
        scope: u64,
        now: Millis,
        by_minute: bool,
    ) -> &mut Bucket {
        let (a_minute, holds) = policy.limit();
        let full = Bucket { level: f64::from(holds), at: now };
        let bucket = self.0.entry((policy, scope)).or_insert(full);
        let minutes = if by_minute {
            (now.div_euclid(MINUTE) - bucket.at.div_euclid(MINUTE)) as f64
        } else {
            (now - bucket.at) as f64 / MINUTE as f64
        };
        bucket.level = (bucket.level + minutes * f64::from(a_minute)).min(f64::from(holds));
        bucket.at = now;
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::spec::SECOND;

    #[test]
    fn a_set_is_listed_thirty_times_and_then_ten_times_a_minute() {
        let mut buckets = Buckets::default();
        let list = [(ThrottlePolicy::HighCostGetSet, 1, 1)];
        for _ in 0..30 {
            assert!(buckets.take(&list, 0, false).is_ok());
        }
        assert_eq!(buckets.take(&list, 0, false), Err((ThrottlePolicy::HighCostGetSet, 6)));
        assert!(
            buckets.take(&[(ThrottlePolicy::HighCostGetSet, 2, 1)], 0, false).is_ok(),
            "another set"
        );
        assert!(buckets.take(&list, 5 * SECOND, false).is_err(), "too early");
        assert!(buckets.take(&list, 6 * SECOND, false).is_ok());
    }

    #[test]
    fn tokens_may_come_back_by_the_minute() {
        let mut buckets = Buckets::default();
        buckets.drain(ThrottlePolicy::UpdateSet, 1, 10 * SECOND);
        let write = [(ThrottlePolicy::UpdateSet, 1, 1)];
        assert_eq!(buckets.take(&write, 30 * SECOND, true), Err((ThrottlePolicy::UpdateSet, 30)));
        assert!(buckets.take(&write, 60 * SECOND, true).is_ok());
    }

    #[test]
    fn a_refused_call_takes_nothing() {
        let mut buckets = Buckets::default();
        buckets.drain(ThrottlePolicy::UpdateSet, 1, 0);
        let both = [(ThrottlePolicy::FrontWrites, 0, 1), (ThrottlePolicy::UpdateSet, 1, 1)];
        assert!(buckets.take(&both, 0, false).is_err());
        assert_eq!(
            buckets.take(&[(ThrottlePolicy::FrontWrites, 0, 1)], 0, false),
            Ok(vec![(ThrottlePolicy::FrontWrites, 199)])
        );
    }
}
