//! From a path to a trusted connection: locked, one of Poolkeeper's files, intact, with a known schema.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::connection::{BUSY, OURS, check, connect, copy, identify, look_like_one};
use super::fault::{OpenError, of_io, of_sql};
use super::files::{beside, private, sync_folder};
use super::migrate::{KNOWN, migrate};
use crate::model::ids::StoreId;

/// The interval between retries where SQLite itself does not wait.
const TRIES_AGAIN: Duration = Duration::from_millis(20);
/// A checkpoint truncates the write-ahead log to this size.
// 64 MiB: the first turn of a thousand pools at once. The log usually has a hundredth of that.
const LOG_KEPT: u64 = 64 << 20;

/// Whether a new store is created when the file is missing or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Only if no store existed there before.
    #[default]
    First,
    /// Even if one existed: everything it recorded is forgotten.
    Allow,
    Refuse,
}

/// The writing connection. Creates the file if it is missing.
pub(super) fn writer(
    path: &Path,
    may_create: Create,
    most_bytes: Option<u64>,
) -> Result<Connection, OpenError> {
    let failed = |source| of_sql(path.to_owned(), source);
    may_be_new(path, may_create)?;
    create(path)?;
    look_like_one(path)?;
    let db = connect(path).map_err(failed)?;
    let found = identify(&db, path)?;
    if found > 0 {
        check(&db, path)?;
    }
    if db.is_readonly(rusqlite::MAIN_DB).map_err(failed)? {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    if found == 0 {
        // Set this while the file is empty: later it would require rewriting the entire file.
        db.pragma_update(None, "auto_vacuum", "incremental").map_err(failed)?;
    }
    settle(&db, most_bytes).map_err(failed)?;
    if found == 0 {
        db.pragma_update(None, "application_id", OURS).map_err(failed)?;
    }
    if found > 0 && found < KNOWN {
        // An older program cannot read a migrated file. A rollback to that program needs this copy.
        copy(&db, &beside(path, &format!(".schema-{found}")))?;
    }
    migrate(&db, found).map_err(|stuck| match of_sql(path.to_owned(), stuck.source) {
        OpenError::Open { path, source } => {
            OpenError::Migrate { path, number: stuck.number, source }
        }
        known => known,
    })?;
    remember(path)?;
    Ok(db)
}

/// The store's id, which is assigned by the first schema that has one.
pub(super) fn id(db: &Connection, path: &Path) -> Result<StoreId, OpenError> {
    let id = db.query_row("SELECT id FROM installation", [], |row| row.get::<_, String>(0));
    id.map(StoreId::new).map_err(|source| of_sql(path.to_owned(), source))
}

/// A read-only connection. It does not wait for the writing one.
pub(super) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| of_sql(path.to_owned(), source);
    let db = connect(path).map_err(failed)?;
    db.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(db)
}

/// A file beside the store that records that a store was created, so that a lost store is not taken for a first start.
const TRACE: &str = ".created";

/// Rejects an empty or missing store if one existed before.
fn may_be_new(path: &Path, may_create: Create) -> Result<(), OpenError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    // Check the trace first: another process may be filling the same new file, and it writes its trace last.
    let trace = was_made(path) || length(&beside(path, "-wal")) > 0;
    let is_new = length(path) == 0;
    match may_create {
        Create::Refuse if is_new => Err(OpenError::Missing { path: path.to_owned() }),
        Create::First if is_new && trace => Err(OpenError::Lost { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Whether a store was ever created here.
pub(super) fn was_made(path: &Path) -> bool {
    beside(path, TRACE).exists()
}

pub(super) fn remember(path: &Path) -> Result<(), OpenError> {
    let failed = |source| of_io(path.to_owned(), source);
    private(OpenOptions::new().write(true).create(true).truncate(false))
        .open(beside(path, TRACE))
        .map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// Creates the file if it is missing, readable only by its owner: it contains signed operation URLs.
fn create(path: &Path) -> Result<(), OpenError> {
    let failed = |source| of_io(path.to_owned(), source);
    let made = private(OpenOptions::new().write(true).create_new(true)).open(path);
    match made {
        Ok(file) => {
            // A new file's name is durable only once its folder is synced.
            file.sync_all().map_err(failed)?;
            sync_folder(path).map_err(failed)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => close_to_others(path),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| of_io(path.to_owned(), source);
    let mut rights = std::fs::metadata(path).map_err(failed)?.permissions();
    if rights.mode() & 0o077 != 0 {
        rights.set_mode(rights.mode() & 0o700);
        std::fs::set_permissions(path, rights).map_err(failed)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_: &Path) -> Result<(), OpenError> {
    Ok(())
}

fn settle(db: &Connection, most_bytes: Option<u64>) -> Result<(), rusqlite::Error> {
    write_ahead(db)?;
    // FULL syncs the log before a commit returns. An intent must be on the disk before its call is sent: with NORMAL, a
    // power failure loses the last commits, and calls that are no longer recorded are sent again.
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "journal_size_limit", LOG_KEPT)?;
    if let Some(most) = most_bytes {
        let page: u64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
        // This pragma returns a row, so it must be a query.
        db.query_row(&format!("PRAGMA max_page_count = {}", most / page), [], |_| Ok(()))?;
    }
    Ok(())
}

/// In WAL mode, readers and the writer do not wait for each other. Switching a new file to WAL needs exclusive access
/// for a moment; if two processes start on one at once, SQLite rejects the second without waiting.
fn write_ahead(db: &Connection) -> Result<(), rusqlite::Error> {
    let mut tries = BUSY.as_millis() / TRIES_AGAIN.as_millis();
    loop {
        let turned = db.pragma_update(None, "journal_mode", "wal");
        let busy =
            |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        if tries == 0 || !turned.as_ref().is_err_and(busy) {
            return turned;
        }
        tries -= 1;
        // Opening blocks its thread by contract.
        std::thread::park_timeout(TRIES_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_synced_and_no_write_waits_for_readers() {
        let folder = std::env::temp_dir().join(format!("poolkeeper-open-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let db = writer(&folder.join("pools.db"), Create::First, None).unwrap();
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).unwrap();
        let mode: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        // 2 is FULL.
        assert_eq!((mode.as_str(), number("synchronous"), number("foreign_keys")), ("wal", 2, 1));
        drop(db);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
