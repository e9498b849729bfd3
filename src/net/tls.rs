//! TLS of every listener: ring, HTTP/1.1, and a limit for the handshake.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// `clients` checks the certificates that clients show; without it none is requested.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let config =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// `None`: the client failed the handshake, or took too long.
pub async fn handshake(
    config: Arc<ServerConfig>,
    stream: TcpStream,
) -> Option<TlsStream<TcpStream>> {
    let shaken = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await;
    shaken.ok()?.ok()
}
