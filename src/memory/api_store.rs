//! The API's own records: who asked for what, answered requests, and the pool documents applied over the network. No
//! turn reads or writes them, so they are not under the lease. [`ApiStore::sweep`] prunes old history and audit
//! too.

use super::{Seq, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// How long the store repeats the answer to a request.
// 24 h: a client that repeats a request after that did not lose the answer; it means a new request.
pub const ANSWER_KEPT: Span = Span::hours(24);
/// Answers kept for each requester; beyond these the oldest are pruned.
// 1,000: a script that changes something every minute keeps most of a day, and no requester can fill the disk.
pub const ANSWERS_OF_ONE: usize = 1_000;
/// Expected maximum of audit lines. More are kept, and `/health` reports it.
// 100,000: years of operators' verbs, some tens of megabytes.
pub const AUDIT_LARGE: u64 = 100_000;

/// Lines pruned in one write, of history and audit together.
// 2,000: some tens of milliseconds, for which the turns of other pools wait.
pub const SWEPT_AT_ONCE: usize = 2_000;

/// Retention of history and audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Lines of a pool's history, unless its limit by number prunes them sooner.
    pub history: Span,
    /// Lines of the audit: none is pruned sooner.
    pub audit: Span,
}

/// The result of one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub lines: usize,
    /// The sweep is not finished: sweep again soon.
    pub more: bool,
    /// Remaining lines of the audit.
    pub audit: u64,
}

/// A change, or an attempted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Time,
    /// As authenticated, not as claimed.
    pub who: Box<str>,
    pub verb: Box<str>,
    /// `None`: it concerned no single pool.
    pub pool: Option<PoolName>,
    /// The part of the pool that it concerned, such as a machine; empty: the whole pool.
    pub on: Box<str>,
    pub why: Box<str>,
    /// The outcome in a word: accepted, or how it was refused.
    pub came: Box<str>,
    /// `None`: one person suffices for it.
    pub consent: Option<Consent>,
}

/// The state of a request that two persons must make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// One person made the request, and another must.
    Awaited,
    /// It is being carried out: the earlier request is used up.
    Given,
}

/// What a store knows of a request that carries an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The first under this key: carry it out, then store the answer or withdraw the claim.
    Yours,
    /// Claimed at that time and not answered: it is in progress, or its process crashed. A request that is idempotent
    /// by its own id may be repeated.
    Asked { at: Time },
    /// Done: this was the answer.
    Answered(Box<str>),
    /// The key belongs to another request: do not carry this one out.
    Another,
}

/// A pool document applied over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub pool: PoolName,
    pub text: Box<str>,
    /// Increases with every document that is put, across all pools: an equal revision means the same document.
    pub revision: u64,
    pub who: Box<str>,
    pub at: Time,
}

/// The precondition for putting or removing a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Nothing,
    Revision(u64),
}

impl Expected {
    /// Whether the precondition holds for this revision.
    pub fn is(self, revision: Option<u64>) -> bool {
        match self {
            Expected::Nothing => revision.is_none(),
            Expected::Revision(meant) => revision == Some(meant),
        }
    }
}

/// Whether a document was put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The new revision; for a removed document, its last one.
    Done { revision: u64 },
    /// Another revision was stored. Nothing was changed.
    Stale { current: Option<u64> },
}

/// Storage for the API's own records. Each method that writes is one durable write.
pub trait ApiStore {
    /// Records who asked for what; returns the number of the line.
    fn audit(&self, line: &AuditEntry) -> impl Future<Output = Result<Seq, StoreError>> + Send;

    /// The first audit lines with a number higher than this, oldest first.
    fn audits_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, AuditEntry)>, StoreError>> + Send;

    /// The last audit lines with a number lower than this, oldest first.
    fn audits_before(
        &self,
        before: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, AuditEntry)>, StoreError>> + Send;

    /// Whether the request was made before. `key` is the requester, a slash, and the name of the request; `request` is
    /// the fingerprint of its content. Forgets claims older than [`ANSWER_KEPT`], and all but the last
    /// [`ANSWERS_OF_ONE`] answers of each requester.
    fn claim(
        &self,
        key: &str,
        request: &str,
        now: Time,
    ) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Stores the answer for repeats of the request. Returns false if the key has no claim.
    fn answer(
        &self,
        key: &str,
        answer: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Withdraws a claim without result: the key is free again. An answered claim stays.
    fn unclaim(&self, key: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// All documents, ordered by pool.
    fn documents(&self) -> impl Future<Output = Result<Vec<Document>, StoreError>> + Send;

    fn document(
        &self,
        pool: &PoolName,
    ) -> impl Future<Output = Result<Option<Document>, StoreError>> + Send;

    /// Puts the document of a pool if `found` holds; putting the same text again creates a new revision.
    fn put_document(
        &self,
        pool: &PoolName,
        text: &str,
        who: &str,
        at: Time,
        found: Expected,
    ) -> impl Future<Output = Result<PutOutcome, StoreError>> + Send;

    /// Removes the document of a pool if `found` holds. Removing a missing one is stale.
    fn remove_document(
        &self,
        pool: &PoolName,
        found: Expected,
    ) -> impl Future<Output = Result<PutOutcome, StoreError>> + Send;

    /// Prunes each pool's history and the audit, from the first line to the first one within retention, and expired
    /// answers. Works in bounded batches so that other writes do not wait long, and returns freed pages of a file.
    fn sweep(
        &self,
        keep: &Keep,
        now: Time,
    ) -> impl Future<Output = Result<Swept, StoreError>> + Send;
}
