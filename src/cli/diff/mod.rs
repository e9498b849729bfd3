//! `diff`: pool files against the pools of a running daemon.
//!
//! Never here: a change. Begin with [`DiffCommand::run`]; `changes` compares, `files` reads what `apply` also reads.

pub(super) mod changes;
pub(super) mod files;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::client::{ENVIRONMENT, Server};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::Style;
use super::text::plain;
use crate::api::v1::API_VERSION;
use changes::KeyChange;

const ABOUT: &str = "Compares pool files with the pools of a running daemon";
const MORE: &str = "\
Reads pool files and folders as `validate` does, and compares each pool with the one that the daemon manages under \
that name. Defaults are filled in on both sides, so that only real changes show: ~ a key with another value, + a key \
that the daemon does not have, - a key that the files do not have. It changes nothing; `apply` does.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper diff web.yaml
  poolkeeper diff pools/ --detailed-exitcode    exit code 10 if anything differs";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct DiffCommand {
    /// Pool files, folders of them, or `-` for standard input
    #[arg(required = true, value_name = "FILE|FOLDER")]
    paths: Vec<PathBuf>,

    /// Exit with 10 if anything differs
    #[arg(long)]
    detailed_exitcode: bool,

    #[command(flatten)]
    server: Server,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffDocument {
    api_version: &'static str,
    kind: &'static str,
    pools: Vec<PoolDiff>,
}

#[derive(Serialize)]
struct PoolDiff {
    pool: String,
    /// The daemon does not manage the pool.
    new: bool,
    changes: Vec<KeyChange>,
}

impl DiffCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("diff")?;
        let files = files::read(&self.paths, shell)?;
        let line = self.server.line()?;
        let mut pools = Vec::new();
        for policy in files.iter().flat_map(|file| &file.policies) {
            let managed = line.managed(policy.name.as_str())?;
            let changes = changes::of_pool(managed.as_ref().map(|pool| &pool.document), policy);
            let pool = policy.name.to_string();
            pools.push(PoolDiff { pool, new: managed.is_none(), changes });
        }
        let differs = pools.iter().any(|pool| !pool.changes.is_empty());
        if is_json {
            let document = DiffDocument { api_version: API_VERSION, kind: "Diff", pools };
            shell.line(&serde_json::to_string(&document).unwrap_or_default())?;
        } else {
            for pool in &pools {
                print(pool, shell)?;
            }
        }
        let pending = differs && self.detailed_exitcode;
        Ok(if pending { Exit::ChangesPending } else { Exit::Done })
    }
}

fn print(pool: &PoolDiff, shell: &mut Shell) -> Result<(), CommandFailure> {
    let name = shell.term.paint(Style::Bold, &plain(&pool.pool));
    if pool.changes.is_empty() {
        return shell.line(&format!("{name}: no difference"));
    }
    let what = if pool.new { "new" } else { "differs" };
    let mut page = format!("{name}: {what}\n");
    changes::draw(&pool.changes, shell.term, &mut page);
    shell.print(&page)
}
