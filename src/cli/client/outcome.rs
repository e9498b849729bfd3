//! What became of a request: waits for the pool's next turn, which answers it.

use std::time::Duration;

use clap::Args;

use super::ServerLine;
use super::failures::NO_PLAN_YET;
use crate::api::client::Request;
use crate::api::v1::resources::asked::{CommandReceipt, CommandState, CommandStatus, ReceiptState};
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::Explanation;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::for_people;
use crate::cli::text::plain;
use crate::model::command::CommandName;
use crate::model::time::Span;

/// The first pause between two looks; each later one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A server that answers takes less.
const SILENT: Duration = Duration::from_secs(5);

/// How long a command waits for the answer.
#[derive(Debug, Args)]
pub(super) struct Patience {
    /// Return once the request is recorded; do not wait for the answer
    #[arg(long)]
    no_wait: bool,

    /// Wait at most this long for the answer
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    timeout: Duration,
}

/// A duration such as `90s` or `1h`.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    let millis = Span::parse(text).ok().and_then(|span| u64::try_from(span.millis()).ok());
    let span = millis.filter(|millis| *millis > 0).map(Duration::from_millis);
    span.ok_or_else(|| "write a time like 90s, 20m or 1h30m".to_owned())
}

/// The same, as it is printed.
pub(in crate::cli) fn span(limit: Duration) -> Span {
    Span::from_millis(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX))
}

/// The end of a request.
#[derive(Debug)]
pub(super) struct Outcome {
    pub exit: Exit,
    pub message: String,
    /// The document that says so, for programs.
    pub document: String,
}

impl Patience {
    /// How long to wait; `None`: not at all.
    pub fn limit(&self) -> Option<Duration> {
        (!self.no_wait).then_some(self.timeout)
    }

    pub const fn of(timeout: Duration) -> Self {
        Self { no_wait: false, timeout }
    }

    pub const fn new(no_wait: bool, timeout: Duration) -> Self {
        Self { no_wait, timeout }
    }

    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits until the request is answered. `written`: the receipt as the server wrote it.
    pub fn outcome(
        &self,
        line: &ServerLine,
        written: String,
        receipt: &CommandReceipt,
    ) -> Result<Outcome, CommandFailure> {
        let message = receipt.message.as_deref().map(for_people);
        if receipt.state.0 == ReceiptState::Unchanged {
            let message = format!("not done: {}", message.unwrap_or_default());
            return Ok(Outcome { exit: Exit::NothingDone, message, document: written });
        }
        if self.no_wait {
            let next = "requested; the pool's next turn answers it".to_owned();
            let message = message.unwrap_or(next);
            return Ok(Outcome { exit: Exit::Done, message, document: written });
        }
        let found = line.repeat(self.timeout, |line| match &receipt.machine {
            Some(machine) if receipt.state.0 == ReceiptState::Done => {
                of_mark(line, receipt, machine)
            }
            _ => of_command(line, receipt),
        })?;
        found.ok_or_else(|| unanswered(receipt, self.timeout))
    }
}

fn of_command(
    line: &ServerLine,
    receipt: &CommandReceipt,
) -> Result<Option<Outcome>, CommandFailure> {
    let path = ["pools", &receipt.pool, "commands", &receipt.id];
    let (document, status): (_, CommandStatus) = line.read(&Request::get(&path))?;
    let message = for_people(status.message.as_deref().unwrap_or_default());
    let (exit, message) = match status.state.0 {
        CommandState::Waiting => return Ok(None),
        CommandState::Accepted => {
            let tenths = status.at.0.since(receipt.at.0).millis().max(0) / 100;
            (Exit::Done, format!("{message} ({}.{} s)", tenths / 10, tenths % 10))
        }
        CommandState::Refused => (Exit::NothingDone, format!("not done: {message}")),
    };
    Ok(Some(Outcome { exit, message, document }))
}

/// The turn that sees a mark says what it means for the machine.
fn of_mark(
    line: &ServerLine,
    receipt: &CommandReceipt,
    machine: &str,
) -> Result<Option<Outcome>, CommandFailure> {
    let path = ["pools", &receipt.pool, "machines", machine, "explain"];
    let read = line.read::<Explanation>(&Request::get(&path));
    let (document, explained) = match read {
        Ok(read) => read,
        Err(failure) if failure.code == NO_PLAN_YET => return Ok(None),
        Err(failure) if failure.exit == Exit::NotFound => {
            let message = format!("machine {} is gone", plain(machine));
            return Ok(Some(gone(receipt, message, failure.to_json())));
        }
        Err(failure) => return Err(failure),
    };
    let message = for_people(&explained.message);
    Ok(match &explained.machine {
        Some(machine) if shows(machine, &receipt.verb) => {
            Some(Outcome { exit: Exit::Done, message, document })
        }
        Some(_) => None,
        // It left meanwhile; the message is from the history.
        None => Some(gone(receipt, message, document)),
    })
}

