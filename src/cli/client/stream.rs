//! Events of a server, over as many connections as it takes.

use std::convert::Infallible;
use std::time::Duration;

use super::{ServerLine, failure};
use crate::api::client::{Client, ClientError, Request, StreamEvent};
use crate::cli::exit::CommandFailure;

/// Delay before reconnecting: the `retry` that the server sends.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::cli) enum StreamNews {
    /// The server sends events. `again`: the connection was lost before.
    Connection {
        again: bool,
    },
    Event(StreamEvent),
    /// The connection is lost; it is opened again. Sent once until there is a connection.
    Loss(ClientError),
}

/// Hands on each event once and in order. Ends with an error only.
pub(super) async fn follow_events(
    client: &Client,
    request: &Request<'_>,
    mut last: Option<u64>,
    mut tell: impl FnMut(StreamNews) -> Result<(), CommandFailure>,
) -> Result<Infallible, CommandFailure> {
    let mut is_lost = false;
    loop {
        let broken = match client.stream(request, last).await {
            Ok(mut events) => {
                tell(StreamNews::Connection { again: std::mem::take(&mut is_lost) })?;
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
        tell: impl FnMut(StreamNews) -> Result<(), CommandFailure>,
    ) -> Result<Infallible, CommandFailure> {
        let request = Request::get(path);
        self.runtime.block_on(follow_events(&self.client, &request, None, tell))
    }
}
