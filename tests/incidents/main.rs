//! Incidents that took pools of other programs down, replayed against the production loop over a made-up cloud. What each
//! must show is asserted; how it went is kept as a story one screen long, so that a person can read it.
//! After a wanted change: `UPDATE_GOLDEN=1 cargo test --test incidents`, and read the difference.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

#[path = "../support/golden.rs"]
mod golden;
mod models;
mod others;
mod rollouts;
mod sizes;
mod told;
