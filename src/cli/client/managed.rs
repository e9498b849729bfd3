//! The document of a pool, as the daemon manages it.

use serde_json::Value;

use super::{ServerLine, understood};
use crate::api::client::Request;
use crate::cli::exit::{CommandFailure, Exit};

/// A pool that the daemon manages.
#[derive(Debug)]
pub(in crate::cli) struct ManagedPool {
    /// As the daemon wrote it, with every default filled in.
    pub text: String,
    pub document: Value,
    /// The watched file that the pool comes from.
    pub file: Option<String>,
}

impl ServerLine {
    /// `None`: the daemon manages no pool of this name.
    pub fn managed(&self, pool: &str) -> Result<Option<ManagedPool>, CommandFailure> {
        let text = match self.send(&Request::get(&["pools", pool])) {
            Ok(text) => text,
            Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let document = understood(&text)?;
        let (_, status) = self.status(pool)?;
        let file = status.file.filter(|_| status.origin == "file");
        Ok(Some(ManagedPool { text, document, file }))
    }
}
