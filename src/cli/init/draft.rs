//! The text of a pool file, from facts about its scale set: a function without a call to anything.

use std::fmt::Write;

use crate::api::v1::pool::find_key;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::schema::first_sentence;
use crate::cli::text::{list, wrap};
use crate::cli::yaml::JsonTree;
use crate::daemon::{Anatomy, HealthSource};
use crate::model::autoscaler::Autoscaler;
use crate::model::ids::ScaleSetId;
use crate::model::inventory::{Eviction, Orchestration, PlatformFeature};
use crate::model::policy::Owner;
use crate::model::quantity::MOST_MACHINES;

/// Columns of a comment.
const WIDE: usize = 110;
/// The longest name of a pool.
const LONGEST_NAME: usize = 63;

/// What is known of a scale set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetFacts {
    pub scale_set: ScaleSetId,
    pub orchestration: Orchestration,
    pub capacity: u32,
    pub zones: Vec<String>,
    pub vm_size: Option<String>,
    pub features: Vec<PlatformFeature>,
    /// The autoscaler of the set, enabled or not.
    pub autoscaler: Option<Autoscaler>,
    /// It could not be read whether an autoscale setting writes the capacity.
    pub autoscale_unknown: bool,
    /// The pool of the snapshot follows the capacity.
    pub is_followed: bool,
    /// `None`: the source does not say.
    pub health: Option<HealthSource>,
    pub spot: Option<Eviction>,
    /// The lock that covers all machines.
    pub lock: Option<String>,
}

impl SetFacts {
    pub fn of(snapshot: &SnapshotInput, anatomy: Option<&Anatomy>) -> Self {
        let set = &snapshot.set;
        Self {
            scale_set: snapshot.policy.scale_set.clone(),
            orchestration: set.orchestration,
            capacity: set.capacity,
            zones: set.zones.iter().map(|zone| zone.as_str().to_owned()).collect(),
            vm_size: set.vm_size.as_deref().map(str::to_owned),
            features: set.platform_features.clone(),
            autoscaler: set.autoscaler.clone(),
            autoscale_unknown: set.hides_autoscaler(),
            // A live set has no pool yet: its policy is made of defaults.
            is_followed: anatomy.is_none() && snapshot.policy.owner == Owner::ScaleSet,
            health: anatomy.map(|anatomy| anatomy.health.clone()),
            spot: set.spot,
            lock: set.lock().map(ToString::to_string),
        }
    }

    fn has_autoscale(&self) -> bool {
        self.features.contains(&PlatformFeature::Autoscale)
    }

    /// Another system sets the size, or may set it.
    fn is_sized_elsewhere(&self) -> bool {
        self.has_autoscale() || self.autoscale_unknown || self.is_followed
    }

    /// Features of Azure that act on machines, besides autoscale.
    fn other_features(&self) -> Vec<&'static str> {
        let others = self.features.iter().filter(|of| **of != PlatformFeature::Autoscale);
        others.map(|of| of.name()).collect()
    }
}

/// The name of the pool: that of its scale set, without what a pool's name cannot have.
pub(super) fn name(facts: &SetFacts) -> String {
    let last = facts.scale_set.as_str().rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = last.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let name = plain.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let name: String = name.chars().take(LONGEST_NAME).collect();
    if name.is_empty() { "pool".to_owned() } else { name }
}

/// The pool file.
pub(super) fn text(facts: &SetFacts) -> String {
    let mut file = PoolText::default();
    file.comment(0, &format!("A pool file for {}, as `poolkeeper init` read it.", seen(facts)));
    file.comment(0, "Check it with `poolkeeper doctor --pool-file` and `poolkeeper plan --pool-file` before `serve` reads it. `poolkeeper explain --keys` lists the other keys and their defaults.");
    if let Some(lock) = &facts.lock {
        file.comment(0, &format!("Nothing can be replaced now: {lock}."));
    }
    file.key("apiVersion", "", "poolkeeper/v1");
    file.key("kind", "", "Pool");
    file.key("name", "", &word(&name(facts)));
    file.key("scaleSet", "", &word(facts.scale_set.as_str()));
    file.key("replicas", &size_reason(facts), &size(facts));
    rollout(facts, &mut file);
    let (source, reason) = health(facts);
    file.key("health", &reason, &format!("{{source: {source}}}"));
    let (features, reason) = platform_features(facts);
    file.key("platformFeatures", &reason, features);
    file.key("adopt", "", "hold");
    file.text
}

