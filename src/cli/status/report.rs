//! The status of a pool: what is wrong, what is in progress, when it ends, what waits for a person.

use serde_json::{Value, json};

use crate::api::v1::API_VERSION;
use crate::api::v1::explanation::{NAMES, object};
use crate::api::v1::plan::ActionKeys;
use crate::api::v1::primary_hold::{needs_edit, rank};
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::plans::{HoldStatus, PlanSummary, RolloutProgress};
use crate::api::v1::resources::pools::{AwaitedRequest, IgnoredFile, PoolStatus, RolloutStatus};
use crate::cli::page::{TimeStyle, reason_and_message, rollout};
use crate::cli::text::{clock, count, list, second};
use crate::model::action::{ActionKind, MachineClass};
use crate::model::hold::HoldReason;
use crate::model::plan::RolloutPhase;
use crate::model::rollout::RolloutStage;
use crate::model::time::Time;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// The health of a pool, the worst first.
    pub(in crate::cli) enum PoolHealth {
        /// The plan would violate an invariant; nothing is done.
        Frozen = "frozen",
        /// The last reconcile failed.
        Error = "error",
        /// Machines failed, too few serve, or the rollout fails.
        Degraded = "degraded",
        /// A person must decide or act.
        ActionRequired = "actionRequired",
        /// Not reconciled yet.
        Unknown = "unknown",
        Progressing = "progressing",
        Healthy = "healthy",
    }
}

impl PoolHealth {
    /// In a sentence, after the name of the pool and a colon.
    pub const fn meaning(self) -> &'static str {
        match self {
            PoolHealth::Frozen => "frozen: the plan would violate an invariant, so nothing is done",
            PoolHealth::Error => "error: the last reconcile failed",
            PoolHealth::Degraded => "degraded",
            PoolHealth::ActionRequired => "actionRequired: a person must decide or act",
            PoolHealth::Unknown => "unknown: not reconciled yet",
            PoolHealth::Progressing => "progressing",
            PoolHealth::Healthy => "healthy",
        }
    }
}

#[derive(Debug)]
pub(in crate::cli) struct PoolReport {
    pub status: PoolStatus,
    pub health: PoolHealth,
    pub problems: Vec<String>,
    pub progress: Vec<String>,
    /// The actions of the plan.
    pub planned: Vec<String>,
    pub actions: Vec<String>,
    pub times: TimeStyle,
}

/// What is known about one pool in addition to its status.
#[derive(Debug, Default)]
pub(in crate::cli) struct More<'a> {
    pub rollout: Option<RolloutStatus>,
    pub machines: Vec<MachineStatus>,
    pub plan: Option<PlanSummary<'a>>,
}

impl More<'_> {
    fn progress(&self) -> Option<&RolloutProgress> {
        let of_plan = self.plan.as_ref().map(|plan| &plan.rollout);
        self.rollout.as_ref().map(|rollout| &rollout.progress).or(of_plan)
    }

    /// The plan acts on machines, on their number or on the model. The tag of the owner changes none of them.
    pub fn acts(&self) -> bool {
        let tag = ActionKind::TagOwner.name();
        self.plan.iter().flat_map(|plan| &plan.actions).any(|action| action.verb != tag)
    }

    /// A rollout is open: by the records of a server, or else by the plan.
    pub fn is_rolling(&self) -> bool {
        match &self.rollout {
            Some(rollout) => rollout.open.is_some(),
            None => self.progress().is_some_and(RolloutProgress::is_open),
        }
    }
}

impl PoolReport {
    /// Times are relative to the pool's last turn.
    pub fn of(status: PoolStatus, more: &More<'_>, times: TimeStyle) -> Self {
        let now = status.at.map(|at| at.0);
        let problems = problems(&status, more, now, times);
        let progress = progress(&status, more);
        let planned = planned(more, now, times);
        let actions = actions(&status, more, now, times);
        let health = match () {
            () if status.frozen.is_some() => PoolHealth::Frozen,
            () if status.trouble.is_some() => PoolHealth::Error,
            () if !problems.is_empty() => PoolHealth::Degraded,
            () if !actions.is_empty() => PoolHealth::ActionRequired,
            () if status.numbers.is_none() => PoolHealth::Unknown,
            () if !progress.is_empty() || more.acts() => PoolHealth::Progressing,
            () => PoolHealth::Healthy,
        };
        Self { status, health, problems, progress, planned, actions, times }
    }

    pub fn finishes(&self) -> Option<Time> {
        self.status.estimate.and_then(|estimate| estimate.finishes).map(|at| at.0)
    }

