//! The one place of this program that waits: between two frames that a person watches.

use std::thread;
use std::time::Duration;

/// Frames of the whole show.
pub const FRAMES: i64 = 160;
/// 100 ms: 160 of them are 16 seconds, quick enough not to bore and slow enough to follow.
const BETWEEN: Duration = Duration::from_millis(100);
/// Frames for which the last picture stays before the rest is printed.
const LAST: u32 = 8;

/// Waits until the frame after frame `n` is due.
pub fn after(n: i64) {
    thread::park_timeout(if n < FRAMES { BETWEEN } else { BETWEEN * LAST });
}
