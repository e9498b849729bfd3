//! What pages tell of one decision, wherever it was made: here, from a snapshot, or by a Poolkeeper that serves.

use std::borrow::Cow;

use super::{NAMES, revision, rule};
use crate::api::v1;
use crate::api::v1::foremost::foremost;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::decide::Decision;
use crate::cli::text::{count, list};
use crate::model::action::{Action, Class, Target};
use crate::model::ids::Revision;
use crate::model::inventory::ModelFields;
use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::plan::{MachineReport, Planned, Report, RolloutPhase, Why};
use crate::model::time::Time;

#[derive(Debug)]
pub(in crate::cli) struct Facts<'a> {
    pub pool: String,
    pub at: Time,
    /// The judge refused what was planned.
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
    pub again: Time,
    pub notices: Vec<String>,
    pub actions: Vec<ActionFacts>,
    pub holds: Vec<HoldFacts>,
    /// Which hold says most.
    pub foremost: Option<usize>,
    pub asks: Vec<AskFacts>,
    pub machines: Vec<MachineFacts<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct RolloutFacts {
    pub phase: String,
    pub from: Option<String>,
    pub to: Option<String>,
    /// What counts as on target.
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
    /// What it acts on.
    pub object: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct HoldFacts {
    /// Its name; of a broken law with its number.
    pub rule: String,
    pub meaning: String,
    pub say: String,
    pub numbers: Vec<(String, i64)>,
    pub blockers: Vec<String>,
    pub recheck: Time,
    /// What a person can do about it.
    pub verb: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct AskFacts {
    pub id: String,
    pub verb: String,
    pub accepted: bool,
    pub say: String,
}

#[derive(Debug)]
pub(in crate::cli) struct MachineFacts<'a> {
    pub record: Cow<'a, Machine>,
    /// The name of its revision.
    pub revision: String,
    /// `None`: no plan has looked at it.
    pub class: Option<Class>,
    pub say: String,
    pub next: Option<Time>,
    /// On target, serving, and nothing becomes of it.
    pub quiet: bool,
}

impl<'a> MachineFacts<'a> {
    /// Of a record that another process judged.
    pub fn told(
        record: Machine,
        name: Option<&str>,
        class: Option<Class>,
        say: String,
        next: Option<Time>,
    ) -> MachineFacts<'a> {
        let serves =
            record.condition == Condition::Ready && record.lifecycle == Lifecycle::InService;
        let quiet = class == Some(Class::Current) && serves && next.is_none();
        let revision = revision(&record, name);
        MachineFacts { record: Cow::Owned(record), revision, class, say, next, quiet }
    }
}

impl<'a> Facts<'a> {
    pub fn of(snapshot: &'a SnapshotInput, decision: &Decision) -> Self {
        let (planned, report) = (&decision.planned, &decision.planned.report);
        let estimate = &report.estimate;
        Self {
            pool: snapshot.policy.name.as_str().to_owned(),
            at: snapshot.now,
            frozen: decision.refused,
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
            again: report.again,
            notices: report.notices.iter().map(ToString::to_string).collect(),
            actions: planned.actions.iter().map(action).collect(),
            holds: report.holds.iter().map(hold).collect(),
            foremost: foremost(&report.holds)
                .and_then(|first| report.holds.iter().position(|hold| hold == first)),
            asks: asks(snapshot, report),
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
        ("live", n.live),
        ("available", n.available),
        ("promise", n.promise),
        ("current", n.current),
        ("outdated", n.outdated),
        ("pending", n.pending),
        ("young", n.young),
        ("failed", n.failed),
        ("leaving", n.leaving),
        ("kept", n.kept),
        ("named", n.named),
    ]
}

fn rollout(planned: &Planned) -> RolloutFacts {
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

fn hold(hold: &crate::model::budget::Hold) -> HoldFacts {
    HoldFacts {
        rule: rule(hold),
        meaning: hold.reason.meaning().to_owned(),
        say: hold.say.to_string(),
        numbers: hold.numbers.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
        blockers: hold.blockers.iter().map(ToString::to_string).collect(),
        recheck: hold.recheck,
        verb: hold.verb.map(str::to_owned),
    }
}

fn asks(snapshot: &SnapshotInput, report: &Report) -> Vec<AskFacts> {
    let of = |answer: &crate::model::plan::AskAnswer| {
        let asked = snapshot.asks.iter().find(|ask| ask.id == answer.id);
        AskFacts {
            id: answer.id.to_string(),
            verb: asked.map_or("", |ask| ask.verb.name()).to_owned(),
            accepted: answer.accepted,
            say: answer.say.to_string(),
        }
    };
    report.asks.iter().map(of).collect()
}

fn machines<'a>(snapshot: &'a SnapshotInput, decision: &Decision) -> Vec<MachineFacts<'a>> {
    let (input, planned) = (snapshot.input(), &decision.planned);
    let of = |report: &MachineReport| {
        let record = snapshot.machines.get(report.index as usize)?;
        let say = v1::plan::say(&input, planned, report);
        let name = record.revision.as_ref().map(|revision| planned.state.name(revision));
        Some(MachineFacts {
            record: Cow::Borrowed(record),
            revision: revision(record, name.as_deref()),
            class: Some(report.class),
            say: say.map_or_else(String::new, |say| say.to_string()),
            next: report.next,
            quiet: matches!((report.class, report.why), (Class::Current, Why::Fine)),
        })
    };
    planned.report.machines.iter().filter_map(of).collect()
}

/// What an action acts on.
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

/// What is written into a model.
pub(in crate::cli) fn written(image: Option<&str>, size: Option<&str>, tags: usize) -> String {
    let image = image.map(|image| format!("image {image}"));
    let size = size.map(|size| format!("size {size}"));
    let tags = (tags > 0).then(|| count(tags, "tag"));
    let parts: Vec<String> = [image, size, tags].into_iter().flatten().collect();
    parts.join(", ")
}

/// Ids by the class that they leave for, where there are several.
pub(in crate::cli) fn targets(targets: &[(String, Class)]) -> String {
    let mut classes: Vec<Class> = targets.iter().map(|(_, class)| *class).collect();
    classes.sort_unstable();
    classes.dedup();
    let of = |class: Class| -> String {
        let of = targets.iter().filter(|(_, because)| *because == class);
        list(of.map(|(id, _)| id.as_str()).collect::<Vec<_>>().into_iter(), NAMES)
    };
    let parts: Vec<String> =
        classes.into_iter().map(|class| format!("{} ({})", of(class), class.name())).collect();
    parts.join("; ")
}
