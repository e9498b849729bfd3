//! The house's pacer as whoever admits the adapter's calls: kinds of call into its operations, headers into what it is told.

use async_trait::async_trait;

use super::throttle::{Admitted, Asked, Class, Learn, Leave, ThrottleHint};
use crate::ambient::{Clock, Sleep};
use crate::model::ids::ScaleSetId;
use crate::pace::{Call, NotNow, Operation, Pacer, Pass, Told};

#[async_trait]
impl<C: Sleep + std::fmt::Debug + Send + Sync> Learn for Pacer<C> {
    async fn admit<'a>(&'a self, asked: &Asked<'_>) -> Result<Leave<'a>, NotNow> {
        let Asked { class, subscription, set, machines, before } = *asked;
        let operation = operation(class);
        // What is asked of no set is asked of the subscription alone.
        let none = ScaleSetId::new(format!("/subscriptions/{subscription}"));
        let call = Call { set: set.unwrap_or(&none), operation, machines, before };
        let pass = self.pass(call).await?;
        Ok(Box::new(pass))
    }

    fn locate(&self, set: &ScaleSetId, location: &str) {
        Pacer::locate(self, set, location);
    }
}

impl<C: Clock + Send + Sync> Admitted for Pass<'_, C> {
    fn told(self: Box<Self>, hint: &ThrottleHint) {
        let remaining = hint.remaining.iter().map(|(name, left)| (&**name, *left));
        self.heard(&Told {
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

const fn operation(class: Class) -> Operation {
    match class {
        Class::GetSet => Operation::ReadSet,
        Class::ListMachines => Operation::List,
        Class::NextPage => Operation::NextPage,
        Class::ListVms => Operation::ListVms,
        Class::ReadMachine => Operation::ReadMachine,
        Class::UpdateSet => Operation::Raise,
        Class::DeleteMachines => Operation::Delete,
        Class::Actions => Operation::Upgrade,
        Class::UpdateMachine => Operation::UpdateMachine,
        Class::Poll => Operation::Poll,
        Class::WriteTags => Operation::WriteOther,
        Class::ReadAutoscale
        | Class::ReadUsages
        | Class::ReadSkus
        | Class::ReadImages
        | Class::ReadPermissions
        | Class::ReadLocks => Operation::ReadOther,
    }
}
