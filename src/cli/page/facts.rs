//! The answers of the API about one pool, from a running server or from a decision that was made here.

use crate::api::v1::plan::summary;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::plans::{HoldStatus, PlanSummary};
use crate::api::v1::resources::pools::PoolStatus;
use crate::api::v1::resources::stop::StopDetail;
use crate::api::v1::snapshot::SnapshotInput;
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;

#[derive(Debug)]
pub(in crate::cli) struct PoolFacts<'a> {
    pub plan: PlanSummary<'a>,
    pub status: PoolStatus,
    /// In the order of the plan, if it was made here.
    pub machines: Vec<MachineStatus>,
}

impl<'a> PoolFacts<'a> {
    pub fn of(snapshot: &'a SnapshotInput, decision: &'a DecisionOutcome) -> Self {
        let (input, planned) = (snapshot.input(), &decision.planned);
        let report = &planned.report;
        let machines = report.machines.iter().filter_map(|of| {
            let machine = snapshot.machines.get(of.index as usize)?;
            Some(MachineStatus::planned(machine, Some(of), &input, planned))
        });
        Self {
            machines: machines.collect(),
            status: PoolStatus {
                stop_all: snapshot.stop.as_ref().map(StopDetail::of),
                ..PoolStatus::of(&snapshot.policy, Some(report), decision.hold())
            },
            plan: summary(&input, planned),
        }
    }

    /// When the plan was made.
    pub fn at(&self) -> Time {
        self.plan.at.0
    }

    /// The judge refused the plan.
    pub fn is_frozen(&self) -> bool {
        self.status.frozen.is_some()
    }

    /// The holds of the plan; the hold of a planner that contradicted itself is in no plan.
    pub fn holds(&self) -> Vec<&HoldStatus> {
        let frozen = self.status.frozen.iter().filter(|frozen| !self.plan.holds.contains(frozen));
        frozen.chain(&self.plan.holds).collect()
    }

    /// The counts of machines, in the order of the page.
    pub fn numbers(&self) -> Vec<(&'static str, u32)> {
        let (plan, more) = (&self.plan.resolved, self.status.numbers);
        let mut numbers = vec![
            ("total", plan.total),
            ("available", plan.available),
            ("committed", plan.committed),
            ("current", plan.current),
            ("outdated", plan.outdated),
        ];
        numbers.extend(more.iter().flat_map(|more| {
            [
                ("requested", more.requested),
                ("notYetAvailable", more.not_yet_available),
                ("failed", more.failed),
                ("deleting", more.deleting),
            ]
        }));
        numbers
    }
}
