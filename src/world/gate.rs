//! The gate every call passes: counters, token buckets, and the faults of the way there and back.

use std::collections::BTreeMap;

use super::World;
use super::answer::{Answer, Failure, Refusal};
use super::spec::{Ms, Spread};
use super::throttle::{Charge, Policy};
use crate::ambient::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    GetSet,
    ListInstances,
    GetInstance,
    GetOperation,
    GetUsage,
    PatchCapacity,
    PatchModel,
    PatchNative,
    DeleteInstances,
    DeleteInstance,
    Upgrade,
    Reimage,
    Power,
    Protect,
    ListSets,
    /// The instance view of a set.
    SurveySet,
    CreateSet,
    DeleteSet,
    /// Of resources beside scale sets.
    OtherRead,
    OtherWrite,
}

impl Call {
    pub fn is_read(self) -> bool {
        matches!(
            self,
            Self::GetSet
                | Self::ListInstances
                | Self::GetInstance
                | Self::GetOperation
                | Self::GetUsage
                | Self::ListSets
                | Self::SurveySet
                | Self::OtherRead
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub made: u64,
    /// 4xx but 429.
    pub refused: u64,
    pub throttled: u64,
    /// 5xx and no answer.
    pub unclear: u64,
}

pub type Calls = BTreeMap<Call, Count>;

/// About the last call: what it took, what it cost, and what is left.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    pub call: Call,
    /// How long the answer was on its way.
    pub took: Ms,
    pub charge: u32,
    pub remaining: Vec<(Policy, u32)>,
    /// The moment a read shows; earlier than now where it was stale.
    pub as_of: Ms,
}

/// What waits at the way out: an answer that will be lost though the effect stands.
#[derive(Debug)]
pub(super) struct Gate {
    doubt: Option<Failure>,
}

impl World {
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    pub fn last_call(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    pub(super) fn enter(&mut self, call: Call, cost: &[Charge]) -> Result<Gate, Failure> {
        self.next_call += 1;
        self.luck = self.dice.branch("call").branch_number(self.next_call);
        self.calls.entry(call).or_default().made += 1;
        let took = latency(call, cost, &mut self.luck);
        let charge = cost.iter().map(|c| c.2).max().unwrap_or(0);
        let (now, faults) = (self.now, self.faults);
        self.meter = Some(Meter { call, took, charge, remaining: Vec::new(), as_of: now });
        let by_minute = self.settings.switches.tokens_by_minute;
        if self.luck.chance(faults.throttled)
            && let Some(&(policy, scope, _)) = self.luck.pick(cost)
        {
            self.buckets.drain(policy, scope, now);
            let wait = self.buckets.take(&[(policy, scope, 1)], now, by_minute);
            let wait = wait.err().map_or(1, |(_, wait)| wait);
            return self.fail(call, Refusal::throttled(policy, wait).into());
        }
        if self.settings.throttling || faults.throttled > 0.0 {
            match self.buckets.take(cost, now, by_minute) {
                Ok(left) => {
                    if let Some(meter) = &mut self.meter {
                        meter.remaining = left;
                    }
                }
                Err((policy, wait)) => {
                    return self.fail(call, Refusal::throttled(policy, wait).into());
                }
            }
        }
        if self.luck.chance(faults.server_error) {
            let which = self.luck.next_u64();
            return self.fail(call, Refusal::server_error(which).into());
        }
        let lost = lost(&mut self.luck);
        if self.luck.chance(faults.lost_before) {
            return self.fail(call, lost);
        }
        let doubt = !call.is_read() && self.luck.chance(faults.doubt);
        Ok(Gate { doubt: doubt.then_some(lost) })
    }

    pub(super) fn leave<T>(
        &mut self,
        call: Call,
        gate: Gate,
        done: Result<T, Refusal>,
    ) -> Answer<T> {
        match (done, gate.doubt) {
            (Ok(_), Some(lost)) => self.fail(call, lost),
            (Ok(answer), None) => Ok(answer),
            (Err(refusal), _) => self.fail(call, refusal.into()),
        }
    }

    fn fail<T>(&mut self, call: Call, failure: Failure) -> Answer<T> {
        let count = self.calls.entry(call).or_default();
        match failure.status() {
            Some(429) => count.throttled += 1,
            Some(400..500) => count.refused += 1,
            _ => count.unclear += 1,
        }
        Err(failure)
    }
}

/// A lost answer is a 504 of the gateway, or none at all.
fn lost(luck: &mut Dice) -> Failure {
    if luck.chance(0.5) { Refusal::gateway_timeout().into() } else { Failure::Lost }
}

fn latency(call: Call, cost: &[Charge], luck: &mut Dice) -> Ms {
    let median = match call {
        Call::ListInstances => {
            let views = cost.iter().find(|c| c.0 == Policy::VmViews).map_or(0, |c| c.2);
            0.06 + 0.001 * f64::from(views)
        }
        call if call.is_read() => 0.12,
        _ => 0.6,
    };
    Spread::new(median, 0.5, 0.01, 60.0).draw(luck)
}
