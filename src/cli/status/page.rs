//! The status of a pool as a page for people.

use super::facts::{SetHealth, headline};
use crate::api::v1::plan::ActionKeys;
use crate::cli::page::object;
use crate::cli::table::{Cell, Table};
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, list, nearer, plain, wrap};
use crate::daemon::HealthSource;
use crate::model::ids::{InstanceId, Zone};
use crate::model::inventory::{Eviction, Orchestration, SetReading};
use crate::model::policy::Owner;

/// The most ids on a line; the rest are counted.
const NAMES: usize = 12;
/// The most holds to show; the rest are counted.
const HOLDS: usize = 6;

pub(super) fn page(standing: &SetHealth<'_>, term: Term) -> String {
    let (seen, mut text) = (standing.seen, String::new());
    let snapshot = &seen.looked.snapshot;
    let line = headline(seen);
    let head = line.split(' ').next().unwrap_or_default();
    for (n, line) in wrap(&line, term.width).into_iter().enumerate() {
        let line = match line.strip_prefix(head).filter(|_| n == 0) {
            Some(rest) => format!("{}{rest}", term.paint(Style::Bold, head)),
            None => line,
        };
        text.push_str(&line);
        text.push('\n');
    }
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String, style: Style| {
        table.row([Cell::new(name, Style::Dim), Cell::new(text, style)]);
    };
    row("Scale set", place(snapshot.policy.scale_set.as_str()), Style::Plain);
    if seen.meant.by_default {
        row("Judged by", "the defaults, for no pool file was given".to_owned(), Style::Plain);
    }
    row("Size", size(standing), Style::Plain);
    row("Machines", machines(standing), Style::Plain);
    let attached = &snapshot.set.attached;
    if !attached.is_empty() {
        let names = list(attached.iter().map(InstanceId::as_str), NAMES);
        let text = format!(
            "{}: {names}; not made by this scale set, so neither counted nor removed: detach it, or delete the VM in Azure",
            count(attached.len(), "VM")
        );
        row("Attached", text, Style::Yellow);
    }
    row("Versions", versions(standing), Style::Plain);
    for (name, ids, style) in [
        ("Failed", &standing.failed, Style::Red),
        ("Unready", &standing.unready, Style::Yellow),
        ("Outdated", &standing.outdated, Style::Yellow),
    ] {
        if !ids.is_empty() {
            let text =
                format!("{}: {}", count(ids.len(), "machine"), list(ids.iter().copied(), NAMES));
            row(name, text, style);
        }
    }
    row("Under way", under_way(standing), Style::Plain);
    let (platform_features, style) = platform_features(standing);
    row("Platform", platform_features, style);
    for lock in &snapshot.set.locks {
        row("Lock", plain(&lock.to_string()).to_string(), Style::Yellow);
    }
    row("Health", health(standing), Style::Plain);
    plan(standing, &mut row);
    table.draw(term, &mut text);
    text
}

/// The parts of a scale set id that people need: a full id is longer than a line.
fn place(id: &str) -> String {
    let parts: Vec<&str> = id.split('/').collect();
    match parts[..] {
        ["", _, subscription, _, group, _, _, _, name] => {
            format!("{name} · group {group} · subscription {subscription}")
        }
        _ => id.to_owned(),
    }
}

fn size(standing: &SetHealth<'_>) -> String {
    let snapshot = &standing.seen.looked.snapshot;
    let (set, report) = (&snapshot.set, &standing.seen.decision.planned.report);
    let kind = match set.orchestration {
        Orchestration::Uniform => "Uniform",
        Orchestration::Flexible => "Flexible",
    };
    let owner = match snapshot.policy.owner {
        Owner::Pool => "by the pool",
        Owner::ScaleSet => "by the scale set",
    };
    let mut parts = vec![
        format!("capacity {}", set.capacity),
        format!("wanted {} {owner}", report.numbers.desired),
        format!("{kind} in {}", standing.anatomy.location),
    ];
    parts.extend(set.vm_size.as_ref().map(ToString::to_string));
    if !set.zones.is_empty() {
        let zones: Vec<&str> = set.zones.iter().map(Zone::as_str).collect();
        parts.push(format!("zones {}", zones.join(", ")));
    }
    parts.extend(priority(set));
    parts.join(" · ")
}

/// Which machines are Spot, and what an eviction does to them.
fn priority(set: &SetReading) -> Option<String> {
    let eviction = match set.spot? {
        Eviction::Deallocate => "deallocated",
        Eviction::Delete => "deleted",
    };
    let of = set.priority_mix.map_or("Spot".to_owned(), |mix| {
        let (base, percent) = (mix.base_regular, mix.regular_percent);
        format!("{base} Regular, above them {percent}% Regular and the rest Spot")
    });
    Some(format!("{of} ({eviction} when evicted)"))
}

