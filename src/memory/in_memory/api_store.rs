//! The API's own records, in memory.

use std::collections::{BTreeMap, VecDeque};

use super::MemoryStore;
use crate::memory::{
    ANSWER_KEPT, ANSWERS_OF_ONE, ApiStore, AuditEntry, Claim, Document, Expected, Keep, PutOutcome,
    SWEPT_AT_ONCE, Seq, StoreError, Swept,
};
use crate::model::ids::PoolName;
use crate::model::time::Time;

#[derive(Debug, Clone, Default)]
pub(super) struct ApiRecords {
    audits: VecDeque<(Seq, AuditEntry)>,
    /// Number of the last audit line.
    written: u64,
    claims: BTreeMap<Box<str>, ClaimRow>,
    documents: BTreeMap<PoolName, Document>,
    /// The highest revision of any document.
    revision: u64,
}

#[derive(Debug, Clone)]
struct ClaimRow {
    request: Box<str>,
    at: Time,
    answer: Option<Box<str>>,
}

impl ApiRecords {
    pub(super) fn audit(&mut self, line: &AuditEntry) -> Seq {
        self.written += 1;
        let seq = Seq(self.written);
        self.audits.push_back((seq, line.clone()));
        seq
    }

    fn current(&self, pool: &PoolName) -> Option<u64> {
        self.documents.get(pool).map(|document| document.revision)
    }

    /// Prunes the oldest answers of this requester beyond the limit.
    fn make_room(&mut self, key: &str) {
        let Some((who, _)) = key.split_once('/') else { return };
        let is_his = |known: &str| known.split_once('/').is_some_and(|(owner, _)| owner == who);
        let answered =
            self.claims.iter().filter(|(known, claim)| is_his(known) && claim.answer.is_some());
        let mut answered: Vec<(Time, Box<str>)> =
            answered.map(|(known, claim)| (claim.at, known.clone())).collect();
        answered.sort_unstable_by(|a, b| b.cmp(a));
        for (_, old) in answered.iter().skip(ANSWERS_OF_ONE - 1) {
            self.claims.remove(old);
        }
    }
}

impl ApiStore for MemoryStore {
    async fn audit(&self, line: &AuditEntry) -> Result<Seq, StoreError> {
        Ok(self.lock().api.audit(line))
    }

    async fn audits_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, AuditEntry)>, StoreError> {
        let api = &self.lock().api;
        let from = api.audits.partition_point(|(seq, _)| *seq <= after);
        Ok(api.audits.iter().skip(from).take(limit).cloned().collect())
    }

    async fn audits_before(
        &self,
        before: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, AuditEntry)>, StoreError> {
        let api = &self.lock().api;
        let end = api.audits.partition_point(|(seq, _)| *seq < before);
        Ok(api.audits.range(end.saturating_sub(limit)..end).cloned().collect())
    }

    async fn claim(&self, key: &str, request: &str, now: Time) -> Result<Claim, StoreError> {
        let api = &mut self.lock().api;
        let horizon = now.minus(ANSWER_KEPT);
        api.claims.retain(|_, claimed| claimed.at >= horizon);
        Ok(match api.claims.get(key) {
            None => {
                api.make_room(key);
                let fresh = ClaimRow { request: request.into(), at: now, answer: None };
                api.claims.insert(key.into(), fresh);
                Claim::Yours
            }
            Some(claimed) if *claimed.request != *request => Claim::Another,
            Some(ClaimRow { answer: Some(answer), .. }) => Claim::Answered(answer.clone()),
            Some(claimed) => Claim::Asked { at: claimed.at },
        })
    }

    async fn answer(&self, key: &str, answer: &str) -> Result<bool, StoreError> {
        let api = &mut self.lock().api;
        let claimed = api.claims.get_mut(key);
        Ok(claimed.map(|claimed| claimed.answer = Some(answer.into())).is_some())
    }

    async fn unclaim(&self, key: &str) -> Result<(), StoreError> {
        let api = &mut self.lock().api;
        api.claims.retain(|known, claimed| &**known != key || claimed.answer.is_some());
        Ok(())
    }

    async fn documents(&self) -> Result<Vec<Document>, StoreError> {
        Ok(self.lock().api.documents.values().cloned().collect())
    }

    async fn document(&self, pool: &PoolName) -> Result<Option<Document>, StoreError> {
        Ok(self.lock().api.documents.get(pool).cloned())
    }

    async fn put_document(
        &self,
        pool: &PoolName,
        text: &str,
        who: &str,
        at: Time,
        found: Expected,
    ) -> Result<PutOutcome, StoreError> {
        let api = &mut self.lock().api;
        let current = api.current(pool);
        if !found.is(current) {
            return Ok(PutOutcome::Stale { current });
        }
        api.revision += 1;
        let (revision, pool) = (api.revision, pool.clone());
        let document = Document { pool, text: text.into(), revision, who: who.into(), at };
        api.documents.insert(document.pool.clone(), document);
        Ok(PutOutcome::Done { revision })
    }

    async fn remove_document(
        &self,
        pool: &PoolName,
        found: Expected,
    ) -> Result<PutOutcome, StoreError> {
        let api = &mut self.lock().api;
        let current = api.current(pool);
        match current.filter(|_| found.is(current)) {
            None => Ok(PutOutcome::Stale { current }),
            Some(revision) => {
                api.documents.remove(pool);
                Ok(PutOutcome::Done { revision })
            }
        }
    }

    async fn sweep(&self, keep: &Keep, now: Time) -> Result<Swept, StoreError> {
        let inner = &mut *self.lock();
        inner.api.claims.retain(|_, claimed| claimed.at >= now.minus(ANSWER_KEPT));
        let mut left = SWEPT_AT_ONCE;
        let (history, audit) = (now.minus(keep.history), now.minus(keep.audit));
        for pool in inner.pools.values_mut() {
            left -= let_go(&mut pool.history, left, |line| line.at < history);
        }
        left -= let_go(&mut inner.api.audits, left, |line| line.at < audit);
        let audit = inner.api.audits.len() as u64;
        Ok(Swept { lines: SWEPT_AT_ONCE - left, more: left == 0, audit })
    }
}

/// Prunes the leading old lines, at most this many.
fn let_go<T>(lines: &mut VecDeque<(Seq, T)>, most: usize, is_old: impl Fn(&T) -> bool) -> usize {
    let old = lines.iter().take(most).take_while(|(_, line)| is_old(line)).count();
    lines.drain(..old);
    old
}
