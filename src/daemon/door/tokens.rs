//! The file of tokens: read at the start, and again when it changes. What is wrong with it then changes nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::Reader;
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
    pub reader: Reader,
    /// It was without a token at the last look, where it had one before.
    pub was_empty: bool,
    /// Who is let in besides.
    pub oidc: Option<Arc<Oidc>>,
    pub board: Arc<Board>,
    /// The log has these names, whose tokens end soon.
    pub ending: Vec<Box<str>>,
}

/// At the start there is no last good word: a bad file is an error.
pub(super) async fn first(path: &Path, reader: &mut Reader) -> Result<(Tokens, String), NoDoor> {
    let path = path.to_owned();
    let text = read(&path, reader).await;
    let text = text.map_err(|source| NoDoor::Unread { path: path.clone(), source })?;
    let tokens = Tokens::read(&text).map_err(|source| NoDoor::Tokens { path, source })?;
    Ok((tokens, text))
}

async fn read(path: &Path, reader: &mut Reader) -> io::Result<String> {
    let path = path.to_owned();
    let bytes = reader.read(move || read_guarded(&path, Rights::OnlyOwnerWrites)).await??;
    String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

impl Known {
    pub async fn look<S, V>(&mut self, api: &Api<S, V>, now: Time)
    where
        S: Store + Desk + Send + Sync + 'static,
        V: View,
    {
        if let Some(tokens) = self.others(now).await {
            api.replace_door(Door::Guarded { tokens, oidc: self.oidc.clone() });
        }
    }

    /// The tokens of the file, where it is otherwise than it was and sound. A file without a token is one that is being
    /// written, unless it is seen twice.
    async fn others(&mut self, now: Time) -> Option<Tokens> {
        self.say_ending(now);
        let text = read(&self.path, &mut self.reader).await;
        let text = text.map_err(|error| error.to_string().into());
        if text == self.text {
            self.was_empty = false;
            return None;
        }
        let file = self.path.display();
        let read = match &text {
            Ok(text) => Tokens::read(text).map_err(|wrong| wrong.to_string()),
            Err(why) => Err(why.to_string()),
        };
        if read.as_ref().is_ok_and(Tokens::is_empty) && !self.was_empty {
            self.was_empty = true;
            return None;
        }
        match &read {
            Ok(tokens) => {
                if tokens.is_empty() && self.oidc.is_none() {
                    tracing::warn!(%file, "the file holds no token: every request is refused");
                }
                self.show(tokens);
                tracing::info!(%file, "tokens were read anew");
            }
            Err(why) => tracing::warn!(%file, "tokens stay as they were: {why}"),
        }
        self.board.set_house(|house| house.tokens_refused = read.is_err());
        (self.text, self.was_empty) = (text, false);
        self.say_ending(now);
        read.ok()
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

#[cfg(test)]
mod tests {
    use super::super::files::tests::hung;
    use super::*;
    use crate::api::http::auth::{Role, tokens};

    #[tokio::test]
    async fn tokens_of_a_disk_that_does_not_answer_stay_and_are_a_trouble() {
        let path = std::env::temp_dir().join(format!("poolkeeper-tokens-{}", std::process::id()));
        let line = tokens::make("ann", Role::Viewer).unwrap().line;
        std::fs::write(&path, &line).unwrap();
        let (mut stuck, _until_the_end) = hung().await;
        let refused = first(&path, &mut stuck).await.unwrap_err().to_string();
        assert!(refused.ends_with("cannot be read: its disk does not answer"), "{refused}");
        let (mut known, board, now) = {
            let (_, text) = first(&path, &mut Reader::default()).await.unwrap();
            let (board, ending) = (Arc::new(Board::default()), Vec::new());
            let (text, reader, was_empty, oidc) = (Ok(text), stuck, false, None);
            let known = Known {
                path: path.clone(),
                text,
                reader,
                was_empty,
                oidc,
                board: Arc::clone(&board),
                ending,
            };
            (known, board, Time::from_millis(0))
        };
        assert!(known.others(now).await.is_none() && board.house().tokens_refused);
        known.reader = Reader::default();
        assert!(known.others(now).await.is_some() && !board.house().tokens_refused);
        std::fs::remove_file(&path).unwrap();
    }
}
