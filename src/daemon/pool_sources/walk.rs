//! The pool files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum depth of nested folders. Deeper than people nest them, and small enough to end.
const DEEPEST: usize = 16;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, or a path that could not be listed or is not a file.
pub type WalkResult = Result<PathBuf, (PathBuf, io::Error)>;

/// In name order; a folder's files take the place of the folder.
pub fn files(folder: &Path) -> Vec<WalkResult> {
    files_where(folder, &mut |_| Ok(()))
}

/// The same. `enter` is called with each path before the walk reads it, and may skip it.
pub(super) fn files_where(
    folder: &Path,
    enter: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Vec<WalkResult> {
    let mut found = Vec::new();
    walk(folder, DEEPEST, enter, &mut found);
    found
}

fn walk(
    folder: &Path,
    deep: usize,
    enter: &mut dyn FnMut(&Path) -> io::Result<()>,
    found: &mut Vec<WalkResult>,
) {
    let listed = enter(folder)
        .and_then(|()| fs::read_dir(folder))
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
        let named = ending.is_some_and(|ending| ENDINGS.contains(&ending));
        if hidden {
            continue;
        }
        match enter(&path).and_then(|()| fs::metadata(&path)) {
            Ok(about) if about.is_dir() => {
                // A symlink to a folder may form a cycle; a symlink to a file cannot.
                if deep > 0 && !path.is_symlink() {
                    walk(&path, deep - 1, enter, found);
                }
            }
            Ok(about) if named && !about.is_file() => found.push(Err((path, no_file()))),
            // A dangling symlink is a missing file; reading it reports that.
            Ok(_) if named => found.push(Ok(path)),
            Err(error) if named && error.kind() == io::ErrorKind::NotFound => found.push(Ok(path)),
            Err(error) if named || error.kind() == io::ErrorKind::TimedOut => {
                found.push(Err((path, error)));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Opening a pipe blocks until it has a writer, and a device may never end.
fn no_file() -> io::Error {
    io::Error::other("it is a pipe, a socket or a device; put a plain file there")
}
