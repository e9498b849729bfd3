//! The daemon as it runs: over HTTP against the emulator, on a clock that is quicker than ours.

mod ends;
mod files;
mod kit;
mod program;
mod rollouts;
mod settings;

#[path = "../support/golden.rs"]
mod golden_files;

#[path = "../support/program.rs"]
mod run;
