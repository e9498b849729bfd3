//! One connection to one file: whether the file is Poolkeeper's, whether it is intact, and a copy of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::{OpenError, of_io, of_sql};
use super::files::{beside, private, sync_folder};
use super::migrate::KNOWN;

/// The application id in the file: "PoKe".
pub(super) const OURS: u32 = 0x506f_4b65;
/// The first bytes of every SQLite database.
const HEAD: &[u8] = b"SQLite format 3\0";
/// How long a write waits for another program that uses the file, for example a backup.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// Size of a connection's statement cache: enough for all statements.
const STATEMENTS: usize = 128;

pub(super) fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

/// SQLite takes a file with a few bytes of other data for an empty database and would overwrite it.
pub(super) fn look_like_one(path: &Path) -> Result<(), OpenError> {
    let mut head = Vec::with_capacity(HEAD.len());
    let file = File::open(path).map_err(|source| of_io(path.to_owned(), source))?;
    match file.take(HEAD.len() as u64).read_to_end(&mut head) {
        Ok(_) if head.is_empty() || head == HEAD => Ok(()),
        Ok(_) => Err(OpenError::NotADatabase { path: path.to_owned() }),
        Err(source) => Err(of_io(path.to_owned(), source)),
    }
}

/// The schema of the file, or 0 if it is empty. Fails for files of other programs and for newer schemas.
pub(super) fn identify(db: &Connection, path: &Path) -> Result<u32, OpenError> {
    let failed = |source| of_sql(path.to_owned(), source);
    // A single statement reads one snapshot: another process may be filling the same new file.
    let sql = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) \
               FROM pragma_application_id, pragma_user_version";
    let numbers = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (whose, found, tables): (u32, u32, u32) = db.query_row(sql, [], numbers).map_err(failed)?;
    match whose {
        OURS if found > KNOWN => Err(OpenError::TooNew { path: path.to_owned(), found }),
        OURS => Ok(found),
        0 if tables == 0 && found == 0 => Ok(0),
        _ => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

/// Checks that every page is reachable, intact and in order.
pub(super) fn check(db: &Connection, path: &Path) -> Result<(), OpenError> {
    let said = db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match said {
        Ok(said) if said == "ok" => Ok(()),
        Ok(said) => Err(OpenError::Corrupt { path: path.to_owned(), said: said.into() }),
        Err(source) => Err(of_sql(path.to_owned(), source)),
    }
}

/// A snapshot of the store. It is checked and on the disk before it gets its name.
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
        let copy = connect(&part).map_err(|source| of_sql(to.to_owned(), source))?;
        check(&copy, to)
    });
    if let Err(error) = made {
        // A partial copy is useless, and the first error is the one to report.
        let _left = fs::remove_file(&part);
        return Err(error);
    }
    file.sync_all().and_then(|()| fs::rename(&part, to)).map_err(failed)?;
    sync_folder(to).map_err(failed)
}
