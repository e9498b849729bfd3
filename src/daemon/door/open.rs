//! From settings to a door that stands open, or to the reason why it may not.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::Front;
use super::oidc;
use super::tokens::{self, Watched};
use crate::adapters::issuer::BadIssuer;
use crate::api::http::auth::{Door, Tokens, TokensError};
use crate::api::http::{Api, Certificate, ListenError, Listening};
use crate::daemon::run::{Daemon, Ticks};
use crate::daemon::settings::ApiAt;
use crate::memory::{Desk, Store};

#[derive(Debug, thiserror::Error)]
pub enum NoDoor {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("api.certificate and api.key go together: one of them is not set")]
    HalfSealed,
    #[error("the tokens file {path} cannot be read: {source}")]
    Unread { path: PathBuf, source: io::Error },
    #[error("the tokens file {path}: {source}")]
    Tokens { path: PathBuf, source: TokensError },
    #[error("oidc.issuer is set, and oidc.{0} is not: nobody could come in")]
    HalfOidc(&'static str),
    #[error("oidc.{0} is set, and oidc.issuer is not")]
    LoneOidc(&'static str),
    #[error(transparent)]
    Issuer(#[from] BadIssuer),
}

/// Takes the port now; requests are answered once the daemon runs and has looked at pool files and documents. `None`:
/// settings want no API.
pub async fn listen<S, C>(daemon: &mut Daemon<S, C>) -> Result<Option<SocketAddr>, NoDoor>
where
    S: Store + Desk + Send + Sync + 'static,
    C: Ticks,
{
    let every = daemon.settings().reload;
    let ApiAt { listen, certificate, key, tokens, oidc } = daemon.settings().api.clone();
    let Some(address) = listen else { return Ok(None) };
    let certificate = sealed(certificate.as_deref(), key.as_deref())?;
    let oidc = oidc::open(oidc, daemon.trusted(), daemon.doors().board)?;
    let (door, watched) = match tokens {
        Some(path) => {
            let (tokens, text) = tokens::first(&path).await?;
            let (clock, text) = (daemon.doors().clock, Ok(text));
            let (again, oidc) = (daemon.again(), oidc.clone());
            let watched = Watched { path, text, every, clock, again, oidc: oidc.clone() };
            (Door::Guarded { tokens, oidc }, Some(watched))
        }
        None if oidc.is_some() => {
            (Door::Guarded { tokens: Tokens::default(), oidc: oidc.clone() }, None)
        }
        None => (Door::Open, None),
    };
    let doors = daemon.doors();
    let guarded = !door.is_open();
    let api = Api::new(doors.store.clone(), Front::new(doors.clone()), door);
    let listening = Listening::at(address, certificate, api.clone()).await?;
    let address = listening.address();
    tracing::info!(%address, guarded, "the API listens");
    daemon.add_server("the API", |stopping| {
        Box::pin(async move {
            tokio::select! {
                () = doors.looked() => {}
                () = stopping.stopped() => return,
            }
            if let Some(oidc) = oidc {
                // Nobody waits for it; whoever comes first finds the keys there.
                drop(oidc.renew(doors.clock.now()));
            }
            let watching = async {
                match watched {
                    Some(watched) => watched.keep(&api).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = listening.serve(stopping.stopped()) => {}
                () = watching => {}
            }
        })
    });
    Ok(Some(address))
}

fn sealed(chain: Option<&Path>, key: Option<&Path>) -> Result<Option<Certificate>, NoDoor> {
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(Certificate::read(chain, key)?)),
        (None, None) => Ok(None),
        _ => Err(NoDoor::HalfSealed),
    }
}
