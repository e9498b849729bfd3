//! A pool as it was read from the cloud: its status as everywhere, and the scale set behind it.

use std::collections::BTreeMap;

use super::page::{row, rows, title};
use super::report::{More, PoolReport};
use crate::api::v1::explanation::NAMES;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::live::LiveSet;
use crate::cli::page::{PoolFacts, TimeStyle};
use crate::cli::table::Table;
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, list, plain};
use crate::daemon::{Anatomy, HealthSource};
use crate::model::autoscaler::Autoscaler;
use crate::model::ids::{InstanceId, Zone};
use crate::model::inventory::{Eviction, Orchestration, PlatformFeature, SetReading};
use crate::model::machine::Condition;
use crate::model::policy::Owner;

pub(super) struct LiveStatus<'a> {
    pub seen: &'a LiveSet,
    pub anatomy: &'a Anatomy,
    pub facts: PoolFacts<'a>,
}

/// The machines of one revision.
pub(super) struct ModelVersion<'a> {
    /// `None`: the revision is unknown.
    pub revision: Option<&'a str>,
    pub name: String,
    pub machines: usize,
    /// This is the revision that the scale set's model creates now.
    pub is_model: bool,
}

impl<'a> LiveStatus<'a> {
    pub fn of(seen: &'a LiveSet, anatomy: &'a Anatomy) -> Self {
        let facts = PoolFacts::of(&seen.looked.snapshot, &seen.decision);
        Self { seen, anatomy, facts }
    }

    /// The machines in each condition.
    pub fn conditions(&self) -> BTreeMap<&'static str, Vec<&str>> {
        let mut conditions: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for machine in &self.facts.machines {
            conditions.entry(machine.condition.word()).or_default().push(&machine.id);
        }
        conditions
    }

    /// The revisions: the model's first, then by number of machines.
    pub fn versions(&self) -> Vec<ModelVersion<'_>> {
        let mut found: BTreeMap<Option<&str>, ModelVersion<'_>> = BTreeMap::new();
        for MachineStatus { revision, revision_name, .. } in &self.facts.machines {
            let revision = revision.as_deref();
            let version = found.entry(revision).or_insert_with(|| ModelVersion {
                revision,
                name: revision_name.clone().unwrap_or_else(|| "unknown".to_owned()),
                machines: 0,
                is_model: revision == Some(self.seen.looked.snapshot.set.revision.as_str()),
            });
            version.machines += 1;
        }
        let mut versions: Vec<ModelVersion<'_>> = found.into_values().collect();
        versions.sort_by_key(|version| (!version.is_model, std::cmp::Reverse(version.machines)));
        versions
    }

    pub fn page(self, term: Term, times: TimeStyle) -> String {
        let (mut text, mut table) = (String::new(), Table::new(2));
        set_rows(&self, &mut table);
        let PoolFacts { plan, status, machines } = self.facts;
        let more = More { rollout: None, machines, plan: Some(plan) };
        let report = PoolReport::of(status, &more, times);
        title(&report, term, &mut text);
        rows(&report, &more, &mut table);
        table.draw(term, &mut text);
        text
    }
}

fn set_rows(live: &LiveStatus<'_>, table: &mut Table) {
    let (seen, snapshot) = (live.seen, &live.seen.looked.snapshot);
    let set = &snapshot.set;
    let mut row = |name: &str, text: String, style: Style| row(table, name, text, style);
    row("Scale set", place(snapshot.policy.scale_set.as_str()), Style::Plain);
    if seen.meant.by_default {
        row("Judged by", "the defaults, for no pool file was given".to_owned(), Style::Plain);
    }
    row("Size", size(live), Style::Plain);
    row("Listed", listed(live), Style::Plain);
    if !set.attached.is_empty() {
        let names = list(set.attached.iter().map(InstanceId::as_str), NAMES);
        let text = format!(
            "{}: {names}; not made by this scale set, so neither counted nor removed: detach it, or delete the VM in Azure",
            count(set.attached.len(), "VM")
        );
        row("Attached", text, Style::Yellow);
    }
    row("Versions", versions(live), Style::Plain);
    if let Some(state) =
        &live.anatomy.state.as_deref().filter(|s| !s.eq_ignore_ascii_case("Succeeded"))
    {
        row("State", plain(state).into_owned(), Style::Yellow);
    }
    let (features, style) = platform_features(set);
    row("Platform", features, style);
    if let Some(autoscaler) = &set.autoscaler {
        row("Autoscale", autoscale(autoscaler), Style::Plain);
    }
    for lock in &set.locks {
        row("Lock", plain(&lock.to_string()).to_string(), Style::Yellow);
    }
    row("Health", health(live.anatomy), Style::Plain);
}