fn rollout(facts: &SetFacts, file: &mut PoolText) {
    file.key("rollout", "", "");
    let (surge, unavailable, reason) = limits(facts);
    let no_surge = if surge == "0" { "" } else { "10% is quicker in a large pool." };
    file.key("rollout.method", method_reason(facts), "replace");
    file.key("rollout.maxSurge", if reason.is_empty() { no_surge } else { reason }, surge);
    file.key("rollout.maxUnavailable", "", unavailable);
    file.key("rollout.minReady", "", "60s");
    file.key("rollout.onFailure", "", "pause");
}

/// What the read showed, on one line.
fn seen(facts: &SetFacts) -> String {
    let kind = match facts.orchestration {
        Orchestration::Uniform => "a Uniform scale set",
        Orchestration::Flexible => "a Flexible scale set",
    };
    let mut parts = vec![format!("{kind} of capacity {}", facts.capacity)];
    parts.extend(facts.vm_size.clone());
    if !facts.zones.is_empty() {
        let noun = if facts.zones.len() == 1 { "zone" } else { "zones" };
        parts.push(format!("{noun} {}", list(facts.zones.iter().map(String::as_str), 9)));
    }
    match facts.spot {
        Some(Eviction::Delete) => parts.push("spot machines that an eviction deletes".to_owned()),
        Some(Eviction::Deallocate) => parts.push("spot machines that an eviction stops".to_owned()),
        None => {}
    }
    parts.join(", ")
}

fn size(facts: &SetFacts) -> String {
    if facts.is_sized_elsewhere() {
        return "{owner: scaleSet}".to_owned();
    }
    format!("{{owner: pool, count: {}}}", facts.capacity)
}

fn size_reason(facts: &SetFacts) -> String {
    if facts.has_autoscale() {
        let named = facts.autoscaler.as_ref();
        let named = named.map(|found| format!("The autoscale setting {}", found.name()));
        let named = named.unwrap_or_else(|| "An autoscale setting".to_owned());
        let bounds = facts.autoscaler.as_ref().and_then(|found| found.bounds.as_ref());
        let bounds = bounds.map_or_else(String::new, |bounds| format!(", now {bounds}"));
        format!("{named} writes the capacity of the scale set{bounds}, so the pool follows it.")
    } else if facts.autoscale_unknown {
        "Whether an autoscale setting writes the capacity could not be read, so the pool follows the capacity. If none does, write {owner: pool, count: …}.".to_owned()
    } else if facts.is_followed {
        "The pool of the snapshot follows the capacity of the scale set, so this one does too."
            .to_owned()
    } else {
        let n = facts.capacity;
        format!(
            "No autoscale setting writes the capacity, so this file sets it: {n} as now. If something else does, write {{owner: scaleSet}}."
        )
    }
}

const fn method_reason(facts: &SetFacts) -> &'static str {
    match facts.orchestration {
        Orchestration::Uniform => {
            "reimage keeps a machine's name and address, but it is away meanwhile."
        }
        Orchestration::Flexible => {
            "A Flexible scale set allows reimage only with ephemeral OS disks."
        }
    }
}

/// Surge, unavailable, and why they are so, if the set leaves no choice.
fn limits(facts: &SetFacts) -> (&'static str, &'static str, &'static str) {
    if facts.capacity >= u32::from(MOST_MACHINES) {
        let reason = "A scale set holds 1,000 machines, so there is no room for surge: rollouts lower the number that serves instead.";
        return ("0", "1%", reason);
    }
    if facts.is_sized_elsewhere() {
        return (
            "1",
            "0",
            "An autoscaler sees a surge as its own change, so more than 1 has no effect.",
        );
    }
    ("1", "0", "")
}

fn health(facts: &SetFacts) -> (&'static str, String) {
    match &facts.health {
        Some(HealthSource::Extension(name)) => {
            ("applicationHealth", format!("The scale set has the extension {name}."))
        }
        Some(HealthSource::Probe) => ("auto", "A probe of the load balancer tells Azure which machines serve.".to_owned()),
        Some(HealthSource::None) => (
            "auto",
            "The scale set has no application health extension and no probe, so a machine counts as ready once Azure has provisioned it. Add the extension, so that a machine that boots but does not serve is noticed.".to_owned(),
        ),
        None => ("auto", "The snapshot does not say what the scale set has.".to_owned()),
    }
}

