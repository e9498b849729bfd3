//! Tokens: each way to one, the one that all share, and that nobody else sees it. Nothing here leaves the process, and time
//! is made up.
//!
//! The keys in `fixtures` were made for these tests and open nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets what cannot be stops")]

mod certificates;
mod clouds;
mod hidden;
#[path = "../support/log.rs"]
mod log;
mod sharing;
mod sts;
mod ways;
