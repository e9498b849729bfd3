//! The command line: its commands, and the options they share.

use clap::{Command, CommandFactory, Parser, Subcommand};

use super::exit::{CommandFailure, Exit, with_table_of_exit_codes};
use super::output::{OutputOption, Shell};
use super::text::wrap;
use super::{
    client, completions, context, demo, diff, doctor, emulate, explain, guide, init, man, plan,
    schema, serve, simulate, snapshot, status, store, token, validate, version, wait, watch,
};

/// The widest help text.
const WIDEST: usize = 100;

const ABOUT: &str =
    "Keeps pools of cloud VMs at the right size and on the right model, without taking them down.";

const MORE: &str = "\
Poolkeeper replaces failed, surplus and outdated machines, in that order. It never lets fewer machines serve than \
the pool allows, and never runs more than it allows. For each machine and each pool it says what it does, or why it \
waits.

serve is the daemon, and the only command that changes anything in the cloud. The commands that see, manage and steer \
query a running daemon about its pools, by name, or send it requests; it records who sent each request, and why. \
status, plan, doctor and init can also read a live scale set. The others need no network and no account. emulate \
serves this machine only.";

const EXAMPLES: &str = "\
Examples:
  poolkeeper demo                               a live rollout, in two minutes
  poolkeeper simulate pools/web.yaml            simulate a rollout of your pool
  poolkeeper serve --pools pools                the daemon
  poolkeeper validate pools/                    check all pool files in a folder
  poolkeeper status                             the status of all pools
  poolkeeper watch web                          a pool, live on the terminal
  poolkeeper explain web 17                     why machine 17 is (not) replaced
  poolkeeper status $(az vmss show -g rg -n web --query id -o tsv)
                                                the status of a live scale set
  poolkeeper doctor --pool-file pools/web.yaml  check what managing it requires
  poolkeeper plan --pool-file pools/web.yaml    what would be done now, and why
  poolkeeper plan --snapshot now.json           the same, for a snapshot file
  poolkeeper explain --snapshot now.json        why nothing (more) happens now
  poolkeeper explain --snapshot now.json 17     what happens to machine 17
  poolkeeper get                                the pools of a running daemon
  poolkeeper --context prod get                 the same, of the server named prod
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
    after_long_help = with_table_of_exit_codes(EXAMPLES),
    max_term_width = WIDEST,
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

    // Commands that need a server show it among the options of the server.
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    pub context: Option<String>,
}

macro_rules! commands {
    ($($heading:literal { $($command:ident = $file:ident::$args:ident $(, $more:expr)?;)* })*) => {
        #[derive(Debug, Subcommand)]
        pub enum CliCommand {
            $($($command($file::$args),)*)*
        }

        impl CliCommand {
            pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
                match self {
                    $($(CliCommand::$command(command) => command.run(shell $(, $more)?),)*)*
                }
            }
        }

        /// The headings of the help text, each with the number of its commands.
        const GROUPS: &[(&str, usize)] = &[$(($heading, [$(stringify!($command)),*].len())),*];
    };
}

// In the order in which the help text lists them.
commands! {
    "Begin" {
        Demo = demo::Demo;
        Init = init::Init;
        Validate = validate::Validate;
        Schema = schema::SchemaCommand;
        Simulate = simulate::Simulate;
        Emulate = emulate::Emulate;
    }
    "Run the daemon" {
        Serve = serve::Serve;
        Doctor = doctor::Doctor;
        CreateToken = token::CreateToken;
        Store = store::StoreCommand;
    }
    "See what happens, and why" {
        Status = status::StatusCommand;
        Watch = watch::WatchCommand;
        Get = client::Get;
        Plan = plan::PlanCommand;
        Diff = diff::DiffCommand;
        Explain = explain::Explain;
        Snapshot = snapshot::SnapshotCommand;
        Wait = wait::WaitCommand;
        History = client::HistoryCommand;
        Audit = client::AuditCommand;
    }
    "Manage pools" {
        Apply = client::Apply;
        Unmanage = client::Unmanage;
        Scale = client::ScaleCommand;
        TakeOver = client::TakeOver;
        Refresh = client::Refresh;
        ResetCapacity = client::ResetCapacity;
        ResetBreaker = client::ResetBreaker;
        StopAll = client::StopAll;
        ResumeAll = client::ResumeAll;
    }
    "Steer a rollout" {
        Pause = client::Pause;
        Resume = client::Resume;
        Approve = client::Approve;
        Promote = client::Promote;
        Retry = client::Retry;
        Abort = client::Abort;
        Rollback = client::RollbackCommand;
    }
    "One machine" {
        Hold = client::Hold;
        Release = client::Release;
        DeleteMachine = client::DeleteMachine;
        Undelete = client::Undelete;
        Abandon = client::Abandon;
    }
    "Help" {
        Guide = guide::GuideCommand;
        Context = context::ContextCommand;
        Man = man::ManCommand, Cli::command();
        Completions = completions::Completions, Cli::command();
        Version = version::VersionCommand;
        Names = completions::CompletionNames, Cli::command();
    }
}

/// The command line as people see it: its help lists the commands in groups.
pub(super) fn command_line(width: Option<usize>) -> Command {
    let plain = Cli::command();
    let header = plain.get_styles().get_header();
    let options = format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    let groups = grouped(&plain, width.unwrap_or(WIDEST).min(WIDEST));
    let usage = "{usage-heading} {usage}";
    plain.help_template(format!("{{about-with-newline}}\n{usage}\n\n{groups}{options}"))
}

/// The commands below their headings, in lines of at most this width.
fn grouped(plain: &Command, width: usize) -> String {
    let (header, name) = (plain.get_styles().get_header(), plain.get_styles().get_literal());
    let longest = shown(plain.get_subcommands()).map(|one| one.get_name().len()).max();
    let column = longest.unwrap_or_default() + 4;
    let room = width.saturating_sub(column);
    let (mut text, mut commands) = (String::new(), plain.get_subcommands());
    for (heading, count) in GROUPS {
        text.push_str(&format!("{header}{heading}:{header:#}\n"));
        for command in shown(commands.by_ref().take(*count)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let mut lines = wrap(&about, Some(room)).into_iter();
            let (pad, first) = (column - 4, lines.next().unwrap_or_default());
            text.push_str(&format!("  {name}{:<pad$}{name:#}  {first}\n", command.get_name()));
            lines.for_each(|line| text.push_str(&format!("{}{line}\n", " ".repeat(column))));
        }
        text.push('\n');
    }
    text
}

fn shown<'a>(commands: impl Iterator<Item = &'a Command>) -> impl Iterator<Item = &'a Command> {
    commands.filter(|command| !command.is_hide_set())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_lists_every_command_in_a_group() {
        let mut command = command_line(Some(80));
        let help = command.render_long_help().to_string();
        for one in shown(Cli::command().get_subcommands()) {
            let line = format!("\n  {} ", one.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}: {help}");
        }
        for (heading, _) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n")), "{heading}: {help}");
        }
        let of_groups: usize = GROUPS.iter().map(|(_, count)| count).sum();
        assert_eq!(of_groups, Cli::command().get_subcommands().count());
        let mut groups = help.lines().skip_while(|line| *line != "Begin:");
        assert!(
            groups.by_ref().take_while(|line| *line != "Options:").all(|line| line.len() <= 80)
        );
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
