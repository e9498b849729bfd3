//! DO. Carries out what was written into the journal, one step of an entry at a time, and never waits.
//!
//! Never here: a choice (what to do to whom was decided when it was planned), a second look at the cloud, a repeat of a
//! call. The doubt is written before a call and the truth after it; a lost answer is settled by a later listing alone.
//! Begin with [`advance`], which is pure; [`Book`] performs one step and writes around it.

mod advance;
mod answer;
mod shell;

pub use advance::{DELETE_DEADLINE, Pace, Sight, Step, advance};
pub use answer::{Digest, digest, heard};
pub use shell::{Book, Made, Ports, Seen, What};

use crate::model::action::{Expect, Target, WriteScope};
use crate::model::ids::{EntryId, InstanceId, NodeName, PoolName, Revision, ScaleSetId};
use crate::model::inventory::ModelFields;
use crate::model::journal::{Operation, Refused};
use crate::model::owner::OwnerWrite;
use crate::model::time::Time;

/// For whom a call is made, and until when it may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<'a> {
    pub pool: &'a PoolName,
    pub set: &'a ScaleSetId,
    /// The journal entry that is carried out.
    pub entry: &'a EntryId,
    /// Checked again right before the bytes leave: the read it rests on is too old then, or the lease is over.
    pub before: Time,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It goes on in the cloud; the operation can be asked about at this address, if there is one.
    Accepted(Option<Operation>),
    /// Done at once.
    Done,
    /// Refused for certain: nothing happened. `Unclear` is taken for [`Answer::Lost`].
    Refused(Refused),
    /// As refused, because of these machines alone: a batch without them may be taken.
    RefusedFor(Refused, Vec<InstanceId>),
    /// No answer came: it may have happened.
    Lost,
    /// It waited past `before` and never left.
    NotSent,
}

impl Answer {
    /// It changed nothing, for certain.
    pub const fn changed_nothing(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::RefusedFor(..) | Self::NotSent)
    }
}

/// What an operation's address tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll {
    /// Also where the poll itself was throttled or failed on its way: nothing is known, ask later.
    Running {
        retry_at: Option<Time>,
    },
    Done,
    Failed(Refused),
    /// The address is not known any more; the next complete listing tells.
    Lost,
}

/// Changes a scale set. One request at a time for each set; a long operation goes on beside the next request.
pub trait ChangeCloud {
    /// Write the capacity. Only the audited settling of drift has `to < from`.
    fn raise(
        &self,
        order: &Order<'_>,
        from: u32,
        to: u32,
        expect: &Expect,
    ) -> impl Future<Output = Answer> + Send;

    /// One batch. Each target's id is checked against its identity by the read it rests on, not here.
    fn delete(
        &self,
        order: &Order<'_>,
        targets: &[Target],
        force: bool,
    ) -> impl Future<Output = Answer> + Send;

    /// Bring these machines to the model in the set, in place.
    fn reimage(
        &self,
        order: &Order<'_>,
        targets: &[Target],
        to: &Revision,
    ) -> impl Future<Output = Answer> + Send;

    fn update_model(
        &self,
        order: &Order<'_>,
        fields: &ModelFields,
        scope: WriteScope,
        expect: &Expect,
    ) -> impl Future<Output = Answer> + Send;

    /// Start these machines again and take them back into service.
    fn restore(&self, order: &Order<'_>, targets: &[Target])
    -> impl Future<Output = Answer> + Send;

    /// Write the owner tag, or take it away, where the set's tag is still what the write may follow.
    fn tag_owner(
        &self,
        order: &Order<'_>,
        write: &OwnerWrite,
    ) -> impl Future<Output = Answer> + Send;

    fn poll(&self, set: &ScaleSetId, operation: &Operation) -> impl Future<Output = Poll> + Send;
}

/// A machine to be drained, and the node on it if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draining<'a> {
    pub pool: &'a PoolName,
    pub target: &'a Target,
    pub node: Option<&'a NodeName>,
}

/// How far a drain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drain {
    Running {
        step: Box<str>,
        blocker: Option<Box<str>>,
    },
    /// Nothing movable is left on it, or the node is gone.
    Done,
    /// Its ladder ended: it is set aside, named by a code.
    Blocked {
        code: Box<str>,
        retry_at: Option<Time>,
    },
    /// No drain of ours is under way there.
    NotBegun,
    /// The cluster could not be asked.
    Unseen,
}

/// Changes the cluster: cordons and drains, and takes back only what it put there itself. All of it may be repeated.
pub trait ChangeCluster {
    /// Begin to drain. `Done` where there is nothing to drain.
    fn drain(
        &self,
        order: &Order<'_>,
        machine: Draining<'_>,
    ) -> impl Future<Output = Answer> + Send;

    fn drain_state(&self, machine: Draining<'_>) -> impl Future<Output = Drain> + Send;

    /// Lift our own cordon and marks. `Done` where there are none.
    fn release(&self, machine: Draining<'_>) -> impl Future<Output = Answer> + Send;
}
