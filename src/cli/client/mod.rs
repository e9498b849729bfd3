//! Commands that are clients of a running Poolkeeper server: verbs, pools, history, audit.
//!
//! Never here: a decision, or a second way to make a change: everything goes through the HTTP API, with who and why.
//! Begin with [`ServerLine`], the connection. `verbs` sends requests about pools and machines, `stop` those about all pools, `outcome` waits for the
//! answer of a turn, `apply` sends pool documents, `pools` removes them, `get` reads them (`short_pool` leaves their
//! defaults out), `context` reads the named servers, `history` prints the history and the audit, `story` says which lines of it tell people something,
//! `stream` follows it, `served` and `managed` read the answers that pages print.

mod apply;
pub(super) mod context;
pub(super) mod environment;
mod failures;
mod get;
mod history;
pub(super) mod managed;
mod outcome;
mod pools;
mod scale;
mod sending;
pub(super) mod served;
mod short_pool;
mod stop;
mod story;
mod stream;
mod verbs;
mod why;

pub use apply::Apply;
pub use get::Get;
pub use history::{AuditCommand, HistoryCommand};
pub use pools::Unmanage;
pub use scale::ScaleCommand;
pub use stop::{ResumeAll, StopAll};
pub use verbs::{
    Abandon, Abort, Approve, DeleteMachine, Hold, Pause, Promote, Refresh, Release, ResetBreaker,
    ResetCapacity, Resume, Retry, RollbackCommand, TakeOver, Undelete,
};

pub(super) use outcome::{duration, span};
pub(super) use story::{Fact, Story};
pub(super) use stream::StreamNews;

use std::cell::Cell;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::exit::{CommandFailure, Exit};
use crate::api::client::{Client, ClientAnswer, ClientError, ClientToken, DEFAULT_SERVER, Request};
use context::ClientContext;
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
    #[arg(id = "server", long = "server", value_name = "URL")]
    url: Option<String>,

    /// PEM file of certificates to trust in addition to the system's
    #[arg(long = "server-ca", value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,

    /// Context to use instead of the current one; `poolkeeper context` lists them
    // The same option as that of the whole command line, which is hidden where no server is needed.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Server {
    fn client(&self) -> Result<Client, CommandFailure> {
        let context = self.context()?;
        let of = |part: fn(&ClientContext) -> Option<PathBuf>| context.as_ref().and_then(part);
        let server = self.url.clone().or_else(|| set("POOLKEEPER_SERVER"));
        let server = server.or_else(|| context.as_ref().map(|context| context.server.clone()));
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let token = match (set("POOLKEEPER_TOKEN_FILE"), set("POOLKEEPER_TOKEN"), &context) {
            (Some(path), ..) => {
                let read = std::fs::read_to_string(&path);
                Some(read.map_err(|error| CommandFailure::unreadable(&path, &error))?)
            }
            (None, Some(token), _) => Some(token),
            (None, None, context) => {
                context.as_ref().map(ClientContext::token).transpose()?.flatten()
            }
        };
        let ca = self.ca.clone().or_else(|| set("POOLKEEPER_CA_FILE").map(PathBuf::from));
        let ca = ca.or_else(|| of(ClientContext::ca));
        let ca = ca.map(|path| contents(&path)).transpose()?;
        let identity = context.as_ref().map(ClientContext::identity).transpose()?.flatten();
        let token = token.as_deref().map(ClientToken::new);
        Client::identified(&server, token, ca.as_deref(), identity.as_deref())
            .map_err(|error| failure(&error))
    }

    /// The context whose server is used.
    fn context(&self) -> Result<Option<ClientContext>, CommandFailure> {
        context::chosen(self.context.as_deref(), self.url.as_deref())
    }

    /// The name of the context whose server is used.
    pub(in crate::cli) fn context_name(&self) -> Option<String> {
        self.context().ok().flatten().map(|context| context.name)
    }

    /// Whether an option, the environment or a context names the server.
    pub(in crate::cli) fn is_named(&self) -> bool {
        let is_named = self.url.is_some() || set("POOLKEEPER_SERVER").is_some();
        // A context that cannot be read is reported by the request.
        is_named || !matches!(self.context(), Ok(None))
    }

    pub(in crate::cli) const fn of(
        url: Option<String>,
        ca: Option<PathBuf>,
        context: Option<String>,
    ) -> Self {
        Self { url, ca, context }
    }

    /// Opens a connection for several requests, one after another.
    pub(in crate::cli) fn line(&self) -> Result<ServerLine, CommandFailure> {
        ServerLine::of(self.client()?)
    }

    fn ask(&self, request: &Request<'_>) -> Result<String, CommandFailure> {
        self.line()?.send(request)
    }
}

/// A connection to a server; every request uses one.
#[derive(Debug)]
pub(in crate::cli) struct ServerLine {
    client: Client,
    runtime: Runtime,
    /// No request lasts longer.
    deadline: Cell<Option<Instant>>,
    has_answered: Cell<bool>,
}

impl ServerLine {
    /// To a server that needs no token, such as one in this process.
    pub fn without_token(url: &str) -> Result<Self, CommandFailure> {
        Self::of(Client::new(url, None, None).map_err(|error| failure(&error))?)
    }

    fn of(client: Client) -> Result<Self, CommandFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("no runtime: {error}"))
        })?;
        let (deadline, has_answered) = (Cell::new(None), Cell::new(false));
        Ok(Self { client, runtime, deadline, has_answered })
    }

    /// The time until which all that `run` sends must be answered, inside any earlier limit.
    pub fn within<T>(&self, limit: Duration, run: impl FnOnce(&Self) -> T) -> T {
        let (before, limit) = (self.deadline.get(), self.after(limit));
        self.deadline.set(Some(before.map_or(limit, |before| before.min(limit))));
        let ended = run(self);
        self.deadline.set(before);
        ended
    }

    /// The instant after this time.
    fn after(&self, time: Duration) -> Instant {
        let _timers = self.runtime.enter();
        tokio::time::sleep(time).deadline()
    }

    pub fn send(&self, request: &Request<'_>) -> Result<String, CommandFailure> {
        self.tagged(request).map(|answer| answer.text)
    }

    /// The answer with its tag, or why there is none.
    pub fn tagged(&self, request: &Request<'_>) -> Result<ClientAnswer, CommandFailure> {
        self.try_send(request).map_err(|error| failure(&error))
    }

    fn try_send(&self, request: &Request<'_>) -> Result<ClientAnswer, ClientError> {
        self.in_time(self.client.read(request))
    }

    fn in_time<T>(
        &self,
        sent: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let answer = self.runtime.block_on(async {
            match self.deadline.get() {
                Some(deadline) => tokio::time::timeout_at(deadline, sent)
                    .await
                    .unwrap_or_else(|_| Err(self.client.given_up())),
                None => sent.await,
            }
        });
        self.has_answered.set(self.has_answered.get() || answer.is_ok());
        answer
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
        let asked = self.in_time(self.client.probe(&request));
        understood(&asked.map_err(|error| failure(&error))?)
    }

    /// The first page of a list, if it arrives in time.
    pub fn page_within(&self, time: Duration, path: &[&str], most: u32) -> Option<Value> {
        let request = Request::get(path).with("limit", most);
        let answer = self.within(time, |line| line.send(&request)).ok()?;
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

fn contents(path: &Path) -> Result<Vec<u8>, CommandFailure> {
    std::fs::read(path)
        .map_err(|error| CommandFailure::unreadable(&path.display().to_string(), &error))
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
