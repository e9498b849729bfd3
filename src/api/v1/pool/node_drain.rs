//! Which pods a Kubernetes node is drained of, and how long that may take, in a pool file.

use std::collections::BTreeMap;

use serde_json::json;

use super::form::*;
use super::scalar::*;
use super::section::{SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::diagnostic::{Diagnostic, quote};
use crate::api::v1::node::{NodeEntry, NodeKind, join};
use crate::model::drain::{
    DaemonSetPods, DrainLadder, FragilePods, PodFilters, PodRule, PodRuling,
};

/// More than a person can keep in mind.
const MOST_RULES: usize = 50;
/// A pod seldom has more labels than this, and a rule needs a few of them.
const MOST_LABELS: usize = 20;
/// Of a namespace, of a label's value, and of its name without a prefix.
const LONGEST_LABEL: usize = 63;
/// Of a label's prefix, which is a name of the DNS.
const LONGEST_PREFIX: usize = 253;
const LONGEST_KEY: usize = LONGEST_PREFIX + 1 + LONGEST_LABEL;
const NAMESPACE: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";
const LABEL_KEY: &str =
    "^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$";
const LABEL_VALUE: &str = "^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$";
const FARTHEST: i32 = 1_000;

tables! {
    FILTERS(f: PodFilters) = {
        /// Pods of DaemonSets, which their controller puts back at once. skip: they go with their node. evict: they are
        /// evicted.
        "daemonSets": word::<DaemonSetPods>() => f.daemon_sets, like "evict";
        /// Pods with an emptyDir volume, whose data goes with them. evict: they are evicted. block: the drain waits until
        /// they are gone.
        "emptyDir": word::<FragilePods>() => f.empty_dir, like "block";
        /// Pods that no controller makes again. evict: they are evicted. block: the drain waits until they are gone.
        "bare": word::<FragilePods>() => f.bare, like "block";
    }
    RULE(r: PodRule) = {
        /// Which pods: all that are in this namespace and have these labels. It names at least one of both.
        required "match": MATCH => *r, like {"namespace": "shop", "labels": {"app": "queue"}};
        /// What happens to them. skip: they go with their node. wait: the drain waits until they have ended by themselves.
        /// evict: they are evicted, whatever the filters say.
        "do": word::<PodRuling>() => r.ruling, like "wait";
        /// Pods of a lower number go first; the others follow when they are gone. A pod without a rule has 0.
        "order": ORDER => r.order, like 10;
    }
    MATCH_KEYS(r: PodRule) = {
        /// The namespace of the pods; without it, any.
        "namespace": Maybe(NAMESPACE_NAME) => r.namespace, like "shop";
        /// Labels with their values; a pod has all of them.
        "labels": LABELS => r.labels, like {"app": "queue"};
    }
    LADDER(l: DrainLadder) = {
        /// How long pods are evicted with their own grace; at least 1m.
        "evict": DURATION => l.evict, like "30m";
        /// How long the pods that are left are then evicted with a shorter grace. off: they are not.
        "shorterGrace": DURATION_OR_OFF => l.shorter_grace, like "off";
        /// How long the pods that are left are then deleted, whatever their budgets say. off: they are not.
        "delete": DURATION_OR_OFF => l.delete, like "10m";
    }
}

pub(super) const RULES: List<PodRule> = List {
    most: MOST_RULES,
    item: |value, out| {
        let mut rule = PodRule::default();
        RULE.open(value, &mut rule, out)?;
        Some(rule)
    },
    print: |of| RULE.pairs(of),
    form: || RULE.form(&PodRule::default()).title("PodRule"),
};

const MATCH: Special<PodRule> = Special {
    read: |value, rule, out| {
        let before = out.len();
        if MATCH_KEYS.open(value, rule, out).is_none() || out.len() > before {
            return;
        }
        if rule.namespace.is_none() && rule.labels.is_empty() {
            let fault = value.bad("it would match every pod");
            out.push(fault.help("name a namespace, labels, or both"));
        }
    },
    write: |rule| MATCH_KEYS.write(rule),
    form: |rule| at_least_one(MATCH_KEYS.form(rule)),
};

const NAMESPACE_NAME: Scalar<Box<str>> = Scalar::new(
    |value| {
        let text = value.text(LONGEST_LABEL)?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !text.chars().all(is_plain) || text.starts_with('-') || text.ends_with('-') {
            let fault = value.bad(format!("{} is no name of a namespace", quote(text)));
            let help =
                "it has small letters, digits and -, and begins and ends with none of the last";
            return Err(Box::new(fault.help(help)));
        }
        Ok(text.into())
    },
    text,
    || {
        let schema = json!({ "type": "string", "pattern": NAMESPACE, "maxLength": LONGEST_LABEL });
        ValueForm::new("the name of a namespace", schema)
    },
);

const ORDER: Scalar<i32> = Scalar::new(
    |value| {
        let NodeKind::Number(text) = &value.node.kind else {
            return Err(value.wrong_type("a whole number"));
        };
        let is_plain = !text.starts_with('+');
        let found = text.parse().ok().filter(|n| is_plain && (-FARTHEST..=FARTHEST).contains(n));
        found.ok_or_else(|| value.bad(format!("{} is not {}", quote(text), orders())))
    },
    |of| OrderedJson::Signed(*of),
    || {
        let schema = json!({ "type": "integer", "minimum": -FARTHEST, "maximum": FARTHEST });
        ValueForm::new(orders(), schema)
    },
);

fn orders() -> String {
    format!("a whole number from {} to {FARTHEST}", -FARTHEST)
}

const LABELS: Special<BTreeMap<Box<str>, Box<str>>> = Special {
    read: labels,
    write: |of| {
        let each = of.iter().map(|(key, value)| (key.to_string().into(), text(value)));
        (!of.is_empty()).then(|| OrderedJson::Map(each.collect()))
    },
    form: |_| {
        let value = json!({ "type": "string", "pattern": LABEL_VALUE, "maxLength": LONGEST_LABEL });
        let schema = json!({
            "type": "object", "additionalProperties": value, "maxProperties": MOST_LABELS,
            "propertyNames": { "pattern": LABEL_KEY, "maxLength": LONGEST_KEY },
        });
        at_least_one(ValueForm::new("a map of labels and their values", schema))
    },
};

fn labels(
    value: &SectionValue<'_>,
    slot: &mut BTreeMap<Box<str>, Box<str>>,
    out: &mut Vec<Diagnostic>,
) {
    let NodeKind::Map(entries) = &value.node.kind else {
        out.push(*value.wrong_type("a map of labels and their values"));
        return;
    };
    if entries.is_empty() {
        out.push(value.bad("it names no label").help("name one, or leave it out"));
    } else if entries.len() > MOST_LABELS {
        out.push(*value.bad(format!("{} labels are more than {MOST_LABELS}", entries.len())));
        return;
    }
    for NodeEntry { key, value: node, .. } in entries {
        let item = SectionValue { node, path: join(&value.path, &quote(key)) };
        if !is_label_key(key) {
            let fault = item.bad(format!("{} is no name of a label", quote(key)));
            out.push(fault.help("write it like app or example.com/tier"));
            continue;
        }
        match label_value(&item) {
            Ok(text) => drop(slot.insert(key.clone(), text.into())),
            Err(fault) => out.push(*fault),
        }
    }
}

/// A label may have an empty value.
fn label_value<'v>(value: &'v SectionValue<'_>) -> SectionResult<&'v str> {
    let text = value.word("text")?;
    if text.is_empty() || is_label(text) {
        return Ok(text);
    }
    let fault = value.bad(format!("{} is no value of a label", quote(text)));
    let help =
        "it has at most 63 letters, digits, -, _ and ., and begins and ends with a letter or digit";
    Err(Box::new(fault.help(help)))
}

fn is_label(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let is_plain = |c: char| ends(c) || "-_.".contains(c);
    text.len() <= LONGEST_LABEL
        && text.starts_with(ends)
        && text.ends_with(ends)
        && text.chars().all(is_plain)
}

fn is_label_key(key: &str) -> bool {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_prefix = |text: &str| {
        text.len() <= LONGEST_PREFIX
            && text.starts_with(ends)
            && text.ends_with(ends)
            && text.chars().all(|c| ends(c) || "-.".contains(c))
    };
    match key.split_once('/') {
        Some((prefix, name)) => is_prefix(prefix) && is_label(name),
        None => is_label(key),
    }
}

/// The same for a map that may not be empty.
fn at_least_one(mut form: ValueForm) -> ValueForm {
    if let Some(schema) = form.schema.as_object_mut() {
        schema.insert("minProperties".into(), 1.into());
    }
    form
}
