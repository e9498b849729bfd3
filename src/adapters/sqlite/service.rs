//! Machines that are to get no traffic.

use rusqlite::{Connection, params};

use super::fault::SqliteFault;
use super::rows::{all, bound, text};
use crate::memory::record;
use crate::model::backend::OutOfService;

pub(super) fn rows(out: &[OutOfService]) -> Result<Vec<String>, SqliteFault> {
    out.iter().map(|row| Ok(record::write_out(row)?)).collect()
}

/// Replace all rows of the pool.
pub(super) fn write(db: &Connection, pool: i64, rows: &[String]) -> Result<(), SqliteFault> {
    db.prepare_cached("DELETE FROM out_of_service WHERE pool = ?1")?.execute([pool])?;
    let sql = "INSERT INTO out_of_service (pool, n, record) VALUES (?1, ?2, ?3)";
    for (n, record) in rows.iter().enumerate() {
        db.prepare_cached(sql)?.execute(params![pool, bound(n), record])?;
    }
    Ok(())
}

pub(super) fn load(db: &Connection, pool: i64) -> Result<Vec<OutOfService>, SqliteFault> {
    let sql = "SELECT record FROM out_of_service WHERE pool = ?1 ORDER BY n";
    all(db, sql, [pool], |row| Ok(record::read_out(text(row, 0)?)?))
}
