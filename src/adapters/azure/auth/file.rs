//! Credential files: certificates, tokens and secrets of our identity.

use std::path::Path;

use azure_core::credentials::Secret;

use super::failed::AuthFailureReason;
use crate::net::files::{CredentialFiles, FileFault};

/// Maximum number of bytes read from such a file.
// 64 KiB: a key with a certificate chain has a few kilobytes.
const MOST: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct SecretFiles(CredentialFiles);

impl SecretFiles {
    /// The bytes of a regular file. `what` names it in errors, which reveal neither its path nor its contents.
    pub async fn read(
        &self,
        file: &Path,
        what: &'static str,
    ) -> Result<Vec<u8>, AuthFailureReason> {
        let say = match self.0.read(file, MOST).await {
            Ok(bytes) => return Ok(bytes),
            Err(FileFault::Hangs) => {
                return Err(AuthFailureReason::Unanswered("its disk does not answer"));
            }
            Err(FileFault::Unread) => "cannot be read",
            Err(FileFault::NotPlain) => "is no plain file",
            Err(FileFault::TooLong) => "is longer than 64 KiB",
            Err(FileFault::Shared) => "can be read or changed by others",
        };
        Err(AuthFailureReason::Unusable { what, say })
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
