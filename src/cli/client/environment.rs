//! The environment of the commands that ask a server.

use std::env;

/// The end of the help text of these commands.
pub(in crate::cli) const ENVIRONMENT: &str = "\
Environment:
  POOLKEEPER_SERVER      the server, unless --server names one
  POOLKEEPER_CONTEXT     the context, unless --context or a server is named
  POOLKEEPER_TOKEN_FILE  a file that holds the token; or, without it,
  POOLKEEPER_TOKEN       the token itself
  POOLKEEPER_WHY         the reason for a request, unless --why gives one
  POOLKEEPER_CA_FILE     PEM file of additional certificates to trust
  POOLKEEPER_CLIENT_FILE the file of the contexts, unless it is
                         ~/.config/poolkeeper/client.yaml";

/// An environment variable, unless it is blank.
pub(in crate::cli) fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}
