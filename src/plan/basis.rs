//! What the choices of a turn stand on: the input, the state, the machines, the rollout's limits, every reason not to
//! act.

use crate::model::plan::Input;
use crate::model::policy::Method;
use crate::model::rollout::PoolState;

use super::assessment::Assessment;
use super::candidate::MachineCandidate;
use super::counts::PoolCounts;
use super::document_size::ProfiledSize;
use super::gate::RolloutLimits;
use super::in_place;
use super::journal::Journal;
use super::machines::PoolMachines;

#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    pub input: &'a Input<'a>,
    pub memory: &'a PoolState,
    pub journal: &'a Journal<'a>,
    pub machines: &'a PoolMachines,
    pub rows: &'a [MachineCandidate],
    pub count: &'a PoolCounts,
    pub rollout: &'a RolloutLimits,
    pub why_not: &'a Assessment<'a>,
    /// What the profiles say, if the document has any.
    pub size: Option<&'a ProfiledSize>,
}

impl<'a> Basis<'a> {
    pub fn new(
        input: &'a Input<'a>,
        memory: &'a PoolState,
        journal: &'a Journal<'a>,
        machines: &'a PoolMachines,
        rollout: &'a RolloutLimits,
        why_not: &'a Assessment<'a>,
        size: Option<&'a ProfiledSize>,
    ) -> Self {
        let (rows, count) = (&machines.rows[..], &machines.count);
        Self { input, memory, journal, machines, rows, count, rollout, why_not, size }
    }

    /// Machines may be replaced now, and some are outdated.
    pub const fn gate(&self) -> bool {
        self.rollout.closed.is_none() && self.count.out > 0
    }

    pub const fn rolling(&self) -> bool {
        self.count.rolling(self.memory.rollout.is_some())
    }

    pub fn is_in_place(&self) -> bool {
        self.input.policy.rollout.method == Method::Reimage
    }

    /// How many replacements a pool of these counts may have now, where none is updated in place.
    pub fn replaced_now(&self, count: &PoolCounts) -> i64 {
        count.want(self.gate()).min(self.ahead(count))
    }

    /// How many more machines on target the rollout allows.
    pub const fn ahead(&self, count: &PoolCounts) -> i64 {
        self.rollout.limit + self.count.named - count.current
    }

    /// For in-place updates that allow no unavailable machine, one machine above D stands in until all updated machines
    /// serve.
    pub fn buffer(&self) -> i64 {
        let c = self.count;
        // Machines that stay outdated after the rollout ended need no stand-in.
        let left = self.rolling()
            || c.updating > 0
            || self.rows.iter().any(|row| in_place::is_awaited(self.input, self.memory, row));
        i64::from(left && c.surge > 0 && (c.unavailable == 0 || c.desired == 1))
    }
}
