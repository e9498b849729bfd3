//! The JSON Schema of a pool file: it knows the keys that the reader knows, accepts what the reader accepts, and refuses
//! what the reader refuses for its form.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use poolkeeper::api::v1::diagnostic::Code;
use poolkeeper::api::v1::node::{self, Node, NodeKind};
use poolkeeper::api::v1::pool::{KeyPath, file_schema, key_paths, to_json};
use serde_json::{Map, Value};

use crate::api::drains::BAD_DRAINS;
use crate::api::gates::BAD_GATES;
use crate::api::node_drains::BAD_NODE_DRAINS;
use crate::api::notifications::BAD_NOTIFICATIONS;
use crate::api::pools::{BAD, WHOLE, good_lines};
use crate::api::support::{LEAST, read};
use crate::support::schema::fits;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/pool.schema.json");

/// What the reader refuses and no schema can: ids of Azure, times, and an empty window.
const BEYOND: [&str; 7] = [
    "gates: [{name: a}]",
    "gates: [errors]}",
    "follow: 'p:o:s:latest'",
    "image: /subscriptions/x",
    "duration: 0s",
    "2026-13-01",
    "until: 2026-11-01",
];

/// A document as JSON. A key without a value counts as left out.
fn json(node: &Node) -> Value {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => Value::Null,
        NodeKind::Bool(is) => Value::Bool(*is),
        // What is no number of JSON is at least no whole number.
        NodeKind::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(0.5)),
        NodeKind::Text(text) => Value::from(&*text.text),
        NodeKind::List(items) => Value::Array(items.iter().map(json).collect()),
        NodeKind::Map(entries) => {
            let each = entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value)));
            Value::Object(each.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
    }
}

fn documents(text: &str) -> Vec<Value> {
    let read = node::read(text);
    let roots = read.roots.iter().filter(|root| root.node.kind != NodeKind::Null);
    roots.map(|root| json(&root.node)).collect()
}

fn judged(text: &str) -> Result<(), String> {
    let schema = file_schema();
    let all = documents(text);
    assert!(!all.is_empty(), "{text}");
    all.iter().try_for_each(|document| fits(&schema, &schema, document, ""))
}

#[test]
fn the_file_is_the_schema() {
    let made = format!("{:#}\n", file_schema());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(FILE, &made).unwrap();
    }
    let kept = fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        kept == made,
        "config/pool.schema.json is not what `schema` prints; UPDATE_GOLDEN=1 writes it"
    );
}

#[test]
fn what_the_reader_accepts_fits_the_schema() {
    for line in good_lines() {
        let text = format!("{LEAST}{line}\n");
        assert_eq!(judged(&text), Ok(()), "{line}");
        let (pools, _) = read(&text);
        assert_eq!(judged(&to_json(&pools[0])), Ok(()), "the written form of {line}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/pools");
    let mut files = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(judged(&text), Ok(()), "{}", path.display());
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "# yaml-language-server: $schema=../pool.schema.json",
            "{}",
            path.display()
        );
        files += 1;
    }
    assert!(files >= 3);
}

#[test]
fn what_the_reader_refuses_for_its_form_does_not_fit() {
    let texts = BAD
        .iter()
        .chain(BAD_DRAINS)
        .chain(BAD_NODE_DRAINS)
        .chain(BAD_GATES)
        .chain(BAD_NOTIFICATIONS)
        .map(|(line, _)| format!("{LEAST}{line}\n"));
    let texts = texts.chain(WHOLE.iter().map(|(text, _)| (*text).to_owned()));
    let mut refused = 0;
    for text in texts.filter(|text| !BEYOND.iter().any(|beyond| text.contains(beyond))) {
        let (_, faults) = read(&text);
        let of_form = [
            Code::UnknownKey,
            Code::WrongType,
            Code::BadValue,
            Code::MissingKey,
            Code::NotBuilt,
            Code::WrongVersion,
        ];
        // A key that stands twice, or a value with an anchor, is no JSON at all.
        if faults.iter().any(|fault| of_form.contains(&fault.code)) {
            assert!(judged(&text).is_err(), "the schema accepts: {text}{faults:?}");
            refused += 1;
        }
    }
    assert!(refused > 60, "{refused}");
}

