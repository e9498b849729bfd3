//! `create-token`: a new token for a person or a program, and its line for the tokens file of the running daemon.
//!
//! Never here: a stored token. The token is printed once; the line holds only its hash.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::Style;
use crate::api::http::auth::{Role, tokens};
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Creates a token for the API, and its line for the tokens file";
const MORE: &str = "\
The token is 256 random bits and is shown once. The line goes into the tokens file of the running daemon; it holds a \
hash, from which the token cannot be recovered. To revoke the token, remove the line.

A name may have two tokens. To replace one: add the line of the new token under the same name, role and pools, \
append `expires=` with a time to the line of the old one, give the new token to its owner, and remove the old line.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper create-token ann operator
  poolkeeper create-token shop operator --pools 'web-*,db' --expires 2027-01-31T00:00:00Z
  poolkeeper create-token ci viewer -o json | jq -r .line >> tokens";

#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = format!("{ABOUT}.\n\n{MORE}"), after_long_help = with_exit_codes(EXAMPLES))]
pub struct CreateToken {
    /// Name of the owner; recorded with every change the owner makes
    name: String,

    /// What the owner may do
    #[arg(value_enum)]
    role: TokenRole,

    /// Expiry time, such as 2027-01-31T12:00:00Z; by default the token does not expire
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,

    /// Comma-separated names of the pools it is for, with * as a wildcard; by default, all pools
    #[arg(long, value_name = "NAMES")]
    pools: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokenRole {
    /// Read only
    Viewer,
    /// Read, and request verbs, holds and deletes
    Operator,
    /// All of the above, and add, change and remove pools
    Admin,
}

impl CreateToken {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("create-token")?;
        let role = match self.role {
            TokenRole::Viewer => Role::Viewer,
            TokenRole::Operator => Role::Operator,
            TokenRole::Admin => Role::Admin,
        };
        let refused = |error| match error {
            tokens::TokensError::Line { say, .. } => CommandFailure::usage(say),
            other => CommandFailure::new(Exit::Internal, "internal", other.to_string()),
        };
        let mut made = tokens::make(&self.name, role).map_err(refused)?;
        for (key, value) in [("expires", &self.expires), ("pools", &self.pools)] {
            if let Some(value) = value {
                made.line.push_str(&format!(" {key}={value}"));
            }
        }
        tokens::TokenTable::read(&made.line).map_err(refused)?;
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
