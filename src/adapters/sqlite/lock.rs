//! One process per store: a lock file beside the store that contains the holder's name. The operating system releases
//! the lock when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::fault::{OpenError, of_io};
use super::files::{beside, private};

/// Maximum number of bytes of the holder's name that is shown.
const NAME_MOST: u64 = 200;

/// The lock is held as long as this value exists.
#[derive(Debug)]
pub(super) struct FileLock(#[expect(dead_code, reason = "its end is the end of the lock")] File);

/// Takes the lock of the store at `path`. `alone`: exclusively; otherwise shared with other non-exclusive holders.
pub(super) fn take(path: &Path, who: &str, alone: bool) -> Result<FileLock, OpenError> {
    let beside = beside(path, ".lock");
    let mut options = OpenOptions::new();
    let opened = private(options.read(true).write(true).create(true).truncate(false)).open(&beside);
    let mut file = opened.map_err(|source| of_io(path.to_owned(), source))?;
    let taken = if alone { file.try_lock() } else { file.try_lock_shared() };
    match taken {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::InUse { path: path.to_owned(), by: holder(&mut file) });
        }
        Err(TryLockError::Error(source)) => {
            return Err(OpenError::Lock { path: path.to_owned(), source });
        }
    }
    // Only the lock matters, the name is for people. A full disk that cannot store the name must not prevent a start.
    let _named = file.set_len(0).and_then(|()| file.write_all(who.as_bytes()));
    Ok(FileLock(file))
}

fn holder(file: &mut File) -> Box<str> {
    let mut name = String::new();
    let read =
        file.seek(SeekFrom::Start(0)).and_then(|_| file.take(NAME_MOST).read_to_string(&mut name));
    match read {
        Ok(1..) => name.trim().into(),
        _ => "another process".into(),
    }
}
