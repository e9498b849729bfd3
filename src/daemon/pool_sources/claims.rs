//! Claims of pool names and scale sets: each has one owner.

use std::collections::BTreeMap;

use super::spec::{ManagedPoolSpec, PoolSource, shown};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Policy;

/// A claimed pool name and scale set, and the claimant.
#[derive(Debug)]
pub(super) struct Claim {
    name: String,
    set: ScaleSetId,
    by: PoolSource,
}

impl Claim {
    pub fn of(policy: &Policy, by: PoolSource) -> Self {
        Self { name: lower(policy.name.as_str()), set: policy.scale_set.clone(), by }
    }
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// A fault if another file or document has the pool's name or scale set. `label` names what is refused.
pub(super) fn taken(policy: &Policy, label: &str, claims: &[Claim]) -> Option<Diagnostic> {
    let (name, set) = (lower(policy.name.as_str()), &policy.scale_set);
    let other = claims.iter().find(|claim| claim.name == name || claim.set == *set)?;
    let (key, what) = if other.name == name { ("name", "name") } else { ("scaleSet", "scale set") };
    let place = match &other.by {
        PoolSource::File(path) | PoolSource::Missing(path) => format!("in {}", shown(path)),
        PoolSource::Applied => "applied over the API".to_owned(),
    };
    let say = format!("pool {}: another pool has this {what}, {place}", policy.name);
    let fault = Diagnostic::new(TextPlace::START, key, Code::DuplicatePool, say);
    let fault = fault.help("the one that was there first goes on; nothing of this one is taken in");
    Some(Diagnostic { file: Some(label.to_owned()), ..fault })
}

/// A fault if the pool's scale set changed: the pool's records belong to its scale set.
pub(super) fn moved(
    policy: &Policy,
    label: &str,
    pools: &BTreeMap<PoolName, ManagedPoolSpec>,
) -> Option<Diagnostic> {
    let known = pools.get(&policy.name)?;
    if known.policy.scale_set == policy.scale_set {
        return None;
    }
    let say = format!("pool {} has another scale set, and goes on with it", policy.name);
    let fault = Diagnostic::new(TextPlace::START, "scaleSet", Code::Contradiction, say);
    let fault = fault.help("give the pool of another scale set another name");
    Some(Diagnostic { file: Some(label.to_owned()), ..fault })
}
