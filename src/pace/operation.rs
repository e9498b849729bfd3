//! What the caller asks of the cloud, which limits count each request, and how urgent it is.

use crate::model::time::Span;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// One request on the wire, by purpose. The names are those of the metrics.
    pub enum PacedOperation {
        /// The scale set itself.
        ReadSet = "readSet",
        /// The first page of its machines.
        List = "list",
        /// Any further page of its machines, or of another listing in progress.
        NextPage = "nextPage",
        /// The instance view of the set.
        ReadView = "readView",
        /// One machine, as a member of its set.
        ReadMachine = "readMachine",
        /// Machines of a set that are VMs of their own.
        ListVms = "listVms",
        /// A long-running operation.
        Poll = "poll",
        /// Quotas, sizes, images, autoscale settings.
        ReadOther = "readOther",
        Raise = "raise",
        UpdateModel = "updateModel",
        Delete = "delete",
        Reimage = "reimage",
        Upgrade = "upgrade",
        Start = "start",
        Deallocate = "deallocate",
        /// A start, deallocation or reimage of one VM of a Flexible set.
        UpdateMachine = "updateMachine",
        WriteOther = "writeOther",
    }
}

/// Kinds of call, as the front door counts them. It counts DELETE requests apart; the adapter sends none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationClass {
    Reads,
    Writes,
}

/// Which call goes first when not all can. The order of the variants is the order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallPriority {
    /// Finish removals: until then a machine costs money, counts, and serves nothing.
    Remove,
    /// Raise capacity, and all other changes of a set.
    Raise,
    /// Reads that a caller waits for: an operation on that set is still open.
    Unblock,
    /// Reads of idle pools.
    Background,
}

/// A limit of the cloud, named as in the `remaining` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// Tokens refilled in a minute.
    pub a_minute: i64,
    pub size: i64,
    /// They may return at once at the end of such a step instead of evenly.
    pub step: Span,
}

/// What a limit is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Set,
    /// A subscription's share in one region. Azure counts there what it calls the subscription's limit.
    Region,
    Subscription,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationPolicy {
    pub name: &'static str,
    pub scope: Scope,
    pub limit: Limit,
}

/// What a request costs at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    One,
    /// One for each machine in it.
    Machines,
}

/// Compute's limits hold three minutes' worth, and one minute is the documented window of all of them.
const fn compute(name: &'static str, scope: Scope, a_minute: i64) -> OperationPolicy {
    let limit = Limit { a_minute, size: 3 * a_minute, step: Span::minutes(1) };
    OperationPolicy { name, scope, limit }
}

/// How a cloud's front door counts the calls of a subscription in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrontDoor {
    /// A bucket that fills every second.
    #[default]
    BySecond,
    /// A quota for each hour: Azure Government and Azure China used it, and may still.
    ByHour,
}

impl FrontDoor {
    fn policies(self) -> [OperationPolicy; 2] {
        let bucket = |name, a_minute, size| front(name, Scope::Region, a_minute, size);
        match self {
            FrontDoor::BySecond => {
                [bucket("subscription-reads", 1_500, 250), bucket("subscription-writes", 600, 200)]
            }
            FrontDoor::ByHour => {
                [hourly("subscription-reads", 12_000), hourly("subscription-writes", 1_200)]
            }
        }
    }
}

/// The front door refills every second. It counts each region separately, and all of them together.
const fn front(name: &'static str, scope: Scope, a_minute: i64, size: i64) -> OperationPolicy {
    let limit = Limit { a_minute, size, step: Span::seconds(1) };
    OperationPolicy { name, scope, limit }
}

/// Half at once and half gradually: whenever Azure's hour begins, no hour exceeds it.
const fn hourly(name: &'static str, an_hour: i64) -> OperationPolicy {
    let limit = Limit { a_minute: an_hour / 120, size: an_hour / 2, step: Span::minutes(1) };
    OperationPolicy { name, scope: Scope::Region, limit }
}

/// All limits that are documented or were observed.
pub(super) fn policies(door: FrontDoor) -> impl Iterator<Item = OperationPolicy> {
    door.policies().into_iter().chain(POLICIES.iter().copied())
}

/// In addition to the front door's regional limits. Other limits are learnt from answers.
const POLICIES: &[OperationPolicy] = &[
    front("subscription-global-reads", Scope::Subscription, 22_500, 3_750),
    front("subscription-global-writes", Scope::Subscription, 9_000, 3_000),
    compute("LowCostGetVMScaleSetResource", Scope::Set, 12),
    compute("LowCostGetVMScaleSetSubscriptionMaximum", Scope::Region, 800),
    compute("HighCostGetVMScaleSetResource", Scope::Set, 10),
    compute("HighCostGetVMScaleSetSubscriptionMaximum", Scope::Region, 360),
    compute("VMScaleSetVMViewsSubscriptionMaximum", Scope::Region, 10_000),
    compute("UpdateVMScaleSetResource", Scope::Set, 4),
    compute("UpdateVMScaleSetSubscriptionMaximum", Scope::Region, 500),
    compute("VMScaleSetActionsSubscriptionMaximum", Scope::Region, 500),
    compute("VMScaleSetBatchedVMRequestsSubscriptionMaximum", Scope::Region, 2_000),
    compute("GetVMScaleSetVMSubscriptionMaximum", Scope::Region, 2_000),
    compute("UpdateVMScaleSetVMSubscriptionMaximum", Scope::Region, 500),
    compute("HighCostGetVMSubscriptionMaximum", Scope::Region, 300),
    compute("GetOperationSubscriptionMaximum", Scope::Region, 5_000),
];

