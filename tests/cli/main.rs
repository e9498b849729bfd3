//! The terminal's door, tried from outside: the program itself is run, and what it prints is compared.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and the helpers they share"
)]

#[path = "../support/golden.rs"]
mod golden;
#[path = "../support/log.rs"]
mod log;
#[path = "../support/program.rs"]
mod program;

mod azure;
mod emulate;
mod goldens;
mod live;
mod same;
mod store;
mod stream;
mod support;
mod troubles;
mod usage;
