//! Copies of a store: made while it is in use, checked, and put back.
//!
//! Never in the process that has the store open: to close a file of SQLite by any other way ends its locks there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::audit::{self, AuditCheck};
use super::fault::{OpenError, of_io, of_sql};
use super::lock::{self, private};
use super::{beside, lease, open, turn};
use crate::memory::{Audit, Lease, StoreError, record};
use crate::model::ids::PoolName;
use crate::model::time::Time;

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSummary {
    pub schema: u32,
    pub pools: usize,
    /// Pools that were applied over the API.
    pub documents: usize,
    /// The last lease that was given.
    pub lease: Option<Lease>,
    /// Pools whose records cannot be read, and why.
    pub damaged: Vec<(PoolName, StoreError)>,
    pub audited: AuditCheck,
}

/// Copies the store at `from`, which may be in use, to a file of its own. What was there before is replaced at the end.
pub fn backup(from: &Path, to: &Path) -> Result<StoreSummary, OpenError> {
    let db = existing(from)?;
    if open::was_made(to) {
        return Err(OpenError::IsAStore { path: to.to_owned() });
    }
    if to.exists() {
        // A file that is no copy of a store is not written over.
        existing(to)?;
    }
    copy(&db, to)?;
    check(to)
}

/// Reads all of the store at `path`, which may be in use or a copy of one.
pub fn check(path: &Path) -> Result<StoreSummary, OpenError> {
    let db = existing(path)?;
    let failed = |source| of_sql(path.to_owned(), source);
    let schema = open::identify(&db, path)?;
    open::check(&db, path)?;
    db.pragma_update(None, "query_only", true).map_err(failed)?;
    let unread =
        |fault| OpenError::Unread { path: path.to_owned(), source: StoreError::from(fault) };
    let pools = turn::pools(&db).map_err(unread)?;
    let damaged = pools.iter().filter_map(|pool| {
        let fault = turn::load(&db, pool).err()?;
        Some((pool.clone(), fault.into()))
    });
    let damaged = damaged.collect();
    let documents =
        db.query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).map_err(failed)?;
    let lease = lease::current(&db).map_err(unread)?;
    let audited = audit::check(&db, schema).map_err(unread)?;
    Ok(StoreSummary { schema, pools: pools.len(), documents, lease, damaged, audited })
}

/// What putting a copy back came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    pub summary: StoreSummary,
    /// The store that was there before, if there was one.
    pub before: Option<PathBuf>,
}

/// Puts the copy in the place of the store at `path`, which no process may have open. The store that is there is kept
/// beside it, and a note of it until the next start.
pub fn restore(from: &Path, path: &Path, who: &str, at: Time) -> Result<Restoration, OpenError> {
    let failed = |source| of_io(path.to_owned(), source);
    let db = existing(from)?;
    let summary = check(from)?;
    if let Some((pool, source)) = summary.damaged.first() {
        let said = format!("pool {pool}: {source}").into();
        return Err(OpenError::Corrupt { path: from.to_owned(), said });
    }
    let folder = open::folder(path);
    if !folder.is_dir() {
        return Err(OpenError::FolderMissing { folder });
    }
    let _lock = lock::take(path, who, true)?;
    let (fresh, aside) = (beside(path, ".restored"), beside(path, ".before"));
    copy(&db, &fresh)?;
    let was_there = put_in_place(&fresh, path, &aside).map_err(failed)?;
    open::remember(path)?;
    note(path, &audit_line(from, who, at, summary.lease.as_ref()))?;
    Ok(Restoration { summary, before: was_there.then_some(aside) })
}

/// The audit gets this line at the next start: the copy keeps its chain as it is.
fn audit_line(from: &Path, who: &str, at: Time, lease: Option<&Lease>) -> Audit {
    // Nothing is written once the last lease is over.
    let knows = match lease {
        Some(lease) => format!("which remembers nothing after {}", lease.not_after),
        None => "which remembers nothing".to_owned(),
    };
    let why = format!("from {}, {knows}; what happened since is read from Azure", from.display());
    let (verb, on) = ("restore store".into(), "".into());
    let (why, came, consent) = (why.into(), "done".into(), None);
    Audit { at, who: who.into(), verb, pool: None, on, why, came, consent }
}

/// Lies beside a store that was put back, until a start has written into its audit what it says.
const NOTE: &str = ".restoration";

fn note(path: &Path, line: &Audit) -> Result<(), OpenError> {
    let at = beside(path, NOTE);
    let failed = |source| of_io(at.clone(), source);
    let text = record::write_audit(line).map_err(|error| failed(io::Error::other(error)))?;
    let file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&at);
    let mut file = file.map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// The line for the audit of a store that was put back; `None` where it was not since the last start.
pub fn restored(path: &Path) -> Result<Option<Audit>, OpenError> {
    let at = beside(path, NOTE);
    match fs::read_to_string(&at) {
        Ok(text) => {
            record::read_audit(&text).map(Some).map_err(|error| of_io(at, io::Error::other(error)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(of_io(at, error)),
    }
}

/// The audit has that line.
pub fn forget_restored(path: &Path) -> Result<(), OpenError> {
    let at = beside(path, NOTE);
    fs::remove_file(&at).map_err(|error| of_io(at, error))
}

/// One of ours, not empty.
fn existing(path: &Path) -> Result<Connection, OpenError> {
    if !path.is_file() {
        return Err(OpenError::NoStore { path: path.to_owned() });
    }
    open::look_like_one(path)?;
    let db = open::connect(path).map_err(|source| of_sql(path.to_owned(), source))?;
    match open::identify(&db, path)? {
        0 => Err(OpenError::NoStore { path: path.to_owned() }),
        _ => Ok(db),
    }
}

/// One picture of the store, on the disk and whole before it gets its name.
pub(super) fn copy(db: &Connection, to: &Path) -> Result<(), OpenError> {
    let part = beside(to, ".part");
    let failed = |source| of_io(to.to_owned(), source);
    if let Err(error) = fs::remove_file(&part)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    let file = private(OpenOptions::new().write(true).create_new(true)).open(&part);
    let file = file.map_err(failed)?;
    let name = part.to_str().ok_or_else(|| failed(io::Error::other("its name is no UTF-8")))?;
    let made = db.execute("VACUUM INTO ?1", [name]).map_err(|source| of_sql(to.to_owned(), source));
    let made = made.and_then(|_| {
        let copy = open::connect(&part).map_err(|source| of_sql(to.to_owned(), source))?;
        open::check(&copy, to)
    });
    if let Err(error) = made {
        // Half a copy is of no use; the error counts.
        let _left = fs::remove_file(&part);
        return Err(error);
    }
    file.sync_all().and_then(|()| fs::rename(&part, to)).map_err(failed)?;
    sync_folder(to).map_err(failed)
}

/// `fresh` takes the place of `path`, which is kept as `aside`. Cut off anywhere in between the store is missing, which a
/// start refuses. False: nothing was there.
fn put_in_place(fresh: &Path, path: &Path, aside: &Path) -> io::Result<bool> {
    let was_there = renamed(path, aside)?;
    for ending in ["-wal", "-shm"] {
        let (log, aside) = (beside(path, ending), beside(aside, ending));
        if !renamed(&log, &aside)? && was_there && aside.exists() {
            // It belongs to what was put aside before.
            fs::remove_file(aside)?;
        }
    }
    fs::rename(fresh, path)?;
    sync_folder(path)?;
    Ok(was_there)
}

/// False: it was not there.
fn renamed(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(open::folder(path))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
