//! What is decided, and the documents it is decided from: hard cases one by one, every state of small pools, and the
//! formats of version 1.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod api;
mod exhaustive;
mod rulings;
mod support;
