//! Files that settings name, read so that none of them can hold the daemon up.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The most that is read of such a file.
// 1 MiB: a chain of certificates is some kilobytes, and a thousand tokens are a hundred.
const MOST: u64 = 1 << 20;

/// The bytes of a plain file. To open a pipe would wait for its writer, and a device may never end.
pub fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok(bytes),
    }
}
