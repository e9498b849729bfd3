//! The keys of a pool file.

use std::collections::BTreeMap;

use serde_json::json;

use super::autoscaler::AUTOSCALER;
use super::drain::DRAIN;
use super::form::*;
use super::gates::GATES;
use super::notifications::NOTIFICATIONS;
use super::replicas::REPLICAS;
use super::rollout::ROLLOUT;
use super::scalar::*;
use super::section::{SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use super::windows::WINDOWS;
use super::words::HealthSource;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::{NodeEntry, NodeKind, join};
use crate::api::v1::wire::WordTable;
use crate::model::action::WriteScope;
use crate::model::ids::{ClusterName, ScaleSetId};
use crate::model::policy::{
    Adopt, Deletion, Draft, HealthPolicy, Image, OwnedModel, PlatformFeatures, Repair,
    UnconfirmedFall,
};
use crate::model::size::{GrayPolicy, GrayState, OnGateFail};

/// Longest value of a tag.
const LONGEST_TEXT: usize = 256;
/// Most tags of a resource.
const MOST_TAGS: usize = 50;
/// Far more broken machines than anyone would remove at once.
const MOST_AT_ONCE: u32 = 1_000;

tables! {
    POOL(d: Draft) = {
        /// The version of the format.
        required "apiVersion": VERSION => (), like "poolkeeper/v1";
        /// The kind of the document.
        required "kind": KIND => (), like "Pool";
        /// The name of the pool in commands, metrics and the API. No other pool has it.
        required "name": NAME => d.name, like "web";
        /// The resource id of the scale set that the pool manages. A scale set has one pool.
        required "scaleSet": SCALE_SET => d.scale_set,
            like "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        /// How many machines the pool has, and what sets that number.
        required "replicas": REPLICAS => *d, like {"owner": "pool", "count": 30};
        /// The parts of the scale set's model that the pool writes. If it names none, others own the model, and the
        /// pool rolls out what they write.
        "model": MODEL => d.model, like {"vmSize": "Standard_D4s_v5"};
        /// How outdated machines are replaced or updated.
        "rollout": ROLLOUT => d.rollout, like {"maxSurge": "10%", "onFailure": "rollback"};
        /// When a rollout may replace or update machines.
        "windows": WINDOWS => d.windows,
            like {"deny": [{"cron": "0 8 * * mon-fri", "duration": "10h", "timeZone": "Europe/Berlin"}]};
        /// Checks that checkpoints name, and that are watched while the rollout bakes.
        "gates": GATES => d.gates, if !d.gates.is_empty(),
            like [{"name": "shop", "http": {"endpoint": "shop"}, "interval": "1m"}];
        /// Webhooks that hear of rollouts, waits for approval and freezes.
        "notifications": NOTIFICATIONS => d.notifications, if !d.notifications.is_empty(),
            like [{"webhook": "ops", "on": ["failed", "waitingForApproval", "frozen"]}];
        /// The Kubernetes cluster whose nodes the machines are, by its name in the settings of the daemon.
        "cluster": Maybe(CLUSTER) => d.cluster, like "prod";
        /// Where the health of a machine is read.
        "health": HEALTH => d.health, like {"source": "applicationHealth"};
        /// What the pool does if it finds a rollout half done at first sight, or if only Azure's latestModelApplied says
        /// that machines are outdated. hold: it waits for a person. roll: it rolls them out.
        "adopt": word::<Adopt>() => d.adopt, like "roll";
        /// What the pool does if an upgrade, repair or scale feature of Azure is on for the scale set. refuse: it starts
        /// nothing that this feature could counter. warn: it reports the feature and works.
        "platformFeatures": word::<PlatformFeatures>() => d.platform_features, like "warn";
        /// The tag of the scale set that names the store of its pool.
        "owner": OWNER => d.tags_owner, like {"tag": "off"};
        /// How failed machines are replaced, with or without a rollout.
        "repair": REPAIR => d.repair, like {"after": "15m", "maxAtOnce": 2};
        /// How machines are deleted.
        "deletion": DELETION => d.deletion, like {"deadline": "1h"};
        /// How machines leave service before they go: their load balancers send them no new connections, open requests
        /// end, and workloads are drained.
        "drain": DRAIN => d.drain, like {"grace": "2m", "onTimeout": "proceed"};
        /// What the pool does when its size falls.
        "scaleDown": SCALE_DOWN => *d, like {"unconfirmed": "allow"};
        /// What the pool may do beside Azure's autoscaler of the scale set. Without it an autoscale setting that is on is
        /// a platform conflict.
        "autoscaler": AUTOSCALER => d.autoscaler, if d.autoscaler.is_some(), like {"during": "keep"};
    }
    MODEL(m: OwnedModel) = {
        /// The image of new machines, or the gallery image whose newest version the pool follows.
        "image": IMAGE => m.image, like "Canonical:ubuntu-24_04-lts:server:latest";
        /// The VM size of new machines.
        "vmSize": Maybe(line::<LONGEST_TEXT>()) => m.fields.vm_size, like "Standard_D4s_v5";
        /// Tags that the pool writes to the scale set.
        "tags": TAGS => m.fields.tags, like {"team": "shop"};
        /// What a write of a new image sends. image: the image alone. storageProfile: also the disks, as just read, so
        /// that Azure resets none; it is refused for ephemeral OS disks.
        "write": word::<WriteScope>() => m.write, if m.write != WriteScope::default(), like "storageProfile";
    }
    FOLLOWED(id: Option<Box<str>>) = {
        /// The id of an image in a gallery. The pool writes its newest version to the model.
        required "follow": Maybe(line::<LONGEST_ID>()) => *id,
            like "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/images/providers/Microsoft.Compute/galleries/house/images/front";
    }
    HEALTH(health: HealthPolicy) = {
        /// auto: the application health extension if the scale set has one, else the provisioning state.
        /// applicationHealth: the extension. provisioning: the provisioning state alone. node: whether the Kubernetes node
        /// is ready.
        "source": SOURCE => *health, like "applicationHealth";
    }
    OWNER(has_tag: bool) = {
        /// Whether the pool writes the tag poolkeeper-owner, which keeps a second Poolkeeper away.
        "tag": word::<bool>() => *has_tag, like "off";
    }
    REPAIR(r: Repair) = {
        /// How long a machine must be unhealthy before it counts as failed.
        "after": DURATION => r.after, like "15m";
        /// The time over which the breaker counts failures.
        "window": DURATION => r.window, like "2h";
        /// How many failed machines may be in replacement at the same time; at least 1.
        "maxAtOnce": whole::<1, MOST_AT_ONCE>() => r.max_at_once, like 2;
        /// The share of the pool that may fail within the window. If more machines fail, the pool stops repairing: their
        /// common cause is then elsewhere.
        "breaker": PERCENT => r.breaker_percent, like "25%";
    }
    DELETION(d: Deletion) = {
        /// Whether an overdue delete is sent again as a forced delete.
        "force": FLAG => d.force, like true;
        /// How long a delete may take before it is overdue. The terminate notice of the scale set, if it has one, is
        /// allowed on top.
        "deadline": DURATION => d.deadline, like "1h";
    }
    SCALE_DOWN(d: Draft) = {
        /// What a large fall of the size does that no command confirmed. hold: it waits for a person. allow: the surplus
        /// machines leave.
        "unconfirmed": word::<UnconfirmedFall>() => d.unconfirmed, like "allow";
        /// Surplus machines leave service in steps, and go after they were watched. Without it they go at once.
        "gray": GRAY => d.gray, if d.gray.is_some(), like {"changePercent": "50%", "observation": "10m"};
    }
    GRAY_KEYS(g: GrayPolicy) = {
        /// Where they wait. cutoff: out of service, and running. standby: drained and deallocated.
        "state": word::<GrayState>() => g.state, like "standby";
        /// The part of the whole change that leaves service with each step.
        "changePercent": STEP_PERCENT => g.change_percent, like "25%";
        /// The time between two steps.
        "changeInterval": DURATION => g.interval, like "5m";
        /// How long they are watched after the last step.
        "observation": DURATION => g.observation, like "10m";
        /// The gates that must pass before each step, the first one too, and before the machines go, by name.
        "gates": lines::<LONGEST_NAME>() => g.gates, like ["errors"];
        /// What a gate that fails does besides stopping the scale-down until the command retry. restore: machines out of
        /// service return. pause: they stay out of service.
        "onFail": word::<OnGateFail>() => g.on_fail, like "pause";
    }
}

const GRAY: Special<Option<GrayPolicy>> = Special {
    read: |value, slot, out| {
        let mut gray = slot.clone().unwrap_or_default();
        if GRAY_KEYS.open(value, &mut gray, out).is_some() {
            *slot = Some(gray);
        }
    },
    write: |of| of.as_ref().and_then(|gray| GRAY_KEYS.write(gray)),
    form: |of| GRAY_KEYS.form(&of.clone().unwrap_or_default()).title("Gray"),
};
const VERSION: Scalar<()> = Scalar::new(
    |value| this_word(value, API_VERSION),
    |()| text(API_VERSION),
    || constant(API_VERSION),
);
const KIND: Scalar<()> =
    Scalar::new(|value| this_word(value, "Pool"), |()| text("Pool"), || constant("Pool"));
const SCALE_SET: Scalar<ScaleSetId> = Scalar::new(
    scale_set,
    |id| text(id.as_str()),
    || {
        // The words in it count the same in upper and lower case, so the pattern has only its shape.
        let schema =
            json!({ "type": "string", "pattern": "^(/[^/\\s]+){8}/*$", "maxLength": LONGEST_ID });
        ValueForm::new("the resource id of a scale set", schema)
    },
);
const SOURCE: Scalar<HealthPolicy> = Scalar::new(
    health,
    |of| text(HealthSource::Built(*of).word()),
    || {
        let works = |word: &&str| *word != "http";
        one_word(&words::<HealthSource>().into_iter().filter(works).collect::<Vec<_>>())
    },
);
const CLUSTER: Scalar<ClusterName> = Scalar::new(
    |value| value.text(LONGEST_NAME).map(ClusterName::new),
    |name| text(name.as_str()),
    || a_line("text of one line", LONGEST_NAME),
);
/// An exact image as text, or a followed one as a map.
const IMAGE: Special<Option<Image>> = Special {
    read: image,
    write: |of| match of.as_ref()? {
        Image::Exact(id) => Some(text(id)),
        Image::Follow(id) => FOLLOWED.write(&Some(id.clone())),
    },
    form: |_| {
        let pattern = "^(/\\S+|[^:/\\s]+:[^:/\\s]+:[^:/\\s]+:[^:/\\s]+)$";
        let exact = json!({ "type": "string", "pattern": pattern, "maxLength": LONGEST_ID });
        let words = "publisher:offer:sku:version or the id of an image";
        let latest = FOLLOWED.form(&None).title("LatestImage");
        ValueForm::new(words, exact).or(latest.words("{follow: <id of a gallery image>}"))
    },
};
const TAGS: Special<BTreeMap<Box<str>, Box<str>>> = Special {
    read: tags,
    write: |of| {
        let each = of.iter().map(|(key, value)| (key.to_string().into(), text(value)));
        (!of.is_empty()).then(|| OrderedJson::Map(each.collect()))
    },
    form: |_| {
        let value = json!({ "type": "string", "maxLength": LONGEST_TEXT });
        let schema = json!({
            "type": "object", "additionalProperties": value, "maxProperties": MOST_TAGS,
        });
        ValueForm::new("a map of texts", schema)
    },
};

fn constant(word: &str) -> ValueForm {
    ValueForm::new(word, json!({ "type": "string", "const": word }))
}

fn this_word(value: &SectionValue<'_>, wanted: &'static str) -> SectionResult<()> {
    let text = value.text(LONGEST_TEXT)?;
    if text == wanted {
        return Ok(());
    }
    let say = format!("must be {wanted}, not {}", quote(text));
    Err(Box::new(Diagnostic { code: Code::WrongVersion, ..*value.bad(say) }))
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
