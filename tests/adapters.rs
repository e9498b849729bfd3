//! What stands between the loop and the world: Azure and its tokens, clusters, the emulator, the pace of calls, the stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod auth;
mod azure;
mod emulator;
mod kubernetes;
mod pace;
mod store;
mod support;
