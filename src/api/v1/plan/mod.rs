//! The plan: what is done, and for everything that is not done, why. One JSON document, the same bytes for the same
//! decision.
//!
//! Never here: a decision. Sentences use only what the planner reported and what it saw. Begin with [`encode`];
//! [`say`] writes the sentence of one machine.

mod actions;
mod say;

use std::fmt::Display;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::API_VERSION;
use super::remedy::RemedyKeys;
use super::state;
use super::wire::{Rfc3339, WordTable};
use crate::model::hold::Hold;
use crate::model::ids::{Key, Revision};
use crate::model::machine::Machine;
use crate::model::plan::{CommandAnswer, Decision, Estimate, Input, MachineReport, RolloutReport};
use crate::model::revisions::Revisions;
use crate::model::rollout::PoolState;
use actions::Actions;
use say::Say;

/// The plan document on one line.
pub fn encode(input: &Input<'_>, planned: &Decision) -> String {
    serde_json::to_string(&document(input, planned)).unwrap_or_default()
}

/// The plan document, ready to serialize.
pub fn document<'a>(input: &'a Input<'a>, planned: &'a Decision) -> impl Serialize + 'a {
    let report = &planned.report;
    let (resolved, numbers) = (&report.resolved, &report.numbers);
    let mut holds: Vec<&Hold> = report.holds.iter().collect();
    holds.sort_by(|a, b| {
        (a.reason.code(), &a.blockers, &a.numbers, &a.message).cmp(&(
            b.reason.code(),
            &b.blockers,
            &b.numbers,
            &b.message,
        ))
    });
    let mut asks: Vec<&CommandAnswer> = report.commands.iter().collect();
    asks.sort_by(|a, b| a.id.cmp(&b.id));
    Document {
        api_version: API_VERSION,
        kind: "Plan",
        pool: input.policy.name.as_str(),
        at: Rfc3339(report.at),
        resolved: ResolvedKeys {
            desired: numbers.desired,
            surge: resolved.surge,
            unavailable: resolved.unavailable,
            floor: resolved.floor,
            ceiling: resolved.ceiling,
            total: numbers.total,
            available: numbers.available,
            committed: numbers.committed,
            current: numbers.current,
            outdated: numbers.outdated,
            notices: &report.notices,
        },
        actions: Actions(&planned.actions),
        machines: Machines { input, planned, order: order(input, &report.machines) },
        holds: holds.into_iter().map(HoldKeys).collect(),
        commands: asks.into_iter().map(AskKeys).collect(),
        rollout: Rollout {
            report: &report.rollout,
            machines: input.machines,
            names: &planned.state.revisions,
        },
        estimate: EstimateKeys(&report.estimate),
        state: State(&planned.state),
        next_check_at: Rfc3339(report.next_check_at),
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    pool: &'a str,
    at: Rfc3339,
    resolved: ResolvedKeys<'a>,
    actions: Actions<'a>,
    machines: Machines<'a>,
    holds: Vec<HoldKeys<'a>>,
    commands: Vec<AskKeys<'a>>,
    rollout: Rollout<'a>,
    estimate: EstimateKeys<'a>,
    state: State<'a>,
    next_check_at: Rfc3339,
}

#[derive(Serialize)]
struct ResolvedKeys<'a> {
    desired: u32,
    surge: u32,
    unavailable: u32,
    floor: u32,
    ceiling: u32,
    total: u32,
    available: u32,
    committed: u32,
    current: u32,
    outdated: u32,
    notices: &'a [Box<str>],
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

struct HoldKeys<'a>(&'a Hold);

impl Serialize for HoldKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hold = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("reason", hold.reason.code())?;
        map.serialize_entry("message", &hold.message)?;
        map.serialize_entry("numbers", &Numbers(&hold.numbers))?;
        map.serialize_entry("blockers", &hold.blockers)?;
        map.serialize_entry("remedy", &hold.remedy.as_ref().map(RemedyKeys::from))?;
        map.serialize_entry("nextCheckAt", &Rfc3339(hold.next_check_at))?;
        map.end()
    }
}

struct Numbers<'a>(&'a [(&'static str, i64)]);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

struct AskKeys<'a>(&'a CommandAnswer);

impl Serialize for AskKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", self.0.id.as_str())?;
        map.serialize_entry("accepted", &self.0.accepted)?;
        map.serialize_entry("message", &self.0.message)?;
        map.end()
    }
}

struct Rollout<'a> {
    report: &'a RolloutReport,
    machines: &'a [Machine],
    names: &'a Revisions,
}

impl Serialize for Rollout<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.report;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("phase", report.phase.name())?;
        let revisions = [
            (["from", "fromName"], &report.from),
            (["to", "toName"], &report.to),
            (["reference", "referenceName"], &report.reference),
        ];
        for ([key, name], revision) in revisions {
            let called = revision.as_ref().map(|revision| self.names.name(revision));
            map.serialize_entry(key, &revision.as_ref().map(Revision::as_str))?;
            map.serialize_entry(name, &called)?;
        }
        map.serialize_entry("done", &report.done)?;
        map.serialize_entry("total", &report.total)?;
        map.serialize_entry("failed", &report.failed)?;
        map.serialize_entry("exceptions", &self.exceptions())?;
        map.end()
    }
}

impl Rollout<'_> {
    /// Machines that were left unchanged, by the names people know.
    fn exceptions(&self) -> Vec<String> {
        if self.report.exceptions.is_empty() {
            return Vec::new();
        }
        let named = self.machines.iter().map(|machine| (machine.key(), machine.id.as_str()));
        let mut named: Vec<(Key, &str)> = named.collect();
        named.sort_unstable();
        let name = |key: &Key| {
            let at = named.binary_search_by(|(known, _)| known.cmp(key)).ok();
            let id = at.and_then(|at| named.get(at)).map(|(_, id)| *id);
            id.unwrap_or(key.as_str()).to_owned()
        };
        let mut names: Vec<String> = self.report.exceptions.iter().map(name).collect();
        names.sort_unstable();
        names
    }
}

struct EstimateKeys<'a>(&'a Estimate);

impl Serialize for EstimateKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("finishes", &self.0.finishes.map(Rfc3339))?;
        map.serialize_entry("peakMachines", &self.0.peak_machines)?;
        map.serialize_entry("peakCores", &self.0.peak_cores)?;
        map.serialize_entry("calls", &self.0.calls)?;
        map.end()
    }
}
