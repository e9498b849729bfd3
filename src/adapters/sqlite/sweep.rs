//! Retention: removes old records and returns their space to the disk.

use rusqlite::{Connection, params};

use super::audit;
use super::fault::SqliteFault;
use super::rows::{all, bound, old, text};
use crate::memory::{ANSWER_KEPT, Keep, SWEPT_AT_ONCE, Swept, record};
use crate::model::time::Time;

/// Number of free pages that stay in the file.
// 1,024: 4 MiB, which the next rollouts fill again. Freeing every page would move other pages for nothing.
const FREE_KEPT: u64 = 1_024;

/// Maximum number of pages freed in one write.
// 512: moving 2 MiB takes some milliseconds.
const FREED_AT_ONCE: u64 = 512;

pub(super) fn sweep(db: &Connection, keep: &Keep, now: Time) -> Result<Swept, SqliteFault> {
    let answers = now.minus(ANSWER_KEPT).millis();
    db.prepare_cached("DELETE FROM claims WHERE at < ?1")?.execute([answers])?;
    let mut left = SWEPT_AT_ONCE;
    let before = now.minus(keep.history);
    for pool in pools(db)? {
        left -= history(db, pool, before, left)?;
        if left == 0 {
            break;
        }
    }
    left -= audit::let_go(db, now.minus(keep.audit), left)?;
    let more = give_back(db)? || left == 0;
    Ok(Swept { lines: SWEPT_AT_ONCE - left, more, audit: audit::lines(db)? })
}

fn pools(db: &Connection) -> Result<Vec<i64>, SqliteFault> {
    all(db, "SELECT id FROM pools WHERE lines > 0", [], |row| Ok(row.get(0)?))
}

fn history(db: &Connection, pool: i64, before: Time, most: usize) -> Result<usize, SqliteFault> {
    let sql = "SELECT seq, record FROM history WHERE pool = ?1 ORDER BY seq LIMIT ?2";
    let mut found = db.prepare_cached(sql)?;
    let rows = found.query(params![pool, bound(most)])?;
    let (last, count) = old(rows, |row| Ok(record::read_line(text(row, 1)?)?.at < before))?;
    if count > 0 {
        let sql = "DELETE FROM history WHERE pool = ?1 AND seq <= ?2";
        db.prepare_cached(sql)?.execute(params![pool, bound(last.0)])?;
        let sql = "UPDATE pools SET lines = lines - ?2 WHERE id = ?1";
        db.prepare_cached(sql)?.execute(params![pool, count])?;
    }
    Ok(count)
}

/// True: there is more to free. A file that was created without `auto_vacuum` keeps its size.
fn give_back(db: &Connection) -> Result<bool, SqliteFault> {
    let free: u64 = db.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let beyond = free.saturating_sub(FREE_KEPT);
    if beyond == 0 {
        return Ok(false);
    }
    // The pragma frees one page per step.
    let mut freeing =
        db.prepare(&format!("PRAGMA incremental_vacuum({})", beyond.min(FREED_AT_ONCE)))?;
    let mut steps = freeing.query([])?;
    while steps.next()?.is_some() {}
    let left: u64 = db.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    Ok(left < free && left > FREE_KEPT)
}
