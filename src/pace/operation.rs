//! What is asked of the cloud, which limits each question is counted against, and how urgent it is.

use crate::model::time::Span;

/// One request on the wire, by what it is for. The names are those of the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// The scale set itself.
    ReadSet,
    /// The first page of its machines.
    List,
    /// Any further page of them, or of another listing that was begun.
    NextPage,
    /// The instance view of the set.
    ReadView,
    /// One machine, as a member of its set.
    ReadMachine,
    /// Machines of a set that are VMs of their own.
    ListVms,
    /// A long operation.
    Poll,
    /// Quotas, sizes, images, autoscale settings.
    ReadOther,
    Raise,
    UpdateModel,
    Delete,
    /// One machine alone.
    DeleteMachine,
    Reimage,
    Upgrade,
    Start,
    Deallocate,
    /// Protection of one machine.
    UpdateMachine,
    WriteOther,
}

/// Kinds of call, as the front door counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Reads,
    Writes,
    Deletes,
}

/// Who goes first where not all can. The order of the variants is the order of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Finish removals: until then a machine is paid for, counted, and of no use.
    Remove,
    /// Raise capacity, and whatever else changes a set.
    Raise,
    /// Reads that somebody waits for: what was begun there is not over.
    Unblock,
    /// Reads of pools at rest.
    Background,
}

/// A limit of the cloud: `remaining` headers call it by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    /// Tokens that come back in a minute.
    pub a_minute: i64,
    pub size: i64,
    /// They may come back at once at the end of such a step instead of evenly.
    pub step: Span,
}

/// What a limit is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Set,
    /// A subscription's part in one region. Azure counts there what it calls the subscription's.
    Region,
    Subscription,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policy {
    pub name: &'static str,
    pub scope: Scope,
    pub limit: Limit,
}

/// What a request costs at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    One,
    /// As many as it has machines in it.
    Machines,
}

/// Compute's limits hold three minutes' worth, and one minute is the window that is documented for all of them.
const fn compute(name: &'static str, scope: Scope, a_minute: i64) -> Policy {
    let limit = Limit { a_minute, size: 3 * a_minute, step: Span::minutes(1) };
    Policy { name, scope, limit }
}

/// How a cloud's front door counts the calls of a subscription in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrontDoor {
    /// A bucket that fills every second.
    #[default]
    BySecond,
    /// So many in an hour: what Azure's clouds for governments and China had before, and may have still.
    ByHour,
}

impl FrontDoor {
    fn policies(self) -> [Policy; 3] {
        let bucket = |name, a_minute, size| front(name, Scope::Region, a_minute, size);
        match self {
            FrontDoor::BySecond => [
                bucket("subscription-reads", 1_500, 250),
                bucket("subscription-writes", 600, 200),
                bucket("subscription-deletes", 600, 200),
            ],
            FrontDoor::ByHour => [
                hourly("subscription-reads", 12_000),
                hourly("subscription-writes", 1_200),
                hourly("subscription-deletes", 15_000),
            ],
        }
    }
}

/// The front door's limits come back every second. It counts each region by itself, and all of them together.
const fn front(name: &'static str, scope: Scope, a_minute: i64, size: i64) -> Policy {
    let limit = Limit { a_minute, size, step: Span::seconds(1) };
    Policy { name, scope, limit }
}

/// Half at once and half by and by: whenever their hour begins, no hour sees more.
const fn hourly(name: &'static str, an_hour: i64) -> Policy {
    let limit = Limit { a_minute: an_hour / 120, size: an_hour / 2, step: Span::minutes(1) };
    Policy { name, scope: Scope::Region, limit }
}

/// All limits that are documented or were seen.
pub(super) fn policies(door: FrontDoor) -> impl Iterator<Item = Policy> {
    door.policies().into_iter().chain(POLICIES.iter().copied())
}

