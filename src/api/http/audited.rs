//! Audit lines: each goes into the store and from there into the log. Attempts that a role forbids are folded: the
//! first of a principal and a verb is written at once, later ones become one line a minute with their count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::House;
use super::backend::Backend;
use super::request::Call;
use crate::memory::{AuditEntry, Desk, StoreError};
use crate::model::ids::PoolName;

/// Refused attempts within this time become one line.
const FOLDED: Duration = Duration::from_secs(60);

/// Attempts since the last line, by principal and verb.
type Counts = BTreeMap<(Box<str>, Box<str>), u64>;

/// Principals and verbs whose attempts are being counted.
#[derive(Debug, Default)]
pub struct RefusedTries(Mutex<Counts>);

impl RefusedTries {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The audit line for a request on a pool and its result.
pub fn line(call: &Call, pool: &PoolName, verb: &str, why: &str, came: &str) -> AuditEntry {
    AuditEntry {
        at: call.now,
        who: call.who().into(),
        verb: verb.into(),
        pool: Some(pool.clone()),
        on: "".into(),
        why: why.into(),
        came: came.into(),
        consent: None,
    }
}

pub async fn write_down<S: Desk, V: Backend>(
    house: &House<S, V>,
    line: &AuditEntry,
) -> Result<(), StoreError> {
    house.store.audit(line).await?;
    house.view.audited(line);
    Ok(())
}

/// Records a refused attempt.
pub async fn refused<S, V>(house: &Arc<House<S, V>>, line: AuditEntry) -> Result<(), StoreError>
where
    S: Desk + Send + Sync + 'static,
    V: Backend,
{
    let key = (line.who.clone(), line.verb.clone());
    if let Some(count) = house.tries.counts().get_mut(&key) {
        *count += 1;
        return Ok(());
    }
    house.tries.counts().insert(key.clone(), 0);
    let written = write_down(house, &line).await;
    if written.is_err() {
        house.tries.counts().remove(&key);
        return written;
    }
    tokio::spawn(count(Arc::clone(house), key, line));
    Ok(())
}

/// Writes the number of attempts each minute, until a minute has none or the process ends.
async fn count<S: Desk, V: Backend>(
    house: Arc<House<S, V>>,
    key: (Box<str>, Box<str>),
    first: AuditEntry,
) {
    let mut stopping = house.stopping.subscribe();
    loop {
        let stops = tokio::select! {
            () = tokio::time::sleep(FOLDED) => false,
            _ = stopping.changed() => true,
        };
        let times = {
            let mut counts = house.tries.counts();
            match counts.get_mut(&key).map(std::mem::take) {
                None | Some(0) => {
                    counts.remove(&key);
                    return;
                }
                Some(times) => times,
            }
        };
        let came = format!("{}, {times} more", first.came).into();
        let line =
            AuditEntry { at: house.view.now(), pool: None, on: "".into(), came, ..first.clone() };
        let written = write_down(&house, &line).await;
        if stops {
            return;
        }
        if written.is_err()
            && let Some(count) = house.tries.counts().get_mut(&key)
        {
            *count += times;
        }
    }
}
