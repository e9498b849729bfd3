//! The table of machines.

use super::Page;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{count, short};
use crate::model::action::Class;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};
use crate::model::plan::{MachineReport, Why};

/// Of more machines than this, those with nothing to say are counted instead of listed.
// 40: what fits on a page together with the rest of a plan.
const FITS: usize = 40;

impl Page<'_> {
    /// `all`: also those with nothing to say.
    pub fn machines(&mut self, all: bool) {
        let reports = &self.report().machines;
        if reports.is_empty() {
            self.section("Machines", "none");
            return;
        }
        let all = all || reports.len() <= FITS;
        let quiet = |report: &&MachineReport| !all && is_quiet(report);
        let left_out = reports.iter().filter(quiet).count();
        self.section("Machines", "age counts from the birth of the disk");
        let mut table = Table::new(2);
        if left_out < reports.len() {
            table.heading(&["ID", "ZONE", "CLASS", "CONDITION", "AGE", "REVISION", "WHY"]);
        }
        for report in reports.iter().filter(|report| !quiet(report)) {
            let Some(machine) = self.snapshot.machines.get(report.index as usize) else { continue };
            table.row([
                machine.id.as_str().into(),
                machine.zone.as_ref().map_or("-", |zone| zone.as_str()).into(),
                Cell::new(report.class.name(), class_style(report.class)),
                condition(machine).into(),
                short(self.snapshot.now.since(machine.imaged)).into(),
                revision(machine).into(),
                self.sentence(report).into(),
            ]);
        }
        self.draw(&table);
        if left_out > 0 {
            let what = if left_out < reports.len() { "more machine" } else { "machine" };
            let machines = count(left_out, what);
            let line = format!("  {machines} on target and serving; --all lists them");
            self.line(&self.term.paint(Style::Dim, &line));
        }
    }
}

/// On target, serving, and nothing becomes of it.
const fn is_quiet(report: &MachineReport) -> bool {
    matches!((report.class, report.why), (Class::Current, Why::Fine))
}

pub(in crate::cli) const fn class_style(class: Class) -> Style {
    match class {
        Class::Failed => Style::Red,
        Class::Outdated | Class::Surplus | Class::DeleteRequested | Class::Unknown => Style::Yellow,
        Class::Leaving | Class::Updating | Class::Replacement => Style::Cyan,
        Class::Current => Style::Green,
        Class::Gray | Class::Held => Style::Plain,
    }
}

/// What was seen of it, and what we are doing with it.
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

pub(in crate::cli) fn revision(machine: &Machine) -> String {
    let Some(revision) = &machine.revision else { return "?".to_owned() };
    match machine.evidence {
        Evidence::Model | Evidence::Stamp => revision.as_str().to_owned(),
        Evidence::Advisory => format!("{} (advisory)", revision.as_str()),
    }
}
