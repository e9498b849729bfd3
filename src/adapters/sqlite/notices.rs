//! Notices that are not delivered yet.

use rusqlite::{Connection, params};

use super::fault::SqliteFault;
use super::rows::{all, bound, text};
use crate::memory::{PendingNotice, Seq, record};
use crate::model::ids::PoolName;
use crate::model::notice::Delivery;

/// A webhook, and the record of its notice.
pub(super) type NoticeRow = (Box<str>, String);

pub(super) fn rows(notices: &[Delivery]) -> Result<Vec<NoticeRow>, SqliteFault> {
    let row = |of: &Delivery| Ok((of.webhook.clone(), record::write_notice(&of.notice)?));
    notices.iter().map(row).collect()
}

pub(super) fn write(db: &Connection, pool: i64, rows: &[NoticeRow]) -> Result<(), SqliteFault> {
    let sql = "INSERT INTO notices (pool, webhook, record) VALUES (?1, ?2, ?3)";
    for (webhook, record) in rows {
        db.prepare_cached(sql)?.execute(params![pool, &**webhook, record])?;
    }
    Ok(())
}

pub(super) fn first(db: &Connection) -> Result<Vec<PendingNotice>, SqliteFault> {
    let sql = "SELECT n.seq, p.name, n.webhook, n.record, f.waiting
               FROM (SELECT min(seq) AS seq, count(*) AS waiting FROM notices GROUP BY pool, webhook) f
               JOIN notices n ON n.seq = f.seq JOIN pools p ON p.id = n.pool ORDER BY n.seq";
    all(db, sql, [], |row| {
        let notice = record::read_notice(text(row, 3)?)?;
        Ok(PendingNotice {
            seq: Seq(row.get(0)?),
            pool: PoolName::new(text(row, 1)?),
            delivery: Delivery { webhook: text(row, 2)?.into(), notice },
            waiting: row.get(4)?,
        })
    })
}

pub(super) fn settle(db: &Connection, seq: Seq) -> Result<(), SqliteFault> {
    db.prepare_cached("DELETE FROM notices WHERE seq = ?1")?.execute([bound(seq.0)])?;
    Ok(())
}
