//! Backups of a store: made while the store is in use, checked, and restored.
//!
//! Never in the process that has the store open: closing any other handle to an SQLite file drops that process's locks.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::audit::{self, AuditCheck};
use super::connection::{check as check_pages, connect, copy, identify, look_like_one};
use super::fault::{OpenError, of_io, of_sql};
use super::files::{beside, folder, private, sync_folder};
use super::{lease, lock, open, pool_rows};
use crate::memory::{AuditEntry, Lease, StoreError, record};
use crate::model::ids::PoolName;
use crate::model::time::Time;

/// A summary of a store's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSummary {
    pub schema: u32,
    pub pools: usize,
    /// Pools that were applied through the API.
    pub documents: usize,
    /// The last lease that was granted.
    pub lease: Option<Lease>,
    /// Pools with unreadable records, and the reason.
    pub damaged: Vec<(PoolName, StoreError)>,
    pub audited: AuditCheck,
}

/// Copies the store at `from`, which may be in use, to a separate file. An existing copy there is replaced at the end.
pub fn backup(from: &Path, to: &Path) -> Result<StoreSummary, OpenError> {
    let db = existing(from)?;
    if open::was_made(to) {
        return Err(OpenError::IsAStore { path: to.to_owned() });
    }
    if to.exists() {
        // Do not overwrite a file that is not a copy of a store.
        existing(to)?;
    }
    copy(&db, to)?;
    check(to)
}

/// Reads the entire store at `path`, which may be in use or be a copy.
pub fn check(path: &Path) -> Result<StoreSummary, OpenError> {
    let db = existing(path)?;
    let failed = |source| of_sql(path.to_owned(), source);
    let schema = identify(&db, path)?;
    check_pages(&db, path)?;
    db.pragma_update(None, "query_only", true).map_err(failed)?;
    let unread =
        |fault| OpenError::Unread { path: path.to_owned(), source: StoreError::from(fault) };
    let pools = pool_rows::pools(&db).map_err(unread)?;
    let damaged = pools.iter().filter_map(|pool| {
        let fault = pool_rows::load(&db, pool).err()?;
        Some((pool.clone(), fault.into()))
    });
    let damaged = damaged.collect();
    let documents =
        db.query_row("SELECT count(*) FROM documents", [], |row| row.get(0)).map_err(failed)?;
    let lease = lease::current(&db).map_err(unread)?;
    let audited = audit::check(&db, schema).map_err(unread)?;
    Ok(StoreSummary { schema, pools: pools.len(), documents, lease, damaged, audited })
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    pub summary: StoreSummary,
    /// Where the previous store was moved, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces the store at `path`, which no process may have open, with the copy. The previous store is kept beside it,
/// and so is a note of the restore until the next start.
pub fn restore(from: &Path, path: &Path, who: &str, at: Time) -> Result<Restoration, OpenError> {
    let failed = |source| of_io(path.to_owned(), source);
    let db = existing(from)?;
    let summary = check(from)?;
    if let Some((pool, source)) = summary.damaged.first() {
        let said = format!("pool {pool}: {source}").into();
        return Err(OpenError::Corrupt { path: from.to_owned(), said });
    }
    let folder = folder(path);
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

/// The next start writes this line to the audit. It is not written now because the copy keeps its chain as it is.
fn audit_line(from: &Path, who: &str, at: Time, lease: Option<&Lease>) -> AuditEntry {
    // No turn writes after the last lease has expired.
    let knows = match lease {
        Some(lease) => format!("which remembers nothing after {}", lease.not_after),
        None => "which remembers nothing".to_owned(),
    };
    let why = format!("from {}, {knows}; what happened since is read from Azure", from.display());
    let (verb, on) = ("restore store".into(), "".into());
    let (why, came, consent) = (why.into(), "done".into(), None);
    AuditEntry { at, who: who.into(), verb, pool: None, on, why, came, consent }
}

/// The file beside a restored store that holds the audit line, until a start has written that line to the audit.
const NOTE: &str = ".restoration";

fn note(path: &Path, line: &AuditEntry) -> Result<(), OpenError> {
    let at = beside(path, NOTE);
    let failed = |source| of_io(at.clone(), source);
    let text = record::write_audit(line).map_err(|error| failed(io::Error::other(error)))?;
    let file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&at);
    let mut file = file.map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// The audit line of a restored store. `None`: there was no restore since the last start.
pub fn restored(path: &Path) -> Result<Option<AuditEntry>, OpenError> {
    let at = beside(path, NOTE);
    match fs::read_to_string(&at) {
        Ok(text) => {
            record::read_audit(&text).map(Some).map_err(|error| of_io(at, io::Error::other(error)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(of_io(at, error)),
    }
}

/// Removes the note once the audit has its line.
pub fn forget_restored(path: &Path) -> Result<(), OpenError> {
    let at = beside(path, NOTE);
    fs::remove_file(&at).map_err(|error| of_io(at, error))
}

/// Opens a store that exists, is one of Poolkeeper's, and is not empty.
fn existing(path: &Path) -> Result<Connection, OpenError> {
    if !path.is_file() {
        return Err(OpenError::NoStore { path: path.to_owned() });
    }
    look_like_one(path)?;
    let db = connect(path).map_err(|source| of_sql(path.to_owned(), source))?;
    match identify(&db, path)? {
        0 => Err(OpenError::NoStore { path: path.to_owned() }),
        _ => Ok(db),
    }
}

/// Moves `path` to `aside` and `fresh` to `path`. If this is interrupted, the store is missing, and a start refuses
/// that. Returns false if there was no store at `path`.
fn put_in_place(fresh: &Path, path: &Path, aside: &Path) -> io::Result<bool> {
    let was_there = renamed(path, aside)?;
    for ending in ["-wal", "-shm"] {
        let (log, aside) = (beside(path, ending), beside(aside, ending));
        if !renamed(&log, &aside)? && was_there && aside.exists() {
            // It belongs to the store that an earlier restore moved aside.
            fs::remove_file(aside)?;
        }
    }
    fs::rename(fresh, path)?;
    sync_folder(path)?;
    Ok(was_there)
}

/// False: the file did not exist.
fn renamed(from: &Path, to: &Path) -> io::Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
