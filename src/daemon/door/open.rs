//! Starts the API server from settings, or says why it cannot.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::files::{Reader, Watch};
use super::tls::CertificateFiles;
use super::tokens::{self, TokensFile};
use super::{Front, oidc};
use crate::adapters::issuer::BadIssuer;
use crate::api::http::auth::{Door, Oidc, TokenTable, TokensError};
use crate::api::http::{Api, HttpListener, ListenError, Places};
use crate::daemon::board::Board;
use crate::daemon::run::{Daemon, Ticks};
use crate::daemon::settings::ApiAt;
use crate::memory::{Desk, Store};

#[derive(Debug, thiserror::Error)]
pub enum NoDoor {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("api.certificate and api.key go together: one of them is not set")]
    HalfSealed,
    #[error(
        "api.clientCertificates needs api.certificate and api.key, and api.tokens to say who comes"
    )]
    LoneClients,
    #[error("the certificate {path} or its key cannot be read: {source}")]
    Certificate { path: PathBuf, source: io::Error },
    #[error("the tokens file {path} cannot be read: {source}")]
    Unread { path: PathBuf, source: io::Error },
    #[error("the tokens file {path}: {source}")]
    Tokens { path: PathBuf, source: TokensError },
    #[error("oidc.issuer is set and oidc.{0} is not: no token would be accepted")]
    HalfOidc(&'static str),
    #[error("oidc.{0} is set, and oidc.issuer is not")]
    LoneOidc(&'static str),
    #[error("oidc.pools names {0}, and none of oidc.viewers, oidc.operators and oidc.admins does")]
    NoRole(Box<str>),
    #[error(
        "api.approvals is 2, and without api.tokens and oidc.issuer everyone has one name: name a file of tokens, or set it to 1"
    )]
    OnePerson,
    #[error(
        "this process may open {0} files and connections, and the API needs {least}: raise the limit (LimitNOFILE= of a unit, --ulimit nofile= of a container)",
        least = Places::DESCRIPTORS
    )]
    FewDescriptors(u64),
    #[error(transparent)]
    Issuer(#[from] BadIssuer),
}

/// Binds the port now; the server answers requests once the daemon runs and has read pool files and documents. `None`:
/// settings disable the API. `descriptors`: the process's limit of open files and connections.
pub async fn listen<S, C>(
    daemon: &mut Daemon<S, C>,
    descriptors: u64,
) -> Result<Option<SocketAddr>, NoDoor>
where
    S: Store + Desk + Send + Sync + 'static,
    C: Ticks,
{
    let every = daemon.settings().reload;
    fits(&daemon.settings().api)?;
    let ApiAt { listen, certificate, key, tokens, oidc, approvals, clients, proxies } =
        daemon.settings().api.clone();
    let Some(address) = listen else { return Ok(None) };
    // An error, not a warning: without enough descriptors, calls to the cloud fail later, at the worst moment.
    let places = Places::of(descriptors).ok_or(NoDoor::FewDescriptors(descriptors))?;
    let (board, clock) = (daemon.doors().board, daemon.doors().clock);
    let sealed =
        CertificateFiles::first(certificate, key, clients, Arc::clone(&board), clock.now()).await?;
    let oidc = oidc::open(oidc, daemon.trusted(), Arc::clone(&board))?;
    let (door, mut tokens) = guarded_by(tokens, oidc.as_ref(), board).await?;
    if let Some(tokens) = &mut tokens {
        tokens.say_ending(clock.now());
    }
    let seal = sealed.as_ref().map(|sealed| sealed.seal.clone());
    let watch = Watch { tokens, sealed, every, clock, again: daemon.again() };
    let doors = daemon.doors();
    let guarded = !door.is_open();
    let front = Front::new(doors.clone()).asking(approvals);
    let refusals = front.refusals();
    let api = Api::new(doors.store.clone(), front, door);
    let listening =
        HttpListener::at(address, seal, api.clone()).await?.with(places).behind(proxies);
    let address = listening.address();
    tracing::info!(%address, guarded, "the API listens");
    daemon.add_server("the API", |stopping| {
        Box::pin(async move {
            tokio::select! {
                () = doors.looked() => {}
                () = stopping.stopped() => return,
            }
            if let Some(oidc) = oidc {
                // Fetch the keys in the background, so that the first request finds them.
                drop(oidc.renew(doors.clock.now()));
            }
            tokio::select! {
                () = listening.serve(stopping.stopped()) => {}
                () = watch.keep(&api) => {}
                () = refusals.keep(doors.clock.clone()) => {}
            }
        })
    });
    Ok(Some(address))
}

/// Checks that settings that depend on each other are set together.
fn fits(api: &ApiAt) -> Result<(), NoDoor> {
    if api.clients.is_some() && api.tokens.is_none() {
        return Err(NoDoor::LoneClients);
    }
    if api.approvals > 1 && api.tokens.is_none() && api.oidc.issuer.is_none() {
        return Err(NoDoor::OnePerson);
    }
    Ok(())
}

/// Access control, and the token file behind it.
async fn guarded_by(
    tokens: Option<PathBuf>,
    oidc: Option<&Arc<Oidc>>,
    board: Arc<Board>,
) -> Result<(Door, Option<TokensFile>), NoDoor> {
    let oidc = oidc.map(Arc::clone);
    match (tokens, &oidc) {
        (Some(path), _) => {
            let mut reader = Reader::default();
            let (tokens, text) = tokens::first(&path, &mut reader).await?;
            let (ending, was_empty) = (Vec::new(), false);
            let (text, oidc_too) = (Ok(text), oidc.clone());
            let known = TokensFile { path, text, reader, was_empty, oidc: oidc_too, board, ending };
            known.show(&tokens);
            Ok((Door::Guarded { tokens, oidc }, Some(known)))
        }
        (None, Some(_)) => Ok((Door::Guarded { tokens: TokenTable::default(), oidc }, None)),
        (None, None) => Ok((Door::Open, None)),
    }
}
