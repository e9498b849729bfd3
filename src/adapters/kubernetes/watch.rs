//! Watches the nodes of a cluster: a complete list in pages, then every change of it. Begins again by itself, ever
//! slower while that fails. The client's own watcher keeps the server's bookmarks to itself, and without them a dead watch
//! looks like a quiet one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use url::form_urlencoded::byte_serialize;

use super::link::{Ask, CallFault, ClusterCall, Link};
use super::node::WireNode;
use super::open::no_answer;
use super::status::Status;
use super::table::NodeTable;
use super::wire::{Page, PageMeta, Unreadable};
use crate::model::cluster::ClusterNode;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};

const NODES: &str = "/api/v1/nodes";
/// Objects in a page.
pub(super) const PAGE: usize = 500;
/// A list with more pages than this never ends.
pub(super) const PAGES: usize = 1_000;

/// The server ends a watch after this many seconds, and says a moment before what its state is.
const WATCH_SECONDS: u32 = 290;
/// A watch that is silent for so long may be dead, or nothing has changed since it began: a server that is well sends each
/// minute what its version is, but only if that is newer. A list tells the two apart before the table is too old.
const SILENCE: Duration = Duration::from_secs(75);
/// After a failure, twice as long each time, up to the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest event. An object of the API has at most 1.5 MB.
const LONGEST: usize = 8 << 20;

/// The table of a cluster's nodes, and whether the first try to fill it is over.
pub(super) struct WatchedNodes {
    table: Mutex<NodeTable>,
    tried: watch::Sender<bool>,
}

impl WatchedNodes {
    pub fn new() -> Self {
        Self { table: Mutex::default(), tried: watch::Sender::new(false) }
    }

    pub fn table(&self) -> MutexGuard<'_, NodeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first list is complete, or failed.
    pub async fn tried(&self) {
        // The sender is ours.
        let _ = self.tried.subscribe().wait_for(|tried| *tried).await;
    }
}

/// Why the watch broke.
enum Broken {
    By(CallFault),
    Unreadable(Unreadable),
    Cut(Box<str>),
    /// Only a list shows whether the server is well.
    Silent,
    /// What happened since is not known any more: the list begins anew.
    Expired,
}

impl From<CallFault> for Broken {
    fn from(fault: CallFault) -> Self {
        match fault {
            CallFault::Answered(status) if status.code == 410 => Broken::Expired,
            fault => Broken::By(fault),
        }
    }
}

impl From<Unreadable> for Broken {
    fn from(unreadable: Unreadable) -> Self {
        Broken::Unreadable(unreadable)
    }
}

