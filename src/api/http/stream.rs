//! Lines of the history as they are written, as server-sent events. A client that comes back says which line it saw
//! last and misses none that is still kept.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, StatusCode};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::House;
use super::auth::Scope;
use super::call::{Answer, Call, Content};
use super::problem::Problem;
use super::route::{Op, Query};
use super::view::View;
use crate::api::v1::resources::told::HistoryLine;
use crate::memory::{Seq, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// So that both sides, and what lies between, know that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this: who may look is asked again when it is resumed.
const LIFE: Span = Span::hours(1);
/// Lines of one read.
const LINES: usize = 100;
/// How soon a client comes back.
const RETRY: &str = "retry: 2000\n\n";

struct Stream<S, V> {
    house: Arc<House<S, V>>,
    pool: Option<PoolName>,
    /// Lines of other pools are left out.
    scope: Scope,
    /// `None`: from the end, which is looked up first.
    after: Option<Seq>,
    until: Time,
    news: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    greeted: bool,
    _place: OwnedSemaphorePermit,
}

pub fn events<S, V>(house: &Arc<House<S, V>>, call: &Call) -> Result<Answer, Problem>
where
    S: Store + Send + Sync + 'static,
    V: View,
{
    let pool = match call.op {
        Op::PoolEvents => {
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
    let place = Arc::clone(&house.streams).try_acquire_owned().map_err(|_| {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem::new(status, "tooManyStreams", "too many streams are open").later(5)
    })?;
    let (house, until) = (Arc::clone(house), call.now.plus(LIFE));
    let (news, stopping) = (house.view.news(), house.stopping.subscribe());
    let scope = call.who.as_ref().map(|who| who.scope.clone()).unwrap_or_default();
    let stream =
        Stream { house, pool, scope, after, until, news, stopping, greeted: false, _place: place };
    let body = Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(piece), stream))
    }));
    let content = Content::Events(body);
    Ok(Answer { status: StatusCode::OK, content, tag: None, headers: Vec::new() })
}

impl<S: Store, V: View> Stream<S, V> {
    /// `None`: it is over. A store that fails ends it too; the client comes back and says where it was.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            if self.after.is_none() {
                self.after = Some(self.end().await.ok()?);
            }
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        loop {
            if *self.stopping.borrow() || self.house.view.now() >= self.until {
                return None;
            }
            // Seen before the read: what is written during it makes another.
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
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }

    /// The newest line there is.
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

fn written(lines: &[(Seq, HistoryLine)]) -> Bytes {
    let mut text = String::new();
    for (seq, line) in lines {
        // JSON has no bare line ends, so one `data` holds it.
        let data = serde_json::to_string(line).unwrap_or_default();
        text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", seq.0, line.event));
    }
    text.into()
}