    /// The most important reason, in one line: what a person must do, else what is wrong, else what the pool waits for.
    pub fn foremost(&self) -> Option<String> {
        let stands = matches!(self.health, PoolHealth::Frozen | PoolHealth::Error);
        let task = self.actions.first().filter(|_| !stands);
        let first = task.or_else(|| self.problems.first()).cloned();
        let now = self.status.at.map(|at| at.0);
        first.or_else(|| {
            let hold = HoldStatus::foremost(&self.status.holds)?;
            Some(reason_and_message(hold, now.unwrap_or(hold.next_check_at.0), self.times))
        })
    }

    /// A sentence of the planner, as people read its times.
    pub fn sentence(&self, text: &str) -> String {
        let now = self.status.at.map(|at| at.0);
        now.map_or_else(|| text.to_owned(), |now| self.times.sentence(text, now))
    }

    /// The pool moves only after a person did something. A stop of all pools stands behind worse news in `health`.
    pub fn needs_person(&self) -> bool {
        self.health == PoolHealth::ActionRequired || self.status.stop_all.is_some()
    }

    /// The place in a list: the worst first, then by name.
    pub fn place(&self) -> (PoolHealth, &str) {
        (self.health, &self.status.name)
    }

    /// The phase of the rollout, `-` if there is none.
    pub fn phase(&self) -> &str {
        let phase = &*self.status.phase;
        if phase == RolloutPhase::None.name() { "-" } else { phase }
    }

    /// The document for programs; it contains the server's answers unchanged.
    pub fn document(&self, status: &Value, rollout: Option<&Value>) -> Value {
        let mut document = self.item(status, rollout);
        document["apiVersion"] = API_VERSION.into();
        document["kind"] = "PoolHealth".into();
        document
    }

    /// The same as a part of a list.
    pub fn item(&self, status: &Value, rollout: Option<&Value>) -> Value {
        json!({
            "pool": self.status.name,
            "health": self.health.name(),
            "problems": self.problems,
            "progress": self.progress.iter().chain(&self.planned).collect::<Vec<_>>(),
            "finishes": self.finishes().map(|at| at.to_string()),
            "actionRequired": self.actions,
            "status": status,
            "rollout": rollout,
        })
    }
}

/// `3 pools: 1 degraded, 2 healthy`, the worst first.
pub(in crate::cli) fn counts<'a>(reports: impl Iterator<Item = &'a PoolReport> + Clone) -> String {
    let of = |health| reports.clone().filter(|report| report.health == health).count();
    let parts = PoolHealth::ALL.into_iter().map(|health| (of(health), health.name()));
    let parts = parts.filter(|(n, _)| *n > 0).map(|(n, health)| format!("{n} {health}"));
    let parts: Vec<String> = parts.collect();
    format!("{}: {}", count(reports.count(), "pool"), parts.join(", "))
}

fn ids(machines: &[MachineStatus], is: impl Fn(MachineClass) -> bool) -> Vec<String> {
    let of = machines.iter().filter(|machine| machine.class().is_some_and(&is));
    of.map(|machine| machine.id.clone()).collect()
}

/// A sentence such as `3 machines failed: 1, 2, 3`, with the ids if they are known.
fn named(number: u32, what: &str, ids: &[String]) -> Option<String> {
    let number = usize::try_from(number).unwrap_or(usize::MAX).max(ids.len());
    (number > 0).then(|| {
        let names = list(ids.iter().map(String::as_str).collect::<Vec<_>>().into_iter(), NAMES);
        let names = if ids.is_empty() { names } else { format!(": {names}") };
        format!("{} {what}{names}", count(number, "machine"))
    })
}

fn problems(
    status: &PoolStatus,
    more: &More<'_>,
    now: Option<Time>,
    times: TimeStyle,
) -> Vec<String> {
    let mut found = Vec::new();
    let said =
        |hold: &HoldStatus| reason_and_message(hold, now.unwrap_or(hold.next_check_at.0), times);
    found.extend(status.frozen.as_ref().map(said));
    found.extend(status.trouble.as_ref().map(|trouble| {
        let since = trouble.since.0;
        // The last reconcile that decided is older than the trouble, so there is no distance to show.
        let retry = trouble.retry.map(|at| format!("; next try at {}", clock(at.0, since)));
        let since = second(since);
        format!("since {since}: {}{}", trouble.message, retry.unwrap_or_default())
    }));
    found.extend(status.ignored.as_ref().map(|ignored| {
        format!("{} has a fault, so its changes are ignored: {}", ignored.file, ignored.message)
    }));
    let refusals = status.holds.iter().filter(|hold| hold.is_lasting_refusal());
    found.extend(refusals.map(said));
    if let Some(numbers) = status.numbers {
        if numbers.available < numbers.floor.min(numbers.desired) {
            let (available, floor) = (numbers.available, numbers.floor);
            found.push(format!(
                "{available} of at least {} available",
                count(floor as usize, "machine")
            ));
        }
        let failed = ids(&more.machines, |class| class == MachineClass::Failed);
        found.extend(named(numbers.failed, "failed", &failed));
    }
    if status.phase == RolloutPhase::Stalled.name() {
        found.push("the rollout is stalled: it has not moved for longer than it may".to_owned());
    }
    let open = more.rollout.as_ref().and_then(|rollout| rollout.open.as_ref());
    if let Some(open) = open.filter(|open| open.stage == RolloutStage::FAILING) {
        found.push(format!("the rollout fails: {}", open.why.as_deref().unwrap_or_default()));
    }
    found
}

