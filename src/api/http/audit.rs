//! Audit lines: each goes into the store and from there into the log. Attempts that a role forbids are folded: the
//! first of a principal and a verb is written at once, later ones become one line a minute with their count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::backend::Backend;
use super::dyn_store::DynStore;
use super::problem::Problem;
use super::request::Call;
use crate::memory::{AuditEntry, StoreError};
use crate::model::ids::PoolName;

/// The audit's outcome for a request that is not carried out yet: this line is written first.
pub const ASKED: &str = "asked";
/// The audit's outcome for a request that is carried out at once. The loop records the outcomes of the others.
pub const DONE: &str = "done";
/// The audit's outcome for a request for what is so already.
pub const UNCHANGED: &str = "unchanged";
/// The audit's verb for a delete that accepts the loss.
pub const DELETE_NOW: &str = "delete-machine --now";
/// Refused attempts within this time become one line.
const FOLDED: Duration = Duration::from_secs(60);

/// Attempts since the last line, by principal and verb.
type Counts = BTreeMap<(Box<str>, Box<str>), u64>;

/// A request to change something, as each of its audit lines names it.
pub struct ChangeRequest<'a> {
    pub call: &'a Call,
    pub pool: PoolName,
    pub verb: &'a str,
    pub machine: Option<String>,
    pub why: Box<str>,
}

impl ChangeRequest<'_> {
    /// The audit line with this outcome.
    pub fn line(&self, came: &str) -> AuditEntry {
        AuditEntry {
            at: self.call.now,
            who: self.call.who().into(),
            verb: self.verb.into(),
            pool: Some(self.pool.clone()),
            on: self.machine.as_deref().unwrap_or_default().into(),
            why: self.why.clone(),
            came: came.into(),
            consent: None,
        }
    }
}

pub struct AuditLog {
    store: Arc<dyn DynStore>,
    backend: Arc<dyn Backend>,
    /// Principals and verbs whose refused attempts are being counted.
    tries: Mutex<Counts>,
    stopping: watch::Sender<bool>,
}

impl AuditLog {
    pub fn new(
        store: Arc<dyn DynStore>,
        backend: Arc<dyn Backend>,
        stopping: watch::Sender<bool>,
    ) -> Self {
        Self { store, backend, tries: Mutex::default(), stopping }
    }

    pub async fn write(&self, change: &ChangeRequest<'_>, came: &str) -> Result<(), Problem> {
        self.write_line(&change.line(came)).await
    }

    pub async fn write_line(&self, line: &AuditEntry) -> Result<(), Problem> {
        Ok(self.append(line).await?)
    }

    async fn append(&self, line: &AuditEntry) -> Result<(), StoreError> {
        self.store.audit(line).await?;
        self.backend.audited(line);
        Ok(())
    }

    fn tries(&self) -> MutexGuard<'_, Counts> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a refused attempt.
    pub async fn refused(self: &Arc<Self>, line: AuditEntry) -> Result<(), StoreError> {
        let key = (line.who.clone(), line.verb.clone());
        if let Some(count) = self.tries().get_mut(&key) {
            *count += 1;
            return Ok(());
        }
        self.tries().insert(key.clone(), 0);
        let written = self.append(&line).await;
        if written.is_err() {
            self.tries().remove(&key);
            return written;
        }
        tokio::spawn(Arc::clone(self).count(key, line));
        Ok(())
    }

    /// Writes the number of attempts each minute, until a minute has none or the process ends.
    async fn count(self: Arc<Self>, key: (Box<str>, Box<str>), first: AuditEntry) {
        let mut stopping = self.stopping.subscribe();
        loop {
            let stops = tokio::select! {
                () = tokio::time::sleep(FOLDED) => false,
                _ = stopping.changed() => true,
            };
            let times = {
                let mut counts = self.tries();
                match counts.get_mut(&key).map(std::mem::take) {
                    None | Some(0) => {
                        counts.remove(&key);
                        return;
                    }
                    Some(times) => times,
                }
            };
            let came = format!("{}, {times} more", first.came).into();
            let at = self.backend.now();
            let line = AuditEntry { at, pool: None, on: "".into(), came, ..first.clone() };
            let written = self.append(&line).await;
            if stops {
                return;
            }
            if written.is_err()
                && let Some(count) = self.tries().get_mut(&key)
            {
                *count += times;
            }
        }
    }
}
