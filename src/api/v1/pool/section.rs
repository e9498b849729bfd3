//! Reads a map key by key: notes every fault and continues, so that one read reports them all.

use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace, quote};
use crate::api::v1::node::{Node, NodeEntry, NodeKind, join};
use crate::model::calendar::{Cron, ScheduleZone, ZoneError};
use crate::model::quantity::Quantity;
use crate::model::time::Span;

/// One value, or what is wrong with it.
pub(super) type SectionResult<T> = Result<T, Box<Diagnostic>>;

/// A key whose feature does not exist yet, and the message for it.
pub(super) type Later = (&'static str, &'static str);

/// A map whose keys are all known.
pub(super) struct Section<'n> {
    node: &'n Node,
    path: String,
}

/// A value under its path.
pub(super) struct SectionValue<'n> {
    pub node: &'n Node,
    pub path: String,
}

impl<'n> Section<'n> {
    /// Notes every key that is neither known nor planned. `None`: not a map.
    pub fn open(
        node: &'n Node,
        path: String,
        keys: &[&'static str],
        later: &[Later],
        out: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let NodeKind::Map(entries) = &node.kind else {
            if node.kind != NodeKind::Broken {
                let fault = SectionValue { node, path }.wrong_type("a map of keys");
                out.push(fault.allowed(keys, ""));
            }
            return None;
        };
        for NodeEntry { key, at, .. } in entries {
            let path = || join(&path, &quote(key));
            if let Some((_, say)) = later.iter().find(|(name, _)| **name == **key) {
                out.push(Diagnostic::new(*at, path(), Code::NotBuilt, *say).help("leave it out"));
            } else if !keys.contains(&&**key) {
                let say = format!("there is no key {}", quote(key));
                out.push(Diagnostic::new(*at, path(), Code::UnknownKey, say).allowed(keys, key));
            }
        }
        Some(Self { node, path })
    }

    /// The value of a key, unless it is absent, null or already refused.
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        let value = &self.node.entry(key)?.value;
        (!matches!(value.kind, NodeKind::Null | NodeKind::Broken)).then_some(value)
    }