impl PacedOperation {
    /// Actions are POST requests, and the front door counts them as writes.
    pub const fn class(self) -> OperationClass {
        match self {
            PacedOperation::ReadSet
            | PacedOperation::List
            | PacedOperation::NextPage
            | PacedOperation::ReadView
            | PacedOperation::ReadMachine
            | PacedOperation::ListVms
            | PacedOperation::Poll
            | PacedOperation::ReadOther => OperationClass::Reads,
            PacedOperation::Raise
            | PacedOperation::UpdateModel
            | PacedOperation::Delete
            | PacedOperation::Reimage
            | PacedOperation::Upgrade
            | PacedOperation::Start
            | PacedOperation::Deallocate
            | PacedOperation::UpdateMachine
            | PacedOperation::WriteOther => OperationClass::Writes,
        }
    }

    /// `open`: the set had a write not long ago.
    pub(super) const fn priority(self, open: bool) -> CallPriority {
        match self {
            // Half a listing is useless, and it ages while it waits.
            PacedOperation::Delete | PacedOperation::NextPage => CallPriority::Remove,
            PacedOperation::Poll => CallPriority::Unblock,
            _ if !matches!(self.class(), OperationClass::Reads) => CallPriority::Raise,
            _ if open => CallPriority::Unblock,
            _ => CallPriority::Background,
        }
    }

    /// The limits it counts against, by name: the front door's first, then from the subscription down to the set, so
    /// that calls that share the last limit share all before it.
    pub(super) const fn charges(self) -> &'static [(&'static str, Cost)] {
        const READS: (&str, Cost) = ("subscription-reads", Cost::One);
        const WRITES: (&str, Cost) = ("subscription-writes", Cost::One);
        const ACTIONS: (&str, Cost) = ("VMScaleSetActionsSubscriptionMaximum", Cost::One);
        const BATCHED: (&str, Cost) =
            ("VMScaleSetBatchedVMRequestsSubscriptionMaximum", Cost::Machines);
        const COSTLY: (&str, Cost) = ("HighCostGetVMScaleSetSubscriptionMaximum", Cost::One);
        const COSTLY_OF_SET: (&str, Cost) = ("HighCostGetVMScaleSetResource", Cost::One);
        match self {
            PacedOperation::ReadSet => &[
                READS,
                ("LowCostGetVMScaleSetSubscriptionMaximum", Cost::One),
                ("LowCostGetVMScaleSetResource", Cost::One),
            ],
            PacedOperation::List | PacedOperation::NextPage => &[
                READS,
                COSTLY,
                ("VMScaleSetVMViewsSubscriptionMaximum", Cost::Machines),
                COSTLY_OF_SET,
            ],
            PacedOperation::ReadView => &[READS, COSTLY, COSTLY_OF_SET],
            PacedOperation::ReadMachine => {
                &[READS, ("GetVMScaleSetVMSubscriptionMaximum", Cost::One)]
            }
            PacedOperation::ListVms => &[READS, ("HighCostGetVMSubscriptionMaximum", Cost::One)],
            PacedOperation::Poll => &[READS, ("GetOperationSubscriptionMaximum", Cost::One)],
            PacedOperation::ReadOther => &[READS],
            PacedOperation::Raise | PacedOperation::UpdateModel => &[
                WRITES,
                ("UpdateVMScaleSetSubscriptionMaximum", Cost::One),
                ("UpdateVMScaleSetResource", Cost::One),
            ],
            PacedOperation::Delete
            | PacedOperation::Reimage
            | PacedOperation::Upgrade
            | PacedOperation::Start
            | PacedOperation::Deallocate => &[WRITES, ACTIONS, BATCHED],
            PacedOperation::UpdateMachine => {
                &[WRITES, ("UpdateVMScaleSetVMSubscriptionMaximum", Cost::One)]
            }
            PacedOperation::WriteOther => &[WRITES],
        }
    }

    /// Whether a resource's limits are those of the set. Limits of one machine or one operation are never reached: we
    /// ask about one no more often than it tells us to.
    pub(super) const fn is_about_the_set(self) -> bool {
        matches!(
            self,
            PacedOperation::ReadSet
                | PacedOperation::List
                | PacedOperation::NextPage
                | PacedOperation::ReadView
                | PacedOperation::Raise
                | PacedOperation::UpdateModel
                | PacedOperation::Delete
                | PacedOperation::Reimage
                | PacedOperation::Upgrade
                | PacedOperation::Start
                | PacedOperation::Deallocate
        )
    }
}

impl OperationClass {
    /// The front door's limit that all calls of this class share.
    pub const fn limit(self) -> &'static str {
        match self {
            OperationClass::Reads => "subscription-reads",
            OperationClass::Writes => "subscription-writes",
        }
    }
}
