//! DO. Carries out journal entries, one step of an entry at a time, and never waits.
//!
//! Never here: a choice (the plan already decided what to do to which machine), a second look at the cloud, a repeated
//! call. The journal records the doubt before a call and the truth after it; only a later listing settles a lost
//! answer. Begin with [`advance`], which is pure; [`Executor`] performs one step and writes the journal around it.

mod advance;
mod answer;
mod backends;
mod executor;
mod hook_calls;
mod hooks;
mod service;

pub use advance::{AdvanceStep, DELETE_DEADLINE, PollState, SetSight, advance};
pub use answer::{Digest, digest, heard};
pub use executor::{CallKind, CallMade, Executor, Observed, Ports};
pub use service::{Balance, next as next_move};

use crate::model::action::{Expect, Target, WriteScope};
use crate::model::autoscaler::AutoscalerWrite;
use crate::model::backend::{BackendChange, BackendPool, HookOrder};
use crate::model::drain::NodeDrainPolicy;
use crate::model::gone::GoneMachines;
use crate::model::hook::HookAnswer;
use crate::model::ids::{
    BackendPoolId, ClusterName, EntryId, InstanceId, NodeName, PoolName, ScaleSetId,
};
use crate::model::inventory::ModelFields;
use crate::model::journal::{OperationUrl, Refused};
use crate::model::owner::OwnerWrite;
use crate::model::signs::NodeSigns;
use crate::model::time::{Span, Time};

/// The pool, the set and the entry that a call belongs to, and the deadline for sending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallContext<'a> {
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    /// The journal entry that this call carries out.
    pub entry: &'a EntryId,
    /// Checked again right before the bytes leave: after this the read behind it is too old, or the lease has expired.
    pub before: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It continues in the cloud; the operation can be polled at this address, if there is one.
    Accepted(Option<OperationUrl>),
    /// Completed at once.
    Done,
    /// Refused for certain: nothing happened. `Unclear` counts as [`CallOutcome::Lost`].
    Refused(Refused),
    /// Refused because of these machines only: the cloud may accept a batch without them.
    RefusedFor(Refused, Vec<InstanceId>),
    /// No answer came: the call may have taken effect.
    Lost,
    /// It waited past `before` and was never sent.
    NotSent,
}

impl CallOutcome {
    /// True if the call certainly changed nothing.
    pub const fn changed_nothing(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::RefusedFor(..) | Self::NotSent)
    }
}

/// Result of polling an operation's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll {
    /// Also if the poll itself was throttled or failed in transit: nothing is known, poll again later.
    Running {
        retry_at: Option<Time>,
    },
    Done,
    Failed(Refused),
    /// The cloud no longer knows the address; the next complete listing settles the entry.
    Lost,
}

