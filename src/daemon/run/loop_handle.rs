//! How other tasks send requests to the loop.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::production::Ticks;
use crate::api::http::PlanContext;
use crate::memory::Store;
use crate::model::ids::PoolName;
use crate::model::time::Span;

/// Capacity of the queue of requests to the loop.
const ASKS: usize = 256;

/// How often the leader looks for requests that other processes recorded.
const OVERHEARS: Span = Span::seconds(2);

/// Handle to send requests to the loop.
#[derive(Debug, Clone)]
pub struct Bell(mpsc::Sender<Rung>);

#[derive(Debug)]
pub(super) enum Rung {
    /// An operator's request was recorded.
    Asked(PoolName),
    /// Another process may have recorded one.
    Overheard(PoolName),
    /// Show the result of this pool's last turn.
    Show(PoolName, oneshot::Sender<PlanContext>),
}

impl Bell {
    pub(super) fn new() -> (Self, mpsc::Receiver<Rung>) {
        let (ring, rung) = mpsc::channel(ASKS);
        (Self(ring), rung)
    }

    /// Run the pool's next turn now.
    pub async fn ring(&self, pool: &PoolName) {
        // If the daemon has ended, no turn runs; the request is in the store.
        let _unheard = self.0.send(Rung::Asked(pool.clone())).await;
    }

    /// The same without waiting. Returns false if the queue is full.
    pub fn knock(&self, pool: &PoolName) -> bool {
        self.0.try_send(Rung::Asked(pool.clone())).is_ok()
    }

    /// The inputs of a pool's last decision. While a turn runs, waits for its end. `None`: no such pool, or no decision
    /// yet.
    pub async fn scene(&self, pool: &PoolName) -> Option<PlanContext> {
        let (show, shown) = oneshot::channel();
        self.0.send(Rung::Show(pool.clone(), show)).await.ok()?;
        shown.await.ok()
    }
}

/// Notifies the loop of requests that other processes recorded in a shared store. Ends with the loop.
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
            // The lease keeper hits the same error and reports it.
            Err(error) => tracing::debug!("cannot read commands of other processes: {error}"),
        }
    }
}
