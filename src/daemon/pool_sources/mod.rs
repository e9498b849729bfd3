//! The pools that exist now, from the last valid content of a folder of files and of documents applied over the API.
//!
//! Never here: a pool that is dropped because a file was invalid, half written or unreadable, or because the folder was
//! missing for a moment. Files are polled, not watched: network mounts lose events, and Kubernetes swaps a symlink far
//! above the watched file. Unchanged files are not read again.
//! If a file and a document declare the same pool or scale set, the earlier one wins. At a start no file was there
//! first, so documents win: what was refused because of a document before the restart stays refused.
//! Begin with [`Folder::search`], which reads the disk; [`Folder::found`] takes the result.

mod applied;
mod claims;
mod file;
mod missing;
mod search;
mod size;
mod spec;
mod walk;

pub use search::{FolderListing, Search};
pub use size::size_line;
pub use spec::{ManagedPoolSpec, PoolSource};
pub use walk::files;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::pool::OutsideNames;
use crate::memory::Document;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};
use applied::AppliedPools;
use claims::{Claim, moved, taken};
use file::{Absence, PoolFile};
use missing::MissingPools;
use search::FileContent;
use spec::shown;

/// Every n-th scan reads all files, even those with unchanged stamps.
// 15: half a minute at the default interval. Stamps are coarse, and some mounts keep none.
const READ_ANYWAY: u64 = 15;

#[derive(Debug, Clone, Default)]
pub struct FolderScan {
    /// New and changed pools.
    pub set: Vec<ManagedPoolSpec>,
    /// Pools that no file or document declares any more.
    pub gone: Vec<PoolName>,
    /// All current faults of all files and documents.
    pub faults: Vec<Diagnostic>,
    /// The faults differ from those of the last scan.
    pub other_faults: bool,
}

#[derive(Debug)]
pub struct Folder {
    /// `None`: there are no files; pools come only over the API.
    path: Option<PathBuf>,
    /// The names in the settings that pools may use.
    outside: OutsideNames,
    missing: MissingPools,
    files: BTreeMap<PathBuf, PoolFile>,
    /// Paths that the last scan could not list or read.
    unread: Vec<Diagnostic>,
    applied: AppliedPools,
    pools: BTreeMap<PoolName, ManagedPoolSpec>,
    faults: Vec<Diagnostic>,
    looks: u64,
    /// The outcome may have changed. Usually it has not, which saves comparing a thousand files at every scan.
    unsettled: bool,
}

impl Folder {
    /// `every`: the interval between scans.
    pub fn new(path: Option<PathBuf>, every: Span) -> Self {
        let (files, unread, applied, pools, faults) = Default::default();
        // Two scans alone may be moments apart if a program requests them, so require this much time as well.
        let missing = MissingPools::new(every.times(2));
        let outside = OutsideNames::default();
        let (looks, unsettled) = (0, true);
        Self { path, outside, missing, files, unread, applied, pools, faults, looks, unsettled }
    }

    /// `outside`: the names in the settings that pools may use; without this, none.
    pub fn with_names(self, outside: OutsideNames) -> Self {
        Self { outside, ..self }
    }

    /// True if pools may be declared in files.
    pub fn has_files(&self) -> bool {
        self.path.is_some()
    }

    pub fn pools(&self) -> impl Iterator<Item = &ManagedPoolSpec> {
        self.pools.values()
    }

    /// Takes all current documents. [`Folder::settled`] resolves them together with the files.
    pub fn take(&mut self, documents: &[Document]) {
        self.unsettled |= self.applied.take(documents, &self.outside);
    }

    /// Stored documents that are not in force, and why.
    pub fn refused(&self) -> impl Iterator<Item = (PoolName, Box<str>)> {
        self.applied.refused()
    }

    /// Called after the first scan of a start with the pools that the store manages without a file or document.
    pub fn compare(&mut self, cared_for: impl IntoIterator<Item = PoolName>) {
        self.unsettled |= self.missing.compare(cared_for, &self.pools);
    }

    /// Pools without a file or document at the start. Only a person releases them.
    pub fn unnamed(&self) -> impl Iterator<Item = &PoolName> {
        self.missing.unnamed()
    }

    /// A person confirms that this pool should go. This has no effect on a pool whose file exists.
    pub fn let_go(&mut self, pool: &PoolName) {
        self.missing.let_go(pool, &mut self.files);
        self.unsettled = true;
    }

    /// The next scan of the disk. Run it where a hung disk blocks nothing else.
    pub fn search(&mut self) -> Search {
        let anyway = self.looks.is_multiple_of(READ_ANYWAY);
        self.looks += 1;
        let read = self.files.iter().filter(|_| !anyway);
        let stamps = read.filter_map(|(path, file)| Some((path.clone(), file.stamp?))).collect();
        Search { folder: self.path.clone(), stamps, ..Search::default() }
    }

