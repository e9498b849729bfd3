//! The plan of a turn: its numbers, its actions, its rollout.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::pools::EstimateStatus;
use super::schema::{When, answers};
use crate::api::v1::plan::ActionKeys;
use crate::model::ids::Revision;
use crate::model::plan::{CommandAnswer, Report, RolloutPhase, RolloutReport};
use crate::model::revisions::Revisions;

/// The plan document. Its machines, holds and state write themselves; a client skips them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanKeys<'a, M, H, S> {
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub pool: Cow<'a, str>,
    pub at: When,
    pub resolved: PlanNumbers,
    pub actions: Vec<ActionKeys<'a>>,
    pub machines: M,
    pub holds: H,
    pub commands: Vec<CommandOutcome>,
    pub rollout: RolloutProgress,
    pub estimate: EstimateStatus,
    pub state: S,
    pub next_check_at: When,
}

/// A plan without its long parts, as clients and pages read it.
pub type PlanSummary<'a> = PlanKeys<'a, IgnoredAny, IgnoredAny, IgnoredAny>;

answers! {
    pub struct PlanNumbers {
        pub desired: u32,
        pub surge: u32,
        pub unavailable: u32,
        pub floor: u32,
        pub ceiling: u32,
        pub total: u32,
        pub available: u32,
        pub committed: u32,
        pub current: u32,
        pub outdated: u32,
        pub notices: Vec<String>,
    }

    pub struct CommandOutcome {
        pub id: String,
        pub accepted: bool,
        pub message: String,
    }

    pub struct RolloutProgress {
        pub phase: Cow<'static, str>,
        pub from: Option<String>,
        /// The readable name: the version of the image, the size of the machines, or a number.
        pub from_name: Option<String>,
        pub to: Option<String>,
        pub to_name: Option<String>,
        /// The revision that counts as on target.
        pub reference: Option<String>,
        pub reference_name: Option<String>,
        pub done: u32,
        pub total: u32,
        pub failed: u32,
        /// Machines that were left unchanged.
        pub exceptions: Vec<String>,
    }
}

impl PlanNumbers {
    pub fn of(report: &Report) -> Self {
        let (numbers, resolved) = (&report.numbers, &report.resolved);
        Self {
            desired: numbers.desired,
            surge: resolved.surge,
            unavailable: resolved.unavailable,
            floor: resolved.floor,
            ceiling: resolved.ceiling,
            total: numbers.total,
            available: numbers.available,
            committed: numbers.committed,
            current: numbers.current,
            outdated: numbers.outdated,
            notices: report.notices.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&CommandAnswer> for CommandOutcome {
    fn from(answer: &CommandAnswer) -> Self {
        let (id, message) = (answer.id.to_string(), answer.message.to_string());
        Self { id, accepted: answer.accepted, message }
    }
}

impl RolloutProgress {
    pub fn of(report: &RolloutReport, exceptions: Vec<String>, names: &Revisions) -> Self {
        let text = |of: &Option<Revision>| of.as_ref().map(ToString::to_string);
        let name = |of: &Option<Revision>| of.as_ref().map(|revision| names.name(revision));
        Self {
            phase: report.phase.name().into(),
            from: text(&report.from),
            from_name: name(&report.from),
            to: text(&report.to),
            to_name: name(&report.to),
            reference: text(&report.reference),
            reference_name: name(&report.reference),
            done: report.done,
            total: report.total,
            failed: report.failed,
            exceptions,
        }
    }

    pub fn is_open(&self) -> bool {
        RolloutPhase::is_open(&self.phase)
    }
}
