//! `store`: backs up the daemon's store while it runs, checks it, and restores it.
//!
//! Never here: SQL, or a rule about files (both belong to the store). Begin with [`StoreCommand::run`].

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::serve::settings_file;
use super::text::count;
use crate::api::v1::API_VERSION;
use crate::daemon::settings::{Sources, StoreAt, keys};
use crate::daemon::store::{OpenError, Restoration, StoreSummary, backup, check, restore};

const ABOUT: &str = "Backs up, checks and restores the store of the daemon";
const MORE: &str = "\
backup copies the store while the daemon runs; the copy gets its name only when it is complete and on disk. check \
reads every record of a store or of a copy, and verifies the hash chain of its audit. restore replaces the store \
with a copy: the daemon must be stopped, and the old store is kept next to it. The next start records in the audit \
and the log that the store was restored.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper store backup backups/monday.db
  poolkeeper store check
  poolkeeper store check backups/monday.db
  poolkeeper store restore backups/monday.db --store poolkeeper.db";

#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = format!("{ABOUT}.\n\n{MORE}"), after_long_help = with_exit_codes(EXAMPLES))]
pub struct StoreCommand {
    #[command(subcommand)]
    deed: StoreAction,

    /// Path of the store; by default, the path in the settings
    #[arg(long = "store", global = true, value_name = "PATH")]
    path: Option<PathBuf>,

    /// Settings file that names the store; by default, the file that POOLKEEPER_SETTINGS names
    #[arg(long, global = true, value_name = "FILE")]
    settings: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum StoreAction {
    /// Copy the store to a file; the daemon may be running
    Backup { to: PathBuf },
    /// Read every record of the store, or of a copy of it
    Check { file: Option<PathBuf> },
    /// Replace the store with a copy; the daemon must be stopped
    Restore { from: PathBuf },
}

impl StoreCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("store")?;
        let (verb, file, done) = match &self.deed {
            StoreAction::Backup { to } => ("copied to", to.clone(), backup(&self.path()?, to)),
            StoreAction::Check { file } => {
                let path = file.clone().map_or_else(|| self.path(), Ok)?;
                ("whole:", path.clone(), check(&path))
            }
            StoreAction::Restore { from } => return self.restore(from, json, shell),
        };
        let summary = done.map_err(|error| refused(&error))?;
        print_summary(verb, &file, &summary, None, json, shell)
    }

    fn restore(&self, from: &Path, json: bool, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let path = self.path()?;
        let who = format!("poolkeeper store restore, process {}", std::process::id());
        let Restoration { summary, before } =
            restore(from, &path, &who).map_err(|error| refused(&error))?;
        print_summary("restored:", &path, &summary, before.as_deref(), json, shell)
    }

    /// The path of the store, resolved from the same settings as the daemon's.
    fn path(&self) -> Result<PathBuf, CommandFailure> {
        if let Some(path) = &self.path {
            return Ok(path.clone());
        }
        let variables = env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let file = settings_file(self.settings.clone())?;
        let sources = Sources { file, variables: variables.collect(), flags: Vec::new() };
        let settled = sources.settle().map_err(|faults| {
            let said = faults.first().map(ToString::to_string).unwrap_or_default();
            CommandFailure::new(Exit::Input, "badValue", said)
        })?;
        match settled.settings().store {
            StoreAt::File { path, .. } => Ok(path),
            StoreAt::Memory => {
                let say = format!("{} is memory, which has no file", keys::STORE.name);
                Err(CommandFailure::usage(say).help("name the store with --store"))
            }
        }
    }
}

fn print_summary(
    verb: &str,
    file: &Path,
    summary: &StoreSummary,
    before: Option<&Path>,
    json: bool,
    shell: &mut Shell,
) -> Result<Exit, CommandFailure> {
    let broken = summary.audited.broken;
    let is_whole = summary.damaged.is_empty() && broken.is_none();
    if json {
        shell.line(&document(file, summary, before).to_string())?;
    } else {
        let verb = if is_whole { verb } else { "damaged:" };
        shell.line(&format!("{verb} {} ({})", file.display(), what(summary)))?;
        for (pool, why) in &summary.damaged {
            shell.line(&format!("pool {pool}: {why}"))?;
        }
        if let Some(broken) = broken {
            shell.line(&format!(
                "the audit breaks: {broken}; compare it with its copy in the log"
            ))?;
        }
        if let Some(before) = before {
            shell.line(&format!("what was there before is kept: {}", before.display()))?;
        }
    }
    Ok(if is_whole { Exit::Done } else { Exit::Internal })
}

fn what(summary: &StoreSummary) -> String {
    let (pools, documents) = (count(summary.pools, "pool"), summary.documents);
    let lease = match &summary.lease {
        Some(lease) if lease.is_given_up() => format!("; epoch {}", lease.epoch.0),
        Some(lease) => {
            format!("; epoch {}, led by {} until {}", lease.epoch.0, lease.holder, lease.not_after)
        }
        None => String::new(),
    };
    format!("schema {}; {pools}, {documents} applied over the API{lease}", summary.schema)
}

fn document(file: &Path, summary: &StoreSummary, before: Option<&Path>) -> Value {
    let damaged = summary.damaged.iter();
    let damaged =
        damaged.map(|(pool, why)| json!({"pool": pool.as_str(), "message": why.to_string()}));
    json!({
        "apiVersion": API_VERSION,
        "kind": "StoreSummary",
        "file": file.display().to_string(),
        "schema": summary.schema,
        "pools": summary.pools,
        "documents": summary.documents,
        "epoch": summary.lease.as_ref().map(|lease| lease.epoch.0),
        "damaged": damaged.collect::<Vec<_>>(),
        "audit": {
            "lines": summary.audited.lines,
            "broken": summary.audited.broken.map(|broken| broken.to_string()),
        },
        "before": before.map(|before| before.display().to_string()),
    })
}

fn refused(error: &OpenError) -> CommandFailure {
    let failure = CommandFailure::new(Exit::Internal, "store", error.to_string());
    match error {
        OpenError::NoStore { .. } => failure.help("name the store with --store"),
        OpenError::InUse { .. } => failure.help("a store that is in use is not replaced"),
        _ => failure,
    }
}
