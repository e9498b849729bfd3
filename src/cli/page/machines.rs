//! The table of machines.

use super::{MachineFacts, Page};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{count, nearer, short};
use crate::model::action::Class;
use crate::model::machine::{Condition, Evidence, Lifecycle, Machine};

/// Of more machines than this, those with nothing to say are counted instead of listed.
// 40: what fits on a page together with the rest of a plan.
const FITS: usize = 40;

impl Page<'_> {
    /// `all`: also those with nothing to say.
    pub fn machines(&mut self, all: bool) {
        let (machines, now) = (&self.facts.machines, self.facts.at);
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
                nearer(&machine.say, now).into(),
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

/// By its name, where it has one.
pub(in crate::cli) fn revision(machine: &Machine, name: Option<&str>) -> String {
    let Some(revision) = &machine.revision else { return "?".to_owned() };
    let name = name.unwrap_or(revision.as_str());
    match machine.evidence {
        Evidence::Model | Evidence::Stamp => name.to_owned(),
        Evidence::Advisory => format!("{name} (advisory)"),
    }
}
