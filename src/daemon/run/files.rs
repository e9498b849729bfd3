//! Looks at the folder of pool files from time to time, and at once where somebody asks.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};

use super::live::Ticks;
use crate::api::v1::diagnostic::Diagnostic;
use crate::daemon::folder::{Folder, Meant};
use crate::daemon::notify::Manager;
use crate::model::time::Span;

/// Pools as they are meant, and what is wrong with their files.
#[derive(Debug, Clone, Default)]
pub(super) struct Pools {
    pub meant: Arc<[Meant]>,
    pub faults: Arc<[Diagnostic]>,
    /// True: pools are otherwise than before.
    pub changes: u64,
}

pub(super) struct Files<C> {
    pub folder: Folder,
    pub every: Span,
    pub clock: C,
    pub ask: Arc<Notify>,
    pub manager: Arc<Manager>,
}

impl<C: Ticks> Files<C> {
    /// Has looked once when this returns; goes on looking for as long as somebody listens.
    pub async fn begin(self) -> watch::Receiver<Pools> {
        let Self { folder, every, clock, ask, manager } = self;
        let folder = Arc::new(Mutex::new(folder));
        let (tell, hear) = watch::channel(look(&folder, &Pools::default()).await);
        tokio::spawn(async move {
            loop {
                let next = clock.now().plus(every);
                let asked = tokio::select! {
                    () = clock.sleep_until(next) => false,
                    () = ask.notified() => true,
                    () = tell.closed() => return,
                };
                if asked {
                    manager.reloading();
                }
                let before = tell.borrow().clone();
                let now = look(&folder, &before).await;
                if asked {
                    manager.ready(&format!("{} pools", now.meant.len()));
                    tracing::info!(
                        pools = now.meant.len(),
                        faults = now.faults.len(),
                        "pool files were read as asked"
                    );
                }
                let same =
                    now.changes == before.changes && Arc::ptr_eq(&now.faults, &before.faults);
                tell.send_if_modified(|pools| {
                    *pools = now;
                    !same
                });
            }
        });
        hear
    }
}

/// On a thread of its own: a network mount may take its time.
async fn look(folder: &Arc<Mutex<Folder>>, before: &Pools) -> Pools {
    let there = Arc::clone(folder);
    let looked = tokio::task::spawn_blocking(move || {
        // A look that went wrong left what was there before it.
        let mut folder = there.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = folder.look();
        (looked, folder.pools().cloned().collect::<Arc<[Meant]>>())
    });
    let Ok((looked, meant)) = looked.await else {
        tracing::error!("looking at the pool files failed; all pools go on as they were");
        return before.clone();
    };
    let faults: Arc<[Diagnostic]> = match looked.other_faults {
        true => looked.faults.into(),
        false => Arc::clone(&before.faults),
    };
    for fault in faults.iter().filter(|fault| !before.faults.contains(fault)) {
        tracing::warn!("pool file refused: {fault}");
    }
    if faults.is_empty() && !before.faults.is_empty() {
        tracing::info!("all pool files are sound again");
    }
    let changed = !looked.set.is_empty() || !looked.gone.is_empty();
    Pools { meant, faults, changes: before.changes + u64::from(changed) }
}
