//! WHEN. Which pool's turn is next: many asks inside a window make one turn at its end, failures back off, an operator's
//! ask goes first, and no pool has two turns at a time.
//!
//! Never here: a timer, a clock, a thread, what a turn does. Time is an argument; whoever owns a [`Wake`] sleeps until
//! [`Wake::next_at`].

mod queue;

pub use queue::{Wake, Why};
