//! What pools there are now: by the last good word of a folder of files, and of documents that were applied over the API.
//!
//! Never here: a pool that is forgotten because a file was bad, half written or unreadable, or because its folder was not
//! there for a moment. Files are looked at again and again instead of watched: an event is lost on a network mount, and
//! a cluster swaps a link far above the file that was watched. What did not change is not read again.
//! Of a file and a document that name one pool or one scale set the one that was there first has it. At the start no file
//! was there first: documents go before them, as they went before whatever was refused for them.
//! Begin with [`Folder::search`], which asks the disk; [`Folder::found`] takes in what it says.

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

use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::api::v1::node::Place;
use crate::api::v1::pool::Pools;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::Policy;
use crate::model::time::{Span, Time};
use applied::Applied;
use missing::Absence;
use search::{FileContent, FileStamp};

/// Files whose stamps did not change are read all the same at each so-manieth look.
// 15: half a minute at the usual pace. Stamps are coarse, and some mounts keep none.
const READ_ANYWAY: u64 = 15;

/// Who says how a pool is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(Arc<Path>),
    /// A file that is not there any more.
    Missing(Arc<Path>),
    /// A document that was applied over the API.
    Applied,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) | Source::Missing(path) => f.write_str(&shown(path)),
            Source::Applied => f.write_str("the API"),
        }
    }
}

/// A pool, and who says how it is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Meant {
    pub policy: Arc<Policy>,
    pub source: Source,
}

/// What one look came to.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    /// Pools that are new, or to be otherwise than they were.
    pub set: Vec<Meant>,
    /// Pools that nothing names any more.
    pub gone: Vec<PoolName>,
    /// Everything that is wrong now, of all files and documents.
    pub faults: Vec<Diagnostic>,
    /// The faults are others than at the last look.
    pub other_faults: bool,
}

/// What was read of a file, and what it means.
#[derive(Debug, Default)]
struct File {
    stamp: Option<FileStamp>,
    hash: Option<u64>,
    missing: Option<Absence>,
    /// As it is now: the pools of a sound file, or what is wrong with it.
    read: Vec<Arc<Policy>>,
    faults: Vec<Diagnostic>,
    /// By its last good word.
    good: Vec<Arc<Policy>>,
}

#[derive(Debug)]
pub struct Folder {
    /// `None`: there are no files, pools come over the API alone.
    path: Option<PathBuf>,
    /// The pools of a file that stays away for less are not released.
    patience: Span,
    /// Pools that went together with too many others, and wait for a person.
    vanished: BTreeSet<PoolName>,
    /// Pools in the care of the store that nothing named at the start, and that wait for a person.
    unnamed: BTreeSet<PoolName>,
    files: BTreeMap<PathBuf, File>,
    /// What could not be listed or read at the last look.
    unread: Vec<Diagnostic>,
    applied: BTreeMap<PoolName, Applied>,
    pools: BTreeMap<PoolName, Meant>,
    faults: Vec<Diagnostic>,
    looks: u64,
    /// What is said may come to something else than it did: mostly it does not, and a thousand files need not be weighed
    /// against each other at every look.
    unsettled: bool,
}

/// What is taken already: a name, a scale set, and by whom.
#[derive(Debug)]
struct Claim {
    name: String,
    set: ScaleSetId,
    by: Source,
}

