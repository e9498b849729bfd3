//! The facts of one decision that pages show, whether it was made here, from a snapshot, or by a running server.

use std::borrow::Cow;

use super::{NAMES, revision};
use crate::api::v1;
use crate::api::v1::plan::ActionKeys;
use crate::api::v1::primary_hold::rank;
use crate::api::v1::resources::machines::{MachineStatus, class};
use crate::api::v1::resources::plans::{CommandOutcome, PlanNumbers, PlanSummary};
use crate::api::v1::resources::pools::{HoldStatus, PoolNumbers, PoolStatus};
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::text::{count, list};
use crate::model::action::MachineClass;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{CommandAnswer, MachineReason, MachineReport, Report};
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;

#[derive(Debug)]
pub(in crate::cli) struct PoolFacts<'a> {
    pub plan: PlanSummary<'a>,
    /// The judge refused the plan.
    pub frozen: bool,
    /// The counts of machines, in the order of the page.
    pub numbers: Vec<(&'static str, u32)>,
    pub holds: Vec<HoldStatus>,
    /// Each with its verb, or an empty text if the verb is not known.
    pub commands: Vec<(&'a str, CommandOutcome)>,
    pub machines: Vec<MachineFacts<'a>>,
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
    pub fn of(
        snapshot: &'a SnapshotInput,
        decision: &DecisionOutcome,
        report: &MachineReport,
    ) -> Option<Self> {
        let planned = &decision.planned;
        let record = snapshot.machines.get(report.index as usize)?;
        let input = snapshot.input();
        let say = v1::plan::say(&input, planned, report);
        let name = record.revision.as_ref().map(|revision| planned.state.name(revision));
        Some(Self {
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
    }

    /// The facts of a machine that a server classified.
    fn served(machine: &MachineStatus) -> Self {
        let (record, class) = (machine.record(), machine.class());
        let serves =
            record.condition == Condition::Ready && record.lifecycle == Lifecycle::InService;
        let next_check_at = machine.next_check_at.map(|at| at.0);
        Self {
            revision: revision(&record, machine.revision_name.as_deref()),
            record: Cow::Owned(record),
            class,
            message: machine.message.clone().unwrap_or_default(),
            next_check_at,
            quiet: class == Some(MachineClass::Current) && serves && next_check_at.is_none(),
        }
    }
}

impl<'a> PoolFacts<'a> {
    pub fn of(snapshot: &'a SnapshotInput, decision: &'a DecisionOutcome) -> Self {
        let report = &decision.planned.report;
        let machine = |of| MachineFacts::of(snapshot, decision, of);
        let plan = v1::plan::summary(&snapshot.input(), &decision.planned);
        let mut numbers = numbers(&plan.resolved, Some(&PoolNumbers::of(report)));
        let more = &report.numbers;
        numbers.push(("protected", more.protected));
        numbers.push(("deleteRequested", more.delete_requested));
        Self {
            plan,
            frozen: decision.is_frozen(),
            numbers,
            holds: report.holds.iter().map(HoldStatus::of).collect(),
            commands: commands(snapshot, report),
            machines: report.machines.iter().filter_map(machine).collect(),
        }
    }

    /// The facts of a pool on a server.
    pub fn served(
        mut plan: PlanSummary<'a>,
        status: &PoolStatus,
        machines: &[MachineStatus],
    ) -> Self {
        // The hold of a planner that contradicted itself is in no plan.
        let mut holds = status.holds.clone();
        if let Some(frozen) = status.frozen.as_ref().filter(|frozen| !holds.contains(frozen)) {
            holds.insert(0, frozen.clone());
        }
        let commands = std::mem::take(&mut plan.commands);
        Self {
            frozen: status.frozen.is_some(),
            numbers: numbers(&plan.resolved, status.numbers.as_ref()),
            holds,
            commands: commands.into_iter().map(|answer| ("", answer)).collect(),
            machines: machines.iter().map(MachineFacts::served).collect(),
            plan,
        }
    }

    /// When the plan was made.
    pub fn at(&self) -> Time {
        self.plan.at.0
    }

    /// The most important hold; of equally important ones the first.
    pub fn foremost(&self) -> Option<&HoldStatus> {
        self.holds.iter().min_by_key(|hold| rank(&hold.reason))
    }
}

fn numbers(plan: &PlanNumbers, more: Option<&PoolNumbers>) -> Vec<(&'static str, u32)> {
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

fn commands<'a>(snapshot: &'a SnapshotInput, report: &Report) -> Vec<(&'a str, CommandOutcome)> {
    let of = |answer: &CommandAnswer| {
        let command = snapshot.asks.iter().find(|command| command.id == answer.id);
        let verb = command.map_or("", |command| command.verb.name());
        (verb, CommandOutcome::from(answer))
    };
    report.commands.iter().map(of).collect()
}

/// The object of an action, as text.
pub(in crate::cli) fn object(action: &ActionKeys<'_>) -> String {
    if let (Some(from), Some(to)) = (action.from, action.to) {
        return format!("{from} → {to}");
    }
    if let Some(tag) = &action.tag {
        return tag.clone();
    }
    if let Some(fields) = &action.fields {
        let image = fields.image.as_ref().map(|image| format!("image {image}"));
        let size = fields.vm_size.as_ref().map(|size| format!("size {size}"));
        let tags = fields.tags.0.len();
        let tags = (tags > 0).then(|| count(tags, "tag"));
        let parts: Vec<String> = [image, size, tags].into_iter().flatten().collect();
        return parts.join(", ");
    }
    targets(action)
}

/// Machine ids, grouped by the class that is the reason for the action.
fn targets(action: &ActionKeys<'_>) -> String {
    let of = |id: &str| {
        let each = || action.classes.as_ref().and_then(|classes| classes.get(id));
        let name = action.class.as_ref().or_else(each);
        name.and_then(|name| class(name)).unwrap_or(MachineClass::Unknown)
    };
    let targets: Vec<(&str, MachineClass)> =
        action.machines.iter().flatten().map(|id| (&**id, of(id))).collect();
    let mut classes: Vec<MachineClass> = targets.iter().map(|(_, class)| *class).collect();
    classes.sort_unstable();
    classes.dedup();
    let of = |class: MachineClass| -> String {
        let of = targets.iter().filter(|(_, because)| *because == class);
        list(of.map(|(id, _)| *id).collect::<Vec<_>>().into_iter(), NAMES)
    };
    let parts: Vec<String> =
        classes.into_iter().map(|class| format!("{} ({})", of(class), class.name())).collect();
    parts.join("; ")
}
