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
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::client::Fact;
use super::draw::axis::clock;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::{Style, Term};
use super::text::plain;
use super::watch::{WatchSession, can_draw};
use crate::model::time::{Span, Time};
use director::{DemoEnd, DemoLine, Director, PATIENCE};
use stage::{DemoStage, POOL};

const ABOUT: &str = "Shows a live rollout of 30 machines, in two minutes";
const MORE: &str = "\
Needs nothing: no file, no account, no network beyond this machine. It starts a simulated Azure and the daemon that \
`serve` runs in this process, on the loopback, and time passes faster for both. 30 machines get a new image while \
they serve, one of them becomes unhealthy, and Azure throttles calls for a while. On a terminal you see the pool on the \
screen of `watch`: the script says above it what it does, the keys of `watch` work, and q ends the demo. At the end it \
prints the result, and the daemon runs until Ctrl-C, so that you can query it. Elsewhere, or with --once, it prints \
each line as it happens and exits by itself. It keeps nothing.";
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

/// How long the finished pool stays on the screen.
const CURTAIN: Duration = Duration::from_secs(6);

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Drawn,
    Lines,
    Silent,
}

/// How a command ends: with an exit code, or by a signal.
type Ended = ControlFlow<i32, Exit>;

impl Demo {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let manner = self.manner(shell)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("cannot start: {error}"))
        })?;
        let ended = self.play(&runtime, shell, manner);
        // Do not wait for tasks that still block on a socket.
        runtime.shutdown_background();
        match ended? {
            Ended::Continue(exit) => Ok(exit),
            Ended::Break(signal) => {
                shell.flush()?;
                // The exit code that a shell reports for a process that a signal ended.
                std::process::exit(128 + signal)
            }
        }
    }

    fn manner(&self, shell: &Shell) -> Result<Manner, CommandFailure> {
        Ok(match shell.one_document("demo")? {
            true => Manner::Silent,
            false if self.once || !can_draw() => Manner::Lines,
            false => Manner::Drawn,
        })
    }

    fn play(
        &self,
        runtime: &Runtime,
        shell: &mut Shell,
        manner: Manner,
    ) -> Result<Ended, CommandFailure> {
        let mut heard = runtime.block_on(async { Signals::heard(manner) })?;
        let stage = runtime.block_on(async {
            tokio::select! {
                stage = DemoStage::set_up(self.listen, TIMES) => stage.map(ControlFlow::Continue),
                signal = heard.next() => Ok(ControlFlow::Break(signal)),
            }
        });
        let stage = match stage? {
            ControlFlow::Continue(stage) => stage,
            ControlFlow::Break(signal) => return Ok(Ended::Break(signal)),
        };
        let (tell, signals) = channel();
        runtime.spawn(async move { while tell.send(heard.next().await).is_ok() {} });
        let ended = show(&stage, shell, manner, &signals);
        runtime.block_on(stage.end())?;
        ended
    }
}

/// Plays the demo in this form, and prints its result.
fn show(
    stage: &DemoStage,
    shell: &mut Shell,
    manner: Manner,
    signals: &Receiver<i32>,
) -> Result<Ended, CommandFailure> {
    let mut director = Director::new(stage)?;
    let ended = match manner {
        Manner::Drawn => on_screen(stage, &mut director, shell.term)?,
        Manner::Lines => {
            director.play(PATIENCE, signals, &mut |line| print(stage.began, shell, &line))?
        }
        Manner::Silent => director.play(PATIENCE, signals, &mut |_| Ok(()))?,
    };
    let summary = match ended {
        DemoEnd::Summary(summary) => summary,
        DemoEnd::Cut(signal) => {
            if manner != Manner::Silent {
                let say = director.progress.map_or_else(
                    || "Ended before the rollout began.".to_owned(),
                    |(done, total)| format!("Ended at {done} of {total} machines."),
                );
                shell.print(&format!("\n{say} Nothing of it is left behind.\n"))?;
            }
            return Ok(signal.map_or(Ended::Continue(Exit::Done), Ended::Break));
        }
    };
    let exit = if summary.is_good() { Exit::Done } else { Exit::Refused };
    let (program, term) = (program(), shell.term);
    if manner == Manner::Silent {
        shell.line(&summary.document().to_string())?;
        return Ok(Ended::Continue(exit));
    }
    shell.print(&summary.page(term))?;
    if manner == Manner::Drawn {
        shell.print(&summary.hints(term, &program))?;
        shell.flush()?;
        director.follow(signals, &mut |line| print(stage.began, shell, &line))?;
    }
    shell.print(&ending::next(term, &program))?;
    Ok(Ended::Continue(exit))
}

