//! The document of a pool, as the daemon manages it.

use serde_json::Value;

use super::{ServerLine, understood};
use crate::api::client::{ClientAnswer, Request};
use crate::api::v1::pool::PoolDocuments;
use crate::cli::exit::{CommandFailure, Exit};
use crate::model::policy::Policy;

#[derive(Debug)]
pub(in crate::cli) struct ManagedPool {
    /// As the daemon wrote it, with every default filled in.
    pub text: String,
    pub document: Value,
    /// Changes whenever the document does.
    pub tag: Option<String>,
}

impl ManagedPool {
    /// `None`: the daemon is of another version, whose documents this program does not know.
    pub fn policy(&self) -> Option<Policy> {
        PoolDocuments::default().read(&self.text, None).0.pop()
    }
}

impl ServerLine {
    /// `None`: the daemon manages no pool of this name.
    pub fn managed(&self, pool: &str) -> Result<Option<ManagedPool>, CommandFailure> {
        let ClientAnswer { text, tag } = match self.tagged(&Request::get(&["pools", pool])) {
            Ok(answer) => answer,
            Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let document = understood(&text)?;
        Ok(Some(ManagedPool { text, document, tag }))
    }

    /// The watched file that a managed pool comes from.
    pub fn watched_file(&self, pool: &str) -> Result<Option<String>, CommandFailure> {
        let (_, status) = self.status(pool)?;
        Ok(status.file.filter(|_| status.origin == "file"))
    }
}
