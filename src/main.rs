//! Parses the arguments, runs the command, and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    poolkeeper::cli::run(std::env::args_os())
}
