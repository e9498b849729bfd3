//! Credential files. They are read again for each use because people and clusters renew them. A disk that hangs blocks
//! one thread and no task.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Why a file cannot be used. It reveals neither the file's path nor its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    #[error("cannot be read")]
    Unread,
    #[error("is no plain file")]
    NotPlain,
    #[error("is too long")]
    TooLong,
    #[error("can be read by others, or changed by them (`chmod go-w,o-r` ends that)")]
    Shared,
    /// An earlier read still waits.
    #[error("its disk does not answer")]
    Hangs,
}

/// Reads one file at a time, so that at most one thread waits for a disk that hangs.
#[derive(Debug)]
pub struct CredentialFiles(Arc<Semaphore>);

impl Default for CredentialFiles {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl CredentialFiles {
    /// The bytes of a regular file of at most this length.
    pub async fn read(&self, file: &Path, longest: u64) -> Result<Vec<u8>, FileFault> {
        self.read_with(file, longest, 0).await
    }

    /// The same of a file that only its owner and its group may read, and only its owner may write.
    pub async fn read_secret(&self, file: &Path, longest: u64) -> Result<Vec<u8>, FileFault> {
        self.read_with(file, longest, 0o026).await
    }

    /// `forbidden`: permissions that make the file unusable.
    async fn read_with(
        &self,
        file: &Path,
        longest: u64,
        forbidden: u32,
    ) -> Result<Vec<u8>, FileFault> {
        let Ok(reading) = Arc::clone(&self.0).try_acquire_owned() else {
            return Err(FileFault::Hangs);
        };
        let file = file.to_owned();
        let read = spawn_blocking(move || {
            let read = bytes(&file, longest, forbidden);
            drop(reading);
            read
        });
        read.await.unwrap_or(Err(FileFault::Unread))
    }
}

/// Reads regular files only: opening a pipe would wait for its writer, and a device may never end.
fn bytes(file: &Path, longest: u64, forbidden: u32) -> Result<Vec<u8>, FileFault> {
    let unread = |_| FileFault::Unread;
    let about = fs::metadata(file).map_err(unread)?;
    if !about.is_file() {
        return Err(FileFault::NotPlain);
    }
    if mode(&about) & forbidden != 0 {
        return Err(FileFault::Shared);
    }
    let mut bytes = Vec::new();
    let file = File::open(file).map_err(unread)?;
    file.take(longest.saturating_add(1)).read_to_end(&mut bytes).map_err(unread)?;
    match bytes.len() as u64 > longest {
        true => Err(FileFault::TooLong),
        false => Ok(bytes),
    }
}

#[cfg(unix)]
fn mode(about: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions())
}

#[cfg(not(unix))]
const fn mode(_: &fs::Metadata) -> u32 {
    0
}
