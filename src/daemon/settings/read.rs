//! Reads values from a file, the environment and flags, each with its source; reports all faults at once.

use std::collections::BTreeMap;
use std::fmt;

use super::keys::{FILE, KEYS, PREFIX, SettingsKey, is_foreign};
use super::sections::Section;
use super::values;
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace, closest, quote};
use crate::api::v1::node::{self, Node, NodeEntry, NodeKind};
use crate::model::vocabulary::Vocabulary;

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

/// Values by key, in the order of a table.
pub(super) type KeyValues = Vec<(&'static SettingsKey, Option<(String, From)>)>;

fn defaults(keys: &'static [SettingsKey]) -> KeyValues {
    let value = |key: &'static SettingsKey| {
        let default = Some(key.default).filter(|text| !text.is_empty());
        (key, default.map(|text| (text.to_owned(), From::Default)))
    };
    keys.iter().map(value).collect()
}

/// The values of an entry that has a name.
#[derive(Debug, Clone)]
pub(super) struct NamedValues {
    pub values: KeyValues,
    /// Where it is named first.
    pub from: From,
}

impl NamedValues {
    pub fn text(&self, key: &SettingsKey) -> Option<&str> {
        let of = |(known, _): &&(&'static SettingsKey, _)| known.name == key.name;
        self.values.iter().find(of)?.1.as_ref().map(|(text, _)| text.as_str())
    }
}

/// All entries that have names, by their section.
pub(super) type NamedEntries = BTreeMap<(Section, Box<str>), NamedValues>;

/// The keys of a part of the file: those of the daemon, or those of an entry that has a name.
#[derive(Debug, Clone, Copy)]
struct KeyGroup<'a> {
    keys: &'static [SettingsKey],
    entry: Option<(Section, &'a str)>,
}

impl<'a> KeyGroup<'a> {
    const DAEMON: KeyGroup<'static> = KeyGroup { keys: KEYS, entry: None };

    fn of_entry(section: Section, name: &'a str) -> Self {
        Self { keys: section.keys(), entry: Some((section, name)) }
    }

    fn named(self, name: &str) -> Option<&'static SettingsKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The path of a key from the root of the file.
    fn path(self, name: &str) -> String {
        match self.entry {
            None => name.to_owned(),
            Some((section, entry)) if name.is_empty() => format!("{}.{entry}", section.name()),
            Some((section, entry)) => format!("{}.{entry}.{name}", section.name()),
        }
    }

    /// The keys and sections allowed under this path.
    fn beside(self, path: &str) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for key in self.keys {
            let rest = match path.is_empty() {
                true => Some(key.name),
                false => key.name.strip_prefix(path).and_then(|rest| rest.strip_prefix('.')),
            };
            let first = rest.and_then(|rest| rest.split('.').next());
            names.extend(first.filter(|first| !names.contains(first)));
        }
        if path.is_empty() && self.entry.is_none() {
            names.extend(Section::ALL.map(Section::name));
        }
        names
    }
}

/// Sources with lower precedence are read first.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    pub values: KeyValues,
    pub named: NamedEntries,
    pub faults: Vec<SettingsFault>,
}

impl Layers {
    pub fn defaults() -> Self {
        Self { values: defaults(KEYS), named: BTreeMap::new(), faults: Vec::new() }
    }

    fn set(&mut self, group: KeyGroup<'_>, key: &SettingsKey, text: &str, from: From) {
        let values = match group.entry {
            None => &mut self.values,
            Some((section, name)) => &mut self.named(section, name, from.clone()).values,
        };
        if let Some((_, value)) = values.iter_mut().find(|(known, _)| known.name == key.name) {
            *value = Some((text.to_owned(), from));
        }
    }

    fn named(&mut self, section: Section, name: &str, from: From) -> &mut NamedValues {
        let new = || NamedValues { values: defaults(section.keys()), from };
        self.named.entry((section, name.into())).or_insert_with(new)
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
        self.section(KeyGroup::DAEMON, root, "", file, out);
    }

    fn section(
        &mut self,
        group: KeyGroup<'_>,
        node: &Node,
        path: &str,
        file: &str,
        out: &mut Vec<Diagnostic>,
    ) {
        for entry in entries(node, &group.path(path), out) {
            self.entry(group, entry, path, file, out);
        }
    }

    fn entry(
        &mut self,
        group: KeyGroup<'_>,
        entry: &NodeEntry,
        path: &str,
        file: &str,
        out: &mut Vec<Diagnostic>,
    ) {
        let name = match path.is_empty() {
            true => entry.key.to_string(),
            false => format!("{path}.{}", entry.key),
        };
        let inner = format!("{name}.");
        if let Some(key) = group.named(&name) {
            self.value(group, key, &entry.value, file, out);
        } else if group.keys.iter().any(|key| key.name.starts_with(&inner)) {
            self.section(group, &entry.value, &name, file, out);
        } else if let (None, Some(section)) = (group.entry, Section::parse(&name)) {
            self.entries(section, &entry.value, file, out);
        } else {
            let say = format!("there is no key {}", quote(&entry.key));
            let path_of = quote(&group.path(&name));
            let fault = Diagnostic::new(entry.at, path_of, Code::UnknownKey, say);
            out.push(fault.allowed(&group.beside(path), &entry.key));
        }
    }

