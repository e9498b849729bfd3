//! `watch`: pools on the whole terminal, live; and `status --watch`, the same as lines.
//!
//! Never here: a write that no command has, a clock, a decision of its own. Begin with [`WatchCommand::run`]. `state` is
//! what the screen shows, `update` and `keys` change it, `draw` paints it: all three are pure. `reading` and `terminal`
//! are the threads around them. `lines` is `status --watch`.

mod draw;
mod keys;
mod lines;
mod reading;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod update;

use std::env;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Sender, channel};

use clap::Args;

use super::client::{ENVIRONMENT, Server};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live::pool_name;
use super::output::{OutputFormat, Shell};
pub(super) use lines::print_changes;
use state::{Palette, WatchEffect, WatchEvent, WatchRequest, WatchState};
use terminal::WatchScreen;

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

/// Beats of the screen in a second.
const BEATS: u32 = 10;

impl WatchCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        check_terminal(shell)?;
        let palette = Palette { colour: shell.term.colour, unicode: is_unicode(set) };
        let mut state = WatchState::new(self.pool.as_deref(), palette, terminal::measure()?);
        state.context = self.server.context_name();
        // A server that cannot be reached, or a wrong name, ends the command before the screen changes.
        let line = self.server.line()?;
        let subject = state.subject();
        let first = reading::read(&line, &subject)?;
        state.on(WatchEvent::Reading(subject, Ok(first)));
        let (tell, events) = channel();
        let reader = reading::read_on_demand(line, tell.clone())?;
        reading::follow(self.server.line()?, self.pool.clone(), tell.clone())?;
        terminal::listen_to_signals(tell.clone())?;
        terminal::restore_on_panic(tell.clone());
        let mut screen = WatchScreen::open()?;
        terminal::listen_to_keys(tell.clone())?;
        screen.draw(&state)?;
        let (mut beats, mut may_draw, mut is_new) = (0, false, false);
        while let Ok(event) = events.recv() {
            let is_beat = matches!(event, WatchEvent::Beat);
            beats += u32::from(is_beat);
            let is_second = is_beat && beats.is_multiple_of(BEATS);
            let effect = state.on(if is_second { WatchEvent::Second } else { event });
            match effect {
                Some(WatchEffect::Quit) => break,
                Some(WatchEffect::Suspend) => {
                    screen.suspend()?;
                    state.on(WatchEvent::News(None));
                }
                // Without a reader, its panic ends the screen.
                Some(WatchEffect::Read(subject)) => drop(reader.send(subject)),
                Some(WatchEffect::Send(request)) => self.send(&mut state, request, &tell),
                None => {}
            }
            is_new |= is_second || !is_beat;
            may_draw |= is_beat;
            if is_new && may_draw {
                may_draw = !screen.draw(&state)?;
                is_new = false;
            }
        }
        drop(screen);
        if terminal::has_panicked() {
            let say = "a part of the screen ended by itself";
            return Err(CommandFailure::new(Exit::Internal, "internal", say));
        }
        Ok(Exit::Done)
    }

    /// In the background: the screen does not wait.
    fn send(&self, state: &mut WatchState, request: WatchRequest, tell: &Sender<WatchEvent>) {
        let line = self.server.line();
        let begun = line.and_then(|line| reading::send(line, request, tell.clone()));
        if let Err(failure) = begun {
            state.on(WatchEvent::Answer(Err(failure)));
        }
    }
}

fn check_terminal(shell: &Shell) -> Result<(), CommandFailure> {
    const HELP: &str = "`poolkeeper status --watch` prints a line for each change";
    if shell.format != OutputFormat::Table {
        let say = "watch draws a screen, and no documents";
        return Err(CommandFailure::usage(say).help(format!("{HELP}; with -o ndjson a document")));
    }
    let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
    if is_dumb || !io::stdout().is_terminal() {
        let say = "watch needs a terminal that it can draw on";
        return Err(CommandFailure::usage(say).help(HELP));
    }
    Ok(())
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the locale has more than ASCII.
fn is_unicode(set: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    let locale = locale.unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
