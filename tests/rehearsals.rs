//! The whole loop against a simulated cloud: storms, power cuts, incidents, planted faults, and the loop through HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod crash;
mod flow;
mod incidents;
mod mutation;
mod storm;
mod support;
mod wire;
