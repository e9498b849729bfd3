//! The Azure adapter against what ARM really says: official examples, recorded shapes, and a server that misbehaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod changes;
mod disks;
mod emulated;
mod examples;
mod facts;
#[path = "../support/golden.rs"]
mod golden;
mod in_place;
mod kit;
mod leaks;
mod locks;
#[path = "../support/log.rs"]
mod log;
mod looks;
mod protection;
mod proxies;
mod random;
mod roads;
mod sent;
mod server;
mod tags;
