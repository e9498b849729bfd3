//! Pools of a running Poolkeeper server: applies and removes them.

use std::path::PathBuf;

use clap::Args;

use super::why::Why;
use super::{ENVIRONMENT, Server, failure, understood};
use crate::api::client::Request;
use crate::api::v1::pool::{PoolDocuments, to_json};
use crate::api::v1::problem::DocumentProblem;
use crate::api::v1::resources::asked::UnmanageReceipt;
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::cli::source::SnapshotSource;
use crate::cli::text::plain;
use crate::model::policy::Policy;

const APPLY: &str = "Puts pools under management, or changes their documents";
const APPLY_MORE: &str = "\
Checks each pool of the file here, then sends it to the running daemon, which stores it. A pool from a folder that \
the daemon watches is changed in that folder, not by this command.";

#[derive(Debug, Args)]
#[command(
    about = APPLY,
    long_about = format!("{APPLY}.\n\n{APPLY_MORE}"),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper apply web.yaml --why 'first pool'\n\n{ENVIRONMENT}"))
)]
pub struct Apply {
    /// A pool file, or `-` for standard input
    file: PathBuf,

    #[command(flatten)]
    why: Why,

    #[command(flatten)]
    server: Server,
}

impl Apply {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let source = SnapshotSource::new(&self.file);
        let bytes = source.read(shell, crate::api::v1::node::MAX_BYTES)?;
        let (policies, faults) = PoolDocuments::default().read_bytes(&bytes, None);
        if let Some(problem) = DocumentProblem::of(&faults) {
            return Err(CommandFailure::bad_input(problem, source.file().as_deref()));
        }
        if policies.is_empty() {
            return Err(CommandFailure::usage(format!("{} holds no pool", source.name())));
        }
        let why = self.why.given()?;
        for policy in &policies {
            self.apply(shell, policy, &bytes, policies.len() == 1, &why)?;
        }
        Ok(Exit::Done)
    }

    /// Sends a single pool as it was written. Sends each of several pools by itself, with its defaults filled in.
    fn apply(
        &self,
        shell: &mut Shell,
        policy: &Policy,
        bytes: &[u8],
        alone: bool,
        why: &str,
    ) -> Result<(), CommandFailure> {
        let document = if alone { bytes.to_vec() } else { to_json(policy).into_bytes() };
        let path = ["pools", policy.name.as_str()];
        let request = Request::put(&path, document).map_err(|error| failure(&error))?;
        let written = self.server.ask(&request.with("why", why))?;
        match shell.format {
            crate::cli::output::OutputFormat::Table => {
                shell.line(&format!("applied: {}", policy.name))
            }
            _ => shell.line(&written),
        }
    }
}

const UNMANAGE: &str = "Stops managing a pool; its machines and scale set are not touched";

#[derive(Debug, Args)]
#[command(
    about = UNMANAGE,
    long_about = format!("{UNMANAGE}.\n\nOnly for a pool that was applied. To stop managing a pool of a watched folder, remove its file."),
    after_long_help = with_exit_codes(&format!("Examples:\n  poolkeeper unmanage web --why 'moved away'\n\n{ENVIRONMENT}"))
)]
pub struct Unmanage {
    /// Name of the pool
    pool: String,

    #[command(flatten)]
    why: Why,

    #[command(flatten)]
    server: Server,
}

impl Unmanage {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("unmanage")?;
        let path = ["pools", self.pool.as_str()];
        let request = Request::delete(&path).map_err(|error| failure(&error))?;
        let written = self.server.ask(&request.with("why", self.why.given()?))?;
        if is_json {
            shell.line(&written)?;
            return Ok(Exit::Done);
        }
        let UnmanageReceipt { left, .. } = understood(&written)?;
        shell.line(&format!(
            "no longer managed: {}; its machines are untouched",
            plain(&self.pool)
        ))?;
        for left in left {
            shell.line(&format!("  left behind: {}", plain(&left)))?;
        }
        Ok(Exit::Done)
    }
}
