//! How a command ends: exit codes, and failures reported to people and to programs.

use std::fmt::{self, Write};
use std::io;

use crate::api::v1::problem::{DocumentProblem, ErrorKeys};

macro_rules! exits {
    ($($exit:ident = $code:literal, $meaning:literal;)*) => {
        /// Exit codes, the same for every command. Public contract.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Exit {
            $($exit,)*
        }

        impl Exit {
            pub const ALL: [Exit; [$($code),*].len()] = [$(Exit::$exit),*];

            pub const fn code(self) -> u8 {
                match self {
                    $(Exit::$exit => $code,)*
                }
            }

            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Exit::$exit => $meaning,)*
                }
            }
        }
    };
}

exits! {
    Done = 0, "done; holds are not errors";
    Internal = 1, "internal error, or a file that cannot be read or written";
    Input = 2, "bad usage or bad input (ndjson: at the end, if any line was bad)";
    Refused = 3, "refused by an invariant";
    NotFound = 4, "not found";
    Unreachable = 5, "unreachable, or timed out";
    NotPermitted = 6, "not permitted";
    Findings = 7, "doctor has findings";
    RolloutFailed = 8, "the rollout failed, was aborted or was rolled back";
    NeedsPerson = 9, "it waits for a person";
    ChangesPending = 10, "changes are pending (plan --detailed-exitcode)";
    NothingDone = 11, "the request was answered, and nothing was done";
}

impl Exit {
    pub fn table() -> String {
        let mut table = String::from("Exit codes:\n");
        for exit in Exit::ALL {
            let _ = writeln!(table, "  {:<8} {}", exit.code(), exit.meaning());
        }
        table.push_str("  130, 143 ended by a signal");
        table
    }
}

/// The end of a help text: the examples, then the exit codes.
pub(super) fn with_table_of_exit_codes(examples: &str) -> String {
    format!("{examples}\n\n{}", Exit::table())
}

/// The end of the help text of one command.
pub(super) fn with_exit_codes(examples: &str) -> String {
    format!("{examples}\n\nExit codes: 0 is done; `poolkeeper help` lists all")
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The reader of our output closed the pipe: there is nothing left to report, and this is not an error.
const PIPE_CLOSED: &str = "pipeClosed";

/// Why a command failed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CommandFailure {
    pub exit: Exit,
    /// The kind of failure. The names are public contract.
    pub code: &'static str,
    /// Boxed, so that a successful `Result` stays small.
    pub report: Box<ErrorReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorReport {
    pub file: Option<String>,
    /// Line and column, both counted from 1.
    pub place: Option<(u32, u32)>,
    /// The path in the document, such as `machines[3].since`.
    pub field: String,
    pub message: String,
    pub help: Option<String>,
    /// The text in which `place` is, if its line is to be shown.
    pub text: Option<String>,
}

impl CommandFailure {
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            report: Box::new(ErrorReport { message: message.into(), ..ErrorReport::default() }),
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Input, "usage", message)
    }

    /// A document could not be parsed.
    pub fn bad_input(problem: DocumentProblem, file: Option<&str>) -> Self {
        let report = ErrorReport {
            file: file.map(str::to_owned),
            place: Some((problem.line, problem.column)),
            field: problem.field,
            message: problem.message,
            help: problem.help,
            text: None,
        };
        Self { exit: Exit::Input, code: problem.code.name(), report: Box::new(report) }
    }

    /// A source could not be read.
    pub fn unreadable(what: &str, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "check the name, or give `-` to read standard input",
            io::ErrorKind::PermissionDenied => "make it readable for you, or read it as its owner",
            io::ErrorKind::IsADirectory => "name a file in that folder",
            _ => "try again; if it persists, copy the file elsewhere and read the copy",
        };
        let say = format!("{what} cannot be read: {}", reason(error));
        Self::new(Exit::Internal, "unreadable", say).help(help)
    }

    /// Standard output could not be written.
    pub fn unwritable(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, PIPE_CLOSED, "the reader of the output went away");
        }
        Self::unwritable_file("standard output", error)
    }

    /// A file could not be written.
    pub fn unwritable_file(what: &str, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "name a file in a folder that exists",
            io::ErrorKind::IsADirectory => "name a file in that folder",
            io::ErrorKind::PermissionDenied => "make it writable for you, or write elsewhere",
            _ => "free some space, or write elsewhere",
        };
        let say = format!("{what} cannot be written: {}", reason(error));
        Self::new(Exit::Internal, "unwritable", say).help(help)
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.report.help = Some(help.into());
        self
    }

    /// Shows the line of the fault, for people.
    pub fn shown_in(mut self, text: &str) -> Self {
        self.report.text = Some(text.to_owned());
        self
    }

    pub fn is_silent(&self) -> bool {
        self.code == PIPE_CLOSED
    }

    /// The Error document on one line.
    pub fn to_json(&self) -> String {
        let keys = ErrorKeys {
            file: self.report.file.as_deref(),
            place: self.report.place,
            field: &self.report.field,
            code: self.code,
            message: &self.report.message,
            help: self.report.help.as_deref(),
        };
        keys.to_json()
    }
}

/// The system's error message, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((plain, _)) => plain.to_owned(),
        None => text,
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.report.file {
            write!(f, "{file}:")?;
        }
        if let Some((line, column)) = self.report.place {
            write!(f, "{line}:{column}:")?;
        }
        if self.report.file.is_some() || self.report.place.is_some() {
            f.write_str(" ")?;
        }
        if !self.report.field.is_empty() {
            write!(f, "{}: ", self.report.field)?;
        }
        f.write_str(&self.report.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let closed = CommandFailure::unwritable(&io::ErrorKind::BrokenPipe.into());
        assert!(closed.is_silent() && closed.exit == Exit::Done);
        let full = CommandFailure::unwritable(&io::ErrorKind::StorageFull.into());
        assert!(!full.is_silent() && full.exit == Exit::Internal);
        let file = CommandFailure::unwritable_file("x.svg", &io::ErrorKind::BrokenPipe.into());
        assert!(!file.is_silent() && file.exit == Exit::Internal);
    }
}
