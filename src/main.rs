//! Parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    poolkeeper::cli::run(std::env::args_os())
}
