//! Reads values from a file, the environment and flags, each with its source; reports all faults at once.

use std::fmt;

use super::keys::{FILE, KEYS, PREFIX, SettingsKey, is_foreign};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace, closest, quote};
use crate::api::v1::node::{self, Node, NodeEntry, NodeKind};

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    Default,
    File(String),
    Variable(&'static str),
    Flag(String),
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Default => f.write_str("default"),
            From::File(place) => f.write_str(place),
            From::Variable(name) => f.write_str(name),
            From::Flag(flag) => f.write_str(flag),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFault {
    /// A variable or flag; `None`: the file, at the place in the diagnostic.
    pub from: Option<String>,
    pub found: Diagnostic,
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(from) = &self.from else { return self.found.fmt(f) };
        // Variables and flags have no line and column.
        let plain = self.found.to_string();
        let place = format!("{}:{}: ", self.found.line, self.found.column);
        write!(f, "{from}: {}", plain.strip_prefix(&place).unwrap_or(&plain))
    }
}

/// Values by key, in the order of the table. Sources with lower precedence are read first.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    pub values: Vec<(&'static SettingsKey, Option<(String, From)>)>,
    pub faults: Vec<SettingsFault>,
}

impl Layers {
    pub fn defaults() -> Self {
        let value = |key: &'static SettingsKey| {
            let default = Some(key.default).filter(|text| !text.is_empty());
            (key, default.map(|text| (text.to_owned(), From::Default)))
        };
        Self { values: KEYS.iter().map(value).collect(), faults: Vec::new() }
    }

    fn set(&mut self, key: &SettingsKey, text: &str, from: From) {
        if let Some((_, value)) = self.values.iter_mut().find(|(known, _)| known.name == key.name) {
            *value = Some((text.to_owned(), from));
        }
    }

    pub fn file(&mut self, bytes: &[u8], file: &str) {
        let mut found = Vec::new();
        match node::text(bytes) {
            Ok(text) => self.text(text, file, &mut found),
            Err(fault) => found.push(*fault),
        }
        found.sort_by_key(|fault| (fault.line, fault.column));
        self.faults.extend(found.into_iter().map(|found| SettingsFault {
            from: None,
            found: Diagnostic { file: Some(file.to_owned()), ..found },
        }));
    }

    fn text(&mut self, text: &str, file: &str, out: &mut Vec<Diagnostic>) {
        let read = node::read(text);
        out.extend(read.diagnostics);
        let mut roots =
            read.roots.iter().map(|root| &root.node).filter(|node| node.kind != NodeKind::Null);
        let Some(root) = roots.next() else { return };
        if let Some(second) = roots.next() {
            let say = "settings are one document";
            out.push(Diagnostic::new(second.at, "", Code::WrongType, say));
        }
        self.section(root, "", file, out);
    }

    fn section(&mut self, node: &Node, path: &str, file: &str, out: &mut Vec<Diagnostic>) {
        match &node.kind {
            // A section in which every key is commented out.
            NodeKind::Null | NodeKind::Broken => {}
            NodeKind::Map(entries) => {
                for entry in entries {
                    self.entry(entry, path, file, out);
                }
            }
            _ => {
                let say = format!("this is {}, where a map of keys is needed", node.what());
                out.push(Diagnostic::new(node.at, path, Code::WrongType, say));
            }
        }
    }

    fn entry(&mut self, entry: &NodeEntry, path: &str, file: &str, out: &mut Vec<Diagnostic>) {
        let name = match path.is_empty() {
            true => entry.key.to_string(),
            false => format!("{path}.{}", entry.key),
        };
        let inner = format!("{name}.");
        if let Some(key) = SettingsKey::named(&name) {
            self.value(key, &entry.value, file, out);
        } else if KEYS.iter().any(|key| key.name.starts_with(&inner)) {
            self.section(&entry.value, &name, file, out);
        } else {
            let say = format!("there is no key {}", quote(&entry.key));
            let fault = Diagnostic::new(entry.at, quote(&name), Code::UnknownKey, say);
            out.push(fault.allowed(&beside(path), &entry.key));
        }
    }

    fn value(&mut self, key: &SettingsKey, node: &Node, file: &str, out: &mut Vec<Diagnostic>) {
        let text = match &node.kind {
            NodeKind::Text(text) => text.text.to_string(),
            NodeKind::Number(text) => text.to_string(),
            NodeKind::Bool(flag) => flag.to_string(),
            NodeKind::Broken => return,
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => {
                let say = format!("this is {}, where one value is needed", node.what());
                let fault = Diagnostic::new(node.at, key.name, Code::WrongType, say);
                out.push(fault.help("leave the key out for its default"));
                return;
            }
        };
        match wrong(key, &text, node.at) {
            Some(fault) => out.push(fault),
            None => {
                let TextPlace { line, column } = node.at;
                self.set(key, &text, From::File(format!("{file}:{line}:{column}")));
            }
        }
    }

    /// Reads every variable with our prefix.
    pub fn variables(&mut self, all: impl Iterator<Item = (String, String)>) {
        let mut ours: Vec<(String, String)> =
            all.filter(|(name, _)| name.starts_with(PREFIX) && name != FILE).collect();
        ours.sort();
        for (name, text) in ours {
            if let Some(key) = KEYS.iter().find(|key| key.variable == name) {
                match wrong(key, &text, TextPlace::START) {
                    Some(found) => self.faults.push(SettingsFault { from: Some(name), found }),
                    None => self.set(key, &text, From::Variable(key.variable)),
                }
            } else if !is_foreign(&name) {
                let known: Vec<&'static str> = KEYS.iter().map(|key| key.variable).collect();
                let found = Diagnostic::new(
                    TextPlace::START,
                    "",
                    Code::UnknownKey,
                    "there is no such variable",
                );
                let found = few(found.allowed(&known, &name), &name, &known);
                self.faults.push(SettingsFault { from: Some(name), found });
            }
        }
    }

    /// Reads a flag, or `--set key=value`.
    pub fn flag(&mut self, flag: &str, name: &str, text: &str) {
        let from = format!("--{flag}");
        let Some(key) = SettingsKey::named(name) else {
            let known: Vec<&'static str> = KEYS.iter().map(|key| key.name).collect();
            let say = format!("there is no key {}", quote(name));
            let fault = Diagnostic::new(TextPlace::START, "", Code::UnknownKey, say);
            let found = few(fault.allowed(&known, name), name, &known);
            self.faults.push(SettingsFault { from: Some(from), found });
            return;
        };
        match wrong(key, text, TextPlace::START) {
            Some(found) => self.faults.push(SettingsFault { from: Some(from), found }),
            None => self.set(key, text, From::Flag(from)),
        }
    }
}

