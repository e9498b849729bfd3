//! The audit log as a hash chain: each line stores a hash of itself and of the previous line's hash. Changing or
//! removing a line breaks the chain. Retention removes the oldest lines and keeps the hash of the last line that it
//! removed.

use ring::digest::{Context, SHA256};
use rusqlite::{Connection, params};

use super::fault::SqliteFault;
use super::rows::{bound, old, text};
use crate::memory::{Seq, record};
use crate::model::time::Time;

/// The first schema that has the chain.
const SINCE: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditCheck {
    /// Number of lines checked.
    pub lines: u64,
    pub broken: Option<ChainBreak>,
}

/// The first place where the chain breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChainBreak {
    #[error("line {} was changed, or a line before it was taken away", _0.0)]
    Line(Seq),
    #[error("line {} was written last, and the last lines are not there", _0.0)]
    End(Seq),
}

fn link(before: &[u8], record: &str) -> Vec<u8> {
    let mut whole = Context::new(&SHA256);
    for part in [before, b"\n", record.as_bytes()] {
        whole.update(part);
    }
    whole.finish().as_ref().to_vec()
}

pub(super) fn write(db: &Connection, record: &str) -> Result<Seq, SqliteFault> {
    let sql = "SELECT hash FROM audit_chain";
    let before: Vec<u8> = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let hash = link(&before, record);
    let sql = "INSERT INTO audits (record, hash) VALUES (?1, ?2) RETURNING seq";
    let seq: u64 = db.prepare_cached(sql)?.query_row(params![record, hash], |row| row.get(0))?;
    let sql = "UPDATE audit_chain SET last = ?1, hash = ?2";
    db.prepare_cached(sql)?.execute(params![bound(seq), hash])?;
    Ok(Seq(seq))
}

/// Removes the oldest lines, at most `most`, up to the first line that is not older than `before`. Returns the number
/// of removed lines.
pub(super) fn let_go(db: &Connection, before: Time, most: usize) -> Result<usize, SqliteFault> {
    let mut found = db.prepare_cached("SELECT seq, record FROM audits ORDER BY seq LIMIT ?1")?;
    let rows = found.query([bound(most)])?;
    let is_old = |row: &rusqlite::Row<'_>| Ok(record::read_audit(text(row, 1)?)?.at < before);
    let (last, count) = old(rows, is_old)?;
    if count > 0 {
        let last = bound(last.0);
        let sql = "UPDATE audit_chain SET gone = ?1, before =
                   (SELECT coalesce(hash, x'') FROM audits WHERE seq = ?1) WHERE gone < ?1";
        db.prepare_cached(sql)?.execute([last])?;
        db.prepare_cached("DELETE FROM audits WHERE seq <= ?1")?.execute([last])?;
    }
    Ok(count)
}

/// Lines are removed only from the front, so the first and the last number give the count.
pub(super) fn lines(db: &Connection) -> Result<u64, SqliteFault> {
    let sql =
        "SELECT coalesce((SELECT max(seq) FROM audits) - (SELECT min(seq) FROM audits) + 1, 0)";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Follows the chain from its beginning to the first line that does not match.
pub(super) fn check(db: &Connection, schema: u32) -> Result<AuditCheck, SqliteFault> {
    let mut audited = AuditCheck::default();
    if schema < SINCE {
        return Ok(audited);
    }
    let ends = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let sql = "SELECT gone, before, last FROM audit_chain";
    let (mut at, mut before, last): (u64, Vec<u8>, u64) = db.query_row(sql, [], ends)?;
    let mut found =
        db.prepare("SELECT seq, record, hash FROM audits WHERE seq > ?1 ORDER BY seq")?;
    let mut rows = found.query([bound(at)])?;
    while let Some(row) = rows.next()? {
        (at, before) = (row.get(0)?, link(&before, text(row, 1)?));
        if row.get::<_, Option<Vec<u8>>>(2)?.as_ref() != Some(&before) {
            audited.broken = Some(ChainBreak::Line(Seq(at)));
            return Ok(audited);
        }
        audited.lines += 1;
    }
    audited.broken = (at != last).then_some(ChainBreak::End(Seq(last)));
    Ok(audited)
}
