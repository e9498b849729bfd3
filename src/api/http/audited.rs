//! Lines of the audit: each goes into the store and from there into the log. RefusedTries that a role forbids are folded: the
//! first of a principal and a verb is a line at once, those after it are one line a minute with their number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::House;
use super::call::Call;
use super::view::View;
use crate::memory::{Audit, Desk, StoreError};
use crate::model::ids::PoolName;

/// Refused tries of this long are one line.
const FOLDED: Duration = Duration::from_secs(60);

/// By principal and verb, how many tries came since the last line.
type Counts = BTreeMap<(Box<str>, Box<str>), u64>;

/// Whose tries are counted now.
#[derive(Debug, Default)]
pub struct RefusedTries(Mutex<Counts>);

impl RefusedTries {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked of a pool, and what came of it.
pub fn line(call: &Call, pool: &PoolName, verb: &str, why: &str, came: &str) -> Audit {
    Audit {
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

pub async fn write_down<S: Desk, V: View>(
    house: &House<S, V>,
    line: &Audit,
) -> Result<(), StoreError> {
    house.store.audit(line).await?;
    house.view.audited(line);
    Ok(())
}

/// A try that came to nothing.
pub async fn refused<S, V>(house: &Arc<House<S, V>>, line: Audit) -> Result<(), StoreError>
where
    S: Desk + Send + Sync + 'static,
    V: View,
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

/// Writes the number of tries each minute, until one brings none or the process ends.
async fn count<S: Desk, V: View>(house: Arc<House<S, V>>, key: (Box<str>, Box<str>), first: Audit) {
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
        let line = Audit { at: house.view.now(), pool: None, on: "".into(), came, ..first.clone() };
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
