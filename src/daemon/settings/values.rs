//! How values are written: lists and maps as YAML on one line, which `--set` takes and the settings show, and what is
//! safe to show of a value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::keys::{PREFIX, SECRETS, SettingsKind};
use crate::adapters::gates::command::check_inherit;
use crate::adapters::hooks::{self, Template};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace, quote};
use crate::api::v1::node::{self, Node, NodeEntry, NodeKind};

type Faults = Vec<Diagnostic>;

impl SettingsKind {
    /// Whether its values are lists or maps.
    pub(super) const fn is_composite(self) -> bool {
        matches!(self, Self::Arguments | Self::Variables | Self::VariableNames)
    }
}

/// The value of a flag on one line, or all that is wrong with it. `path`: of its key.
pub(super) fn of_text(kind: SettingsKind, text: &str, path: &str) -> Result<String, Faults> {
    let read = node::read(text);
    match (read.diagnostics.is_empty(), read.roots.as_slice()) {
        (true, [root]) => of_node(kind, &root.node, path),
        (true, _) => {
            let say = "must be one list or map on one line";
            Err(vec![Diagnostic::new(TextPlace::START, path, Code::WrongType, say)])
        }
        (false, _) => {
            let here = |fault: Diagnostic| Diagnostic { key: path.to_owned(), ..fault };
            Err(read.diagnostics.into_iter().map(here).collect())
        }
    }
}

/// A value of the file on one line, or all that is wrong with it.
pub(super) fn of_node(kind: SettingsKind, node: &Node, path: &str) -> Result<String, Faults> {
    let mut out = Vec::new();
    let line = match (kind, &node.kind) {
        (SettingsKind::Variables, NodeKind::Map(entries)) => {
            map(&variables(entries, path, &mut out))
        }
        (SettingsKind::Arguments, NodeKind::List(items)) => {
            list(&arguments(node, items, path, &mut out))
        }
        (SettingsKind::VariableNames, NodeKind::List(items)) => list(&names(items, path, &mut out)),
        _ => {
            let (needed, such) = match kind {
                SettingsKind::Variables => ("a map", "{LEVEL: strict}"),
                SettingsKind::VariableNames => ("a list", "[PATH, HOME]"),
                _ => ("a list", "[/usr/local/bin/check, --strict]"),
            };
            let say = format!("this is {}, where {needed} is needed", node.what());
            let fault = Diagnostic::new(node.at, path, Code::WrongType, say);
            out.push(fault.help(format!("write it as in {such}")));
            String::new()
        }
    };
    if out.is_empty() { Ok(line) } else { Err(out) }
}

fn arguments(node: &Node, items: &[Node], path: &str, out: &mut Faults) -> Vec<Box<str>> {
    let texts = texts(items, path, out);
    if items.is_empty() {
        let fault = Diagnostic::new(node.at, path, Code::BadValue, "the list is empty");
        out.push(fault.help("its first item is the absolute path of a program"));
    }
    if let (Some(program), Some(item)) = (texts.first(), items.first())
        && matches!(item.kind, NodeKind::Text(_))
        && !Path::new(&**program).is_absolute()
    {
        let say = match program.trim() {
            "" => "it is empty, and must be the absolute path of a program".to_owned(),
            _ => format!("{}: must be the absolute path of a program", quote(program)),
        };
        let fault = Diagnostic::new(item.at, format!("{path}[0]"), Code::BadValue, say);
        out.push(fault.help("no shell and no PATH find it; write it as in /usr/local/bin/check"));
    }
    texts
}

fn names(items: &[Node], path: &str, out: &mut Faults) -> Vec<Box<str>> {
    let names = texts(items, path, out);
    let mut seen = BTreeSet::new();
    for (n, (name, item)) in names.iter().zip(items).enumerate() {
        let at = format!("{path}[{n}]");
        if !name.is_empty() || matches!(item.kind, NodeKind::Text(_)) {
            let refused = check_inherit(name).err().map(|fault| {
                Diagnostic::new(item.at, at.clone(), Code::BadValue, fault.to_string())
            });
            out.extend(bad_name(name, item.at, &at).or(refused));
        }
        if !name.is_empty() && !seen.insert(name) {
            let say = format!("{} is in the list twice", quote(name));
            out.push(Diagnostic::new(item.at, at, Code::DuplicateKey, say));
        }
    }
    names
}

fn variables(entries: &[NodeEntry], path: &str, out: &mut Faults) -> BTreeMap<Box<str>, Box<str>> {
    let mut variables = BTreeMap::new();
    for NodeEntry { key: name, at, value } in entries {
        let path = format!("{path}.{}", quote(name));
        out.extend(bad_name(name, *at, &path));
        variables.insert(name.clone(), text(value, &path, out));
    }
    variables
}

