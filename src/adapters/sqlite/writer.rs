//! The single writing thread. It combines all waiting writes into one transaction, so that many pools share one disk
//! sync. Each write succeeds or fails on its own, and each caller gets its result after the sync.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{OpenError, SqliteFault, unavailable};
use super::watch::FileWatch;
use crate::memory::StoreError;

/// Maximum number of writes that share a transaction.
// 256: sharing a sync among this many makes its cost per write negligible, and the first of them waits at most some
// tens of milliseconds for the last.
const GROUP_MOST: usize = 256;

/// A queued write.
trait Job: Send {
    /// Runs inside a transaction. It may run again after a rollback. False: roll it back.
    fn run(&mut self, db: &Connection) -> bool;

    /// Reports the result, after the commit succeeded or failed.
    fn answer(self: Box<Self>, kept: Result<(), StoreError>, watch: &FileWatch);
}

struct WriteJob<T, F> {
    work: F,
    done: Option<Result<T, SqliteFault>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for WriteJob<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, SqliteFault> + Send,
{
    fn run(&mut self, db: &Connection) -> bool {
        self.done.insert((self.work)(db)).is_ok()
    }

    fn answer(self: Box<Self>, kept: Result<(), StoreError>, watch: &FileWatch) {
        let done = match (self.done, &kept) {
            (Some(done), _) => watch.note(done.map_err(StoreError::from)),
            // The write never started, for this reason.
            (None, Err(why)) => Err(why.clone()),
            (None, Ok(())) => Err(gone()),
        };
        // A failed write was not stored, whatever the result of the others. The caller may have stopped waiting.
        let _dropped = self.reply.send(done.and_then(|value| kept.map(|()| value)));
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    /// `None`: the thread is shutting down.
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(db: Connection, watch: Arc<FileWatch>) -> Result<Self, OpenError> {
        let (jobs, waiting) = channel();
        let builder = std::thread::Builder::new().name("store-writer".into());
        let thread =
            builder.spawn(move || work(&db, &watch, &waiting)).map_err(OpenError::Thread)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Submits a write. Once submitted it runs even if the caller stops waiting.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, SqliteFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(WriteJob { work, done: None, reply });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Completes the queued writes and stops.
    pub fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ended = thread.join();
        }
    }
}

pub(super) fn gone() -> StoreError {
    StoreError::Unavailable("the store has ended".into())
}

fn work(db: &Connection, watch: &FileWatch, waiting: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = waiting.recv() {
        let rest = waiting.try_iter().take(GROUP_MOST - 1);
        let mut group: Vec<Box<dyn Job>> = std::iter::once(first).chain(rest).collect();
        if let Err(lost) = watch.check() {
            for job in group {
                job.answer(Err(lost.clone()), watch);
            }
            continue;
        }
        let kept = together(db, &mut group);
        if kept.is_err() && group.len() > 1 {
            // One write that exceeds the disk's space must not fail the others.
            for mut job in group {
                let kept = together(db, std::slice::from_mut(&mut job));
                watch.wrote(db);
                let kept = watch.note(kept.map_err(|error| unavailable(&error)));
                job.answer(kept, watch);
            }
            continue;
        }
        watch.wrote(db);
        let kept = watch.note(kept.map_err(|error| unavailable(&error)));
        for job in group {
            job.answer(kept.clone(), watch);
        }
    }
}

/// Runs all writes in one transaction. Each failed write is rolled back on its own. An error: none of them is stored.
fn together(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), rusqlite::Error> {
    let kept = attempt(db, group);
    if kept.is_err() && !db.is_autocommit() {
        // If the rollback fails too, the next transaction cannot begin and reports it.
        let _undone = db.execute_batch("ROLLBACK");
    }
    kept
}

fn attempt(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), rusqlite::Error> {
    // IMMEDIATE: a second process must not write between the reads and the writes of this transaction.
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for job in group {
        db.prepare_cached("SAVEPOINT one")?.execute([])?;
        if !job.run(db) {
            // When out of space, SQLite may have rolled back the whole transaction. Then this fails, and with it the
            // whole group.
            db.prepare_cached("ROLLBACK TO one")?.execute([])?;
        }
        db.prepare_cached("RELEASE one")?.execute([])?;
    }
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
