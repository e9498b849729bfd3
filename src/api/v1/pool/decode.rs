//! Converts a tree to a policy, or to all that is wrong with it.

use super::keys::POOL;
use super::section::{Section, SectionValue};
use super::works;
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::api::v1::node::{Node, NodeKind};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::{Draft, Policy, PolicyError};

/// Documents of ours that are not pools; listing valid pool keys for them would not help.
const OTHERS: [(&str, &str); 2] = [
    (
        "Snapshot",
        "a snapshot holds its pool under the key pool; plan, explain and simulate read it",
    ),
    ("Plan", "a plan is an answer, and is not read"),
];

/// One pool. `whole`: it is a document of its own and states its version and kind.
pub(super) fn document(root: &Node, whole: bool, out: &mut Vec<Diagnostic>) -> Option<Policy> {
    if let Some(fault) = another(root) {
        out.push(fault);
        return None;
    }
    let before = out.len();
    let value = SectionValue { node: root, path: String::new() };
    let pool = Section::open(value, POOL.known, out)?;
    out.iter_mut().skip(before).for_each(as_in_kubernetes);
    let is_needed = |key: &&str| whole || !["apiVersion", "kind"].contains(key);
    for key in POOL.required.iter().filter(|key| is_needed(key)) {
        POOL.require(&pool, key, out);
    }
    let mut draft = Draft::with_defaults(PoolName::new(""), ScaleSetId::new(""));
    POOL.fill(&pool, &mut draft, out);
    if whole {
        works::cannot_work(root, &draft, out);
    }
    // A refused value still has its default here, so a fault could be about a value that the file does not contain.
    let is_clean = out.len() == before;
    match Policy::build(draft) {
        Ok(policy) => is_clean.then_some(policy),
        Err(faults) => {
            let said = out.get(before..).unwrap_or_default().to_vec();
            let new = faults.iter().filter(|fault| !is_said(fault, &said));
            out.extend(new.map(|fault| contradiction(root, fault)));
            None
        }
    }
}

/// People who know Kubernetes write these two, and no key of ours resembles what they mean.
fn as_in_kubernetes(fault: &mut Diagnostic) {
    if fault.code == Code::UnknownKey && matches!(&*fault.key, "metadata" | "spec") {
        "pool files have no metadata and spec".clone_into(&mut fault.message);
        fault.help = Some("put name and scaleSet at the top".to_owned());
        (fault.allowed, fault.nearest) = (Vec::new(), None);
    }
}

/// The fault of a document of another kind.
fn another(root: &Node) -> Option<Diagnostic> {
    let kind = root.entry("kind")?;
    let NodeKind::Text(text) = &kind.value.kind else { return None };
    let (name, help) = OTHERS.into_iter().find(|(name, _)| *name == &*text.text)?;
    let say = format!("this is a {name}, where a Pool is needed");
    Some(Diagnostic::new(kind.value.at, "kind", Code::WrongVersion, say).help(help))
}

fn is_said(fault: &PolicyError, said: &[Diagnostic]) -> bool {
    let parent = fault.key.rsplit_once('.').map_or("", |(parent, _)| parent);
    said.iter().any(|found| found.key == fault.key || (!parent.is_empty() && found.key == parent))
}

/// A fault of the policy, placed at the key it names or at its nearest parent in the file.
fn contradiction(root: &Node, fault: &PolicyError) -> Diagnostic {
    let mut at = root;
    for part in fault.key.split('.') {
        match at.entry(part) {
            Some(entry) => at = &entry.value,
            None => break,
        }
    }
    Diagnostic::new(at.at, fault.key, Code::Contradiction, &*fault.say)
}
