//! The facts of one decision that pages show, whether it was made here, from a snapshot, or by a running server.

use crate::api::v1::remedy::RemedyKeys;
use std::borrow::Cow;

use super::{NAMES, revision};
use crate::api::v1;
use crate::api::v1::primary_hold::foremost;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::text::{count, list};
use crate::model::action::{Action, MachineClass, Target};
use crate::model::ids::Revision;
use crate::model::inventory::ModelFields;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{Decision, MachineReason, MachineReport, Report, RolloutPhase};
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;

#[derive(Debug)]
pub(in crate::cli) struct PoolFacts<'a> {
    pub pool: String,
    pub at: Time,
    /// The judge refused the plan.
    pub frozen: bool,
    pub resolved: Vec<(&'static str, u32)>,
    pub numbers: Vec<(&'static str, u32)>,
    pub available: u32,
    pub desired: u32,
    pub outdated: u32,
    pub rollout: RolloutFacts,
    pub finishes: Option<Time>,
    pub peak_machines: u32,
    pub peak_cores: Option<u32>,
    pub calls: u32,
    pub next_check_at: Time,
    pub notices: Vec<String>,
    pub actions: Vec<ActionFacts>,
    pub holds: Vec<HoldFacts>,
    /// The index of the most important hold.
    pub foremost: Option<usize>,
    pub commands: Vec<CommandFacts>,
    pub machines: Vec<MachineFacts<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct RolloutFacts {
    pub phase: String,
    pub from: Option<String>,
    pub to: Option<String>,
    /// The revision that counts as on target.
    pub reference: Option<String>,
    pub done: u32,
    pub total: u32,
    pub failed: u32,
}

impl RolloutFacts {
    pub fn is_open(&self) -> bool {
        RolloutPhase::is_open(&self.phase)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ActionFacts {
    pub verb: String,
    /// The object of the action, such as machine ids.
    pub object: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct HoldFacts {
    /// The code of the reason. The number of a violated invariant is in `numbers`.
    pub reason: String,
    pub meaning: String,
    pub message: String,
    pub numbers: Vec<(String, i64)>,
    pub blockers: Vec<String>,
    pub next_check_at: Time,
    /// The command that a person can use.
    pub remedy: Option<RemedyKeys>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct CommandFacts {
    pub id: String,
    pub verb: String,
    pub accepted: bool,
    pub message: String,
}

#[derive(Debug)]
pub(in crate::cli) struct MachineFacts<'a> {
    pub record: Cow<'a, Machine>,
    /// The name of the machine's revision.
    pub revision: String,
    /// `None`: no plan has classified it yet.
    pub class: Option<MachineClass>,
    pub message: String,
    pub next_check_at: Option<Time>,
    /// On target, serving, and nothing is planned for it.
    pub quiet: bool,
}

impl<'a> MachineFacts<'a> {
    /// The facts of a machine that another process classified.
    pub fn told(
        record: Machine,
        name: Option<&str>,
        class: Option<MachineClass>,
        say: String,
        next: Option<Time>,
    ) -> MachineFacts<'a> {
        let serves =
            record.condition == Condition::Ready && record.lifecycle == Lifecycle::InService;
        let quiet = class == Some(MachineClass::Current) && serves && next.is_none();
        let revision = revision(&record, name);
        MachineFacts {
            record: Cow::Owned(record),
            revision,
            class,
            message: say,
            next_check_at: next,
            quiet,
        }
    }
}

impl<'a> PoolFacts<'a> {
    pub fn of(snapshot: &'a SnapshotInput, decision: &DecisionOutcome) -> Self {
        let (planned, report) = (&decision.planned, &decision.planned.report);
        let estimate = &report.estimate;
        Self {
            pool: snapshot.policy.name.as_str().to_owned(),
            at: snapshot.now,
            frozen: decision.is_frozen(),
            resolved: resolved(report),
            numbers: numbers(report),
            available: report.numbers.available,
            desired: report.numbers.desired,
            outdated: report.numbers.outdated,
            rollout: rollout(planned),
            finishes: estimate.finishes,
            peak_machines: estimate.peak_machines,
            peak_cores: estimate.peak_cores,
            calls: estimate.calls,
            next_check_at: report.next_check_at,
            notices: report.notices.iter().map(ToString::to_string).collect(),
            actions: planned.actions.iter().map(action).collect(),
            holds: report.holds.iter().map(hold).collect(),
            foremost: foremost(&report.holds)
                .and_then(|first| report.holds.iter().position(|hold| hold == first)),
            commands: asks(snapshot, report),
            machines: machines(snapshot, decision),
        }
    }
}

fn resolved(report: &Report) -> Vec<(&'static str, u32)> {
    let r = &report.resolved;
    vec![
        ("desired", report.numbers.desired),
        ("surge", r.surge),
        ("unavailable", r.unavailable),
        ("floor", r.floor),
        ("ceiling", r.ceiling),
    ]
}

fn numbers(report: &Report) -> Vec<(&'static str, u32)> {
    let n = &report.numbers;
    vec![
        ("total", n.total),
        ("available", n.available),
        ("committed", n.committed),
        ("current", n.current),
        ("outdated", n.outdated),
        ("requested", n.requested),
        ("notYetAvailable", n.not_yet_available),
        ("failed", n.failed),
        ("deleting", n.deleting),
        ("protected", n.protected),
        ("deleteRequested", n.delete_requested),
    ]
}

fn rollout(planned: &Decision) -> RolloutFacts {
    let rollout = &planned.report.rollout;
    let text = |of: &Option<Revision>| of.as_ref().map(|of| planned.state.name(of));
    RolloutFacts {
        phase: rollout.phase.name().to_owned(),
        from: text(&rollout.from),
        to: text(&rollout.to),
        reference: text(&rollout.reference),
        done: rollout.done,
        total: rollout.total,
        failed: rollout.failed,
    }
}

fn action(action: &Action) -> ActionFacts {
    ActionFacts {
        verb: action.verb().name().to_owned(),
        object: object(action),
        reason: action.reason().to_owned(),
    }
}

fn hold(hold: &crate::model::hold::Hold) -> HoldFacts {
    HoldFacts {
        reason: hold.reason.code().to_owned(),
        meaning: hold.reason.meaning().to_owned(),
        message: hold.message.to_string(),
        numbers: hold.numbers.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
        blockers: hold.blockers.iter().map(ToString::to_string).collect(),
        next_check_at: hold.next_check_at,
        remedy: hold.remedy.as_ref().map(RemedyKeys::from),
    }
}

fn asks(snapshot: &SnapshotInput, report: &Report) -> Vec<CommandFacts> {
    let of = |answer: &crate::model::plan::CommandAnswer| {
        let asked = snapshot.asks.iter().find(|ask| ask.id == answer.id);
        CommandFacts {
            id: answer.id.to_string(),
            verb: asked.map_or("", |ask| ask.verb.name()).to_owned(),
            accepted: answer.accepted,
            message: answer.message.to_string(),
        }
    };
    report.commands.iter().map(of).collect()
}

fn machines<'a>(snapshot: &'a SnapshotInput, decision: &DecisionOutcome) -> Vec<MachineFacts<'a>> {
    let (input, planned) = (snapshot.input(), &decision.planned);
    let of = |report: &MachineReport| {
        let record = snapshot.machines.get(report.index as usize)?;
        let say = v1::plan::say(&input, planned, report);
        let name = record.revision.as_ref().map(|revision| planned.state.name(revision));
        Some(MachineFacts {
            record: Cow::Borrowed(record),
            revision: revision(record, name.as_deref()),
            class: Some(report.class),
            message: say.map_or_else(String::new, |say| say.to_string()),
            next_check_at: report.next_check_at,
            quiet: matches!(
                (report.class, report.why),
                (MachineClass::Current, MachineReason::Fine)
            ),
        })
    };
    planned.report.machines.iter().filter_map(of).collect()
}

/// The object of an action, as text.
pub(in crate::cli) fn object(action: &Action) -> String {
    match action {
        Action::Raise { from, to, .. } => format!("{from} → {to}"),
        Action::UpdateModel { fields, .. } => {
            let ModelFields { image, vm_size, tags } = fields;
            written(image.as_deref(), vm_size.as_deref(), tags.len())
        }
        Action::TagOwner { write, .. } => write.tag().to_string(),
        _ => {
            let of = |target: &Target| (target.id.as_str().to_owned(), target.because.class());
            targets(&action.targets().iter().map(of).collect::<Vec<_>>())
        }
    }
}

/// The fields that an action writes to the model, as text.
pub(in crate::cli) fn written(image: Option<&str>, size: Option<&str>, tags: usize) -> String {
    let image = image.map(|image| format!("image {image}"));
    let size = size.map(|size| format!("size {size}"));
    let tags = (tags > 0).then(|| count(tags, "tag"));
    let parts: Vec<String> = [image, size, tags].into_iter().flatten().collect();
    parts.join(", ")
}

/// Machine ids, grouped by the class that is the reason for the action.
pub(in crate::cli) fn targets(targets: &[(String, MachineClass)]) -> String {
    let mut classes: Vec<MachineClass> = targets.iter().map(|(_, class)| *class).collect();
    classes.sort_unstable();
    classes.dedup();
    let of = |class: MachineClass| -> String {
        let of = targets.iter().filter(|(_, because)| *because == class);
        list(of.map(|(id, _)| id.as_str()).collect::<Vec<_>>().into_iter(), NAMES)
    };
    let parts: Vec<String> =
        classes.into_iter().map(|class| format!("{} ({})", of(class), class.name())).collect();
    parts.join("; ")
}
