//! Events of a server, over as many connections as it takes.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::sleep;

use super::{ServerLine, failure};
use crate::api::client::{Client, ClientError, Events, Request, StreamEvent};
use crate::cli::exit::CommandFailure;

/// Delay before reconnecting: the `retry` that the server sends.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::cli) enum StreamNews {
    /// The server sends events.
    Connection,
    Event(StreamEvent),
    /// The connection is lost; it is opened again. Sent once until there is a connection.
    Loss(ClientError),
}

/// Each event once and in order.
#[derive(Debug)]
pub(super) struct EventStream<'a> {
    client: &'a Client,
    request: Request<'a>,
    /// The last event so far.
    last: Option<u64>,
    open: Option<Events>,
    /// The next connection is not the first one.
    is_again: bool,
    is_lost: bool,
}

impl<'a> EventStream<'a> {
    /// The events after `last`.
    pub fn new(client: &'a Client, path: &'a [&'a str], last: Option<u64>) -> Self {
        let request = Request::get(path);
        Self { client, request, last, open: None, is_again: false, is_lost: false }
    }

    /// Ends with an error only: the server refuses. A caller may stop to wait, and ask again.
    pub async fn next(&mut self) -> Result<StreamNews, CommandFailure> {
        loop {
            let broken = match &mut self.open {
                Some(events) => match events.next().await {
                    Ok(Some(event)) => {
                        self.last = event.id.or(self.last);
                        return Ok(StreamNews::Event(event));
                    }
                    // The server ends a stream after an hour; this is not an error.
                    Ok(None) => None,
                    Err(error) => Some(error),
                },
                None => {
                    if self.is_again {
                        sleep(AGAIN).await;
                    }
                    match self.client.stream(&self.request, self.last).await {
                        Ok(events) => {
                            (self.open, self.is_lost) = (Some(events), false);
                            return Ok(StreamNews::Connection);
                        }
                        Err(error) => Some(error),
                    }
                }
            };
            (self.open, self.is_again) = (None, true);
            match broken {
                Some(error) if !may_mend(&error) => return Err(failure(&error)),
                Some(error) if !std::mem::replace(&mut self.is_lost, true) => {
                    return Ok(StreamNews::Loss(error));
                }
                _ => {}
            }
        }
    }
}

/// Whether a retry may succeed. A refusal is final, unless the server is busy or not up yet.
fn may_mend(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::TimedOut { .. } => true,
        ClientError::Strange { status, .. } => *status >= 500,
        ClientError::Refused(refused) => refused.status == 429 || refused.status >= 500,
        _ => false,
    }
}

impl ServerLine {
    /// Hands on every later event of this stream, until `tell` fails or the server refuses.
    pub(in crate::cli) fn follow(
        &self,
        path: &[&str],
        mut tell: impl FnMut(StreamNews) -> Result<(), CommandFailure>,
    ) -> Result<Infallible, CommandFailure> {
        let mut stream = EventStream::new(&self.client, path, None);
        self.runtime.block_on(async {
            loop {
                tell(stream.next().await?)?;
            }
        })
    }
}