    fn entries(&mut self, section: Section, node: &Node, file: &str, out: &mut Vec<Diagnostic>) {
        for NodeEntry { key: name, at, value } in entries(node, section.name(), out) {
            if !is_entry_name(name) {
                let say = format!("{} is no name of {}", quote(name), section.an_entry());
                let fault = Diagnostic::new(*at, section.name(), Code::BadValue, say);
                out.push(fault.help(ENTRY_NAMES));
                continue;
            }
            self.named(section, name, From::File(format!("{file}:{}:{}", at.line, at.column)));
            self.section(KeyGroup::of_entry(section, name), value, "", file, out);
        }
    }

    fn value(
        &mut self,
        group: KeyGroup<'_>,
        key: &SettingsKey,
        node: &Node,
        file: &str,
        out: &mut Vec<Diagnostic>,
    ) {
        let text = match &node.kind {
            NodeKind::Broken => return,
            _ if key.kind.is_composite() => {
                match values::of_node(key.kind, node, &group.path(key.name)) {
                    Ok(line) => line,
                    Err(faults) => return out.extend(faults),
                }
            }
            NodeKind::Text(text) => text.text.to_string(),
            NodeKind::Number(text) => text.to_string(),
            NodeKind::Bool(flag) => flag.to_string(),
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => {
                let say = format!("this is {}, where one value is needed", node.what());
                let fault = Diagnostic::new(node.at, group.path(key.name), Code::WrongType, say);
                out.push(fault.help("leave the key out for its default"));
                return;
            }
        };
        match wrong(group, key, &text, node.at) {
            Some(fault) => out.push(fault),
            None => {
                let TextPlace { line, column } = node.at;
                self.set(group, key, &text, From::File(format!("{file}:{line}:{column}")));
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
                let group = KeyGroup::DAEMON;
                match wrong(group, key, &text, TextPlace::START) {
                    Some(found) => self.faults.push(SettingsFault { from: Some(name), found }),
                    None => self.set(group, key, &text, From::Variable(key.variable)),
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
        let of_entry = name.split_once('.').and_then(|(section, rest)| {
            let (entry, key) = rest.split_once('.')?;
            Some((Section::parse(section)?, entry, key))
        });
        let (group, key) = match of_entry {
            Some((section, entry, key)) if is_entry_name(entry) => {
                (KeyGroup::of_entry(section, entry), key)
            }
            _ => (KeyGroup::DAEMON, name),
        };
        let Some(key) = group.named(key) else {
            let known: Vec<&'static str> = group.keys.iter().map(|key| key.name).collect();
            let say = format!("there is no key {}", quote(name));
            let fault = Diagnostic::new(TextPlace::START, "", Code::UnknownKey, say);
            let found = few(fault.allowed(&known, key), key, &known);
            self.faults.push(SettingsFault { from: Some(from), found });
            return;
        };
        let faults = match key.kind.is_composite() {
            true => match values::of_text(key.kind, text, &group.path(key.name)) {
                Ok(line) => return self.set(group, key, &line, From::Flag(from)),
                Err(faults) => faults,
            },
            false => match wrong(group, key, text, TextPlace::START) {
                Some(fault) => vec![fault],
                None => return self.set(group, key, text, From::Flag(from)),
            },
        };
        let fault = |found| SettingsFault { from: Some(from.clone()), found };
        self.faults.extend(faults.into_iter().map(fault));
    }
}

/// A name that `--set` and a pool file can say.
fn is_entry_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// As long as other names in pool files.
const LONGEST_NAME: usize = 63;
const ENTRY_NAMES: &str = "use at most 63 letters, digits, - and _";

/// The entries of a section. A section in which every key is commented out has none.
fn entries<'n>(node: &'n Node, path: &str, out: &mut Vec<Diagnostic>) -> &'n [NodeEntry] {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => &[],
        NodeKind::Map(entries) => entries,
        _ => {
            let say = format!("this is {}, where a map of keys is needed", node.what());
            out.push(Diagnostic::new(node.at, path, Code::WrongType, say));
            &[]
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

fn wrong(group: KeyGroup<'_>, key: &SettingsKey, text: &str, at: TextPlace) -> Option<Diagnostic> {
    let wrong = key.check(text).err()?;
    let say = format!("{}: {}", quote(&values::safe_if_wrong(key.kind, text)), wrong.say);
    let found = Diagnostic::new(at, group.path(key.name), Code::BadValue, say);
    Some(found.allowed(wrong.allowed, text))
}
