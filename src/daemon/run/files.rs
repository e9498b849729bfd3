//! Scans pool files and documents periodically, and at once on request.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::looker::Looker;
use super::stop::Stopping;
use crate::api::v1::diagnostic::Diagnostic;
use crate::daemon::board::{Board, FilesStatus};
use crate::daemon::clock::MonotonicClock;
use crate::daemon::notify::ServiceNotify;
use crate::daemon::pool_sources::{Folder, FolderListing, ManagedPoolSpec};
use crate::memory::{ApiStore, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// Retry delay if the store does not return the documents.
const TRIES_AGAIN: Span = Span::seconds(1);

/// Declared pools, and the faults of their files and documents.
#[derive(Debug, Clone, Default)]
pub(in crate::daemon) struct PoolSet {
    pub specs: Arc<[ManagedPoolSpec]>,
    pub faults: Arc<[Diagnostic]>,
    /// Counts the changes of pools.
    pub changes: u64,
    /// Stored documents that are not in force, and why.
    pub refused: Arc<[(PoolName, Box<str>)]>,
    /// Pools that the store manages, that nothing declared at the start, and that no person has released.
    pub unnamed: Arc<[PoolName]>,
    /// The first scan has finished.
    pub scanned: bool,
}

/// A request to read the documents again, with a reply when that is done.
#[derive(Debug)]
pub(in crate::daemon) struct FileScan {
    /// A pool without its file that a person wants to release.
    pub let_go: Option<PoolName>,
    pub done: oneshot::Sender<()>,
}

pub(super) struct Files<S, C> {
    pub folder: Folder,
    pub store: Arc<S>,
    pub every: Span,
    pub clock: C,
    pub ask: Arc<Notify>,
    pub look: mpsc::Receiver<FileScan>,
    pub tell: Arc<watch::Sender<PoolSet>>,
    pub manager: Arc<ServiceNotify>,
    pub board: Arc<Board>,
    pub stopping: Stopping,
}

/// Reason for a scan.
enum Why {
    Time,
    Asked,
    Documents(FileScan),
}

impl<S: Store + ApiStore + Send + Sync + 'static, C: MonotonicClock> Files<S, C> {
    /// Returns after the first scan and keeps scanning in the background. False: stopped before the first scan ended.
    pub async fn begin(self) -> bool {
        let Self { folder, store, every, clock, ask, mut look, tell, manager, board, stopping } =
            self;
        let mut disk =
            Disk { looker: Looker::default(), has_files: folder.has_files(), board, clock };
        let (folder, clock) = (Arc::new(Mutex::new(folder)), disk.clock.clone());
        let stop = stopping.clone();
        let first = tokio::select! {
            biased;
            () = stopping.stopped() => return false,
            first = first(&folder, &*store, &mut disk) => first,
        };
        tell.send_replace(first);
        tokio::spawn(async move {
            loop {
                let next = clock.now().plus(every);
                let why = tokio::select! {
                    () = stop.stopped() => return,
                    () = clock.sleep_until(next) => Why::Time,
                    () = ask.notified() => Why::Asked,
                    Some(look) = look.recv() => Why::Documents(look),
                };
                if matches!(why, Why::Asked) {
                    manager.reloading();
                }
                take(&folder, &*store, Which::All).await;
                if let Why::Documents(FileScan { let_go: Some(pool), .. }) = &why {
                    folder.lock().unwrap_or_else(PoisonError::into_inner).let_go(pool);
                }
                let before = tell.borrow().clone();
                // Documents do not cause a scan of files: the scans that find a file missing must be at separate times.
                let found = match why {
                    Why::Documents(_) => None,
                    Why::Time | Why::Asked => disk.look(&folder).await,
                };
                let now = looked(&folder, &before, found).await;
                let (pools, faults) = (now.specs.len(), now.faults.len());
                let same =
                    now.changes == before.changes && Arc::ptr_eq(&now.faults, &before.faults);
                tell.send_if_modified(|pools| {
                    *pools = now;
                    !same
                });
                match why {
                    Why::Time => {}
                    Why::Asked => {
                        manager.ready(&format!("{pools} pools"));
                        tracing::info!(pools, faults, "pool files were reloaded on request");
                    }
                    // The requester may be gone.
                    Why::Documents(FileScan { done, .. }) => drop(done.send(())),
                }
            }
        });
        true
    }
}

