//! The file of tokens: read at the start, and again when it changes. What is wrong with it then changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::open::NoDoor;
use crate::api::http::auth::{Door, Oidc, Tokens};
use crate::api::http::{Api, Rights, View, read_guarded};
use crate::daemon::board::Board;
use crate::memory::{Desk, Store};
use crate::model::time::Time;

/// What was read of it, or why it was not: hashes, never a token.
type Text = Result<String, Box<str>>;

pub(super) struct Known {
    pub path: PathBuf,
    /// As it was seen last.
    pub text: Text,
    /// It was without a token at the last look, where it had one before.
    pub was_empty: bool,
    /// Who is let in besides.
    pub oidc: Option<Arc<Oidc>>,
    pub board: Arc<Board>,
    /// The log has these names, whose tokens end soon.
    pub ending: Vec<Box<str>>,
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
    let read =
        tokio::task::spawn_blocking(move || read_guarded(&path, Rights::OnlyOwnerWrites)).await;
    let bytes = read.map_err(io::Error::other)??;
    String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

impl Known {
    /// A file without a token is one that is being written, unless it is seen twice.
    pub async fn look<S, V>(&mut self, api: &Api<S, V>, now: Time)
    where
        S: Store + Desk + Send + Sync + 'static,
        V: View,
    {
        self.say_ending(now);
        let text = read(&self.path).await.map_err(|error| error.to_string().into());
        if text == self.text {
            self.was_empty = false;
            return;
        }
        let file = self.path.display();
        match &text {
            Ok(text) => match Tokens::read(text) {
                Ok(tokens) if tokens.is_empty() && !self.was_empty => {
                    self.was_empty = true;
                    return;
                }
                Ok(tokens) => {
                    if tokens.is_empty() && self.oidc.is_none() {
                        tracing::warn!(%file, "there is no token left: nobody comes in");
                    }
                    self.show(&tokens);
                    api.replace_door(Door::Guarded { tokens, oidc: self.oidc.clone() });
                    tracing::info!(%file, "tokens were read anew");
                }
                Err(wrong) => tracing::warn!(%file, "tokens stay as they were: {wrong}"),
            },
            Err(why) => tracing::warn!(%file, "tokens stay as they were: {why}"),
        }
        (self.text, self.was_empty) = (text, false);
        self.say_ending(now);
    }

    pub fn show(&self, tokens: &Tokens) {
        self.board.set_house(|house| house.tokens = tokens.ends());
    }

    /// Each name once, until it has a token that lasts longer.
    pub fn say_ending(&mut self, now: Time) {
        let ends = self.board.house().tokens;
        let soon = ends.iter().filter(|(_, at)| super::ends_soon(**at, now));
        for (name, at) in soon.clone().filter(|(name, _)| !self.ending.contains(*name)) {
            tracing::warn!(%name, %at, "the tokens of this name end soon; `poolkeeper token` makes another");
        }
        self.ending = soon.map(|(name, _)| name.clone()).collect();
    }
}
