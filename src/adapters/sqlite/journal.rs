//! The journal in rows. What is legal is decided by [`Journal`], over the few entries that a commit is about.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::turn::text;
use crate::memory::record;
use crate::memory::{Commit, JOURNAL_KEPT, Journal};
use crate::model::ids::EntryId;
use crate::model::journal::Entry;
use crate::model::time::Time;

pub(super) fn load(db: &Connection, pool: i64) -> Result<Journal, Fault> {
    let dropped =
        "SELECT record FROM entries WHERE pool = ?1 AND dropped IS NOT NULL ORDER BY dropped";
    let shown = "SELECT record FROM entries WHERE pool = ?1 AND dropped IS NULL ORDER BY n";
    Ok(Journal::from_parts(entries(db, dropped, pool)?, entries(db, shown, pool)?))
}

fn entries(db: &Connection, sql: &str, pool: i64) -> Result<Vec<Entry>, Fault> {
    let mut found = db.prepare_cached(sql)?;
    let mut rows = found.query([pool])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(record::read_entry(text(row, 0)?)?);
    }
    Ok(entries)
}

/// A commit's part of the journal: what it names is read, moved as its events say, and written back.
pub(super) fn write(db: &Connection, pool: i64, commit: &Commit) -> Result<(), Fault> {
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

/// The entries that a commit names, as far as they are known.
fn touched(db: &Connection, pool: i64, commit: &Commit) -> Result<Journal, Fault> {
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
    Ok(Journal::from_parts(Vec::new(), known))
}

fn ended(entry: &Entry) -> Option<i64> {
    entry.outcome().map(|(ended, _)| ended.millis())
}

/// Dropped entries that ended before the horizon, from the first dropped to the first that did not.
fn let_go(db: &Connection, pool: i64, horizon: Time) -> Result<(), Fault> {
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
