//! Running the program where nobody watches.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

/// Where the program is run, so that paths in what it prints are the same everywhere.
pub const HOME: &str = env!("CARGO_MANIFEST_DIR");
pub const ROLLING: &str = "tests/cli/inputs/rolling.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Ended {
    /// The one JSON document that was answered.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolkeeper"));
    command.args(args).current_dir(HOME).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn finish(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let feeder = thread::spawn(move || match stdin.write_all(&input) {
        // It may end without reading all of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

/// A place for a file of one suite's own.
pub fn file(suite: &str, name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(suite);
    fs::create_dir_all(&folder).unwrap();
    folder.join(name).display().to_string()
}

pub fn written(suite: &str, name: &str, bytes: &[u8]) -> String {
    let path = file(suite, name);
    fs::write(&path, bytes).unwrap();
    path
}
