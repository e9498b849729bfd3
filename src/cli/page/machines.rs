//! The table of machines.

use super::sentence::TimeStyle;
use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::short;
use crate::model::action::MachineClass;
use crate::model::machine::{Evidence, Lifecycle};
use crate::model::time::Time;

/// With more machines than this, those with nothing to report are counted instead of listed.
// 40 machines fit on a page together with the rest of a plan.
const FITS: usize = 40;

/// The table, and how many machines it leaves out. `all`: list also the machines with nothing to report.
pub(super) fn listed(
    machines: &[MachineStatus],
    now: Time,
    times: TimeStyle,
    all: bool,
) -> (Table, usize) {
    let all = all || machines.len() <= FITS;
    let quiet = |machine: &&MachineStatus| !all && machine.is_quiet();
    let left_out = machines.iter().filter(quiet).count();
    let mut table = Table::new(2).names(&[0, 5]);
    if left_out < machines.len() {
        table.heading(&["ID", "ZONE", "CLASS", "CONDITION", "AGE", "REVISION", "WHY"]);
    }
    for machine in machines.iter().filter(|machine| !quiet(machine)) {
        let class = match machine.class() {
            Some(class) => Cell::new(class.name(), class_style(class)),
            None => Cell::new("-", Style::Dim),
        };
        table.row([
            machine.id.as_str().into(),
            machine.zone.as_deref().unwrap_or("-").into(),
            class,
            condition(machine).into(),
            short(now.since(machine.imaged_at.0)).into(),
            revision(machine).into(),
            times.sentence(machine.message.as_deref().unwrap_or_default(), now).into(),
        ]);
    }
    (table, left_out)
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
fn condition(machine: &MachineStatus) -> String {
    let seen = machine.condition.word();
    match machine.lifecycle.0 {
        Lifecycle::InService => seen.to_owned(),
        _ => format!("{seen}/{}", machine.lifecycle.word()),
    }
}

/// The revision by its name, or by its fingerprint if it has no name.
pub(in crate::cli) fn revision(machine: &MachineStatus) -> String {
    let name = machine.revision_name.as_ref().or(machine.revision.as_ref());
    match (name, machine.evidence.0) {
        (None, _) => "?".to_owned(),
        (Some(name), Evidence::Model | Evidence::Stamp) => name.clone(),
        (Some(name), Evidence::LatestModelApplied) => format!("{name} (Azure's flag alone)"),
    }
}
