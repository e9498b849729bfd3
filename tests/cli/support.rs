//! Running the program, comparing what it says with what is kept, and snapshots to hand in.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

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

    pub fn lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolkeeper"));
    command.args(args).current_dir(HOME).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Without a width: lines are not wrapped.
pub fn run(args: &[&str], input: &str) -> Ended {
    finish(command(args), input.as_bytes())
}

pub fn run_wide(columns: &str, args: &[&str], input: &str) -> Ended {
    let mut command = command(args);
    command.env("COLUMNS", columns);
    finish(command, input.as_bytes())
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

/// Compares with what is kept under that name; `UPDATE_GOLDEN=1` keeps this instead.
pub fn golden(name: &str, is: &str) {
    let path = PathBuf::from(HOME).join("tests/golden/cli").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, is).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == is,
        "{name} differs; UPDATE_GOLDEN=1 writes it anew.\n--- kept\n{kept}\n--- is\n{is}"
    );
}

/// What a person sees who runs this.
pub fn transcript(args: &[&str], ended: &Ended) -> String {
    let Ended { out, err, code } = ended;
    let err = if err.is_empty() { String::new() } else { format!("--- standard error\n{err}") };
    format!("$ poolkeeper {}\n{out}{err}--- exit {}\n", args.join(" "), code.unwrap_or(-1))
}

pub fn rolling() -> Value {
    serde_json::from_str(&fs::read_to_string(PathBuf::from(HOME).join(ROLLING)).unwrap()).unwrap()
}

/// The same pool with `count` machines, all on target and serving.
pub fn idle(count: usize) -> Value {
    let mut snapshot = rolling();
    let machine = |n: usize| {
        json!({
            "id": n.to_string(), "vmId": format!("vm-{n}"), "zone": (n % 3 + 1).to_string(),
            "createdAt": "2026-02-20T08:00:00Z", "since": "2026-02-20T08:00:00Z",
            "revision": "r2", "condition": "Ready",
        })
    };
    snapshot["machines"] = (0..count).map(machine).collect();
    snapshot["pool"]["replicas"]["count"] = json!(count);
    snapshot["scaleSet"]["capacity"] = json!(count);
    snapshot["open"] = json!([]);
    snapshot["facts"] = Value::Null;
    snapshot
}
