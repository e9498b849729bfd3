//! `completions`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell as Kind;
use serde_json::json;

use super::args::{Cli, with_exit_codes};
use super::exit::{Exit, Failure};
use super::shell::Shell;
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Prints the completions for a shell";
const MORE: &str = "\
Prints a script that teaches a shell to complete the commands, options and values of poolkeeper. Put it where the \
shell looks for such scripts, and start a new shell.";
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
    /// The shell
    #[arg(value_enum)]
    shell: Kind,
}

impl Completions {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("completions")?;
        let mut script = Vec::new();
        let mut command = Cli::command();
        let name = command.get_name().to_owned();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
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