/// Pools at a start.
async fn first<S, C>(folder: &Arc<Mutex<Folder>>, store: &S, disk: &mut Disk<C>) -> PoolSet
where
    S: Store + ApiStore,
    C: MonotonicClock,
{
    let clock = disk.clock.clone();
    // Documents come first: otherwise a file could claim what a document has.
    while !take(folder, store, Which::Managed).await {
        clock.sleep_until(clock.now().plus(TRIES_AGAIN)).await;
    }
    let found = disk.first_look(folder).await;
    let managed = looked(folder, &PoolSet::default(), Some(found)).await;
    take(folder, store, Which::All).await;
    let all = looked(folder, &managed, None).await;
    if !disk.has_files {
        return all;
    }
    let cared_for = loop {
        match cared_for(store, &all.specs).await {
            Ok(pools) => break pools,
            Err(error) => tracing::error!("the store does not name its pools: {error}"),
        }
        clock.sleep_until(clock.now().plus(TRIES_AGAIN)).await;
    };
    folder.lock().unwrap_or_else(PoisonError::into_inner).compare(cared_for);
    looked(folder, &all, None).await
}

/// The disk with the pool files, and its state on the board.
struct Disk<C> {
    looker: Looker,
    has_files: bool,
    board: Arc<Board>,
    clock: C,
}

impl<C: MonotonicClock> Disk<C> {
    /// `None`: the disk does not answer now.
    async fn look(&mut self, folder: &Mutex<Folder>) -> Option<(FolderListing, Time)> {
        let found = self.looker.look(folder).await;
        let (now, hangs) = (self.clock.now(), self.looker.hangs());
        if self.has_files {
            self.board.set_status(|status| {
                let last = status.files.and_then(|files| files.looked);
                let looked = if found.is_some() && !hangs { Some(now) } else { last };
                status.files = Some(FilesStatus { looked, hangs });
            });
        }
        found.map(|found| (found, now))
    }

    /// Retries; a path that hangs is skipped by the next try.
    async fn first_look(&mut self, folder: &Mutex<Folder>) -> (FolderListing, Time) {
        loop {
            if let Some(found) = self.look(folder).await {
                return found;
            }
            self.clock.sleep_until(self.clock.now().plus(TRIES_AGAIN)).await;
        }
    }
}

/// Which documents to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those whose pools had a turn. At a start they win over files. A refused document had no turn and comes after
    /// files.
    Managed,
    All,
}

/// Takes the current documents from the store. False: the store failed, and they stay as they were.
async fn take<S: Store + ApiStore>(folder: &Mutex<Folder>, store: &S, which: Which) -> bool {
    let documents = async {
        let mut documents = store.documents().await?;
        if which == Which::Managed {
            let known = store.pools().await?;
            documents.retain(|document| known.binary_search(&document.pool).is_ok());
        }
        Ok::<_, StoreError>(documents)
    };
    match documents.await {
        Ok(documents) => {
            folder.lock().unwrap_or_else(PoisonError::into_inner).take(&documents);
            true
        }
        Err(error) => {
            tracing::error!("the store does not tell pool documents: {error}");
            false
        }
    }
}

/// Pools without a file or document whose scale sets carry the owner tag of this store. A pool that a person released
/// carries none. A pool that cannot be read is included, since nothing shows that it was released.
async fn cared_for<S: Store>(
    store: &S,
    specs: &[ManagedPoolSpec],
) -> Result<Vec<PoolName>, StoreError> {
    let mut pools = store.pools().await?;
    pools.retain(|name| !specs.iter().any(|spec| spec.policy.name == *name));
    let mut cared_for = Vec::new();
    for name in pools {
        let loaded = store.load(&name).await;
        let state =
            loaded.map(|loaded| loaded.state.is_some_and(|state| state.owner.tag.is_some()));
        if state.unwrap_or(true) {
            cared_for.push(name);
        }
    }
    Ok(cared_for)
}

/// Runs on a blocking thread: thousands of files take a while.
async fn looked(
    folder: &Arc<Mutex<Folder>>,
    before: &PoolSet,
    found: Option<(FolderListing, Time)>,
) -> PoolSet {
    let there = Arc::clone(folder);
    let looked = tokio::task::spawn_blocking(move || {
        // A panicked scan left the previous state, so a poisoned lock is harmless.
        let mut folder = there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((found, at)) = found {
            folder.found(found, at);
        }
        let looked = folder.settled();
        let (refused, unnamed) = (folder.refused().collect(), folder.unnamed().cloned().collect());
        (looked, folder.pools().cloned().collect::<Arc<[ManagedPoolSpec]>>(), refused, unnamed)
    });
    let Ok((looked, specs, refused, unnamed)) = looked.await else {
        tracing::error!("looking at the pool files failed; all pools go on as they were");
        return before.clone();
    };
    let faults: Arc<[Diagnostic]> = match looked.other_faults {
        true => looked.faults.into(),
        false => Arc::clone(&before.faults),
    };
    for fault in faults.iter().filter(|fault| !before.faults.contains(fault)) {
        tracing::warn!("refused: {fault}");
    }
    if faults.is_empty() && !before.faults.is_empty() {
        tracing::info!("all pool files and documents are valid again");
    }
    let changed = !looked.set.is_empty() || !looked.gone.is_empty();
    let changes = before.changes + u64::from(changed);
    PoolSet { specs, faults, changes, refused, unnamed, scanned: true }
}
