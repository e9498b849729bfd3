//! The program as these tests run it, what it says as a person sees it, and snapshots to hand in.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

pub use super::program::{Ended, HOME, ROLLING, Running, command, finish};

/// Without a width: lines are not wrapped.
pub fn run(args: &[&str], input: &str) -> Ended {
    finish(command(args), input.as_bytes())
}

pub fn run_wide(columns: &str, args: &[&str], input: &str) -> Ended {
    let mut command = command(args);
    command.env("COLUMNS", columns);
    finish(command, input.as_bytes())
}

/// The documents that were answered, one a line.
pub fn documents(ended: &Ended) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    ended.out.lines().map(parse).collect()
}

pub fn written(name: &str, bytes: &[u8]) -> String {
    super::program::written("cli", name, bytes)
}

pub fn golden(name: &str, is: &str) {
    super::golden::golden(&format!("cli/{name}"), is);
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
