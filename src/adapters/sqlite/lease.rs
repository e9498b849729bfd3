//! The lease, a single row, so that it survives every process and its epoch never decreases.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::SqliteFault;
use crate::memory::{Lease, StoreError};
use crate::model::ids::Epoch;
use crate::model::time::{Span, Time};

pub(super) fn current(db: &Connection) -> Result<Option<Lease>, SqliteFault> {
    let mut found = db.prepare_cached("SELECT epoch, holder, not_after FROM lease")?;
    let lease = found.query_row([], |row| {
        let holder: String = row.get(1)?;
        Ok(Lease {
            epoch: Epoch(row.get(0)?),
            holder: holder.into(),
            not_after: Time::from_millis(row.get(2)?),
        })
    });
    Ok(lease.optional()?)
}

/// Only the holder of the latest lease may write.
pub(super) fn fence(db: &Connection, epoch: Epoch) -> Result<(), SqliteFault> {
    let mut found = db.prepare_cached("SELECT epoch FROM lease")?;
    let current: Option<u64> = found.query_row([], |row| row.get(0)).optional()?;
    let current = Epoch(current.unwrap_or_default());
    if epoch == current { Ok(()) } else { Err(StoreError::Fenced { current }.into()) }
}

pub(super) fn acquire(
    db: &Connection,
    holder: &str,
    now: Time,
    ttl: Span,
) -> Result<Lease, SqliteFault> {
    let last = current(db)?;
    let lease = Lease::after(last.as_ref(), holder, now, ttl)?;
    let sql = "INSERT INTO lease (one, epoch, holder, not_after) VALUES (1, ?1, ?2, ?3)
               ON CONFLICT DO UPDATE SET
               epoch = excluded.epoch, holder = excluded.holder, not_after = excluded.not_after";
    let row = params![lease.epoch.0, holder, lease.not_after.millis()];
    db.prepare_cached(sql)?.execute(row)?;
    Ok(lease)
}

pub(super) fn resign(db: &Connection, epoch: Epoch, now: Time) -> Result<(), SqliteFault> {
    fence(db, epoch)?;
    let sql = "UPDATE lease SET not_after = min(not_after, ?1), holder = ''";
    db.prepare_cached(sql)?.execute([now.millis()])?;
    Ok(())
}
