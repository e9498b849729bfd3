//! Reads a map key by key: notes every fault and continues, so that one read reports them all.

use serde_json::Value;

use super::flow::flow;
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::{Node, NodeEntry, NodeKind, join};

/// One value, or what is wrong with it.
pub(super) type SectionResult<T> = Result<T, Box<Diagnostic>>;

/// A map whose keys are all known.
pub(super) struct Section<'n> {
    value: SectionValue<'n>,
}

/// A value under its path.
#[derive(Clone)]
pub(super) struct SectionValue<'n> {
    pub node: &'n Node,
    pub path: String,
}

impl<'n> Section<'n> {
    /// Notes every key that is not known. `None`: not a map.
    pub fn open(
        value: SectionValue<'n>,
        known: &[&'static str],
        out: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let NodeKind::Map(entries) = &value.node.kind else {
            if value.node.kind != NodeKind::Broken {
                out.push(value.wrong_type("a map of keys").allowed(known, ""));
            }
            return None;
        };
        for NodeEntry { key, at, .. } in entries {
            if !known.contains(&&**key) {
                let say = format!("there is no key {}", quote(key));
                let path = join(&value.path, &quote(key));
                out.push(Diagnostic::new(*at, path, Code::UnknownKey, say).allowed(known, key));
            }
        }
        Some(Self { value })
    }

    /// The value of a key, unless it is absent, null or already refused.
    pub fn get(&self, key: &str) -> Option<SectionValue<'n>> {
        let node = &self.value.node.entry(key)?.value;
        let is_given = !matches!(node.kind, NodeKind::Null | NodeKind::Broken);
        is_given.then(|| SectionValue { node, path: join(&self.value.path, key) })
    }

    /// Notes that a key is missing, and what to add.
    pub fn require(&self, key: &str, example: Option<fn() -> Value>, out: &mut Vec<Diagnostic>) {
        let entry = self.value.node.entry(key);
        if entry.is_none_or(|entry| entry.value.kind == NodeKind::Null) {
            let at = entry.map_or(self.value.node.at, |entry| entry.at);
            let (path, say) = (join(&self.value.path, key), format!("{key} is missing"));
            let help = example.map(|example| format!("add `{key}: {}`", flow(&example())));
            let fault = Diagnostic::new(at, path, Code::MissingKey, say);
            out.push(Diagnostic { help, ..fault });
        }
    }

    /// A fault of a key, at its value or else at its map.
    pub fn fault(&self, key: &str, code: Code, say: impl Into<String>) -> Diagnostic {
        let at = self.value.node.entry(key).map_or(self.value.node.at, |entry| entry.value.at);
        Diagnostic::new(at, join(&self.value.path, key), code, say)
    }

    pub fn has(&self, key: &str) -> bool {
        self.value.node.entry(key).is_some()
    }
}

impl SectionValue<'_> {
    /// The n-th value of this list.
    pub fn item<'n>(&self, n: usize, node: &'n Node) -> SectionValue<'n> {
        SectionValue { node, path: format!("{}[{n}]", self.path) }
    }

    pub fn wrong_type(&self, wanted: &str) -> Box<Diagnostic> {
        let say = format!("{wanted} is needed here, not {}", self.node.what());
        Box::new(Diagnostic::new(self.node.at, self.path.as_str(), Code::WrongType, say))
    }

    pub fn bad(&self, say: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(self.node.at, self.path.as_str(), Code::BadValue, say))
    }

    pub fn word(&self, wanted: &str) -> SectionResult<&str> {
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

    /// Explicitly `off`.
    pub fn is_off(&self) -> bool {
        matches!(&self.node.kind, NodeKind::Text(text) if &*text.text == "off")
    }
}
