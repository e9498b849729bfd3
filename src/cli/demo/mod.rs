//! `demo`: the daemon and a made-up Azure in one process, and a rollout of thirty machines before your eyes: one falls ill
//! on the way, and Azure refuses calls for a while.
//!
//! Never here: what is decided or done (the daemon is the one that `serve` runs). Begin with [`Demo::run`]; `stage` puts the
//! two together, `script` says what befalls the pool, `show` plays it; `sight` and `words` are what is seen and
//! told, `screen` draws.

mod ending;
mod screen;
mod script;
mod show;
mod sight;
mod stage;
mod words;

use std::env;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::with_exit_codes;
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::term::Term;
use show::{Manner, Show};
use stage::Stage;

const ABOUT: &str = "Upgrades a pool of 30 machines before your eyes, in two minutes";
const MORE: &str = "\
Needs nothing: no file, no account, no network beyond this machine. A made-up Azure and the daemon that `serve` runs are \
started in this process, on the loopback, and time passes faster for both. 30 machines get a new image while they serve, \
one of them falls ill, Azure refuses calls for a while; what is decided is told with its reasons. On a terminal it is \
drawn, and the daemon goes on until Ctrl-C, so that you can ask it things; elsewhere, or with --once, each line is told \
as it happens, and it ends by itself. Nothing is kept.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper demo
  poolkeeper demo --once                      ends when the rollout does
  poolkeeper demo --listen 127.0.0.1:9000     with its API there
  poolkeeper demo -o json                     how it went, as a document";

/// Half an hour and some passes in two minutes.
const TIMES: u32 = 16;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Demo {
    /// Tell each line, and end when the rollout ends; so it does wherever standard output is no terminal
    #[arg(long)]
    once: bool,

    /// Where the API listens; by default at 127.0.0.1:7770, or at any free port where that is taken
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

impl Demo {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("demo")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Exit::Internal, "internal", format!("cannot begin: {error}"))
        })?;
        let ended = runtime.block_on(self.show(shell, json));
        // Whatever still hangs on a socket is not waited for.
        runtime.shutdown_background();
        match ended? {
            Over::Told(exit) => Ok(exit),
            Over::Cut(signal) => {
                shell.flush()?;
                // As a shell tells of a process that a signal ended.
                std::process::exit(128 + signal)
            }
        }
    }

    async fn show(&self, shell: &mut Shell, json: bool) -> Result<Over, Failure> {
        let mut signals = Signals::heard()?;
        let stage = tokio::select! {
            stage = Stage::set_up(self.listen, TIMES) => stage?,
            signal = signals.next() => return Ok(Over::Cut(signal)),
        };
        let manner = match (json, can_draw(shell.term) && !self.once) {
            (true, _) => Manner::Silent,
            (false, true) => Manner::Drawn,
            (false, false) => Manner::Lines,
        };
        let mut show = Show::new(stage, shell, manner);
        let ending = tokio::select! {
            ending = show.play() => ending?,
            signal = signals.next() => {
                show.cut_short().await?;
                return Ok(Over::Cut(signal));
            }
        };
        let exit = if ending.is_good() { Exit::Done } else { Exit::Refused };
        let program = program();
        match manner {
            Manner::Silent => show.shell.line(&ending.document().to_string())?,
            _ => show.shell.print(&ending.page(show.shell.term))?,
        }
        if manner == Manner::Drawn {
            show.shell.print(&ending.door(show.shell.term, &program))?;
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
    /// By this signal, before its end.
    Cut(i32),
}

/// Somebody watches, and pictures can be drawn over one another.
fn can_draw(term: Term) -> bool {
    let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    let wide = term.width.is_some_and(|columns| columns >= screen::WIDE);
    let tall = term.height.is_none_or(|lines| lines > screen::TALL);
    io::stdout().is_terminal() && !dumb && wide && tall
}

/// As it was called, so that what is told to try works from where the person is.
fn program() -> String {
    let called = env::args().next().filter(|called| called.contains('/'));
    called.unwrap_or_else(|| "poolkeeper".to_owned())
}

/// The terminal's and the system's wish that this ends.
struct Signals(Signal, Signal);

impl Signals {
    fn heard() -> Result<Self, Failure> {
        let unheard = |error: io::Error| {
            let say = format!("signals cannot be heard: {error}");
            Failure::new(Exit::Internal, "internal", say)
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
