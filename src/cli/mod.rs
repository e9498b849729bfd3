//! TERMINAL IN. Commands for people at a terminal and for programs that run them.
//!
//! Never here: a decision of its own, a call to the cloud, a clock. A command reads documents, or reads a pool through
//! the daemon's `CloudReader`, calls the modules that decide, and prints their results.
//! Begin with [`run`]; [`args`] lists the commands, one file each. A new command is a file and a line in that list.

pub mod args;
mod client;
mod cloud;
mod completions;
mod context;
mod decide;
mod demo;
mod diff;
mod doctor;
mod draw;
mod emulate;
pub mod exit;
mod explain;
mod file;
mod guide;
mod init;
mod live;
mod man;
mod output;
mod page;
mod plan;
mod schema;
mod serve;
mod simulate;
mod snapshot;
mod source;
mod status;
mod store;
mod table;
pub mod term;
mod text;
mod token;
mod validate;
mod version;
mod wait;
mod watch;
mod yaml;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use args::{Cli, CliCommand};
use exit::{CommandFailure, Exit};
use output::{OutputFormat, Shell};
use term::Term;

/// Runs the command that the arguments name, and returns its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let line = args::command_line(Term::of_this_process().width);
    let read = line.try_get_matches_from(&args).and_then(|read| Cli::from_arg_matches(&read));
    let exit = match read {
        Ok(cli) => command(&cli),
        Err(error) => not_parsed(&error, &args),
    };
    exit.into()
}

fn command(cli: &Cli) -> Exit {
    let mut shell = Shell::of(cli.output, Term::of_this_process());
    let prints_lists = matches!(cli.command, CliCommand::Get(_));
    let ended = match cli.output.is_of_lists() && !prints_lists {
        true => Err(cli.output.no_list()),
        false => cli.command.run(&mut shell),
    };
    let ended = ended.and_then(|exit| shell.flush().map(|()| exit));
    match ended {
        Ok(exit) => exit,
        Err(failure) => shell.fail(&failure),
    }
}

/// Help and version are requested output; any other parse error is wrong usage.
fn not_parsed(error: &clap::Error, args: &[OsString]) -> Exit {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let format = wanted_format(args)
        .or_else(|| elsewhere(error).map(|_| OutputFormat::Table))
        .filter(|_| !asked);
    match format {
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
    if let Some((name, hint)) = elsewhere(error) {
        return CommandFailure::usage(format!("there is no command {name}")).help(hint);
    }
    let text = error.render().to_string();
    let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split("\n\n").map(words);
    let say = parts.next().unwrap_or_default();
    let say = say.strip_prefix("error: ").unwrap_or(&say);
    let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    CommandFailure::usage(say).help(tip.unwrap_or_else(|| HELP.to_owned()))
}

/// Commands of other tools, and what does the same here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("logs", "`poolkeeper history POOL --follow` shows what happens in a pool"),
    (
        "rollout",
        "`poolkeeper status POOL` shows a rollout; `pause`, `resume`, `abort`, `retry` and `rollback` control it",
    ),
    ("edit", "`poolkeeper get POOL > pool.yaml`, edit the file, `poolkeeper apply pool.yaml`"),
    ("create", "`poolkeeper apply FILE` puts a pool under management"),
    ("add", "`poolkeeper apply FILE` puts a pool under management"),
    (
        "delete",
        "`poolkeeper delete-machine POOL MACHINE` replaces a machine; `poolkeeper unmanage POOL` ends management",
    ),
    (
        "remove",
        "`poolkeeper unmanage POOL` ends management; `poolkeeper delete-machine` replaces a machine",
    ),
    ("list", "`poolkeeper get` lists pools, `poolkeeper get POOL machines` lists machines"),
    ("ls", "`poolkeeper get` lists pools, `poolkeeper get POOL machines` lists machines"),
    ("config", "`poolkeeper context` lists named servers, and chooses the one that commands use"),
    ("login", "`poolkeeper context set NAME --server URL --token-file FILE` adds a server"),
    ("top", "`poolkeeper status` shows every pool, the worst first"),
    ("events", "`poolkeeper history POOL` shows what happened in a pool"),
    ("restart", "`poolkeeper refresh POOL` replaces every machine"),
    (
        "stop",
        "`poolkeeper pause POOL` stops a rollout; `poolkeeper stop-all` begins nothing in any pool",
    ),
    ("undo", "`poolkeeper rollback POOL` goes back to an earlier revision"),
    ("cordon", "`poolkeeper hold POOL MACHINE` keeps a machine as it is"),
    ("uncordon", "`poolkeeper release POOL MACHINE` ends a hold"),
    ("drain", "`poolkeeper delete-machine POOL MACHINE` drains a machine and replaces it"),
    ("run", "`poolkeeper serve` runs the daemon"),
    ("start", "`poolkeeper serve` runs the daemon"),
    ("check", "`poolkeeper validate FILE` checks a pool file, `poolkeeper doctor` a daemon"),
    ("lint", "`poolkeeper validate FILE` checks a pool file"),
];

/// A command that other tools have, and the hint for it.
fn elsewhere(error: &clap::Error) -> Option<(&'static str, &'static str)> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    ELSEWHERE.iter().copied().find(|(known, _)| known == name)
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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn commands_of_other_tools_lead_to_ours() {
        let table = Cli::command();
        for (name, hint) in ELSEWHERE {
            assert!(table.find_subcommand(name).is_none(), "{name} is a command");
            let error = Cli::try_parse_from(["poolkeeper", name, "status", "web"]).unwrap_err();
            let failure = wrong_usage(&error);
            assert_eq!(failure.report.help.as_deref(), Some(*hint), "{name}");
            let mut parts = hint.split('`').skip(1).step_by(2);
            let command = |part: &str| part.split(' ').nth(1).map(str::to_owned);
            let known = |part: &str| match part.strip_prefix("poolkeeper ") {
                Some(rest) if rest.starts_with("--") => true,
                Some(_) => command(part).is_some_and(|name| table.find_subcommand(name).is_some()),
                None => table.find_subcommand(part).is_some() || part.contains('.'),
            };
            assert!(parts.all(known), "{hint}");
        }
        let error = Cli::try_parse_from(["poolkeeper", "pln"]).unwrap_err();
        assert!(wrong_usage(&error).report.help.is_some_and(|help| help.contains("plan")));
    }
}
