//! Failures of the store's file, and what to do about them.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;

use super::migrate::KNOWN;
use crate::memory::StoreError;
use crate::memory::record::RecordError;

/// Why a store could not be opened. The file is unchanged, except for completed migrations.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the folder {} of the store does not exist: create it, owned by the user who runs this, or name another file",
        folder.display()
    )]
    FolderMissing { folder: PathBuf },
    #[error(
        "{} cannot be written: give the user who runs this the right to write it and its folder, or name another file",
        path.display()
    )]
    NotWritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} cannot be written, only read: give the user who runs this the right to write it, or mount its disk for \
         writing",
        path.display()
    )]
    ReadOnly { path: PathBuf },
    #[error("{} is in use by {by}: one process a store; stop that one first", path.display())]
    InUse { path: PathBuf, by: Box<str> },
    #[error("{} cannot be locked: put the store on a local disk", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a database: name another file, or move this one away", path.display())]
    NotADatabase { path: PathBuf },
    #[error("{} is a database of another program: name another file", path.display())]
    Foreign { path: PathBuf },
    #[error(
        "{} has schema {found} and this program knows schema {KNOWN}: start the newer program again, or restore the \
         copy that it made beside the file (`poolkeeper store restore`), whose name ends in .schema-{KNOWN}",
        path.display()
    )]
    TooNew { path: PathBuf, found: u32 },
    #[error(
        "{} is damaged ({said}): restore it from a backup (`poolkeeper store restore`); without one, move it away with \
         its -wal and start once with store.create=allow, and all pools are as seen for the first time",
        path.display()
    )]
    Corrupt { path: PathBuf, said: Box<str> },
    #[error(
        "{} is missing or empty, and a store was there before: put it back (`poolkeeper store restore`); to forget all \
         holds, pauses, applied pools and what is under way, start once with store.create=allow",
        path.display()
    )]
    Lost { path: PathBuf },
    #[error(
        "{} is missing or empty, and store.create=refuse makes no new one: put it back (`poolkeeper store restore`)",
        path.display()
    )]
    Missing { path: PathBuf },
    #[error("{} holds no store", path.display())]
    NoStore { path: PathBuf },
    #[error("{} is the place of a store: name another file for the copy", path.display())]
    IsAStore { path: PathBuf },
    #[error("{} could not be read", path.display())]
    Unread {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
    #[error("the disk is full: make room where {} lies", path.display())]
    Full { path: PathBuf },
    #[error("{} could not be brought to schema {number}", path.display())]
    Migrate {
        path: PathBuf,
        number: u32,
        #[source]
        source: rusqlite::Error,
    },
    #[error("{} could not be opened", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the threads of the store could not be started")]
    Thread(#[source] io::Error),
}

/// Maps an I/O error of a file that could not be opened.
pub(super) fn of_io(path: PathBuf, source: io::Error) -> OpenError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path },
        io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
        _ => OpenError::NotWritable { path, source },
    }
}

/// Maps a database error of a file that could not be opened.
pub(super) fn of_sql(path: PathBuf, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, said: source.to_string().into() }
        }
        Some(ErrorCode::DiskFull) => OpenError::Full { path },
        Some(ErrorCode::ReadOnly) => OpenError::ReadOnly { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::InUse { path, by: "another program that keeps it locked".into() }
        }
        _ => OpenError::Open { path, source },
    }
}

/// Why a single read or write failed.
#[derive(Debug)]
pub(super) enum SqliteFault {
    /// The operation is invalid, or its lease has expired.
    Refused(StoreError),
    Record(RecordError),
    Sql(rusqlite::Error),
}

impl From<StoreError> for SqliteFault {
    fn from(error: StoreError) -> Self {
        SqliteFault::Refused(error)
    }
}

impl From<RecordError> for SqliteFault {
    fn from(error: RecordError) -> Self {
        SqliteFault::Record(error)
    }
}

impl From<rusqlite::Error> for SqliteFault {
    fn from(error: rusqlite::Error) -> Self {
        SqliteFault::Sql(error)
    }
}

impl From<SqliteFault> for StoreError {
    fn from(fault: SqliteFault) -> Self {
        match fault {
            SqliteFault::Refused(error) => error,
            SqliteFault::Record(error) => StoreError::Unavailable(error.to_string().into()),
            SqliteFault::Sql(error) => unavailable(&error),
        }
    }
}

const LOCKED: &str = "another process keeps the file locked; one that is stopped, frozen or paused in the middle of a write \
    does not give it up: let it go on, or end it";

const DAMAGED: &str = "the file is damaged; stop, and restore it from a backup";

/// Maps a database error of a failed read or write.
pub(super) fn unavailable(error: &rusqlite::Error) -> StoreError {
    let say = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full; make room and it goes on".into(),
        Some(ErrorCode::ReadOnly) => {
            "the file is read-only; make it writable and it goes on".into()
        }
        Some(ErrorCode::SystemIoFailure) => {
            "the disk does not read or write; the system log says why".into()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return StoreError::Lost(DAMAGED.into());
        }
        // A value that was written as text is no longer text.
        None if matches!(
            error,
            rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
        ) =>
        {
            DAMAGED.into()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LOCKED.into(),
        _ => error.to_string().into(),
    };
    StoreError::Unavailable(say)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_stays_is_said_to_be_that_of_a_process_that_does_not_move() {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        let said = unavailable(&rusqlite::Error::SqliteFailure(busy, None)).to_string();
        assert!(said.contains("stopped, frozen or paused") && said.ends_with("end it"), "{said}");
    }
}
