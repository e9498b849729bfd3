//! The gate that every call passes: counters, token buckets, and faults before and after the effect.

use std::collections::BTreeMap;

use super::World;
use super::answer::{WorldAnswer, WorldFailure, WorldRefusal};
use super::names::named;
use super::settings::Spread;
use super::spec::Millis;
use super::throttle::{Charge, ThrottlePolicy};
use crate::ambient::Dice;

named! {
    pub enum FrontDoorCall {
        GetSet = "getSet",
        ListInstances = "listInstances",
        GetInstance = "getInstance",
        GetOperation = "getOperation",
        GetUsage = "getUsage",
        PatchCapacity = "patchCapacity",
        PatchModel = "patchModel",
        PatchNative = "patchNative",
        DeleteInstances = "deleteInstances",
        DeleteInstance = "deleteInstance",
        Upgrade = "upgrade",
        Reimage = "reimage",
        Power = "power",
        Protect = "protect",
        ListSets = "listSets",
        /// The instance view of a set.
        SurveySet = "surveySet",
        CreateSet = "createSet",
        DeleteSet = "deleteSet",
        /// Resources other than scale sets.
        OtherRead = "otherRead",
        OtherWrite = "otherWrite",
    }
}

impl FrontDoorCall {
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
pub struct FrontDoorCounts {
    pub made: u64,
    /// 4xx except 429.
    pub refused: u64,
    pub throttled: u64,
    /// 5xx and no answer.
    pub unclear: u64,
}

pub type Calls = BTreeMap<FrontDoorCall, FrontDoorCounts>;

/// Duration, cost and remaining tokens of the last call.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenMeter {
    pub call: FrontDoorCall,
    /// How long the answer took.
    pub took: Millis,
    pub charge: u32,
    pub remaining: Vec<(ThrottlePolicy, u32)>,
    /// The time that a read shows; in the past if the read was stale.
    pub as_of: Millis,
}

/// A fault for the way back: the answer will be lost although the write takes effect.
#[derive(Debug)]
pub(super) struct ArmFrontDoor {
    doubt: Option<WorldFailure>,
}

impl World {
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    pub fn last_call(&self) -> Option<&TokenMeter> {
        self.meter.as_ref()
    }

    pub(super) fn enter(
        &mut self,
        call: FrontDoorCall,
        cost: &[Charge],
    ) -> Result<ArmFrontDoor, WorldFailure> {
        self.next_call += 1;
        self.luck = self.dice.branch("call").branch_number(self.next_call);
        self.calls.entry(call).or_default().made += 1;
        let took = latency(call, cost, &mut self.luck);
        let charge = cost.iter().map(|c| c.2).max().unwrap_or(0);
        let (now, faults) = (self.now, self.faults);
        self.meter = Some(TokenMeter { call, took, charge, remaining: Vec::new(), as_of: now });
        let by_minute = self.settings.switches.tokens_by_minute;
        if self.luck.chance(faults.throttled)
            && let Some(&(policy, scope, _)) = self.luck.pick(cost)
        {
            self.buckets.drain(policy, scope, now);
            let wait = self.buckets.take(&[(policy, scope, 1)], now, by_minute);
            let wait = wait.err().map_or(1, |(_, wait)| wait);
            return self.fail(call, WorldRefusal::throttled(policy, wait).into());
        }
        if self.settings.throttling || faults.throttled > 0.0 {
            match self.buckets.take(cost, now, by_minute) {
                Ok(left) => {
                    if let Some(meter) = &mut self.meter {
                        meter.remaining = left;
                    }
                }
                Err((policy, wait)) => {
                    return self.fail(call, WorldRefusal::throttled(policy, wait).into());
                }
            }
        }
        if self.luck.chance(faults.server_error) {
            let which = self.luck.next_u64();
            return self.fail(call, WorldRefusal::server_error(which).into());
        }
        let lost = lost(&mut self.luck);
        if self.luck.chance(faults.lost_before) {
            return self.fail(call, lost);
        }
        let doubt = !call.is_read() && self.luck.chance(faults.doubt);
        Ok(ArmFrontDoor { doubt: doubt.then_some(lost) })
    }

    pub(super) fn leave<T>(
        &mut self,
        call: FrontDoorCall,
        gate: ArmFrontDoor,
        done: Result<T, WorldRefusal>,
    ) -> WorldAnswer<T> {
        match (done, gate.doubt) {
            (Ok(_), Some(lost)) => self.fail(call, lost),
            (Ok(answer), None) => Ok(answer),
            (Err(refusal), _) => self.fail(call, refusal.into()),
        }
    }

    fn fail<T>(&mut self, call: FrontDoorCall, failure: WorldFailure) -> WorldAnswer<T> {
        let count = self.calls.entry(call).or_default();
        match failure.status() {
            Some(429) => count.throttled += 1,
            Some(400..500) => count.refused += 1,
            _ => count.unclear += 1,
        }
        Err(failure)
    }
}

/// A lost answer is a gateway 504 or no answer at all.
fn lost(luck: &mut Dice) -> WorldFailure {
    if luck.chance(0.5) { WorldRefusal::gateway_timeout().into() } else { WorldFailure::Lost }
}

fn latency(call: FrontDoorCall, cost: &[Charge], luck: &mut Dice) -> Millis {
    let median = match call {
        FrontDoorCall::ListInstances => {
            let views = cost.iter().find(|c| c.0 == ThrottlePolicy::VmViews).map_or(0, |c| c.2);
            0.06 + 0.001 * f64::from(views)
        }
        call if call.is_read() => 0.12,
        _ => 0.6,
    };
    Spread::new(median, 0.5, 0.01, 60.0).draw(luck)
}
