//! `status`: the status of pools on one screen, from a running server or from a read of the cloud.
//!
//! Never here: a decision, a write. Begin with [`StatusCommand::run`]. `report` derives the status from answers of the
//! API, `page` prints it; `look` and `served` read the answers from a server, `live_status` makes them from a read of the cloud.

mod document;
mod live_status;
mod look;
mod page;
mod report;
#[cfg(test)]
pub(super) mod samples;
mod served;

use std::path::PathBuf;

use clap::Args;

use super::client::{self, Server};
use super::cloud::{CloudArgs, ENVIRONMENT};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live::{self, LiveSet, TargetArg};
use super::output::{OutputFormat, Shell};
use super::page::TimeStyle;
use super::watch;
use crate::daemon::CloudReader;
use live_status::LiveStatus;
pub(super) use look::PoolLook;
pub(super) use page::{holds, style};
pub(super) use report::{More, PoolHealth, PoolReport, counts};

const ABOUT: &str =
    "Shows the status of pools: problems, progress, expected end, what waits for you";
const MORE: &str = "\
Queries a running daemon. For one POOL it shows on one screen whether anything is wrong, what is in progress, when \
it ends, what waits for a person, and which command to use then. Without a name, or with several, it shows a table \
with a line per pool, the worst first.

A pool that is named by the id of its scale set, by its pool file, or by both, which selects one pool of a file, is \
read from the cloud instead, once and without stored state. The same screen then begins with its scale set: its size, \
the versions of its machines, and which of Azure's own features act on it; and it shows what a plan would do now. \
Without a pool file, the pool uses the default policy, and the scale set sets the number of machines.

It changes nothing, in the cloud or anywhere else. `plan` and `explain` show more about each machine.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper status                                    every pool, the worst first
  poolkeeper status web                                one pool, on one screen
  poolkeeper status --watch                            a line for each change
  poolkeeper status -o ndjson | jq -r 'select(.problems != []) | .pool'
                                                       pools with problems
  poolkeeper status /subscriptions/…/virtualMachineScaleSets/web
                                                       a live scale set
  poolkeeper status --pool-file pools/web.yaml         the same, with its pool file

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT))
)]
pub struct StatusCommand {
    /// Names of pools on the server, or resource ids of scale sets to read from the cloud
    #[arg(value_name = "POOL|RESOURCE", value_parser = TargetArg::read)]
    pools: Vec<TargetArg>,

    /// A pool file, whose pools are read from the cloud
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// List every pool, even healthy ones
    #[arg(long, conflicts_with = "pool_files")]
    all: bool,

    /// Print a line for each change until Ctrl-C, for pipes and logs
    #[arg(long, conflicts_with_all = ["pool_files", "all"])]
    watch: bool,

    /// Show times as they are, not as distances from the last check
    #[arg(long)]
    timestamps: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl StatusCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let (names, sets) = live::split(&self.pools)?;
        if self.watch && sets.is_empty() {
            return watch::print_changes(&self.server, &names, shell);
        }
        if self.watch {
            let say = "--watch follows the pools of a daemon, and a resource is read once";
            return Err(CommandFailure::usage(say).help("name pools, or leave --watch out"));
        }
        // Distances are for people: a document keeps its times.
        let times = TimeStyle::of(self.timestamps || shell.format != OutputFormat::Table);
        if sets.is_empty() && self.pool_files.is_empty() {
            return served::show(&self.server, &names, self.all, times, shell);
        }
        live::no_names(&names)?;
        let pools = live::meant(&self.pool_files, &sets, shell)?;
        live::check_format(shell, &pools, "status")?;
        let show = async |house: &CloudReader, shell: &mut Shell, seen: &LiveSet| {
            show(house, shell, seen, times).await
        };
        self.cloud.visit(async |house| live::each(house, pools, shell, show).await)?
    }
}

async fn show(
    house: &CloudReader,
    shell: &mut Shell,
    seen: &LiveSet,
    times: TimeStyle,
) -> Result<(), CommandFailure> {
    let anatomy = house.anatomy(&seen.meant.policy).await?;
    let live = LiveStatus::of(seen, &anatomy);
    match shell.format {
        OutputFormat::Table => {
            let page = live.page(shell.term, times);
            shell.print(&page)
        }
        _ => shell.line(&document::document(&live).to_string()),
    }
}
