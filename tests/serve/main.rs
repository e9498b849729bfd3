//! The daemon as it runs: over HTTP against the emulator, on a clock that is quicker than ours.

mod ends;
mod files;
mod kit;
mod program;
mod rollouts;
mod settings;

#[path = "../support/golden.rs"]
mod golden_files;

#[expect(dead_code, reason = "support is shared, and not all of it is needed here")]
#[path = "../support/program.rs"]
mod run;
