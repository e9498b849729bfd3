//! The pool file: how people describe a pool, in YAML or as JSON.
//!
//! Never here: a default of its own (they are the policy's), or half a pool: a document is valid, or all its faults are
//! named. Begin with [`PoolDocuments::read`].

mod autoscaler;
mod decode;
mod drain;
mod flow;
mod form;
mod gates;
mod keys;
mod node_drain;
mod notifications;
mod outside_names;
mod reference;
mod replicas;
mod rollout;
mod scalar;
mod section;
mod table;
mod value_form;
mod windows;
mod words;
mod works;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

pub use self::flow::flow;
use self::keys::POOL;
pub use self::outside_names::OutsideNames;
pub(super) use self::reference::document_schema;
pub use self::reference::{KeyPath, file_schema, find_key, key_paths, keys};
pub use self::value_form::{KeyReference, ValueForm};
use super::diagnostic::{Code, Diagnostic, TextPlace, quote};
use super::node::{self, Node, NodeKind, Root};
use crate::model::ids::ScaleSetId;
use crate::model::policy::Policy;

/// Most faults reported for one text; after these are fixed, the next read reports the others.
const MAX_DIAGNOSTICS: usize = 200;

/// Reads pool files and remembers the pools it saw, so that it finds duplicates.
#[derive(Debug, Default)]
pub struct PoolDocuments {
    /// Where each name occurs first, for people.
    names: BTreeMap<String, String>,
    scale_sets: BTreeMap<String, String>,
    /// `None`: the settings of the daemon are not known here.
    outside: Option<OutsideNames>,
}

impl PoolDocuments {
    /// Refuses pools that use any other name of the settings.
    pub fn with_names(outside: &OutsideNames) -> Self {
        Self { outside: Some(outside.clone()), ..Self::default() }
    }

    /// Like [`PoolDocuments::read`], from the bytes of a file, which may not be text.
    pub fn read_bytes(
        &mut self,
        bytes: &[u8],
        file: Option<&str>,
    ) -> (Vec<Policy>, Vec<Diagnostic>) {
        match node::text(bytes) {
            Ok(text) => self.read(text, file),
            Err(fault) => {
                let mut out = vec![*fault];
                finish(&mut out, file);
                (Vec::new(), out)
            }
        }
    }

    /// Like [`PoolDocuments::read_bytes`], for a file that must hold pools: one without is incomplete or truncated.
    pub fn read_file(&mut self, bytes: &[u8], file: &str) -> (Vec<Policy>, Vec<Diagnostic>) {
        let (policies, mut faults) = self.read_bytes(bytes, Some(file));
        if policies.is_empty() && faults.is_empty() {
            let fault =
                Diagnostic::new(TextPlace::START, "", Code::Empty, "there is no pool in it");
            faults.push(fault.help("write one, or delete the file to stop managing its pools"));
            finish(&mut faults, Some(file));
        }
        (policies, faults)
    }

    /// Reads every document of a text. Returns the policies of the valid documents; a caller that wants all or nothing
    /// checks the diagnostics.
    pub fn read(&mut self, text: &str, file: Option<&str>) -> (Vec<Policy>, Vec<Diagnostic>) {
        let read = node::read(text);
        let (mut policies, mut out) = (Vec::new(), read.diagnostics);
        for Root { node, sound } in
            read.roots.iter().filter(|root| root.node.kind != NodeKind::Null)
        {
            let before = out.len();
            let found = decode::document(node, true, &mut out);
            if let Some(outside) = &self.outside {
                outside.check(node, &mut out);
            }
            self.note(node, file, &mut out);
            policies.extend(found.filter(|_| *sound && out.len() == before));
        }
        finish(&mut out, file);
        (policies, out)
    }

    /// Remembers the pool of a document; reports its name or scale set if taken: once for each, however many repeat it.
    fn note(&mut self, root: &Node, file: Option<&str>, out: &mut Vec<Diagnostic>) {
        let text = |key| match root.entry(key).map(|entry| (&entry.value.kind, entry.value.at)) {
            Some((NodeKind::Text(text), at)) => Some((text.text.to_ascii_lowercase(), at)),
            _ => None,
        };
        let one = |(text, at)| (ScaleSetId::new(text).as_str().to_owned(), at);
        let (name, scale_set) = (text("name"), text("scaleSet").map(one));
        for (key, what, mine, seen) in [
            ("name", "name", &name, &self.names),
            ("scaleSet", "scale set", &scale_set, &self.scale_sets),
        ] {
            let Some((mine, at)) = mine else { continue };
            if let Some(place) = seen.get(mine) {
                let say = format!("another pool has this {what}, {place}");
                let help = "letters count the same in upper and lower case";
                out.push(Diagnostic::new(*at, key, Code::DuplicatePool, say).help(help));
            }
        }
        let place = match file {
            Some(file) => format!("in {} on line {}", quote(file), root.at.line),
            None => format!("on line {}", root.at.line),
        };
        if let (Some((name, _)), Some((scale_set, _))) = (name, scale_set) {
            self.names.entry(name).or_insert_with(|| place.clone());
            self.scale_sets.entry(scale_set).or_insert(place);
        }
    }
}

/// Reads the one pool inside another document; version and kind may be omitted there.
pub fn read_inside(text: &str) -> Result<Policy, Vec<Diagnostic>> {
    let read = node::read(text);
    let mut out = read.diagnostics;
    let policy = match read.roots.as_slice() {
        [root] if out.is_empty() => decode::document(&root.node, false, &mut out),
        _ => None,
    };
    match policy {
        Some(policy) if out.is_empty() => Ok(policy),
        _ => {
            if out.is_empty() {
                let say = "one pool is needed here";
                out.push(Diagnostic::new(TextPlace::START, "", Code::WrongType, say));
            }
            finish(&mut out, None);
            Err(out)
        }
    }
}

/// The pool document of a policy, on one line, with every key written out. Reading it gives the same policy.
pub fn to_json(policy: &Policy) -> String {
    // Serializing to a string fails only for maps with keys that are not text; there are none here.
    serde_json::to_string(&POOL.pairs(policy)).unwrap_or_default()
}

/// The same JSON without escapes that YAML does not support: surrogate halves of characters beyond the first 65,536.
pub(super) fn plain_json(raw: &str) -> Cow<'_, str> {
    let has_halves = ["\\ud", "\\uD"].iter().any(|escape| raw.contains(escape));
    let plain = has_halves.then(|| serde_json::from_str::<Value>(raw).ok()).flatten();
    plain.map_or(Cow::Borrowed(raw), |value| Cow::Owned(value.to_string()))
}

fn finish(out: &mut Vec<Diagnostic>, file: Option<&str>) {
    out.sort_by_key(|found| (found.line, found.column));
    out.truncate(MAX_DIAGNOSTICS);
    for found in out {
        found.file = file.map(str::to_owned);
    }
}
