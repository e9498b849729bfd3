//! The daemon as operators deploy it and as clients talk to it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod config;
mod http;
mod serve;
mod support;
