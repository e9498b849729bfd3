//! Threads that read the pools, follow the events and send requests, each over its own connection.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::state::{
    PoolPicture, PoolsPicture, WatchEvent, WatchPicture, WatchRequest, WatchSubject,
};
use crate::api::client::Request;
use crate::api::v1::resources::told::{HistoryLine, HistoryPage};
use crate::cli::client::{ServerLine, Story, StreamNews};
use crate::cli::exit::{CommandFailure, Exit, reason};
use crate::cli::page::TimeStyle;
use crate::cli::status::{More, PoolLook, PoolReport};

/// Lines of history that a story is told of.
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
            let none = More::default();
            let read = line.pools()?.into_iter();
            let mut pools: Vec<PoolReport> = read
                .map(|(_, status)| PoolReport::of(status, &none, TimeStyle::Absolute))
                .collect();
            pools.sort_by(|a, b| a.place().cmp(&b.place()));
            Ok(WatchPicture::Pools(PoolsPicture { pools, ready }))
        }
        WatchSubject::Pool(name) => {
            let look = PoolLook::at(line, name, TimeStyle::Absolute)?;
            let path = ["pools", name, "history"];
            let (_, page): (_, HistoryPage) =
                line.read(&Request::get(&path).with("limit", LINES))?;
            let facts = Story::default().tell(&page.items);
            Ok(WatchPicture::Pool(Box::new(PoolPicture { look, facts })))
        }
    }
}

/// Reads what is asked for, the latest first: an older question is not answered.
pub(super) fn read_on_demand(
    line: ServerLine,
    events: Sender<WatchEvent>,
) -> Result<Sender<WatchSubject>, CommandFailure> {
    let (ask, asked): (_, Receiver<WatchSubject>) = channel();
    spawn("reader", move || {
        while let Ok(first) = asked.recv() {
            let subject = asked.try_iter().last().unwrap_or(first);
            let answer = read(&line, &subject);
            if events.send(WatchEvent::Reading(subject, answer)).is_err() {
                return;
            }
        }
    })?;
    Ok(ask)
}

/// Tells of each event of the server, or of one pool.
pub(super) fn follow(
    line: ServerLine,
    pool: Option<String>,
    events: Sender<WatchEvent>,
) -> Result<(), CommandFailure> {
    spawn("stream", move || {
        let tell = |news| {
            let event = match news {
                StreamNews::Connection => WatchEvent::Stream(true),
                StreamNews::Loss(_) => WatchEvent::Stream(false),
                StreamNews::Event(event) => {
                    let line = serde_json::from_str::<HistoryLine>(&event.data);
                    WatchEvent::News(line.ok().map(|line| line.at.0))
                }
            };
            events.send(event).map_err(|_| ended())
        };
        let path: Vec<&str> = match &pool {
            Some(pool) => vec!["pools", pool, "events"],
            None => vec!["events"],
        };
        // The readings show why the server refuses.
        if line.follow(&path, tell).is_err() {
            let _ = events.send(WatchEvent::Stream(false));
        }
    })
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
