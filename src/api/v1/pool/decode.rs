//! Converts a tree to a policy: the keys of a pool file, one section after another.

use super::parts;
use super::section::{Section, SectionResult, SectionValue};
use super::works;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::api::v1::node::{Node, NodeKind};
use crate::model::action::WriteScope;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::{
    Adopt, Draft, HealthPolicy, Image, Owner, PlatformFeatures, Policy, PolicyError,
    UnconfirmedFall,
};

/// The limit of a DNS name, because it becomes part of other names.
const LONGEST_NAME: usize = 63;
/// Resource ids have about 200 characters; this is the longest address that ARM accepts.
const LONGEST_ID: usize = 2_048;
/// Longest value of a tag.
const LONGEST_TEXT: usize = 256;
/// Most tags of a resource.
const MOST_TAGS: usize = 50;
/// A hundred times what a scale set holds: other groups may hold more, and a typing error is still caught.
const MOST_MACHINES: u32 = 100_000;
/// Far more broken machines than anyone would remove at once.
const MOST_AT_ONCE: u32 = 1_000;

/// Documents of ours that are not pools; listing valid pool keys for them would not help.
const OTHERS: [(&str, &str); 2] = [
    (
        "Snapshot",
        "a snapshot holds its pool under the key pool; plan, explain and simulate read it",
    ),
    ("Plan", "a plan is an answer, and is not read"),
];

const KEYS: &[&str] = &[
    "apiVersion",
    "kind",
    "name",
    "scaleSet",
    "replicas",
    "model",
    "rollout",
    "windows",
    "health",
    "adopt",
    "platformFeatures",
    "owner",
    "repair",
    "deletion",
    "drain",
    "scaleDown",
    "autoscaler",
];

/// One pool. `whole`: it is a document of its own and states its kind.
pub(super) fn document(root: &Node, whole: bool, out: &mut Vec<Diagnostic>) -> Option<Policy> {
    if let Some(fault) = another(root) {
        out.push(fault);
        return None;
    }
    let before = out.len();
    let pool = Section::open(root, String::new(), KEYS, &[], out)?;
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", "Pool")] {
        let check = |value: &SectionValue<'_>| this_word(value, wanted);
        if whole {
            pool.require(key, out, check)
        } else {
            pool.read(key, out, check)
        };
    }
    let name = pool.require("name", out, pool_name).unwrap_or_default();
    let scale_set = pool.require("scaleSet", out, scale_set).unwrap_or_default();
    let mut draft = Draft::with_defaults(PoolName::new(name), ScaleSetId::new(scale_set));
    replicas(&pool, &mut draft, out);
    model(&pool, &mut draft, out);
    parts::rollout(&pool, &mut draft.rollout, out);
    parts::windows(&pool, &mut draft.windows, out);
    health(&pool, &mut draft, out);
    repair(&pool, &mut draft, out);
    drain(&pool, &mut draft, out);
    words(&pool, &mut draft, out);
    not_built(&pool, out);
    if whole {
        works::cannot_work(root, &draft, out);
    }
    // A refused value still has its default here, so a fault could be about a value that the file does not contain.
    let is_clean = out.len() == before;
    match Policy::build(draft) {
        Ok(policy) => is_clean.then_some(policy),
        Err(faults) => {
            let said = out.get(before..).unwrap_or_default().to_vec();
            let new = faults.iter().filter(|fault| !is_said(fault, &said));
            out.extend(new.map(|fault| contradiction(root, fault)));
            None
        }
    }
}

/// The fault of a document of another kind.
fn another(root: &Node) -> Option<Diagnostic> {
    let kind = root.entry("kind")?;
    let NodeKind::Text(text) = &kind.value.kind else { return None };
    let (name, help) = OTHERS.into_iter().find(|(name, _)| *name == &*text.text)?;
    let say = format!("this is a {name}, where a Pool is needed");
    Some(Diagnostic::new(kind.value.at, "kind", Code::WrongVersion, say).help(help))
}

fn is_said(fault: &PolicyError, said: &[Diagnostic]) -> bool {
    let parent = fault.key.rsplit_once('.').map_or("", |(parent, _)| parent);
    said.iter().any(|found| found.key == fault.key || (!parent.is_empty() && found.key == parent))
}

/// A fault of the policy, placed at the key it names or at its nearest parent in the file.
fn contradiction(root: &Node, fault: &PolicyError) -> Diagnostic {
    let mut at = root;
    for part in fault.key.split('.') {
        match at.entry(part) {
            Some(entry) => at = &entry.value,
            None => break,
        }
    }
    Diagnostic::new(at.at, fault.key, Code::Contradiction, &*fault.say)
}

