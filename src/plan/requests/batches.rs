//! What a turn asks for, by kind.

use crate::model::action::{RemovalReason, Target};
use crate::model::machine::Lifecycle;
use crate::model::plan::MachineReason;
use crate::plan::basis::Basis;
use crate::plan::candidate::MachineCandidate;
use crate::plan::{locks, setbacks};

#[derive(Default)]
pub(super) struct Batches {
    pub restore: Vec<Target>,
    pub delete: Vec<Target>,
    pub reimage: Vec<Target>,
    pub drain: Vec<Target>,
    pub cut: Vec<Target>,
    pub off: Vec<Target>,
    pub moved: Vec<(usize, Lifecycle, MachineReason)>,
    pub awaited: Vec<usize>,
    /// Lost machines that no restored machine replaces.
    pub missing: i64,
    /// How many failed machines may go on leaving as surplus: with them, and with those that are replaced, the pool has
    /// more than D.
    pub failed_over: i64,
    /// The deletes are requested a second time, and may be forced.
    pub again: bool,
}

impl Batches {
    /// How many missing machines this one could make up for if given back. A machine that would fail again makes up for
    /// none.
    pub fn missing_for(&mut self, row: &MachineCandidate) -> i64 {
        if !(leaves_as_surplus(row) && row.fails) {
            return self.missing;
        }
        self.failed_over -= 1;
        if self.failed_over >= 0 { 0 } else { self.missing }
    }
}

pub(super) fn leaves_as_surplus(row: &MachineCandidate) -> bool {
    row.is_on_its_way() && row.because == Some(RemovalReason::Surplus)
}

pub(super) fn put(basis: &Basis, batch: &mut Vec<Target>, at: usize, because: RemovalReason) {
    batch.push(Target::of(basis.rows[at].machine(basis.input), because));
}

pub(super) fn restore_waits(basis: &Basis, row: &MachineCandidate) -> bool {
    let machine = row.machine(basis.input);
    (basis.why_not.starts_wait && row.is_off(basis.input))
        || setbacks::restore_waits(basis.input, basis.memory, machine)
        || locks::forbid_start(basis.input, machine)
}