/// A name that no program can read, or one that is not for it.
fn bad_name(name: &str, at: TextPlace, path: &str) -> Option<Diagnostic> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fault = |say| {
        let say = format!("{} {say}", quote(name));
        Diagnostic::new(at, path, Code::BadValue, say)
    };
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || !name.chars().all(allowed)
    {
        let help = "use letters, digits and _, with no digit first";
        return Some(fault("is no name of a variable").help(help));
    }
    if name.starts_with(PREFIX) || SECRETS.contains(&name) {
        let help = "let the program read a file with a secret of its own";
        return Some(fault("is a variable of Poolkeeper itself").help(help));
    }
    None
}

fn texts(items: &[Node], path: &str, out: &mut Faults) -> Vec<Box<str>> {
    let each = items.iter().enumerate();
    each.map(|(n, item)| text(item, &format!("{path}[{n}]"), out)).collect()
}

/// One value in a list or map; empty after a fault.
fn text(node: &Node, path: &str, out: &mut Faults) -> Box<str> {
    let Some(text) = scalar(node) else {
        if node.kind != NodeKind::Broken {
            let say = format!("this is {}, where one value is needed", node.what());
            out.push(Diagnostic::new(node.at, path, Code::WrongType, say));
        }
        return Box::default();
    };
    if text.chars().any(char::is_control) {
        let say = format!("{}: it may have no control character", quote(&without_secrets(&text)));
        out.push(Diagnostic::new(node.at, path, Code::BadValue, say));
        return Box::default();
    }
    text
}

fn scalar(node: &Node) -> Option<Box<str>> {
    match &node.kind {
        NodeKind::Text(text) => Some(text.text.clone()),
        NodeKind::Number(text) => Some(text.clone()),
        NodeKind::Bool(flag) => Some(flag.to_string().into()),
        NodeKind::Null | NodeKind::Broken | NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}

fn list(items: &[Box<str>]) -> String {
    let items: Vec<String> = items.iter().map(|text| quoted(text)).collect();
    format!("[{}]", items.join(", "))
}

fn map(entries: &BTreeMap<Box<str>, Box<str>>) -> String {
    let entries = entries.iter().map(|(name, text)| format!("{name}: {}", quoted(text)));
    let entries: Vec<String> = entries.collect();
    format!("{{{}}}", entries.join(", "))
}

/// A text that YAML reads as the same text.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The items of a line.
pub(super) fn items(line: &str) -> Vec<Box<str>> {
    match root(line) {
        Some(NodeKind::List(items)) => items.iter().filter_map(scalar).collect(),
        _ => Vec::new(),
    }
}

/// The entries of a line.
pub(super) fn entries(line: &str) -> BTreeMap<Box<str>, Box<str>> {
    match root(line) {
        Some(NodeKind::Map(entries)) => {
            let entry = |entry: NodeEntry| Some((entry.key, scalar(&entry.value)?));
            entries.into_iter().filter_map(entry).collect()
        }
        _ => BTreeMap::new(),
    }
}

fn root(line: &str) -> Option<NodeKind> {
    node::read(line).roots.into_iter().next().map(|root| root.node.kind)
}

/// A value in a form safe to show. It may be an address: people put passwords into those, and keys into their queries.
pub(crate) fn without_secrets(text: &str) -> String {
    let (place, query) = text.split_once('?').map_or((text, ""), |(place, _)| (place, "?…"));
    let Some((before, rest)) = place.rsplit_once('@') else { return format!("{place}{query}") };
    let scheme = before.split_once("://").map_or(String::new(), |(name, _)| format!("{name}://"));
    format!("{scheme}…@{rest}{query}")
}

/// A value of this kind in a form safe to show, on one line.
pub(super) fn safe(kind: SettingsKind, text: &str) -> String {
    match kind {
        SettingsKind::Webhook => hooks::shown(text).unwrap_or_default(),
        SettingsKind::Template => {
            Template::parse(text).map_or_else(|_| String::new(), |template| template.to_string())
        }
        _ if kind.is_composite() => shown(kind, text),
        _ => match text.contains("://") {
            true => without_secrets(text),
            false => text.to_owned(),
        },
    }
}

/// The same of a value that is not allowed.
pub(super) fn safe_if_wrong(kind: SettingsKind, text: &str) -> String {
    match kind {
        // Whatever it is, it was meant to be secret.
        SettingsKind::Webhook => "…".to_owned(),
        SettingsKind::Template => text.to_owned(),
        _ => without_secrets(text),
    }
}

/// The line in a form safe to show.
fn shown(kind: SettingsKind, line: &str) -> String {
    let safe = |text: Box<str>| match text.contains("://") {
        true => without_secrets(&text).into(),
        false => text,
    };
    match kind {
        SettingsKind::Variables => {
            map(&entries(line).into_iter().map(|(name, text)| (name, safe(text))).collect())
        }
        _ => list(&items(line).into_iter().map(safe).collect::<Vec<_>>()),
    }
}
