//! The pool files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders in folders. Deeper than people sort files, and short enough to end.
const DEEPEST: usize = 16;

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A file, or what could not be listed or is no file.
pub type Found = Result<PathBuf, (PathBuf, io::Error)>;

/// In order of their names, each folder's own where it stands.
pub fn files(folder: &Path) -> Vec<Found> {
    files_where(folder, &mut |_| Ok(()))
}

/// The same. `enter` hears of each path before the disk is asked about it, and may leave it out.
pub(super) fn files_where(
    folder: &Path,
    enter: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> Vec<Found> {
    let mut found = Vec::new();
    walk(folder, DEEPEST, enter, &mut found);
    found
}

fn walk(
    folder: &Path,
    deep: usize,
    enter: &mut dyn FnMut(&Path) -> io::Result<()>,
    found: &mut Vec<Found>,
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
                // A link to a folder may lead round in a circle; a link to a file may not.
                if deep > 0 && !path.is_symlink() {
                    walk(&path, deep - 1, enter, found);
                }
            }
            Ok(about) if named && !about.is_file() => found.push(Err((path, no_file()))),
            // A link that leads nowhere is a file that is missing, and is found so when it is read.
            Ok(_) if named => found.push(Ok(path)),
            Err(error) if named && error.kind() == io::ErrorKind::NotFound => found.push(Ok(path)),
            Err(error) if named || error.kind() == io::ErrorKind::TimedOut => {
                found.push(Err((path, error)));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// To open a pipe waits for its writer, and a device may never end.
fn no_file() -> io::Error {
    io::Error::other("it is a pipe, a socket or a device; put a plain file there")
}
