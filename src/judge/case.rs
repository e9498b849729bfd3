//! What a plan is judged by, and what the judge says of it.

use crate::model::ids::{Key, Revision};
use crate::model::inventory::SetReading;
use crate::model::journal::Entry;
use crate::model::machine::{Condition, Machine};
use crate::model::plan::{Command, Decision, Facts};
use crate::model::policy::Policy;
use crate::model::rollout::{PoolState, Rollout, RolloutStage};
use crate::model::stop::GlobalStop;
use crate::model::time::{Span, Time};

/// A plan about to be carried out, and all evidence to judge it by.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// When the first call of the plan is sent.
    pub now: Time,
    pub policy: &'a Policy,
    pub set: &'a SetReading,
    /// Machine records with the read folded in.
    pub machines: &'a [Machine],
    /// Open entries, and those that ended within a day.
    pub journal: &'a [Entry],
    /// The first entries, of this number, are those that an earlier plan saw ended: they have no further effect.
    pub learnt: usize,
    pub planned: &'a Decision,
    /// The memory that the plan was given; `planned` has the memory that it returned.
    pub before: Option<&'a PoolState>,
    pub facts: &'a Facts,
    /// A person stopped all pools.
    pub stop: Option<&'a GlobalStop>,
    /// Operators' requests for this turn.
    pub commands: &'a [Command],
}

impl<'a> Case<'a> {
    /// How long a delete may take: the machines may first go on for as long as the cloud lets them.
    pub(super) fn delete_deadline(&self) -> Span {
        self.policy.deletion.deadline.plus(self.set.terminate_notice)
    }

    /// Out of service, it is so elsewhere too: on its node, at load balancers, or where hooks say.
    pub(super) fn leaves_marks(&self, machine: &Machine) -> bool {
        machine.node.is_some() || self.has_traffic()
    }

    fn has_traffic(&self) -> bool {
        let drain = &self.policy.drain;
        let hooked = drain.hooks.before.is_some() || drain.hooks.after.is_some();
        hooked || !drain.balancers.pools(&self.set.backends).is_empty()
    }

    /// A machine with a node, or one that may get traffic, is drained before it goes.
    pub(super) fn drains(&self, machine: &Machine) -> bool {
        machine.node.is_some() || self.gets_traffic(machine)
    }

    /// Load balancers may send it traffic, or hooks know of some.
    pub(super) fn gets_traffic(&self, machine: &Machine) -> bool {
        let served = machine.ever_available || machine.condition == Condition::Ready;
        served && machine.condition != Condition::Stopped && self.has_traffic()
    }

    /// The revision that counts as "on target": the target of the rollout, or what it left once it is failing.
    pub(super) fn target(&self) -> Option<&'a Revision> {
        let planned = self.planned;
        match &planned.state.rollout {
            Some(Rollout { stage: RolloutStage::Failing { .. }, from, to, .. }) => {
                from.as_ref().or(planned.report.rollout.reference.as_ref()).or(Some(to))
            }
            Some(rollout) => Some(&rollout.to),
            None => planned.state.wanted.as_ref().or(Some(&self.set.revision)),
        }
    }
}

/// A broken law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub law: u8,
    pub say: Box<str>,
    pub machines: Vec<Key>,
}

#[derive(Debug, Default)]
pub(super) struct Notes(pub(super) Vec<Note>);

impl Notes {
    pub(super) fn add(&mut self, law: u8, say: impl Into<Box<str>>, machines: Vec<Key>) {
        self.0.push(Note { law, say: say.into(), machines });
    }

    /// A note about machines, if there are any.
    pub(super) fn about(&mut self, law: u8, say: &str, machines: Vec<Key>) {
        if !machines.is_empty() {
            self.add(law, say, machines);
        }
    }
}
