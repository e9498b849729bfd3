//! One scan of the disk: the list of pool files, and the bytes of changed ones. A disk may hang, so a scan holds
//! nothing that others wait for, and publishes its current path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::walk::files_where;
use crate::api::v1::node::MAX_BYTES;

pub(super) type FileStamp = (Option<SystemTime>, u64);

#[derive(Debug, Clone, Default)]
pub struct Search {
    pub folder: Option<PathBuf>,
    /// Stamps of files read before. A file with the same stamp is not read again.
    pub(super) stamps: BTreeMap<PathBuf, FileStamp>,
    /// Paths at which earlier searches hang: this one skips them.
    pub stuck: BTreeSet<PathBuf>,
    /// The path that the search is reading now.
    pub at: Arc<Mutex<Option<PathBuf>>>,
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct FolderListing {
    pub(super) files: Vec<(PathBuf, FileContent)>,
    /// Paths that could not be listed or read.
    pub(super) unread: Vec<(PathBuf, io::Error)>,
}

#[derive(Debug)]
pub(super) enum FileContent {
    Same,
    Read(FileStamp, Vec<u8>),
}

impl Search {
    /// Reads the disk.
    pub fn run(&self) -> FolderListing {
        let mut enter = |path: &Path| self.enter(path);
        let all = self.folder.as_deref().map(|folder| files_where(folder, &mut enter));
        let mut found = FolderListing::default();
        for file in all.unwrap_or_default() {
            match file.and_then(|path| match self.read(&path) {
                Ok(content) => Ok((path, content)),
                Err(error) => Err((path, error)),
            }) {
                Ok(file) => found.files.push(file),
                Err(unread) => found.unread.push(unread),
            }
        }
        found
    }

    fn enter(&self, path: &Path) -> io::Result<()> {
        if self.stuck.contains(path) {
            let say = "the disk does not answer; it is left out until the disk does";
            return Err(io::Error::new(io::ErrorKind::TimedOut, say));
        }
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<FileContent> {
        self.enter(path)?;
        let about = fs::metadata(path)?;
        let stamp = (about.modified().ok(), about.len());
        if self.stamps.get(path) == Some(&stamp) {
            return Ok(FileContent::Same);
        }
        let mut bytes = Vec::new();
        // One byte above the limit, so that the parser sees that the file is too long.
        fs::File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(FileContent::Read(stamp, bytes))
    }
}
