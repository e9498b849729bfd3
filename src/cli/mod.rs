//! TERMINAL IN. Commands for people at a terminal and for programs that run them.
//!
//! Never here: a decision of its own, a call to the cloud, a clock. A command reads documents, or reads a pool through
//! the daemon's `CloudReader`, calls the modules that decide, and prints their results.
//! Begin with [`run`]; [`args`] lists the commands, one file each. A new command is a file and a line in that list.

pub mod args;
mod client;
mod cloud;
mod completions;
mod decide;
mod demo;
mod doctor;
mod draw;
mod emulate;
pub mod exit;
mod explain;
mod init;
mod live;
mod man;
mod output;
mod page;
mod plan;
mod schema;
mod serve;
mod simulate;
mod source;
mod status;
mod store;
mod table;
pub mod term;
mod text;
mod token;
mod validate;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use args::Cli;
use exit::{CommandFailure, Exit};
use output::{OutputFormat, Shell};
use term::Term;

/// Runs the command that the arguments name, and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let exit = match Cli::try_parse_from(&args) {
        Ok(cli) => command(&cli),
        Err(error) => not_parsed(&error, &args),
    };
    exit.into()
}

fn command(cli: &Cli) -> Exit {
    let mut shell = Shell::new(cli.output, Term::of_this_process());
    let ended = cli.command.run(&mut shell);
    let ended = ended.and_then(|exit| shell.flush().map(|()| exit));
    match ended {
        Ok(exit) => exit,
        Err(failure) => shell.fail(&failure),
    }
}

/// Help and version are requested output; any other parse error is wrong usage.
fn not_parsed(error: &clap::Error, args: &[OsString]) -> Exit {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    match wanted_format(args).filter(|_| !asked) {
        Some(format) => Shell::new(format, Term::PLAIN).fail(&wrong_usage(error)),
        None => match error.print() {
            Ok(()) if asked => Exit::Done,
            Err(error) if asked => Shell::new(OutputFormat::Table, Term::PLAIN)
                .fail(&CommandFailure::unwritable(&error)),
            // A closed standard error leaves nowhere to report the mistake.
            Ok(()) | Err(_) => Exit::Input,
        },
    }
}

/// The parser's message, without its usage page.
fn wrong_usage(error: &clap::Error) -> CommandFailure {
    const HELP: &str = "`poolkeeper help` lists commands and options";
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return CommandFailure::usage("a command is needed").help(HELP);
    }
    let text = error.render().to_string();
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split("\n\n").map(words);
    let say = parts.next().unwrap_or_default();
    let say = say.strip_prefix("error: ").unwrap_or(&say);
    let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    CommandFailure::usage(say).help(tip.unwrap_or_else(|| HELP.to_owned()))
}

/// The JSON format that unparsable arguments request, if they do.
fn wanted_format(args: &[OsString]) -> Option<OutputFormat> {
    let mut words = args.iter().filter_map(|arg| arg.to_str()).peekable();
    while let Some(word) = words.next() {
        let value = match word {
            "-o" | "--output" => words.peek().copied(),
            _ => word
                .strip_prefix("--output=")
                .or_else(|| word.strip_prefix("-o=").or_else(|| word.strip_prefix("-o"))),
        };
        match value {
            Some("json") => return Some(OutputFormat::Json),
            Some("ndjson") => return Some(OutputFormat::Ndjson),
            _ => {}
        }
    }
    None
}
