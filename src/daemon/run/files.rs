//! Looks at pool files and documents from time to time, and at once where somebody asks.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::live::Ticks;
use super::looker::Looker;
use super::stop::Stopping;
use crate::api::v1::diagnostic::Diagnostic;
use crate::daemon::board::{Board, FilesSeen};
use crate::daemon::folder::{Folder, FolderListing, Meant};
use crate::daemon::notify::Manager;
use crate::memory::{Desk, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// A store that does not tell the documents is asked again after this.
const TRIES_AGAIN: Span = Span::seconds(1);

/// Pools as they are meant, and what is wrong with their files and documents.
#[derive(Debug, Clone, Default)]
pub(super) struct Pools {
    pub meant: Arc<[Meant]>,
    pub faults: Arc<[Diagnostic]>,
    /// True: pools are otherwise than before.
    pub changes: u64,
    /// Documents that are kept and not taken in, and why.
    pub refused: Arc<[(PoolName, Box<str>)]>,
    /// The store has them in its care, nothing named them at the start, and no person has let them go.
    pub unnamed: Arc<[PoolName]>,
    /// They were looked at.
    pub looked: bool,
}

/// Take documents up, and say when that is done.
#[derive(Debug)]
pub(super) struct Look {
    /// A pool whose file is missing, and that a person wants to go.
    pub let_go: Option<PoolName>,
    pub done: oneshot::Sender<()>,
}

pub(super) struct Files<S, C> {
    pub folder: Folder,
    pub store: Arc<S>,
    pub every: Span,
    pub clock: C,
    pub ask: Arc<Notify>,
    pub look: mpsc::Receiver<Look>,
    pub tell: Arc<watch::Sender<Pools>>,
    pub manager: Arc<Manager>,
    pub board: Arc<Board>,
    pub stopping: Stopping,
}

/// Why it is looked now.
enum Why {
    Time,
    Asked,
    Documents(Look),
}

impl<S: Store + Desk + Send + Sync + 'static, C: Ticks> Files<S, C> {
    /// Has looked once when this returns, and goes on looking until the end. False: told to stop before.
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
                if let Why::Documents(Look { let_go: Some(pool), .. }) = &why {
                    folder.lock().unwrap_or_else(PoisonError::into_inner).let_go(pool);
                }
                let before = tell.borrow().clone();
                // Two looks at which a file is missing are two moments: a document is no reason to look at files.
                let found = match why {
                    Why::Documents(_) => None,
                    Why::Time | Why::Asked => disk.look(&folder).await,
                };
                let now = looked(&folder, &before, found).await;
                let (pools, faults) = (now.meant.len(), now.faults.len());
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
                        tracing::info!(pools, faults, "pool files were read as asked");
                    }
                    // Whoever asked may be gone.
                    Why::Documents(Look { done, .. }) => drop(done.send(())),
                }
            }
        });
        true
    }
}

/// Pools as a start finds them.
async fn first<S, C>(folder: &Arc<Mutex<Folder>>, store: &S, disk: &mut Disk<C>) -> Pools
where
    S: Store + Desk,
    C: Ticks,
{
    let clock = disk.clock.clone();
    // Without the documents a file could take what one of them has.
    while !take(folder, store, Which::Managed).await {
        clock.sleep_until(clock.now().plus(TRIES_AGAIN)).await;
    }
    let found = disk.first_look(folder).await;
    let managed = looked(folder, &Pools::default(), Some(found)).await;
    take(folder, store, Which::All).await;
    let all = looked(folder, &managed, None).await;
    if !disk.has_files {
        return all;
    }
    let cared_for = loop {
        match cared_for(store, &all.meant).await {
            Ok(pools) => break pools,
            Err(error) => tracing::error!("the store does not name its pools: {error}"),
        }
        clock.sleep_until(clock.now().plus(TRIES_AGAIN)).await;
    };
    folder.lock().unwrap_or_else(PoisonError::into_inner).compare(cared_for);
    looked(folder, &all, None).await
}

/// The disk of the pool files, and what the board shows of it.
struct Disk<C> {
    looker: Looker,
    has_files: bool,
    board: Arc<Board>,
    clock: C,
}

impl<C: Ticks> Disk<C> {
    /// `None`: it does not answer now.
    async fn look(&mut self, folder: &Mutex<Folder>) -> Option<(FolderListing, Time)> {
        let found = self.looker.look(folder).await;
        let (now, hangs) = (self.clock.now(), self.looker.hangs());
        if self.has_files {
            self.board.set_house(|house| {
                let last = house.files.and_then(|files| files.looked);
                let looked = if found.is_some() && !hangs { Some(now) } else { last };
                house.files = Some(FilesSeen { looked, hangs });
            });
        }
        found.map(|found| (found, now))
    }

    /// What hangs once is left out the next time.
    async fn first_look(&mut self, folder: &Mutex<Folder>) -> (FolderListing, Time) {
        loop {
            if let Some(found) = self.look(folder).await {
                return found;
            }
            self.clock.sleep_until(self.clock.now().plus(TRIES_AGAIN)).await;
        }
    }
}

/// Which documents are taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those whose pools had a turn. They go before files at a start; one that was refused had none, and goes after them.
    Managed,
    All,
}

/// The documents that the store has now. False: it does not say; they stay what they were.
async fn take<S: Store + Desk>(folder: &Mutex<Folder>, store: &S, which: Which) -> bool {
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

/// Pools without a file or document whose scale sets carry the owner tag of this store. One that a person released carries
/// none; one that cannot be read stands among them, since nothing says that it was released.
async fn cared_for<S: Store>(store: &S, meant: &[Meant]) -> Result<Vec<PoolName>, StoreError> {
    let mut pools = store.pools().await?;
    pools.retain(|name| !meant.iter().any(|meant| meant.policy.name == *name));
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

/// On a thread of its own: thousands of files take their time.
async fn looked(
    folder: &Arc<Mutex<Folder>>,
    before: &Pools,
    found: Option<(FolderListing, Time)>,
) -> Pools {
    let there = Arc::clone(folder);
    let looked = tokio::task::spawn_blocking(move || {
        // A look that went wrong left what was there before it.
        let mut folder = there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((found, at)) = found {
            folder.found(found, at);
        }
        let looked = folder.settled();
        let (refused, unnamed) = (folder.refused().collect(), folder.unnamed().cloned().collect());
        (looked, folder.pools().cloned().collect::<Arc<[Meant]>>(), refused, unnamed)
    });
    let Ok((looked, meant, refused, unnamed)) = looked.await else {
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
        tracing::info!("all pool files and documents are sound again");
    }
    let changed = !looked.set.is_empty() || !looked.gone.is_empty();
    let changes = before.changes + u64::from(changed);
    Pools { meant, faults, changes, refused, unnamed, looked: true }
}
