//! One pool of a server: its status, its rollout and its plan, read once.

use serde::Deserialize;
use serde_json::Value;

use super::report::{More, PoolHealth, PoolReport};
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::plans::PlanSummary;
use crate::api::v1::resources::pools::{OpenRollout, PoolStatus, RolloutStatus};
use crate::api::v1::resources::told::ReadinessStatus;
use crate::cli::client::{NO_PLAN_YET, ServerLine, strange};
use crate::cli::exit::CommandFailure;
use crate::cli::page::TimeStyle;
use crate::model::action::ActionKind;
use crate::model::hold::HoldReason;
use crate::model::time::Time;

#[derive(Debug)]
pub(in crate::cli) struct PoolLook {
    pub report: PoolReport,
    pub more: More<'static>,
    pub ready: ReadinessStatus,
    /// The same for programs.
    pub document: Value,
}

impl PoolLook {
    pub fn at(line: &ServerLine, name: &str, times: TimeStyle) -> Result<Self, CommandFailure> {
        let (_, status): (_, Value) = line.of_pool(name, &["status"])?;
        let ready: ReadinessStatus = line.probe(&["ready"])?;
        let (_, rollout): (_, Value) = line.of_pool(name, &["rollout"])?;
        let machines = line.machines(name)?;
        // Before the first turn there is no plan; the status already says so.
        let plan = match line.of_pool::<PlanSummary<'static>>(name, &["plan"]) {
            Ok((_, plan)) => Some(plan),
            Err(failure) if failure.code == NO_PLAN_YET => None,
            Err(failure) => return Err(failure),
        };
        Self::of(&status, &rollout, machines, plan, ready, times)
    }

    /// Of what a server answered.
    pub fn of(
        status: &Value,
        rollout: &Value,
        machines: Vec<MachineStatus>,
        plan: Option<PlanSummary<'static>>,
        ready: ReadinessStatus,
        times: TimeStyle,
    ) -> Result<Self, CommandFailure> {
        let read = PoolStatus::deserialize(status).map_err(|error| strange(&error))?;
        let of_rollout = RolloutStatus::deserialize(rollout).map_err(|error| strange(&error))?;
        let more = More { rollout: Some(of_rollout), machines, plan };
        let report = PoolReport::of(read, &more, times);
        let mut document = report.document(status, Some(rollout));
        document["ready"] = ready.ready.into();
        Ok(Self { report, more, ready, document })
    }

    pub fn open_rollout(&self) -> Option<&OpenRollout> {
        self.more.rollout.as_ref().and_then(|rollout| rollout.open.as_ref())
    }

    pub fn decided_at(&self) -> Option<Time> {
        self.report.status.at.map(|at| at.0)
    }

    /// The model is being written, so machines become outdated soon.
    pub fn is_model_moving(&self) -> bool {
        let mut actions = self.more.plan.iter().flat_map(|plan| &plan.actions);
        let mut holds = self.report.status.holds.iter();
        actions.any(|action| action.verb == ActionKind::UpdateModel.name())
            || holds.any(|hold| hold.reason == HoldReason::WaitingForModel.code())
    }

    /// Nothing is in progress, and the plan does nothing.
    pub fn is_at_rest(&self) -> bool {
        self.report.progress.is_empty() && !self.more.acts()
    }

    /// Where the pool is, in one line.
    pub fn step(&self) -> String {
        let report = &self.report;
        let first = match report.health {
            PoolHealth::Progressing => report.progress.first().or(report.planned.first()).cloned(),
            _ => report.foremost(),
        };
        match first {
            Some(first) => format!("{}: {first}", report.health.name()),
            None => report.health.name().to_owned(),
        }
    }
}
