//! What people are shown of rehearsals: the demo, pages, pictures, documents, and errors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and the helpers they share"
)]

#[path = "../support/golden.rs"]
mod golden;
#[path = "../support/program.rs"]
mod program;

mod demo;
mod pictures;
mod simulate;
mod support;
mod usage;