/// Beside those of a region's front door. What is not named is learnt from answers.
const POLICIES: &[Policy] = &[
    front("subscription-global-reads", Scope::Subscription, 22_500, 3_750),
    front("subscription-global-writes", Scope::Subscription, 9_000, 3_000),
    front("subscription-global-deletes", Scope::Subscription, 9_000, 3_000),
    compute("LowCostGetVMScaleSetResource", Scope::Set, 12),
    compute("LowCostGetVMScaleSetSubscriptionMaximum", Scope::Region, 800),
    compute("HighCostGetVMScaleSetResource", Scope::Set, 10),
    compute("HighCostGetVMScaleSetSubscriptionMaximum", Scope::Region, 360),
    compute("VMScaleSetVMViewsSubscriptionMaximum", Scope::Region, 10_000),
    compute("UpdateVMScaleSetResource", Scope::Set, 4),
    compute("UpdateVMScaleSetSubscriptionMaximum", Scope::Region, 500),
    compute("VMScaleSetActionsSubscriptionMaximum", Scope::Region, 500),
    compute("VMScaleSetBatchedVMRequestsSubscriptionMaximum", Scope::Region, 2_000),
    compute("DeleteVMScaleSetSubscriptionMaximum", Scope::Region, 175),
    compute("GetVMScaleSetVMSubscriptionMaximum", Scope::Region, 2_000),
    compute("UpdateVMScaleSetVMSubscriptionMaximum", Scope::Region, 500),
    compute("DeleteVMScaleSetVMSubscriptionMaximum", Scope::Region, 500),
    compute("HighCostGetVMSubscriptionMaximum", Scope::Region, 300),
    compute("GetOperationSubscriptionMaximum", Scope::Region, 5_000),
];

