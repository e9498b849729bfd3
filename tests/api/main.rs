//! The documents of version 1: what is read, what is refused and where, and what is written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and the helpers they share"
)]

mod bad_bytes;
mod conversation;
mod plans;
mod pools;
mod round_trips;
mod snapshots;
mod states;
mod support;
