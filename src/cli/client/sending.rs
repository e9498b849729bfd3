//! One request about a pool or a machine, from the first byte to the answer of a turn.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::outcome::{Outcome, Patience};
use super::{ServerLine, failure};
use crate::api::client::Request;
use crate::api::v1::resources::asked::CommandReceipt;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::text::plain;

impl ServerLine {
    /// Sends a request and waits for its answer. The message of the outcome names the verb and the pool.
    pub(super) fn request(
        &self,
        path: &[&str],
        body: &Value,
        patience: &Patience,
    ) -> Result<Outcome, CommandFailure> {
        let (receipt, outcome) = self.within(patience.timeout(), |line| {
            let sent: Result<(_, CommandReceipt), _> = line.post(path, body);
            let (written, receipt) = sent.map_err(|failure| line.about(path, failure))?;
            let outcome = patience.outcome(line, written, &receipt)?;
            Ok::<_, CommandFailure>((receipt, outcome))
        })?;
        let (verb, pool) = (plain(&receipt.verb), plain(&receipt.pool));
        Ok(Outcome { message: format!("{verb} {pool}: {}", outcome.message), ..outcome })
    }

    /// Sends a request. The failure says where to see whether a request without an answer is recorded.
    pub(super) fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &Value,
    ) -> Result<(String, T), CommandFailure> {
        let request = Request::post(path, body.to_string()).map_err(|error| failure(&error))?;
        self.read(&request).map_err(unsure)
    }

    /// Sends a request with its reason, and waits for its answer: how it ended, and in words.
    pub(in crate::cli) fn act(
        &self,
        path: &[&str],
        why: &str,
        limit: Duration,
    ) -> Result<(Exit, String), CommandFailure> {
        let outcome = self.request(path, &json!({ "why": why }), &Patience::of(limit))?;
        Ok((outcome.exit, outcome.message))
    }
}

/// A request without an answer may be recorded all the same.
fn unsure(failure: CommandFailure) -> CommandFailure {
    if failure.code != "timedOut" {
        return failure;
    }
    let help = failure.report.help.clone().unwrap_or_default();
    failure.help(format!("{help}; `poolkeeper audit` shows whether the request is recorded"))
}