/// The machine is gone, as a delete request wanted it.
fn gone(receipt: &CommandReceipt, message: String, document: String) -> Outcome {
    let is_wanted = receipt.verb == CommandName::DeleteMachine.name();
    let exit = if is_wanted { Exit::Done } else { Exit::NothingDone };
    Outcome { exit, message, document }
}

/// Whether the machine carries what the verb asked for.
fn shows(machine: &MachineStatus, verb: &str) -> bool {
    match verb {
        _ if verb == CommandName::Hold.name() => machine.hold.is_some(),
        _ if verb == CommandName::Release.name() => machine.hold.is_none(),
        _ if verb == CommandName::Undelete.name() => machine.delete_requested.is_none(),
        _ => machine.delete_requested.is_some(),
    }
}

fn unanswered(receipt: &CommandReceipt, limit: Duration) -> CommandFailure {
    let pool = plain(&receipt.pool);
    let limit = span(limit);
    let say = format!("{} is recorded, but {pool} made no turn within {limit}", receipt.verb);
    CommandFailure::new(Exit::Unreachable, "timedOut", say).help(format!(
        "`poolkeeper status {pool}` says why; `poolkeeper history {pool}` will show the answer"
    ))
}

impl ServerLine {
    /// Looks again and again until there is an answer; `None`: there is none in time. Outages are waited for.
    pub(in crate::cli) fn repeat<T>(
        &self,
        limit: Duration,
        look: impl FnMut(&Self) -> Result<Option<T>, CommandFailure>,
    ) -> Result<Option<T>, CommandFailure> {
        self.within(limit, |line| line.repeat_in_time(look))
    }

    fn repeat_in_time<T>(
        &self,
        mut look: impl FnMut(&Self) -> Result<Option<T>, CommandFailure>,
    ) -> Result<Option<T>, CommandFailure> {
        let (mut pause, mut has_answered) = (PAUSE, self.has_answered.get());
        loop {
            let silent = self.after(SILENT);
            let lost = match look(self) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => None,
                Err(failure) if failure.exit == Exit::Unreachable => Some(failure),
                Err(failure) => return Err(failure),
            };
            // A look that the end of the time cuts short says nothing against the server.
            let is_cut = lost.as_ref().is_some_and(|failure| failure.code == "timedOut")
                && has_answered
                && self.after(Duration::ZERO) < silent;
            has_answered |= lost.is_none();
            if self.is_over_after(pause) {
                return lost.filter(|_| !is_cut).map_or(Ok(None), Err);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Pauses; true: the deadline came first.
    fn is_over_after(&self, pause: Duration) -> bool {
        self.runtime.block_on(async {
            let pause = tokio::time::sleep(pause);
            match self.deadline.get() {
                Some(deadline) => tokio::time::timeout_at(deadline, pause).await.is_err(),
                None => {
                    pause.await;
                    false
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::api::client::Client;

    /// It accepts connections, and never answers.
    fn silent() -> (TcpListener, ServerLine) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&listener.local_addr().unwrap().to_string(), None, None).unwrap();
        (listener, ServerLine::of(client).unwrap())
    }

    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_time_is_kept_against_a_silent_server() {
        let (_listener, line) = silent();
        let over = line.after(LONG);
        let path = ["pools", "web", "status"];
        let sent = line.within(SHORT, |line| line.send(&Request::get(&path))).unwrap_err();
        assert_eq!((sent.exit, sent.code), (Exit::Unreachable, "timedOut"));
        let repeated = line.repeat(SHORT, |line| line.send(&Request::get(&path)).map(Some));
        assert_eq!(repeated.unwrap_err().code, "timedOut");
        // The limit around another one holds.
        let within = line.within(SHORT, |line| {
            line.repeat(LONG, |line| line.send(&Request::get(&path)).map(Some))
        });
        assert_eq!(within.unwrap_err().code, "timedOut");
        let patience = Patience::of(SHORT);
        let asked = line.request(&["pools", "web", "pause"], &serde_json::json!({}), &patience);
        let failure = asked.unwrap_err();
        assert_eq!(failure.code, "timedOut");
        let help = failure.report.help.unwrap();
        assert!(help.contains("poolkeeper doctor") && help.contains("poolkeeper audit"), "{help}");
        assert!(line.after(Duration::ZERO) < over, "the time was not kept");
        assert!(line.deadline.get().is_none(), "a limit ends with its requests");
    }

    #[test]
    fn the_end_of_the_time_is_no_fault_of_a_server_that_answers() {
        let (_listener, line) = silent();
        let mut looks = 0;
        let found = line.repeat(2 * PAUSE, |line| {
            looks += 1;
            match looks {
                1 => Ok(None::<String>),
                _ => line.send(&Request::get(&["pools"])).map(Some),
            }
        });
        assert_eq!((found, looks), (Ok(None), 2));
    }

    #[test]
    fn a_duration_is_more_than_nothing() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        for text in ["", "0s", "90", "-5s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
