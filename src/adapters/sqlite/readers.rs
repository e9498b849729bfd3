//! The threads that read, each on a connection of its own: no read waits behind a write.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{Fault, OpenError};
use super::watch::FileWatch;
use super::writer::gone;
use crate::memory::StoreError;

/// Threads that read.
// 2: a start that reads a million machines is done by two cores; more would only wait for the same disk.
pub(super) const READERS: usize = 2;

type Job = Box<dyn FnOnce(&Connection) + Send>;

#[derive(Debug)]
pub(super) struct Readers {
    /// `None`: they end.
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

    /// Read from one picture of the store: all that was answered as written before, and nothing half done.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            let _nobody = reply.send(picture(db, work).map_err(StoreError::from));
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
            // A thread that panicked has nothing left to do.
            let _ended = thread.join();
        }
    }
}

fn work(db: &Connection, waiting: &Mutex<Receiver<Job>>) {
    loop {
        // Held while waiting: the others wait for the lock instead of the job.
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => job(db),
            Err(_) => return,
        }
    }
}

fn picture<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    db.prepare_cached("BEGIN")?.execute([])?;
    let read = work(db);
    if !db.is_autocommit() {
        // A picture that stayed open would be shown again, and old.
        db.prepare_cached("ROLLBACK")?.execute([])?;
    }
    read
}
