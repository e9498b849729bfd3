//! The plan of a turn: its numbers, its actions, its rollout.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::schema::{When, answers};
use crate::api::v1::plan::ActionKeys;
use crate::api::v1::primary_hold::{is_refusal, rank};
use crate::api::v1::remedy::RemedyKeys;
use crate::api::v1::wire::Pairs;
use crate::model::hold::Hold;
use crate::model::ids::Revision;
use crate::model::plan::{
    CommandAnswer, Estimate, GateReport, Report, RolloutPhase, RolloutReport,
};
use crate::model::revisions::Revisions;
use crate::model::size::SizeSpeaker;

/// The plan document. Its machines and its state write themselves; a client skips them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanKeys<'a, M, S> {
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    pub pool: Cow<'a, str>,
    pub at: When,
    pub resolved: PlanNumbers,
    pub actions: Vec<ActionKeys<'a>>,
    pub machines: M,
    pub holds: Vec<HoldStatus>,
    pub commands: Vec<CommandOutcome>,
    pub rollout: RolloutProgress,
    pub estimate: EstimateStatus,
    pub state: S,
    pub next_check_at: When,
}

/// A plan without its long parts, as clients and pages read it.
pub type PlanSummary<'a> = PlanKeys<'a, IgnoredAny, IgnoredAny>;

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
        pub size: SizeStatus,
    }

    /// Who says how many machines the pool has.
    pub struct SizeStatus {
        pub desired: u32,
        /// Machines that serve.
        pub available: u32,
        /// Machines above the size. An autoscaler that counts them raises the size by a rollout.
        pub surging: u32,
        /// Machines on their way out.
        pub deleting: u32,
        /// The name of the profile that decides, or count, scaleSet, scale (an order of a person) or kept (no profile has
        /// an opinion, or they are only shown).
        pub by: String,
        /// What it says; the size differs while a fall waits for a person. null: it says no number.
        pub says: Option<u32>,
        /// The other profiles.
        pub others: Vec<ProfileStatus>,
    }

    pub struct ProfileStatus {
        pub name: String,
        /// null: it has no opinion.
        pub says: Option<u32>,
        pub why: String,
    }

    /// A reason to wait.
    pub struct HoldStatus {
        pub reason: String,
        /// What this reason means in general.
        pub meaning: Cow<'static, str>,
        pub message: String,
        pub numbers: Pairs<'static, i64>,
        /// Machines, gates or fields that block progress.
        pub blockers: Vec<String>,
        pub next_check_at: When,
        /// What a person can do about it.
        pub remedy: Option<RemedyKeys>,
    }

    pub struct CommandOutcome {
        pub id: String,
        pub accepted: bool,
        pub message: String,
    }

    #[derive(Copy)]
    pub struct EstimateStatus {
        pub finishes: Option<When>,
        pub peak_machines: u32,
        pub peak_cores: Option<u32>,
        pub calls: u32,
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
        /// The gates that the rollout asks now.
        pub gates: Vec<GateStatus>,
    }

    /// A gate, and what it answers.
    pub struct GateStatus {
        pub name: String,
        /// baseline: before the first replacement. checkpoint: a checkpoint is reached. bake: every machine is done.
        pub question: Cow<'static, str>,
        /// When it was asked. An earlier measurement does not answer it.
        pub since: When,
        /// pass, fail or unknown.
        pub verdict: Cow<'static, str>,
        /// When it was measured for this question. null: not yet.
        pub at: Option<When>,
        /// What was found.
        pub message: Option<String>,
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
            size: SizeStatus::of(report),
        }
    }
}

impl SizeStatus {
    /// The size and who decides it, as in `7, by the profile day`.
    pub fn decided(&self) -> String {
        let (desired, by) = (self.desired, SizeSpeaker::of(&self.by));
        match self.says.filter(|says| *says != desired) {
            _ if by == SizeSpeaker::Kept => format!("{desired}, as it was"),
            Some(says) => format!("{desired}, while a fall to {says} by {by} waits for a person"),
            None => format!("{desired}, by {by}"),
        }
    }

    /// The same with what each other profile says; `None`: the pool has no profiles.
    pub fn sentence(&self) -> Option<String> {
        let is_plain =
            matches!(SizeSpeaker::of(&self.by), SizeSpeaker::Count | SizeSpeaker::ScaleSet);
        let others = self.others.iter().map(|profile| match profile.says {
            Some(says) => format!("; {} says {says}: {}", profile.name, profile.why),
            None => format!("; {} says nothing: {}", profile.name, profile.why),
        });
        (!is_plain).then(|| self.decided() + &others.collect::<String>())
    }

    fn of(report: &Report) -> Self {
        let others = report.size.others.iter().map(|profile| ProfileStatus {
            name: profile.name.to_string(),
            says: profile.says,
            why: profile.why.to_string(),
        });
        let numbers = &report.numbers;
        Self {
            desired: numbers.desired,
            available: numbers.available,
            surging: numbers.surging(),
            deleting: numbers.deleting,
            by: report.size.by.word().to_owned(),
            says: report.size.says,
            others: others.collect(),
        }
    }
}

impl HoldStatus {
    pub fn of(hold: &Hold) -> Self {
        Self {
            reason: hold.reason.code().to_owned(),
            meaning: hold.reason.meaning().into(),
            message: hold.message.to_string(),
            numbers: hold.numbers.iter().map(|(name, number)| ((*name).into(), *number)).collect(),
            blockers: hold.blockers.iter().map(ToString::to_string).collect(),
            next_check_at: When(hold.next_check_at),
            remedy: hold.remedy.as_ref().map(RemedyKeys::from),
        }
    }

    /// The most important hold; of equally important ones the first.
    pub fn foremost(holds: &[Self]) -> Option<&Self> {
        holds.iter().min_by_key(|hold| rank(&hold.reason))
    }

    /// The cloud refused something and keeps refusing it: the planner names what a person can do.
    pub fn is_lasting_refusal(&self) -> bool {
        self.remedy.is_some() && is_refusal(&self.reason)
    }
}

impl From<&CommandAnswer> for CommandOutcome {
    fn from(answer: &CommandAnswer) -> Self {
        let (id, message) = (answer.id.to_string(), answer.message.to_string());
        Self { id, accepted: answer.accepted, message }
    }
}

impl EstimateStatus {
    pub fn of(estimate: &Estimate) -> Self {
        Self {
            finishes: estimate.finishes.map(When),
            peak_machines: estimate.peak_machines,
            peak_cores: estimate.peak_cores,
            calls: estimate.calls,
        }
    }
}

impl GateStatus {
    fn of(gate: &GateReport) -> Self {
        Self {
            name: gate.name.to_string(),
            question: gate.question.name().into(),
            since: When(gate.since),
            verdict: gate.verdict.name().into(),
            at: gate.at.map(When),
            message: gate.say.as_deref().map(str::to_owned),
        }
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
            gates: report.gates.iter().map(GateStatus::of).collect(),
        }
    }

    pub fn is_open(&self) -> bool {
        RolloutPhase::is_open(&self.phase)
    }
}
