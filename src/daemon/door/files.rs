//! Token and certificate files of the API: read again periodically, and at once after SIGHUP.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

use super::tls::CertificateFiles;
use super::tokens::TokensFile;
use crate::api::http::{Api, Backend};
use crate::daemon::run::Ticks;
use crate::memory::{Desk, Store};
use crate::model::time::Span;

/// Timeout of one check of the files; after this the disk counts as hung.
// 10 s: the same as for a scan of the pool files.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Reads on a separate thread. A hung disk costs that one thread, and nothing waits for it longer than the timeout.
#[derive(Debug)]
pub(super) struct Reader {
    longest: Duration,
    hung: Option<JoinHandle<()>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { longest: LONGEST_LOOK, hung: None }
    }
}

impl Reader {
    /// Also fails while the previous read hangs.
    pub async fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let hangs = || io::Error::new(io::ErrorKind::TimedOut, "its disk does not answer");
        if self.hung.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Err(hangs());
        }
        let (send, answer) = oneshot::channel();
        let thread = spawn_blocking(move || drop(send.send(read())));
        let answer = tokio::time::timeout(self.longest, answer).await;
        self.hung = answer.is_err().then_some(thread);
        let fault = || io::Error::other("a fault of ours ended the read");
        answer.map_err(|_| hangs())?.map_err(|_| fault())
    }
}

pub(super) struct Watch<C> {
    pub tokens: Option<TokensFile>,
    pub sealed: Option<CertificateFiles>,
    pub every: Span,
    pub clock: C,
    pub again: Arc<Notify>,
}

impl<C: Ticks> Watch<C> {
    /// Never returns; without files it never wakes up.
    pub async fn keep<S, V>(mut self, api: &Api<S, V>)
    where
        S: Store + Desk + Send + Sync + 'static,
        V: Backend,
    {
        if self.tokens.is_none() && self.sealed.is_none() {
            return std::future::pending().await;
        }
        loop {
            let next = self.clock.now().plus(self.every);
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                () = self.again.notified() => {}
            }
            if let Some(tokens) = &mut self.tokens {
                tokens.look(api, self.clock.now()).await;
            }
            if let Some(sealed) = &mut self.sealed {
                sealed.look(self.clock.now()).await;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A reader on a disk that hangs until the test releases it.
    pub async fn hung() -> (Reader, Sender<()>) {
        let (go_on, wait) = channel::<()>();
        let mut reader = Reader { longest: Duration::from_millis(20), hung: None };
        let said = reader.read(move || wait.recv().is_ok()).await.unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::TimedOut);
        (reader, go_on)
    }

    #[tokio::test]
    async fn a_read_that_hangs_has_an_end_and_costs_one_thread() {
        let (mut reader, go_on) = hung().await;
        let (send, begun) = channel();
        assert!(reader.read(move || send.send(())).await.is_err());
        assert!(begun.recv().is_err(), "no second read begins beside it");
        go_on.send(()).unwrap();
        while reader.hung.as_ref().is_some_and(|thread| !thread.is_finished()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(reader.read(|| 7).await.unwrap(), 7);
    }
}
