//! The plan: what is done, and for everything that is not done, why. One JSON document, the same bytes for the same
//! decision.
//!
//! Never here: a decision. Sentences use only what the planner reported and what it saw. Begin with [`encode`];
//! [`say`] writes the sentence of one machine.

mod actions;
mod say;

use std::fmt::Display;

use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::API_VERSION;
use super::resources::When;
use super::resources::plans::{
    CommandOutcome, EstimateStatus, HoldStatus, PlanKeys, PlanNumbers, PlanSummary, RolloutProgress,
};
use super::state;
use super::wire::{Rfc3339, WordTable};
use crate::model::ids::Key;
use crate::model::machine::Machine;
use crate::model::plan::{Decision, Input, MachineReport};
use crate::model::rollout::PoolState;
pub use actions::ActionKeys;
use say::Say;

/// The plan document on one line.
pub fn encode(input: &Input<'_>, planned: &Decision) -> String {
    serde_json::to_string(&document(input, planned)).unwrap_or_default()
}

/// The plan document, ready to serialize.
pub fn document<'a>(
    input: &'a Input<'a>,
    planned: &'a Decision,
) -> PlanKeys<'a, impl Serialize + 'a, impl Serialize + 'a> {
    let machines = Machines { input, planned, order: order(input, &planned.report.machines) };
    keys(input, planned, machines, State(&planned.state))
}

/// The plan document without its machines and its state.
pub fn summary<'a>(input: &Input<'a>, planned: &'a Decision) -> PlanSummary<'a> {
    keys(input, planned, IgnoredAny, IgnoredAny)
}

fn keys<'a, M, S>(
    input: &Input<'a>,
    planned: &'a Decision,
    machines: M,
    state: S,
) -> PlanKeys<'a, M, S> {
    let report = &planned.report;
    let mut commands: Vec<CommandOutcome> =
        report.commands.iter().map(CommandOutcome::from).collect();
    commands.sort_by(|a, b| a.id.cmp(&b.id));
    let mut holds: Vec<HoldStatus> = report.holds.iter().map(HoldStatus::of).collect();
    holds.sort_by(|a, b| {
        (&a.reason, &a.blockers, &a.numbers.0, &a.message).cmp(&(
            &b.reason,
            &b.blockers,
            &b.numbers.0,
            &b.message,
        ))
    });
    PlanKeys {
        api_version: API_VERSION.into(),
        kind: "Plan".into(),
        pool: input.policy.name.as_str().into(),
        at: When(report.at),
        resolved: PlanNumbers::of(report),
        actions: planned.actions.iter().map(ActionKeys::of).collect(),
        machines,
        holds,
        commands,
        rollout: RolloutProgress::of(
            &report.rollout,
            exceptions(&report.rollout.exceptions, input.machines),
            &planned.state.revisions,
        ),
        estimate: EstimateStatus::of(&report.estimate),
        state,
        next_check_at: When(report.next_check_at),
    }
}

/// The sentence of one machine of this plan.
pub fn say<'a>(
    input: &'a Input<'a>,
    planned: &'a Decision,
    machine: &'a MachineReport,
) -> Option<impl Display + 'a> {
    let seen = input.machines.get(machine.index as usize)?;
    Some(Say { input, planned, machine, seen })
}

/// The reports in listing order, by index.
fn order(input: &Input<'_>, reports: &[MachineReport]) -> Vec<u32> {
    let seen = |n: &u32| {
        let report = reports.get(*n as usize)?;
        input.machines.get(report.index as usize)
    };
    let mut order: Vec<u32> = (0..reports.len() as u32).filter(|n| seen(n).is_some()).collect();
    let by_listing = |a: &u32, b: &u32| match (seen(a), seen(b)) {
        (Some(a), Some(b)) => a.listing_order(b),
        _ => a.cmp(b),
    };
    if !order.is_sorted_by(|a, b| by_listing(a, b).is_le()) {
        order.sort_by(by_listing);
    }
    order
}

struct State<'a>(&'a PoolState);

impl Serialize for State<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        state::document(self.0).serialize(serializer)
    }
}

struct Machines<'a> {
    input: &'a Input<'a>,
    planned: &'a Decision,
    order: Vec<u32>,
}

impl Serialize for Machines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.order.len()))?;
        for n in &self.order {
            let report = self.planned.report.machines.get(*n as usize);
            let seen = |machine: &MachineReport| self.input.machines.get(machine.index as usize);
            if let Some((machine, seen)) = report.and_then(|report| Some((report, seen(report)?))) {
                let (input, planned) = (self.input, self.planned);
                list.serialize_element(&MachineKeys(Say { input, planned, machine, seen }))?;
            }
        }
        list.end()
    }
}

struct MachineKeys<'a>(Say<'a>);

impl Serialize for MachineKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (machine, seen) = (self.0.machine, self.0.seen);
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("id", seen.id.as_str())?;
        map.serialize_entry("class", machine.class.name())?;
        map.serialize_entry("lifecycle", machine.lifecycle.word())?;
        map.serialize_entry("message", &AsText(&self.0))?;
        map.serialize_entry("nextCheckAt", &machine.next_check_at.map(Rfc3339))?;
        map.end()
    }
}

/// Serializes a value as its display text, without a copy.
struct AsText<'a, T>(&'a T);

impl<T: Display> Serialize for AsText<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

/// Machines that were left unchanged, by the names people know.
fn exceptions(keys: &[Key], machines: &[Machine]) -> Vec<String> {
    if keys.is_empty() {
        return Vec::new();
    }
    let named = machines.iter().map(|machine| (machine.key(), machine.id.as_str()));
    let mut named: Vec<(Key, &str)> = named.collect();
    named.sort_unstable();
    let name = |key: &Key| {
        let at = named.binary_search_by(|(known, _)| known.cmp(key)).ok();
        let id = at.and_then(|at| named.get(at)).map(|(_, id)| *id);
        id.unwrap_or(key.as_str()).to_owned()
    };
    let mut names: Vec<String> = keys.iter().map(name).collect();
    names.sort_unstable();
    names
}
