//! Commands that are clients of a running Poolkeeper server: verbs, pools, history, audit.
//!
//! Never here: a decision, or a second way to make a change: everything goes through the HTTP API, with who and why.
//! Begin with [`ServerLine`], the connection. `verbs` sends requests about pools and machines, `outcome` waits for the
//! answer of a turn, `apply` sends pool documents, `pools` removes them, `get` reads them (`short_pool` leaves their
//! defaults out), `history` prints the history and the audit, `story` says which lines of it tell people something,
//! `stream` follows it, `served` and `managed` read the answers that pages print.

mod apply;
mod environment;
mod failures;
mod get;
mod history;
pub(super) mod managed;
mod outcome;
mod pools;
mod sending;
pub(super) mod served;
mod short_pool;
mod story;
mod stream;
mod verbs;
mod why;

pub use apply::Apply;
pub use get::Get;
pub use history::{AuditCommand, HistoryCommand};
pub use pools::Unmanage;
pub use verbs::{
    Abandon, Abort, Approve, DeleteMachine, Hold, Pause, Promote, Refresh, Release, ResetBreaker,
    ResetCapacity, Resume, Retry, RollbackCommand, TakeOver, Undelete,
};

pub(super) use outcome::{duration, span};
pub(super) use stream::StreamNews;

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::exit::{CommandFailure, Exit};
use crate::api::client::{Client, ClientToken, DEFAULT_SERVER, Request};
pub(super) use environment::ENVIRONMENT;
use environment::set;
pub(super) use failures::{NO_PLAN_YET, failure};

/// Items per page: the server's maximum.
const PAGE: u32 = 500;

/// The address of the Poolkeeper server. The token comes from the environment only: other users can see arguments.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Server {
    /// URL of the Poolkeeper server; by default, a server on this machine
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// PEM file of certificates to trust in addition to the system's
    #[arg(long = "server-ca", value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,
}

impl Server {
    fn client(&self) -> Result<Client, CommandFailure> {
        let server = self.server.clone().or_else(|| set("POOLKEEPER_SERVER"));
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let token = match set("POOLKEEPER_TOKEN_FILE") {
            Some(path) => {
                let read = std::fs::read_to_string(&path);
                Some(read.map_err(|error| CommandFailure::unreadable(&path, &error))?)
            }
            None => set("POOLKEEPER_TOKEN"),
        };
        let ca = self.ca.clone().or_else(|| set("POOLKEEPER_CA_FILE").map(PathBuf::from));
        let ca = ca.map(|path| {
            std::fs::read(&path)
                .map_err(|error| CommandFailure::unreadable(&path.display().to_string(), &error))
        });
        let token = token.as_deref().map(ClientToken::new);
        Client::new(&server, token, ca.transpose()?.as_deref()).map_err(|error| failure(&error))
    }

    /// Whether an option or the environment names the server.
    pub(in crate::cli) fn is_named(&self) -> bool {
        self.server.is_some() || set("POOLKEEPER_SERVER").is_some()
    }

    pub(in crate::cli) const fn of(server: Option<String>, ca: Option<PathBuf>) -> Self {
        Self { server, ca }
    }

    /// Opens a connection for several requests, one after another.
    pub(in crate::cli) fn line(&self) -> Result<ServerLine, CommandFailure> {
        ServerLine::of(self.client()?)
    }

    fn ask(&self, request: &Request<'_>) -> Result<String, CommandFailure> {
        self.line()?.send(request)
    }

    fn ask_json(&self, request: &Request<'_>) -> Result<(String, Value), CommandFailure> {
        self.line()?.read(request)
    }
}

/// A connection to a server; every request uses one.
#[derive(Debug)]
pub(in crate::cli) struct ServerLine {
    client: Client,
    runtime: Runtime,
}

impl ServerLine {
    fn of(client: Client) -> Result<Self, CommandFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("no runtime: {error}"))
        })?;
        Ok(Self { client, runtime })
    }

    pub fn send(&self, request: &Request<'_>) -> Result<String, CommandFailure> {
        self.runtime.block_on(self.client.send(request)).map_err(|error| failure(&error))
    }

    /// The answer, as text and as a parsed value.
    pub fn read<T: DeserializeOwned>(
        &self,
        request: &Request<'_>,
    ) -> Result<(String, T), CommandFailure> {
        let text = self.send(request)?;
        let read = understood(&text)?;
        Ok((text, read))
    }

    /// The answer of a probe, whose status code is part of the answer.
    pub fn probe<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, CommandFailure> {
        let request = Request::get(path);
        let asked = self.runtime.block_on(self.client.probe(&request));
        understood(&asked.map_err(|error| failure(&error))?)
    }

    /// The first page of a list, if it arrives in time.
    pub fn within(&self, time: Duration, path: &[&str], most: u32) -> Option<Value> {
        let request = Request::get(path).with("limit", most);
        let asked = async { tokio::time::timeout(time, self.client.send(&request)).await };
        let answer = self.runtime.block_on(asked).ok()?.ok()?;
        serde_json::from_str(&answer).ok()
    }

    /// All pages of a list, joined into one.
    pub fn all(&self, path: &[&str]) -> Result<Value, CommandFailure> {
        let get = || Request::get(path).with("limit", PAGE);
        let (_, mut all): (_, Value) = self.read(&get())?;
        rows(&mut all)?;
        while let Some(after) = all["next"].as_str() {
            let (_, mut page): (_, Value) = self.read(&get().with("after", after))?;
            rows(&mut all)?.append(rows(&mut page)?);
            all["next"] = page["next"].take();
        }
        Ok(all)
    }
}

pub(super) fn understood<T: DeserializeOwned>(text: &str) -> Result<T, CommandFailure> {
    serde_json::from_str(text).map_err(|error| strange(&error))
}

/// The lines of a page.
fn rows(page: &mut Value) -> Result<&mut Vec<Value>, CommandFailure> {
    let rows = page.get_mut("items").and_then(Value::as_array_mut);
    rows.ok_or_else(|| strange(&"a list has no items"))
}

/// The items of a list that the server sent.
fn items<T: DeserializeOwned>(list: &Value) -> Result<Vec<T>, CommandFailure> {
    Vec::<T>::deserialize(&list["items"]).map_err(|error| strange(&error))
}

pub(super) fn strange(error: &dyn Display) -> CommandFailure {
    let say = format!("cannot parse the server's answer: {error}");
    CommandFailure::new(Exit::Internal, "strangeAnswer", say)
        .help("the server may be of another version: `poolkeeper --version` says which this is")
}
