//! The token file: read at the start, and again when it changes. If the new content is not valid, the old tokens stay.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::ApiServerError;
use super::file_reader::FileReader;
use crate::api::http::auth::{Authentication, Oidc, TokenTable};
use crate::api::http::{Api, Rights, read_guarded};
use crate::daemon::board::Board;
use crate::daemon::health::ends_soon;
use crate::model::time::Time;

/// Its content, or why it could not be read. It holds hashes, never a token.
type Text = Result<String, Box<str>>;

pub(super) struct TokensFile {
    pub path: PathBuf,
    /// Content at the last check.
    pub text: Text,
    pub reader: FileReader,
    /// The last check found no token, although there was one before.
    pub was_empty: bool,
    /// The identity provider, accepted in addition to the file.
    pub oidc: Option<Arc<Oidc>>,
    pub board: Arc<Board>,
    /// Names with tokens that expire soon and are already logged.
    pub ending: Vec<Box<str>>,
}

/// At the start there is no earlier valid content, so a bad file is an error.
pub(super) async fn first(
    path: &Path,
    reader: &mut FileReader,
) -> Result<(TokenTable, String), ApiServerError> {
    let path = path.to_owned();
    let text = read(&path, reader).await;
    let text = text.map_err(|source| ApiServerError::Unread { path: path.clone(), source })?;
    let tokens =
        TokenTable::read(&text).map_err(|source| ApiServerError::Tokens { path, source })?;
    Ok((tokens, text))
}

async fn read(path: &Path, reader: &mut FileReader) -> io::Result<String> {
    let path = path.to_owned();
    let bytes = reader.read(move || read_guarded(&path, Rights::OnlyOwnerWrites)).await??;
    String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

impl TokensFile {
    pub async fn look(&mut self, api: &Api, now: Time) {
        if let Some(tokens) = self.others(now).await {
            api.replace_authentication(Authentication::Guarded { tokens, oidc: self.oidc.clone() });
        }
    }

    /// The tokens of the file, if it changed and is valid. A file without tokens counts as half written, unless two
    /// checks in a row see it.
    async fn others(&mut self, now: Time) -> Option<TokenTable> {
        self.say_ending(now);
        let text = read(&self.path, &mut self.reader).await;
        let text = text.map_err(|error| error.to_string().into());
        if text == self.text {
            self.was_empty = false;
            return None;
        }
        let file = self.path.display();
        let read = match &text {
            Ok(text) => TokenTable::read(text).map_err(|wrong| wrong.to_string()),
            Err(why) => Err(why.to_string()),
        };
        if read.as_ref().is_ok_and(TokenTable::is_empty) && !self.was_empty {
            self.was_empty = true;
            return None;
        }
        match &read {
            Ok(tokens) => {
                if tokens.is_empty() && self.oidc.is_none() {
                    tracing::warn!(%file, "the file holds no token: every request is refused");
                }
                self.show(tokens);
                tracing::info!(%file, "tokens were reloaded");
            }
            Err(why) => tracing::warn!(%file, "tokens stay as they were: {why}"),
        }
        self.board.set_status(|status| status.tokens_refused = read.is_err());
        (self.text, self.was_empty) = (text, false);
        self.say_ending(now);
        read.ok()
    }

    pub fn show(&self, tokens: &TokenTable) {
        self.board.set_status(|status| status.tokens = tokens.ends());
    }

    /// Logs each name once, until it has a token that lasts longer.
    pub fn say_ending(&mut self, now: Time) {
        let ends = self.board.status().tokens;
        let soon = ends.iter().filter(|(_, at)| ends_soon(**at, now));
        for (name, at) in soon.clone().filter(|(name, _)| !self.ending.contains(*name)) {
            tracing::warn!(%name, %at, "the tokens of this name expire soon; `poolkeeper create-token` creates another");
        }
        self.ending = soon.map(|(name, _)| name.clone()).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::super::file_reader::tests::hung;
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
            let (_, text) = first(&path, &mut FileReader::default()).await.unwrap();
            let (board, ending) = (Arc::new(Board::default()), Vec::new());
            let (text, reader, was_empty, oidc) = (Ok(text), stuck, false, None);
            let known = TokensFile {
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
        assert!(known.others(now).await.is_none() && board.status().tokens_refused);
        known.reader = FileReader::default();
        assert!(known.others(now).await.is_some() && !board.status().tokens_refused);
        std::fs::remove_file(&path).unwrap();
    }
}
