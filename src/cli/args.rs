//! The command line: its commands, and what they all know.

use clap::{Parser, Subcommand, ValueEnum};

use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::{
    client, completions, demo, doctor, emulate, explain, plan, serve, simulate, status, store,
    token, validate,
};

const ABOUT: &str =
    "Keeps pools of cloud VMs at the right size and on the right model, without taking them down.";

const MORE: &str = "\
Poolkeeper replaces machines that are failed, surplus or out of date, in that order, never lets fewer machines serve \
than the pool allows and never runs more than it allows, and says for each machine and each pool what it does, or why \
it waits.

serve is the daemon, and the only command that changes anything in the cloud. status, plan, explain and doctor ask a \
Poolkeeper that serves about its pools, by their names; status, plan and doctor also look at a live scale set where you \
name one. Those from get to take-over ask a Poolkeeper that serves, which writes down who asked and why; the others \
need no network and no account. emulate serves this machine only.";

const EXAMPLES: &str = "\
Examples:
  poolkeeper demo                               a rollout before your eyes, in two minutes
  poolkeeper simulate pools/web.yaml            the same for a pool of yours, rehearsed at once
  poolkeeper serve --pools pools                the daemon
  poolkeeper validate pools/                    check every pool file of a folder
  poolkeeper status                             how the pools of one that serves are
  poolkeeper explain web 17                     why its machine 17 is, or is not, replaced
  poolkeeper status $(az vmss show -g rg -n web --query id -o tsv)
                                                how a live scale set is
  poolkeeper doctor --pool-file pools/web.yaml  whether its care has all that it needs
  poolkeeper plan --pool-file pools/web.yaml    what would be done now, and why
  poolkeeper plan --snapshot now.json           the same, for a picture in a file
  poolkeeper explain --snapshot now.json        why nothing (more) happens now
  poolkeeper explain --snapshot now.json 17     what becomes of machine 17
  poolkeeper get                                how the pools of one that serves are
  poolkeeper pause web --why 'errors since noon'
                                                stop its rollout where it is
  poolkeeper emulate --tls                      a made-up Azure for az and the SDKs

Environment:
  NO_COLOR        no colour, even on a terminal
  COLUMNS, LINES  how large a page is, where not as large as the terminal";

#[derive(Debug, Parser)]
#[command(
    name = "poolkeeper",
    version,
    about = ABOUT,
    long_about = format!("{ABOUT}\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES),
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// How answers are printed
    // Behind the options of a command, however many commands there are.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        display_order = 900
    )]
    pub output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A page for people; colour only on a terminal
    #[default]
    Table,
    /// One JSON document; errors too
    Json,
    /// One JSON document a line, for commands that answer a stream
    Ndjson,
}

macro_rules! commands {
    ($($command:ident in $file:ident;)*) => {
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($command($file::$command),)*
        }

        impl Command {
            pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
                match self {
                    $(Command::$command(command) => command.run(shell),)*
                }
            }
        }
    };
}

// In the order of the help text.
commands! {
    Demo in demo;
    Serve in serve;
    Status in status;
    Plan in plan;
    Explain in explain;
    Doctor in doctor;
    Get in client;
    History in client;
    Audit in client;
    Apply in client;
    Remove in client;
    Pause in client;
    Resume in client;
    Abort in client;
    Retry in client;
    Approve in client;
    Promote in client;
    Rollback in client;
    Refresh in client;
    Hold in client;
    Release in client;
    DeleteMachine in client;
    Keep in client;
    WriteOff in client;
    SettleCapacity in client;
    TakeOver in client;
    Token in token;
    Store in store;
    Simulate in simulate;
    Validate in validate;
    Emulate in emulate;
    Completions in completions;
    Names in completions;
}

/// The end of a help text: its examples, and the exit codes.
pub(super) fn with_exit_codes(examples: &str) -> String {
    format!("{examples}\n\n{}", Exit::table())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_and_exit_codes() {
        for command in Cli::command().get_subcommands() {
            let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(after.contains("Examples:") && after.contains("Exit codes:"), "{name}");
            assert!(command.get_about().is_some() && command.get_long_about().is_some(), "{name}");
        }
    }
}
