//! A server that counts as the real one is documented to: tokens come back evenly, or all at once by the minute.

use std::collections::BTreeMap;

use poolkeeper::model::ids::ScaleSetId;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::pace::{PacedOperation, ResponseHints};

pub fn set(n: usize) -> ScaleSetId {
    ScaleSetId::new(format!(
        "/subscriptions/5ab/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/pool-{n}"
    ))
}

/// Name, whether it is counted for one set, tokens a minute, size; `true`: it comes back in steps of a minute.
type Policy = (&'static str, bool, i64, i64);

const READS: Policy = ("subscription-reads", false, 1_500, 250);
const WRITES: Policy = ("subscription-writes", false, 600, 200);
const LOW: Policy = ("LowCostGetVMScaleSetSubscriptionMaximum", false, 800, 2_400);
const LOW_SET: Policy = ("LowCostGetVMScaleSetResource", true, 12, 36);
const HIGH: Policy = ("HighCostGetVMScaleSetSubscriptionMaximum", false, 360, 1_080);
const HIGH_SET: Policy = ("HighCostGetVMScaleSetResource", true, 10, 30);
const UPDATE: Policy = ("UpdateVMScaleSetSubscriptionMaximum", false, 500, 1_500);
const UPDATE_SET: Policy = ("UpdateVMScaleSetResource", true, 4, 12);
const ACTIONS: Policy = ("VMScaleSetActionsSubscriptionMaximum", false, 500, 1_500);
const BATCHED: Policy = ("VMScaleSetBatchedVMRequestsSubscriptionMaximum", false, 2_000, 6_000);
const POLLS: Policy = ("GetOperationSubscriptionMaximum", false, 5_000, 15_000);
/// One that is in no documentation.
const STRANGE: Policy = ("GetSubscriptionInfo3Min", false, 120, 360);

/// What the server charges; the last is not known to anybody.
fn charges(operation: PacedOperation) -> Vec<Policy> {
    match operation {
        PacedOperation::ReadSet => vec![READS, LOW, LOW_SET],
        PacedOperation::List | PacedOperation::NextPage | PacedOperation::ReadView => {
            vec![READS, HIGH, HIGH_SET]
        }
        PacedOperation::Poll => vec![READS, POLLS],
        PacedOperation::Raise | PacedOperation::UpdateModel => vec![WRITES, UPDATE, UPDATE_SET],
        PacedOperation::Delete | PacedOperation::Reimage => vec![WRITES, ACTIONS, BATCHED],
        _ => vec![READS, STRANGE],
    }
}

#[derive(Debug, Clone)]
pub struct Server {
    /// Tokens come back when a new minute begins.
    pub by_minute: bool,
    /// By limit and set: level in sixty-thousandths, and since when.
    buckets: BTreeMap<(&'static str, usize), (i64, Time)>,
    pub refused: u32,
    pub answered: u32,
}

/// What an answer says.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub remaining: Vec<(&'static str, u32)>,
    pub retry_after: Option<Span>,
}

impl Answer {
    pub fn hints(&self) -> ResponseHints {
        ResponseHints {
            throttled: self.retry_after.is_some(),
            retry_after: self.retry_after,
            remaining: self.remaining.iter().map(|(name, left)| ((*name).into(), *left)).collect(),
            ..ResponseHints::default()
        }
    }
}

impl Server {
    pub fn new(by_minute: bool) -> Self {
        Self { by_minute, buckets: BTreeMap::new(), refused: 0, answered: 0 }
    }

    pub fn hear(
        &mut self,
        operation: PacedOperation,
        set: usize,
        machines: u32,
        now: Time,
    ) -> Answer {
        let charges = charges(operation);
        let cost = |policy: &Policy| if *policy == BATCHED { i64::from(machines) } else { 1 };
        for policy in &charges {
            let (level, cost) = (self.level(*policy, set, now), cost(policy) * 60_000);
            if level < cost {
                self.refused += 1;
                let wait = Span::from_millis((cost - level) / policy.2);
                let minute = Span::from_millis(60_000 - now.millis().rem_euclid(60_000));
                let wait = if self.by_minute { wait.max(minute) } else { wait };
                let seconds = Span::seconds(wait.millis() / 1_000 + 1);
                return Answer { remaining: vec![(policy.0, 0)], retry_after: Some(seconds) };
            }
        }
        self.answered += 1;
        let mut remaining = Vec::new();
        for policy in &charges {
            let key = (policy.0, if policy.1 { set } else { usize::MAX });
            let (level, _) = self.buckets.get_mut(&key).unwrap();
            *level -= cost(policy) * 60_000;
            remaining.push((policy.0, (*level / 60_000) as u32));
        }
        Answer { remaining, retry_after: None }
    }

    /// Somebody else of the subscription uses tokens up.
    pub fn drain(&mut self, operation: PacedOperation, set: usize, now: Time) {
        for policy in charges(operation) {
            self.level(policy, set, now);
            let key = (policy.0, if policy.1 { set } else { usize::MAX });
            self.buckets.get_mut(&key).unwrap().0 = 0;
        }
    }

    fn level(&mut self, policy: Policy, set: usize, now: Time) -> i64 {
        let (name, of_set, a_minute, size) = policy;
        let step = self.by_minute && !name.starts_with("subscription");
        let key = (name, if of_set { set } else { usize::MAX });
        let (level, at) = self.buckets.entry(key).or_insert((size * 60_000, now));
        let passed = match step {
            true => (now.millis().div_euclid(60_000) - at.millis().div_euclid(60_000)) * 60_000,
            false => now.since(*at).millis(),
        };
        *level = (*level + passed * a_minute).min(size * 60_000);
        *at = now;
        *level
    }
}
