//! WHEN. Which pool's turn is next: many asks inside a window make one turn at its end, failures back off, an operator's
//! ask goes first, and no pool has two turns at a time.
//!
//! Never here: a timer, a clock, a thread, what a turn does. Time is an argument; whoever owns a [`Wake`] sleeps until
//! [`Wake::next_at`], and is told by nobody that it changed: it asks again after each [`Wake::ask`].
//!
//! What is promised, and held by the tests: the window of the first ask since the last turn began is the one that holds,
//! so an ask never waits longer than its own window (and what a failure or the other side told to wait); an ask during a
//! turn makes another turn; a pool that is due longest goes first, so none starves another.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::{Wake, Why};
