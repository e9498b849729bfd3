//! One process a store: a lock that the system takes back when its holder dies, beside the file, with the holder's name
//! in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::beside;
use super::fault::{OpenError, of_io};

/// Of the name in a lock file, as much as is shown.
const NAME_MOST: u64 = 200;

/// Held as long as it lives.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "its end is the end of the lock")] File);

/// A file that only its owner may read: what is kept in it is signed.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Take the lock of the store at `path`. `alone`: nobody else may have it open; else nobody who wants to be alone.
pub(super) fn take(path: &Path, who: &str, alone: bool) -> Result<Lock, OpenError> {
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
    // The name is for people, the lock is what counts: a full disk that does not take the name stops nobody.
    let _named = file.set_len(0).and_then(|()| file.write_all(who.as_bytes()));
    Ok(Lock(file))
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
