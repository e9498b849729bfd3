//! A command as a gate: exit 0 passes, 1 fails, and everything else says nothing.
//!
//! A command has an argument list and no shell, the variables that its settings name and no others, no input, and the
//! working directory `/`. The pool and the gate are variables, so no name of a pool becomes an argument.

mod definition;
mod group;
mod output;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::WaitStatus;
use tokio::sync::Semaphore;

pub use self::definition::{CommandFault, GateCommand, check_argv, check_inherit, check_variable};
use self::definition::{GATE, POOL};
use self::group::RunningCommand;
use self::output::plain;
use crate::model::facts::Verdict;
use crate::observe::{GateQuestion, GateReading};

/// What a command answers that knows no verdict now (`EX_TEMPFAIL`).
const NOT_NOW: i32 = 75;
/// Longest path in a message, in characters.
const LONGEST_PATH: usize = 120;

type Variables = BTreeMap<Box<str>, OsString>;

/// Runs commands, of which only so many run at once.
#[derive(Debug)]
pub struct CommandRunner {
    at_once: usize,
    places: Arc<Semaphore>,
}

impl CommandRunner {
    /// At least one runs at once.
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { at_once, places: Arc::new(Semaphore::new(at_once)) }
    }

    /// Ends at most 2 s after the time limit. Ended or dropped, it leaves no process behind.
    pub async fn run(&self, command: &GateCommand, of: GateQuestion<'_>) -> GateReading {
        if let Err(fault) = command.check() {
            return GateReading::unknown(format!("it may not run: {fault}"));
        }
        let variables = variables(command);
        let within = Duration::from_millis(of.timeout.millis().unsigned_abs());
        let mut late = pin!(tokio::time::sleep(within));
        let place = tokio::select! {
            biased;
            Ok(place) = Arc::clone(&self.places).acquire_owned() => place,
            () = &mut late => return self.crowded(of),
        };
        let started = tokio::select! {
            biased;
            started = RunningCommand::start(process(command, &variables, of), place) => started,
            () = &mut late => return GateReading::unknown(late_start(of)),
        };
        let mut running = match started {
            Ok(running) => running,
            Err(error) => return GateReading::unknown(refusal(command, &error)),
        };
        let in_time = tokio::select! {
            biased;
            () = running.ended() => true,
            () = &mut late => false,
        };
        if !in_time {
            running.terminate().await;
        }
        let status = running.kill().await;
        let (verdict, end) = if in_time { exit(status) } else { (Verdict::Unknown, late_exit(of)) };
        match running.output.first_line(&variables) {
            Some(line) => GateReading::new(verdict, format!("{end}: {line}")),
            None => GateReading::new(verdict, end),
        }
    }

    fn crowded(&self, of: GateQuestion<'_>) -> GateReading {
        GateReading::unknown(format!(
            "it had no place to run within {}: the limit of commands at once is {}; make them quicker, or raise that limit",
            of.timeout, self.at_once
        ))
    }
}

/// Those of the settings. One with a value in the settings has that value.
fn variables(command: &GateCommand) -> Variables {
    let inherit = command.inherit.iter();
    let inherited = inherit.filter_map(|name| Some((name.clone(), std::env::var_os(&**name)?)));
    let written = command.environment.iter();
    inherited.chain(written.map(|(name, value)| (name.clone(), (**value).into()))).collect()
}

fn process(command: &GateCommand, variables: &Variables, of: GateQuestion<'_>) -> Command {
    let mut argv = command.argv.iter().map(|part| &**part);
    let mut process = Command::new(argv.next().unwrap_or_default());
    process.args(argv).env_clear();
    process.envs(variables.iter().map(|(name, value)| (&**name, value)));
    process.env(POOL, of.pool.as_str()).env(GATE, of.gate);
    process
}

/// The verdict of an exit in time, and how it was.
fn exit(status: Option<WaitStatus>) -> (Verdict, String) {
    let signal = status.and_then(WaitStatus::terminating_signal);
    match status.and_then(WaitStatus::exit_status) {
        Some(0) => (Verdict::Pass, "exit 0".to_owned()),
        Some(1) => (Verdict::Fail, "exit 1".to_owned()),
        Some(NOT_NOW) => (Verdict::Unknown, format!("exit {NOT_NOW}")),
        Some(code) => {
            (Verdict::Unknown, format!("exit {code}, but only 0 passes and only 1 fails"))
        }
        None => match signal {
            Some(signal) => (Verdict::Unknown, format!("signal {signal} ended it")),
            None => (Verdict::Unknown, "the system does not say how it ended".to_owned()),
        },
    }
}

fn late_start(of: GateQuestion<'_>) -> String {
    format!("it does not start within {}; check the file system of the program", of.timeout)
}

fn late_exit(of: GateQuestion<'_>) -> String {
    format!("no exit within {}, so it was ended; make it quicker, or raise timeout", of.timeout)
}

/// Why the system did not start it, and what helps.
fn refusal(command: &GateCommand, error: &io::Error) -> String {
    let program = command.argv.first().map_or("", |program| &**program);
    let file = std::fs::metadata(program);
    let path: String = plain(program).chars().take(LONGEST_PATH).collect();
    let cause = match (error.kind(), file) {
        (ErrorKind::NotFound | ErrorKind::NotADirectory, Err(_)) => {
            format!("there is no {path}; install it, or correct the command in the settings")
        }
        (ErrorKind::NotFound, Ok(_)) => {
            format!(
                "the program that runs {path} is missing; correct its first line, or install that program"
            )
        }
        (_, Ok(file)) if file.is_dir() => {
            format!("{path} is a directory; name a program in it")
        }
        (ErrorKind::PermissionDenied, Ok(file)) if file.permissions().mode() & 0o111 == 0 => {
            format!("{path} is not executable; run chmod +x on it")
        }
        (ErrorKind::PermissionDenied, _) => {
            format!(
                "the user of the daemon may not run {path}; check its rights and those of its directories"
            )
        }
        (ErrorKind::ExecutableFileBusy, _) => {
            format!("{path} is open for writing; close it, and replace a program by a rename")
        }
        _ if Errno::from_io_error(error) == Some(Errno::NOEXEC) => {
            format!(
                "{path} is no program of this system; a script begins with #! and an interpreter"
            )
        }
        _ => format!("{error}; check the limits of processes, open files and memory of the daemon"),
    };
    format!("it does not start: {cause}")
}

#[cfg(test)]
mod tests;
