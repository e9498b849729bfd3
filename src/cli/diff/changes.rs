//! Differences between two documents of a pool, and between a wanted model and the one of the scale set, by key.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::api::v1::pool::to_json;
use crate::cli::table::{Cell, Table};
use crate::cli::term::{Style, Term};
use crate::cli::text::{list, plain};
use crate::model::inventory::ModelFields;
use crate::model::policy::{Draft, Policy};

/// The most keys that one line names.
const NAMED: usize = 5;
/// Values that are longer are shown without what they have in common.
const SHORT: usize = 24;

/// One key whose value differs. `None`: the key is absent on that side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct KeyChange {
    pub key: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

impl KeyChange {
    fn new(key: &str, from: Option<&str>, to: Option<&str>) -> Self {
        Self { key: key.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
    }

    const fn sign(&self) -> (&'static str, Style) {
        match (&self.from, &self.to) {
            (None, _) => ("+", Style::Green),
            (Some(_), None) => ("-", Style::Red),
            (Some(_), Some(_)) => ("~", Style::Yellow),
        }
    }

    fn values(&self) -> String {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                let (from, to) = without_common(from, to);
                format!("{from} → {to}")
            }
            (from, to) => from.as_ref().or(to.as_ref()).cloned().unwrap_or_default(),
        }
    }
}

/// The document of a pool with every default filled in.
pub(in crate::cli) fn document(policy: &Policy) -> Value {
    serde_json::from_str(&to_json(policy)).unwrap_or_default()
}

/// What differs between two documents of a pool; no document: what the new one says beyond the defaults.
pub(in crate::cli) fn of_pool(before: Option<&Value>, policy: &Policy) -> Vec<KeyChange> {
    let now = document(policy);
    if let Some(before) = before {
        return between(before, &now);
    }
    let defaults = Draft::with_defaults(policy.name.clone(), policy.scale_set.clone());
    let defaults = Policy::build(defaults).map(|policy| document(&policy)).unwrap_or_default();
    let changes = between(&defaults, &now).into_iter().filter(|change| change.to.is_some());
    let mut changes: Vec<KeyChange> =
        changes.map(|change| KeyChange { from: None, ..change }).collect();
    changes.push(KeyChange::new("scaleSet", None, Some(policy.scale_set.as_str())));
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    changes
}

pub(in crate::cli) fn between(before: &Value, now: &Value) -> Vec<KeyChange> {
    let (before, now) = (flat(before), flat(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let change = |key: &String| {
        let (from, to) = (before.get(key), now.get(key));
        let text = |value: Option<&String>| value.cloned();
        (from != to).then(|| KeyChange { key: key.clone(), from: text(from), to: text(to) })
    };
    keys.into_iter().filter_map(change).collect()
}

/// What a write of the wanted fields changes in the model of a scale set.
pub(in crate::cli) fn of_model(has: &ModelFields, wanted: &ModelFields) -> Vec<KeyChange> {
    let mut changes = Vec::new();
    // Azure may return names in different case.
    let mut compare = |key: &str, has: Option<&str>, wanted: Option<&str>, exactly: bool| {
        let Some(wanted) = wanted else { return };
        let same = |has: &str| has == wanted || (!exactly && has.eq_ignore_ascii_case(wanted));
        if !has.is_some_and(same) {
            changes.push(KeyChange::new(key, has, Some(wanted)));
        }
    };
    compare("image", has.image.as_deref(), wanted.image.as_deref(), false);
    for (tag, value) in &wanted.tags {
        compare(&format!("tags.{tag}"), has.tags.get(tag).map(|text| &**text), Some(value), true);
    }
    compare("vmSize", has.vm_size.as_deref(), wanted.vm_size.as_deref(), false);
    changes
}

/// Every value by its path. An empty list or map counts as absent.
fn flat(value: &Value) -> BTreeMap<String, String> {
    let (mut found, mut open) = (BTreeMap::new(), vec![(String::new(), value)]);
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(map) => open.extend(map.iter().map(|(key, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                (format!("{path}{dot}{key}"), value)
            })),
            Value::Array(items) => {
                let each = items.iter().enumerate();
                open.extend(each.map(|(n, item)| (format!("{path}[{n}]"), item)));
            }
            Value::String(text) => drop(found.insert(path, text.clone())),
            Value::Bool(_) | Value::Number(_) => drop(found.insert(path, value.to_string())),
        }
    }
    found
}

/// Long ids differ at their end: cuts off what they have in common, up to the last `/` or `:`.
fn without_common(from: &str, to: &str) -> (String, String) {
    let whole = (from.to_owned(), to.to_owned());
    if from.len().max(to.len()) <= SHORT {
        return whole;
    }
    let pairs = from.char_indices().zip(to.chars());
    let same = pairs.take_while(|((_, a), b)| a == b).map(|((at, a), _)| (at, a));
    let Some((cut, _)) = same.filter(|(_, a)| "/:".contains(*a)).last().filter(|(at, _)| *at > 0)
    else {
        return whole;
    };
    let rest = |text: &str| format!("…{}", text.get(cut..).unwrap_or(text));
    (rest(from), rest(to))
}

