//! The certificate and its key: read at the start, and again when the files change. If the new files are not valid, the
//! old certificate stays in use and the daemon reports the fault.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ApiServerError;
use super::file_reader::FileReader;
use crate::api::http::{Certificate, Pair, Seal};
use crate::daemon::board::{Board, CertificateStatus};
use crate::model::time::Time;

/// Content of the files, or why they could not be read.
type TlsFiles = Result<Pair, String>;

#[derive(Debug)]
pub(super) struct CertificateFiles {
    chain: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    pub seal: Seal,
    /// Content at the last verdict.
    judged: TlsFiles,
    /// Content that was not valid at one check. Two files do not change atomically, so only a second check with the
    /// same content reports it.
    doubted: Option<TlsFiles>,
    reader: FileReader,
    board: Arc<Board>,
}

impl CertificateFiles {
    /// At the start there is no earlier certificate to keep, so a bad one is an error. `None`: settings name none.
    pub async fn first(
        chain: Option<PathBuf>,
        key: Option<PathBuf>,
        clients: Option<PathBuf>,
        board: Arc<Board>,
        now: Time,
    ) -> Result<Option<Self>, ApiServerError> {
        let (chain, key) = match (chain, key) {
            (Some(chain), Some(key)) => (chain, key),
            (None, None) if clients.is_some() => return Err(ApiServerError::LoneClients),
            (None, None) => return Ok(None),
            _ => return Err(ApiServerError::HalfSealed),
        };
        let mut reader = FileReader::default();
        let pair = read(&chain, &key, clients.as_deref(), &mut reader).await?;
        let certificate = pair.certificate()?;
        if let Some(ends) = certificate.ends().filter(|ends| *ends <= now) {
            tracing::warn!(%ends, "the certificate of the API has expired");
        }
        let (seal, judged) = (Seal::new(certificate), Ok(pair));
        let doubted = None;
        let this = Self { chain, key, clients, seal, judged, doubted, reader, board };
        this.show(false);
        Ok(Some(this))
    }

    /// Takes the current files if they changed and are valid.
    pub async fn look(&mut self, now: Time) {
        let read = read(&self.chain, &self.key, self.clients.as_deref(), &mut self.reader)
            .await
            .map_err(|error| error.to_string());
        if read == self.judged {
            self.doubted = None;
            return;
        }
        match self.judge(&read, now) {
            Ok(certificate) => {
                let ends = certificate.ends().map(|ends| ends.to_string());
                self.seal.replace(certificate);
                tracing::info!(ends, "the certificate of the API was reloaded");
                self.show(false);
            }
            Err(_) if self.doubted.as_ref() != Some(&read) => {
                self.doubted = Some(read);
                return;
            }
            Err(wrong) => {
                tracing::warn!("the certificate of the API stays as it was: {wrong}");
                self.show(true);
            }
        }
        (self.judged, self.doubted) = (read, None);
    }

    fn judge(&self, read: &TlsFiles, now: Time) -> Result<Certificate, String> {
        let pair = read.as_ref().map_err(String::clone)?;
        let certificate = pair.certificate().map_err(|error| error.to_string())?;
        let is_over = |ends: Option<Time>| ends.is_some_and(|ends| ends <= now);
        match certificate.ends().filter(|ends| *ends <= now) {
            Some(ends) if !is_over(self.seal.ends()) => Err(format!("the new one ended at {ends}")),
            _ => Ok(certificate),
        }
    }

    fn show(&self, refused: bool) {
        let seen = CertificateStatus { ends: self.seal.ends(), refused };
        self.board.set_status(|status| status.certificate = Some(seen));
    }
}

async fn read(
    chain: &Path,
    key: &Path,
    clients: Option<&Path>,
    reader: &mut FileReader,
) -> Result<Pair, ApiServerError> {
    let (chain, key, clients) = (chain.to_owned(), key.to_owned(), clients.map(Path::to_owned));
    let path = chain.clone();
    let read = reader.read(move || Pair::read(&chain, &key, clients.as_deref())).await;
    Ok(read.map_err(|source| ApiServerError::Certificate { path, source })??)
}

#[cfg(test)]
mod tests {
    use super::super::file_reader::tests::hung;
    use super::*;

    #[tokio::test]
    async fn a_certificate_of_a_disk_that_does_not_answer_is_an_error() {
        let (mut reader, _until_the_end) = hung().await;
        let said = read(Path::new("c.pem"), Path::new("k.pem"), None, &mut reader).await;
        let said = said.unwrap_err().to_string();
        let whole = "the certificate c.pem or its key cannot be read: its disk does not answer";
        assert_eq!(said, whole);
    }
}
