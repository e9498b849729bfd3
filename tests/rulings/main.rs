//! The hard cases of keeping a pool: each test is one way in which a pool was lost, or stood still for ever.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod capacity;
mod carrying_on;
mod clock;
mod counted;
mod courses;
mod drains;
mod health;
mod in_place;
mod kit;
mod limits;
mod locked;
mod looks;
mod loops;
mod models;
mod moved;
mod owner;
mod patience;
mod properties;
mod removals;
mod replacing;
mod setbacks;
mod sizes;
mod told;
mod turn;
mod verbs;
mod waits;
mod ways;
mod wishes;
mod world;
mod writers;