fn machines(standing: &SetHealth<'_>) -> String {
    let snapshot = &standing.seen.looked.snapshot;
    let available = standing.seen.decision.planned.report.numbers.available;
    let all = snapshot.machines.len();
    let cut = if snapshot.set.complete { "" } else { " (the listing was cut short)" };
    let by = standing.conditions.iter().map(|(name, n)| format!("{n} {name}"));
    let by: Vec<String> = by.collect();
    let by = if by.is_empty() { String::new() } else { format!(": {}", by.join(", ")) };
    format!("{available} available of {all} listed{cut}{by}")
}

fn versions(standing: &SetHealth<'_>) -> String {
    let version = |version: &super::facts::ModelVersion<'_>| {
        let name = plain(&version.name);
        let model = if version.is_model { " (the model's)" } else { "" };
        format!("{} on {name}{model}", version.machines)
    };
    let mut parts: Vec<String> = standing.versions.iter().map(version).collect();
    if !standing.versions.iter().any(|version| version.is_model) {
        let model = &standing.seen.looked.snapshot.set.revision;
        let model = standing.seen.decision.planned.state.name(model);
        parts.push(format!("none on {} (the model's)", plain(&model)));
    }
    parts.join(", ")
}

fn under_way(standing: &SetHealth<'_>) -> String {
    let state = standing.state().map(|state| format!("the scale set is {}", plain(state)));
    let of = |ids: &[&str], what: &str| {
        (!ids.is_empty()).then(|| {
            let names = list(ids.iter().copied(), NAMES);
            format!("{} {what} ({names})", count(ids.len(), "machine"))
        })
    };
    let parts = [state, of(&standing.making, "being made"), of(&standing.leaving, "being deleted")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" · ") }
}

fn platform_features(standing: &SetHealth<'_>) -> (String, Style) {
    let on = standing.platform_features.join(", ");
    let unknown = standing.platform_features_unknown.join(", ");
    let text = match (on.is_empty(), unknown.is_empty()) {
        (true, true) => return ("no Azure feature acts on it".to_owned(), Style::Plain),
        (false, true) => format!("{on}; `poolkeeper doctor` says how to switch this off"),
        (true, false) => {
            format!("not known whether {unknown} acts on it; `poolkeeper doctor` says why")
        }
        (false, false) => {
            format!(
                "{on}, and not known whether {unknown} acts; `poolkeeper doctor` says how to stop it"
            )
        }
    };
    (text, Style::Yellow)
}

fn health(standing: &SetHealth<'_>) -> String {
    match &standing.anatomy.health {
        HealthSource::Extension(name) => format!("reported by the extension {}", plain(name)),
        HealthSource::Probe => "reported by a load balancer probe".to_owned(),
        HealthSource::None => {
            "not reported: a machine counts as ready once it is provisioned".to_owned()
        }
    }
}

fn plan(standing: &SetHealth<'_>, row: &mut impl FnMut(&str, String, Style)) {
    let (planned, now) = (&standing.seen.decision.planned, standing.seen.looked.snapshot.now);
    for (n, action) in planned.actions.iter().enumerate() {
        let say = nearer(action.reason(), now);
        let text = format!("{} {}: {say}", action.verb().name(), object(&ActionKeys::of(action)));
        row(if n == 0 { "Plan" } else { "" }, text, Style::Cyan);
    }
    let holds = &planned.report.holds;
    for (n, hold) in holds.iter().take(HOLDS).enumerate() {
        let text = format!("{}: {}", hold.reason.code(), nearer(&hold.message, now));
        row(if n == 0 { "Holds" } else { "" }, text, Style::Yellow);
    }
    if let Some(more) = holds.len().checked_sub(HOLDS).filter(|more| *more > 0) {
        row(
            "",
            format!("and {}; `poolkeeper plan` tells them all", count(more, "more hold")),
            Style::Plain,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Revision;
    use crate::model::inventory::PriorityMix;
    use crate::model::time::Time;

    #[test]
    fn who_is_evicted_and_how_is_told() {
        let mut set = SetReading::new(Revision::new("r"), 3, Time::from_millis(0));
        assert_eq!(priority(&set), None);
        set.spot = Some(Eviction::Deallocate);
        assert_eq!(priority(&set).as_deref(), Some("Spot (deallocated when evicted)"));
        set.spot = Some(Eviction::Delete);
        set.priority_mix = Some(PriorityMix { base_regular: 10, regular_percent: 50 });
        let told = "10 Regular, above them 50% Regular and the rest Spot (deleted when evicted)";
        assert_eq!(priority(&set).as_deref(), Some(told));
    }
}
