//! Pools that clients applied over the API, read from their documents in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::claims::{Claim, moved, taken};
use super::spec::{ManagedPoolSpec, PoolSource};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::pool::{OutsideNames, PoolDocuments};
use crate::memory::Document;
use crate::model::ids::PoolName;
use crate::model::policy::Policy;

/// A document, parsed once.
#[derive(Debug)]
struct AppliedPool {
    revision: u64,
    read: Result<Arc<Policy>, Vec<Diagnostic>>,
    /// The last valid policy of the pool.
    good: Option<Arc<Policy>>,
    /// Why the current document is not in force.
    refused: Option<Box<str>>,
}

#[derive(Debug, Default)]
pub(super) struct AppliedPools(BTreeMap<PoolName, AppliedPool>);

impl AppliedPools {
    /// Takes all current documents. Returns true if any changed.
    pub fn take(&mut self, documents: &[Document], outside: &OutsideNames) -> bool {
        let there: BTreeSet<&PoolName> = documents.iter().map(|document| &document.pool).collect();
        let known = self.0.len();
        self.0.retain(|name, _| there.contains(name));
        let mut changed = self.0.len() != known;
        for document in documents {
            let before = self.0.get(&document.pool);
            if before.is_some_and(|known| known.revision == document.revision) {
                continue;
            }
            changed = true;
            let good = before.and_then(|known| known.good.clone());
            let read = read(document, outside).map(|policy| match &good {
                // Keep the old `Arc` if nothing changed, so that the pool does not look new.
                Some(known) if **known == policy => Arc::clone(known),
                _ => Arc::new(policy),
            });
            let (revision, refused) = (document.revision, None);
            let applied = AppliedPool { revision, read, good, refused };
            self.0.insert(document.pool.clone(), applied);
        }
        changed
    }

    pub fn refused(&self) -> impl Iterator<Item = (PoolName, Box<str>)> {
        let all = self.0.iter();
        all.filter_map(|(name, applied)| Some((name.clone(), applied.refused.clone()?)))
    }

    pub fn in_force(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.0.values().filter_map(|applied| applied.good.as_ref())
    }

    /// Claims of the documents. Documents come before new claims of files.
    pub fn settle(
        &mut self,
        of_files: &[Claim],
        pools: &BTreeMap<PoolName, ManagedPoolSpec>,
        faults: &mut Vec<Diagnostic>,
    ) -> Vec<Claim> {
        let claim = |policy: &Arc<Policy>| Claim::of(policy, PoolSource::Applied);
        let mut claims: Vec<Claim> = self.in_force().map(claim).collect();
        for (name, applied) in &mut self.0 {
            let label = format!("document of {name}");
            let policy = match &applied.read {
                Ok(policy) => policy,
                Err(wrong) => {
                    faults.extend(wrong.iter().cloned());
                    applied.refused = wrong.first().map(|fault| fault.to_string().into());
                    continue;
                }
            };
            let fault = match &applied.good {
                Some(_) => moved(policy, &label, pools),
                None => taken(policy, &label, of_files).or_else(|| taken(policy, &label, &claims)),
            };
            applied.refused = fault.as_ref().map(|fault| fault.to_string().into());
            match fault {
                Some(fault) => faults.push(fault),
                None => {
                    if applied.good.is_none() {
                        claims.push(claim(policy));
                    }
                    applied.good = Some(Arc::clone(policy));
                }
            }
        }
        claims
    }
}

/// The API server that accepted the document parsed it too, but that may have been another release of Poolkeeper.
fn read(document: &Document, outside: &OutsideNames) -> Result<Policy, Vec<Diagnostic>> {
    let label = format!("document of {}", document.pool);
    let mut documents = PoolDocuments::with_names(outside);
    let (mut policies, faults) = documents.read(&document.text, Some(&label));
    if !faults.is_empty() {
        return Err(faults);
    }
    match policies.pop() {
        Some(policy) if policies.is_empty() && policy.name == document.pool => Ok(policy),
        _ => {
            let say = "it is not of this one pool";
            let fault = Diagnostic::new(TextPlace::START, "name", Code::BadValue, say);
            Err(vec![Diagnostic { file: Some(label), ..fault }])
        }
    }
}
