//! Credential files. They are read again for each token because people and clusters renew them. A disk that hangs
//! blocks one thread and no task.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use azure_core::credentials::Secret;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::failed::AuthFailureReason;

/// Maximum number of bytes read from such a file.
// 64 KiB: a key with a certificate chain has a few kilobytes.
const MOST: u64 = 64 << 10;

/// Reads one file at a time, so that at most one thread waits for a disk that hangs.
#[derive(Debug)]
pub(super) struct SecretFiles(Arc<Semaphore>);

impl Default for SecretFiles {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl SecretFiles {
    /// The bytes of a regular file. `what` names it in errors, which reveal neither its path nor its contents.
    pub async fn read(
        &self,
        file: &Path,
        what: &'static str,
    ) -> Result<Vec<u8>, AuthFailureReason> {
        let unusable = |say| AuthFailureReason::Unusable { what, say };
        let Ok(reading) = Arc::clone(&self.0).try_acquire_owned() else {
            return Err(AuthFailureReason::Unanswered("its disk does not answer"));
        };
        let file = file.to_owned();
        let read = spawn_blocking(move || {
            let read = bytes(&file);
            drop(reading);
            read
        });
        read.await.map_err(|_| unusable("cannot be read"))?.map_err(unusable)
    }

    /// Reads a secret as text and trims white space.
    pub async fn read_secret(
        &self,
        file: &Path,
        what: &'static str,
    ) -> Result<Secret, AuthFailureReason> {
        let unusable = |say| AuthFailureReason::Unusable { what, say };
        let text = self.read(file, what).await?;
        let text = String::from_utf8(text).map_err(|_| unusable("is no text"))?;
        match text.trim() {
            "" => Err(unusable("is empty")),
            text => Ok(Secret::new(text.to_owned())),
        }
    }
}

/// Reads regular files only: opening a pipe would wait for its writer, and a device may never end.
fn bytes(file: &Path) -> Result<Vec<u8>, &'static str> {
    const UNREAD: &str = "cannot be read";
    if !fs::metadata(file).map_err(|_| UNREAD)?.is_file() {
        return Err("is no plain file");
    }
    let mut bytes = Vec::new();
    let file = File::open(file).map_err(|_| UNREAD)?;
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|_| UNREAD)?;
    match bytes.len() as u64 > MOST {
        true => Err("is longer than 64 KiB"),
        false => Ok(bytes),
    }
}