fn platform_features(facts: &SetFacts) -> (&'static str, String) {
    let others = facts.other_features();
    let names = list(others.iter().copied(), others.len());
    match (others.is_empty(), facts.has_autoscale()) {
        (true, false) if facts.autoscale_unknown => {
            ("refuse", "None is seen on; whether autoscale is on could not be read.".to_owned())
        }
        (true, false) => ("refuse", "None is on.".to_owned()),
        (true, true) => (
            "warn",
            "Autoscale is on and sets the size; with refuse, rollouts would wait until it is off."
                .to_owned(),
        ),
        (false, _) => (
            "refuse",
            format!(
                "On now: {names}. Rollouts wait until they are off; `doctor` says how to switch them off. Or write warn."
            ),
        ),
    }
}

fn word(text: &str) -> String {
    JsonTree::Text(text.to_owned()).yaml().trim_end().to_owned()
}

/// A pool file while it is written.
#[derive(Debug, Default)]
struct PoolText {
    text: String,
}

impl PoolText {
    /// A key with its value, under a comment: what the key does, and why it has this value.
    fn key(&mut self, path: &str, reason: &str, value: &str) {
        let depth = path.matches('.').count();
        let key = path.rsplit('.').next().unwrap_or_default();
        let about = find_key(path).map(|found| found.key.about).unwrap_or_default();
        let about = first_sentence(&about);
        let is_long = !matches!(path, "apiVersion" | "kind");
        if is_long {
            self.comment(depth, format!("{about} {reason}").trim());
        }
        let gap = if value.is_empty() { "" } else { " " };
        let _ = writeln!(self.text, "{}{key}:{gap}{value}", "  ".repeat(depth));
    }

