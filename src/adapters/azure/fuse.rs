//! A last safeguard before ARM: whatever the pacer allows, no more calls are sent than Azure documents for a
//! subscription.
//!
//! Azure's front door counts reads and writes with token buckets, per region and for all regions together. The pacer is
//! stricter and knows more limits, so a fuse that blows indicates a bug in the pacer.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::ambient::{MonotonicSpan, SharedClock};
use crate::model::ids::ScaleSetId;
use crate::model::time::Span;
use crate::pace::{CallCost, OperationClass};

/// The burst size, and the refill rate per second.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    size: u32,
    a_second: u32,
}

const READS: Bucket = Bucket { size: 250, a_second: 25 };
const WRITES: Bucket = Bucket { size: 200, a_second: 10 };

/// The bucket for all regions together is fifteen times that of one region.
const REGIONS: u32 = 15;

/// Maximum number of sets with a remembered region, and of counted subscriptions before idle ones are dropped.
const SETS: u64 = 4_096;
const COUNTED: usize = 1_024;

type Limiter =
    RateLimiter<String, HashMapStateStore<String>, MonotonicSpan, NoOpMiddleware<Duration>>;

struct Cells {
    region: Limiter,
    all: Limiter,
}

impl Cells {
    fn new(bucket: Bucket, elapsed: &MonotonicSpan) -> Self {
        let limiter = |times: u32| {
            let most = |number: u32| NonZeroU32::new(number * times).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(most(bucket.a_second)).allow_burst(most(bucket.size));
            RateLimiter::new(quota, HashMapStateStore::default(), elapsed.clone())
        };
        Self { region: limiter(1), all: limiter(REGIONS) }
    }
}

pub(super) struct Fuse {
    reads: Cells,
    writes: Cells,
    clock: SharedClock,
    /// One clock for all buckets.
    elapsed: MonotonicSpan,
    regions: Cache<ScaleSetId, Arc<str>>,
}

impl Fuse {
    pub fn new(clock: &SharedClock) -> Self {
        let elapsed = MonotonicSpan::new(clock.now());
        let regions = Cache::builder().max_capacity(SETS).eviction_policy(EvictionPolicy::lru());
        let (reads, writes) = (Cells::new(READS, &elapsed), Cells::new(WRITES, &elapsed));
        Self { reads, writes, clock: Arc::clone(clock), elapsed, regions: regions.build() }
    }

    /// A read showed this set's region.
    pub fn locate(&self, set: &ScaleSetId, region: &str) {
        self.regions.insert(set.clone(), region.into());
    }

    /// Whether one more call may be sent; otherwise how long it must wait.
    pub fn admit(&self, call: &CallCost<'_>) -> Result<(), Span> {
        self.elapsed.advance(self.clock.now());
        let cells = match call.operation.class() {
            OperationClass::Reads => &self.reads,
            OperationClass::Writes => &self.writes,
        };
        // Calls without a set, or for a set that was not read yet, count as a separate region.
        let region = self.regions.get(call.set).unwrap_or_default();
        let subscription = call.subscription().to_ascii_lowercase();
        let place = format!("{subscription}/{region}");
        for (limiter, key) in [(&cells.region, &place), (&cells.all, &subscription)] {
            if limiter.len() > COUNTED {
                limiter.retain_recent();
            }
            if let Err(not_yet) = limiter.check_key(key) {
                let wait = not_yet.wait_time_from(self.elapsed.now()).as_millis();
                return Err(Span::from_millis(i64::try_from(wait).unwrap_or(i64::MAX).max(1)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::ambient::Clock;
    use crate::model::time::Time;
    use crate::pace::PacedOperation;

    #[derive(Debug, Default)]
    struct Hands(AtomicI64);

    impl Hands {
        fn turn(&self, millis: i64) {
            self.0.fetch_add(millis, Ordering::SeqCst);
        }
    }

    impl Clock for Hands {
        fn now(&self) -> Time {
            Time::from_millis(1_000_000_000 + self.0.load(Ordering::SeqCst))
        }
    }

    fn fuse() -> (Arc<Hands>, Fuse) {
        let hands = Arc::new(Hands::default());
        let clock: SharedClock = Arc::<Hands>::clone(&hands);
        (hands, Fuse::new(&clock))
    }

    fn set(name: &str) -> ScaleSetId {
        ScaleSetId::new(format!("/subscriptions/s/virtualMachineScaleSets/{name}"))
    }

    /// How many of `asking` calls are admitted.
    fn leave(fuse: &Fuse, operation: PacedOperation, set: &ScaleSetId, asking: u32) -> u32 {
        let asked = CallCost { set, operation, machines: 1, before: None };
        (0..asking).map(|_| u32::from(fuse.admit(&asked).is_ok())).sum()
    }

    #[test]
    fn no_more_leave_than_a_region_allows_and_what_a_second_gives_back_follows() {
        let (hands, fuse) = fuse();
        let (web, batch) = (set("web"), set("batch"));
        fuse.locate(&web, "westeurope");
        fuse.locate(&batch, "eastus");
        assert_eq!(leave(&fuse, PacedOperation::ReadSet, &web, 300), 250);
        assert_eq!(
            leave(&fuse, PacedOperation::Delete, &web, 300),
            200,
            "writes are counted apart"
        );
        assert_eq!(
            leave(&fuse, PacedOperation::ReadSet, &batch, 300),
            250,
            "and so is each region"
        );
        hands.turn(1_000);
        assert_eq!(leave(&fuse, PacedOperation::ReadSet, &web, 300), 25);
        assert_eq!(leave(&fuse, PacedOperation::Raise, &web, 300), 10);
        let asked =
            CallCost { set: &web, operation: PacedOperation::ReadSet, machines: 0, before: None };
        assert_eq!(fuse.admit(&asked), Err(Span::from_millis(40)), "one comes back each 40 ms");
    }

    #[test]
    fn all_regions_together_have_their_own_bucket() {
        let (_, fuse) = fuse();
        let all: u32 = (0..20)
            .map(|n| {
                let set = set(&format!("web-{n}"));
                fuse.locate(&set, &format!("region-{n}"));
                leave(&fuse, PacedOperation::ReadSet, &set, 250)
            })
            .sum();
        assert_eq!(all, 3_750);
    }

    #[test]
    fn a_clock_that_goes_back_keeps_no_call() {
        let (hands, fuse) = fuse();
        let web = set("web");
        assert_eq!(leave(&fuse, PacedOperation::ReadSet, &web, 250), 250);
        hands.turn(-3_600_000);
        assert_eq!(leave(&fuse, PacedOperation::ReadSet, &web, 1), 0);
        hands.turn(1_000);
        assert_eq!(leave(&fuse, PacedOperation::ReadSet, &web, 300), 25);
    }
}