impl Operation {
    pub const ALL: [Operation; 18] = [
        Operation::ReadSet,
        Operation::List,
        Operation::NextPage,
        Operation::ReadView,
        Operation::ReadMachine,
        Operation::ListVms,
        Operation::Poll,
        Operation::ReadOther,
        Operation::Raise,
        Operation::UpdateModel,
        Operation::Delete,
        Operation::DeleteMachine,
        Operation::Reimage,
        Operation::Upgrade,
        Operation::Start,
        Operation::Deallocate,
        Operation::UpdateMachine,
        Operation::WriteOther,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Operation::ReadSet => "readSet",
            Operation::List => "list",
            Operation::NextPage => "nextPage",
            Operation::ReadView => "readView",
            Operation::ReadMachine => "readMachine",
            Operation::ListVms => "listVms",
            Operation::Poll => "poll",
            Operation::ReadOther => "readOther",
            Operation::Raise => "raise",
            Operation::UpdateModel => "updateModel",
            Operation::Delete => "delete",
            Operation::DeleteMachine => "deleteMachine",
            Operation::Reimage => "reimage",
            Operation::Upgrade => "upgrade",
            Operation::Start => "start",
            Operation::Deallocate => "deallocate",
            Operation::UpdateMachine => "updateMachine",
            Operation::WriteOther => "writeOther",
        }
    }

    /// Actions are posted, and the front door counts them as writes.
    pub const fn class(self) -> Class {
        match self {
            Operation::ReadSet
            | Operation::List
            | Operation::NextPage
            | Operation::ReadView
            | Operation::ReadMachine
            | Operation::ListVms
            | Operation::Poll
            | Operation::ReadOther => Class::Reads,
            Operation::Raise
            | Operation::UpdateModel
            | Operation::Delete
            | Operation::Reimage
            | Operation::Upgrade
            | Operation::Start
            | Operation::Deallocate
            | Operation::UpdateMachine
            | Operation::WriteOther => Class::Writes,
            Operation::DeleteMachine => Class::Deletes,
        }
    }

    /// `open`: something was begun in this set not long ago.
    pub(super) const fn priority(self, open: bool) -> Priority {
        match self {
            // Half a listing is worth nothing, and it grows old while it waits.
            Operation::Delete | Operation::DeleteMachine | Operation::NextPage => Priority::Remove,
            Operation::Poll => Priority::Unblock,
            _ if !matches!(self.class(), Class::Reads) => Priority::Raise,
            _ if open => Priority::Unblock,
            _ => Priority::Background,
        }
    }

    /// The limits it is counted against, by name: the front door's first, then from the whole subscription down to the set,
    /// so that whoever shares the last shares all before it.
    pub(super) const fn charges(self) -> &'static [(&'static str, Cost)] {
        const READS: (&str, Cost) = ("subscription-reads", Cost::One);
        const WRITES: (&str, Cost) = ("subscription-writes", Cost::One);
        const ACTIONS: (&str, Cost) = ("VMScaleSetActionsSubscriptionMaximum", Cost::One);
        const BATCHED: (&str, Cost) =
            ("VMScaleSetBatchedVMRequestsSubscriptionMaximum", Cost::Machines);
        const COSTLY: (&str, Cost) = ("HighCostGetVMScaleSetSubscriptionMaximum", Cost::One);
        const COSTLY_OF_SET: (&str, Cost) = ("HighCostGetVMScaleSetResource", Cost::One);
        match self {
            Operation::ReadSet => &[
                READS,
                ("LowCostGetVMScaleSetSubscriptionMaximum", Cost::One),
                ("LowCostGetVMScaleSetResource", Cost::One),
            ],
            Operation::List | Operation::NextPage => &[
                READS,
                COSTLY,
                ("VMScaleSetVMViewsSubscriptionMaximum", Cost::Machines),
                COSTLY_OF_SET,
            ],
            Operation::ReadView => &[READS, COSTLY, COSTLY_OF_SET],
            Operation::ReadMachine => &[READS, ("GetVMScaleSetVMSubscriptionMaximum", Cost::One)],
            Operation::ListVms => &[READS, ("HighCostGetVMSubscriptionMaximum", Cost::One)],
            Operation::Poll => &[READS, ("GetOperationSubscriptionMaximum", Cost::One)],
            Operation::ReadOther => &[READS],
            Operation::Raise | Operation::UpdateModel => &[
                WRITES,
                ("UpdateVMScaleSetSubscriptionMaximum", Cost::One),
                ("UpdateVMScaleSetResource", Cost::One),
            ],
            Operation::Delete | Operation::Reimage | Operation::Upgrade | Operation::Start => {
                &[WRITES, ACTIONS, BATCHED]
            }
            Operation::Deallocate => {
                &[WRITES, ("DeleteVMScaleSetSubscriptionMaximum", Cost::One), BATCHED]
            }
            Operation::UpdateMachine => {
                &[WRITES, ("UpdateVMScaleSetVMSubscriptionMaximum", Cost::One)]
            }
            Operation::DeleteMachine => &[
                ("subscription-deletes", Cost::One),
                ("DeleteVMScaleSetVMSubscriptionMaximum", Cost::One),
            ],
            Operation::WriteOther => &[WRITES],
        }
    }

    /// Whether limits of a resource are those of the set. Those of one machine or one operation are never met: nobody
    /// asks about one of them more often than it says itself.
    pub(super) const fn is_about_the_set(self) -> bool {
        matches!(
            self,
            Operation::ReadSet
                | Operation::List
                | Operation::NextPage
                | Operation::ReadView
                | Operation::Raise
                | Operation::UpdateModel
                | Operation::Delete
                | Operation::Reimage
                | Operation::Upgrade
                | Operation::Start
                | Operation::Deallocate
        )
    }
}

impl Class {
    /// The limit of the front door that all calls of this kind share.
    pub const fn limit(self) -> &'static str {
        match self {
            Class::Reads => "subscription-reads",
            Class::Writes => "subscription-writes",
            Class::Deletes => "subscription-deletes",
        }
    }
}
