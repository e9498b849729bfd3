//! How others ask the loop something.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::live::Ticks;
use crate::api::http::Scene;
use crate::memory::Store;
use crate::model::ids::PoolName;
use crate::model::time::Span;

/// Asks that wait for the loop to hear them.
const ASKS: usize = 256;

/// Whoever leads looks this often for what doors of other processes recorded.
const OVERHEARS: Span = Span::seconds(2);

/// For those who ask the loop something.
#[derive(Debug, Clone)]
pub struct Bell(mpsc::Sender<Rung>);

#[derive(Debug)]
pub(super) enum Rung {
    /// An operator's ask was recorded.
    Asked(PoolName),
    /// Another process recorded one, perhaps.
    Overheard(PoolName),
    /// What the last turn of this pool left.
    Show(PoolName, oneshot::Sender<Scene>),
}

impl Bell {
    pub(super) fn new() -> (Self, mpsc::Receiver<Rung>) {
        let (ring, rung) = mpsc::channel(ASKS);
        (Self(ring), rung)
    }

    /// The pool's next turn is made now.
    pub async fn ring(&self, pool: &PoolName) {
        // A daemon that ended makes no turn; what was asked is in the store.
        let _unheard = self.0.send(Rung::Asked(pool.clone())).await;
    }

    /// The same, by those who cannot wait. False: too many are heard before.
    pub fn knock(&self, pool: &PoolName) -> bool {
        self.0.try_send(Rung::Asked(pool.clone())).is_ok()
    }

    /// What the last decision of a pool was made from; while a turn runs, after its end. `None`: no such pool, or none yet.
    pub async fn scene(&self, pool: &PoolName) -> Option<Scene> {
        let (show, shown) = oneshot::channel();
        self.0.send(Rung::Show(pool.clone(), show)).await.ok()?;
        shown.await.ok()
    }
}

/// Rings for what doors of other processes recorded in a store that is shared. Ends with the loop.
pub(super) async fn overhear<S: Store, C: Ticks>(store: Arc<S>, clock: C, bell: Bell) {
    loop {
        clock.sleep_until(clock.now().plus(OVERHEARS)).await;
        match store.asked_elsewhere().await {
            Ok(pools) => {
                for pool in pools {
                    if bell.0.send(Rung::Overheard(pool)).await.is_err() {
                        return;
                    }
                }
            }
            // Whoever keeps the lease meets the same trouble, and tells it.
            Err(error) => tracing::debug!("what others ask is not heard: {error}"),
        }
    }
}
