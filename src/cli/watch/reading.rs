//! Threads that read the pools, follow the events and send requests, each over its own connection.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::state::{
    PoolPicture, PoolsPicture, WatchEvent, WatchPicture, WatchRequest, WatchSubject,
};
use crate::api::client::Request;
use crate::api::v1::resources::told::{HistoryLine, HistoryPage};
use crate::cli::client::{ServerLine, StreamNews};
use crate::cli::exit::{CommandFailure, Exit, reason};
use crate::cli::page::TimeStyle;
use crate::cli::status::{More, PoolLook, PoolReport};

/// Lines of history that a story begins with.
const LINES: u32 = 200;
/// How long a request may wait for its answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn read(
    line: &ServerLine,
    subject: &WatchSubject,
) -> Result<WatchPicture, CommandFailure> {
    match subject {
        WatchSubject::Pools => {
            let ready = line.probe(&["ready"])?;
            let pools = pools(line)?.into_iter().map(|(report, _)| report).collect();
            Ok(WatchPicture::Pools(PoolsPicture { pools, ready }))
        }
        WatchSubject::Pool(name) => {
            let look = PoolLook::at(line, name, TimeStyle::Absolute)?;
            let path = ["pools", name, "history"];
            let (_, page): (_, HistoryPage) =
                line.read(&Request::get(&path).with("limit", LINES))?;
            Ok(WatchPicture::Pool(Box::new(PoolPicture { look, lines: page.items })))
        }
    }
}

/// All pools, the worst first, each with what the server answered.
pub(super) fn pools(line: &ServerLine) -> Result<Vec<(PoolReport, Value)>, CommandFailure> {
    let none = More::default();
    let of = |(status, read)| (PoolReport::of(read, &none, TimeStyle::Absolute), status);
    let mut pools: Vec<(PoolReport, Value)> = line.pools()?.into_iter().map(of).collect();
    pools.sort_by(|(a, _), (b, _)| a.place().cmp(&b.place()));
    Ok(pools)
}

/// Reads what is asked for, the latest first: an older question is not answered.
pub(super) fn read_on_demand<S: Send + 'static, E: Send + 'static>(
    events: Sender<E>,
    read: impl Fn(S) -> E + Send + 'static,
) -> Result<Sender<S>, CommandFailure> {
    let (ask, asked) = channel();
    spawn("reader", move || {
        while let Ok(first) = asked.recv() {
            let subject = asked.try_iter().last().unwrap_or(first);
            if events.send(read(subject)).is_err() {
                return;
            }
        }
    })?;
    Ok(ask)
}

/// Tells of each event of the server, or of one pool. `of` makes an event of it; `None`: the server refuses.
pub(super) fn follow<E: Send + 'static>(
    line: ServerLine,
    pool: Option<&str>,
    events: Sender<E>,
    of: impl Fn(Option<StreamNews>) -> E + Send + 'static,
) -> Result<(), CommandFailure> {
    let pool = pool.map(str::to_owned);
    spawn("stream", move || {
        let path: Vec<&str> = match &pool {
            Some(pool) => vec!["pools", pool, "events"],
            None => vec!["events"],
        };
        let tell = |news| events.send(of(Some(news))).map_err(|_| ended());
        // The readings show why.
        if line.follow(&path, tell).is_err() {
            let _ = events.send(of(None));
        }
    })
}

/// What the stream of events tells the screen.
pub(super) fn news(news: Option<StreamNews>) -> WatchEvent {
    match news {
        Some(StreamNews::Connection) => WatchEvent::Stream(true),
        Some(StreamNews::Loss(_)) | None => WatchEvent::Stream(false),
        Some(StreamNews::Event(event)) => {
            let line = serde_json::from_str::<HistoryLine>(&event.data);
            WatchEvent::News(line.ok().map(|line| line.at.0))
        }
    }
}

/// Sends a request and waits for its answer.
pub(super) fn send(
    line: ServerLine,
    request: WatchRequest,
    events: Sender<WatchEvent>,
) -> Result<(), CommandFailure> {
    spawn("request", move || {
        let answer = line.act(&request.path(), &request.why, PATIENCE);
        // The screen is closed: the server keeps the request.
        let _ = events.send(WatchEvent::Answer(answer));
    })
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), CommandFailure> {
    let begun = thread::Builder::new().name(name.to_owned()).spawn(run);
    begun.map(drop).map_err(|error| broken("a thread", &error))
}

pub(super) fn broken(what: &str, error: &io::Error) -> CommandFailure {
    let say = format!("{what} cannot be used: {}", reason(error));
    CommandFailure::new(Exit::Internal, "internal", say)
}

/// Ends a thread whose screen is closed.
fn ended() -> CommandFailure {
    CommandFailure::new(Exit::Done, "closed", "the screen is closed")
}