/// Names the nearest keys instead of all, if none is near enough to be meant.
fn few(fault: Diagnostic, written: &str, known: &[&'static str]) -> Diagnostic {
    const MOST: usize = 3;
    if fault.nearest.is_some() {
        return fault;
    }
    let near = closest(written, known, MOST).join(", ");
    let fault = Diagnostic { allowed: Vec::new(), ..fault };
    fault.help(format!("nearest: {near}; `serve --print-settings` lists all"))
}

/// The keys and sections allowed under this path.
fn beside(path: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let rest = match path.is_empty() {
            true => Some(key.name),
            false => key.name.strip_prefix(path).and_then(|rest| rest.strip_prefix('.')),
        };
        let first = rest.and_then(|rest| rest.split('.').next());
        names.extend(first.filter(|first| !names.contains(first)));
    }
    names
}

fn wrong(key: &SettingsKey, text: &str, at: TextPlace) -> Option<Diagnostic> {
    let wrong = key.check(text).err()?;
    let say = format!("{}: {}", quote(&without_secrets(text)), wrong.say);
    let found = Diagnostic::new(at, key.name, Code::BadValue, say);
    Some(found.allowed(wrong.allowed, text))
}

/// A value in a form safe to show. It may be an address: people put passwords into those, and keys into their queries.
pub(crate) fn without_secrets(text: &str) -> String {
    let (place, query) = text.split_once('?').map_or((text, ""), |(place, _)| (place, "?…"));
    let Some((before, rest)) = place.rsplit_once('@') else { return format!("{place}{query}") };
    let scheme = before.split_once("://").map_or(String::new(), |(name, _)| format!("{name}://"));
    format!("{scheme}…@{rest}{query}")
}
