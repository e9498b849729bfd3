//! Files that prove who we are. They are read anew for each token, since people and clusters renew them; a disk that hangs
//! holds up one thread and no task.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use azure_core::credentials::Secret;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::failed::Why;

/// The most that is read of such a file.
// 64 KiB: a key with a chain of certificates is some kilobytes.
const MOST: u64 = 64 << 10;

/// Reads one file at a time, so that no further thread waits for a disk that hangs.
#[derive(Debug)]
pub(super) struct SecretFiles(Arc<Semaphore>);

impl Default for SecretFiles {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl SecretFiles {
    /// The bytes of a plain file. `what` names it in errors, which hold nothing of its path or its text.
    pub async fn read(&self, file: &Path, what: &'static str) -> Result<Vec<u8>, Why> {
        let unusable = |say| Why::Unusable { what, say };
        let Ok(reading) = Arc::clone(&self.0).try_acquire_owned() else {
            return Err(Why::Unanswered("its disk does not answer"));
        };
        let file = file.to_owned();
        let read = spawn_blocking(move || {
            let read = bytes(&file);
            drop(reading);
            read
        });
        read.await.map_err(|_| unusable("cannot be read"))?.map_err(unusable)
    }

    /// The same of a secret: text, without the space around it.
    pub async fn read_secret(&self, file: &Path, what: &'static str) -> Result<Secret, Why> {
        let unusable = |say| Why::Unusable { what, say };
        let text = self.read(file, what).await?;
        let text = String::from_utf8(text).map_err(|_| unusable("is no text"))?;
        match text.trim() {
            "" => Err(unusable("is empty")),
            text => Ok(Secret::new(text.to_owned())),
        }
    }
}

/// To open a pipe would wait for its writer, and a device may never end.
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
