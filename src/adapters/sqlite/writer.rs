//! The one thread that writes. It takes every write that waits and makes one transaction of them, so that many pools share
//! one sync of the disk; each stands or falls alone, and each is answered after the disk has it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{Fault, OpenError, unavailable};
use super::watch::FileWatch;
use crate::memory::StoreError;

/// Writes that share a transaction.
// 256: a sync is shared by so many that it costs each next to nothing, and the first of them waits no longer than some
// tens of milliseconds for the last.
const GROUP_MOST: usize = 256;

/// A write that waits for its turn.
trait Job: Send {
    /// Do it, inside a transaction. It may be asked again, after its doing was undone. False: undo it.
    fn run(&mut self, db: &Connection) -> bool;

    /// Say what came of it, now that the disk has it or does not.
    fn answer(self: Box<Self>, kept: Result<(), StoreError>, watch: &FileWatch);
}

struct Asked<T, F> {
    work: F,
    done: Option<Result<T, Fault>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, db: &Connection) -> bool {
        self.done.insert((self.work)(db)).is_ok()
    }

    fn answer(self: Box<Self>, kept: Result<(), StoreError>, watch: &FileWatch) {
        let done = match (self.done, &kept) {
            (Some(done), _) => watch.note(done.map_err(StoreError::from)),
            // It was not begun, and this is why.
            (None, Err(why)) => Err(why.clone()),
            (None, Ok(())) => Err(gone()),
        };
        // What was refused was not kept, whatever became of the others. Nobody may be waiting any more.
        let _nobody = self.reply.send(done.and_then(|value| kept.map(|()| value)));
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    /// `None`: it ends.
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

    /// Have it written. Once asked for it goes on, though nobody waits for the answer.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Asked { work, done: None, reply });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(gone());
        }
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Do what waits, and end.
    pub fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
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
            // One too many for the disk must not take the others down with it.
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

/// All of them in one transaction, each undone alone where it failed. An error: none of them is kept.
fn together(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), rusqlite::Error> {
    let kept = attempt(db, group);
    if kept.is_err() && !db.is_autocommit() {
        // Where even this fails the next transaction cannot begin, and says so.
        let _undone = db.execute_batch("ROLLBACK");
    }
    kept
}

fn attempt(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), rusqlite::Error> {
    // At once: a second process must not slip between what is read here and what is written.
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for job in group {
        db.prepare_cached("SAVEPOINT one")?.execute([])?;
        if !job.run(db) {
            // Out of room, the database may have undone all of it: then this fails, and so do all.
            db.prepare_cached("ROLLBACK TO one")?.execute([])?;
        }
        db.prepare_cached("RELEASE one")?.execute([])?;
    }
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}
