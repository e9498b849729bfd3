//! One machine: its class and the reason, what happens next, and its records.

use crate::api::v1::explanation::{headline, no_machine};
use crate::api::v1::next_step::drain_step;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::Explanation;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::{StatusPage, TimeStyle, class_style, revision};
use crate::cli::table::{Cell, Table};
use crate::cli::term::Style;
use crate::cli::text::{alike, count, list};
use crate::model::action::MachineClass;
use crate::model::journal::{Entry, EntryOutcome, Phase};
use crate::model::machine::{Machine, Protection};
use crate::model::plan::MachineReport;
use crate::model::time::Time;

pub(super) fn not_found(written: &str, pool: &str, machines: &[MachineStatus]) -> CommandFailure {
    let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
    let say = no_machine(pool, written, &ids);
    let failure = CommandFailure::new(Exit::NotFound, "notFound", say);
    // Numbers that look alike are not near each other.
    let is_number = written.bytes().all(|byte| byte.is_ascii_digit());
    let near = if is_number { Vec::new() } else { alike(&ids, written) };
    match near.is_empty() {
        true => failure,
        false => failure.help(format!("nearest: {}", list(near.into_iter(), 3))),
    }
}

pub(super) fn page(
    page: &mut StatusPage<'_>,
    told: &Explanation,
    machine: &MachineStatus,
    history: Vec<(&'static str, String)>,
) {
    let plan = &page.facts.plan;
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String, style: Style| {
        table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
    };
    if let Some(becomes) = &told.becomes {
        row("Becomes", becomes.to_string(), Style::Bold);
    }
    if let Some(next) = machine.next_check_at {
        row("Next check", page.time(next.0), Style::Plain);
    }
    if let Some(class) = machine.class() {
        row("Class", means(class), class_style(class));
    }
    let target = plan.rollout.reference_name.as_deref().unwrap_or("not known");
    for (name, text) in record(machine, target, page).into_iter().chain(history) {
        row(name, text, Style::Plain);
    }
    row("Pool", page.said(&headline(plan)), Style::Plain);
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
fn record(
    machine: &MachineStatus,
    target: &str,
    page: &StatusPage<'_>,
) -> Vec<(&'static str, String)> {
    let since = |what: &str, at: Time| page.times.since(what, at, page.facts.at());
    let MachineStatus { condition, lifecycle, .. } = machine;
    let mut rows = vec![
        ("Condition", since(condition.word(), machine.since.0)),
        ("Lifecycle", since(lifecycle.word(), machine.lifecycle_since.0)),
        ("Revision", format!("{}; the target is {target}", revision(machine))),
        (
            "Served",
            if machine.ever_available { "yes, it was available" } else { "never yet" }.into(),
        ),
        ("Created", page.time(machine.created_at.0)),
    ];
    if machine.imaged_at != machine.created_at {
        rows.push(("Disk from", page.time(machine.imaged_at.0)));
    }
    let named = [("Zone", &machine.zone), ("vmId", &machine.vm_id), ("Node", &machine.node)];
    rows.extend(named.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    if machine.workloads > 0 {
        rows.push(("Workloads", machine.workloads.to_string()));
    }
    let protection = match machine.protection.0 {
        Protection::None => None,
        Protection::ScaleIn => Some("from removal"),
        Protection::Unknown => Some("cannot be read; taken as full"),
        Protection::All => Some("from removal and updates"),
    };
    rows.extend(protection.map(|protection| ("Protection", protection.to_owned())));
    if let Some(hold) = &machine.hold {
        rows.push(("Held", format!("by {}: {}", hold.by, hold.why)));
    }
    if let Some(asked) = &machine.delete_requested {
        let now = if asked.now { ", now, accepting the loss" } else { "" };
        rows.push(("Named", format!("by {}: {}{now}", asked.by, asked.why)));
    }
    rows
}

/// What was done with the machine, what is in progress, and what it waits for.
pub(super) fn history(
    report: &MachineReport,
    snapshot: &SnapshotInput,
    times: TimeStyle,
) -> Vec<(&'static str, String)> {
    let Some(machine) = snapshot.machines.get(report.index as usize) else { return Vec::new() };
    let now = snapshot.now;
    let mut rows = Vec::new();
    for entry in &snapshot.open {
        if entry.action.targets().iter().any(|target| target.is(machine)) {
            rows.push(("Journal", told(entry, machine, snapshot, times)));
        }
    }
    for fact in snapshot.facts.drains.iter().filter(|fact| fact.id == machine.id) {
        let (say, by) = match drain_step(fact, &snapshot.policy, &snapshot.set) {
            Some(step) => (times.sentence(&step, now), ""),
            None => (times.since(&fact.step, fact.since, now), "blocked by "),
        };
        let blocker = fact.blocker.as_ref().map(|blocker| format!("; {by}{blocker}"));
        rows.push(("Drain", format!("{say}{}", blocker.unwrap_or_default())));
    }
    let state = snapshot.state.as_ref();
    let key = machine.key();
    for blocked in state.iter().flat_map(|state| &state.blocked).filter(|b| b.key == key) {
        let tried = count(blocked.times as usize, "time");
        rows.push(("Blocked", format!("{tried}; next try {}", times.time(blocked.until, now))));
    }
    if machine.lifecycle != report.lifecycle {
        let (from, to) = (WordOf(machine.lifecycle).word(), WordOf(report.lifecycle).word());
        rows.push(("Now", format!("{from} → {to}")));
    }
    rows
}

fn told(entry: &Entry, machine: &Machine, snapshot: &SnapshotInput, times: TimeStyle) -> String {
    let now = snapshot.now;
    let when = |what: &str, at: Time| times.sentence(&format!("{what} at {at}"), now);
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
            when(&how, *at)
        }
        // A program that keeps the journal for us reports no more detail about an open entry.
        Phase::Intended | Phase::Asking { .. } => "under way".to_owned(),
        Phase::Accepted { at, .. } => when("accepted", *at),
        Phase::Doubtful { .. } => "its answer was lost; the next listing tells".to_owned(),
    };
    let verb = entry.verb().name();
    let since = times.since(verb, entry.written, now);
    format!("{} {since}: {phase}", entry.id)
}