    fn comment(&mut self, depth: usize, text: &str) {
        let indent = "  ".repeat(depth);
        for line in wrap(text, Some(WIDE)) {
            let _ = writeln!(self.text, "{indent}# {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::pool::PoolDocuments;
    use crate::model::autoscaler::AutoscalerBounds;
    use crate::model::policy::{HealthPolicy, PlatformFeatures, Policy};

    const SETS: &str =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets";

    fn facts(change: impl FnOnce(&mut SetFacts)) -> SetFacts {
        let mut facts = SetFacts {
            scale_set: ScaleSetId::new(format!("{SETS}/web")),
            orchestration: Orchestration::Uniform,
            capacity: 30,
            zones: vec!["1".into(), "2".into()],
            vm_size: Some("Standard_D4s_v5".into()),
            features: Vec::new(),
            autoscaler: None,
            autoscale_unknown: false,
            is_followed: false,
            health: Some(HealthSource::None),
            spot: None,
            lock: None,
        };
        change(&mut facts);
        facts
    }

    fn accepted(facts: &SetFacts) -> (Policy, String) {
        let text = text(facts);
        let (mut pools, faults) = PoolDocuments::default().read(&text, None);
        assert!(faults.is_empty() && pools.len() == 1, "{text}\n{faults:?}");
        for line in text.lines() {
            let is_comment = line.trim_start().starts_with('#');
            assert!(line == line.trim_end(), "{text}");
            assert!(!is_comment || line.chars().count() <= WIDE + 4, "{line}");
        }
        // A sentence is looked for across its lines.
        let joined = text.replace("\n  # ", " ").replace("\n# ", " ");
        (pools.remove(0), joined)
    }

    #[test]
    fn a_plain_set_keeps_its_size() {
        let (policy, text) = accepted(&facts(|_| {}));
        assert_eq!((policy.owner, policy.count), (Owner::Pool, 30));
        assert_eq!(policy.health, HealthPolicy::Auto);
        assert_eq!(policy.platform_features, PlatformFeatures::Refuse);
        assert!(
            text.starts_with(
                "# A pool file for a Uniform scale set of capacity 30, Standard_D4s_v5, zones 1"
            ),
            "{text}"
        );
        assert!(text.contains("has no application health extension"), "{text}");
        // Nothing differs from the defaults but what the set says.
        let draft = crate::model::policy::Draft::with_defaults(
            policy.name.clone(),
            policy.scale_set.clone(),
        );
        assert_eq!(policy.rollout, draft.rollout);
    }

    #[test]
    fn a_flexible_set_says_what_reimage_needs() {
        let (_, text) = accepted(&facts(|of| of.orchestration = Orchestration::Flexible));
        assert!(text.contains("a Flexible scale set of capacity 30"), "{text}");
        assert!(text.contains("only with ephemeral OS disks"), "{text}");
    }

    #[test]
    fn a_health_extension_is_used() {
        let health = Some(HealthSource::Extension("HealthExtension".into()));
        let (policy, text) = accepted(&facts(|of| of.health = health));
        assert_eq!(policy.health, HealthPolicy::ApplicationHealth);
        assert!(text.contains("the extension HealthExtension."), "{text}");
        let (policy, _) = accepted(&facts(|of| of.health = Some(HealthSource::Probe)));
        assert_eq!(policy.health, HealthPolicy::Auto);
    }

    #[test]
    fn a_full_set_has_no_surge() {
        let (policy, text) = accepted(&facts(|of| of.capacity = 1_000));
        assert_eq!(policy.rollout.max_surge.round_up(1_000), 0);
        assert_eq!(policy.rollout.max_unavailable.round_down(1_000), 10);
        assert!(text.contains("no room for surge"), "{text}");
    }

    #[test]
    fn the_writer_of_the_capacity_owns_the_size() {
        let autoscaled = facts(|of| of.features = vec![PlatformFeature::Autoscale]);
        let (policy, _) = accepted(&autoscaled);
        assert_eq!(policy.owner, Owner::ScaleSet);
        assert_eq!(policy.platform_features, PlatformFeatures::Warn);
        let named = facts(|of| {
            of.features = vec![PlatformFeature::Autoscale];
            of.autoscaler = Some(Autoscaler {
                setting: "/settings/web-scale".into(),
                enabled: true,
                bounds: Some(AutoscalerBounds { profile: "all".into(), minimum: 2, maximum: 8 }),
                document: None,
            });
        });
        let says =
            "web-scale writes the capacity of the scale set, now 2 to 8 machines (profile all), so";
        let (_, text) = accepted(&named);
        assert!(text.contains(says), "{text}");
        let (policy, text) = accepted(&facts(|of| of.autoscale_unknown = true));
        assert_eq!(policy.owner, Owner::ScaleSet);
        assert_eq!(policy.platform_features, PlatformFeatures::Refuse);
        assert!(text.contains("capacity could not be read"), "{text}");
        assert!(text.contains("autoscale is on could not be read"), "{text}");
        let (policy, text) = accepted(&facts(|of| of.is_followed = true));
        assert_eq!(policy.owner, Owner::ScaleSet);
        assert!(text.contains("The pool of the snapshot follows"), "{text}");
    }

    #[test]
    fn features_spot_and_locks_are_named() {
        let (policy, text) = accepted(&facts(|of| {
            of.features = vec![PlatformFeature::Autoscale, PlatformFeature::AutomaticRepairs];
            of.spot = Some(Eviction::Delete);
            of.lock = Some("the lock `keep` (ReadOnly) on /subscriptions/s".into());
        }));
        assert_eq!(policy.platform_features, PlatformFeatures::Refuse);
        for part in ["On now: automaticRepairs.", "that an eviction deletes", "the lock `keep`"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn any_name_of_a_set_becomes_a_name_of_a_pool() {
        for (set, pool) in [
            ("web", "web"),
            ("1000", "1000"),
            ("true", "true"),
            ("_web(2)", "web-2-"),
            ("ä", "pool"),
            ("--", "pool"),
        ] {
            let of = facts(|of| of.scale_set = ScaleSetId::new(format!("{SETS}/{set}")));
            assert_eq!(name(&of), pool);
            assert_eq!(accepted(&of).0.name.as_str(), pool, "{set}");
        }
        let long = facts(|of| of.scale_set = ScaleSetId::new(format!("{SETS}/{}", "a".repeat(80))));
        assert_eq!(accepted(&long).0.name.as_str().len(), LONGEST_NAME);
    }
}
