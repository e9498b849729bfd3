//! How other tasks send requests to the loop.

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::api::http::PlanContext;
use crate::model::ids::PoolName;

/// Capacity of the queue of requests to the loop.
const MESSAGES: usize = 256;

/// Handle to send requests to the loop.
#[derive(Debug, Clone)]
pub struct LoopHandle(mpsc::Sender<LoopMessage>);

#[derive(Debug)]
pub(super) enum LoopMessage {
    /// An operator's request was recorded.
    Wake(PoolName),
    /// Another process may have recorded one.
    WakeForOther(PoolName),
    /// A metric of the pool has another value, a gate another verdict, or its nodes are known again or no longer.
    News(PoolName),
    /// Show the result of this pool's last turn.
    Show(PoolName, oneshot::Sender<PlanContext>),
}

impl LoopHandle {
    pub(super) fn new() -> (Self, mpsc::Receiver<LoopMessage>) {
        let (send, receive) = mpsc::channel(MESSAGES);
        (Self(send), receive)
    }

    /// Run the pool's next turn now. Does not wait, even if the queue is full.
    pub fn wake_now(&self, pool: &PoolName) {
        // If the daemon has ended, no turn runs; the request is in the store.
        if let Err(TrySendError::Full(message)) = self.0.try_send(LoopMessage::Wake(pool.clone())) {
            let send = self.0.clone();
            tokio::spawn(async move { send.send(message).await.is_ok() });
        }
    }

    /// A metric or a gate of the pool has news. If the queue is full, the pool's next turn finds it.
    pub(super) fn news(&self, pool: &PoolName) {
        let _or_later = self.0.try_send(LoopMessage::News(pool.clone())).is_err();
    }

    /// The nodes of the pool are known again, or no longer. False: the loop has ended.
    pub(super) async fn news_of_nodes(&self, pool: PoolName) -> bool {
        self.0.send(LoopMessage::News(pool)).await.is_ok()
    }

    /// Another process may have recorded a request. False: the loop has ended.
    pub(super) async fn wake_for_other(&self, pool: PoolName) -> bool {
        self.0.send(LoopMessage::WakeForOther(pool)).await.is_ok()
    }

    /// The inputs of a pool's last decision. While a turn runs, waits for its end. `None`: no such pool, or no decision
    /// yet.
    pub async fn plan_context(&self, pool: &PoolName) -> Option<PlanContext> {
        let (show, shown) = oneshot::channel();
        self.0.send(LoopMessage::Show(pool.clone(), show)).await.ok()?;
        shown.await.ok()
    }
}