impl Broken {
    fn refused(self, now: Time) -> Refused {
        let say: Box<str> = match self {
            Broken::By(fault) => return fault.refused(now),
            Broken::Unreadable(Unreadable(what)) => format!("it shows {what}").into(),
            Broken::Cut(say) => say,
            Broken::Silent => "the watch of its nodes is silent".into(),
            Broken::Expired => "the list of its nodes begins anew".into(),
        };
        Refused { message: Some(say), ..Refused::plain(Refusal::Unclear) }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: PageMeta,
}

/// The state between two connections.
#[derive(Default)]
struct Progress {
    /// The version up to which all is known.
    from: Option<Box<str>>,
    /// Something was heard since the last failure.
    heard: bool,
    /// The cluster forbids the watch. What lists show would be known for a moment and unknown for the next, so none is
    /// asked for until the watch may begin.
    forbidden: bool,
}

/// Never ends.
pub(super) async fn run(link: Arc<Link>, nodes: Arc<WatchedNodes>) {
    let (mut progress, mut failures) = (Progress::default(), 0_u32);
    loop {
        let end = round(&link, &nodes, &mut progress).await;
        if std::mem::take(&mut progress.heard) {
            failures = 0;
        }
        let mut pause = PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
        match end {
            // The server ends each watch after its time.
            Ok(()) if failures == 0 => pause = Duration::ZERO,
            Ok(()) => {}
            Err(broken) => {
                let is_silent = matches!(broken, Broken::Silent);
                if is_silent || matches!(broken, Broken::Expired) {
                    progress.from = None;
                }
                if is_silent {
                    // Its silence was longer than any pause.
                    (failures, pause) = (0, Duration::ZERO);
                }
                let refused = broken.refused(link.now());
                if let Some(at) = refused.retry_at {
                    let wait = at.since(link.now()).min(Span::minutes(1)).millis().unsigned_abs();
                    pause = pause.max(Duration::from_millis(wait));
                }
                nodes.table().fail(refused);
            }
        }
        nodes.tried.send_replace(true);
        failures = failures.saturating_add(1);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

/// One connection, after a list where one is needed.
async fn round(link: &Link, nodes: &WatchedNodes, progress: &mut Progress) -> Result<(), Broken> {
    let trusted = nodes.table().is_trusted(link.now());
    let from = match progress.from.take().filter(|_| trusted || progress.forbidden) {
        Some(from) => from,
        None => list(link, nodes).await?,
    };
    let from = progress.from.insert(from);
    nodes.tried.send_replace(true);
    let path = format!(
        "{NODES}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
        escaped(from),
    );
    let opened = link.stream(Ask::read(ClusterCall::Watch, &path)).await;
    let was_forbidden = progress.forbidden;
    progress.forbidden = match &opened {
        Ok(_) => false,
        Err(CallFault::Answered(status)) => status.code == 403,
        // No answer says nothing of the right.
        Err(_) => was_forbidden,
    };
    let body = opened?;
    if was_forbidden && !trusted {
        // What happened meanwhile is listed first.
        (progress.from, progress.heard) = (None, true);
        return Ok(());
    }
    let mut lines = Lines { body, bytes: Vec::new() };
    while let Some(line) = lines.next().await? {
        let mut table = nodes.table();
        progress.from = Some(take(&mut table, &line)?);
        table.hear(link.now());
        progress.heard = true;
    }
    Ok(())
}

/// All nodes, page by page. Returns the version that the list shows.
async fn list(link: &Link, nodes: &WatchedNodes) -> Result<Box<str>, Broken> {
    let began = link.now();
    let (mut listed, mut version, mut next): (Vec<ClusterNode>, Box<str>, Box<str>) =
        Default::default();
    for _ in 0..PAGES {
        let path = format!("{NODES}?limit={PAGE}{}", continued(&next));
        let body = link.call(Ask::read(ClusterCall::List, &path)).await?;
        let page: Page<WireNode> = parsed(&body)?;
        if version.is_empty() {
            version = page.metadata.resource_version;
        }
        for node in page.items.into_iter().flatten() {
            listed.push(node.read()?);
        }
        next = page.metadata.next;
        if next.is_empty() {
            nodes.table().complete(listed, began);
            return Ok(version);
        }
    }
    Err(Broken::Unreadable(ENDLESS))
}

/// One event into the table. Returns the version that it shows.
fn take(table: &mut NodeTable, line: &[u8]) -> Result<Box<str>, Broken> {
    let event: Event = parsed(line)?;
    let object = event.object.get().as_bytes();
    if event.kind == "BOOKMARK" {
        return Ok(parsed::<Bookmark>(object)?.metadata.resource_version);
    }
    if event.kind == "ERROR" {
        let mut status: Status = parsed(object)?;
        if status.code == 0 {
            status.code = 500;
        }
        return Err(CallFault::Answered(status).into());
    }
    let node = parsed::<WireNode>(object)?.read()?;
    let version = node.version.clone();
    match event.kind {
        "ADDED" | "MODIFIED" => table.show(node),
        "DELETED" => table.remove(&node.name),
        _ => return Err(Unreadable("an event that is new to us").into()),
    }
    Ok(version)
}

/// The query of the next page; empty for the first.
pub(super) fn continued(next: &str) -> String {
    if next.is_empty() { String::new() } else { format!("&continue={}", escaped(next)) }
}

fn escaped(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

pub(super) const ENDLESS: Unreadable = Unreadable("a list without an end");

pub(super) fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(body).map_err(|_| Unreadable("an answer that we cannot read"))
}

/// The lines of a body.
struct Lines {
    body: Body,
    bytes: Vec<u8>,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let mut seen = 0;
        loop {
            let fresh = self.bytes.get(seen..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(seen + at + 1);
                let line = std::mem::replace(&mut self.bytes, rest);
                if line.trim_ascii().is_empty() {
                    seen = 0;
                    continue;
                }
                return Ok(Some(line));
            }
            seen = self.bytes.len();
            if seen > LONGEST {
                return Err(Broken::Unreadable(Unreadable("an event without an end")));
            }
            let frame = tokio::time::timeout(SILENCE, self.body.frame()).await;
            let frame = frame.map_err(|_| Broken::Silent)?;
            // What is left of a line that was cut is shown again.
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Broken::Cut(no_answer(&error)))?;
            if let Ok(data) = frame.into_data() {
                self.bytes.extend_from_slice(&data);
            }
        }
    }
}
