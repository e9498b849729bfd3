//! `version`: which build this is.

use std::sync::LazyLock;

use clap::Args;
use serde_json::json;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Prints the version, and the commit it was built from";
const MORE: &str = "\
Prints the version of this program. A release also knows the commit that it was built from, and its date.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper version
  poolkeeper version -o json | jq -r .commit";

/// What the build says of itself, if it sets these variables.
const COMMIT: Option<&str> = option_env!("POOLKEEPER_COMMIT");
const DATE: Option<&str> = option_env!("POOLKEEPER_DATE");
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct VersionCommand {}

impl VersionCommand {
    #[expect(clippy::unused_self, reason = "every command runs alike")]
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        if shell.one_document("version")? {
            let document = json!({
                "apiVersion": API_VERSION,
                "kind": "Version",
                "version": VERSION,
                "commit": given(COMMIT),
                "date": given(DATE),
            });
            shell.line(&document.to_string())?;
        } else {
            shell.line(&format!("poolkeeper {}", long()))?;
        }
        Ok(Exit::Done)
    }
}

/// The version with the origin of the build, on two lines.
pub fn long() -> &'static str {
    static LONG: LazyLock<String> =
        LazyLock::new(|| format!("{VERSION}\n{}", origin(given(COMMIT), given(DATE))));
    &LONG
}

/// An empty variable says nothing.
fn given(variable: Option<&'static str>) -> Option<&'static str> {
    variable.map(str::trim).filter(|text| !text.is_empty())
}

fn origin(commit: Option<&str>, date: Option<&str>) -> String {
    match (commit, date) {
        (Some(commit), Some(date)) => format!("commit {commit} of {date}"),
        (Some(commit), None) => format!("commit {commit}"),
        (None, Some(date)) => format!("built from source of {date}"),
        (None, None) => "built from source".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_says_where_it_comes_from() {
        assert_eq!(origin(Some("cb0a38c"), Some("2026-11-25")), "commit cb0a38c of 2026-11-25");
        assert_eq!(origin(Some("cb0a38c"), None), "commit cb0a38c");
        assert_eq!(origin(None, None), "built from source");
        assert_eq!((given(Some(" ")), given(Some("a")), given(None)), (None, Some("a"), None));
        assert_eq!(long().lines().count(), 2);
    }
}
