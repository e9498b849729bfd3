//! Connects the adapter to Poolkeeper's pacer: maps kinds of call to its operations, and headers to its reports.

use async_trait::async_trait;

use super::throttle::{ArmCall, ArmPermit, Learn, Leave, ThrottleClass, ThrottleHint};
use crate::ambient::{Clock, Sleep};
use crate::model::ids::ScaleSetId;
use crate::pace::{CallCost, NotNow, PacedOperation, Pacer, Pass, ResponseHints};

#[async_trait]
impl<C: Sleep + std::fmt::Debug + Send + Sync> Learn for Pacer<C> {
    async fn admit<'a>(&'a self, asked: &ArmCall<'_>) -> Result<Leave<'a>, NotNow> {
        let ArmCall { class, subscription, set, machines, before } = *asked;
        let operation = operation(class);
        // A call without a set counts against the subscription only.
        let none = ScaleSetId::new(format!("/subscriptions/{subscription}"));
        let call = CallCost { set: set.unwrap_or(&none), operation, machines, before };
        let pass = self.pass(call).await?;
        Ok(Box::new(pass))
    }

    fn locate(&self, set: &ScaleSetId, location: &str) {
        Pacer::locate(self, set, location);
    }
}

impl<C: Clock + Send + Sync> ArmPermit for Pass<'_, C> {
    fn told(self: Box<Self>, hint: &ThrottleHint) {
        let remaining = hint.remaining.iter().map(|(name, left)| (&**name, *left));
        self.heard(&ResponseHints {
            throttled: hint.refused,
            retry_after: hint.retry_after,
            charge: hint.charge,
            remaining: remaining.collect(),
            met: hint.met.iter().map(|name| &**name).collect(),
        });
    }

    fn unsent(self: Box<Self>) {
        Pass::unsent(*self);
    }
}

const fn operation(class: ThrottleClass) -> PacedOperation {
    match class {
        ThrottleClass::GetSet => PacedOperation::ReadSet,
        ThrottleClass::ListMachines => PacedOperation::List,
        ThrottleClass::NextPage => PacedOperation::NextPage,
        ThrottleClass::ListVms => PacedOperation::ListVms,
        ThrottleClass::ReadMachine => PacedOperation::ReadMachine,
        ThrottleClass::UpdateSet => PacedOperation::Raise,
        ThrottleClass::DeleteMachines => PacedOperation::Delete,
        ThrottleClass::Actions => PacedOperation::Upgrade,
        ThrottleClass::UpdateMachine => PacedOperation::UpdateMachine,
        ThrottleClass::Poll => PacedOperation::Poll,
        ThrottleClass::WriteTags => PacedOperation::WriteOther,
        ThrottleClass::ReadAutoscale
        | ThrottleClass::ReadUsages
        | ThrottleClass::ReadSkus
        | ThrottleClass::ReadImages
        | ThrottleClass::ReadPermissions
        | ThrottleClass::ReadLocks => PacedOperation::ReadOther,
    }
}
