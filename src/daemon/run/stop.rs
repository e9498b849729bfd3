//! Stop requests: the first one ends the daemon in order, the second one ends it now.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Number of stop requests, and the last signal.
type StopRequests = (u32, i32);

/// Sends stop requests to all tasks.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<StopRequests>);

/// Receives stop requests.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<StopRequests>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new((0, SignalKind::terminate().as_raw_value())))
    }
}

impl Stop {
    /// The same as a signal; a second call means stop at once.
    pub fn stop(&self) {
        self.told(SignalKind::terminate());
    }

    fn told(&self, kind: SignalKind) {
        self.0.send_modify(|(times, signal)| (*times, *signal) = (*times + 1, kind.as_raw_value()));
    }

    pub fn stopping(&self) -> Stopping {
        Stopping(self.0.subscribe())
    }

    /// From now on SIGTERM and SIGINT are stop requests.
    pub fn on_signals(&self) -> std::io::Result<()> {
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let (mut signals, stop) = (signal(kind)?, self.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    stop.told(kind);
                }
            });
        }
        Ok(())
    }
}

impl Stopping {
    /// Waits for the first request.
    pub async fn stopped(&self) {
        self.times(1).await;
    }

    /// Waits for the second request and returns its signal.
    pub async fn now(&self) -> i32 {
        self.times(2).await
    }

    pub fn is_stopped(&self) -> bool {
        self.0.borrow().0 > 0
    }

    async fn times(&self, times: u32) -> i32 {
        let mut told = self.0.clone();
        let heard = told.wait_for(|(said, _)| *said >= times).await.ok().map(|told| told.1);
        match heard {
            Some(signal) => signal,
            // The sender is gone: no request can come.
            None => std::future::pending().await,
        }
    }
}
