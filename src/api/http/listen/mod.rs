//! Sockets: which address may be listened on, how many connections are accepted, how long each step may take.
//!
//! An address that other hosts can reach needs TLS and authentication. A client that is slow with its handshake, its
//! request head or reading our answer is disconnected; a connection needs a place before it is accepted.

mod crowd;
mod ends;
mod error;
mod names;
mod patient;
mod proxies;
mod seal;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::Api;
use super::auth::{Authentication, ClientNames};
use crate::net::tls;
pub use crowd::Places;
use crowd::{Answering, Crowd, CrowdPlace, Visitor};
pub use error::ListenError;
use patient::Patient;
pub use proxies::Proxies;
pub use seal::{Certificate, Pair, Seal};

/// Longest wait for the head of the first request, after the handshake.
// 5 s: a client that connects has a request to send.
const FIRST_HEAD: Duration = Duration::from_secs(5);
/// Longest wait for the head of a later request. An idle connection ends after this too.
const HEAD: Duration = Duration::from_secs(15);
/// Longest head of a request, in bytes and in lines.
const HEAD_BYTES: usize = 32 << 10;
const HEAD_LINES: usize = 64;
/// How long requests in progress may take to finish after the listener stops.
const STOPPING: Duration = Duration::from_secs(5);
/// Delay before the next accept after the system refused a socket.
const BREATH: Duration = Duration::from_millis(100);

/// A bound port that is not served yet.
pub struct HttpListener {
    listener: TcpListener,
    seal: Option<Seal>,
    address: SocketAddr,
    places: Places,
    proxies: Proxies,
    api: Api,
}

impl std::fmt::Debug for HttpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpListener {
    pub async fn at(
        address: SocketAddr,
        seal: Option<Seal>,
        api: Api,
    ) -> Result<Self, ListenError> {
        may_stand(address, seal.is_some(), &api.authentication())?;
        let failed = |source| ListenError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, seal, address, places: Places::MOST, proxies: Proxies::default(), api })
    }

    /// Sets the number of connections.
    pub fn with(self, places: Places) -> Self {
        Self { places, ..self }
    }

    /// Sets the proxies whose forwarding headers are trusted.
    pub fn behind(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; then accepts nothing new, ends streams and lets requests in progress finish.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let crowd = Arc::new(Crowd::new(self.places, self.proxies));
        let stopping = self.api.stopping().clone();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stop => break,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            // Meanwhile the system's accept queue holds back further connections.
            let guest = tokio::select! {
                guest = crowd.enter(peer.ip()) => guest,
                () = &mut stop => break,
            };
            let Some(Visitor { place, cut }) = guest else { continue };
            let (api, tls) = (self.api.clone(), self.seal.as_ref().map(Seal::config));
            let stopping = stopping.subscribe();
            tokio::spawn(async move {
                tokio::select! {
                    () = welcome(api, tls, stream, peer.ip(), &place, stopping) => {}
                    _ = cut => {}
                }
            });
        }
        drop(self.listener);
        stopping.send_replace(true);
        // Clients that still read after that are cut off.
        let _all_or_time = tokio::time::timeout(STOPPING, crowd.is_gone()).await;
    }
}

fn may_stand(
    address: SocketAddr,
    is_sealed: bool,
    authentication: &Authentication,
) -> Result<(), ListenError> {
    let is_loopback = address.ip().to_canonical().is_loopback();
    match authentication {
        Authentication::Open if !is_loopback => Err(ListenError::Unguarded(address)),
        Authentication::Guarded { tokens, oidc: None } if tokens.is_empty() => {
            Err(ListenError::NoCredentials)
        }
        _ if !is_loopback && !is_sealed => Err(ListenError::Unsealed(address)),
        _ => Ok(()),
    }
}

async fn welcome(
    api: Api,
    tls: Option<Arc<ServerConfig>>,
    stream: TcpStream,
    peer: IpAddr,
    place: &Arc<CrowdPlace>,
    stopping: watch::Receiver<bool>,
) {
    // Answers are small and complete, so collecting packets (Nagle) gains nothing.
    let _kept_as_it_is = stream.set_nodelay(true);
    match tls {
        None => converse(api, stream, peer, ClientNames::default(), place, stopping).await,
        Some(config) => {
            if let Some(stream) = tls::handshake(config, stream).await {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let presented =
                    ClientNames(shown.map(|one| names::names(one)).unwrap_or_default().into());
                converse(api, stream, peer, presented, place, stopping).await;
            }
        }
    }
}

async fn converse<T>(
    api: Api,
    stream: T,
    peer: IpAddr,
    presented: ClientNames,
    place: &Arc<CrowdPlace>,
    mut stopping: watch::Receiver<bool>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, mut request) = (api.clone(), request.map(Body::new));
        request.extensions_mut().insert(presented.clone());
        let client = place.proxies().client(request.headers(), peer);
        let working = place.works();
        async move {
            let answer = api.answer(request, client).await;
            Ok::<_, Infallible>(answer.map(|body| Answering { body, _working: working }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_headers(HEAD_LINES)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    tokio::pin!(connection);
    let stopped = async {
        // An error means that the sender is gone, so no stop can arrive.
        let _told = stopping.wait_for(|stop| *stop).await;
    };
    let says_nothing = async {
        tokio::time::sleep(FIRST_HEAD).await;
        if !place.is_silent() {
            std::future::pending::<()>().await;
        }
    };
    // The client decides how a connection ends; errors are ignored.
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = says_nothing => return,
        () = stopped => connection.as_mut().graceful_shutdown(),
    }
    let _ended = tokio::time::timeout(STOPPING, connection).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::http::auth::{Role, TokenTable, tokens};

    #[test]
    fn an_address_that_others_reach_needs_tls_and_tokens() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let guarded = || {
            let made = tokens::make("ann", Role::Admin).unwrap();
            Authentication::Guarded { tokens: TokenTable::read(&made.line).unwrap(), oidc: None }
        };
        for open in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
            assert!(may_stand(address(open), false, &Authentication::Open).is_ok(), "{open}");
            assert!(may_stand(address(open), false, &guarded()).is_ok(), "{open}");
        }
        for reached in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:10.0.0.1]:1"] {
            let at = address(reached);
            for sealed in [false, true] {
                let refused = may_stand(at, sealed, &Authentication::Open);
                assert!(matches!(refused, Err(ListenError::Unguarded(_))), "{reached}");
            }
            let refused = may_stand(at, false, &guarded());
            assert!(matches!(refused, Err(ListenError::Unsealed(_))), "{reached}");
            assert!(may_stand(at, true, &guarded()).is_ok(), "{reached}");
        }
        let empty = Authentication::Guarded { tokens: TokenTable::default(), oidc: None };
        let refused = may_stand(address("127.0.0.1:1"), true, &empty);
        assert!(matches!(refused, Err(ListenError::NoCredentials)));
    }
}
