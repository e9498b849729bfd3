//! Reads a file on a separate thread. A hung disk costs that one thread, and nothing waits longer than a timeout.

use std::io;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// Timeout of one check of the files; after this the disk counts as hung.
// 10 s: the same as for a scan of the pool files.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct FileReader {
    longest: Duration,
    hung: Option<JoinHandle<()>>,
}

impl Default for FileReader {
    fn default() -> Self {
        Self { longest: LONGEST_LOOK, hung: None }
    }
}

impl FileReader {
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

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A reader on a disk that hangs until the test releases it.
    pub async fn hung() -> (FileReader, Sender<()>) {
        let (go_on, wait) = channel::<()>();
        let mut reader = FileReader { longest: Duration::from_millis(20), hung: None };
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
