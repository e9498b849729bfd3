//! Pools that clients applied over the API, read from their documents in the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Claim, Folder, PoolSource, claim, moved, taken};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::pool::PoolDocuments;
use crate::memory::Document;
use crate::model::ids::PoolName;
use crate::model::policy::Policy;

/// A document, parsed once.
#[derive(Debug)]
pub(super) struct AppliedPools {
    revision: u64,
    read: Result<Arc<Policy>, Vec<Diagnostic>>,
    /// The last valid policy of the pool.
    pub good: Option<Arc<Policy>>,
    /// Why the current document is not in force.
    pub refused: Option<Box<str>>,
}

impl Folder {
    /// Takes all current documents. `Folder::settled` resolves them together with the files.
    pub fn take(&mut self, documents: &[Document]) {
        let there: BTreeSet<&PoolName> = documents.iter().map(|document| &document.pool).collect();
        let known = self.applied.len();
        self.applied.retain(|name, _| there.contains(name));
        self.unsettled |= self.applied.len() != known;
        for document in documents {
            let before = self.applied.get(&document.pool);
            if before.is_some_and(|known| known.revision == document.revision) {
                continue;
            }
            self.unsettled = true;
            let good = before.and_then(|known| known.good.clone());
            let read = read(document).map(|policy| match &good {
                // Keep the old `Arc` if nothing changed, so that the pool does not look new.
                Some(known) if **known == policy => Arc::clone(known),
                _ => Arc::new(policy),
            });
            let (revision, refused) = (document.revision, None);
            let applied = AppliedPools { revision, read, good, refused };
            self.applied.insert(document.pool.clone(), applied);
        }
    }

    /// Stored documents that are not in force, and why.
    pub fn refused(&self) -> impl Iterator<Item = (PoolName, Box<str>)> {
        let all = self.applied.iter();
        all.filter_map(|(name, applied)| Some((name.clone(), applied.refused.clone()?)))
    }

    /// Claims of the documents. Documents come before new claims of files.
    pub(super) fn settle_applied(&mut self, faults: &mut Vec<Diagnostic>) -> Vec<Claim> {
        let had = self.applied.values().filter_map(|applied| applied.good.as_deref());
        let mut claims: Vec<Claim> = had.map(|policy| claim(policy, PoolSource::Applied)).collect();
        let of_files: Vec<Claim> =
            self.files.iter().flat_map(|(path, file)| file.claims(path)).collect();
        for (name, applied) in &mut self.applied {
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
                Some(_) => moved(policy, &label, &self.pools),
                None => taken(policy, &label, &of_files).or_else(|| taken(policy, &label, &claims)),
            };
            applied.refused = fault.as_ref().map(|fault| fault.to_string().into());
            match fault {
                Some(fault) => faults.push(fault),
                None => {
                    if applied.good.is_none() {
                        claims.push(claim(policy, PoolSource::Applied));
                    }
                    applied.good = Some(Arc::clone(policy));
                }
            }
        }
        claims
    }
}

/// The API server that accepted the document parsed it too, but that may have been another release of Poolkeeper.
fn read(document: &Document) -> Result<Policy, Vec<Diagnostic>> {
    let label = format!("document of {}", document.pool);
    let (mut policies, faults) = PoolDocuments::default().read(&document.text, Some(&label));
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