/// The least and the most of a number, and whether the key also takes percents.
fn bounds(schema: &Value) -> Option<(i64, i64, bool)> {
    let forms = schema["anyOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let number = forms.iter().find(|form| form["type"] == "integer")?;
    let takes_percents = forms.iter().any(|form| form["type"] == "string");
    Some((number["minimum"].as_i64()?, number["maximum"].as_i64()?, takes_percents))
}

/// The least document with this value at a path such as `rollout.checkpoints[].at`.
fn with(path: &str, value: &str) -> String {
    let parts = path.rsplit('.');
    let inner = parts.fold(value.to_owned(), |inner, part| match part.strip_suffix("[]") {
        Some(list) => format!("{{{list}: [{inner}]}}"),
        None => format!("{{{part}: {inner}}}"),
    });
    let line = inner.strip_prefix('{').and_then(|line| line.strip_suffix('}')).unwrap();
    let profile = |of: String| format!("{{min: 0, max: 9, profiles: [{{name: a, {of}}}]}}");
    let replicas = match path {
        "replicas.count" => format!("{{count: {value}}}"),
        "replicas.min" => {
            format!("{{min: {value}, profiles: [{{name: a, static: {{count: 1}}}}]}}")
        }
        "replicas.max" => {
            format!("{{max: {value}, profiles: [{{name: a, static: {{count: 1}}}}]}}")
        }
        "replicas.profiles[].priority" => {
            profile(format!("priority: {value}, static: {{count: 1}}"))
        }
        "replicas.profiles[].static.count" => profile(format!("static: {{count: {value}}}")),
        "replicas.profiles[].cron.count" => {
            profile(format!("cron: {{start: '@daily', end: '0 9 * * *', count: {value}}}"))
        }
        _ if path.starts_with("gates[].") => {
            let gate = line.strip_prefix("gates: [{").unwrap();
            return format!(
                "{LEAST}gates: [{{name: a, command: {{run: a}}, unknownFor: 2d, {gate}\n"
            );
        }
        "drain.rules[].order" => {
            let rule = format!("{{match: {{namespace: a}}, order: {value}}}");
            return format!("{LEAST}cluster: a\ndrain: {{rules: [{rule}]}}\n");
        }
        _ => return format!("{LEAST}{line}\n"),
    };
    LEAST.replace("{owner: pool, count: 30}", &replicas)
}

#[test]
fn the_bounds_of_each_number_are_those_of_the_reader() {
    let mut numbers = Vec::new();
    for KeyPath { path, key } in key_paths() {
        let Some((least, most, takes_percents)) = bounds(&key.form.schema) else { continue };
        let place = path.replace("[]", "[0]");
        let agree = |value: String, is_good: bool| {
            let text = with(&path, &value);
            let (_, faults) = read(&text);
            let is_refused = faults.iter().any(|fault| fault.key == place);
            assert_eq!(is_refused, !is_good, "the reader: {text}{faults:?}");
            assert_eq!(judged(&text).is_ok(), is_good, "the schema: {text}");
        };
        for (number, is_good) in
            [(least - 1, false), (least, true), (most, true), (most + 1, false)]
        {
            agree(number.to_string(), is_good);
        }
        if takes_percents {
            for (percent, is_good) in
                [("0%", least == 0), ("1%", true), ("100%", true), ("101%", false)]
            {
                agree(percent.to_owned(), is_good);
            }
        }
        let range = format!("from {least} to {most}");
        assert!(key.form.words.contains(&range), "{path}: {}", key.form.words);
        numbers.push(path);
    }
    let known = [
        "replicas.count",
        "replicas.min",
        "replicas.max",
        "replicas.profiles[].priority",
        "replicas.profiles[].static.count",
        "replicas.profiles[].cron.count",
        "rollout.maxSurge",
        "rollout.maxUnavailable",
        "rollout.ramp.first",
        "rollout.ramp.factor",
        "rollout.failureThreshold",
        "rollout.checkpoints[].at",
        "gates[].need",
        "gates[].failures",
        "repair.maxAtOnce",
        "drain.maxBlocked",
        "drain.rules[].order",
    ];
    assert_eq!(numbers, known);
}

/// A map of the format: the lines that open it with an unknown key, and the schemas of its keys.
const MAPS: &[(&str, &[&str])] = &[
    ("zzz: 1", &[""]),
    ("model: {zzz: 1}", &["/properties/model"]),
    ("model: {image: {zzz: 1}}", &["/properties/model/properties/image/anyOf/1"]),
    ("rollout: {zzz: 1}", &["/properties/rollout"]),
    ("rollout: {ramp: {zzz: 1}}", &["/properties/rollout/properties/ramp/anyOf/0"]),
    (
        "rollout: {checkpoints: [{at: 1, zzz: 1}]}",
        &["/properties/rollout/properties/checkpoints/items"],
    ),
    (
        "rollout: {schedule: [{cron: '@daily', zzz: 1}]}",
        &["/properties/rollout/properties/schedule/items"],
    ),
    ("windows: {zzz: 1}", &["/properties/windows"]),
    (
        "windows: {allow: [{cron: '@daily', duration: 1h, zzz: 1}]}",
        &[
            "/properties/windows/properties/allow/items/anyOf/0",
            "/properties/windows/properties/allow/items/anyOf/1",
        ],
    ),
    (
        "windows: {deny: [{from: 2026-12-20, until: 2027-01-02, zzz: 1}]}",
        &[
            "/properties/windows/properties/deny/items/anyOf/0",
            "/properties/windows/properties/deny/items/anyOf/1",
        ],
    ),
    ("gates: [{name: a, zzz: 1}]", &["/properties/gates/items"]),
    (
        "gates: [{name: a, prometheus: {server: main, zzz: 1}}]",
        &["/properties/gates/items/properties/prometheus"],
    ),
    (
        "gates: [{name: a, http: {endpoint: shop, zzz: 1}}]",
        &["/properties/gates/items/properties/http"],
    ),
    (
        "gates: [{name: a, command: {run: smoke, zzz: 1}}]",
        &["/properties/gates/items/properties/command"],
    ),
    ("notifications: [{webhook: ops, zzz: 1}]", &["/properties/notifications/items"]),
    ("health: {zzz: 1}", &["/properties/health"]),
    ("owner: {zzz: 1}", &["/properties/owner"]),
    ("repair: {zzz: 1}", &["/properties/repair"]),
    ("deletion: {zzz: 1}", &["/properties/deletion"]),
    ("drain: {zzz: 1}", &["/properties/drain"]),
    ("drain: {hooks: {zzz: 1}}", &["/properties/drain/properties/hooks"]),
    ("drain: {filters: {zzz: 1}}", &["/properties/drain/properties/filters"]),
    ("drain: {ladder: {zzz: 1}}", &["/properties/drain/properties/ladder"]),
    (
        "drain: {rules: [{match: {namespace: a}, zzz: 1}]}",
        &["/properties/drain/properties/rules/items"],
    ),
    (
        "drain: {rules: [{match: {namespace: a, zzz: 1}}]}",
        &["/properties/drain/properties/rules/items/properties/match"],
    ),
    ("scaleDown: {zzz: 1}", &["/properties/scaleDown"]),
    ("autoscaler: {zzz: 1}", &["/properties/autoscaler/anyOf/0"]),
    ("scaleDown: {gray: {zzz: 1}}", &["/properties/scaleDown/properties/gray"]),
    ("replicas: {owner: pool, count: 30, zzz: 1}", &["/properties/replicas"]),
    (
        "replicas: {profiles: [{name: a, zzz: 1}]}",
        &["/properties/replicas/properties/profiles/items"],
    ),
    (
        "replicas: {profiles: [{name: a, static: {count: 1, zzz: 1}}]}",
        &["/properties/replicas/properties/profiles/items/properties/static"],
    ),
    (
        "replicas: {profiles: [{name: a, cron: {start: '@daily', zzz: 1}}]}",
        &["/properties/replicas/properties/profiles/items/properties/cron"],
    ),
    (
        "replicas: {profiles: [{name: a, metric: {server: main, zzz: 1}}]}",
        &["/properties/replicas/properties/profiles/items/properties/metric"],
    ),
    (
        "replicas: {profiles: [{name: a, share: {percent: 1%, zzz: 1}}]}",
        &["/properties/replicas/properties/profiles/items/properties/share"],
    ),
];

#[test]
fn the_schema_has_the_keys_of_the_reader_and_no_others() {
    let schema = file_schema();
    let mut maps = 0;
    for (line, pointers) in MAPS {
        let least = LEAST.replace("replicas: {owner: pool, count: 30}\n", "");
        let text = match line.starts_with("replicas") {
            true => format!("{least}{line}\n"),
            false => format!("{LEAST}{line}\n"),
        };
        let (_, faults) = read(&text);
        let unknown = faults.iter().find(|fault| fault.code == Code::UnknownKey);
        let unknown = unknown.unwrap_or_else(|| panic!("{line}: {faults:?}"));
        let of_reader: BTreeSet<&str> = unknown.allowed.iter().copied().collect();
        let mut of_schema = BTreeSet::new();
        for pointer in *pointers {
            let map = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
            assert_eq!(map["additionalProperties"], false, "{pointer}");
            of_schema.extend(map["properties"].as_object().unwrap().keys().map(String::as_str));
            maps += 1;
        }
        assert_eq!(of_reader, of_schema, "{line}");
    }
    assert_eq!(
        maps,
        described_maps(&schema),
        "a map of the schema is not in the table of this test"
    );
}

/// Schemas with a fixed set of keys.
fn described_maps(schema: &Value) -> usize {
    match schema {
        Value::Object(keys) => {
            let own = keys
                .get("properties")
                .is_some_and(|of| of.is_object() && keys.contains_key("required"));
            // Defaults and examples are values, not schemas.
            let inside =
                keys.iter().filter(|(key, _)| !matches!(key.as_str(), "default" | "examples"));
            usize::from(own) + inside.map(|(_, value)| described_maps(value)).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(described_maps).sum(),
        _ => 0,
    }
}

#[test]
fn each_leaf_says_what_it_takes() {
    fn leaves(schema: &Value, at: &str, found: &mut usize) {
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            assert!(of["description"].as_str().is_some_and(|text| text.len() > 10), "{at}");
            let says = ["type", "anyOf", "const", "enum"].iter().any(|key| of.get(*key).is_some());
            assert!(says, "{at}");
            *found += 1;
            let any = of["anyOf"].as_array().into_iter().flatten();
            for inside in any.chain([of, &of["items"]]) {
                leaves(inside, &at, found);
                for one in inside["anyOf"].as_array().into_iter().flatten() {
                    if inside != of {
                        leaves(one, &at, found);
                    }
                }
            }
        }
    }
    let mut found = 0;
    leaves(&file_schema(), "", &mut found);
    // The time zone of a window stands in both of its forms.
    assert_eq!(found, key_paths().len() + 2);
}
