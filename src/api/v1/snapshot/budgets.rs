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

/// The budgets, by name.
pub(super) fn all(facts: &wire::FactKeys<'_>) -> Result<Vec<BudgetFact>, Fault> {
    let names = facts.budgets.iter().flatten().map(|budget| budget.name.as_str());
    each_once(names, |n| format!("facts.budgets[{n}].name"))?;
    let budgets = facts.budgets.iter().flatten().map(|budget| BudgetFact {
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
        let names = of.budgets.as_deref().unwrap_or_default();
        let path = |at: usize| format!("machines[{n}].workloads.budgets[{at}]");
        each_once(names.iter().map(RecordText::as_str), path)?;
        for (at, name) in names.iter().enumerate() {
            if known.binary_search_by(|budget| (*budget.name).cmp(name.as_str())).is_err() {
                return Err(unknown(path(at), name.as_str(), known));
            }
        }
        if !names.is_empty() {
            let mut names: Vec<Box<str>> = names.iter().map(RecordText::to_box).collect();
            names.sort_unstable();
            found.insert(InstanceId::new(machine.id.as_str()), names);
        }
    }
    Ok(found)
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
