//! Checks whether the file is still the one that was opened. Writes to a file that was removed are lost, and another
//! process may lead with the file that has replaced it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::fault::{OpenError, of_io};
use super::files::beside;
use crate::memory::StoreError;

/// A database is never smaller than the smallest SQLite page.
const LEAST: u64 = 512;

#[derive(Debug)]
pub(super) struct FileWatch {
    /// Each file of the store, with its identity at the time of opening.
    files: Vec<(PathBuf, Identity)>,
    /// Minimum length of the first file. 0: unknown, because other processes write too.
    length: AtomicU64,
    alone: bool,
    /// Why the file is damaged. It counts as damaged until it is reopened.
    damaged: Mutex<Option<Box<str>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(about: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(about.dev(), about.ino())
    }

    /// Without inode numbers, only a removed file is detected.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self(0, 0)
    }
}

impl FileWatch {
    /// Records the files of the open store at `path`.
    pub fn begin(path: &Path, alone: bool, db: &Connection) -> Result<Self, OpenError> {
        let names = ["", "-wal", "-shm", ".lock"].map(|ending| beside(path, ending));
        let mut files = Vec::new();
        for name in names {
            match fs::metadata(&name) {
                Ok(about) => files.push((name, Identity::of(&about))),
                Err(error) if error.kind() == io::ErrorKind::NotFound && name != path => {}
                Err(error) => return Err(of_io(path.to_owned(), error)),
            }
        }
        let watch = Self { files, length: AtomicU64::new(0), alone, damaged: Mutex::default() };
        watch.wrote(db);
        Ok(watch)
    }

    /// Called before each write, by the writing thread.
    pub fn check(&self) -> Result<(), StoreError> {
        if let Some(why) = self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(StoreError::Lost(why));
        }
        for (path, before) in &self.files {
            let lost = |what: &str| {
                let say = format!(
                    "{} was {what} while it was in use; stop, put the store back, and start again",
                    path.display()
                );
                Err(StoreError::Lost(say.into()))
            };
            match fs::metadata(path) {
                Ok(about) if Identity::of(&about) != *before => return lost("replaced"),
                Ok(about) if self.is_first(path) && self.is_cut(about.len()) => return lost("cut"),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return lost("removed"),
                Err(error) => {
                    return Err(StoreError::Unavailable(
                        format!("{}: {error}", path.display()).into(),
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_first(&self, path: &Path) -> bool {
        self.files.first().is_some_and(|(first, _)| first == path)
    }

    fn is_cut(&self, length: u64) -> bool {
        length < LEAST.max(self.length.load(Ordering::Relaxed))
    }

    /// Called after each write, by the writing thread: nothing else changes the length of a file that is opened
    /// exclusively. A checkpoint by another program truncates the file only by what a commit freed. If the file is
    /// shorter than that, it was cut during this write: the previous length is kept, so that the next check detects it.
    pub fn wrote(&self, db: &Connection) {
        let Some((path, _)) = self.files.first().filter(|_| self.alone) else { return };
        if let (Ok(about), Some(committed)) = (fs::metadata(path), committed(db)) {
            let known = self.length.load(Ordering::Relaxed);
            self.length.store(about.len().max(known).min(committed), Ordering::Relaxed);
        }
    }

    /// Inspects the result of a read or a write. After damage is found, no later result is trusted. A removed file does
    /// not count as damage: it may be put back.
    pub fn note<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Lost(why)) = &done
            && self.check().is_ok()
        {
            *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
        }
        done
    }
}

/// The length of the file once all commits are checkpointed.
fn committed(db: &Connection) -> Option<u64> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u64>(0)).ok();
    Some(number("page_count")? * number("page_size")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_during_a_write_is_seen_by_the_next_check() {
        let folder = std::env::temp_dir().join(format!("poolkeeper-watch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("pools.db");
        let db = Connection::open(&path).unwrap();
        let fill = "PRAGMA journal_mode = WAL; CREATE TABLE t (a);
            INSERT INTO t SELECT randomblob(1000) FROM
                (WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n);
            PRAGMA wal_checkpoint(TRUNCATE);";
        db.execute_batch(fill).unwrap();
        let watch = FileWatch::begin(&path, true, &db).unwrap();
        watch.check().unwrap();
        db.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1_649).unwrap();
        watch.wrote(&db);
        assert!(matches!(watch.check(), Err(StoreError::Lost(say)) if say.contains("was cut")));
        drop(db);
        fs::remove_dir_all(&folder).unwrap();
    }
}
