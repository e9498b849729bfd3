//! WHEN. Which pool's turn is next: many requests inside a window cause one turn at its end, failures back off, an
//! operator's request goes first, and no pool has two turns at a time.
//!
//! Never here: a timer, a clock, a thread, what a turn does. Time is an argument. The owner of a [`Wake`] sleeps until
//! [`Wake::next_at`]; nothing notifies it of a change, so it reads that time again after each [`Wake::ask`].
//!
//! Guarantees, which the tests check: the earliest window end since the last turn began decides, so a request never
//! waits longer than its own window, except for a backoff or Retry-After that ends later; a request during a turn
//! causes another turn; the pool that has been due longest goes first, so no pool starves another.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::{Wake, WakeReason};