    /// Takes the result of a scan. What it could not list or read stays as it was and becomes a fault.
    pub fn found(&mut self, found: FolderListing, now: Time) {
        let mut there = BTreeSet::new();
        for (path, content) in found.files {
            let file = self.files.entry(path.clone()).or_default();
            if let FileContent::Read(stamp, bytes) = content {
                self.unsettled |= file.take(&path, stamp, &bytes, &self.outside);
            }
            there.insert(path);
        }
        for (path, file) in &mut self.files {
            let is_unread = found.unread.iter().any(|(unread, _)| path.starts_with(unread));
            if is_unread {
                file.stamp = None;
            }
            let is_there = is_unread || there.contains(path);
            let missing = (!is_there).then(|| Absence::again(file.missing, now));
            self.unsettled |= missing.is_some() != file.missing.is_some();
            file.missing = missing;
        }
        self.unsettled |= self.missing.release(&mut self.files, now);
        let unread: Vec<_> = found.unread.iter().map(|(path, why)| unread(path, why)).collect();
        self.unsettled |= unread != self.unread;
        self.unread = unread;
    }

    /// What has changed since the last call, by the latest scan.
    pub fn settled(&mut self) -> FolderScan {
        if !self.unsettled {
            return FolderScan { faults: self.faults.clone(), ..FolderScan::default() };
        }
        let mut faults = self.unread.clone();
        faults.extend(self.missing.vanished(&self.files));
        self.settle(&mut faults);
        let pools = self.meant();
        faults.extend(self.missing.absent(&pools, self.path.as_deref()));
        let set = pools.values().filter(|now| self.pools.get(&now.policy.name) != Some(now));
        let set: Vec<ManagedPoolSpec> = set.cloned().collect();
        let gone: Vec<PoolName> =
            self.pools.keys().filter(|name| !pools.contains_key(*name)).cloned().collect();
        self.pools = pools;
        let other_faults = faults != self.faults;
        self.faults.clone_from(&faults);
        // A released claim makes room for another file or document, which takes it at the next scan.
        self.unsettled = other_faults || !set.is_empty() || !gone.is_empty();
        FolderScan { set, gone, faults, other_faults }
    }

    /// If two files declare the same pool or scale set, the current owner keeps it, otherwise the first file wins. A
    /// file with any fault contributes nothing new.
    fn settle(&mut self, faults: &mut Vec<Diagnostic>) {
        let mut order: Vec<PathBuf> = self.files.keys().cloned().collect();
        order.sort_by_key(|path| self.files.get(path).is_none_or(|file| file.good.is_empty()));
        let of_files: Vec<Claim> =
            self.files.iter().flat_map(|(path, file)| file.claims(path)).collect();
        let mut claims = self.applied.settle(&of_files, &self.pools, faults);
        // An invalid file keeps the claims of its last valid content.
        for path in &order {
            let Some(file) = self.files.get(path).filter(|file| !file.faults.is_empty()) else {
                continue;
            };
            claims.extend(file.claims(path));
        }
        for path in &order {
            let Some(file) = self.files.get_mut(path) else { continue };
            if !file.faults.is_empty() {
                faults.extend(file.faults.iter().cloned());
                continue;
            }
            let label = shown(path);
            let mut taken: Vec<Diagnostic> =
                file.read.iter().filter_map(|policy| taken(policy, &label, &claims)).collect();
            taken.extend(file.read.iter().filter_map(|policy| moved(policy, &label, &self.pools)));
            if taken.is_empty() {
                file.good.clone_from(&file.read);
            } else {
                faults.append(&mut taken);
            }
            claims.extend(file.claims(path));
        }
        faults.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    }

    fn meant(&self) -> BTreeMap<PoolName, ManagedPoolSpec> {
        let mut pools = BTreeMap::new();
        for (path, file) in &self.files {
            let source = match file.missing {
                Some(_) => PoolSource::Missing(path.as_path().into()),
                None => PoolSource::File(path.as_path().into()),
            };
            for policy in &file.good {
                let meant = ManagedPoolSpec { policy: Arc::clone(policy), source: source.clone() };
                pools.entry(policy.name.clone()).or_insert(meant);
            }
        }
        for policy in self.applied.in_force() {
            let meant = ManagedPoolSpec { policy: Arc::clone(policy), source: PoolSource::Applied };
            pools.entry(policy.name.clone()).or_insert(meant);
        }
        pools
    }
}

fn unread(path: &Path, error: &io::Error) -> Diagnostic {
    let say = format!("cannot be read: {error}");
    let fault = Diagnostic::new(TextPlace::START, "", Code::Syntax, say)
        .help("its pools go on as they were");
    Diagnostic { file: Some(shown(path)), ..fault }
}

#[cfg(test)]
mod tests;
