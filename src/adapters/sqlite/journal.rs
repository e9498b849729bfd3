//! The journal as rows. [`JournalStore`] decides which moves are legal, over only the entries that a commit names.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::SqliteFault;
use super::rows::{all, text};
use crate::memory::record;
use crate::memory::{Commit, JOURNAL_KEPT, JournalStore};
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::time::Time;

pub(super) fn load(db: &Connection, pool: i64) -> Result<JournalStore, SqliteFault> {
    let dropped =
        "SELECT record FROM entries WHERE pool = ?1 AND dropped IS NOT NULL ORDER BY dropped";
    let shown = "SELECT record FROM entries WHERE pool = ?1 AND dropped IS NULL ORDER BY n";
    Ok(JournalStore::from_parts(entries(db, dropped, pool)?, entries(db, shown, pool)?))
}

fn entries(db: &Connection, sql: &str, pool: i64) -> Result<Vec<Entry>, SqliteFault> {
    all(db, sql, [pool], |row| Ok(record::read_entry(text(row, 0)?)?))
}

/// Writes a commit's part of the journal: reads the named entries, applies their events, and writes them back.
pub(super) fn write(db: &Connection, pool: i64, commit: &Commit) -> Result<(), SqliteFault> {
    let staged = touched(db, pool, commit)?.stage(commit)?;
    for entry in staged.changed() {
        let sql = "UPDATE entries SET record = ?3, ended = ?4 WHERE pool = ?1 AND id = ?2";
        let (text, ended) = (record::write_entry(entry)?, ended(entry));
        db.prepare_cached(sql)?.execute(params![pool, entry.id.as_str(), text, ended])?;
    }
    for entry in staged.written() {
        let sql = "INSERT INTO entries (pool, n, id, ended, record) VALUES
                   (?1, 1 + (SELECT coalesce(max(n), 0) FROM entries WHERE pool = ?1), ?2, ?3, ?4)";
        let (text, ended) = (record::write_entry(entry)?, ended(entry));
        db.prepare_cached(sql)?.execute(params![pool, entry.id.as_str(), ended, text])?;
    }
    for id in &commit.dropped {
        let sql = "UPDATE entries SET dropped =
                   1 + (SELECT coalesce(max(dropped), 0) FROM entries WHERE pool = ?1 AND dropped IS NOT NULL)
                   WHERE pool = ?1 AND id = ?2 AND dropped IS NULL";
        db.prepare_cached(sql)?.execute(params![pool, id.as_str()])?;
    }
    let_go(db, pool, commit.at.minus(JOURNAL_KEPT))
}

/// The entries that a commit names and that exist.
fn touched(db: &Connection, pool: i64, commit: &Commit) -> Result<JournalStore, SqliteFault> {
    let written = commit.written.iter().map(|entry| &entry.id);
    let moved = commit.moved.iter().map(|moved| &moved.id);
    let ids: BTreeSet<&EntryId> = written.chain(moved).chain(&commit.dropped).collect();
    let mut known = Vec::new();
    for id in ids {
        let mut found =
            db.prepare_cached("SELECT record FROM entries WHERE pool = ?1 AND id = ?2")?;
        let found: Option<String> =
            found.query_row(params![pool, id.as_str()], |row| row.get(0)).optional()?;
        known.extend(found.map(|text| record::read_entry(&text)).transpose()?);
    }
    Ok(JournalStore::from_parts(Vec::new(), known))
}

fn ended(entry: &Entry) -> Option<i64> {
    entry.outcome().map(|(ended, _)| ended.millis())
}

/// Deletes dropped entries that ended before the horizon, in order of dropping, up to the first that did not.
fn let_go(db: &Connection, pool: i64, horizon: Time) -> Result<(), SqliteFault> {
    let sql = "SELECT dropped FROM entries WHERE pool = ?1 AND dropped IS NOT NULL ORDER BY dropped LIMIT 1";
    let first: Option<i64> =
        db.prepare_cached(sql)?.query_row([pool], |row| row.get(0)).optional()?;
    if first.is_none() {
        return Ok(());
    }
    let sql = "DELETE FROM entries WHERE pool = ?1 AND dropped IS NOT NULL AND dropped < coalesce(
                   (SELECT dropped FROM entries WHERE pool = ?1 AND dropped IS NOT NULL AND ended >= ?2
                    ORDER BY dropped LIMIT 1),
                   9223372036854775807)";
    db.prepare_cached(sql)?.execute(params![pool, horizon.millis()])?;
    Ok(())
}