/// Plays the demo while a person looks at the pool on the screen of `watch`.
fn on_screen(
    stage: &DemoStage,
    director: &mut Director<'_>,
    term: Term,
) -> Result<DemoEnd, CommandFailure> {
    let session = WatchSession::new(Some(POOL), term)?.narrated(TIMES);
    let screen = session.handle();
    let (stop, stopped) = channel();
    thread::scope(|scope| {
        let director = scope.spawn(move || {
            // A person may pause the rollout.
            let ended = director.play(Span::hours(24), &stopped, &mut |line| {
                if let DemoLine::Script(Fact { text, .. }) = line {
                    screen.narrate(text);
                }
                Ok(())
            });
            if let Ok(DemoEnd::Summary(_)) = ended {
                screen.narrate(script::closing());
                let _ = stopped.recv_timeout(CURTAIN);
            }
            screen.end();
            ended
        });
        let shown = session.run(&|| stage.line());
        // The end of the screen ends the director too.
        drop(stop);
        match (director.join(), shown?) {
            // Even if the script has ended, and the finished pool stays on the screen.
            (Ok(Ok(_)), Some(signal)) => Ok(DemoEnd::Cut(Some(signal))),
            (Ok(ended), _) => ended,
            (Err(_), _) => {
                let say = "the part that plays the demo ended by itself";
                Err(CommandFailure::new(Exit::Internal, "internal", say))
            }
        }
    })
}

/// Prints a line as it happens.
fn print(began: Time, shell: &mut Shell, line: &DemoLine) -> Result<(), CommandFailure> {
    let (fact, style) = match line {
        DemoLine::Script(fact) => (fact, Style::Yellow),
        DemoLine::Pool(fact) => (fact, Style::Plain),
    };
    let clock = format!("{:>9}", clock(fact.at.since(began).millis()));
    let text = shell.term.paint(style, &plain(&fact.text));
    shell.line(&format!("{}  {text}", shell.term.paint(Style::Dim, &clock)))?;
    shell.flush()
}

/// The program as it was called, so that the suggested commands work from the current folder.
fn program() -> String {
    let called = env::args().next().filter(|called| called.contains('/'));
    called.unwrap_or_else(|| ending::NAME.to_owned())
}

/// The signals that end the demo.
struct Signals(Vec<(SignalKind, Signal)>);

impl Signals {
    fn heard(manner: Manner) -> Result<Self, CommandFailure> {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        if manner == Manner::Drawn {
            // The screen listens to it, which replaces its default action for good. Elsewhere `nohup` may ignore it.
            kinds.push(SignalKind::hangup());
        }
        let heard = kinds.into_iter().map(|kind| signal(kind).map(|signal| (kind, signal)));
        heard.collect::<io::Result<_>>().map(Self).map_err(|error| {
            let say = format!("cannot listen for signals: {error}");
            CommandFailure::new(Exit::Internal, "internal", say)
        })
    }

    async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let mut heard = self.0.iter_mut().filter_map(|(kind, signal)| {
                signal.poll_recv(context).is_ready().then(|| kind.as_raw_value())
            });
            heard.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
