//! Records of the interfaces (API and CLI) themselves: audit, claims on requests, documents.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::SqliteFault;
use super::rows::{all, bound, text};
use super::{SqliteStore, audit, sweep};
use crate::memory::record;
use crate::memory::{
    ANSWER_KEPT, ANSWERS_OF_ONE, ApiStore, AuditEntry, Claim, Document, Expected, Keep, PutOutcome,
    Seq, StoreError, Swept,
};
use crate::model::ids::PoolName;
use crate::model::time::Time;

fn audits(
    db: &Connection,
    sql: &str,
    from: Seq,
    limit: usize,
) -> Result<Vec<(Seq, AuditEntry)>, SqliteFault> {
    all(db, sql, [bound(from.0), bound(limit)], |row| {
        Ok((Seq(row.get(0)?), record::read_audit(text(row, 1)?)?))
    })
}

fn claim(db: &Connection, key: &str, request: &str, now: Time) -> Result<Claim, SqliteFault> {
    let horizon = now.minus(ANSWER_KEPT).millis();
    db.prepare_cached("DELETE FROM claims WHERE at < ?1")?.execute([horizon])?;
    let sql = "SELECT request, at, answer FROM claims WHERE key = ?1";
    let mut found = db.prepare_cached(sql)?;
    let known = found.query_row([key], |row| {
        let (request, at, answer): (String, i64, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((request, at, answer))
    });
    Ok(match known.optional()? {
        None => {
            make_room(db, key)?;
            let sql = "INSERT INTO claims (key, request, at) VALUES (?1, ?2, ?3)";
            db.prepare_cached(sql)?.execute(params![key, request, now.millis()])?;
            Claim::Yours
        }
        Some((known, ..)) if known != request => Claim::Another,
        Some((_, _, Some(answer))) => Claim::Answered(answer.into()),
        Some((_, at, None)) => Claim::Asked { at: Time::from_millis(at) },
    })
}

/// Removes the oldest answers of this client if it has too many.
fn make_room(db: &Connection, key: &str) -> Result<(), SqliteFault> {
    let Some((who, _)) = key.split_once('/') else { return Ok(()) };
    // `0` follows `/` in ASCII, so this range holds all keys of this client.
    let sql = "DELETE FROM claims WHERE key IN (
                   SELECT key FROM claims WHERE key > ?1 AND key < ?2 AND answer IS NOT NULL
                   ORDER BY at DESC, key DESC LIMIT -1 OFFSET ?3)";
    let bounds = params![format!("{who}/"), format!("{who}0"), bound(ANSWERS_OF_ONE - 1)];
    db.prepare_cached(sql)?.execute(bounds)?;
    Ok(())
}

fn document(row: &Row<'_>) -> Result<Document, rusqlite::Error> {
    let (name, text, who): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
    Ok(Document {
        pool: PoolName::new(name),
        text: text.into(),
        revision: row.get(2)?,
        who: who.into(),
        at: Time::from_millis(row.get(4)?),
    })
}

fn revision(db: &Connection, pool: &PoolName) -> Result<Option<u64>, SqliteFault> {
    let mut found = db.prepare_cached("SELECT revision FROM documents WHERE pool = ?1")?;
    Ok(found.query_row([pool.as_str()], |row| row.get(0)).optional()?)
}

fn put(db: &Connection, new: &Document, found: Expected) -> Result<PutOutcome, SqliteFault> {
    let current = revision(db, &new.pool)?;
    if !found.is(current) {
        return Ok(PutOutcome::Stale { current });
    }
    // A replaced document gets a new row, and with it a new revision.
    let sql = "INSERT OR REPLACE INTO documents (pool, text, who, at) VALUES (?1, ?2, ?3, ?4)
               RETURNING revision";
    let row = params![new.pool.as_str(), &*new.text, &*new.who, new.at.millis()];
    let revision = db.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
    Ok(PutOutcome::Done { revision })
}

fn remove(db: &Connection, pool: &PoolName, found: Expected) -> Result<PutOutcome, SqliteFault> {
    let current = revision(db, pool)?;
    let Some(revision) = current.filter(|_| found.is(current)) else {
        return Ok(PutOutcome::Stale { current });
    };
    db.prepare_cached("DELETE FROM documents WHERE pool = ?1")?.execute([pool.as_str()])?;
    Ok(PutOutcome::Done { revision })
}

impl ApiStore for SqliteStore {
    async fn audit(&self, line: &AuditEntry) -> Result<Seq, StoreError> {
        let record = record::write_audit(line).map_err(SqliteFault::from)?;
        self.writer.write(move |db| audit::write(db, &record)).await
    }

    async fn audits_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, AuditEntry)>, StoreError> {
        let sql = "SELECT seq, record FROM audits WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        self.readers.read(move |db| audits(db, sql, after, limit)).await
    }

    async fn audits_before(
        &self,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, AuditEntry)>, StoreError> {
        let sql = "SELECT seq, record FROM audits WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2";
        let mut lines = self.readers.read(move |db| audits(db, sql, before, limit)).await?;
        lines.reverse();
        Ok(lines)
    }

    async fn claim(&self, key: &str, request: &str, now: Time) -> Result<Claim, StoreError> {
        let (key, request) = (key.to_owned(), request.to_owned());
        self.writer.write(move |db| claim(db, &key, &request, now)).await
    }

    async fn answer(&self, key: &str, answer: &str) -> Result<bool, StoreError> {
        let (key, answer) = (key.to_owned(), answer.to_owned());
        let work = move |db: &Connection| {
            let sql = "UPDATE claims SET answer = ?2 WHERE key = ?1";
            Ok(db.prepare_cached(sql)?.execute([&key, &answer])? > 0)
        };
        self.writer.write(work).await
    }

    async fn unclaim(&self, key: &str) -> Result<(), StoreError> {
        let key = key.to_owned();
        let work = move |db: &Connection| {
            let sql = "DELETE FROM claims WHERE key = ?1 AND answer IS NULL";
            db.prepare_cached(sql)?.execute([&key])?;
            Ok(())
        };
        self.writer.write(work).await
    }

    async fn documents(&self) -> Result<Vec<Document>, StoreError> {
        let work = move |db: &Connection| {
            let sql = "SELECT pool, text, revision, who, at FROM documents ORDER BY pool";
            all(db, sql, [], |row| Ok(document(row)?))
        };
        self.readers.read(work).await
    }

    async fn document(&self, pool: &PoolName) -> Result<Option<Document>, StoreError> {
        let pool = pool.clone();
        let work = move |db: &Connection| {
            let sql = "SELECT pool, text, revision, who, at FROM documents WHERE pool = ?1";
            let mut found = db.prepare_cached(sql)?;
            Ok(found.query_row([pool.as_str()], document).optional()?)
        };
        self.readers.read(work).await
    }

    async fn put_document(
        &self,
        pool: &PoolName,
        text: &str,
        who: &str,
        at: Time,
        found: Expected,
    ) -> Result<PutOutcome, StoreError> {
        let pool = pool.clone();
        let new = Document { pool, text: text.into(), revision: 0, who: who.into(), at };
        self.writer.write(move |db| put(db, &new, found)).await
    }

    async fn remove_document(
        &self,
        pool: &PoolName,
        found: Expected,
    ) -> Result<PutOutcome, StoreError> {
        let pool = pool.clone();
        self.writer.write(move |db| remove(db, &pool, found)).await
    }

    async fn sweep(&self, keep: &Keep, now: Time) -> Result<Swept, StoreError> {
        let keep = *keep;
        self.writer.write(move |db| sweep::sweep(db, &keep, now)).await
    }
}
