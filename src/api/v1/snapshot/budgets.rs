//! The disruption budgets of a snapshot, and the machines whose pods they count.

use std::collections::BTreeMap;

use super::fault::Fault;
use super::lists::each_once;
use super::wire;
use crate::api::v1::diagnostic::{Code, nearest, quote};
use crate::api::v1::wire::RecordText;
use crate::model::facts::BudgetFact;
use crate::model::ids::InstanceId;

pub(super) const fn pods(workloads: &wire::WorkloadKeys<'_>) -> u32 {
    match workloads {
        wire::WorkloadKeys::Number(pods) => *pods,
        wire::WorkloadKeys::Said(of) => of.pods,
    }
}

/// The budgets, by name: those of the facts, and those of the cluster.
pub(super) fn all(snapshot: &wire::Snapshot<'_>) -> Result<Vec<BudgetFact>, Fault> {
    let of_facts = snapshot.facts.as_ref().and_then(|facts| facts.budgets.as_deref());
    let of_facts = of_facts.unwrap_or_default();
    let of_cluster = snapshot.cluster.as_ref().and_then(|cluster| cluster.budgets.as_deref());
    let both = || of_facts.iter().chain(of_cluster.unwrap_or_default());
    each_once(both().map(|budget| budget.name.as_str()), |n| {
        match n.checked_sub(of_facts.len()) {
            None => format!("facts.budgets[{n}].name"),
            Some(n) => format!("cluster.budgets[{n}].name"),
        }
    })?;
    let budgets = both().map(|budget| BudgetFact {
        name: budget.name.to_box(),
        healthy: budget.healthy,
        desired: budget.desired,
        allowed: budget.allowed,
        pods: budget.pods.unwrap_or(budget.healthy),
    });
    let mut budgets: Vec<BudgetFact> = budgets.collect();
    budgets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(budgets)
}

/// The names of the budgets that count pods of each machine, which must all be known.
pub(super) fn of_machines(
    machines: &[wire::MachineFields<'_>],
    known: &[BudgetFact],
) -> Result<BTreeMap<InstanceId, Vec<Box<str>>>, Fault> {
    let mut found = BTreeMap::new();
    for (n, machine) in machines.iter().enumerate() {
        let Some(wire::WorkloadKeys::Said(of)) = &machine.workloads else { continue };
        let path = |at: usize| format!("machines[{n}].workloads.budgets[{at}]");
        let names = named(of.budgets.as_deref(), known, path)?;
        if !names.is_empty() {
            found.insert(InstanceId::new(machine.id.as_str()), names);
        }
    }
    Ok(found)
}

/// The names in order, if each is of a known budget.
pub(super) fn named(
    names: Option<&[RecordText<'_>]>,
    known: &[BudgetFact],
    path: impl Fn(usize) -> String,
) -> Result<Vec<Box<str>>, Fault> {
    let names = names.unwrap_or_default();
    each_once(names.iter().map(RecordText::as_str), &path)?;
    for (at, name) in names.iter().enumerate() {
        if known.binary_search_by(|budget| (*budget.name).cmp(name.as_str())).is_err() {
            return Err(unknown(path(at), name.as_str(), known));
        }
    }
    let mut names: Vec<Box<str>> = names.iter().map(RecordText::to_box).collect();
    names.sort_unstable();
    Ok(names)
}

fn unknown(path: String, name: &str, known: &[BudgetFact]) -> Fault {
    let say = format!("facts.budgets has no budget {}", quote(name));
    let known: Vec<&str> = known.iter().map(|budget| &*budget.name).collect();
    let fault = Fault::new(path, Code::BadValue, say);
    match nearest(name, &known) {
        Some(near) => fault.help(format!("did you mean {near}?")),
        None => fault.help("list it there with its numbers"),
    }
}
