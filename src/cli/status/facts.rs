//! The facts about a pool, computed once for people and for programs.

use std::collections::BTreeMap;

use crate::api::v1::plan::ActionKeys;
use crate::cli::live::LiveSet;
use crate::cli::page::{condition_name, object};
use crate::cli::text::{count, plain};
use crate::daemon::Anatomy;
use crate::model::action::MachineClass;
use crate::model::ids::Revision;
use crate::model::inventory::PlatformFeature;
use crate::model::machine::{Condition, Machine};

/// The status of one pool.
pub(super) struct SetHealth<'a> {
    pub seen: &'a LiveSet,
    pub anatomy: &'a Anatomy,
    /// Machines per condition.
    pub conditions: BTreeMap<&'static str, usize>,
    /// Machines per revision; `None`: the revision is unknown.
    pub versions: Vec<ModelVersion<'a>>,
    pub outdated: Vec<&'a str>,
    pub failed: Vec<&'a str>,
    pub unready: Vec<&'a str>,
    pub making: Vec<&'a str>,
    pub leaving: Vec<&'a str>,
    pub platform_features: Vec<&'static str>,
    pub platform_features_unknown: Vec<&'static str>,
}

pub(super) struct ModelVersion<'a> {
    pub revision: Option<&'a str>,
    pub name: String,
    pub machines: usize,
    /// This is the revision that the scale set's model creates now.
    pub is_model: bool,
}

impl<'a> SetHealth<'a> {
    pub fn of(seen: &'a LiveSet, anatomy: &'a Anatomy) -> Self {
        let machines = &seen.looked.snapshot.machines;
        let with = |is: &dyn Fn(&Machine) -> bool| -> Vec<&'a str> {
            machines
                .iter()
                .filter(|machine| is(machine))
                .map(|machine| machine.id.as_str())
                .collect()
        };
        let reports = &seen.decision.planned.report.machines;
        let of_class = |class: MachineClass| -> Vec<&'a str> {
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
        let failed = of_class(MachineClass::Failed);
        let mut unready = with(&|machine| ill.contains(&machine.condition));
        unready.retain(|id| !failed.contains(id));
        Self {
            seen,
            anatomy,
            conditions,
            versions: versions(seen),
            outdated: of_class(MachineClass::Outdated),
            failed,
            unready,
            making: with(&|machine| machine.condition == Condition::Provisioning),
            leaving: with(&|machine| machine.condition == Condition::Deleting),
            platform_features: names(&seen.looked.snapshot.set.platform_features),
            platform_features_unknown: names(&seen.looked.snapshot.set.platform_features_unknown),
        }
    }

    /// The scale set's own state, unless it is `Succeeded`.
    pub fn state(&self) -> Option<&'a str> {
        let state = self.anatomy.state.as_deref()?;
        (!state.eq_ignore_ascii_case("Succeeded")).then_some(state)
    }
}

/// One line: the availability of the pool, and what a plan would do.
pub(super) fn headline(seen: &LiveSet) -> String {
    let planned = &seen.decision.planned;
    let numbers = &planned.report.numbers;
    let name = plain(seen.looked.snapshot.policy.name.as_str());
    let acts: Vec<String> = planned
        .actions
        .iter()
        .map(|action| format!("{} {}", action.verb().name(), object(&ActionKeys::of(action))))
        .collect();
    let acts = if acts.is_empty() { "do nothing".to_owned() } else { acts.join(", ") };
    // Count like the list of failed machines: a machine that is failed and held counts as held.
    let failed =
        planned.report.machines.iter().filter(|one| one.class == MachineClass::Failed).count();
    let frozen = if seen.decision.is_frozen() { ", and is frozen by the judge" } else { "" };
    format!(
        "{name} has {} of {} available, {} outdated, {} failed; a plan would {acts}{frozen}",
        numbers.available,
        count(numbers.desired as usize, "machine"),
        numbers.outdated,
        failed
    )
}

/// The revisions: the model's first, then by number of machines.
fn versions(seen: &LiveSet) -> Vec<ModelVersion<'_>> {
    let snapshot = &seen.looked.snapshot;
    let model = snapshot.set.revision.as_str();
    let mut counts: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for machine in &snapshot.machines {
        *counts.entry(machine.revision.as_ref().map(Revision::as_str)).or_default() += 1;
    }
    let mut versions: Vec<ModelVersion<'_>> = counts
        .into_iter()
        .map(|(revision, machines)| ModelVersion {
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

fn names(platform_features: &[PlatformFeature]) -> Vec<&'static str> {
    platform_features.iter().map(|feature| feature.name()).collect()
}
