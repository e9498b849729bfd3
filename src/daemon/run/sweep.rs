//! Lets go of what is old, now and then, while we lead.

use std::sync::Arc;

use super::live::Ticks;
use crate::daemon::board::Board;
use crate::memory::{Desk, Keep};
use crate::model::time::Span;

/// The first sweep. A start has better things to do.
const FIRST: Span = Span::minutes(5);

/// From one sweep to the next.
// 1 h: what is kept for days need not go to the minute, and an hour's worth is gone in a few writes.
const EVERY: Span = Span::hours(1);

/// Where there is more to let go of.
// 1 s: turns write in between.
const GOES_ON: Span = Span::seconds(1);

/// Until it is dropped. It may be cut off anywhere.
pub(super) async fn sweep<S: Desk, C: Ticks>(
    store: Arc<S>,
    clock: C,
    keep: Keep,
    board: Arc<Board>,
) {
    let (mut wait, mut lines) = (FIRST, 0);
    loop {
        clock.sleep_until(clock.now().plus(wait)).await;
        wait = match store.sweep(&keep, clock.now()).await {
            Ok(swept) => {
                lines += swept.lines;
                board.set_house(|house| house.audit = Some(swept.audit));
                if swept.more { GOES_ON } else { EVERY }
            }
            Err(error) => {
                tracing::warn!("what is old cannot be let go of: {error}; it is tried again");
                EVERY
            }
        };
        if wait == EVERY && lines > 0 {
            tracing::debug!(lines, "let go of what is old");
            lines = 0;
        }
    }
}