    /// Reads a key that may be absent.
    pub fn read<T>(
        &self,
        key: &str,
        out: &mut Vec<Diagnostic>,
        read: impl FnOnce(&SectionValue<'n>) -> SectionResult<T>,
    ) -> Option<T> {
        let node = self.get(key)?;
        match read(&SectionValue { node, path: self.path_of(key) }) {
            Ok(value) => Some(value),
            Err(fault) => {
                out.push(*fault);
                None
            }
        }
    }

    /// Reads a required key.
    pub fn require<T>(
        &self,
        key: &str,
        out: &mut Vec<Diagnostic>,
        read: impl FnOnce(&SectionValue<'n>) -> SectionResult<T>,
    ) -> Option<T> {
        let entry = self.node.entry(key);
        if entry.is_none_or(|entry| entry.value.kind == NodeKind::Null) {
            let at = entry.map_or(self.node.at, |entry| entry.at);
            let say = format!("{key} is missing");
            out.push(Diagnostic::new(at, self.path_of(key), Code::MissingKey, say));
        }
        self.read(key, out, read)
    }

    /// Reads a key over its default.
    pub fn set<T>(
        &self,
        slot: &mut T,
        key: &str,
        out: &mut Vec<Diagnostic>,
        read: impl FnOnce(&SectionValue<'n>) -> SectionResult<T>,
    ) {
        if let Some(value) = self.read(key, out, read) {
            *slot = value;
        }
    }

    /// A map below this one.
    pub fn section(
        &self,
        key: &str,
        keys: &[&'static str],
        later: &[Later],
        out: &mut Vec<Diagnostic>,
    ) -> Option<Section<'n>> {
        Section::open(self.get(key)?, self.path_of(key), keys, later, out)
    }

    /// The maps of a list below this one.
    pub fn sections(
        &self,
        key: &str,
        keys: &[&'static str],
        out: &mut Vec<Diagnostic>,
    ) -> Vec<Section<'n>> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let path = self.path_of(key);
        let NodeKind::List(items) = &node.kind else {
            out.push(*SectionValue { node, path }.wrong_type("a list of maps"));
            return Vec::new();
        };
        let each = items.iter().enumerate();
        each.filter_map(|(n, item)| Section::open(item, format!("{path}[{n}]"), keys, &[], out))
            .collect()
    }

    pub fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Where a key's value is written, or else where its map is.
    pub fn place(&self, key: &str) -> TextPlace {
        self.node.entry(key).map_or(self.node.at, |entry| entry.value.at)
    }

    pub fn has(&self, key: &str) -> bool {
        self.node.entry(key).is_some()
    }
}

impl SectionValue<'_> {
    pub fn wrong_type(&self, wanted: &str) -> Box<Diagnostic> {
        let say = format!("{wanted} is needed here, not {}", self.node.what());
        Box::new(Diagnostic::new(self.node.at, self.path.as_str(), Code::WrongType, say))
    }

    pub fn bad(&self, say: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(self.node.at, self.path.as_str(), Code::BadValue, say))
    }

    fn word(&self, wanted: &str) -> SectionResult<&str> {
        match &self.node.kind {
            NodeKind::Text(text) => Ok(&text.text),
            NodeKind::Number(_) | NodeKind::Bool(_) => {
                Err(Box::new(self.wrong_type(wanted).help("put it in quotes")))
            }
            _ => Err(self.wrong_type(wanted)),
        }
    }

    /// Text of one line.
    pub fn text(&self, longest: usize) -> SectionResult<&str> {
        let text = self.word("text")?;
        let fault = if text.trim().is_empty() {
            "must not be empty".to_owned()
        } else if text.chars().any(char::is_control) {
            "must be one line of plain text".to_owned()
        } else if text.len() > longest {
            format!("must be at most {longest} bytes long, not {}", text.len())
        } else {
            return Ok(text);
        };
        Err(self.bad(fault))
    }

    pub fn flag(&self) -> SectionResult<bool> {
        match &self.node.kind {
            NodeKind::Bool(is) => Ok(*is),
            NodeKind::Text(text) => {
                let near = if ["on", "yes", "y"].contains(&&*text.text) { "true" } else { "" };
                let fault = self.wrong_type("true or false");
                Err(Box::new(fault.allowed(&["true", "false"], near)))
            }
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// One of a few words.
    pub fn one_of<T: Copy>(&self, of: &[(&'static str, T)]) -> SectionResult<T> {
        let names: Vec<&'static str> = of.iter().map(|(name, _)| *name).collect();
        let wanted = "one of a few words";
        let word = self.word(wanted).map_err(|fault| Box::new(fault.allowed(&names, "")))?;
        let found = of.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let fault = self.bad(format!("{} is not one of its values", quote(word)));
            Box::new(fault.allowed(&names, word))
        })
    }

    /// Explicitly `off`.
    pub fn is_off(&self) -> bool {
        matches!(&self.node.kind, NodeKind::Text(text) if &*text.text == "off")
    }

    pub fn duration(&self) -> SectionResult<Span> {
        const HELP: &str = "write it like 90s, 20m, 1h30m or 30d";
        match &self.node.kind {
            NodeKind::Text(text) => Span::parse(&text.text).map_err(|_| {
                let fault = self.bad(format!("{} is not a duration", quote(&text.text)));
                Box::new(fault.help(HELP))
            }),
            NodeKind::Number(text) => {
                let fault = self.bad(format!("{} has no unit", quote(text)));
                Err(Box::new(fault.help(HELP)))
            }
            _ => Err(Box::new(self.wrong_type("a duration").help(HELP))),
        }
    }

    pub fn integer(&self, least: u32, most: u32) -> SectionResult<u32> {
        let NodeKind::Number(text) = &self.node.kind else {
            let fault = self.wrong_type("a whole number");
            let digits =
                matches!(&self.node.kind, NodeKind::Text(t) if t.text.parse::<u32>().is_ok());
            let help = digits.then(|| "leave out the quotes".to_owned());
            return Err(Box::new(Diagnostic { help, ..*fault }));
        };
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|n| is_plain && (least..=most).contains(n));
        let say = || format!("{} is not a whole number from {least} to {most}", quote(text));
        number.ok_or_else(|| self.bad(say()))
    }

    /// A whole number, or a percent of D as text.
    pub fn quantity(&self) -> SectionResult<Quantity> {
        let text = match &self.node.kind {
            NodeKind::Number(text) => text,
            NodeKind::Text(text) if text.text.ends_with('%') => &text.text,
            NodeKind::Text(text) => {
                let say = format!("{} is neither a whole number nor a percent", quote(&text.text));
                let digits = text.text.bytes().all(|byte| byte.is_ascii_digit());
                let help = if digits { "leave out the quotes" } else { "write it like 3 or 10%" };
                return Err(Box::new(self.bad(say).help(help)));
            }
            _ => {
                let fault = self.wrong_type("a whole number or a percent");
                return Err(Box::new(fault.help("write it like 3 or 10%")));
            }
        };
        Quantity::parse(text).map_err(|error| self.bad(format!("{}: {error}", quote(text))))
    }

    /// A percent from 0 to 100, written with its sign.
    pub fn percent(&self) -> SectionResult<u32> {
        const HELP: &str = "write it like 40%";
        let text = self.word("a percent").map_err(|fault| Box::new(fault.help(HELP)))?;
        let digits = text.strip_suffix('%').filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok()).filter(|n| *n <= 100);
        number.ok_or_else(|| {
            let fault = self.bad(format!("{} is not a percent from 0% to 100%", quote(text)));
            Box::new(fault.help(HELP))
        })
    }

    pub fn cron(&self) -> SectionResult<Cron> {
        Cron::parse(self.word("a cron pattern")?).map_err(|error| self.bad(error.to_string()))
    }

    pub fn zone(&self) -> SectionResult<ScheduleZone> {
        ScheduleZone::get(self.word("a time zone")?).map_err(|error| {
            let fault = self.bad(error.to_string());
            match error {
                ZoneError::Unknown { nearest, .. } => Box::new(Diagnostic { nearest, ..*fault }),
                ZoneError::NotAName => fault,
            }
        })
    }

    /// A list of texts.
    pub fn texts(&self, longest: usize) -> SectionResult<Vec<Box<str>>> {
        let NodeKind::List(items) = &self.node.kind else {
            return Err(self.wrong_type("a list of texts"));
        };
        let each = items.iter().enumerate().map(|(n, node)| {
            let path = format!("{}[{n}]", self.path);
            SectionValue { node, path }.text(longest).map(Into::into)
        });
        each.collect()
    }
}
