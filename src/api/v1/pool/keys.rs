//! The keys of a pool file.

use std::collections::BTreeMap;

use serde_json::json;

use super::form::*;
use super::rollout::ROLLOUT;
use super::scalar::*;
use super::section::{Later, Section, SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::windows::WINDOWS;
use super::words::HealthSource;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::{NodeEntry, NodeKind, join};
use crate::api::v1::wire::WordTable;
use crate::model::action::WriteScope;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::{
    Adopt, Deletion, Draft, DrainPolicy, HealthPolicy, Image, OwnedModel, Owner, PlatformFeatures,
    Repair, UnconfirmedFall,
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

tables! {
    POOL(d: Draft) = {
        required "apiVersion": VERSION => ();
        required "kind": KIND => ();
        required "name": NAME => d.name;
        required "scaleSet": SCALE_SET => d.scale_set;
        required "replicas": REPLICAS => *d;
        "model": MODEL => d.model;
        "rollout": ROLLOUT => d.rollout;
        "windows": WINDOWS => d.windows;
        "health": HEALTH => d.health;
        "adopt": word::<Adopt>() => d.adopt;
        "platformFeatures": word::<PlatformFeatures>() => d.platform_features;
        "owner": OWNER => d.tags_owner;
        "repair": REPAIR => d.repair;
        "deletion": DELETION => d.deletion;
        "drain": DRAIN => d.drain;
        "scaleDown": SCALE_DOWN => d.unconfirmed;
        "autoscaler": AUTOSCALER => ();
    }
    REPLICAS(d: Draft) { later: PROFILES, check: check_count, is_described: true } = {
        "owner": word::<Owner>() => d.owner;
        "count": COUNT => d.count, if d.owner == Owner::Pool;
    }
    MODEL(m: OwnedModel) = {
        "image": IMAGE => m.image;
        "vmSize": Maybe(line::<LONGEST_TEXT>()) => m.fields.vm_size;
        "tags": TAGS => m.fields.tags;
        "write": word::<WriteScope>() => m.write, if m.write != WriteScope::default();
    }
    FOLLOWED(id: Option<Box<str>>) = {
        required "follow": Maybe(line::<LONGEST_ID>()) => *id;
    }
    HEALTH(health: HealthPolicy) = {
        "source": SOURCE => *health;
    }
    OWNER(has_tag: bool) { is_described: true } = {
        "tag": word::<bool>() => *has_tag;
    }
    REPAIR(r: Repair) = {
        "after": DURATION => r.after;
        "window": DURATION => r.window;
        "maxAtOnce": whole::<MOST_AT_ONCE>() => r.max_at_once;
        "breaker": PERCENT => r.breaker_percent;
    }
    DELETION(d: Deletion) = {
        "force": FLAG => d.force;
        "deadline": DURATION => d.deadline;
    }
    DRAIN(d: DrainPolicy) { later: CLUSTER_DRAIN } = {
        "maxBlocked": whole::<MOST_AT_ONCE>() => d.max_blocked;
        "failedAfter": DURATION => d.failed_after;
    }
    SCALE_DOWN(unconfirmed: UnconfirmedFall) { later: GRAY } = {
        "unconfirmed": word::<UnconfirmedFall>() => *unconfirmed;
    }
}

const PROFILES: Later = (&["profiles"], "profiles are not built yet: give a count");
const CLUSTER_DRAIN: Later = (
    &["cluster", "filters", "rules", "ladder", "volumes", "nodeDeletion"],
    "draining by a cluster of the pool's own is not built yet",
);
const GRAY: Later = (
    &[
        "gray",
        "mode",
        "cutoff",
        "standby",
        "changePercent",
        "changeInterval",
        "observation",
        "gates",
    ],
    "gray scale-down is not built yet",
);

const COUNT: Scalar<u32> = whole::<MOST_MACHINES>();
const VERSION: Scalar<()> = Scalar {
    parse: |value| this_word(value, API_VERSION),
    print: |()| text(API_VERSION),
    schema: || Some(json!({ "const": API_VERSION })),
};
const KIND: Scalar<()> = Scalar {
    parse: |value| this_word(value, "Pool"),
    print: |()| text("Pool"),
    schema: || Some(json!({ "const": "Pool" })),
};
const NAME: Scalar<PoolName> = Scalar {
    parse: pool_name,
    print: |name| text(name.as_str()),
    schema: || Some(json!({ "type": "string" })),
};
const SCALE_SET: Scalar<ScaleSetId> = Scalar {
    parse: scale_set,
    print: |id| text(id.as_str()),
    schema: || Some(json!({ "type": "string" })),
};
const SOURCE: Scalar<HealthPolicy> =
    Scalar::new(health, |of| text(HealthSource::Built(*of).word()));
/// An exact image as text, or a followed one as a map.
const IMAGE: Special<Option<Image>> = Special {
    read: image,
    write: |of| match of.as_ref()? {
        Image::Exact(id) => Some(text(id)),
        Image::Follow(id) => FOLLOWED.write(&Some(id.clone())),
    },
    schema: || None,
};
const TAGS: Special<BTreeMap<Box<str>, Box<str>>> = Special {
    read: tags,
    write: |of| {
        let each = of.iter().map(|(key, value)| (key.to_string().into(), text(value)));
        (!of.is_empty()).then(|| OrderedJson::Map(each.collect()))
    },
    schema: || None,
};
/// A section that is allowed only empty, because its feature is not built.
const AUTOSCALER: Special<()> = Special { read: autoscaler, write: |()| None, schema: || None };

/// Who owns the size decides whether the file must give it, or must not.
fn check_count(replicas: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    let has_count = replicas.get("count").is_some_and(|value| (COUNT.parse)(&value).is_ok());
    let is_clear = replicas.get("owner").is_none_or(|value| one_of::<Owner>(&value).is_ok());
    match draft.owner {
        Owner::Pool if is_clear && !replicas.has("profiles") => replicas.require("count", out),
        Owner::ScaleSet if has_count => {
            let say = "the scale set says how many, so no count can be given";
            let fault = replicas.fault("count", Code::Contradiction, say);
            out.push(fault.help("leave it out, or write owner: pool"));
        }
        _ => {}
    }
}

fn this_word(value: &SectionValue<'_>, wanted: &'static str) -> SectionResult<()> {
    let text = value.text(LONGEST_TEXT)?;
    if text == wanted {
        return Ok(());
    }
    let fault = Diagnostic { code: Code::WrongVersion, ..*value.bad(format!("must be {wanted}")) };
    Err(Box::new(fault.allowed(&[wanted], text)))
}

fn pool_name(value: &SectionValue<'_>) -> SectionResult<PoolName> {
    let text = value.text(LONGEST_NAME)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(is_plain) {
        let fault =
            value.bad("a name begins with a letter or digit and goes on with those, -, _ and .");
        return Err(Box::new(fault.help("write it like web or node-pool-1")));
    }
    Ok(PoolName::new(text))
}

fn scale_set(value: &SectionValue<'_>) -> SectionResult<ScaleSetId> {
    let text = value.text(LONGEST_ID)?;
    if text.chars().any(char::is_whitespace) {
        return Err(value.bad("a resource id has no spaces"));
    }
    if text.trim_end_matches('/').is_empty() {
        return Err(value.bad("it names no scale set"));
    }
    Ok(ScaleSetId::new(text))
}

fn health(value: &SectionValue<'_>) -> SectionResult<HealthPolicy> {
    let HealthSource::Built(health) = one_of(value)? else {
        let fault = value.bad("health by HTTP probe is not built yet");
        let fault = Diagnostic { code: Code::NotBuilt, ..*fault };
        let built = words::<HealthSource>().into_iter().filter(|word| *word != "http");
        return Err(Box::new(fault.allowed(&built.collect::<Vec<_>>(), "")));
    };
    Ok(health)
}

fn image(value: &SectionValue<'_>, slot: &mut Option<Image>, out: &mut Vec<Diagnostic>) {
    let mut id = None;
    if let NodeKind::Map(_) = &value.node.kind {
        FOLLOWED.read(value, &mut id, out);
        *slot = id.map(Image::Follow);
    } else {
        Maybe(line::<LONGEST_ID>()).read(value, &mut id, out);
        *slot = id.map(Image::Exact);
    }
}

fn tags(
    value: &SectionValue<'_>,
    slot: &mut BTreeMap<Box<str>, Box<str>>,
    out: &mut Vec<Diagnostic>,
) {
    let NodeKind::Map(entries) = &value.node.kind else {
        out.push(*value.wrong_type("a map of texts"));
        return;
    };
    if entries.len() > MOST_TAGS {
        out.push(*value.bad(format!("{} tags are more than {MOST_TAGS}", entries.len())));
        return;
    }
    for NodeEntry { key, value: node, .. } in entries {
        let is_empty = matches!(&node.kind, NodeKind::Text(text) if text.text.is_empty());
        let tag = SectionValue { node, path: join(&value.path, &quote(key)) };
        match if is_empty { Ok("") } else { tag.text(LONGEST_TEXT) } {
            Ok(text) => drop(slot.insert(key.clone(), text.into())),
            Err(fault) => out.push(*fault),
        }
    }
}

fn autoscaler(value: &SectionValue<'_>, (): &mut (), out: &mut Vec<Diagnostic>) {
    let NodeKind::Map(entries) = &value.node.kind else {
        out.push(*value.wrong_type("an empty map"));
        return;
    };
    out.extend(entries.iter().map(|entry| {
        let path = join(&value.path, &quote(&entry.key));
        let say = "autoscalers are not built yet";
        let fault = Diagnostic::new(entry.at, path, Code::NotBuilt, say);
        fault.help(format!("leave {} empty", value.path))
    }));
}
