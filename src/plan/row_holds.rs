//! Holds that name the machines they are about.

use crate::model::command::CommandName;
use crate::model::hold::{Hold, HoldReason, MOST_BLOCKERS, Remedy};
use crate::model::ids::InstanceId;

use super::basis::Basis;
use super::candidate::MachineCandidate;
use super::holds::Holds;

/// The names of the first matching rows, for people.
pub(super) fn blockers(basis: &Basis, of: impl Fn(&MachineCandidate) -> bool) -> Vec<Box<str>> {
    let rows = basis.rows.iter().filter(|row| of(row)).take(MOST_BLOCKERS);
    rows.map(|row| row.machine(basis.input).id.as_str().into()).collect()
}

/// One hold for all matching rows, if any.
pub(super) fn about<'h>(
    basis: &Basis,
    holds: &'h mut Holds,
    reason: HoldReason,
    of: impl Fn(&MachineCandidate) -> bool,
    say: impl Fn(usize) -> String,
    verb: Option<CommandName>,
) -> Option<&'h mut Hold> {
    let many = basis.rows.iter().filter(|row| of(row)).count();
    if many == 0 {
        return None;
    }
    let hold = holds.add(reason, say(many));
    hold.number("machines", many as i64);
    hold.blockers = blockers(basis, of);
    hold.remedy = verb.map(|verb| {
        let machine = hold.blockers.first().filter(|_| verb.is_of_a_machine());
        Remedy::Command { verb, machine: machine.map(InstanceId::new), now: false }
    });
    Some(hold)
}
