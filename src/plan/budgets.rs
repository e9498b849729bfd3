//! Disruption budgets of the pool's cluster that no drain gets past, said before the first machine leaves.

use std::collections::BTreeSet;

use crate::model::facts::BudgetFact;
use crate::model::machine::{Condition, Machine};
use crate::model::quantity::counted;
use crate::model::time::Span;

use super::basis::Basis;
use super::candidate::{CandidateGroup, MachineActivity, MachineCandidate, Protector};
use super::remove::Removals;

/// The most budgets to name; the rest are counted.
// 5: enough to begin with, and doctor names all of them.
const NAMES: usize = 5;

const REMEDY: &str = "let each do without one pod: `maxUnavailable` of 1 or more, or `minAvailable` below the number of its pods";

/// Budgets that can never allow a disruption, if machines with pods are to leave. They hold up no other machine.
pub(super) fn notice(basis: &Basis, removals: &Removals) -> Option<String> {
    let facts = basis.input.facts;
    if facts.budgets.is_empty() && facts.budgets_unread.is_none() {
        return None;
    }
    let leaving = leaving(basis, removals);
    if leaving.is_empty() {
        return None;
    }
    if let Some(why) = &facts.budgets_unread {
        let say = "the disruption budgets of the cluster could not be read, so those that can allow no eviction are not named";
        return Some(format!("{say}: {why}"));
    }
    let known = &facts.machine_budgets;
    let asked: BTreeSet<&str> = leaving
        .iter()
        .filter_map(|machine| known.get(&machine.id))
        .flatten()
        .map(|name| &**name)
        .collect();
    let counts = |of: &&BudgetFact| known.is_empty() || asked.contains(&*of.name);
    let never: Vec<&BudgetFact> =
        facts.budgets.iter().filter(|of| of.never_allows()).filter(counts).collect();
    (!never.is_empty()).then(|| say(&never, basis))
}

fn say(never: &[&BudgetFact], basis: &Basis) -> String {
    let first = never.iter().take(NAMES).map(|of| {
        let BudgetFact { name, healthy, desired, pods, .. } = of;
        match *pods {
            0 => format!("{name} (no controller makes its {})", counted(*healthy as usize, "pod")),
            _ => {
                let pods = counted(*pods as usize, "pod");
                format!("{name} (wants {desired} healthy of {pods}, has {healthy})")
            }
        }
    });
    let mut names = first.collect::<Vec<_>>().join(", ");
    if never.len() > NAMES {
        names.push_str(&format!(" and {} more", never.len() - NAMES));
    }
    let ladder = &basis.input.policy.drain.nodes.ladder;
    let asks = ladder.evict.plus(ladder.shorter_grace.unwrap_or(Span::ZERO));
    let then = match ladder.delete {
        Some(_) => "and then deletes it",
        None => "and then sets the machine aside",
    };
    format!(
        "even with all their pods healthy, {} can allow no eviction: {names}; a drain that meets such a pod tries for {asks} \
         {then}; {REMEDY}",
        counted(never.len(), "disruption budget"),
    )
}

/// Machines that are to leave, or are being drained, and perhaps have pods.
fn leaving<'a>(basis: &Basis<'a>, removals: &Removals) -> Vec<&'a Machine> {
    let machines = basis.input.machines;
    // Where no machine says how many it has, each node may have some.
    let says_pods = machines.iter().any(|machine| machine.workloads > 0);
    let has_pods =
        |machine: &&Machine| machine.workloads > 0 || (!says_pods && machine.node.is_some());
    let picked: BTreeSet<usize> = removals.picked.iter().map(|(row, _)| *row).collect();
    let rows = basis.rows.iter().enumerate();
    let leaving = rows.filter(|(at, row)| picked.contains(at) || is_to_leave(basis, row));
    leaving.map(|(_, row)| row.machine(basis.input)).filter(has_pods).collect()
}

fn is_to_leave(basis: &Basis, row: &MachineCandidate) -> bool {
    let gone = row.group == CandidateGroup::Ghost
        || row.machine(basis.input).condition == Condition::Deleting
        || matches!(row.doing, MachineActivity::Drained | MachineActivity::Deleting);
    let drains = matches!(row.doing, MachineActivity::Draining | MachineActivity::DrainAgain);
    // After an abort nothing outdated leaves until a person says so.
    let outdated = row.outdated && row.kept == Protector::No && !basis.memory.mixed;
    !gone && (drains || row.is_named() || outdated)
}
