//! Calls made, saved, delayed and refused, by operation.

use super::operation::PacedOperation;
use crate::model::time::Span;

/// Totals since the start, for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTally {
    /// Calls that left.
    pub made: u64,
    /// Requests answered without a call of their own.
    pub saved: u64,
    /// Calls that had to wait, their total wait and the longest one.
    pub waited: u64,
    pub waited_for: Span,
    pub longest: Span,
    /// Calls that the cloud throttled.
    pub throttled: u64,
    /// Calls that were not sent because they could not leave in time.
    pub withdrawn: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts([CallTally; PacedOperation::ALL.len()]);

impl Counts {
    pub fn of(&self, operation: PacedOperation) -> CallTally {
        self.0[operation as usize]
    }

    /// Each operation counted so far.
    pub fn iter(&self) -> impl Iterator<Item = (PacedOperation, CallTally)> + '_ {
        let all = PacedOperation::ALL.iter().map(|operation| (*operation, self.of(*operation)));
        all.filter(|(_, tally)| *tally != CallTally::default())
    }

    /// Totals of all operations.
    pub fn sum(&self) -> CallTally {
        self.0.iter().fold(CallTally::default(), |sum, one| CallTally {
            made: sum.made + one.made,
            saved: sum.saved + one.saved,
            waited: sum.waited + one.waited,
            waited_for: sum.waited_for.plus(one.waited_for),
            longest: sum.longest.max(one.longest),
            throttled: sum.throttled + one.throttled,
            withdrawn: sum.withdrawn + one.withdrawn,
        })
    }

    pub(super) fn made(&mut self, operation: PacedOperation) {
        self.0[operation as usize].made += 1;
    }

    pub(super) fn unmade(&mut self, operation: PacedOperation) {
        let made = &mut self.0[operation as usize].made;
        *made = made.saturating_sub(1);
    }

    pub(super) fn saved(&mut self, operation: PacedOperation) {
        self.0[operation as usize].saved += 1;
    }

    pub(super) fn waited(&mut self, operation: PacedOperation, span: Span) {
        let tally = &mut self.0[operation as usize];
        tally.waited += 1;
        tally.waited_for = tally.waited_for.plus(span);
        tally.longest = tally.longest.max(span);
    }

    pub(super) fn throttled(&mut self, operation: PacedOperation) {
        self.0[operation as usize].throttled += 1;
    }

    pub(super) fn refused(&mut self, operation: PacedOperation) {
        self.0[operation as usize].withdrawn += 1;
    }
}
