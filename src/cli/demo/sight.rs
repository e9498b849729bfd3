//! The observed state at one moment: each machine, the numbers, the holds, the calls.

use crate::cli::draw::look::DrawStyle;
use crate::daemon::run::{Calls, PlanContext};
use crate::model::hold::{Hold, HoldReason};
use crate::model::ids::Key;
use crate::model::plan::{Numbers, RolloutPhase};
use crate::model::quantity::Resolved;
use crate::model::time::Time;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoView {
    pub key: Key,
    pub id: Box<str>,
    pub look: DrawStyle,
}

#[derive(Debug, Clone)]
pub struct DemoSight {
    /// When the state was read, and when the turn that it shows decided.
    pub at: Time,
    pub decided: Time,
    pub machines: Vec<DemoView>,
    pub numbers: Numbers,
    pub limits: Resolved,
    pub phase: RolloutPhase,
    pub done: u32,
    pub total: u32,
    pub ends: Option<Time>,
    /// The holds, as sentences.
    pub holds: Vec<Box<str>>,
    pub calls: Calls,
    /// The number of broken invariants.
    pub laws: u64,
}

impl DemoSight {
    /// `None` if the turn has no plan because the planner contradicted itself.
    pub fn of(context: &PlanContext, calls: Calls, laws: u64, at: Time) -> Option<Self> {
        let planned = context.report.planned.as_ref()?;
        let report = &planned.report;
        let machine = |row: &crate::model::plan::MachineReport| {
            let machine = context.machines.get(row.index as usize)?;
            let (condition, class) = (machine.condition, Some(row.class));
            let look =
                DrawStyle::of_machine(row.lifecycle, condition, class, machine.ever_available);
            Some(DemoView { key: machine.key(), id: machine.id.as_str().into(), look })
        };
        // The screen shows only the first ones.
        let mut holds: Vec<&Hold> = report.holds.iter().collect();
        holds.sort_by_key(|hold| hold.reason != HoldReason::InvariantViolated);
        Some(Self {
            at,
            decided: context.report.at,
            machines: report.machines.iter().filter_map(machine).collect(),
            numbers: report.numbers,
            limits: report.resolved,
            phase: report.rollout.phase,
            done: report.rollout.done,
            total: report.rollout.total,
            ends: report.estimate.finishes,
            holds: holds.into_iter().map(|hold| hold.message.clone()).collect(),
            calls,
            laws,
        })
    }

    /// Machines on the new image, of all that get it. Before the rollout opens: none of the desired ones.
    pub fn progress(&self) -> (u32, u32) {
        if self.total > 0 { (self.done, self.total) } else { (0, self.numbers.desired) }
    }

    /// Whether the pool has exactly the desired machines, all on the new image and serving.
    pub fn is_over(&self) -> bool {
        let done = matches!(
            self.phase,
            RolloutPhase::Succeeded | RolloutPhase::SucceededWithExceptions | RolloutPhase::None
        );
        let Numbers { desired, exist, available, outdated, .. } = self.numbers;
        done && outdated == 0 && available == desired && exist == desired
    }
}
