//! The command line: its commands, and the options they share.

use clap::{CommandFactory, Parser, Subcommand};

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::{OutputOption, Shell};
use super::{
    client, completions, demo, diff, doctor, emulate, explain, guide, init, man, plan, schema,
    serve, simulate, status, store, token, validate, version, wait,
};

const ABOUT: &str =
    "Keeps pools of cloud VMs at the right size and on the right model, without taking them down.";

const MORE: &str = "\
Poolkeeper replaces failed, surplus and outdated machines, in that order. It never lets fewer machines serve than \
the pool allows, and never runs more than it allows. For each machine and each pool it says what it does, or why it \
waits.

serve is the daemon, and the only command that changes anything in the cloud. status, plan, explain and doctor query \
a running daemon about its pools, by name; status, plan and doctor can also read a live scale set. The commands from \
get to take-over query a running daemon or send it requests; it records who sent each request, and why. The others \
need no network and no account. emulate serves this machine only.";

const EXAMPLES: &str = "\
Examples:
  poolkeeper demo                               a live rollout, in two minutes
  poolkeeper simulate pools/web.yaml            simulate a rollout of your pool
  poolkeeper serve --pools pools                the daemon
  poolkeeper validate pools/                    check all pool files in a folder
  poolkeeper status                             the status of all pools
  poolkeeper explain web 17                     why machine 17 is (not) replaced
  poolkeeper status $(az vmss show -g rg -n web --query id -o tsv)
                                                the status of a live scale set
  poolkeeper doctor --pool-file pools/web.yaml  check what managing it requires
  poolkeeper plan --pool-file pools/web.yaml    what would be done now, and why
  poolkeeper plan --snapshot now.json           the same, for a snapshot file
  poolkeeper explain --snapshot now.json        why nothing (more) happens now
  poolkeeper explain --snapshot now.json 17     what happens to machine 17
  poolkeeper get                                the pools of a running daemon
  poolkeeper pause web --why 'errors since noon'
                                                stop its rollout where it is
  poolkeeper emulate --tls                      simulated Azure for az and SDKs

Environment:
  NO_COLOR        no colour, even on a terminal
  COLUMNS, LINES  page size, if it differs from the terminal's";

#[derive(Debug, Parser)]
#[command(
    name = "poolkeeper",
    version,
    long_version = version::long(),
    about = ABOUT,
    long_about = format!("{ABOUT}\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES),
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: CliCommand,

    /// Output format
    // Listed after the command's own options, however many there are.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        display_order = 900
    )]
    pub output: OutputOption,
}

macro_rules! commands {
    ($($command:ident = $file:ident::$args:ident $(, $more:expr)?;)*) => {
        #[derive(Debug, Subcommand)]
        pub enum CliCommand {
            $($command($file::$args),)*
        }

        impl CliCommand {
            pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
                match self {
                    $(CliCommand::$command(command) => command.run(shell $(, $more)?),)*
                }
            }
        }
    };
}

// In the order in which the help text lists them.
commands! {
    Demo = demo::Demo;
    Serve = serve::Serve;
    Status = status::StatusCommand;
    Plan = plan::PlanCommand;
    Explain = explain::Explain;
    Doctor = doctor::Doctor;
    Wait = wait::WaitCommand;
    Get = client::Get;
    History = client::HistoryCommand;
    Audit = client::AuditCommand;
    Diff = diff::DiffCommand;
    Apply = client::Apply;
    Unmanage = client::Unmanage;
    Pause = client::Pause;
    Resume = client::Resume;
    Abort = client::Abort;
    Retry = client::Retry;
    Approve = client::Approve;
    Promote = client::Promote;
    Rollback = client::RollbackCommand;
    Refresh = client::Refresh;
    Hold = client::Hold;
    Release = client::Release;
    DeleteMachine = client::DeleteMachine;
    Undelete = client::Undelete;
    Abandon = client::Abandon;
    ResetCapacity = client::ResetCapacity;
    ResetBreaker = client::ResetBreaker;
    TakeOver = client::TakeOver;
    CreateToken = token::CreateToken;
    Store = store::StoreCommand;
    Simulate = simulate::Simulate;
    Init = init::Init;
    Validate = validate::Validate;
    Schema = schema::SchemaCommand;
    Emulate = emulate::Emulate;
    Guide = guide::GuideCommand;
    Completions = completions::Completions, Cli::command();
    Man = man::ManCommand, Cli::command();
    Version = version::VersionCommand;
    Names = completions::CompletionNames, Cli::command();
}

#[cfg(test)]
mod tests {
    use super::*;

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
