//! New lines of the history as server-sent events. A client that reconnects sends the id of its last line and misses no
//! line that is still kept. The stream rechecks the caller's token regularly; if it is refused, the stream ends with an
//! event that says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use futures_util::stream;
use tokio::sync::watch;

use super::House;
use super::auth::{ClientNames, Door, PoolScope};
use super::backend::Backend;
use super::problem::Problem;
use super::request::{Call, Content, HttpAnswer};
use super::route::{ApiOperation, Query};
use crate::api::v1::resources::When;
use crate::api::v1::resources::told::{HistoryLine, StreamEnd};
use crate::memory::{Seq, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps the connection alive: shows both sides and all proxies that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The caller is rechecked after this, and at once when tokens change.
const ASKED_AGAIN: Span = Span::seconds(15);
/// Longest life of a stream: bounds how long it outlives what was checked only when it started.
const LIFE: Span = Span::hours(1);
/// Most streams at a time: in total, and of one caller.
const STREAMS: usize = 256;
const OF_ONE: usize = 32;
/// Lines per read.
const LINES: usize = 100;
/// How soon a client reconnects.
const RETRY: &str = "retry: 2000\n\n";

struct Stream<S, V> {
    house: Arc<House<S, V>>,
    pool: Option<PoolName>,
    /// Lines of other pools are omitted.
    scope: PoolScope,
    /// `None`: from the end, which is read first.
    after: Option<Seq>,
    until: Time,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    doors: watch::Receiver<Arc<Door>>,
    /// The credentials that admitted it.
    headers: HeaderMap,
    presented: ClientNames,
    asked: Time,
    state: State,
    _place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Greeted,
    /// It has sent its final event.
    Over,
}

/// Open streams by caller.
#[derive(Debug, Default)]
pub struct Streams(Mutex<BTreeMap<Box<str>, usize>>);

/// Frees its place when dropped.
struct Place(Arc<Streams>, Box<str>);

impl Streams {
    fn open(&self) -> MutexGuard<'_, BTreeMap<Box<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, who: &str) -> Option<Place> {
        let mut open = self.open();
        let (all, own) = (open.values().sum::<usize>(), open.get(who).copied().unwrap_or(0));
        if all >= STREAMS || own >= OF_ONE {
            return None;
        }
        open.insert(who.into(), own + 1);
        Some(Place(Arc::clone(self), who.into()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.0.open();
        if let Some(own) = open.get_mut(&self.1) {
            *own -= 1;
        }
        open.retain(|_, own| *own > 0);
    }
}

pub fn events<S, V>(house: &Arc<House<S, V>>, call: &Call) -> Result<HttpAnswer, Problem>
where
    S: Store + Send + Sync + 'static,
    V: Backend,
{
    let pool = match call.op {
        ApiOperation::PoolEvents => {
            let pool = call.pool();
            let known = house.view.pool(&pool);
            Some(
                known.ok_or_else(|| Problem::not_found("pool", pool.as_str()))?.policy.name.clone(),
            )
        }
        _ => None,
    };
    let after = match call.header(&LAST_EVENT) {
        None => call.number(Query::After)?,
        Some(last) => {
            let last = last.to_str().ok().and_then(|last| last.trim().parse::<u64>().ok());
            let last = last.filter(|last| *last <= Seq::LAST.0);
            let bad = || Problem::bad("badLastEventId", "Last-Event-ID is the id of a line");
            Some(Seq(last.ok_or_else(bad)?))
        }
    };
    let place = house.streams.enter(call.who()).ok_or_else(|| {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem::new(status, "tooManyStreams", "too many streams are open").later(5)
    })?;
    let (house, until) = (Arc::clone(house), call.now.plus(LIFE));
    let stream = Stream {
        pool,
        scope: call.who.as_ref().map(|who| who.scope.clone()).unwrap_or_default(),
        after,
        until,
        news: house.view.news(),
        stopping: house.stopping.subscribe(),
        doors: house.door.subscribe(),
        house,
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

impl<S: Store, V: Backend> Stream<S, V> {
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
            let now = self.house.view.now();
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
                changed = self.doors.changed() => {
                    changed.ok()?;
                    self.doors.mark_changed();
                }
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }

    /// Whether its token is still valid, unless that was just checked.
    async fn admitted(&mut self, now: Time) -> Result<(), Problem> {
        let is_other = self.doors.has_changed().unwrap_or(true);
        if !is_other && now.since(self.asked) < ASKED_AGAIN {
            return Ok(());
        }
        self.asked = now;
        let door = Arc::clone(&self.doors.borrow_and_update());
        self.scope = door.admit(&self.headers, &self.presented, now).await?.scope;
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
            None => self.house.store.pools().await?,
        };
        let mut newest = Seq::FIRST;
        for pool in pools {
            let last = self.house.store.history_before(&pool, Seq::LAST, 1).await?;
            newest = last.last().map_or(newest, |(seq, _)| newest.max(*seq));
        }
        Ok(newest)
    }

    async fn read(&self) -> Result<Vec<(Seq, HistoryLine)>, StoreError> {
        let after = self.after.unwrap_or(Seq::FIRST);
        let store = &self.house.store;
        Ok(match &self.pool {
            Some(pool) => {
                let lines = store.history_after(pool, after, LINES).await?;
                let shown =
                    |(seq, line): &(Seq, _)| (*seq, HistoryLine::of(seq.0, pool.as_str(), line));
                lines.iter().map(shown).collect()
            }
            None => {
                let lines = store.told_after(after, LINES).await?;
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
