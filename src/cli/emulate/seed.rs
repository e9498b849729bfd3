//! The initial resources: a seed file, parsed like every other input file, and the scale sets of pool files.

use std::path::Path;

use serde_json::{Map, Number, Value, json};

use crate::api::v1::diagnostic::{Code, TextPlace};
use crate::api::v1::node::{self, MAX_BYTES, Node, NodeKind};
use crate::api::v1::pool::PoolDocuments;
use crate::api::v1::problem::DocumentProblem;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::source::SnapshotSource;
use crate::emulator::{Seed, SetSeed};
use crate::model::policy::{Owner, Policy};

/// The seed without a seed file: an example scale set.
pub(super) fn example() -> Seed {
    let web = serde_json::from_value(json!({ "name": "web", "zones": ["1", "2", "3"] }));
    Seed { scale_sets: web.into_iter().collect(), ..Seed::default() }
}

pub(super) fn read(path: &Path, shell: &Shell) -> Result<Seed, CommandFailure> {
    let source = SnapshotSource::new(path);
    let bytes = source.read(shell, MAX_BYTES)?;
    parse(&bytes).map_err(|problem| CommandFailure::bad_input(problem, source.file().as_deref()))
}

fn parse(bytes: &[u8]) -> Result<Seed, DocumentProblem> {
    let text = node::text(bytes).map_err(|fault| problem_of(&[*fault]))?;
    let documents = node::read(text);
    if !documents.diagnostics.is_empty() {
        return Err(problem_of(&documents.diagnostics));
    }
    let mut roots = documents.roots.iter().map(|root| &root.node);
    let root = roots.find(|node| node.kind != NodeKind::Null);
    let Some(root) = root else { return Ok(Seed::default()) };
    if let Some(second) = roots.find(|node| node.kind != NodeKind::Null) {
        let say = "a seed file is one document";
        return Err(DocumentProblem::new(second.at, "", Code::Syntax, say));
    }
    serde_path_to_error::deserialize(value(root)).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        DocumentProblem::new(
            place(root, &field),
            field,
            Code::BadValue,
            error.into_inner().to_string(),
        )
        .help("`poolkeeper help emulate` shows a seed file with its keys")
    })
}

fn problem_of(found: &[crate::api::v1::diagnostic::Diagnostic]) -> DocumentProblem {
    DocumentProblem::of(found).unwrap_or_else(|| {
        DocumentProblem::new(TextPlace::START, "", Code::Syntax, "this cannot be understood")
    })
}

fn value(node: &Node) -> Value {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => Value::Null,
        NodeKind::Bool(flag) => Value::Bool(*flag),
        NodeKind::Number(text) => {
            text.parse::<Number>().map_or_else(|_| json!(&**text), Value::Number)
        }
        NodeKind::Text(text) => Value::String(text.text.to_string()),
        NodeKind::List(items) => items.iter().map(value).collect(),
        NodeKind::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.to_string(), value(&entry.value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// The place of a path such as `scaleSets[1].name`, or of its nearest ancestor that exists.
fn place(root: &Node, field: &str) -> TextPlace {
    let (mut node, mut at) = (root, root.at);
    for part in field.split(['.', '[']).filter(|part| !part.is_empty()) {
        let next = match (&node.kind, part.trim_end_matches(']').parse::<usize>()) {
            (NodeKind::List(items), Ok(n)) => items.get(n).map(|item| (item, item.at)),
            _ => node.entry(part).map(|entry| (&entry.value, entry.at)),
        };
        let Some((inner, there)) = next else { break };
        (node, at) = (inner, there);
    }
    at
}

pub(super) fn of_pools(path: &Path, shell: &Shell) -> Result<Vec<SetSeed>, CommandFailure> {
    let source = SnapshotSource::new(path);
    let bytes = source.read(shell, MAX_BYTES)?;
    let (policies, found) = PoolDocuments::default().read_bytes(&bytes, None);
    if let Some(problem) = DocumentProblem::of(&found) {
        return Err(CommandFailure::bad_input(problem, source.file().as_deref()));
    }
    policies.iter().map(|policy| set_of(policy, &source)).collect()
}

/// The number of VMs of a pool whose file leaves the size to the scale set.
const SOME: u32 = 3;

fn set_of(policy: &Policy, source: &SnapshotSource) -> Result<SetSeed, CommandFailure> {
    let parts: Vec<&str> = policy.scale_set.as_str().split('/').collect();
    let named = match parts.as_slice() {
        ["", _, subscription, _, group, _, _, _, name] => Some((*subscription, *group, *name)),
        _ => None,
    };
    let id = policy.scale_set.as_str();
    let unknown = || {
        let say = format!("{}: {id} is no id of a scale set", source.name());
        CommandFailure::new(Exit::Input, "badValue", say)
    };
    let (subscription, group, name) = named.ok_or_else(unknown)?;
    let capacity = if policy.owner == Owner::ScaleSet { SOME } else { policy.least_count() };
    let seed = json!({ "name": name, "subscription": subscription, "resourceGroup": group,
        "capacity": capacity });
    serde_json::from_value(seed).map_err(|_| unknown())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(text: &str) -> (u32, u32, String) {
        let problem = parse(text.as_bytes()).unwrap_err();
        (problem.line, problem.column, format!("{}: {}", problem.field, problem.message))
    }

    #[test]
    fn a_seed_is_read_from_yaml_and_from_json() {
        let yaml = parse(b"location: westus\nscaleSets:\n  - {name: a, zones: ['1'], resource: {tags: {x: y}}}\n");
        let json = parse(br#"{"location":"westus","scaleSets":[{"name":"a","zones":["1"],"resource":{"tags":{"x":"y"}}}]}"#);
        assert_eq!(format!("{:?}", yaml.unwrap()), format!("{:?}", json.unwrap()));
        assert!(parse(b"").unwrap().scale_sets.is_empty());
        assert_eq!(example().scale_sets.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let (line, column, say) = fails("scaleSets:\n  - name: a\n    capcity: 3\n");
        assert_eq!((line, column), (3, 5), "{say}");
        assert!(say.starts_with("scaleSets[0].capcity: unknown field `capcity`"), "{say}");
        let (line, _, say) = fails("settings:\n  pageSize: many\n");
        assert!(line == 2 && say.contains("pageSize"), "{say}");
        assert_eq!(fails("a: b\n---\nc: d\n").0, 3);
        assert!(fails("a: [").2.starts_with("a[0]: while parsing"));
    }
}
