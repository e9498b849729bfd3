//! `watch`: pools on the whole terminal, live; and `status --watch`, the same as lines.
//!
//! Never here: a write that no command has, a clock, a decision of its own. Begin with [`WatchCommand::run`]. `state` is
//! what the screen shows, `update` and `keys` change it, `draw` paints it: all three are pure. `session` runs them between
//! the threads of `reading` and `terminal`; `demo` has a session too. `lines` is `status --watch`.

mod draw;
mod keys;
mod lines;
mod reading;
mod session;
mod state;
mod terminal;
#[cfg(test)]
pub(super) mod tests;
mod update;

use std::io::{self, IsTerminal};

use clap::Args;

use super::client::{ENVIRONMENT, Server};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live::pool_name;
use super::output::{OutputFormat, Shell};
pub(super) use lines::print_changes;
pub(super) use session::WatchSession;
use session::set;

const ABOUT: &str = "Shows pools live on the whole terminal";
const MORE: &str = "\
Queries a running daemon. Without a name it lists the pools, the worst first; Enter opens one. A pool shows its \
machines as cells by zone, the progress and the ETA of its rollout, what it waits for and which command ends that, the \
selected machine, and its history. The screen follows the daemon's events. If the connection breaks, it keeps the last \
picture, says how old that is, and connects again.

Keys: arrows select, Enter opens, Esc goes back, / filters, ? explains all keys, q quits. p, r, a and A pause, resume, \
approve and abort; h and H hold and release the selected machine. Each asks for a reason and sends the request of the \
command with that name; abort asks for the name of the pool too. Nothing else writes.

Without a terminal, `status --watch` prints the same as lines.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper watch          every pool
  poolkeeper watch web      one pool
  poolkeeper status --watch web
                            a line for each change, for pipes and logs";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct WatchCommand {
    /// Name of the pool; by default, all of them
    #[arg(value_parser = pool_name)]
    pool: Option<String>,

    #[command(flatten)]
    server: Server,
}

impl WatchCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        check_terminal(shell)?;
        let context = self.server.context_name();
        let session = WatchSession::new(self.pool.as_deref(), shell.term)?.in_context(context);
        session.run(&|| self.server.line()).map(|_| Exit::Done)
    }
}

fn check_terminal(shell: &Shell) -> Result<(), CommandFailure> {
    const HELP: &str = "`poolkeeper status --watch` prints a line for each change";
    if shell.format != OutputFormat::Table {
        let say = "watch draws a screen, and no documents";
        return Err(CommandFailure::usage(say).help(format!("{HELP}; with -o ndjson a document")));
    }
    if !can_draw() {
        let say = "watch needs a terminal that it can draw on";
        return Err(CommandFailure::usage(say).help(HELP));
    }
    Ok(())
}

/// Whether standard output is a terminal that redraws a picture.
pub(super) fn can_draw() -> bool {
    let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !is_dumb
}
