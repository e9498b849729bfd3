//! Deletes old records periodically while this process leads.

use std::sync::Arc;

use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::memory::{ApiStore, Keep};
use crate::model::time::Span;

/// Delay of the first sweep: a start has more urgent work.
const FIRST: Span = Span::minutes(5);

/// Interval between sweeps.
// 1 h: records that are kept for days need no precision of minutes, and a few writes delete an hour's worth.
const EVERY: Span = Span::hours(1);

/// Delay if there is more to delete.
// 1 s: leaves room for writes of turns in between.
const GOES_ON: Span = Span::seconds(1);

/// Runs until it is dropped, which is safe at any point.
pub(super) async fn sweep<S: ApiStore, C: MonotonicClock>(handle: Arc<Handle<S, C>>, keep: Keep) {
    let Handle { store, clock, board, .. } = &*handle;
    let (mut wait, mut lines) = (FIRST, 0);
    loop {
        clock.sleep_until(clock.now().plus(wait)).await;
        wait = match store.sweep(&keep, clock.now()).await {
            Ok(swept) => {
                lines += swept.lines;
                board.set_status(|status| status.audit = Some(swept.audit));
                if swept.more { GOES_ON } else { EVERY }
            }
            Err(error) => {
                tracing::warn!("cannot prune old records: {error}; retrying");
                EVERY
            }
        };
        if wait == EVERY && lines > 0 {
            tracing::debug!(lines, "let go of what is old");
            lines = 0;
        }
    }
}
