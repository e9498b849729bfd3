//! What a turn observed, as it passes through the turn.

use std::borrow::Cow;

use super::PoolTurn;
use crate::act::{Balance, Observed};
use crate::memory::PoolRecord;
use crate::model::action::ActionKind;
use crate::model::ids::Key;
use crate::model::inventory::Inventory;
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Decision, Facts};
use crate::model::policy::Policy;
use crate::model::rollout::PoolState;
use crate::model::time::Time;
use crate::observe::{FoldResult, Observation, fold};

/// The folded observation, as it passes through the turn.
pub(super) struct PoolObservation {
    pub inventory: Inventory,
    pub facts: Facts,
    pub folded: FoldResult,
    /// Machines whose nodes the cluster did not release: they keep their lifecycle until the next turn.
    pub stay_out: Vec<u32>,
}

impl PoolTurn {
    pub(super) fn fold(
        &self,
        image: &mut PoolRecord,
        inventory: Inventory,
        facts: Facts,
        policy: &Policy,
        now: Time,
    ) -> PoolObservation {
        let nodes_unseen = inventory.nodes_unseen().map(Box::from);
        let removed = inventory.instances.iter().filter(|row| row.autoscaler_removes);
        let autoscaler_removes = removed.map(|row| row.id.clone()).collect();
        let facts = Facts { nodes_unseen, autoscaler_removes, ..facts };
        let mut facts = self.nodes.tell(facts);
        let tombs = tombs(image.state.as_ref(), image.journal.open());
        let look = Observation {
            inventory: &inventory,
            tombs: &tombs,
            vanished: image.state.as_ref().map_or(&[], |state| &state.vanished),
            min_ready: policy.rollout.min_ready,
            now,
            before: self.folded,
            fresh: self.folded.is_none_or(|before| inventory.set.read_at > before),
        };
        let mut folded = fold(std::mem::take(&mut image.machines), &look);
        facts.nodes_anew = std::mem::take(&mut folded.nodes_anew);
        image.inbox.put_on(&mut folded.machines);
        let mut observed = PoolObservation { inventory, facts, folded, stay_out: Vec::new() };
        observed.find_left_marks(image.journal.open(), now);
        observed
    }
}

/// Machines that were deleted successfully: those in the last plan's state, and those that no plan has seen yet.
fn tombs<'a>(state: Option<&'a PoolState>, open: &[Entry]) -> Cow<'a, [(Key, Time)]> {
    let mut tombs = Cow::Borrowed(state.map_or(&[][..], |state| &state.tombs));
    for entry in open.iter().filter(|entry| entry.verb() == ActionKind::Delete) {
        let Some((ended, _)) = entry.outcome() else { continue };
        for target in entry.action.targets() {
            let key = target.key();
            let done = entry.outcome_for(&key).is_some_and(|outcome| outcome.is_ok());
            if done && !tombs.iter().any(|(tomb, _)| *tomb == key) {
                tombs.to_mut().push((key, ended));
            }
        }
    }
    tombs
}

impl PoolObservation {
    pub fn as_seen<'a>(&'a self, policy: &'a Policy, balances: bool) -> Observed<'a> {
        let pools = if balances { policy.backends(&self.inventory.set) } else { &[] };
        let hooks = balances.then_some(&policy.drain.hooks);
        Observed {
            set: &self.inventory.set,
            machines: &self.folded.machines,
            delete_deadline: policy.delete_deadline(&self.inventory.set),
            clock_ahead: self.facts.clock_ahead,
            balance: Balance { pools, hooks, drain: &policy.drain },
            cluster: policy.cluster.as_ref(),
        }
    }

    /// Otherwise only the planner changes the lifecycle of a machine.
    pub fn set_lifecycles(&mut self, planned: &Decision, now: Time) {
        for report in &planned.report.machines {
            let at = report.index as usize;
            let slot = self.folded.machines.get_mut(at).zip(self.folded.touched.get_mut(at));
            if let Some((machine, touched)) = slot
                && machine.lifecycle != report.lifecycle
                && !self.stay_out.contains(&report.index)
            {
                // After an in-place update, restart the unready timer: the update itself is not unhealthy time.
                let updated = machine.lifecycle == Lifecycle::Updating
                    && report.lifecycle == Lifecycle::InService;
                if updated {
                    machine.updated = Some(now);
                }
                if updated && machine.condition != Condition::Ready {
                    machine.since = now;
                }
                machine.lifecycle = report.lifecycle;
                machine.lifecycle_since = now;
                *touched = true;
            }
        }
    }

    /// A machine in service whose node carries a mark of ours takes no pods: the answer to a request was lost, or a
    /// release did not reach it. It is out of service until the planner has taken it back. While an entry takes it out,
    /// or its drain ended well, the planner goes by that.
    pub fn find_left_marks(&mut self, open: &[Entry], now: Time) {
        for row in self.inventory.instances.iter().filter(|row| row.marked) {
            let mut machines = self.folded.machines.iter_mut().zip(&mut self.folded.touched);
            let machine =
                machines.find(|(machine, _)| machine.id == row.id && machine.vm == row.vm);
            let Some((machine, touched)) = machine else { continue };
            let key = machine.key();
            let takes_out = |entry: &Entry| {
                let names = entry.action.targets().iter().any(|it| it.is(machine));
                let ended = entry.is_ended().then(|| entry.outcome_for(&key)).flatten();
                let drained =
                    ended.is_some_and(|how| entry.verb() == ActionKind::Drain && how.is_ok());
                names && (!entry.is_ended() || drained)
            };
            if machine.lifecycle == Lifecycle::InService && !open.iter().any(takes_out) {
                (machine.lifecycle, machine.lifecycle_since) = (Lifecycle::Draining, now);
                *touched = true;
            }
        }
    }

    pub fn touched(&self) -> Vec<Machine> {
        let each = self.folded.machines.iter().zip(&self.folded.touched);
        each.filter(|(_, touched)| **touched).map(|(machine, _)| machine.clone()).collect()
    }
}
