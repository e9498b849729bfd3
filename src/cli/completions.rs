//! `completions`: shell scripts that complete commands, options, and the names of pools and machines.
//!
//! Never here: unchecked text from a server passed to a shell. Begin with [`Completions::run`]: the shell's script runs
//! [`CompletionNames`] to complete a name; `asked` determines which names fit.

mod asked;
mod scripts;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Command};
use clap_complete::Shell as Kind;
use serde_json::json;

use super::client::Server;
use super::client::context::ClientSettings;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use crate::api::v1::API_VERSION;
use asked::{CompletionContext, CompletionTarget};

const ABOUT: &str = "Prints the completion script for a shell";
const MORE: &str = "\
Prints a script that lets a shell complete the commands, options and values of poolkeeper. In bash, zsh and fish it \
also completes the names of pools and machines, which it requests from the running daemon, and those of contexts. Put it where the shell \
looks for such scripts, and start a new shell.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper completions bash > ~/.local/share/bash-completion/completions/poolkeeper
  poolkeeper completions zsh > ~/.zfunc/_poolkeeper
  poolkeeper completions fish > ~/.config/fish/completions/poolkeeper.fish";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Completions {
    /// The shell to print the script for
    #[arg(value_enum)]
    shell: Kind,
}

impl Completions {
    pub(super) fn run(
        &self,
        shell: &mut Shell,
        mut command: Command,
    ) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("completions")?;
        let mut script = Vec::new();
        let name = command.get_name().to_owned();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
        let script = scripts::with_names(self.shell, &script, &command);
        if json {
            let document = json!({
                "apiVersion": API_VERSION,
                "kind": "Completions",
                "shell": self.shell.to_string(),
                "script": script,
            });
            shell.line(&document.to_string())?;
        } else {
            shell.print(&script)?;
        }
        Ok(Exit::Done)
    }
}

const NAMES: &str = "Prints the names that can follow these words; completion scripts call it";

/// Timeout of a lookup. A person is waiting at the prompt: a later answer is useless.
const WITHIN: Duration = Duration::from_millis(800);
/// The most names in one answer.
const MOST: u32 = 500;

#[derive(Debug, Args)]
#[command(
    hide = true,
    about = NAMES,
    long_about = format!("{NAMES}.\n\nIf no daemon answers in time, it prints nothing."),
    after_long_help = with_exit_codes("Examples:\n  poolkeeper names -- explain web")
)]
pub struct CompletionNames {
    /// The words typed so far, without the word to complete
    #[arg(last = true)]
    words: Vec<OsString>,
}

impl CompletionNames {
    pub(super) fn run(
        &self,
        shell: &mut Shell,
        mut command: Command,
    ) -> Result<Exit, CommandFailure> {
        let words: Vec<String> =
            self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        command.build();
        for name in asked::asked(&command, &words).map(found).unwrap_or_default() {
            shell.line(&name)?;
        }
        Ok(Exit::Done)
    }
}

/// The names from the server. Ignores every error: an error message would disturb the command line being typed.
fn found(asked: CompletionContext) -> Vec<String> {
    let (path, key) = match &asked.meant {
        CompletionTarget::Contexts => return contexts(),
        CompletionTarget::Pools => (vec!["pools"], "name"),
        CompletionTarget::MachinesOf(pool) => (vec!["pools", pool.as_str(), "machines"], "id"),
    };
    let line = Server::of(asked.server, asked.ca, asked.context).line();
    let Some(answer) = line.ok().and_then(|line| line.page_within(WITHIN, &path, MOST)) else {
        return Vec::new();
    };
    let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
    let names = items.iter().filter_map(|item| item[key].as_str());
    names.filter(|name| is_plain(name)).map(str::to_owned).collect()
}

fn contexts() -> Vec<String> {
    let known = ClientSettings::read().map(|settings| settings.contexts).unwrap_or_default();
    known.into_iter().map(|context| context.name).filter(|name| is_plain(name)).collect()
}

/// Whether a name has no character that is special to a shell, because a shell may expand the names it receives.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_nothing_to_a_shell() {
        for name in ["web", "web-1", "web_0a.b", "17"] {
            assert!(is_plain(name), "{name}");
        }
        for name in ["", "-rf", "$(id)", "a b", "a;b", "a`b`", "a\nb", "*", "~", "ä", "a'b", "a/b"]
        {
            assert!(!is_plain(name), "{name}");
        }
    }
}
