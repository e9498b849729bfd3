//! What is told of a pool: counted once, for people and for programs.

use std::collections::BTreeMap;

use crate::cli::live::Seen;
use crate::cli::page::{condition_name, object};
use crate::cli::text::{count, plain};
use crate::daemon::Anatomy;
use crate::model::action::Class;
use crate::model::ids::Revision;
use crate::model::inventory::Native;
use crate::model::machine::{Condition, Machine};

/// How one pool stands.
pub(super) struct Standing<'a> {
    pub seen: &'a Seen,
    pub anatomy: &'a Anatomy,
    /// By condition, in words.
    pub conditions: BTreeMap<&'static str, usize>,
    /// Machines by the revision they are of; `None`: it is not known.
    pub versions: Vec<Version<'a>>,
    pub outdated: Vec<&'a str>,
    pub failed: Vec<&'a str>,
    pub unready: Vec<&'a str>,
    pub making: Vec<&'a str>,
    pub leaving: Vec<&'a str>,
    pub natives: Vec<&'static str>,
    pub natives_unknown: Vec<&'static str>,
}

pub(super) struct Version<'a> {
    pub revision: Option<&'a str>,
    pub name: String,
    pub machines: usize,
    /// It is what the model of the set makes now.
    pub is_model: bool,
}

impl<'a> Standing<'a> {
    pub fn of(seen: &'a Seen, anatomy: &'a Anatomy) -> Self {
        let machines = &seen.looked.snapshot.machines;
        let with = |is: &dyn Fn(&Machine) -> bool| -> Vec<&'a str> {
            machines
                .iter()
                .filter(|machine| is(machine))
                .map(|machine| machine.id.as_str())
                .collect()
        };
        let reports = &seen.decision.planned.report.machines;
        let of_class = |class: Class| -> Vec<&'a str> {
            let of = reports.iter().filter(|report| report.class == class);
            of.filter_map(|report| machines.get(report.index as usize))
                .map(|m| m.id.as_str())
                .collect()
        };
        let mut conditions = BTreeMap::new();
        for machine in machines {
            *conditions.entry(condition_name(machine.condition)).or_default() += 1;
        }
        let ill = [Condition::Failed, Condition::Unready, Condition::Stopped, Condition::Unknown];
        let failed = of_class(Class::Failed);
        let mut unready = with(&|machine| ill.contains(&machine.condition));
        unready.retain(|id| !failed.contains(id));
        Self {
            seen,
            anatomy,
            conditions,
            versions: versions(seen),
            outdated: of_class(Class::Outdated),
            failed,
            unready,
            making: with(&|machine| machine.condition == Condition::Provisioning),
            leaving: with(&|machine| machine.condition == Condition::Deleting),
            natives: names(&seen.looked.snapshot.set.natives),
            natives_unknown: names(&seen.looked.snapshot.set.natives_unknown),
        }
    }

    /// The set's own state, where something goes on in it.
    pub fn state(&self) -> Option<&'a str> {
        let state = self.anatomy.state.as_deref()?;
        (!state.eq_ignore_ascii_case("Succeeded")).then_some(state)
    }
}

/// One line: how it serves, and what a plan would do.
pub(super) fn headline(seen: &Seen) -> String {
    let planned = &seen.decision.planned;
    let numbers = &planned.report.numbers;
    let name = plain(seen.looked.snapshot.policy.name.as_str());
    let acts: Vec<String> = planned
        .actions
        .iter()
        .map(|action| format!("{} {}", action.verb().name(), object(action)))
        .collect();
    let acts = if acts.is_empty() { "do nothing".to_owned() } else { acts.join(", ") };
    // As the list of them counts: one that is failed and held is told as held.
    let failed = planned.report.machines.iter().filter(|one| one.class == Class::Failed).count();
    let frozen = if seen.decision.refused { ", and is frozen by the judge" } else { "" };
    format!(
        "{name} has {} of {} available, {} outdated, {} failed; a plan would {acts}{frozen}",
        numbers.available,
        count(numbers.desired as usize, "machine"),
        numbers.outdated,
        failed
    )
}

/// The model's first, then those with the most machines.
fn versions(seen: &Seen) -> Vec<Version<'_>> {
    let snapshot = &seen.looked.snapshot;
    let model = snapshot.set.revision.as_str();
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for machine in &snapshot.machines {
        *counts.entry(machine.revision.as_ref().map(Revision::as_str)).or_default() += 1;
    }
    let mut versions: Vec<Version<'_>> = counts
        .into_iter()
        .map(|(revision, machines)| Version {
            revision,
            name: revision.map_or_else(
                || "unknown".to_owned(),
                |revision| seen.decision.planned.state.name(&Revision::new(revision)),
            ),
            machines,
            is_model: revision == Some(model),
        })
        .collect();
    versions.sort_by_key(|version| (!version.is_model, std::cmp::Reverse(version.machines)));
    versions
}

fn names(natives: &[Native]) -> Vec<&'static str> {
    natives.iter().map(|native| name(*native)).collect()
}

const fn name(native: Native) -> &'static str {
    match native {
        Native::RollingUpgrade => "rollingUpgrade",
        Native::AutoOsUpgrade => "autoOsUpgrade",
        Native::AutomaticRepairs => "automaticRepairs",
        Native::Autoscale => "autoscale",
        Native::Overprovision => "overprovision",
    }
}
