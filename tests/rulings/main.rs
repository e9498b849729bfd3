//! The hard cases of keeping a pool: each test is one way in which a pool was lost, or stood still for ever.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod courses;
mod drains;
mod health;
mod kit;
mod loops;
mod models;
mod patience;
mod properties;
mod replacing;
mod sizes;
mod told;
mod turn;
mod verbs;
mod ways;
mod world;
