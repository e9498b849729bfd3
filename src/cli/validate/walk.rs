//! The files that paths mean: files as they are named, folders sorted by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::cli::source::Source;

/// Folders in folders. Deeper than people sort files, and short enough to end.
const DEEPEST: usize = 16;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

pub(super) type Found = Result<Source, (String, Failure)>;

/// Each file once, in the order of the paths.
pub(super) fn files(paths: &[PathBuf]) -> Vec<Found> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for path in paths {
        match Source::new(path) {
            Source::Stdin => found.push(Ok(Source::Stdin)),
            Source::File(path) if path.is_dir() => {
                let before = found.len();
                walk(&path, DEEPEST, &mut seen, &mut found);
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

fn walk(folder: &Path, deep: usize, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<Found>) {
    let listed = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>());
    let mut paths: Vec<PathBuf> = match listed {
        Ok(paths) => paths,
        Err(error) => {
            let name = folder.display().to_string();
            let failure = Failure::unreadable(&name, &error);
            found.push(Err((name, failure)));
            return;
        }
    };
    paths.sort();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let ending = path.extension().and_then(|ending| ending.to_str());
        if hidden {
            continue;
        }
        if path.is_dir() {
            // A link to a folder may lead round in a circle; a link to a file may not.
            if deep > 0 && !path.is_symlink() {
                walk(&path, deep - 1, seen, found);
            }
        } else if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            add(path, seen, found);
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
