//! Notifies the loop of requests that other processes recorded in a shared store.

use std::sync::Arc;

use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::memory::Store;
use crate::model::time::Span;

/// How often the leader looks for requests that other processes recorded.
const POLLS: Span = Span::seconds(2);

/// Ends with the loop.
pub(super) async fn poll_shared_store<S: Store, C: MonotonicClock>(handle: Arc<Handle<S, C>>) {
    let Handle { store, clock, turns, .. } = &*handle;
    loop {
        clock.sleep_until(clock.now().plus(POLLS)).await;
        match store.asked_elsewhere().await {
            Ok(pools) => {
                for pool in pools {
                    if !turns.wake_for_other(pool).await {
                        return;
                    }
                }
            }
            // The lease keeper hits the same error and reports it.
            Err(error) => tracing::debug!("cannot read commands of other processes: {error}"),
        }
    }
}
