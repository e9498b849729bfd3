//! Listens on the loopback, plain or with TLS: with a given certificate, or one generated at the start.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::{Listener, ListenerExt};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::server::TlsStream;

use super::Emulator;
use crate::net::tls::{handshake, server_config};

/// Completed handshakes that wait to be served.
const WAITING: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum EmulatorServeError {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("{0} is not a loopback address: the emulator gives a token to every client")]
    NotLoopback(SocketAddr),
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("the certificate and its key do not fit: {0}")]
    Certificate(#[from] rustls::Error),
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the listener ended: {0}")]
    Ended(io::Error),
}

/// The TLS configuration of the listener.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// In PEM. A client that trusts it trusts this emulator and nothing else.
    pub authority: Option<String>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// A certificate for localhost, signed by an authority that is generated now and never stored.
    pub fn made() -> Result<Self, EmulatorServeError> {
        let authority_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Poolkeeper emulator");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key)?;
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        params.subject_alt_names.extend(addresses.map(SanType::IpAddress));
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der())
            .map_err(|why| rustls::Error::General(why.to_owned()))?;
        let chain = vec![certificate.der().clone(), authority.der().clone()];
        Ok(Self { config: server_config(chain, key, None)?, authority: Some(authority.pem()) })
    }

    /// From PEM files.
    pub fn given(certificate: &Path, key: &Path) -> Result<Self, EmulatorServeError> {
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |source| EmulatorServeError::Read { path, source }
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(unread(certificate))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(unread(key))?;
        Ok(Self { config: server_config(chain, key, None)?, authority: None })
    }
}

/// A bound port that is not served yet.
#[derive(Debug)]
pub struct EmulatorListener {
    listener: TcpListener,
    tls: Option<Tls>,
    address: SocketAddr,
}

impl EmulatorListener {
    pub async fn at(address: SocketAddr, tls: Option<Tls>) -> Result<Self, EmulatorServeError> {
        if !address.ip().is_loopback() {
            return Err(EmulatorServeError::NotLoopback(address));
        }
        let failed = |source| EmulatorServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, tls, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped or the listener fails.
    pub async fn serve(self, emulator: Emulator) -> Result<(), EmulatorServeError> {
        let router = router(emulator, self.tls.is_some());
        let served = match self.tls {
            None => {
                let listener = self.listener.tap_io(|stream| {
                    // Answers are small and complete; delaying them to merge packets gains nothing.
                    let _kept_as_it_is = stream.set_nodelay(true);
                });
                axum::serve(listener, router).await
            }
            Some(tls) => {
                axum::serve(Handshakes::begin(self.listener, tls, self.address), router).await
            }
        };
        served.map_err(EmulatorServeError::Ended)
    }
}

fn router(emulator: Emulator, is_tls: bool) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let emulator = emulator.clone();
        async move { emulator.answer(request, is_tls).await }
    })
}

/// Connections after their handshake; a slow handshake does not block others.
struct Handshakes {
    done: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl Handshakes {
    fn begin(listener: TcpListener, tls: Tls, address: SocketAddr) -> Self {
        let (send, done) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            // The trait's own accept retries after system errors.
            let mut listener = listener;
            while !send.is_closed() {
                let (stream, peer) = Listener::accept(&mut listener).await;
                let (config, send) = (Arc::clone(&tls.config), send.clone());
                tokio::spawn(async move {
                    let _kept_as_it_is = stream.set_nodelay(true);
                    if let Some(stream) = handshake(config, stream).await {
                        // The server has stopped: the connection just closes.
                        let _unserved = send.send((stream, peer)).await;
                    }
                });
            }
        });
        Self { done, address }
    }
}

impl Listener for Handshakes {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.done.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
