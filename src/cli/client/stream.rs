//! Events of a server, over as many connections as it takes.

use std::convert::Infallible;

use super::history::{AGAIN, may_mend};
use super::{ServerLine, failure};
use crate::api::client::{Client, ClientError, Request, StreamEvent};
use crate::cli::exit::CommandFailure;

#[derive(Debug)]
pub(in crate::cli) enum StreamNews {
    /// The server sends events.
    Connection,
    Event(StreamEvent),
    /// The connection is lost; it is opened again. Sent once until there is a connection.
    Loss(ClientError),
}

/// Hands on each event once and in order. Ends with an error only.
async fn follow_events(
    client: &Client,
    request: &Request<'_>,
    mut last: Option<u64>,
    mut tell: impl FnMut(StreamNews) -> Result<(), CommandFailure>,
) -> Result<Infallible, CommandFailure> {
    let mut is_lost = false;
    loop {
        let broken = match client.stream(request, last).await {
            Ok(mut events) => {
                is_lost = false;
                tell(StreamNews::Connection)?;
                loop {
                    match events.next().await {
                        Ok(Some(event)) => {
                            last = event.id.or(last);
                            tell(StreamNews::Event(event))?;
                        }
                        // The server ends a stream after an hour; this is not an error.
                        Ok(None) => break None,
                        Err(error) => break Some(error),
                    }
                }
            }
            Err(error) => Some(error),
        };
        if let Some(error) = broken {
            if !may_mend(&error) {
                return Err(failure(&error));
            }
            if !std::mem::replace(&mut is_lost, true) {
                tell(StreamNews::Loss(error))?;
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl ServerLine {
    /// Hands on every later event of this stream, until `tell` fails or the server refuses.
    pub(in crate::cli) fn follow(
        &self,
        path: &[&str],
        tell: impl FnMut(StreamNews) -> Result<(), CommandFailure>,
    ) -> Result<Infallible, CommandFailure> {
        let request = Request::get(path);
        self.runtime.block_on(follow_events(&self.client, &request, None, tell))
    }
}
