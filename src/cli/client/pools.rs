//! Ends the management of a pool of a running Poolkeeper server.

use clap::Args;

use super::why::Why;
use super::{ENVIRONMENT, Server, failure, understood};
use crate::api::client::Request;
use crate::api::v1::resources::asked::UnmanageReceipt;
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::cli::text::plain;

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
        let why = self.why.given(&self.server)?;
        let written = self.server.ask(&request.with("why", why))?;
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
