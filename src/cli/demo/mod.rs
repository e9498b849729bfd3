//! `demo`: the daemon and an Azure emulator in one process, and a live rollout of thirty machines: one machine becomes
//! unhealthy on the way, and Azure throttles calls for a while.
//!
//! Never here: decisions or actions (the daemon is the one that `serve` runs), or a picture (the screen is that of
//! `watch`). Begin with [`Demo::run`]; `stage` starts the daemon and the emulator, `script` says what happens to the pool,
//! `director` plays it, `service` is what clients of the pool saw, `ending` the result.

mod director;
mod ending;
mod script;
mod service;
mod stage;
#[cfg(test)]
mod tests;

use std::env;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use clap::Args;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::draw::axis::clock;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::{Style, Term};
use super::text::plain;
use super::watch::{WatchSession, can_draw};
use crate::model::time::Time;
use director::{DemoNews, Director};
use ending::DemoSummary;
use stage::{DemoStage, POOL};

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

/// The smallest screen that is drawn on; a smaller one gets lines.
const WIDE: usize = 60;
const TALL: usize = 20;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Drawn,
    Lines,
    Silent,
}

/// How far the demo came.
enum DemoEnd {
    Summary(Box<DemoSummary>),
    /// A person ended it before, with this signal or with a key.
    Cut(Option<i32>),
}

impl Demo {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("demo")?;
        let manner = self.manner(shell, json)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("cannot start: {error}"))
        })?;
        let ended = self.stage(&runtime, shell, manner);
        // Do not wait for tasks that still block on a socket.
        runtime.shutdown_background();
        match ended? {
            Ok(exit) => Ok(exit),
            Err(signal) => {
                shell.flush()?;
                // The exit code that a shell reports for a process that a signal ended.
                std::process::exit(128 + signal)
            }
        }
    }

    fn manner(&self, shell: &mut Shell, json: bool) -> Result<Manner, CommandFailure> {
        if json {
            return Ok(Manner::Silent);
        }
        if self.once || !io::stdout().is_terminal() {
            return Ok(Manner::Lines);
        }
        let Some(say) = obstacle(shell.term, !can_draw()) else { return Ok(Manner::Drawn) };
        shell.line(&shell.term.paint(Style::Dim, &say))?;
        shell.flush()?;
        Ok(Manner::Lines)
    }

    /// Sets the stage, and removes it. `Err` inside: a signal interrupted the demo.
    fn stage(
        &self,
        runtime: &Runtime,
        shell: &mut Shell,
        manner: Manner,
    ) -> Result<Result<Exit, i32>, CommandFailure> {
        let mut signals = runtime.block_on(async { Signals::heard() })?;
        let stage = runtime.block_on(async {
            tokio::select! {
                stage = DemoStage::set_up(self.listen, TIMES) => stage.map(Ok),
                signal = signals.next() => Ok(Err(signal)),
            }
        });
        let stage = match stage? {
            Ok(stage) => stage,
            Err(signal) => return Ok(Err(signal)),
        };
        let (tell, news) = channel();
        let interrupt = tell.clone();
        runtime.spawn(async move {
            loop {
                let signal = DemoNews::Signal(signals.next().await);
                if interrupt.send(signal).is_err() {
                    return;
                }
            }
        });
        let ended = show(&stage, shell, manner, &tell, &news);
        runtime.block_on(stage.end())?;
        ended
    }
}

/// Plays the demo to its end, in this form.
fn show(
    stage: &DemoStage,
    shell: &mut Shell,
    manner: Manner,
    tell: &Sender<DemoNews>,
    news: &Receiver<DemoNews>,
) -> Result<Result<Exit, i32>, CommandFailure> {
    let session = match manner {
        Manner::Drawn => {
            let session = WatchSession::new(Some(POOL), shell.term)?;
            Some(session.narrated(stage.clock.times(), &script::opening(stage.clock.times())))
        }
        Manner::Lines | Manner::Silent => None,
    };
    let director = Director::new(stage, session.as_ref().map(WatchSession::handle))?;
    let mut printer = DemoPrinter { began: stage.began, is_silent: true, progress: None };
    // The director stops when `stop` is dropped.
    let (stop, stopped) = channel::<()>();
    thread::scope(|scope| {
        let _stop = stop;
        let tell = tell.clone();
        scope.spawn(move || {
            director.play(&stopped, |news| {
                // At the end of the demo there is no ear.
                let _ = tell.send(news);
            });
        });
        let ended = match session {
            Some(session) => {
                let signal = session.run(&|| stage.line())?;
                printer.end_of_screen(signal, shell, news)?
            }
            None => {
                printer.is_silent = manner == Manner::Silent;
                printer.print(shell, news)?
            }
        };
        close(ended, &mut printer, shell, manner, news)
    })
}

