//! Long-running operations: they wait for their slowest VM, can be pre-empted, and expire.

use std::collections::BTreeSet;

use super::World;
use super::events::{Actor, EventKind, WorldChange};
use super::instance::{Lowers, Provisioning};
use super::queue::Due;
use super::quirks::{Preempt, PreemptedAs};
use super::spec::{Guid, InstanceId, Millis, OpId, SECOND, SetId};

/// Expired operations are dropped once per this many new ones; until then a GET of one is refused by its age.
const FORGET_EVERY: u64 = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// Capacity, model or policy of the set.
    PatchSet,
    DeleteInstances,
    /// DELETE or PUT of one VM: never ends another operation.
    OneInstance,
    LoadBalancer,
    Change(WorldChange),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpStatus {
    InProgress,
    Succeeded,
    Failed(OpFailure),
    Canceled(OpFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpFailure {
    pub code: &'static str,
    pub message: String,
    /// Of a set-level failure: one VM, even if the code applies to many.
    pub target: Option<InstanceId>,
}

/// The status document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpView {
    pub op: OpId,
    pub started: Millis,
    pub ended: Option<Millis>,
    pub status: OpStatus,
    /// Seconds to wait before the next poll.
    pub retry_after: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct WorldOperation {
    pub set: SetId,
    pub kind: OpKind,
    pub started: Millis,
    pub ended: Option<Millis>,
    pub status: OpStatus,
    pub failure: Option<OpFailure>,
    pub pending: BTreeSet<u64>,
    /// Reasons other than VMs to stay open.
    pub held: u32,
    pub raise: Option<Raise>,
    /// From then on its address is unknown.
    pub lost_from: Option<Millis>,
}

/// A raise that created more VMs than requested.
#[derive(Debug, Clone)]
pub(super) struct Raise {
    pub keep: u32,
    pub came_up: u32,
    pub failed: Vec<u64>,
}

impl WorldOperation {
    /// VMs of an over-provisioned raise above the requested number.
    pub fn extras(&self) -> u32 {
        self.raise.as_ref().map_or(0, |raise| {
            let made = raise.came_up + raise.failed.len() as u32 + self.pending.len() as u32;
            made.saturating_sub(raise.keep)
        })
    }
}

pub(super) fn preempted() -> OpFailure {
    let message = "Operation execution has been preempted by a more recent operation.".to_owned();
    OpFailure { code: "OperationPreempted", message, target: None }
}

impl World {
    /// A new operation of a set, open for its minimum duration. It may end older ones.
    pub(super) fn start_op(&mut self, set: SetId, kind: OpKind, by: Actor) -> OpId {
        self.next_op += 1;
        if self.next_op.is_multiple_of(FORGET_EVERY) {
            let kept_from = self.now - self.settings.operations_kept;
            self.ops.retain(|_, op| op.ended.is_none_or(|at| at >= kept_from));
        }
        let mut dice = self.dice.branch("operation").branch_number(self.next_op);
        let op = Guid::draw(&mut dice);
        self.preempt_older(set, kind, dice.chance(self.faults.preempts));
        let lost = dice.chance(self.faults.op_lost);
        let lost_after = SECOND * (dice.below(600) as Millis);
        let least = self.settings.durations.accept.draw(&mut dice);
        self.ops.insert(
            op,
            WorldOperation {
                set,
                kind,
                started: self.now,
                ended: None,
                status: OpStatus::InProgress,
                failure: None,
                pending: BTreeSet::new(),
                held: 1,
                raise: None,
                lost_from: lost.then_some(self.now + lost_after),
            },
        );
        if let Some(set) = self.sets.get_mut(&set) {
            set.running.push(op);
        }
        self.queue.push(self.now + least, Due::Release(op));
        self.log(set, EventKind::OpStarted { op, kind, by });
        op
    }

    fn preempt_older(&mut self, set: SetId, newer: OpKind, by_fault: bool) {
        if newer == OpKind::OneInstance {
            return;
        }
        let running = self.sets.get(&set).map(|s| s.running.clone()).unwrap_or_default();
        for op in running {
            let Some(kind) = self.ops.get(&op).map(|o| o.kind) else { continue };
            let ends = match self.settings.switches.preempt {
                Preempt::Never => false,
                Preempt::Patches => kind == OpKind::PatchSet,
                Preempt::All => true,
            };
            if (ends || by_fault) && kind != OpKind::OneInstance {
                self.preempt(set, op);
            }
        }
    }

    /// Ends the operation's status. Its work continues, unless its deletes are undone.
    fn preempt(&mut self, set: SetId, op: OpId) {
        let status = match self.settings.switches.preempted_as {
            PreemptedAs::Failed => OpStatus::Failed(preempted()),
            PreemptedAs::Canceled => OpStatus::Canceled(preempted()),
        };
        let Some(it) = self.ops.get(&op) else { return };
        let undo =
            it.kind == OpKind::DeleteInstances && self.settings.switches.preempted_delete_undone;
        let keys: Vec<u64> = if undo { it.pending.iter().copied().collect() } else { Vec::new() };
        self.close_op(op, status);
        for key in keys {
            // A scale-in victim is deleted in any case.
            if self.vm_mut(set, key).is_some_and(|i| i.lowers != Lowers::No) {
                self.keep_vm(set, key, Provisioning::Succeeded);
            }
        }
    }

    fn close_op(&mut self, op: OpId, status: OpStatus) {
        let now = self.now;
        let Some(it) = self.ops.get_mut(&op) else { return };
        if it.status != OpStatus::InProgress {
            return;
        }
        it.status = status.clone();
        it.ended = Some(now);
        let (set, kind) = (it.set, it.kind);
        let was_preempted = it.failure.is_none() && status != OpStatus::Succeeded;
        if let Some(set) = self.sets.get_mut(&set) {
            set.running.retain(|r| *r != op);
            if !was_preempted {
                set.last_failed = status != OpStatus::Succeeded;
            }
        }
        self.log(set, EventKind::OpEnded { op, kind, status });
    }

    /// Cancels an operation of a load balancer; the newer one does its work too.
    pub(super) fn supersede(&mut self, older: OpId, newer: OpId) {
        let message = format!(
            "Operation PutLoadBalancerOperation ({older}) was canceled and superseded by operation \
             PutLoadBalancerOperation ({newer})."
        );
        let code = "CanceledAndSupersededDueToAnotherOperation";
        self.close_op(older, OpStatus::Canceled(OpFailure { code, message, target: None }));
    }

    /// Ends the operation if it has nothing left to wait for.
    pub(super) fn try_end_op(&mut self, op: OpId) {
        let Some(it) = self.ops.get(&op) else { return };
        if it.held > 0 || !it.pending.is_empty() {
            return;
        }
        let status = match &it.failure {
            Some(failure) => OpStatus::Failed(failure.clone()),
            None => OpStatus::Succeeded,
        };
        self.close_op(op, status);
    }

    pub(super) fn hold_op(&mut self, op: OpId) {
        if let Some(it) = self.ops.get_mut(&op) {
            it.held += 1;
        }
    }

    pub(super) fn release_op(&mut self, op: OpId) {
        if let Some(it) = self.ops.get_mut(&op) {
            it.held = it.held.saturating_sub(1);
        }
        self.try_end_op(op);
    }

    /// The status shows the first failure.
    pub(super) fn op_fails(&mut self, op: OpId, failure: OpFailure) {
        if let Some(it) = self.ops.get_mut(&op) {
            it.failure.get_or_insert(failure);
        }
    }

    pub(super) fn wait_for(&mut self, op: OpId, set: SetId, key: u64) {
        if let Some(instance) = self.vm_mut(set, key)
            && !instance.ops.contains(&op)
        {
            instance.ops.push(op);
        }
        if let Some(it) = self.ops.get_mut(&op) {
            it.pending.insert(key);
        }
    }

    /// Ends the wait of every operation for this VM: it came up, failed, or was taken over.
    pub(super) fn parts_done(&mut self, set: SetId, key: u64, came: &PartResult) {
        let Some(instance) = self.vm_mut(set, key) else { return };
        let ops = std::mem::take(&mut instance.ops);
        self.end_parts(ops, key, came);
    }

    pub(super) fn end_parts(&mut self, ops: Vec<OpId>, key: u64, came: &PartResult) {
        for op in ops {
            let Some(it) = self.ops.get_mut(&op) else { continue };
            it.pending.remove(&key);
            if let PartResult::Failed(failure) = came {
                it.failure.get_or_insert_with(|| failure.clone());
            }
            if let Some(raise) = &mut it.raise {
                match came {
                    PartResult::Up => raise.came_up += 1,
                    PartResult::Failed(_) => raise.failed.push(key),
                    PartResult::Elsewhere => raise.keep = raise.keep.saturating_sub(1),
                }
                self.trim_extras(op);
            }
            self.try_end_op(op);
        }
    }

    /// A failed VM of an over-provisioned raise leaves: one fewer to keep.
    pub(super) fn leaves_raise(&mut self, set: SetId, key: u64) {
        let raising = self.sets.get(&set).map(|it| it.raising.clone()).unwrap_or_default();
        for op in raising {
            let raise = self.ops.get_mut(&op).and_then(|op| op.raise.as_mut());
            let Some(raise) = raise.filter(|raise| raise.failed.contains(&key)) else { continue };
            raise.failed.retain(|failed| *failed != key);
            raise.keep = raise.keep.saturating_sub(1);
            self.trim_extras(op);
            self.try_end_op(op);
        }
    }

    /// VMs above the requested number, of current raises.
    pub(super) fn extras(&self, set: SetId) -> u32 {
        let raising = self.sets.get(&set).map(|it| it.raising.iter());
        raising
            .into_iter()
            .flatten()
            .filter_map(|op| self.ops.get(op))
            .map(WorldOperation::extras)
            .sum()
    }

    /// Enough VMs came up: deletes the rest of an over-provisioned raise.
    fn trim_extras(&mut self, op: OpId) {
        let Some(it) = self.ops.get_mut(&op) else { return };
        let (set, Some(raise)) = (it.set, &it.raise) else { return };
        let enough = raise.came_up >= raise.keep;
        if !enough && !it.pending.is_empty() {
            return;
        }
        // Failed VMs within the requested number stay, as in any raise.
        let surplus = it.extras() as usize;
        let Some(raise) = it.raise.take() else { return };
        let mut victims: Vec<u64> = std::mem::take(&mut it.pending).into_iter().collect();
        victims.extend(raise.failed.iter().copied());
        victims.truncate(surplus);
        if let Some(it) = self.sets.get_mut(&set) {
            it.raising.retain(|raising| *raising != op);
        }
        let Some(it) = self.ops.get_mut(&op) else { return };
        if enough {
            it.failure = None;
        }
        for key in victims {
            if let Some(instance) = self.vm_mut(set, key) {
                instance.ops.retain(|o| *o != op);
            }
            self.begin_delete(set, key, None, Actor::Native, false, false);
        }
    }
}

/// How a VM left the operations that waited for it.
#[derive(Debug, Clone)]
pub(super) enum PartResult {
    Up,
    Failed(OpFailure),
    /// Deleted, gone, or taken over by a newer operation.
    Elsewhere,
}
