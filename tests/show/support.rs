//! Running the program where nobody watches, and comparing what it prints with what is kept.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Where the program is run, so that paths in what it prints are the same everywhere.
pub const HOME: &str = env!("CARGO_MANIFEST_DIR");
pub const SMALL: &str = "tests/show/inputs/small.yaml";
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

pub fn run(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolkeeper"));
    command.args(args).current_dir(HOME).env_clear().stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

/// Ran to its end without a word on standard error.
pub fn fine(args: &[&str]) -> Ended {
    let ended = run(args);
    assert!(ended.code == Some(0) && ended.err.is_empty(), "{args:?}: {ended:?}");
    ended
}

/// A file of this test's own.
pub fn file(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("show");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name).display().to_string()
}

pub fn written(name: &str, text: &str) -> String {
    let path = file(name);
    fs::write(&path, text).unwrap();
    path
}

/// Compares with what is kept under that name; `UPDATE_GOLDEN=1` keeps this instead.
pub fn golden(name: &str, is: &str) {
    let path = PathBuf::from(HOME).join("tests/golden/show").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, is).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == is,
        "{name} differs; UPDATE_GOLDEN=1 writes it anew.\n--- kept\n{kept}\n--- is\n{is}"
    );
}