fn this_word(value: &SectionValue<'_>, wanted: &'static str) -> SectionResult<()> {
    let text = value.text(LONGEST_TEXT)?;
    if text == wanted {
        return Ok(());
    }
    let fault = Diagnostic { code: Code::WrongVersion, ..*value.bad(format!("must be {wanted}")) };
    Err(Box::new(fault.allowed(&[wanted], text)))
}

fn pool_name(value: &SectionValue<'_>) -> SectionResult<String> {
    let text = value.text(LONGEST_NAME)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(is_plain) {
        let fault =
            value.bad("a name begins with a letter or digit and goes on with those, -, _ and .");
        return Err(Box::new(fault.help("write it like web or node-pool-1")));
    }
    Ok(text.to_owned())
}

fn scale_set(value: &SectionValue<'_>) -> SectionResult<String> {
    let text = value.text(LONGEST_ID)?;
    if text.chars().any(char::is_whitespace) {
        return Err(value.bad("a resource id has no spaces"));
    }
    if text.trim_end_matches('/').is_empty() {
        return Err(value.bad("it names no scale set"));
    }
    Ok(text.to_owned())
}

fn replicas(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    const LATER: (&str, &str) = ("profiles", "profiles are not built yet: give a count");
    pool.require("replicas", out, |_| Ok(()));
    let Some(replicas) = pool.section("replicas", &["owner", "count"], &[LATER], out) else {
        return;
    };
    let owners = [("pool", Owner::Pool), ("scaleSet", Owner::ScaleSet)];
    let owner = replicas.read("owner", out, |value| value.one_of(&owners));
    let is_unclear = owner.is_none() && replicas.get("owner").is_some();
    draft.owner = owner.unwrap_or(draft.owner);
    let count = |value: &SectionValue<'_>| value.integer(0, MOST_MACHINES);
    let found = match draft.owner {
        Owner::Pool if !is_unclear && !replicas.has("profiles") => {
            replicas.require("count", out, count)
        }
        _ => replicas.read("count", out, count),
    };
    draft.count = found.unwrap_or(draft.count);
    if found.is_some() && draft.owner == Owner::ScaleSet {
        let say = "the scale set says how many, so no count can be given";
        let (at, key) = (replicas.place("count"), replicas.path_of("count"));
        let fault = Diagnostic::new(at, key, Code::Contradiction, say);
        out.push(fault.help("leave it out, or write owner: pool"));
    }
}

fn model(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    let Some(model) = pool.section("model", &["image", "vmSize", "tags", "write"], &[], out) else {
        return;
    };
    let text = |value: &SectionValue<'_>| value.text(LONGEST_ID).map(Into::into);
    draft.model.image = match model.get("image").map(|node| &node.kind) {
        Some(NodeKind::Map(_)) => {
            let image = model.section("image", &["follow"], &[], out);
            image.and_then(|image| image.require("follow", out, text)).map(Image::Follow)
        }
        _ => model.read("image", out, text).map(Image::Exact),
    };
    draft.model.fields.vm_size =
        model.read("vmSize", out, |value| value.text(LONGEST_TEXT).map(Into::into));
    let scopes = [("image", WriteScope::Image), ("storageProfile", WriteScope::StorageProfile)];
    model.set(&mut draft.model.write, "write", out, |value| value.one_of(&scopes));
    let Some(node) = model.get("tags") else { return };
    let path = model.path_of("tags");
    let value = SectionValue { node, path: path.clone() };
    let NodeKind::Map(entries) = &node.kind else {
        out.push(*value.wrong_type("a map of texts"));
        return;
    };
    if entries.len() > MOST_TAGS {
        out.push(*value.bad(format!("{} tags are more than {MOST_TAGS}", entries.len())));
        return;
    }
    for entry in entries {
        let path = format!("{path}.{}", super::quote(&entry.key));
        match (SectionValue { node: &entry.value, path }).tag() {
            Ok(text) => {
                draft.model.fields.tags.insert(entry.key.clone(), text.into());
            }
            Err(fault) => out.push(*fault),
        }
    }
}

impl SectionValue<'_> {
    /// The value of a tag; may be empty.
    fn tag(&self) -> SectionResult<&str> {
        match &self.node.kind {
            NodeKind::Text(text) if text.text.is_empty() => Ok(""),
            _ => self.text(LONGEST_TEXT),
        }
    }
}

