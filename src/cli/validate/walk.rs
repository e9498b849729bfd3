//! Expands paths to files: files in the given order, the content of folders sorted by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::exit::CommandFailure;
use crate::cli::source::SnapshotSource;
use crate::daemon;

pub(in crate::cli) type PoolFiles = Result<SnapshotSource, (String, CommandFailure)>;

/// Each file once, in the order of the paths.
pub(in crate::cli) fn files(paths: &[PathBuf]) -> Vec<PoolFiles> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for path in paths {
        match SnapshotSource::new(path) {
            SnapshotSource::Stdin => found.push(Ok(SnapshotSource::Stdin)),
            SnapshotSource::File(path) if path.is_dir() => {
                let before = found.len();
                walk(&path, &mut seen, &mut found);
                if found.len() == before {
                    found.push(Err(empty(&path)));
                }
            }
            SnapshotSource::File(path) => add(path, &mut seen, &mut found),
        }
    }
    found
}

/// Adds a file once, even if several arguments or folders contain it.
fn add(path: PathBuf, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PoolFiles>) {
    let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    if seen.insert(real) {
        found.push(Ok(SnapshotSource::File(path)));
    }
}

fn walk(folder: &Path, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PoolFiles>) {
    for file in daemon::pool_files(folder) {
        match file {
            Ok(path) => add(path, seen, found),
            Err((folder, error)) => {
                let name = folder.display().to_string();
                let failure = CommandFailure::unreadable(&name, &error);
                found.push(Err((name, failure)));
            }
        }
    }
}

/// An empty folder is an error: a check of no file must not look like success.
fn empty(folder: &Path) -> (String, CommandFailure) {
    let name = folder.display().to_string();
    let say = format!("{name} holds no *.yaml, *.yml or *.json file that was not named before");
    let failure = CommandFailure::new(super::Exit::Internal, "unreadable", say);
    (name, failure.help("name the folder that holds the pool files, or a file"))
}
