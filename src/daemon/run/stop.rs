//! Being told to stop: once to come to an end, twice to end now.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How often we were told, and by which signal lastly.
type Told = (u32, i32);

/// Tells everybody to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<Told>);

/// Hears of it.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<Told>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new((0, SignalKind::terminate().as_raw_value())))
    }
}

impl Stop {
    /// As a signal would; a second time it is meant at once.
    pub fn stop(&self) {
        self.told(SignalKind::terminate());
    }

    fn told(&self, kind: SignalKind) {
        self.0.send_modify(|(times, signal)| (*times, *signal) = (*times + 1, kind.as_raw_value()));
    }

    pub fn stopping(&self) -> Stopping {
        Stopping(self.0.subscribe())
    }

    /// From now on SIGTERM and SIGINT mean this.
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
    /// Once it was said.
    pub async fn stopped(&self) {
        self.times(1).await;
    }

    /// Once it was said again: by which signal.
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
            // Nobody is left who could say it.
            None => std::future::pending().await,
        }
    }
}
