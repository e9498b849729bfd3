//! `demo`: the daemon and an Azure emulator in one process, and a live rollout of thirty machines: one machine becomes
//! unhealthy on the way, and Azure throttles calls for a while.
//!
//! Never here: decisions or actions (the daemon is the one that `serve` runs). Begin with [`Demo::run`]; `stage` starts
//! the daemon and the emulator, `script` says what happens to the pool, `show` plays it; `sight` is the observed state,
//! `service` what clients of the pool saw, `words` the lines of text, `screen` draws.

mod ending;
mod screen;
mod script;
mod service;
mod show;
mod sight;
mod stage;
mod words;

use std::env;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::{Style, Term};
use show::{Manner, Show};
use stage::DemoStage;

const ABOUT: &str = "Shows a live rollout of 30 machines, in two minutes";
const MORE: &str = "\
Needs nothing: no file, no account, no network beyond this machine. It starts a simulated Azure and the daemon that \
`serve` runs in this process, on the loopback, and time passes faster for both. 30 machines get a new image while \
they serve, one of them becomes unhealthy, and Azure throttles calls for a while. It shows each decision with its \
reasons. On a terminal it draws a picture, and the daemon keeps running until Ctrl-C, so that you can query it; \
elsewhere, or with --once, it prints each line as it happens and exits by itself. It keeps nothing.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper demo
  poolkeeper demo --once                      exit when the rollout ends
  poolkeeper demo --listen 127.0.0.1:9000     with its API at this address
  poolkeeper demo -o json                     the result as a document";

/// Speed-up: a good half hour passes in two minutes.
const TIMES: u32 = 16;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Demo {
    /// Print lines and exit when the rollout ends; always so if standard output is not a terminal
    #[arg(long)]
    once: bool,

    /// Address of the API; by default 127.0.0.1:7770, or any free port if that one is taken
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

impl Demo {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("demo")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("cannot start: {error}"))
        })?;
        let ended = runtime.block_on(self.show(shell, json));
        // Do not wait for tasks that still block on a socket.
        runtime.shutdown_background();
        match ended? {
            Over::Told(exit) => Ok(exit),
            Over::Cut(signal) => {
                shell.flush()?;
                // The exit code that a shell reports for a process that a signal ended.
                std::process::exit(128 + signal)
            }
        }
    }

    async fn show(&self, shell: &mut Shell, json: bool) -> Result<Over, CommandFailure> {
        let mut signals = Signals::heard()?;
        let stage = tokio::select! {
            stage = DemoStage::set_up(self.listen, TIMES) => stage?,
            signal = signals.next() => return Ok(Over::Cut(signal)),
        };
        let is_watched = io::stdout().is_terminal() && !self.once;
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        let obstacle = obstacle(shell.term, dumb);
        let manner = match (json, is_watched, &obstacle) {
            (true, ..) => Manner::Silent,
            (false, true, None) => Manner::Drawn,
            (false, ..) => Manner::Lines,
        };
        if let Some(say) = obstacle.filter(|_| is_watched && !json) {
            shell.line(&shell.term.paint(Style::Dim, &say))?;
            shell.flush()?;
        }
        let mut show = Show::new(stage, shell, manner);
        let ending = tokio::select! {
            ending = show.play() => ending?,
            signal = signals.next() => {
                show.cut_short().await?;
                return Ok(Over::Cut(signal));
            }
        };
        show.draw_end()?;
        let exit = if ending.is_good() { Exit::Done } else { Exit::Refused };
        let program = program();
        match manner {
            Manner::Silent => show.shell.line(&ending.document().to_string())?,
            _ => show.shell.print(&ending.page(show.shell.term))?,
        }
        if manner == Manner::Drawn {
            show.shell.print(&ending.hints(show.shell.term, &program))?;
            show.shell.flush()?;
            tokio::select! {
                failed = show.go_on() => failed?,
                _ = signals.next() => {}
            }
        }
        if manner != Manner::Silent {
            show.shell.print(&ending::next(show.shell.term, &program))?;
        }
        show.stage.end().await?;
        Ok(Over::Told(exit))
    }
}

enum Over {
    Told(Exit),
    /// Interrupted by this signal before the end.
    Cut(i32),
}

/// Why this terminal gets lines instead of a picture that is redrawn in place.
fn obstacle(term: Term, dumb: bool) -> Option<String> {
    if dumb {
        return Some("Printing lines: TERM names no terminal that redraws a picture.".to_owned());
    }
    let (wide, tall) = (term.width.unwrap_or(0), term.height.unwrap_or(usize::MAX));
    let fits = wide >= screen::WIDE && tall > screen::TALL;
    let least = format!("{}x{}", screen::WIDE, screen::TALL + 1);
    let size = term.height.map_or_else(|| format!("{wide} wide"), |tall| format!("{wide}x{tall}"));
    (!fits).then(|| format!("Printing lines: a picture needs {least}, this is {size}."))
}

/// The program as it was called, so that the suggested commands work from the current folder.
fn program() -> String {
    let called = env::args().next().filter(|called| called.contains('/'));
    called.unwrap_or_else(|| ending::NAME.to_owned())
}

/// SIGINT and SIGTERM.
struct Signals(Signal, Signal);

impl Signals {
    fn heard() -> Result<Self, CommandFailure> {
        let unheard = |error: io::Error| {
            let say = format!("cannot listen for signals: {error}");
            CommandFailure::new(Exit::Internal, "internal", say)
        };
        let interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
        Ok(Self(interrupt, signal(SignalKind::terminate()).map_err(unheard)?))
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.0.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.1.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_picture_says_why() {
        let size = |wide, tall| Term { width: Some(wide), height: Some(tall), ..Term::PLAIN };
        assert_eq!(obstacle(size(78, 24), false), None);
        assert_eq!(obstacle(Term { height: None, ..size(160, 1) }, false), None);
        let small = obstacle(size(60, 18), false);
        let say = "Printing lines: a picture needs 78x24, this is 60x18.";
        assert_eq!(small.as_deref(), Some(say));
        assert!(obstacle(size(78, 23), false).is_some() && obstacle(size(77, 24), false).is_some());
        assert!(obstacle(size(100, 50), true).is_some_and(|say| say.contains("TERM")));
    }
}
