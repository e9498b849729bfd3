//! New lines of the history as server-sent events. A client that reconnects sends the id of its last line and misses no
//! line that is still kept. The stream rechecks the caller's token regularly; if it is refused, the stream ends with an
//! event that says so.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use futures_util::stream;
use tokio::sync::watch;

use super::auth::{Authentication, ClientNames, PoolScope};
use super::open_streams::StreamPlace;
use super::problem::Problem;
use super::request::{Call, Content, HttpAnswer, HttpResult, Query};
use super::state::ApiState;
use crate::api::v1::resources::When;
use crate::api::v1::resources::told::{HistoryLine, StreamEnd};
use crate::memory::{Seq, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps the connection alive: shows both sides and all proxies that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The caller is rechecked after this, and at once when tokens change.
const ASKED_AGAIN: Span = Span::seconds(15);
/// Longest life of a stream: bounds how long it outlives what was checked only when it started.
const LIFE: Span = Span::hours(1);
/// Lines per read.
const LINES: usize = 100;
/// How soon a client reconnects.
const RETRY: &str = "retry: 2000\n\n";

struct Stream {
    api: Arc<ApiState>,
    pool: Option<PoolName>,
    /// Lines of other pools are omitted.
    scope: PoolScope,
    /// `None`: from the end, which is read first.
    after: Option<Seq>,
    until: Time,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    authentication: watch::Receiver<Arc<Authentication>>,
    /// The credentials that admitted it.
    headers: HeaderMap,
    presented: ClientNames,
    asked: Time,
    state: State,
    _place: StreamPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Greeted,
    /// It has sent its final event.
    Over,
}

/// The lines of one pool.
pub fn pool_events(state: &Arc<ApiState>, call: &Call) -> HttpResult {
    open(state, call, Some(state.pool(call)?.policy.name.clone()))
}

/// The lines of every pool.
pub fn events(state: &Arc<ApiState>, call: &Call) -> HttpResult {
    open(state, call, None)
}

fn open(api: &Arc<ApiState>, call: &Call, pool: Option<PoolName>) -> HttpResult {
    let after = match call.header(&LAST_EVENT) {
        None => call.number(Query::After)?,
        Some(last) => {
            let last = last.to_str().ok().and_then(|last| last.trim().parse::<u64>().ok());
            let last = last.filter(|last| *last <= Seq::LAST.0);
            let bad = || Problem::bad("badLastEventId", "Last-Event-ID is the id of a line");
            Some(Seq(last.ok_or_else(bad)?))
        }
    };
    let place = api.streams.enter(call.who()).ok_or_else(|| {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem::new(status, "tooManyStreams", "too many streams are open").later(5)
    })?;
    let stream = Stream {
        pool,
        scope: call.who.as_ref().map(|who| who.scope.clone()).unwrap_or_default(),
        after,
        until: call.now.plus(LIFE),
        news: api.backend.news(),
        stopping: api.stopping.subscribe(),
        authentication: api.authentication.subscribe(),
        api: Arc::clone(api),
        headers: call.headers.clone(),
        presented: call.presented.clone(),
        asked: call.now,
        state: State::New,
        _place: place,
    };
    let body = Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(piece), stream))
    }));
    let content = Content::Events(body);
    Ok(HttpAnswer { status: StatusCode::OK, content, tag: None, headers: Vec::new() })
}

impl Stream {
    /// `None`: the stream is over. A store failure ends it too; the client reconnects with its last id.
    async fn next(&mut self) -> Option<Bytes> {
        if self.state == State::New {
            self.state = State::Greeted;
            if self.after.is_none() {
                self.after = Some(self.end().await.ok()?);
            }
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        loop {
            let now = self.api.backend.now();
            if self.state == State::Over || *self.stopping.borrow() || now >= self.until {
                return None;
            }
            if let Err(problem) = self.admitted(now).await {
                self.state = State::Over;
                return end(&problem, now);
            }
            // Marked as seen before the read: lines written during the read wake the stream again.
            self.news.borrow_and_update();
            let lines = self.read().await.ok()?;
            if let Some((last, ..)) = lines.last() {
                self.after = Some(*last);
                let lines: Vec<_> =
                    lines.into_iter().filter(|(_, line)| self.scope.covers(&line.pool)).collect();
                if !lines.is_empty() {
                    return Some(written(&lines));
                }
                continue;
            }
            tokio::select! {
                changed = self.news.changed() => changed.ok()?,
                stopped = self.stopping.changed() => stopped.ok()?,
                changed = self.authentication.changed() => {
                    changed.ok()?;
                    self.authentication.mark_changed();
                }
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }

    /// Whether its token is still valid, unless that was just checked.
    async fn admitted(&mut self, now: Time) -> Result<(), Problem> {
        let is_other = self.authentication.has_changed().unwrap_or(true);
        if !is_other && now.since(self.asked) < ASKED_AGAIN {
            return Ok(());
        }
        self.asked = now;
        let authentication = Arc::clone(&self.authentication.borrow_and_update());
        self.scope = authentication.admit(&self.headers, &self.presented, now).await?.scope;
        match &self.pool {
            Some(pool) if !self.scope.covers(pool.as_str()) => {
                let say = format!("{pool} is no pool of yours any more");
                Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", say))
            }
            _ => Ok(()),
        }
    }

    /// The newest line.
    async fn end(&self) -> Result<Seq, StoreError> {
        let pools = match &self.pool {
            Some(pool) => vec![pool.clone()],
            None => self.api.store.pools().await?,
        };
        let mut newest = Seq::FIRST;
        for pool in pools {
            let last = self.api.store.history_before(&pool, Seq::LAST, 1).await?;
            newest = last.last().map_or(newest, |(seq, _)| newest.max(*seq));
        }
        Ok(newest)
    }

    async fn read(&self) -> Result<Vec<(Seq, HistoryLine)>, StoreError> {
        let after = self.after.unwrap_or(Seq::FIRST);
        let store = &self.api.store;
        Ok(match &self.pool {
            Some(pool) => {
                let lines = store.history_after(pool, after, LINES).await?;
                let shown =
                    |(seq, line): &(Seq, _)| (*seq, HistoryLine::of(seq.0, pool.as_str(), line));
                lines.iter().map(shown).collect()
            }
            None => {
                let lines = store.events_after(after, LINES).await?;
                let shown = |(seq, pool, line): &(Seq, PoolName, _)| {
                    (*seq, HistoryLine::of(seq.0, pool.as_str(), line))
                };
                lines.iter().map(shown).collect()
            }
        })
    }
}

/// The last event. It has no id: a client that reconnects continues after the last line.
fn end(problem: &Problem, now: Time) -> Option<Bytes> {
    let message = format!("the stream ends: {}", problem.detail);
    let end = StreamEnd { at: When(now), code: problem.code.into(), message };
    let data = serde_json::to_string(&end).ok()?;
    Some(format!("event: {}\ndata: {data}\n\n", StreamEnd::EVENT).into())
}

fn written(lines: &[(Seq, HistoryLine)]) -> Bytes {
    let mut text = String::new();
    for (seq, line) in lines {
        // JSON has no raw line breaks, so one `data` line holds it.
        let data = serde_json::to_string(line).unwrap_or_default();
        text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", seq.0, line.event));
    }
    text.into()
}
