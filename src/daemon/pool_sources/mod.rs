//! The pools that exist now, from the last valid content of a folder of files and of documents applied over the API.
//!
//! Never here: a pool that is dropped because a file was invalid, half written or unreadable, or because the folder was
//! missing for a moment. Files are polled, not watched: network mounts lose events, and Kubernetes swaps a symlink far
//! above the watched file. Unchanged files are not read again.
//! If a file and a document declare the same pool or scale set, the earlier one wins. At a start no file was there
//! first, so documents win: what was refused because of a document before the restart stays refused.
//! Begin with [`Folder::search`], which reads the disk; [`Folder::found`] takes the result.

mod applied;
mod missing;
mod search;
mod walk;

pub use search::{FolderListing, Search};
pub use walk::files;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};
use crate::api::v1::pool::PoolDocuments;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};
use applied::AppliedPools;
use missing::Absence;
use search::{FileContent, FileStamp};

/// Every n-th scan reads all files, even those with unchanged stamps.
// 15: half a minute at the default interval. Stamps are coarse, and some mounts keep none.
const READ_ANYWAY: u64 = 15;

/// The origin of a pool's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolSource {
    File(Arc<Path>),
    /// A file that no longer exists.
    Missing(Arc<Path>),
    /// A document applied over the API.
    Applied,
}

impl fmt::Display for PoolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolSource::File(path) | PoolSource::Missing(path) => f.write_str(&shown(path)),
            PoolSource::Applied => f.write_str("the API"),
        }
    }
}

/// A pool's policy and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedPoolSpec {
    pub policy: Arc<Policy>,
    pub source: PoolSource,
}

/// Result of one scan.
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

/// A file as read, and its policies.
#[derive(Debug, Default)]
struct File {
    stamp: Option<FileStamp>,
    hash: Option<u64>,
    missing: Option<Absence>,
    /// Current content: the pools of a valid file, or its faults.
    read: Vec<Arc<Policy>>,
    faults: Vec<Diagnostic>,
    /// Pools of its last valid content.
    good: Vec<Arc<Policy>>,
}

#[derive(Debug)]
pub struct Folder {
    /// `None`: there are no files; pools come only over the API.
    path: Option<PathBuf>,
    /// Minimum time that a file must be missing before its pools are released.
    patience: Span,
    /// Pools that vanished together with too many others and wait for a person.
    vanished: BTreeSet<PoolName>,
    /// Pools that the store manages but no file or document declared at the start. They wait for a person.
    unnamed: BTreeSet<PoolName>,
    files: BTreeMap<PathBuf, File>,
    /// Paths that the last scan could not list or read.
    unread: Vec<Diagnostic>,
    applied: BTreeMap<PoolName, AppliedPools>,
    pools: BTreeMap<PoolName, ManagedPoolSpec>,
    faults: Vec<Diagnostic>,
    looks: u64,
    /// The outcome may have changed. Usually it has not, which saves comparing a thousand files at every scan.
    unsettled: bool,
}

/// A claimed pool name and scale set, and the claimant.
#[derive(Debug)]
struct Claim {
    name: String,
    set: ScaleSetId,
    by: PoolSource,
}

impl Folder {
    /// `every`: the interval between scans.
    pub fn new(path: Option<PathBuf>, every: Span) -> Self {
        let (files, unread, applied, pools, faults) = Default::default();
        // Two scans alone may be moments apart if a program requests them, so require this much time as well.
        let (patience, vanished, unnamed) = (every.times(2), BTreeSet::new(), BTreeSet::new());
        Self {
            path,
            patience,
            vanished,
            unnamed,
            files,
            unread,
            applied,
            pools,
            faults,
            looks: 0,
            unsettled: true,
        }
    }

    /// True if pools may be declared in files.
    pub fn has_files(&self) -> bool {
        self.path.is_some()
    }

    /// Current pools.
    pub fn pools(&self) -> impl Iterator<Item = &ManagedPoolSpec> {
        self.pools.values()
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
                self.unsettled |= file.take(&path, stamp, &bytes);
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
        self.release_missing(now);
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
        faults.extend(self.vanished());
        self.settle(&mut faults);
        let pools = self.meant();
        faults.extend(self.absent(&pools));
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
        let mut claims = self.settle_applied(faults);
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
        for (name, applied) in &self.applied {
            let Some(policy) = &applied.good else { continue };
            let meant = ManagedPoolSpec { policy: Arc::clone(policy), source: PoolSource::Applied };
            pools.entry(name.clone()).or_insert(meant);
        }
        pools
    }
}

impl File {
    /// Claims of its last valid content.
    fn claims(&self, path: &Path) -> impl Iterator<Item = Claim> {
        let by = PoolSource::File(path.into());
        self.good.iter().map(move |policy| claim(policy, by.clone()))
    }

    /// Takes the current content. Returns true if it changed.
    fn take(&mut self, path: &Path, stamp: FileStamp, bytes: &[u8]) -> bool {
        self.stamp = Some(stamp);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = Some(hasher.finish());
        if self.hash == hash {
            return false;
        }
        self.hash = hash;
        let name = shown(path);
        let (policies, faults) = PoolDocuments::default().read_file(bytes, &name);
        // Keep the old `Arc` if nothing changed, so that the pool does not look new.
        let keep = |policy: Policy| {
            let same = self.good.iter().find(|known| ***known == policy);
            same.cloned().unwrap_or_else(|| Arc::new(policy))
        };
        self.read = policies.into_iter().map(keep).collect();
        self.faults = faults;
        true
    }
}

fn claim(policy: &Policy, by: PoolSource) -> Claim {
    Claim { name: lower(policy.name.as_str()), set: policy.scale_set.clone(), by }
}

/// A path as one line of text: escape control characters that a terminal or a log would interpret.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(plain).collect()
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// A fault if another file or document has the pool's name or scale set. `label` names what is refused.
fn taken(policy: &Policy, label: &str, claims: &[Claim]) -> Option<Diagnostic> {
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
fn moved(
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

fn unread(path: &Path, error: &io::Error) -> Diagnostic {
    let say = format!("cannot be read: {error}");
    let fault = Diagnostic::new(TextPlace::START, "", Code::Syntax, say)
        .help("its pools go on as they were");
    Diagnostic { file: Some(shown(path)), ..fault }
}

#[cfg(test)]
mod tests;
