//! The program as these tests run it.

pub use super::program::{Ended, HOME, ROLLING};

pub const SMALL: &str = "tests/show/inputs/small.yaml";

pub fn run(args: &[&str]) -> Ended {
    super::program::finish(super::program::command(args), b"")
}

/// With these environment variables, and no others.
pub fn run_with(variables: &[(&str, &str)], args: &[&str]) -> Ended {
    let mut command = super::program::command(args);
    command.envs(variables.iter().copied());
    super::program::finish(command, b"")
}

/// Ran to its end without a word on standard error.
pub fn fine(args: &[&str]) -> Ended {
    let ended = run(args);
    assert!(ended.code == Some(0) && ended.err.is_empty(), "{args:?}: {ended:?}");
    ended
}

pub fn file(name: &str) -> String {
    super::program::file("show", name)
}

pub fn written(name: &str, bytes: &[u8]) -> String {
    super::program::written("show", name, bytes)
}

pub fn golden(name: &str, is: &str) {
    super::golden::golden(&format!("show/{name}"), is);
}
