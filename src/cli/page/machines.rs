//! The table of machines.

use super::{MachineFacts, StatusPage};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{count, nearer, short};
use crate::model::action::MachineClass;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};

/// With more machines than this, those with nothing to report are counted instead of listed.
// 40 machines fit on a page together with the rest of a plan.
const FITS: usize = 40;

impl StatusPage<'_> {
    /// `all`: list also the machines with nothing to report.
    pub fn machines(&mut self, all: bool) {
        let (machines, now) = (&self.facts.machines, self.facts.at());
        if machines.is_empty() {
            self.section("Machines", "none");
            return;
        }
        let all = all || machines.len() <= FITS;
        let quiet = |machine: &&MachineFacts<'_>| !all && machine.quiet;
        let left_out = machines.iter().filter(quiet).count();
        let mut table = Table::new(2);
        if left_out < machines.len() {
            table.heading(&["ID", "ZONE", "CLASS", "CONDITION", "AGE", "REVISION", "WHY"]);
        }
        for machine in machines.iter().filter(|machine| !quiet(machine)) {
            let record = &machine.record;
            let class = match machine.class {
                Some(class) => Cell::new(class.name(), class_style(class)),
                None => Cell::new("-", Style::Dim),
            };
            table.row([
                record.id.as_str().into(),
                record.zone.as_ref().map_or("-", |zone| zone.as_str()).into(),
                class,
                condition(record).into(),
                short(now.since(record.imaged)).into(),
                machine.revision.as_str().into(),
                nearer(&machine.message, now).into(),
            ]);
        }
        let what = if left_out < machines.len() { "more machine" } else { "machine" };
        self.section("Machines", "age counts from the birth of the disk");
        self.draw(&table);
        if left_out > 0 {
            let machines = count(left_out, what);
            let line = format!("  {machines} on target and serving; --all lists them");
            self.line(&self.term.paint(Style::Dim, &line));
        }
    }
}

pub(in crate::cli) const fn class_style(class: MachineClass) -> Style {
    match class {
        MachineClass::Failed => Style::Red,
        MachineClass::Outdated
        | MachineClass::Surplus
        | MachineClass::DeleteRequested
        | MachineClass::Unknown => Style::Yellow,
        MachineClass::Deleting | MachineClass::Updating | MachineClass::NotYetAvailable => {
            Style::Cyan
        }
        MachineClass::Current => Style::Green,
        MachineClass::ScalingDown | MachineClass::Held => Style::Plain,
    }
}

/// The observed condition, and the lifecycle step in progress.
pub(in crate::cli) fn condition(machine: &Machine) -> String {
    let seen = condition_name(machine.condition);
    match machine.lifecycle {
        Lifecycle::InService => seen.to_owned(),
        doing => format!("{seen}/{}", lifecycle_name(doing)),
    }
}

pub(in crate::cli) const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::Provisioning => "Provisioning",
        Condition::Ready => "Ready",
        Condition::Unready => "Unready",
        Condition::Failed => "Failed",
        Condition::Deleting => "Deleting",
        Condition::Stopped => "Stopped",
        Condition::Unknown => "Unknown",
    }
}

pub(in crate::cli) const fn lifecycle_name(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::InService => "InService",
        Lifecycle::CutOff => "CutOff",
        Lifecycle::Standby => "Standby",
        Lifecycle::Draining => "Draining",
        Lifecycle::Drained => "Drained",
        Lifecycle::Updating => "Updating",
        Lifecycle::Deleting => "Deleting",
    }
}

/// The revision by its name, or by its fingerprint if it has no name.
pub(in crate::cli) fn revision(machine: &Machine, name: Option<&str>) -> String {
    let Some(revision) = &machine.revision else { return "?".to_owned() };
    let name = name.unwrap_or(revision.as_str());
    match machine.evidence {
        Evidence::Model | Evidence::Stamp => name.to_owned(),
        Evidence::LatestModelApplied => format!("{name} (Azure's flag alone)"),
    }
}
