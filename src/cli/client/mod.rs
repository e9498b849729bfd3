//! Commands that ask a Poolkeeper that serves: verbs, pools, history, audit.
//!
//! Never here: a decision, or a second way to a change: everything goes through the HTTP API, with who and why.
//! Begin with [`Line`]; `verbs` are the wishes, `pools` what is applied, got and removed, `told` what happened, `served`
//! what pages tell of a pool.

mod pools;
pub(super) mod served;
mod told;
mod verbs;

pub use pools::{Apply, Get, Remove};
pub use told::{Audit, History};
pub use verbs::{
    Abort, Approve, DeleteMachine, Hold, Keep, Pause, Promote, Refresh, Release, Resume, Retry,
    Rollback, SettleCapacity, TakeOver, WriteOff,
};

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::exit::{Exit, Failure};
use crate::api::client::{Client, ClientError, DEFAULT_SERVER, Request, Token};

/// Items of one page: the most that is answered.
const PAGE: u32 = 500;

/// No turn of a pool has decided yet.
pub(super) const NO_PLAN_YET: &str = "noPlanYet";

/// The end of what these commands say of themselves.
pub(super) const ENVIRONMENT: &str = "\
Environment:
  POOLKEEPER_SERVER      the server, where --server does not say
  POOLKEEPER_TOKEN_FILE  a file that holds the token; or, without it,
  POOLKEEPER_TOKEN       the token itself
  POOLKEEPER_CA_FILE     certificates to trust beside those of the system, in PEM";

/// Where the Poolkeeper is that is asked. A token is taken from the environment alone: arguments are seen by others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Server {
    /// The server that is asked; by default one on this machine
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// Certificates to trust beside those of the system, in PEM
    #[arg(long = "server-ca", value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,
}

impl Server {
    fn client(&self) -> Result<Client, Failure> {
        let server = self.server.clone().or_else(|| set("POOLKEEPER_SERVER"));
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let token = match set("POOLKEEPER_TOKEN_FILE") {
            Some(path) => {
                let read = std::fs::read_to_string(&path);
                Some(read.map_err(|error| Failure::unreadable(&path, &error))?)
            }
            None => set("POOLKEEPER_TOKEN"),
        };
        let ca = self.ca.clone().or_else(|| set("POOLKEEPER_CA_FILE").map(PathBuf::from));
        let ca = ca.map(|path| {
            std::fs::read(&path)
                .map_err(|error| Failure::unreadable(&path.display().to_string(), &error))
        });
        let token = token.as_deref().map(Token::new);
        Client::new(&server, token, ca.transpose()?.as_deref()).map_err(|error| failure(&error))
    }

    /// Whether somebody said where it is.
    pub(in crate::cli) fn is_named(&self) -> bool {
        self.server.is_some() || set("POOLKEEPER_SERVER").is_some()
    }

    pub(in crate::cli) const fn of(server: Option<String>, ca: Option<PathBuf>) -> Self {
        Self { server, ca }
    }

    /// For several requests, one after the other.
    pub(in crate::cli) fn line(&self) -> Result<Line, Failure> {
        Line::of(self.client()?)
    }

    fn ask(&self, request: &Request<'_>) -> Result<String, Failure> {
        self.line()?.send(request)
    }

    fn ask_json(&self, request: &Request<'_>) -> Result<(String, Value), Failure> {
        self.line()?.read(request)
    }
}

/// A variable of the environment that says something.
fn set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// A line to a server: every request goes over one.
#[derive(Debug)]
pub(in crate::cli) struct Line {
    client: Client,
    runtime: Runtime,
}

