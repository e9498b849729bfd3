//! What operators deploy: each file is read as they would have it read.

mod board;
mod deploy;
mod guides;
mod pools;
mod promql;
mod settings;

use crate::support::program as run;
use std::fs;
use std::path::{Path, PathBuf};

fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(path)
}

/// A file under `config/`.
fn text(path: &str) -> String {
    let path = place(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each has a test here (the description of the API has its own in `tests/http`, the schema of a pool file in `tests/api`, the picture
/// of the demo in `src/cli/demo`); a new one needs its own.
#[test]
fn every_file_is_read_by_a_test() {
    let known = [
        "alerts.yaml",
        "azure",
        "container",
        "demo.svg",
        "grafana.json",
        "helm",
        "openapi.json",
        "pool.schema.json",
        "poolkeeper.yaml",
        "pools",
        "systemd",
        "week-load.csv",
    ];
    let mut found: Vec<String> = fs::read_dir(place(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let strange: Vec<&String> =
        found.iter().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(strange.is_empty(), "no test reads {strange:?}");
}
