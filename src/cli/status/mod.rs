//! `status`: how pools are, on one screen: by the Poolkeeper that keeps them, or by a look at the cloud.
//!
//! Never here: a decision, a write. Begin with [`Status::run`]. Of a look, `facts` is what is told, `page` and `document`
//! are its two shapes; by the API, `standing` is what is told and `served` shows it.

mod document;
mod facts;
mod page;
mod served;
mod standing;

use std::path::PathBuf;

use clap::Args;

use super::args::{Format, with_exit_codes};
use super::client::{self, Server};
use super::cloud::{Cloud, ENVIRONMENT};
use super::exit::{Exit, Failure};
use super::live::{self, Named, Seen};
use super::shell::Shell;
use crate::daemon::House;
use facts::Standing;

const ABOUT: &str =
    "Shows how pools are: what is wrong, what moves, when it ends, what waits for you";
const MORE: &str = "\
Asks a Poolkeeper that serves. Of one POOL it says on one screen whether anything is wrong, what moves, when it ends, \
what waits for a person and what to type then; without a name, or with several, it is a table with a line a pool, the \
worst first.

Named by the id of its scale set, by its pool file, or by both, which picks one pool of a file, a pool is looked at in \
the cloud instead, once, and by nobody's memory: how large it is, which versions its machines are of, which are failed, \
unready or out of date, what is under way, what of Azure's own acts on it, what a plan would do now, and what holds it \
back. Without a pool file it is judged by the defaults, and the scale set says how many machines it wants.

It changes nothing, in the cloud or anywhere else. `plan` and `explain` say more of each machine.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper status                                    every pool, the worst first
  poolkeeper status web                                one pool, on one screen
  poolkeeper status -o ndjson | jq -r 'select(.wrong != []) | .pool'
                                                       pools with which something is wrong
  poolkeeper status /subscriptions/…/virtualMachineScaleSets/web
                                                       a scale set, as the cloud has it
  poolkeeper status --pool-file pools/web.yaml         the same, judged by its pool file

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT))
)]
pub struct Status {
    /// Names of pools of a Poolkeeper that serves, or resource ids of live scale sets
    #[arg(value_name = "POOL|RESOURCE", value_parser = Named::read)]
    pools: Vec<Named>,

    /// A pool file, whose live pools are looked at
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// List every pool, also those that are fine
    #[arg(long, conflicts_with = "pool_files")]
    all: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: Cloud,
}

impl Status {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let (names, sets) = live::split(&self.pools)?;
        if sets.is_empty() && self.pool_files.is_empty() {
            return served::show(&self.server, &names, self.all, shell);
        }
        live::no_names(&names)?;
        let pools = live::meant(&self.pool_files, &sets, shell)?;
        live::check_format(shell, &pools, "status")?;
        self.cloud.visit(async |house| live::each(house, pools, shell, show).await)?
    }
}

async fn show(house: &House, shell: &mut Shell, seen: &Seen) -> Result<(), Failure> {
    let anatomy = house.anatomy(&seen.meant.policy).await?;
    let standing = Standing::of(seen, &anatomy);
    match shell.format {
        Format::Table => shell.print(&page::page(&standing, shell.term)),
        _ => shell.line(&document::document(&standing)),
    }
}