/// One change of a scale set, decided in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetChange<'a> {
    // Write the capacity. Only the audited reset of a drifted capacity has `to < from`.
    Raise { from: u32, to: u32, expect: &'a Expect },
    // One batch. The read behind it already matched each target's id to its identity; this does not check again.
    Delete { targets: &'a [Target], force: bool },
    // Update these machines to the set's model, in place.
    Reimage { targets: &'a [Target] },
    UpdateModel { fields: &'a ModelFields, scope: WriteScope, expect: &'a Expect },
    // Deallocate these machines, which are out of service.
    Standby { targets: &'a [Target] },
    // Start these machines again and return them to service.
    Restore { targets: &'a [Target] },
    // Write or remove the owner tag, if the set's current tag still permits this write.
    TagOwner { write: &'a OwnerWrite },
    // Switch the autoscaler off, or put its setting back, if it is as the write expects it. Read again afterwards.
    WriteAutoscaler { write: &'a AutoscalerWrite },
}

/// Changes a scale set. One request at a time for each set; a long operation may still run during the next request.
pub trait ChangeCloud {
    fn change(
        &self,
        order: &CallContext<'_>,
        change: SetChange<'_>,
    ) -> impl Future<Output = CallOutcome> + Send;

    fn poll(&self, set: &ScaleSetId, operation: &OperationUrl)
    -> impl Future<Output = Poll> + Send;

    /// The backend pools of load balancers, with the machines of the set that their addresses belong to. A pool that is
    /// gone has no address.
    fn backends(
        &self,
        set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> impl Future<Output = Result<Vec<BackendPool>, Refused>> + Send;

    /// Write a whole backend pool as it was read, with these states. Refused if it changed since.
    fn set_backends(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> impl Future<Output = CallOutcome> + Send;
}

/// The pool and the set that a write of a load balancer belongs to, and the deadline for sending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendOrder<'a> {
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    pub before: Time,
}

/// Asks the webhooks of hooks. An attempt that is repeated has the id of the first.
pub trait AskHooks {
    /// All of them side by side. One answer each, in their order.
    fn ask(&self, orders: &[HookOrder<'_>]) -> impl Future<Output = Vec<HookAnswer>> + Send;
}

/// A machine to be drained, and the node on it if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainRequest<'a> {
    pub pool: &'a PoolName,
    pub cluster: Option<&'a ClusterName>,
    pub target: &'a Target,
    pub node: Option<&'a NodeName>,
    pub policy: &'a NodeDrainPolicy,
    /// Nothing is sent after this.
    pub before: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainProgress {
    Running { step: Box<str>, blocker: Option<Box<str>> },
    // Nothing movable is left on it, or the node is gone.
    Done,
    // All escalation steps of the drain failed: the machine is set aside, with a code for the reason, and its sentence.
    Blocked { code: Box<str>, say: Option<Box<str>>, retry_at: Option<Time> },
    // No drain of ours is running there.
    NotBegun,
    // The cluster could not be reached.
    Unseen,
}

/// What the nodes of a pool are to tell the scheduler and the cluster-autoscaler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignsRequest<'a> {
    pub pool: &'a PoolName,
    pub cluster: Option<&'a ClusterName>,
    pub signs: &'a NodeSigns,
    /// Nothing is sent after this.
    pub before: Time,
}

/// The machines of a pool that are gone, and how long their nodes may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoneRequest<'a> {
    pub pool: &'a PoolName,
    pub cluster: &'a ClusterName,
    pub machines: &'a GoneMachines,
    pub after: Span,
    /// Nothing is sent after this.
    pub before: Time,
}

/// What came of the signs on nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignsOutcome {
    /// How many nodes are to be changed still.
    pub left: usize,
    /// Why one of them was not.
    pub refused: Option<Box<str>>,
}

/// Changes the cluster: cordons and drains, and reverts only its own changes. All calls are idempotent.
pub trait ChangeCluster {
    /// Start a drain. `Done` if there is nothing to drain.
    fn drain(
        &self,
        order: &CallContext<'_>,
        machine: DrainRequest<'_>,
    ) -> impl Future<Output = CallOutcome> + Send;

    /// How far the drain of this entry is.
    fn drain_state(
        &self,
        entry: &EntryId,
        machine: DrainRequest<'_>,
    ) -> impl Future<Output = DrainProgress> + Send;

    /// The same of several drains, in their order.
    fn drain_states(
        &self,
        drains: &[(EntryId, DrainRequest<'_>)],
    ) -> impl Future<Output = Vec<DrainProgress>> + Send;

    /// Remove our own cordon and marks. `Done` if there are none.
    fn release(&self, machine: DrainRequest<'_>) -> impl Future<Output = CallOutcome> + Send;

    /// Make our signs on nodes those that are asked for: one try a node, and none after the first that the cluster
    /// refuses.
    fn show_signs(&self, request: SignsRequest<'_>) -> impl Future<Output = SignsOutcome> + Send;

    /// Nodes that outlast their machines: put those whose machines we deleted out of service, and delete each after so
    /// long; never one that is ready. Returns why one was not.
    fn remove_gone(
        &self,
        request: GoneRequest<'_>,
    ) -> impl Future<Output = Option<Box<str>>> + Send;
}
