//! The stop of all pools, a single row, so that it holds for later pools and survives every process.

use rusqlite::Connection;

use super::fault::SqliteFault;
use crate::memory::{is_so_already, record};
use crate::model::stop::GlobalStop;

pub(super) fn current(db: &Connection) -> Result<Option<GlobalStop>, SqliteFault> {
    let mut found = db.prepare_cached("SELECT record FROM stop")?;
    let text: Option<String> = found.query_row([], |row| row.get(0))?;
    Ok(text.map(|text| record::read_stop(&text)).transpose()?)
}

/// How often it was given or lifted.
pub(super) fn changes(db: &Connection) -> Result<i64, SqliteFault> {
    let mut found = db.prepare_cached("SELECT changes FROM stop")?;
    Ok(found.query_row([], |row| row.get(0))?)
}

/// False: it is so already.
pub(super) fn set(db: &Connection, stop: Option<&GlobalStop>) -> Result<bool, SqliteFault> {
    if is_so_already(current(db)?.as_ref(), stop) {
        return Ok(false);
    }
    let text = stop.map(record::write_stop).transpose()?;
    db.prepare_cached("UPDATE stop SET changes = changes + 1, record = ?1")?.execute([text])?;
    Ok(true)
}
