//! The terminal's door, tried from outside: the program itself is run, and what it prints is compared.

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

mod emulate;
mod goldens;
mod same;
mod stream;
mod support;
mod usage;
