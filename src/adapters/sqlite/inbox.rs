//! What the interfaces (API and CLI) request from the turns: commands (table `asks`), overrides of machines (table
//! `marks`), and the stop of all pools (`stop`).

use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::SqliteFault;
use super::rows::{all, enter, number, text};
use super::stop;
use crate::memory::record;
use crate::memory::{ANSWERED_KEPT, Inbox, OverrideWrite};
use crate::model::ids::{CommandId, Key, PoolName};
use crate::model::machine::Overrides;
use crate::model::plan::Command;

pub(super) fn load(db: &Connection, pool: i64) -> Result<Inbox, SqliteFault> {
    let sql = "SELECT record FROM asks WHERE pool = ?1 AND record IS NOT NULL ORDER BY n";
    let commands = all(db, sql, [pool], |row| Ok(record::read_ask(text(row, 0)?)?))?;
    let sql = "SELECT key, record FROM marks WHERE pool = ?1 ORDER BY key";
    let mark = |row: &Row<'_>| Ok((Key::new(text(row, 0)?), record::read_marks(text(row, 1)?)?));
    Ok(Inbox { commands, marks: all(db, sql, [pool], mark)?, stop: stop::current(db)? })
}

pub(super) fn of_pool(db: &Connection, name: &PoolName) -> Result<Inbox, SqliteFault> {
    match number(db, name)? {
        Some(pool) => load(db, pool),
        None => Ok(Inbox { stop: stop::current(db)?, ..Inbox::default() }),
    }
}

pub(super) fn ask(db: &Connection, name: &PoolName, ask: &Command) -> Result<(), SqliteFault> {
    let pool = enter(db, name)?;
    let sql = "INSERT INTO asks (pool, id, record) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let row = params![pool, ask.id.as_str(), record::write_ask(ask)?];
    db.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// Of honoured commands, only the ids are kept, and only the most recent ones.
pub(super) fn honour(
    db: &Connection,
    pool: i64,
    honoured: &[CommandId],
) -> Result<(), SqliteFault> {
    let mut waiting = Vec::new();
    for id in honoured {
        let sql = "SELECT n FROM asks WHERE pool = ?1 AND id = ?2 AND record IS NOT NULL";
        let mut found = db.prepare_cached(sql)?;
        let n: Option<i64> =
            found.query_row(params![pool, id.as_str()], |row| row.get(0)).optional()?;
        waiting.extend(n.map(|n| (n, id)));
    }
    if waiting.is_empty() {
        return Ok(());
    }
    // Process them in the order of the requests. Each moves to the end of the answered ones.
    waiting.sort_unstable();
    waiting.dedup();
    for (n, id) in waiting {
        db.prepare_cached("DELETE FROM asks WHERE n = ?1")?.execute([n])?;
        let sql = "INSERT INTO asks (pool, id) VALUES (?1, ?2)";
        db.prepare_cached(sql)?.execute(params![pool, id.as_str()])?;
    }
    let sql = "DELETE FROM asks WHERE n IN
               (SELECT n FROM asks WHERE pool = ?1 AND record IS NULL ORDER BY n DESC
                LIMIT -1 OFFSET ?2)";
    db.prepare_cached(sql)?.execute(params![pool, ANSWERED_KEPT])?;
    Ok(())
}

/// Must run on the writing connection: there, the data version changes only when another process wrote.
pub(super) fn asked_elsewhere(
    db: &Connection,
    last: &AtomicI64,
    stops: &AtomicI64,
) -> Result<Vec<PoolName>, SqliteFault> {
    let mut found = db.prepare_cached("PRAGMA data_version")?;
    let version: i64 = found.query_row([], |row| row.get(0))?;
    if last.swap(version, Ordering::Relaxed) == version {
        return Ok(Vec::new());
    }
    let changes = stop::changes(db)?;
    let sql = match stops.swap(changes, Ordering::Relaxed) == changes {
        true => {
            "SELECT name FROM pools WHERE id IN
             (SELECT pool FROM asks WHERE record IS NOT NULL UNION SELECT pool FROM marks)"
        }
        false => "SELECT name FROM pools",
    };
    all(db, sql, [], |row| Ok(PoolName::new(text(row, 0)?)))
}

/// False: the machine does not exist.
pub(super) fn mark(
    db: &Connection,
    name: &PoolName,
    machine: &Key,
    mark: &OverrideWrite,
) -> Result<bool, SqliteFault> {
    let Some(pool) = number(db, name)? else { return Ok(false) };
    let of = params![pool, machine.as_str()];
    let sql = "SELECT 1 FROM machines WHERE pool = ?1 AND key = ?2";
    if !db.prepare_cached(sql)?.exists(of)? {
        return Ok(false);
    }
    let sql = "SELECT record FROM marks WHERE pool = ?1 AND key = ?2";
    let mut found = db.prepare_cached(sql)?;
    let found: Option<String> = found.query_row(of, |row| row.get(0)).optional()?;
    let mut marks = match found {
        Some(text) => record::read_marks(&text)?,
        None => Overrides::default(),
    };
    mark.put_on(&mut marks);
    if marks == Overrides::default() {
        db.prepare_cached("DELETE FROM marks WHERE pool = ?1 AND key = ?2")?.execute(of)?;
        return Ok(true);
    }
    let sql = "INSERT INTO marks (pool, key, record) VALUES (?1, ?2, ?3)
               ON CONFLICT DO UPDATE SET record = excluded.record";
    let row = params![pool, machine.as_str(), record::write_marks(&marks)?];
    db.prepare_cached(sql)?.execute(row)?;
    Ok(true)
}
