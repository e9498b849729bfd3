//! The file of tokens: read at the start, and again when it changes. What is wrong with it then changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Notify;

use super::open::NoDoor;
use crate::api::http::auth::{Door, Oidc, Tokens};
use crate::api::http::{Api, View};
use crate::daemon::run::Ticks;
use crate::memory::{Desk, Store};
use crate::model::time::Span;

/// What was read of it, or why it was not: hashes, never a token.
type Text = Result<String, io::ErrorKind>;

pub(super) struct Watched<C> {
    pub path: PathBuf,
    /// As it was seen last.
    pub text: Text,
    pub every: Span,
    pub clock: C,
    pub again: Arc<Notify>,
    /// Who is let in besides.
    pub oidc: Option<Arc<Oidc>>,
}

/// At the start there is no last good word: a bad file is an error.
pub(super) async fn first(path: &Path) -> Result<(Tokens, String), NoDoor> {
    let path = path.to_owned();
    let text = read(&path).await.map_err(|source| NoDoor::Unread { path: path.clone(), source })?;
    let tokens = Tokens::read(&text).map_err(|source| NoDoor::Tokens { path, source })?;
    Ok((tokens, text))
}

async fn read(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
    read.map_err(io::Error::other)?
}

impl<C: Ticks> Watched<C> {
    /// Never ends. A file without a token is one that is being written, unless it is seen twice.
    pub async fn keep<S, V>(mut self, api: &Api<S, V>)
    where
        S: Store + Desk + Send + Sync + 'static,
        V: View,
    {
        let mut was_empty = false;
        loop {
            let next = self.clock.now().plus(self.every);
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                () = self.again.notified() => {}
            }
            let text = read(&self.path).await.map_err(|error| error.kind());
            if text == self.text {
                was_empty = false;
                continue;
            }
            let file = self.path.display();
            match &text {
                Ok(text) => match Tokens::read(text) {
                    Ok(tokens) if tokens.is_empty() && !was_empty => {
                        was_empty = true;
                        continue;
                    }
                    Ok(tokens) => {
                        if tokens.is_empty() && self.oidc.is_none() {
                            tracing::warn!(%file, "there is no token left: nobody comes in");
                        }
                        api.replace_door(Door::Guarded { tokens, oidc: self.oidc.clone() });
                        tracing::info!(%file, "tokens were read anew");
                    }
                    Err(wrong) => {
                        tracing::warn!(%file, "tokens stay as they were: {wrong}");
                    }
                },
                Err(kind) => tracing::warn!(%file, "tokens stay as they were: {kind}"),
            }
            (self.text, was_empty) = (text, false);
        }
    }
}
