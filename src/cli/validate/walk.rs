//! The files that paths mean: files as they are named, folders sorted by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::cli::source::Source;
use crate::daemon;

pub(super) type Found = Result<Source, (String, Failure)>;

/// Each file once, in the order of the paths.
pub(super) fn files(paths: &[PathBuf]) -> Vec<Found> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for path in paths {
        match Source::new(path) {
            Source::Stdin => found.push(Ok(Source::Stdin)),
            Source::File(path) if path.is_dir() => {
                let before = found.len();
                walk(&path, &mut seen, &mut found);
                if found.len() == before {
                    found.push(Err(empty(&path)));
                }
            }
            Source::File(path) => add(path, &mut seen, &mut found),
        }
    }
    found
}

/// A file that is named twice, or by a folder too, is read once.
fn add(path: PathBuf, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<Found>) {
    let real = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    if seen.insert(real) {
        found.push(Ok(Source::File(path)));
    }
}

fn walk(folder: &Path, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<Found>) {
    for file in daemon::pool_files(folder) {
        match file {
            Ok(path) => add(path, seen, found),
            Err((folder, error)) => {
                let name = folder.display().to_string();
                let failure = Failure::unreadable(&name, &error);
                found.push(Err((name, failure)));
            }
        }
    }
}

/// A check of nothing must not look like success.
fn empty(folder: &Path) -> (String, Failure) {
    let name = folder.display().to_string();
    let say = format!("{name} holds no *.yaml, *.yml or *.json file that was not named before");
    let failure = Failure::new(super::Exit::Internal, "unreadable", say);
    (name, failure.help("name the folder that holds the pool files, or a file"))
}
