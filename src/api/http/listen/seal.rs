//! What is shown to those who come with TLS, and that it changes while connections live on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::ListenError;
use super::ends::ends;
use crate::api::http::{Rights, read_guarded, read_plain};
use crate::model::time::Time;

/// Two files in PEM, as they were read: the chain, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    chain: (PathBuf, Vec<u8>),
    key: (PathBuf, Vec<u8>),
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("chain", &self.chain.0).finish_non_exhaustive()
    }
}

impl Pair {
    pub fn read(chain: &Path, key: &Path) -> Result<Self, ListenError> {
        let read = |path: &Path, read: io::Result<Vec<u8>>| match read {
            Ok(bytes) => Ok((path.to_owned(), bytes)),
            Err(error) => Err(unread(path, pem::Error::Io(error))),
        };
        Ok(Self {
            chain: read(chain, read_plain(chain))?,
            key: read(key, read_guarded(key, Rights::Secret))?,
        })
    }

    /// `Err`: they are no certificate and its key.
    pub fn certificate(&self) -> Result<Certificate, ListenError> {
        let (path, bytes) = &self.chain;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
        let chain = chain.map_err(|source| unread(path, source))?;
        let (path, bytes) = &self.key;
        let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|source| unread(path, source))?;
        Ok(Certificate::of(chain, key)?)
    }
}

fn unread(path: &Path, source: pem::Error) -> ListenError {
    ListenError::Read { path: path.to_owned(), source }
}

/// What is shown, and when it ends.
#[derive(Clone)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    ends: Option<Time>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Certificate {
    pub fn of(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let ends = chain.iter().filter_map(|one| ends(one)).min();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), ends })
    }

    /// When the first of the chain is over; `None` where none says so in a way we read.
    pub fn ends(&self) -> Option<Time> {
        self.ends
    }
}

/// The certificate in use; a copy is another handle to the same.
#[derive(Debug, Clone)]
pub struct Seal(Arc<RwLock<Certificate>>);

impl Seal {
    pub fn new(certificate: Certificate) -> Self {
        Self(Arc::new(RwLock::new(certificate)))
    }

    /// Whoever comes from now on is shown this one; connections that were made before go on.
    pub fn replace(&self, certificate: Certificate) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    pub fn ends(&self) -> Option<Time> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ends
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&current.config))
    }
}