fn listed(live: &LiveStatus<'_>) -> String {
    let snapshot = &live.seen.looked.snapshot;
    let cut = if snapshot.set.complete { "" } else { " (the listing was cut short)" };
    let ready = WordOf(Condition::Ready).word();
    let by = live.conditions().into_iter().map(|(name, ids)| {
        let names = list(ids.iter().copied(), NAMES);
        let names = if name == ready { String::new() } else { format!(" ({names})") };
        format!("{} {name}{names}", ids.len())
    });
    let by = by.collect::<Vec<_>>().join(", ");
    let by = if by.is_empty() { by } else { format!(": {by}") };
    format!("{}{cut}{by}", count(snapshot.machines.len(), "machine"))
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

fn size(live: &LiveStatus<'_>) -> String {
    let snapshot = &live.seen.looked.snapshot;
    let set = &snapshot.set;
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
        format!("wanted {} {owner}", live.facts.plan.resolved.desired),
        format!("{kind} in {}", live.anatomy.location),
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

fn versions(live: &LiveStatus<'_>) -> String {
    let version = |version: &ModelVersion<'_>| {
        let name = plain(&version.name);
        let model = if version.is_model { " (the model's)" } else { "" };
        format!("{} on {name}{model}", version.machines)
    };
    let versions = live.versions();
    let mut parts: Vec<String> = versions.iter().map(version).collect();
    if !versions.iter().any(|version| version.is_model) {
        let model = &live.seen.looked.snapshot.set.revision;
        let model = live.seen.decision.planned.state.name(model);
        parts.push(format!("none on {} (the model's)", plain(&model)));
    }
    parts.join(", ")
}

fn platform_features(set: &SetReading) -> (String, Style) {
    let names = |features: &[PlatformFeature]| {
        features.iter().map(|feature| feature.name()).collect::<Vec<_>>().join(", ")
    };
    let (on, unknown) = (names(&set.platform_features), names(&set.platform_features_unknown));
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

fn autoscale(autoscaler: &Autoscaler) -> String {
    let (name, id) = (plain(autoscaler.name()), plain(&autoscaler.setting));
    match (&autoscaler.bounds, autoscaler.enabled) {
        (Some(bounds), true) => format!("{name} keeps {} now", plain(&bounds.to_string())),
        (Some(bounds), false) => {
            format!("{name} is switched off; it would keep {} now", plain(&bounds.to_string()))
        }
        (None, true) => format!(
            "{name} is on, and which sizes it keeps now is not known: `az monitor autoscale show --ids {id}` shows its profiles"
        ),
        (None, false) => format!("{name} is switched off"),
    }
}

fn health(anatomy: &Anatomy) -> String {
    match &anatomy.health {
        HealthSource::Extension(name) => format!("reported by the extension {}", plain(name)),
        HealthSource::Probe => "reported by a load balancer probe".to_owned(),
        HealthSource::None => {
            "not reported: a machine counts as ready once it is provisioned".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::autoscaler::AutoscalerBounds;
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

    #[test]
    fn an_autoscaler_is_told_whether_or_not_its_sizes_are_known() {
        let bounds = || Some(AutoscalerBounds { profile: "all".into(), minimum: 2, maximum: 8 });
        let of = |enabled, bounds| {
            autoscale(&Autoscaler {
                setting: "/settings/web-scale".into(),
                enabled,
                bounds,
                document: None,
            })
        };
        assert_eq!(of(true, bounds()), "web-scale keeps 2 to 8 machines (profile all) now");
        let off = "web-scale is switched off; it would keep 2 to 8 machines (profile all) now";
        assert_eq!(of(false, bounds()), off);
        assert_eq!(of(false, None), "web-scale is switched off");
        let unknown = of(true, None);
        assert!(unknown.starts_with("web-scale is on, and which sizes"), "{unknown}");
        assert!(unknown.contains("show --ids /settings/web-scale`"), "{unknown}");
    }
}
