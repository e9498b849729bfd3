//! What the planner knows of one machine in this turn: its group, what is in progress with it, and what keeps it.

use crate::model::action::RemovalReason;
use crate::model::machine::{Lifecycle, Machine};
use crate::model::plan::Input;
use crate::model::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CandidateGroup {
    /// Its delete succeeded; while listings still show it, it counts only in `live`.
    Ghost,
    Leaving,
    Gray,
    Unknown,
    Updating,
    Failed,
    Young,
    Ready,
    Unready,
}

impl CandidateGroup {
    /// Counts as one of the pool's machines.
    pub const fn exists(self) -> bool {
        matches!(
            self,
            CandidateGroup::Young
                | CandidateGroup::Ready
                | CandidateGroup::Unready
                | CandidateGroup::Updating
                | CandidateGroup::Unknown
        )
    }
}

/// What is in progress with a machine that is leaving, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MachineActivity {
    Nothing,
    CloudDeletes,
    Draining,
    /// Its drain succeeded: the next step may follow.
    Drained,
    /// Its record says that it is drained, but no entry proves it: drain it again.
    DrainAgain,
    Deleting,
    /// A drain or update without any record left: back in service.
    Lost,
    /// Like lost, and our marks may still be on its node.
    TakeBack,
    /// Taken back, and its drain has not ended yet.
    Returns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protector {
    No,
    Person,
    Cloud,
    RevisionUnknown,
    OnDelete,
    UpdateFailed,
    /// Its drains were blocked; the rollout ended without it.
    Exception,
}

/// Whether a person asked to delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedRemoval {
    No,
    InTurn,
    /// With its loss accepted.
    Now,
}

/// Its drain, delete or update was refused: how that blocks the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryWait {
    No,
    /// The refusal passes: it is a candidate again within minutes.
    Brief,
    Long,
    /// It is dead, and its drain was tried for long enough: repair need not wait.
    Over,
}

/// Its part in the updates in place of the rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateRole {
    None,
    Updated,
    /// Created while others are updated.
    StandIn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineCandidate {
    pub index: u32,
    pub group: CandidateGroup,
    pub doing: MachineActivity,
    /// Why it was asked to leave, if an entry says so.
    pub because: Option<RemovalReason>,
    pub kept: Protector,
    pub zone: u16,
    pub outdated: bool,
    pub request: RequestedRemoval,
    /// When it was last asked to leave.
    pub asked: Time,
    pub wait: RetryWait,
    /// Its delete had no effect: it is in service again from now on.
    pub given_back: bool,
    /// A delete may have removed it recently, its drain may still run, or it serves but is not settled: it does not
    /// count as available, but its removal is charged as if it were.
    pub doubted: bool,
    /// A person holds it, or the cloud protects it: never removed.
    pub stays: bool,
    /// It waits for a retry: it must still leave, or the pool has more than it wants.
    pub tried_later: bool,
    /// It is leaving, and would be failed if given back.
    pub fails: bool,
    /// Leaving for longer than the deadline.
    pub overdue: bool,
    pub written_off: bool,
    /// The last complete listing lacks it.
    pub unlisted: bool,
    /// The cloud itself shows it leaving.
    pub shown_deleting: bool,
    /// An unanswered delete that no read shows: it may still run.
    pub perhaps_deleted: bool,
    /// It is returning to service: no other request before that ends.
    pub returning: bool,
    /// In service again, but not every load balancer sends it connections yet.
    pub balancing: bool,
    /// It is being switched off: no other request before that ends.
    pub stopping: bool,
    /// What it became by our last request, if the record does not say so yet.
    pub became: Option<Lifecycle>,
    pub role: UpdateRole,
    /// Our marks are still on its node, and cannot be removed while the cloud deletes it.
    pub marked: bool,
}

impl MachineCandidate {
    pub fn machine<'a>(&self, input: &Input<'a>) -> &'a Machine {
        &input.machines[self.index as usize]
    }

    /// A person asked to delete it.
    pub const fn is_named(&self) -> bool {
        !matches!(self.request, RequestedRemoval::No)
    }

    /// A person asked to delete it and accepts the loss.
    pub const fn is_named_now(&self) -> bool {
        matches!(self.request, RequestedRemoval::Now)
    }

    /// We switched it off.
    pub fn is_off(&self, input: &Input) -> bool {
        self.became.unwrap_or(self.machine(input).lifecycle) == Lifecycle::Standby
    }

    /// The cluster-autoscaler drains and deletes it.
    pub fn autoscaler_removes(&self, input: &Input) -> bool {
        input.facts.autoscaler_removes.contains(&self.machine(input).id)
    }

    /// It is being taken back, and is not in service yet.
    pub const fn is_on_its_way_back(&self) -> bool {
        self.returns() || matches!(self.doing, MachineActivity::TakeBack)
    }

    /// It is taken back, and its drain has not ended yet.
    pub const fn returns(&self) -> bool {
        matches!(self.doing, MachineActivity::Returns)
    }

    /// A request that starts it or switches it off has not ended.
    pub const fn is_changing(&self) -> bool {
        self.returning || self.stopping
    }

    /// Its next try is not due.
    pub const fn is_waiting(&self) -> bool {
        !matches!(self.wait, RetryWait::No)
    }

    /// The cloud is deleting it, so it leaves within its deadline.
    pub const fn is_being_deleted(&self) -> bool {
        matches!(self.doing, MachineActivity::Deleting | MachineActivity::CloudDeletes)
            && !self.overdue
    }

    /// Its delete does not end, whether ours or the cloud's.
    pub const fn is_stuck(&self) -> bool {
        let out = self.is_on_its_way()
            || matches!(
                self.doing,
                MachineActivity::Lost | MachineActivity::TakeBack | MachineActivity::Returns
            );
        self.overdue && !out
    }

    pub const fn is_on_target(&self) -> bool {
        !self.outdated && !self.is_named()
    }

    /// We never remove it.
    pub const fn is_untouchable(&self) -> bool {
        self.stays
    }

    /// In-place updates skip it as well.
    pub const fn is_frozen(&self) -> bool {
        matches!(self.kept, Protector::Person | Protector::Cloud)
    }

    /// Out of service for a request that is not sent yet.
    pub const fn is_on_its_way(&self) -> bool {
        matches!(
            self.doing,
            MachineActivity::Draining | MachineActivity::Drained | MachineActivity::DrainAgain
        )
    }
}