impl Line {
    fn of(client: Client) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Failure::new(Exit::Internal, "internal", format!("no runtime: {error}"))
        })?;
        Ok(Self { client, runtime })
    }

    pub fn send(&self, request: &Request<'_>) -> Result<String, Failure> {
        self.runtime.block_on(self.client.send(request)).map_err(|error| failure(&error))
    }

    /// What was answered, as text and as what it is.
    pub fn read<T: DeserializeOwned>(&self, request: &Request<'_>) -> Result<(String, T), Failure> {
        let text = self.send(request)?;
        let read = understood(&text)?;
        Ok((text, read))
    }

    /// An answer whose status says something, as those to probes.
    pub fn probe<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Failure> {
        let request = Request::get(path);
        let asked = self.runtime.block_on(self.client.probe(&request));
        understood(&asked.map_err(|error| failure(&error))?)
    }

    /// The first page of a list, if it comes in time.
    pub fn within(&self, time: Duration, path: &[&str], most: u32) -> Option<Value> {
        let request = Request::get(path).with("limit", most);
        let asked = async { tokio::time::timeout(time, self.client.send(&request)).await };
        let answer = self.runtime.block_on(asked).ok()?.ok()?;
        serde_json::from_str(&answer).ok()
    }

    /// Every page of a list as one.
    pub fn all(&self, path: &[&str]) -> Result<Value, Failure> {
        let mut all: Option<Value> = None;
        let mut after: Option<String> = None;
        loop {
            let mut request = Request::get(path).with("limit", PAGE);
            if let Some(after) = &after {
                request = request.with("after", after);
            }
            let (_, mut page): (_, Value) = self.read(&request)?;
            after = page["next"].as_str().map(str::to_owned);
            match (&mut all, page["items"].as_array_mut()) {
                (Some(all), Some(items)) => {
                    if let Some(known) = all["items"].as_array_mut() {
                        known.append(items);
                    }
                }
                _ => all = Some(page),
            }
            if after.is_none() {
                let mut all = all.unwrap_or_default();
                all["next"] = Value::Null;
                return Ok(all);
            }
        }
    }
}

fn understood<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| strange(&error))
}

fn strange(error: &serde_json::Error) -> Failure {
    let say = format!("the server's answer is not understood: {error}");
    Failure::new(Exit::Internal, "strangeAnswer", say)
        .help("the server may be of another version: `poolkeeper --version` says which this is")
}

pub(super) fn failure(error: &ClientError) -> Failure {
    let say = error.to_string();
    match error {
        ClientError::Address(_) | ClientError::Unsealed(_) => Failure::usage(say),
        ClientError::Setup(_) => Failure::new(Exit::Input, "badCertificates", say),
        ClientError::NoDice => Failure::new(Exit::Internal, "internal", say),
        ClientError::Unreachable { .. } => Failure::new(Exit::Unreachable, "unreachable", say)
            .help("start one with `poolkeeper serve`, or name it with --server"),
        ClientError::TimedOut { .. } => Failure::new(Exit::Unreachable, "timedOut", say),
        ClientError::Strange { .. } => Failure::new(Exit::Unreachable, "strangeAnswer", say)
            .help("--server names the address of a Poolkeeper that serves"),
        ClientError::Refused(refused) => {
            let (exit, code) = match refused.status {
                401 => (Exit::NotPermitted, "unauthenticated"),
                403 => (Exit::NotPermitted, "forbidden"),
                404 => (Exit::NotFound, "notFound"),
                409 if refused.code == NO_PLAN_YET => (Exit::Unreachable, NO_PLAN_YET),
                409 | 412 => (Exit::Input, "conflict"),
                429 | 503 => (Exit::Unreachable, "unavailable"),
                500.. => (Exit::Internal, "serverFault"),
                _ => (Exit::Input, "refused"),
            };
            let mut failure = Failure::new(exit, code, say);
            failure.told.help.clone_from(&refused.help);
            if refused.status == 401 && refused.help.is_none() {
                let help = "set POOLKEEPER_TOKEN_FILE or POOLKEEPER_TOKEN";
                failure.told.help = Some(help.to_owned());
            }
            if let Some(fault) = refused.errors.first() {
                failure.told.place = Some((fault.line, fault.column));
                failure.told.field.clone_from(&fault.field);
                failure.told.help = fault.help.clone().or(failure.told.help);
            }
            failure
        }
    }
}

/// A text of an answer; empty where it is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
