//! The TLS certificate of the API, which can be replaced while connections are open.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::ends::ends;
use super::error::ListenError;
use crate::api::http::{Rights, read_guarded, read_plain};
use crate::model::time::Time;
use crate::net::tls;

/// Two PEM files as they were read: the chain and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    chain: (PathBuf, Vec<u8>),
    key: (PathBuf, Vec<u8>),
    /// Authorities whose client certificates are accepted.
    clients: Option<(PathBuf, Vec<u8>)>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("chain", &self.chain.0).finish_non_exhaustive()
    }
}

impl Pair {
    pub fn read(chain: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, ListenError> {
        let read = |path: &Path, read: io::Result<Vec<u8>>| match read {
            Ok(bytes) => Ok((path.to_owned(), bytes)),
            Err(error) => Err(unread(path, pem::Error::Io(error))),
        };
        Ok(Self {
            chain: read(chain, read_plain(chain))?,
            key: read(key, read_guarded(key, Rights::Secret))?,
            clients: clients
                .map(|path| read(path, read_guarded(path, Rights::OnlyOwnerWrites)))
                .transpose()?,
        })
    }

    /// `Err`: the files are not a certificate and its key.
    pub fn certificate(&self) -> Result<Certificate, ListenError> {
        let (path, bytes) = &self.chain;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
        let chain = chain.map_err(|source| unread(path, source))?;
        let (path, bytes) = &self.key;
        let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|source| unread(path, source))?;
        let clients = self.clients.as_ref().map(|(path, bytes)| authorities(path, bytes));
        Ok(Certificate::of(chain, key, clients.transpose()?)?)
    }
}

fn authorities(path: &Path, bytes: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ListenError> {
    let unfit = |say: String| ListenError::Clients { path: path.to_owned(), say };
    let mut roots = RootCertStore::empty();
    for one in CertificateDer::pem_slice_iter(bytes) {
        let one = one.map_err(|source| unread(path, source))?;
        roots.add(one).map_err(|error| unfit(error.to_string()))?;
    }
    // A client without a certificate may still have a token.
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), tls::provider());
    verifier.allow_unauthenticated().build().map_err(|error| unfit(error.to_string()))
}

fn unread(path: &Path, source: pem::Error) -> ListenError {
    ListenError::Read { path: path.to_owned(), source }
}

/// What the server presents, and when it expires.
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
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, rustls::Error> {
        let ends = chain.iter().filter_map(|one| ends(one)).min();
        Ok(Self { config: tls::server_config(chain, key, clients)?, ends })
    }

    /// The earliest expiry in the chain; `None`: no certificate has an expiry that we can read.
    pub fn ends(&self) -> Option<Time> {
        self.ends
    }
}

/// The certificate in use; a clone is another handle to the same one.
#[derive(Debug, Clone)]
pub struct Seal(Arc<RwLock<Certificate>>);

impl Seal {
    pub fn new(certificate: Certificate) -> Self {
        Self(Arc::new(RwLock::new(certificate)))
    }

    /// New connections get this certificate; existing connections continue.
    pub fn replace(&self, certificate: Certificate) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    pub fn ends(&self) -> Option<Time> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ends
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).config)
    }
}