impl Folder {
    /// `every`: how often it is looked at.
    pub fn new(path: Option<PathBuf>, every: Span) -> Self {
        let (files, unread, applied, pools, faults) = Default::default();
        // Two looks may be two moments, where a program asks for them.
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

    /// Pools may be written in files.
    pub fn has_files(&self) -> bool {
        self.path.is_some()
    }

    /// Pools as they are meant now.
    pub fn pools(&self) -> impl Iterator<Item = &Meant> {
        self.pools.values()
    }

    /// The next look at the disk, to be made where a disk that hangs stops nothing else.
    pub fn search(&mut self) -> Search {
        let anyway = self.looks.is_multiple_of(READ_ANYWAY);
        self.looks += 1;
        let read = self.files.iter().filter(|_| !anyway);
        let stamps = read.filter_map(|(path, file)| Some((path.clone(), file.stamp?))).collect();
        Search { folder: self.path.clone(), stamps, ..Search::default() }
    }

    /// What a look at the disk found. What could not be listed or read stays as it was, and is a fault.
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

    /// What is otherwise than it was, by the files as they were seen last.
    pub fn settled(&mut self) -> Looked {
        if !self.unsettled {
            return Looked { faults: self.faults.clone(), ..Looked::default() };
        }
        let mut faults = self.unread.clone();
        faults.extend(self.vanished());
        self.settle(&mut faults);
        let pools = self.meant();
        faults.extend(self.absent(&pools));
        let set = pools.values().filter(|now| self.pools.get(&now.policy.name) != Some(now));
        let set: Vec<Meant> = set.cloned().collect();
        let gone: Vec<PoolName> =
            self.pools.keys().filter(|name| !pools.contains_key(*name)).cloned().collect();
        self.pools = pools;
        let other_faults = faults != self.faults;
        self.faults.clone_from(&faults);
        // Who gave something up made room for another, who takes it at the next look.
        self.unsettled = other_faults || !set.is_empty() || !gone.is_empty();
        Looked { set, gone, faults, other_faults }
    }

    /// Of two files that name one pool, or one scale set, the one that had it keeps it, and else the first. A file with any
    /// fault says nothing new.
    fn settle(&mut self, faults: &mut Vec<Diagnostic>) {
        let mut order: Vec<PathBuf> = self.files.keys().cloned().collect();
        order.sort_by_key(|path| self.files.get(path).is_none_or(|file| file.good.is_empty()));
        let mut claims = self.settle_applied(faults);
        // What a bad file said before is still claimed by it.
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

    fn meant(&self) -> BTreeMap<PoolName, Meant> {
        let mut pools = BTreeMap::new();
        for (path, file) in &self.files {
            let source = match file.missing {
                Some(_) => Source::Missing(path.as_path().into()),
                None => Source::File(path.as_path().into()),
            };
            for policy in &file.good {
                let meant = Meant { policy: Arc::clone(policy), source: source.clone() };
                pools.entry(policy.name.clone()).or_insert(meant);
            }
        }
        for (name, applied) in &self.applied {
            let Some(policy) = &applied.good else { continue };
            let meant = Meant { policy: Arc::clone(policy), source: Source::Applied };
            pools.entry(name.clone()).or_insert(meant);
        }
        pools
    }
}

impl File {
    /// By its last good word.
    fn claims(&self, path: &Path) -> impl Iterator<Item = Claim> {
        let by = Source::File(path.into());
        self.good.iter().map(move |policy| claim(policy, by.clone()))
    }

    /// What stands in it now. True: it is otherwise than before.
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
        let (policies, faults) = Pools::default().read_file(bytes, &name);
        // Kept where nothing changed, so that nobody takes it for new.
        let keep = |policy: Policy| {
            let same = self.good.iter().find(|known| ***known == policy);
            same.cloned().unwrap_or_else(|| Arc::new(policy))
        };
        self.read = policies.into_iter().map(keep).collect();
        self.faults = faults;
        true
    }
}

fn claim(policy: &Policy, by: Source) -> Claim {
    Claim { name: lower(policy.name.as_str()), set: policy.scale_set.clone(), by }
}

/// A path as text of one line: a name may hold what a terminal or a log would take for its own.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(plain).collect()
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// Another file or document has its name, or its scale set. `label` says what is refused.
fn taken(policy: &Policy, label: &str, claims: &[Claim]) -> Option<Diagnostic> {
    let (name, set) = (lower(policy.name.as_str()), &policy.scale_set);
    let other = claims.iter().find(|claim| claim.name == name || claim.set == *set)?;
    let (key, what) = if other.name == name { ("name", "name") } else { ("scaleSet", "scale set") };
    let place = match &other.by {
        Source::File(path) | Source::Missing(path) => format!("in {}", shown(path)),
        Source::Applied => "applied over the API".to_owned(),
    };
    let say = format!("pool {}: another pool has this {what}, {place}", policy.name);
    let fault = Diagnostic::new(Place::START, key, Code::DuplicatePool, say);
    let fault = fault.help("the one that was there first goes on; nothing of this one is taken in");
    Some(Diagnostic { file: Some(label.to_owned()), ..fault })
}

/// What is remembered of a pool is remembered of its scale set.
fn moved(policy: &Policy, label: &str, pools: &BTreeMap<PoolName, Meant>) -> Option<Diagnostic> {
    let known = pools.get(&policy.name)?;
    if known.policy.scale_set == policy.scale_set {
        return None;
    }
    let say = format!("pool {} has another scale set, and goes on with it", policy.name);
    let fault = Diagnostic::new(Place::START, "scaleSet", Code::Contradiction, say);
    let fault = fault.help("give the pool of another scale set another name");
    Some(Diagnostic { file: Some(label.to_owned()), ..fault })
}

fn unread(path: &Path, error: &io::Error) -> Diagnostic {
    let say = format!("cannot be read: {error}");
    let fault =
        Diagnostic::new(Place::START, "", Code::Syntax, say).help("its pools go on as they were");
    Diagnostic { file: Some(shown(path)), ..fault }
}

#[cfg(test)]
mod tests;
