//! What a turn reads and writes: machines, state, journal, history.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::SqliteFault;
use super::notices::{self, NoticeRow};
use super::rows::{all, bound, enter, number, text};
use super::{audit, inbox, journal, lease, service};
use crate::memory::record::{self, SharedTexts};
use crate::memory::{Commit, HISTORY_KEPT, HistoryRecord, PoolRecord, Seq};
use crate::model::ids::{CommandId, Key, PoolName, ScaleSetId};
use crate::model::machine::Machine;
use crate::model::rollout::PoolState;

/// A commit with its records already serialized by the caller, so that the writing thread only writes.
pub(super) struct PreparedTurn {
    /// The lists that the fields below replace are empty.
    rest: Commit,
    machines: Vec<(Key, String)>,
    state: Option<(String, Vec<CommandId>)>,
    lines: Vec<String>,
    audit: Vec<String>,
    notices: Vec<NoticeRow>,
    /// `None`: unchanged.
    out: Option<Vec<String>>,
}

impl PreparedTurn {
    pub fn new(commit: &Commit) -> Result<Self, SqliteFault> {
        let mut machines = Vec::with_capacity(commit.machines.len());
        for machine in &commit.machines {
            machines.push((machine.key(), record::write_machine(machine)?));
        }
        let state = |state: &PoolState| {
            record::write_state(state).map(|text| (text, state.honoured.clone()))
        };
        let state = commit.state.as_ref().map(state).transpose()?;
        let lines = commit.history.iter().map(record::write_line);
        let lines = lines.collect::<Result<_, _>>()?;
        let audit = commit.audit.iter().map(record::write_audit);
        let audit = audit.collect::<Result<_, _>>()?;
        let rest = Commit {
            closed: commit.closed.clone(),
            set: commit.set.clone(),
            written: commit.written.clone(),
            moved: commit.moved.clone(),
            dropped: commit.dropped.clone(),
            frozen: commit.frozen.clone(),
            ..Commit::new(commit.pool.clone(), commit.epoch, commit.at)
        };
        let notices = notices::rows(&commit.notices)?;
        let out = commit.out.as_deref().map(service::rows).transpose()?;
        Ok(Self { rest, machines, state, lines, audit, notices, out })
    }

    pub fn write(&self, db: &Connection) -> Result<(), SqliteFault> {
        lease::fence(db, self.rest.epoch)?;
        let pool = enter(db, &self.rest.pool)?;
        journal::write(db, pool, &self.rest)?;
        for key in &self.rest.closed {
            let of = params![pool, key.as_str()];
            db.prepare_cached("DELETE FROM machines WHERE pool = ?1 AND key = ?2")?.execute(of)?;
            db.prepare_cached("DELETE FROM marks WHERE pool = ?1 AND key = ?2")?.execute(of)?;
        }
        let sql = "INSERT INTO machines (pool, key, record) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET record = excluded.record";
        for (key, text) in &self.machines {
            db.prepare_cached(sql)?.execute(params![pool, key.as_str(), text])?;
        }
        if let Some((text, honoured)) = &self.state {
            inbox::honour(db, pool, honoured)?;
            let sql = "INSERT INTO states (pool, record) VALUES (?1, ?2)
                       ON CONFLICT DO UPDATE SET record = excluded.record";
            db.prepare_cached(sql)?.execute(params![pool, text])?;
        }
        if let Some(set) = &self.rest.set {
            let sql = "UPDATE pools SET scale_set = ?2 WHERE id = ?1 AND scale_set IS NOT ?2";
            db.prepare_cached(sql)?.execute(params![pool, set.as_str()])?;
        }
        if let Some(frozen) = &self.rest.frozen {
            let sql = "UPDATE pools SET frozen = ?2 WHERE id = ?1";
            db.prepare_cached(sql)?.execute(params![pool, frozen.as_deref()])?;
        }
        if let Some(out) = &self.out {
            service::write(db, pool, out)?;
        }
        notices::write(db, pool, &self.notices)?;
        self.audit.iter().try_for_each(|record| audit::write(db, record).map(drop))?;
        tell(db, pool, &self.lines)
    }
}

pub(super) fn load(db: &Connection, name: &PoolName) -> Result<PoolRecord, SqliteFault> {
    let Some(pool) = number(db, name)? else {
        // A stop of all pools holds for a pool from its first turn on.
        return Ok(PoolRecord { inbox: inbox::of_pool(db, name)?, ..PoolRecord::default() });
    };
    let sql = "SELECT record FROM states WHERE pool = ?1";
    let mut state = db.prepare_cached(sql)?;
    let state: Option<String> = state.query_row([pool], |row| row.get(0)).optional()?;
    let sql = "SELECT scale_set, frozen FROM pools WHERE id = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (set, frozen): (Option<String>, Option<String>) =
        db.prepare_cached(sql)?.query_row([pool], read)?;
    Ok(PoolRecord {
        machines: machines(db, pool)?,
        set: set.map(ScaleSetId::new),
        state: state.map(|text| record::read_state(&text)).transpose()?,
        journal: journal::load(db, pool)?,
        inbox: inbox::load(db, pool)?,
        frozen: frozen.map(Into::into),
        out: service::load(db, pool)?,
    })
}

