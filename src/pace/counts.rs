//! What was made, saved, waited for and refused, by operation.

use super::operation::Operation;
use crate::model::time::Span;

/// Sums since the start, for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Calls that left.
    pub made: u64,
    /// Asks that were answered without a call of their own.
    pub saved: u64,
    /// Calls that had to wait, and for how long together.
    pub waited: u64,
    pub waited_for: Span,
    /// Calls that the other side refused for their rate.
    pub throttled: u64,
    /// Calls that did not leave, since they could not in time.
    pub withdrawn: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts([Tally; Operation::ALL.len()]);

impl Counts {
    pub fn of(&self, operation: Operation) -> Tally {
        self.0[operation as usize]
    }

    /// Each operation that was ever counted.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, Tally)> + '_ {
        let all = Operation::ALL.iter().map(|operation| (*operation, self.of(*operation)));
        all.filter(|(_, tally)| *tally != Tally::default())
    }

    /// Of all operations together.
    pub fn sum(&self) -> Tally {
        self.0.iter().fold(Tally::default(), |sum, one| Tally {
            made: sum.made + one.made,
            saved: sum.saved + one.saved,
            waited: sum.waited + one.waited,
            waited_for: sum.waited_for.plus(one.waited_for),
            throttled: sum.throttled + one.throttled,
            withdrawn: sum.withdrawn + one.withdrawn,
        })
    }

    pub(super) fn made(&mut self, operation: Operation) {
        self.0[operation as usize].made += 1;
    }

    pub(super) fn unmade(&mut self, operation: Operation) {
        let made = &mut self.0[operation as usize].made;
        *made = made.saturating_sub(1);
    }

    pub(super) fn saved(&mut self, operation: Operation) {
        self.0[operation as usize].saved += 1;
    }

    pub(super) fn waited(&mut self, operation: Operation, span: Span) {
        let tally = &mut self.0[operation as usize];
        tally.waited += 1;
        tally.waited_for = tally.waited_for.plus(span);
    }

    pub(super) fn throttled(&mut self, operation: Operation) {
        self.0[operation as usize].throttled += 1;
    }

    pub(super) fn refused(&mut self, operation: Operation) {
        self.0[operation as usize].withdrawn += 1;
    }
}
