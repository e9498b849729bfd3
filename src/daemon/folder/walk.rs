//! The pool files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders in folders. Deeper than people sort files, and short enough to end.
const DEEPEST: usize = 16;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, or a folder that could not be listed.
pub type Found = Result<PathBuf, (PathBuf, io::Error)>;

/// In order of their names, each folder's own where it stands.
pub fn files(folder: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    walk(folder, DEEPEST, &mut found);
    found
}

fn walk(folder: &Path, deep: usize, found: &mut Vec<Found>) {
    let listed = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>());
    let mut paths: Vec<PathBuf> = match listed {
        Ok(paths) => paths,
        Err(error) => {
            found.push(Err((folder.to_owned(), error)));
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
                walk(&path, deep - 1, found);
            }
        } else if ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            found.push(Ok(path));
        }
    }
}