fn machines(db: &Connection, pool: i64) -> Result<Vec<Machine>, SqliteFault> {
    let mut shared = SharedTexts::default();
    let sql = "SELECT key, record FROM machines WHERE pool = ?1";
    let mut machines = all(db, sql, [pool], |row| {
        Ok(record::read_machine(text(row, 0)?, text(row, 1)?, &mut shared)?)
    })?;
    machines.sort_by(Machine::listing_order);
    Ok(machines)
}

fn tell(db: &Connection, pool: i64, lines: &[String]) -> Result<(), SqliteFault> {
    if lines.is_empty() {
        return Ok(());
    }
    for line in lines {
        let sql = "INSERT INTO history (pool, record) VALUES (?1, ?2)";
        db.prepare_cached(sql)?.execute(params![pool, line])?;
    }
    let sql = "UPDATE pools SET lines = lines + ?2 WHERE id = ?1 RETURNING lines";
    let kept = params![pool, lines.len()];
    let kept: usize = db.prepare_cached(sql)?.query_row(kept, |row| row.get(0))?;
    let beyond = kept.saturating_sub(HISTORY_KEPT);
    if beyond > 0 {
        let sql = "DELETE FROM history WHERE seq IN
                   (SELECT seq FROM history WHERE pool = ?1 ORDER BY seq LIMIT ?2)";
        db.prepare_cached(sql)?.execute(params![pool, beyond])?;
        let sql = "UPDATE pools SET lines = lines - ?2 WHERE id = ?1";
        db.prepare_cached(sql)?.execute(params![pool, beyond])?;
    }
    Ok(())
}

pub(super) fn history_after(
    db: &Connection,
    name: &PoolName,
    after: Seq,
    limit: usize,
) -> Result<Vec<(Seq, HistoryRecord)>, SqliteFault> {
    let sql = "SELECT seq, record FROM history
               WHERE pool = (SELECT id FROM pools WHERE name = ?1) AND seq > ?2
               ORDER BY seq LIMIT ?3";
    history(db, sql, name, after, limit)
}

pub(super) fn history_before(
    db: &Connection,
    name: &PoolName,
    before: Seq,
    limit: usize,
) -> Result<Vec<(Seq, HistoryRecord)>, SqliteFault> {
    let sql = "SELECT seq, record FROM history
               WHERE pool = (SELECT id FROM pools WHERE name = ?1) AND seq < ?2
               ORDER BY seq DESC LIMIT ?3";
    let mut lines = history(db, sql, name, before, limit)?;
    lines.reverse();
    Ok(lines)
}

fn history(
    db: &Connection,
    sql: &str,
    name: &PoolName,
    from: Seq,
    limit: usize,
) -> Result<Vec<(Seq, HistoryRecord)>, SqliteFault> {
    all(db, sql, params![name.as_str(), bound(from.0), bound(limit)], |row| {
        Ok((Seq(row.get(0)?), record::read_line(text(row, 1)?)?))
    })
}

pub(super) fn events_after(
    db: &Connection,
    after: Seq,
    limit: usize,
) -> Result<Vec<(Seq, PoolName, HistoryRecord)>, SqliteFault> {
    let sql = "SELECT h.seq, p.name, h.record FROM history h JOIN pools p ON p.id = h.pool
               WHERE h.seq > ?1 ORDER BY h.seq LIMIT ?2";
    all(db, sql, params![bound(after.0), bound(limit)], |row| {
        let name = PoolName::new(text(row, 1)?);
        Ok((Seq(row.get(0)?), name, record::read_line(text(row, 2)?)?))
    })
}

pub(super) fn pools(db: &Connection) -> Result<Vec<PoolName>, SqliteFault> {
    let sql = "SELECT name FROM pools ORDER BY name";
    all(db, sql, [], |row| Ok(PoolName::new(text(row, 0)?)))
}

/// All records of a pool reference its row, so deleting it deletes them.
pub(super) fn forget(db: &Connection, name: &PoolName) -> Result<(), SqliteFault> {
    db.prepare_cached("DELETE FROM pools WHERE name = ?1")?.execute([name.as_str()])?;
    Ok(())
}
