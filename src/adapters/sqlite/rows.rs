//! Columns, numbers and rows as every table has them.

use rusqlite::{Connection, OptionalExtension, Params, Row, Rows};

use super::fault::SqliteFault;
use crate::memory::Seq;
use crate::model::ids::PoolName;

/// A text column, without a copy.
pub(super) fn text<'r>(row: &'r Row<'_>, at: usize) -> Result<&'r str, SqliteFault> {
    let found = row.get_ref(at)?.as_str();
    found.map_err(|error| rusqlite::Error::from(error).into())
}

/// Every row of a query, read in its order.
pub(super) fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, SqliteFault>,
) -> Result<Vec<T>, SqliteFault> {
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

/// SQLite stores numbers and limits in 63 bits.
pub(super) fn bound(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// The row id of a pool, which is created if needed.
pub(super) fn enter(db: &Connection, name: &PoolName) -> Result<i64, SqliteFault> {
    if let Some(pool) = number(db, name)? {
        return Ok(pool);
    }
    let sql = "INSERT INTO pools (name) VALUES (?1) RETURNING id";
    Ok(db.prepare_cached(sql)?.query_row([name.as_str()], |row| row.get(0))?)
}

/// The row id of a pool, if the store has it.
pub(super) fn number(db: &Connection, name: &PoolName) -> Result<Option<i64>, rusqlite::Error> {
    let mut found = db.prepare_cached("SELECT id FROM pools WHERE name = ?1")?;
    found.query_row([name.as_str()], |row| row.get(0)).optional()
}

/// The number of the last line before the first one that is not old, and the count of old lines.
pub(super) fn old(
    mut rows: Rows<'_>,
    is_old: impl Fn(&Row<'_>) -> Result<bool, SqliteFault>,
) -> Result<(Seq, usize), SqliteFault> {
    let (mut last, mut count) = (Seq::FIRST, 0);
    while let Some(row) = rows.next()? {
        if !is_old(row)? {
            break;
        }
        (last, count) = (Seq(row.get(0)?), count + 1);
    }
    Ok((last, count))
}
