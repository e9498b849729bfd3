//! The reading threads, each with its own connection: no read waits behind a write.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{OpenError, SqliteFault};
use super::watch::FileWatch;
use super::writer::gone;
use crate::memory::StoreError;

/// Number of reading threads.
// 2: two cores are enough for a start that reads a million machines; more threads would only wait for the same disk.
pub(super) const READERS: usize = 2;

type Job = Box<dyn FnOnce(&Connection) + Send>;

#[derive(Debug)]
pub(super) struct Readers {
    /// `None`: the threads are shutting down.
    jobs: Option<Sender<Job>>,
    watch: Arc<FileWatch>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub fn start(connections: Vec<Connection>, watch: Arc<FileWatch>) -> Result<Self, OpenError> {
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let mut threads = Vec::with_capacity(connections.len());
        for db in connections {
            let waiting = Arc::clone(&waiting);
            let builder = std::thread::Builder::new().name("store-reader".into());
            let thread = builder.spawn(move || work(&db, &waiting)).map_err(OpenError::Thread)?;
            threads.push(thread);
        }
        Ok(Self { jobs: Some(jobs), watch, threads })
    }

    /// Reads from one snapshot of the store, which contains every acknowledged write and no partial one.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            let _dropped = reply.send(picture(db, work).map_err(StoreError::from));
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(gone());
        }
        self.watch.note(answer.await.unwrap_or_else(|_| Err(gone())))
    }

    pub fn end(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked needs no further cleanup.
            let _ended = thread.join();
        }
    }
}

fn work(db: &Connection, waiting: &Mutex<Receiver<Job>>) {
    loop {
        // Held while waiting: the other threads wait for the lock instead of a job.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job(db),
            Err(_) => return,
        }
    }
}

fn picture<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, SqliteFault>,
) -> Result<T, SqliteFault> {
    db.prepare_cached("BEGIN")?.execute([])?;
    let read = work(db);
    if !db.is_autocommit() {
        // A transaction left open would return the same, outdated snapshot to the next read.
        db.prepare_cached("ROLLBACK")?.execute([])?;
    }
    read
}
