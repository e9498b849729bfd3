//! One machine: its class and the reason, what happens next, and its records.

use super::headline::headline;
use crate::api::v1::next_step::becomes;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::{
    MachineFacts, StatusPage, class_style, condition_name, lifecycle_name, since,
};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{alike, clock, list, nearer, plain, when};
use crate::model::action::MachineClass;
use crate::model::ids::{NodeName, VmId, Zone};
use crate::model::journal::{Entry, EntryOutcome, Phase};
use crate::model::machine::{Machine, Protection};
use crate::model::plan::MachineReport;
use crate::model::time::Time;
use crate::reconcile::DecisionOutcome;

/// The index of the machine with this id, vmId or node. Of several with one id, the newest: the others had it before.
pub(super) fn find(
    written: &str,
    pool: &str,
    machines: &[&Machine],
) -> Result<usize, CommandFailure> {
    let is = |machine: &&Machine| machine.id.as_str() == written;
    let also = |machine: &&Machine| {
        let vm = machine.vm.as_ref().is_some_and(|vm| vm.as_str().eq_ignore_ascii_case(written));
        vm || machine.node.as_ref().is_some_and(|node| node.as_str() == written)
    };
    let found = machines.iter().rposition(is).or_else(|| machines.iter().rposition(also));
    found.ok_or_else(|| not_found(written, pool, machines))
}

fn not_found(written: &str, pool: &str, machines: &[&Machine]) -> CommandFailure {
    let names: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    let say = format!("pool {pool} has no machine {written}");
    let failure = CommandFailure::new(Exit::NotFound, "notFound", say);
    let near = alike(&names, written);
    match (near.is_empty(), names.is_empty()) {
        (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), 3))),
        (true, true) => failure.help("the pool has no machines at all"),
        (true, false) => failure.help(format!("it has: {}", list(names.into_iter(), 8))),
    }
}

/// One machine, what happens to it, and what happened.
pub(super) struct MachineSummary<'a> {
    pub facts: MachineFacts<'a>,
    pub becomes: Option<String>,
    /// The revision to compare its own with, as a sentence.
    pub target: String,
    pub history: Vec<(&'static str, String)>,
}

impl<'a> MachineSummary<'a> {
    pub fn of(snapshot: &'a SnapshotInput, decision: &DecisionOutcome, at: usize) -> Option<Self> {
        let planned = &decision.planned;
        let machines = &planned.report.machines;
        let report = machines.iter().find(|machine| machine.index as usize == at)?;
        Some(Self {
            facts: MachineFacts::of(snapshot, decision, report)?,
            becomes: Some(becomes(report.why).to_owned()),
            target: format!("the scale set has {}", planned.state.name(&snapshot.set.revision)),
            history: history(snapshot.machines.get(at)?, report, snapshot),
        })
    }
}

pub(super) fn page(page: &mut StatusPage<'_>, about: &MachineSummary<'_>) {
    let (facts, now) = (&about.facts, page.facts.at());
    let id = plain(facts.record.id.as_str()).into_owned();
    let class = facts.class.map_or("not judged yet", MachineClass::name);
    page.paragraph(&format!("{id} is {class}: {}", nearer(&facts.message, now)));
    page.line("");
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String, style: Style| {
        table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
    };
    if let Some(becomes) = &about.becomes {
        row("Becomes", becomes.clone(), Style::Bold);
    }
    if let Some(next) = facts.next_check_at {
        row("Next check", when(next, now), Style::Plain);
    }
    if let Some(class) = facts.class {
        row("Class", means(class), class_style(class));
    }
    for (name, text) in record(about, now) {
        row(name, text, Style::Plain);
    }
    for (name, text) in &about.history {
        row(name, text.clone(), Style::Plain);
    }
    row("Pool", headline(&page.facts), Style::Plain);
    page.draw(&table);
}

fn means(class: MachineClass) -> String {
    let means = match class {
        MachineClass::Deleting => "being removed",
        MachineClass::Updating => "being updated in place",
        MachineClass::ScalingDown => "cut off or standing by, before it leaves",
        MachineClass::Unknown => "could not be seen",
        MachineClass::Held => "held by a person or protected in the cloud",
        MachineClass::Failed => "unhealthy for longer than its grace period, or never available",
        MachineClass::DeleteRequested => "marked for deletion",
        MachineClass::NotYetAvailable => "not available yet",
        MachineClass::Surplus => "more than the pool should have",
        MachineClass::Outdated => "off target, or too old",
        MachineClass::Current => "on target",
    };
    format!("{} ({means})", class.name())
}

