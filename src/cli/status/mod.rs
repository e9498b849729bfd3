//! `status`: how a live pool is, on one screen.
//!
//! Never here: a decision, a write. Begin with [`Status::run`]; `facts` is what is told, `page` and `document` are its
//! two shapes.

mod document;
mod facts;
mod page;

use std::path::PathBuf;

use clap::Args;

use super::args::{Format, with_exit_codes};
use super::cloud::{Cloud, ENVIRONMENT};
use super::exit::{Exit, Failure};
use super::live::{self, Seen};
use super::shell::Shell;
use crate::daemon::{House, set_id};
use crate::model::ids::ScaleSetId;
use facts::Standing;

const ABOUT: &str =
    "Shows how live pools are: size, versions, trouble, what is under way, what a plan would do";
const MORE: &str = "\
Looks at each scale set once and says on one screen how large it is, which versions its machines are of, which are \
failed, unready or out of date, what is under way, what of Azure's own acts on it, what a plan would do now, and what \
holds it back. It changes nothing, in the cloud or anywhere else.

A pool is named by the id of its scale set, by its pool file, or by both, which picks one pool of a file. Without a \
pool file it is judged by the defaults, and the scale set says how many machines it wants. Nothing is remembered from \
looks before: what waits for a second look or for somebody's word is told as such. `plan` says more of each machine.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper status /subscriptions/…/virtualMachineScaleSets/web
  poolkeeper status --pool-file pools/web.yaml
  poolkeeper status --pool-file all.yaml -o ndjson | jq -r 'select(.outdated != []) | .pool'
                                                       pools with machines that are out of date

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct Status {
    /// Resource ids of live scale sets
    #[arg(value_name = "RESOURCE", value_parser = set_id, required_unless_present = "pool_files")]
    resources: Vec<ScaleSetId>,

    /// A pool file, whose live pools are looked at
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    #[command(flatten)]
    cloud: Cloud,
}

impl Status {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
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