/// A line for each key.
pub(in crate::cli) fn draw(changes: &[KeyChange], term: Term, page: &mut String) {
    let mut table = Table::new(2);
    for change in changes {
        let (sign, style) = change.sign();
        table.row([
            Cell::new(format!("{sign} {}", change.key), style),
            Cell::new(change.values(), style),
        ]);
    }
    table.draw(term, page);
}

/// Each key with its values, on one line.
pub(in crate::cli) fn sentence(changes: &[KeyChange]) -> String {
    let each = changes.iter().map(|change| format!("{}: {}", change.key, change.values()));
    let each: Vec<String> = each.collect();
    plain(&list(each.iter().map(String::as_str), NAMED)).into_owned()
}

/// The keys alone, on one line.
pub(in crate::cli) fn keys(changes: &[KeyChange]) -> String {
    plain(&list(changes.iter().map(|change| change.key.as_str()), NAMED)).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ids::{PoolName, ScaleSetId};
    use crate::model::policy::Image;

    const SET: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";

    fn policy(change: impl FnOnce(&mut Draft)) -> Policy {
        let mut draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(SET));
        draft.count = 12;
        change(&mut draft);
        Policy::build(draft).unwrap()
    }

    fn drawn(changes: &[KeyChange]) -> String {
        let mut page = String::new();
        draw(changes, Term::PLAIN, &mut page);
        page
    }

    #[test]
    fn only_real_changes_show() {
        let before = document(&policy(|draft| {
            draft.model.image =
                Some(Image::Exact("/galleries/a/images/base/versions/1.0.0".into()));
        }));
        assert_eq!(of_pool(Some(&before), &policy(|_| ())).len(), 1);
        let after = policy(|draft| {
            draft.model.image =
                Some(Image::Exact("/galleries/a/images/base/versions/2.0.0".into()));
            draft.model.fields.vm_size = Some("Standard_D2s_v5".into());
            draft.count = 14;
        });
        let changes = of_pool(Some(&before), &after);
        assert_eq!(keys(&changes), "model.image, model.vmSize, replicas.count");
        let expected = "  \
  ~ model.image     …/1.0.0 → …/2.0.0
  + model.vmSize    Standard_D2s_v5
  ~ replicas.count  12 → 14
";
        assert_eq!(drawn(&changes), expected);
        assert_eq!(of_pool(Some(&document(&after)), &after), []);
    }

    #[test]
    fn a_new_pool_shows_what_it_says_beyond_the_defaults() {
        let changes = of_pool(None, &policy(|_| ()));
        assert_eq!(keys(&changes), "replicas.count, scaleSet");
        assert!(changes.iter().all(|change| change.from.is_none() && change.to.is_some()));
    }

    #[test]
    fn documents_are_compared_by_path() {
        let before =
            json!({"a": {"b": 1, "gone": "x"}, "list": [{"at": 1}], "empty": [], "no": null});
        let now = json!({"a": {"b": 2}, "list": [{"at": 1}, {"at": true}]});
        let expected = [
            KeyChange::new("a.b", Some("1"), Some("2")),
            KeyChange::new("a.gone", Some("x"), None),
            KeyChange::new("list[1].at", None, Some("true")),
        ];
        assert_eq!(between(&before, &now), expected);
        assert_eq!(drawn(&expected[1..]), "  - a.gone      x\n  + list[1].at  true\n");
    }

    #[test]
    fn keys_of_strangers_do_not_steer_the_terminal() {
        let change = [KeyChange::new("model.tags.\u{1b}[2J", Some("x"), None)];
        assert!(!(keys(&change) + &drawn(&change)).contains('\u{1b}'));
    }

    #[test]
    fn a_model_is_compared_as_azure_writes_it() {
        let has = ModelFields {
            image: Some("/Images/BASE/1".into()),
            vm_size: None,
            tags: BTreeMap::from([("team".into(), "Web".into())]),
        };
        let same = ModelFields { image: Some("/images/base/1".into()), ..ModelFields::default() };
        assert_eq!(of_model(&has, &same), []);
        let wanted = ModelFields {
            image: Some("/images/base/2".into()),
            vm_size: Some("Standard_D2s_v5".into()),
            tags: BTreeMap::from([("team".into(), "web".into())]),
        };
        let expected = [
            KeyChange::new("image", Some("/Images/BASE/1"), Some("/images/base/2")),
            KeyChange::new("tags.team", Some("Web"), Some("web")),
            KeyChange::new("vmSize", None, Some("Standard_D2s_v5")),
        ];
        assert_eq!(of_model(&has, &wanted), expected);
    }

    #[test]
    fn long_values_are_cut_to_what_differs() {
        for (from, to, short) in [
            ("1h", "2h", ("1h", "2h")),
            ("/a/very/long/way/to/1.0.0", "/a/very/long/way/to/2.0.0", ("…/1.0.0", "…/2.0.0")),
            (
                "canonical:ubuntu:server:24.04",
                "canonical:ubuntu:server:26.04",
                ("…:24.04", "…:26.04"),
            ),
            (
                "a-long-text-without-a-part",
                "a-long-text-without-another",
                ("a-long-text-without-a-part", "a-long-text-without-another"),
            ),
            ("/one/very/long/path/of/a/thing", "/two", ("/one/very/long/path/of/a/thing", "/two")),
        ] {
            let (from, to) = without_common(from, to);
            assert_eq!((from.as_str(), to.as_str()), short);
        }
    }
}
