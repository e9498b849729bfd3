//! The server of the API: started from settings, with the files of its tokens and of its certificate.
//!
//! Never here: a route, or what the API answers (the daemon's handle does). Begin with [`listen`].

mod error;
mod file_reader;
mod oidc;
mod reload;
mod tls;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use crate::api::http::ListenError;
pub use error::ApiServerError;

use super::board::Board;
use super::clock::MonotonicClock;
use super::handle::Handle;
use super::run::Daemon;
use super::settings::ApiAt;
use crate::api::http::auth::{Authentication, Oidc, TokenTable};
use crate::api::http::{Api, HttpListener, Places};
use crate::memory::{ApiStore, Store};
use file_reader::FileReader;
use reload::CredentialFiles;
use tls::CertificateFiles;
use tokens::TokensFile;

/// Binds the port now; the server answers requests once the daemon runs and has read pool files and documents. `None`:
/// settings disable the API. `descriptors`: the process's limit of open files and connections.
pub async fn listen<S, C>(
    daemon: &mut Daemon<S, C>,
    descriptors: u64,
) -> Result<Option<SocketAddr>, ApiServerError>
where
    S: Store + ApiStore + Send + Sync + 'static,
    C: MonotonicClock,
{
    let every = daemon.settings.reload;
    fits(&daemon.settings.api)?;
    let ApiAt { listen, certificate, key, tokens, oidc, clients, proxies, .. } =
        daemon.settings.api.clone();
    let Some(address) = listen else { return Ok(None) };
    // An error, not a warning: without enough descriptors, calls to the cloud fail later, at the worst moment.
    let places = Places::of(descriptors).ok_or(ApiServerError::FewDescriptors(descriptors))?;
    let handle = daemon.handle();
    let (board, clock) = (Arc::clone(&handle.board), handle.clock.clone());
    let sealed =
        CertificateFiles::first(certificate, key, clients, Arc::clone(&board), clock.now()).await?;
    let oidc = oidc::open(oidc, daemon.trusted.as_deref(), Arc::clone(&board))?;
    let (authentication, mut tokens) = guarded_by(tokens, oidc.as_ref(), board).await?;
    if let Some(tokens) = &mut tokens {
        tokens.say_ending(clock.now());
    }
    let seal = sealed.as_ref().map(|sealed| sealed.seal.clone());
    let credentials =
        CredentialFiles { tokens, sealed, every, clock, again: Arc::clone(&daemon.again) };
    let guarded = !authentication.is_open();
    let backend = Arc::<Handle<S, C>>::clone(&handle);
    let api = Api::new(Arc::clone(&handle.store), backend, authentication);
    let listening =
        HttpListener::at(address, seal, api.clone()).await?.with(places).behind(proxies);
    let address = listening.address();
    tracing::info!(%address, guarded, "the API listens");
    daemon.add_server("the API", |stopping| {
        Box::pin(async move {
            tokio::select! {
                () = handle.scanned() => {}
                () = stopping.stopped() => return,
            }
            if let Some(oidc) = oidc {
                // Fetch the keys in the background, so that the first request finds them.
                drop(oidc.renew(handle.clock.now()));
            }
            tokio::select! {
                () = listening.serve(stopping.stopped()) => {}
                () = credentials.keep(&api) => {}
                () = handle.refused_requests.keep(&handle.clock) => {}
            }
        })
    });
    Ok(Some(address))
}

/// Checks that settings that depend on each other are set together.
fn fits(api: &ApiAt) -> Result<(), ApiServerError> {
    if api.clients.is_some() && api.tokens.is_none() {
        return Err(ApiServerError::LoneClients);
    }
    if api.approvals > 1 && api.tokens.is_none() && api.oidc.issuer.is_none() {
        return Err(ApiServerError::OnePerson);
    }
    Ok(())
}

/// Access control, and the token file behind it.
async fn guarded_by(
    tokens: Option<PathBuf>,
    oidc: Option<&Arc<Oidc>>,
    board: Arc<Board>,
) -> Result<(Authentication, Option<TokensFile>), ApiServerError> {
    let oidc = oidc.map(Arc::clone);
    match (tokens, &oidc) {
        (Some(path), _) => {
            let mut reader = FileReader::default();
            let (tokens, text) = tokens::first(&path, &mut reader).await?;
            let (ending, was_empty) = (Vec::new(), false);
            let (text, oidc_too) = (Ok(text), oidc.clone());
            let known = TokensFile { path, text, reader, was_empty, oidc: oidc_too, board, ending };
            known.show(&tokens);
            Ok((Authentication::Guarded { tokens, oidc }, Some(known)))
        }
        (None, Some(_)) => {
            Ok((Authentication::Guarded { tokens: TokenTable::default(), oidc }, None))
        }
        (None, None) => Ok((Authentication::Open, None)),
    }
}
