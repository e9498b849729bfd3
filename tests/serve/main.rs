//! The daemon as it runs: over HTTP against the emulator, on a clock that is quicker than ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod door;
mod ends;
mod files;
mod hangs;
mod image;
mod kit;
mod logs;
mod lost;
mod people;
mod program;
mod provider;
mod rollouts;
mod seal;
mod settings;
mod traces;

#[path = "../support/golden.rs"]
mod golden_files;

#[expect(dead_code, reason = "support is shared, and not all of it is needed here")]
#[path = "../support/program.rs"]
mod run;

#[expect(dead_code, reason = "support is shared, and not all of it is needed here")]
#[path = "../support/signed.rs"]
mod signed;
