//! Missing pool files, and when to release their pools.
//!
//! An editor that deletes and rewrites a file makes it disappear for a moment; a lost mount takes many files at once.
//! Neither is a request to stop managing pools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::file::PoolFile;
use super::spec::{ManagedPoolSpec, PoolSource, shown};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::model::ids::PoolName;
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};

/// From this number on, pools that vanish together may need a person.
// 2: a person removes one file; two of two may be a lost mount.
const AT_ONCE: usize = 2;

type PoolFiles = BTreeMap<PathBuf, PoolFile>;

/// Pools whose files are gone and that wait for a person.
#[derive(Debug)]
pub(super) struct MissingPools {
    /// Minimum time that a file must be missing before its pools are released.
    patience: Span,
    /// Pools that vanished together with too many others.
    vanished: BTreeSet<PoolName>,
    /// Pools that the store manages but no file or document declared at the start.
    unnamed: BTreeSet<PoolName>,
}

impl MissingPools {
    pub fn new(patience: Span) -> Self {
        Self { patience, vanished: BTreeSet::new(), unnamed: BTreeSet::new() }
    }

    /// Releases the pools of files that stay missing, unless half of all pools vanished with them. Returns true if
    /// anything changed.
    pub fn release(&mut self, files: &mut PoolFiles, now: Time) -> bool {
        let lost = lost(files);
        let all: usize = files.values().map(|file| file.good.len()).sum();
        let too_many = too_many(lost.len(), all);
        let known = files.len();
        files.retain(|_, file| {
            let is_over = file.missing.is_some_and(|missing| missing.is_over(now, self.patience));
            let is_kept = too_many && file.good.iter().any(|policy| lost.contains(&policy.name));
            !is_over || is_kept
        });
        let kept = if too_many { lost } else { BTreeSet::new() };
        let changed = files.len() != known || self.vanished != kept;
        self.vanished = kept;
        changed
    }

    /// Called after the first scan of a start with the pools that the store manages without a file or document. If
    /// these are half of all pools or more, the folder may be the wrong one: a person must confirm that they should go.
    pub fn compare(
        &mut self,
        cared_for: impl IntoIterator<Item = PoolName>,
        pools: &BTreeMap<PoolName, ManagedPoolSpec>,
    ) -> bool {
        let has_none = |name: &PoolName| !pools.contains_key(name);
        let lost: BTreeSet<PoolName> = cared_for.into_iter().filter(has_none).collect();
        let of_files = |meant: &&ManagedPoolSpec| matches!(meant.source, PoolSource::File(_));
        let all = lost.len() + pools.values().filter(of_files).count();
        let too_many = too_many(lost.len(), all);
        if too_many {
            self.unnamed = lost;
        }
        too_many
    }

    pub fn unnamed(&self) -> impl Iterator<Item = &PoolName> {
        self.unnamed.iter()
    }

    /// Faults for pools that had neither file nor document at the start, and still have neither.
    pub fn absent(
        &mut self,
        there: &BTreeMap<PoolName, ManagedPoolSpec>,
        folder: Option<&Path>,
    ) -> Vec<Diagnostic> {
        self.unnamed.retain(|name| !there.contains_key(name));
        self.unnamed.iter().map(|name| unnamed(name, folder)).collect()
    }

    pub fn let_go(&mut self, pool: &PoolName, files: &mut PoolFiles) {
        for file in files.values_mut().filter(|file| file.missing.is_some()) {
            for policies in [&mut file.good, &mut file.read] {
                policies.retain(|policy| policy.name != *pool);
            }
        }
        self.vanished.remove(pool);
        self.unnamed.remove(pool);
    }

    /// Faults for missing files whose pools a person must release.
    pub fn vanished(&self, files: &PoolFiles) -> impl Iterator<Item = Diagnostic> {
        let missing = files.iter().filter(|(_, file)| {
            file.missing.is_some()
                && file.good.iter().any(|policy| self.vanished.contains(&policy.name))
        });
        missing.map(|(path, _)| vanished(path, self.vanished.len()))
    }
}

/// Pools that only missing files declare. A pool that moved to another file is not lost.
fn lost(files: &PoolFiles) -> BTreeSet<PoolName> {
    let (gone, there): (Vec<&PoolFile>, Vec<&PoolFile>) =
        files.values().partition(|file| file.missing.is_some());
    let same = |a: &Policy, b: &Policy| a.name == b.name && a.scale_set == b.scale_set;
    let moved = |policy: &Policy| {
        there
            .iter()
            .any(|file| file.faults.is_empty() && file.read.iter().any(|other| same(other, policy)))
    };
    let pools = gone.iter().flat_map(|file| &file.good).filter(|policy| !moved(policy));
    pools.map(|policy| policy.name.clone()).collect()
}

fn too_many(lost: usize, all: usize) -> bool {
    lost >= AT_ONCE && lost * 2 >= all
}

fn unnamed(pool: &PoolName, folder: Option<&Path>) -> Diagnostic {
    let say = format!(
        "the store manages pool {pool}, which had no file at the start: nothing is done to it"
    );
    let fault = Diagnostic::new(TextPlace::START, "", Code::Vanished, say);
    let help =
        format!("put its file back, or run `poolkeeper unmanage {pool}` if it is meant to go");
    Diagnostic { file: folder.map(shown), ..fault.help(help) }
}

fn vanished(path: &Path, lost: usize) -> Diagnostic {
    let say = format!("the file is gone, and {lost} pools went at once: they go on as they were");
    let fault = Diagnostic::new(TextPlace::START, "", Code::Vanished, say);
    let fault = fault
        .help("put the files back, or run `poolkeeper unmanage` for each pool that is meant to go");
    Diagnostic { file: Some(shown(path)), ..fault }
}