fn health(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    let sources = [
        ("auto", Some(HealthPolicy::Auto)),
        ("node", Some(HealthPolicy::Node)),
        ("applicationHealth", Some(HealthPolicy::ApplicationHealth)),
        ("provisioning", Some(HealthPolicy::Provisioning)),
        ("http", None),
    ];
    let Some(health) = pool.section("health", &["source"], &[], out) else { return };
    let found = health.read("source", out, |value| {
        let source = value.one_of(&sources)?;
        source.ok_or_else(|| {
            let fault = value.bad("health by HTTP probe is not built yet");
            let built = ["auto", "node", "applicationHealth", "provisioning"];
            let fault = Diagnostic { code: Code::NotBuilt, ..*fault };
            Box::new(fault.allowed(&built, ""))
        })
    });
    draft.health = found.unwrap_or(draft.health);
}

fn repair(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    let keys = ["after", "window", "maxAtOnce", "breaker"];
    if let Some(repair) = pool.section("repair", &keys, &[], out) {
        let slot = &mut draft.repair;
        repair.set(&mut slot.after, "after", out, SectionValue::duration);
        repair.set(&mut slot.window, "window", out, SectionValue::duration);
        repair.set(&mut slot.max_at_once, "maxAtOnce", out, |v| v.integer(0, MOST_AT_ONCE));
        repair.set(&mut slot.breaker_percent, "breaker", out, SectionValue::percent);
    }
    if let Some(deletion) = pool.section("deletion", &["force", "deadline"], &[], out) {
        deletion.set(&mut draft.deletion.force, "force", out, SectionValue::flag);
        deletion.set(&mut draft.deletion.deadline, "deadline", out, SectionValue::duration);
    }
}

fn drain(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    const NEEDS_CLUSTER: &str = "draining by a cluster of the pool's own is not built yet";
    let later = ["cluster", "filters", "rules", "ladder", "volumes", "nodeDeletion"];
    let later = later.map(|key| (key, NEEDS_CLUSTER));
    let Some(drain) = pool.section("drain", &["maxBlocked", "failedAfter"], &later, out) else {
        return;
    };
    drain.set(&mut draft.drain.max_blocked, "maxBlocked", out, |v| v.integer(0, MOST_AT_ONCE));
    drain.set(&mut draft.drain.failed_after, "failedAfter", out, SectionValue::duration);
}

fn words(pool: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    const GRAY: &str = "gray scale-down is not built yet";
    let adopt = [("hold", Adopt::Hold), ("roll", Adopt::Roll)];
    pool.set(&mut draft.adopt, "adopt", out, |value| value.one_of(&adopt));
    let platform_features =
        [("refuse", PlatformFeatures::Refuse), ("warn", PlatformFeatures::Warn)];
    pool.set(&mut draft.platform_features, "platformFeatures", out, |value| {
        value.one_of(&platform_features)
    });
    if let Some(owner) = pool.section("owner", &["tag"], &[], out) {
        let tag = [("on", true), ("off", false)];
        owner.set(&mut draft.tags_owner, "tag", out, |value| value.one_of(&tag));
    }
    let later = [
        "gray",
        "mode",
        "cutoff",
        "standby",
        "changePercent",
        "changeInterval",
        "observation",
        "gates",
    ];
    let later = later.map(|key| (key, GRAY));
    if let Some(down) = pool.section("scaleDown", &["unconfirmed"], &later, out) {
        let unconfirmed = [("hold", UnconfirmedFall::Hold), ("allow", UnconfirmedFall::Allow)];
        down.set(&mut draft.unconfirmed, "unconfirmed", out, |v| v.one_of(&unconfirmed));
    }
}

/// Sections that are allowed only empty, because their features are not built.
fn not_built(pool: &Section<'_>, out: &mut Vec<Diagnostic>) {
    let sections = [("autoscaler", "autoscalers are not built yet")];
    for (key, say) in sections {
        let Some(node) = pool.get(key) else { continue };
        let NodeKind::Map(entries) = &node.kind else {
            out.push(*SectionValue { node, path: key.to_owned() }.wrong_type("an empty map"));
            continue;
        };
        out.extend(entries.iter().map(|entry| {
            let path = format!("{key}.{}", super::quote(&entry.key));
            let fault = Diagnostic::new(entry.at, path, Code::NotBuilt, say);
            fault.help(format!("leave {key} empty"))
        }));
    }
}