fn progress(status: &PoolStatus, more: &More<'_>) -> Vec<String> {
    let mut found = Vec::new();
    match more.progress() {
        Some(shown) if shown.is_open() => found.push(format!("rollout {}", rollout(shown))),
        Some(_) => {}
        None if RolloutPhase::is_open(&status.phase) => {
            found.push(format!("rollout {}", status.phase));
        }
        None => {}
    }
    if let Some(numbers) = status.numbers {
        let of = |wanted: MachineClass| ids(&more.machines, |class| class == wanted);
        found.extend(named(numbers.requested, "raised for and not seen yet", &[]));
        found.extend(named(
            numbers.not_yet_available,
            "not available yet",
            &of(MachineClass::NotYetAvailable),
        ));
        found.extend(named(0, "updated in place", &of(MachineClass::Updating)));
        // A listing may still show a machine that is deleted.
        let leaving = if numbers.deleting > 0 { of(MachineClass::Deleting) } else { Vec::new() };
        found.extend(named(numbers.deleting, "being removed", &leaving));
    }
    found
}

fn planned(more: &More<'_>, now: Option<Time>, times: TimeStyle) -> Vec<String> {
    let actions = more.plan.iter().flat_map(|plan| &plan.actions);
    let line = |action: &ActionKeys<'_>| {
        let why = now
            .map_or_else(|| action.message.to_string(), |now| times.sentence(&action.message, now));
        format!("{} {}: {why}", action.verb, object(action))
    };
    actions.map(line).collect()
}

/// Verbs of holds that also end by themselves, even if a person may end them sooner.
const BY_ITSELF: [&str; 3] = ["promote", "abort", "explain"];

/// The holds that need a person, the most important first.
fn actions(
    status: &PoolStatus,
    more: &More<'_>,
    now: Option<Time>,
    times: TimeStyle,
) -> Vec<String> {
    let mut needed: Vec<&HoldStatus> = status.holds.iter().collect();
    needed.sort_by_key(|hold| rank(&hold.reason));
    // A person holds or protects these machines on purpose: this is a state, not a task.
    needed.retain(|hold| hold.reason != HoldReason::Kept.code());
    let holds = needed.into_iter().filter_map(|hold| {
        let say = reason_and_message(hold, now.unwrap_or(hold.next_check_at.0), times);
        if needs_edit(&hold.reason) {
            return Some(say);
        }
        let remedy = hold.remedy.as_ref()?;
        remedy.verb().filter(|verb| !BY_ITSELF.contains(verb))?;
        Some(format!("{say}; `{}`", remedy.command(&status.name)?))
    });
    let file = status.ignored.as_ref().map(|IgnoredFile { file, .. }| {
        format!("correct {file}; `poolkeeper validate {file}` names every fault")
    });
    let persons = status.awaiting_second_person.iter().flatten().map(awaited);
    let mut found: Vec<String> = persons.chain(file).chain(holds).collect();
    // The next turn answers this request. Show it, so that a person does not send it twice.
    let asked = more.rollout.as_ref().and_then(|rollout| rollout.commands.last());
    if let Some(ask) = asked.filter(|_| !found.is_empty()) {
        found.push(format!("{} was requested by {}; the next turn answers it", ask.verb, ask.by));
    }
    found
}

/// A request that a second person must make too.
fn awaited(request: &AwaitedRequest) -> String {
    let AwaitedRequest { verb, machine, who, why, at, until, command } = request;
    let of = machine.as_ref().map(|machine| format!(" of machine {machine}"));
    let (of, until) = (of.unwrap_or_default(), clock(until.0, at.0));
    format!(
        "{who} requested {verb}{of} ({why}); a second person must request the same before {until}: `{command}`"
    )
}