/// The rows from the machine's record.
fn record(about: &MachineSummary<'_>, now: Time) -> Vec<(&'static str, String)> {
    let (machine, revision) = (&about.facts.record, &about.facts.revision);
    let target = &about.target;
    let mut rows = vec![
        ("Condition", since(condition_name(machine.condition), machine.since, now)),
        ("Lifecycle", since(lifecycle_name(machine.lifecycle), machine.lifecycle_since, now)),
        ("Revision", format!("{revision}; {target}")),
        (
            "Served",
            if machine.ever_available { "yes, it was available" } else { "never yet" }.into(),
        ),
        ("Created", when(machine.created, now)),
    ];
    if machine.imaged != machine.created {
        rows.push(("Disk from", when(machine.imaged, now)));
    }
    let named = [
        ("Zone", machine.zone.as_ref().map(Zone::as_str)),
        ("vmId", machine.vm.as_ref().map(VmId::as_str)),
        ("Node", machine.node.as_ref().map(NodeName::as_str)),
    ];
    rows.extend(named.into_iter().filter_map(|(name, text)| Some((name, text?.to_owned()))));
    if machine.workloads > 0 {
        rows.push(("Workloads", machine.workloads.to_string()));
    }
    match machine.protection {
        Protection::None => {}
        Protection::ScaleIn => rows.push(("Protection", "from removal".to_owned())),
        Protection::Unknown => {
            rows.push(("Protection", "cannot be read; taken as full".to_owned()));
        }
        Protection::All => rows.push(("Protection", "from removal and updates".to_owned())),
    }
    if let Some(hold) = machine.hold() {
        rows.push(("Held", format!("by {}: {}", hold.by, hold.why)));
    }
    if let Some(asked) = machine.delete_request() {
        let now = if asked.now { ", now, accepting the loss" } else { "" };
        rows.push(("Named", format!("by {}: {}{now}", asked.by, asked.why)));
    }
    rows
}

/// What was done with the machine, what is in progress, and what it waits for.
pub(super) fn history(
    machine: &Machine,
    report: &MachineReport,
    snapshot: &SnapshotInput,
) -> Vec<(&'static str, String)> {
    let now = snapshot.now;
    let mut rows = Vec::new();
    for entry in &snapshot.open {
        if entry.action.targets().iter().any(|target| target.is(machine)) {
            rows.push(("Journal", told(entry, machine, snapshot)));
        }
    }
    for fact in snapshot.facts.drains.iter().filter(|fact| fact.id == machine.id) {
        let blocker = fact.blocker.as_ref().map(|by| format!("; blocked by {by}"));
        let say = since(&fact.step, fact.since, now);
        rows.push(("Drain", format!("{say}{}", blocker.unwrap_or_default())));
    }
    let state = snapshot.state.as_ref();
    let key = machine.key();
    for blocked in state.iter().flat_map(|state| &state.blocked).filter(|b| b.key == key) {
        let times = crate::cli::text::count(blocked.times as usize, "time");
        rows.push(("Blocked", format!("{times}; next try {}", when(blocked.until, now))));
    }
    if machine.lifecycle != report.lifecycle {
        let to = lifecycle_name(report.lifecycle);
        rows.push(("Now", format!("{} → {to}", lifecycle_name(machine.lifecycle))));
    }
    rows
}

fn told(entry: &Entry, machine: &Machine, snapshot: &SnapshotInput) -> String {
    let now = snapshot.now;
    let phase = match &entry.phase {
        Phase::Ended { at, outcome, .. } => {
            let how = match (outcome, entry.outcome_for(&machine.key())) {
                (EntryOutcome::Withdrawn, _) => "withdrawn".to_owned(),
                (_, Some(Err(refused))) => {
                    let code = refused.code.map(|code| format!(" ({code})")).unwrap_or_default();
                    format!("refused: {}{code}", refused.refusal.name())
                }
                _ => "done".to_owned(),
            };
            format!("{how} at {}", clock(*at, now))
        }
        // A program that keeps the journal for us reports no more detail about an open entry.
        Phase::Intended | Phase::Asking { .. } => "under way".to_owned(),
        Phase::Accepted { at, .. } => format!("accepted at {}", clock(*at, now)),
        Phase::Doubtful { .. } => "its answer was lost; the next listing tells".to_owned(),
    };
    let verb = entry.verb().name();
    format!("{} {verb} since {}: {phase}", entry.id, clock(entry.written, now))
}