/// Prints the result, and on a terminal what other clients cause until a signal.
fn close(
    ended: DemoEnd,
    printer: &mut DemoPrinter,
    shell: &mut Shell,
    manner: Manner,
    news: &Receiver<DemoNews>,
) -> Result<Result<Exit, i32>, CommandFailure> {
    let summary = match ended {
        DemoEnd::Summary(summary) => summary,
        DemoEnd::Cut(signal) => {
            if manner != Manner::Silent {
                let say = printer.progress.map_or_else(
                    || "Ended before it began.".to_owned(),
                    |(done, total)| format!("Ended at {done} of {total} machines."),
                );
                shell.print(&format!("\n{say} Nothing of it is left behind.\n"))?;
            }
            return Ok(signal.map_or(Ok(Exit::Done), Err));
        }
    };
    let exit = if summary.is_good() { Exit::Done } else { Exit::Refused };
    let (program, term) = (program(), shell.term);
    match manner {
        Manner::Silent => shell.line(&summary.document().to_string())?,
        _ => shell.print(&summary.page(term))?,
    }
    if manner == Manner::Drawn {
        shell.print(&summary.hints(term, &program))?;
        shell.flush()?;
        printer.is_silent = false;
        printer.print(shell, news)?;
    }
    if manner != Manner::Silent {
        shell.print(&ending::next(term, &program))?;
    }
    Ok(Ok(exit))
}

/// Prints each line as it happens.
#[derive(Debug)]
struct DemoPrinter {
    began: Time,
    is_silent: bool,
    /// Machines that are done, of all.
    progress: Option<(u32, u32)>,
}

impl DemoPrinter {
    /// Prints until the script or a signal ends the demo.
    fn print(
        &mut self,
        shell: &mut Shell,
        news: &Receiver<DemoNews>,
    ) -> Result<DemoEnd, CommandFailure> {
        while let Ok(one) = news.recv() {
            if let Some(ended) = self.take(one, shell)? {
                return Ok(ended);
            }
        }
        let say = "the part that plays the demo ended by itself";
        Err(CommandFailure::new(Exit::Internal, "internal", say))
    }

    /// What is known once the screen is closed.
    fn end_of_screen(
        &mut self,
        signal: Option<i32>,
        shell: &mut Shell,
        news: &Receiver<DemoNews>,
    ) -> Result<DemoEnd, CommandFailure> {
        let mut ended = DemoEnd::Cut(signal);
        for one in news.try_iter() {
            if let Some(DemoEnd::Summary(summary)) = self.take(one, shell)? {
                ended = DemoEnd::Summary(summary);
            }
        }
        Ok(ended)
    }

    fn take(
        &mut self,
        news: DemoNews,
        shell: &mut Shell,
    ) -> Result<Option<DemoEnd>, CommandFailure> {
        match news {
            DemoNews::Script(at, text) => self.line(at, &text, Style::Yellow, shell)?,
            DemoNews::Fact(fact) => self.line(fact.at, &fact.text, Style::Plain, shell)?,
            DemoNews::Progress(done, total) => self.progress = Some((done, total)),
            DemoNews::End(summary) => return Ok(Some(DemoEnd::Summary(summary))),
            DemoNews::Failure(failure) => return Err(failure),
            DemoNews::Signal(signal) => return Ok(Some(DemoEnd::Cut(Some(signal)))),
        }
        Ok(None)
    }

    fn line(
        &self,
        at: Time,
        text: &str,
        style: Style,
        shell: &mut Shell,
    ) -> Result<(), CommandFailure> {
        if self.is_silent {
            return Ok(());
        }
        let clock = clock(at.since(self.began).millis());
        let text = shell.term.paint(style, &plain(text));
        shell.line(&format!("{}  {text}", shell.term.paint(Style::Dim, &format!("{clock:>9}"))))?;
        shell.flush()
    }
}

/// Why this terminal gets lines instead of a picture that is redrawn in place.
fn obstacle(term: Term, dumb: bool) -> Option<String> {
    if dumb {
        return Some("Printing lines: TERM names no terminal that redraws a picture.".to_owned());
    }
    let (wide, tall) = (term.width.unwrap_or(0), term.height.unwrap_or(usize::MAX));
    let fits = wide >= WIDE && tall >= TALL;
    let size = term.height.map_or_else(|| format!("{wide} wide"), |tall| format!("{wide}x{tall}"));
    (!fits).then(|| format!("Printing lines: a picture needs {WIDE}x{TALL}, this is {size}."))
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
