//! Why the API cannot listen.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "{0} is reachable from other machines, and no token is required: set api.tokens (`poolkeeper create-token` makes a line), or listen on the loopback address"
    )]
    Unguarded(SocketAddr),
    #[error(
        "{0} is reached by others, and tokens would travel unsealed: configure a certificate, or listen on the loopback"
    )]
    Unsealed(SocketAddr),
    #[error("no client would be accepted: there is no token and no identity provider")]
    NoCredentials,
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("{path} holds no certificate of an authority that is usable: {say}")]
    Clients { path: PathBuf, say: String },
    #[error("the certificate and its key do not fit: {0}")]
    Certificate(#[from] rustls::Error),
}
