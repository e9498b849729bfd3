//! Tokens: each way to one, the one that all share, and that nobody else sees it. Nothing here leaves the process, and time
//! is made up.
//!
//! The keys in `fixtures` were made for these tests and open nothing.

mod certificates;
mod clouds;
mod hidden;
mod sharing;
mod sts;
mod ways;

use crate::support::log;
