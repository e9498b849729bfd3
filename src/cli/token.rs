//! `token`: a new token for a person or a program, and its line for the tokens file of the one that serves.
//!
//! Never here: a token that is kept. It is printed once; the line holds its hash alone.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::args::with_exit_codes;
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::term::Style;
use crate::api::http::auth::{Role, tokens};
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Makes a token for the API, and its line for the tokens file";
const MORE: &str = "\
The token is 256 random bits and is shown once. The line goes into the tokens file of the Poolkeeper that serves; it \
holds a hash, which does not give the token back. Take the line away, and the token ends.

A name may have two tokens. To replace one: add the line of the new token under the same name, role and pools, put \
`expires=` with a time behind the line of the old one, give the new token to its owner, and take the old line away.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper token ann operator
  poolkeeper token shop operator --pools 'web-*,db' --expires 2027-01-31T00:00:00Z
  poolkeeper token ci viewer -o json | jq -r .line >> tokens";

#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = format!("{ABOUT}.\n\n{MORE}"), after_long_help = with_exit_codes(EXAMPLES))]
pub struct Token {
    /// Whose it is; every change is kept with this name
    name: String,

    /// What they may do
    #[arg(value_enum)]
    role: Wanted,

    /// When it ends, as 2027-01-31T12:00:00Z; it has no end where not given
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    /// Pools it is for, between commas, with * for any signs; all of the house where not given
    #[arg(long, value_name = "NAMES")]
    pools: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    /// Look
    Viewer,
    /// Look, and ask for verbs, holds and deletes
    Operator,
    /// All of that, and say which pools there are
    Admin,
}

impl Token {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let is_json = shell.one_document("token")?;
        let role = match self.role {
            Wanted::Viewer => Role::Viewer,
            Wanted::Operator => Role::Operator,
            Wanted::Admin => Role::Admin,
        };
        let refused = |error| match error {
            tokens::TokensError::Line { say, .. } => Failure::usage(say),
            other => Failure::new(Exit::Internal, "internal", other.to_string()),
        };
        let mut made = tokens::make(&self.name, role).map_err(refused)?;
        for (key, value) in [("expires", &self.expires), ("pools", &self.pools)] {
            if let Some(value) = value {
                made.line.push_str(&format!(" {key}={value}"));
            }
        }
        tokens::Tokens::read(&made.line).map_err(refused)?;
        if is_json {
            let (token, line) = (&made.token, &made.line);
            let document =
                json!({ "apiVersion": API_VERSION, "kind": "Token", "token": token, "line": line });
            shell.line(&document.to_string())?;
            return Ok(Exit::Done);
        }
        shell.say(
            Style::Cyan,
            "token",
            "keep it; it is not shown again. The line under it is for the tokens file; --help says how to replace a token",
        );
        shell.line(&made.token)?;
        shell.line(&made.line)?;
        Ok(Exit::Done)
    }
}
