//! What doors keep for themselves: who asked for what, which requests were answered already, and the pool documents that
//! were applied over the network. No turn reads or writes any of it, so none of it is under the lease. What people may
//! look up is let go of here too, once it is old: [`Desk::sweep`].

use super::{Seq, StoreError};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// How long the answer to a request is given again.
// A day: whoever repeats a request after that did not lose the answer but means it anew.
pub const ANSWER_KEPT: Span = Span::hours(24);
/// Answers that are given again to one who asks: of more than these the oldest go.
// 1,000: a script that changes something every minute still has its day, and no one who asks fills the disk.
pub const ANSWERS_OF_ONE: usize = 1_000;
/// More lines of the audit than a house is expected to have: they are kept, and `/health` says so.
// 100,000: years of operators' verbs, some tens of megabytes.
pub const AUDIT_LARGE: u64 = 100_000;

/// Lines that are let go of in one write, of history and audit together.
// 2,000: some tens of milliseconds, for which the turns of other pools wait.
pub const SWEPT_AT_ONCE: usize = 2_000;

/// How long people may look up what was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Lines of a pool's history, where its bound by number does not let go of them sooner.
    pub history: Span,
    /// Lines of the audit: none goes sooner.
    pub audit: Span,
}

/// What one sweep came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub lines: usize,
    /// It is not done: sweep again soon.
    pub more: bool,
    /// Lines of the audit that are left.
    pub audit: u64,
}

/// Somebody changed something, or tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    pub at: Time,
    /// As authenticated, not as claimed.
    pub who: Box<str>,
    pub verb: Box<str>,
    /// `None`: it was about no one pool.
    pub pool: Option<PoolName>,
    /// What of the pool it was about, a machine for one; empty: all of it.
    pub on: Box<str>,
    pub why: Box<str>,
    /// What came of it, in a word: accepted, or how it was refused.
    pub came: Box<str>,
    /// `None`: one person is enough for it.
    pub consent: Option<Consent>,
}

/// Where something stands for which two persons must ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// One person asked for it, and another must.
    Awaited,
    /// It is carried on: what was asked before is used up.
    Given,
}

/// What a store knows of a request that carries a key of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The first under this key: do it, then give the answer or take the claim back.
    Yours,
    /// Claimed then and not answered: it is being done, or whoever did it died. What is done once by its own id may be
    /// done again.
    Asked { at: Time },
    /// Done: this is what was answered.
    Answered(Box<str>),
    /// The key belongs to another request: this one must not be done.
    Another,
}

/// A pool as it was applied over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub pool: PoolName,
    pub text: Box<str>,
    /// Higher with every document that is put, whatever its pool: one that is seen again is the same document.
    pub revision: u64,
    pub who: Box<str>,
    pub at: Time,
}

/// What must be there for a document to be put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Whatever,
    Nothing,
    Revision(u64),
}

impl Found {
    /// Whether this is what was meant to be there.
    pub fn is(self, revision: Option<u64>) -> bool {
        match self {
            Found::Whatever => true,
            Found::Nothing => revision.is_none(),
            Found::Revision(meant) => revision == Some(meant),
        }
    }
}

/// Whether a document was put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Under this revision; for one that is removed, the one it had.
    Done { revision: u64 },
    /// Something else was there. Nothing was changed.
    Stale { current: Option<u64> },
}

/// Where doors keep their own records. Each method that writes is one durable write.
pub trait Desk {
    /// Write down who asked for what; the number of the line.
    fn audit(&self, line: &Audit) -> impl Future<Output = Result<Seq, StoreError>> + Send;

    /// The first lines of the audit with a higher number than this, oldest first.
    fn audits_after(
        &self,
        after: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, Audit)>, StoreError>> + Send;

    /// The last lines with a lower number than this, oldest first.
    fn audits_before(
        &self,
        before: Seq,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Seq, Audit)>, StoreError>> + Send;

    /// Whether a request was asked before. `key` is who asks, a slash, and the name of the request; `request` is the
    /// fingerprint of what is asked. What was claimed longer ago than [`ANSWER_KEPT`] is forgotten, and what was
    /// answered before the last [`ANSWERS_OF_ONE`] of who asks.
    fn claim(
        &self,
        key: &str,
        request: &str,
        now: Time,
    ) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Keep the answer for whoever repeats the request. False: nobody claimed the key.
    fn answer(
        &self,
        key: &str,
        answer: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Take a claim back that came to nothing: the key is free again. What was answered stays.
    fn unclaim(&self, key: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// All documents, by pool.
    fn documents(&self) -> impl Future<Output = Result<Vec<Document>, StoreError>> + Send;

    fn document(
        &self,
        pool: &PoolName,
    ) -> impl Future<Output = Result<Option<Document>, StoreError>> + Send;

    /// Put the document of a pool where `found` is there; the same text put again is a new revision.
    fn put_document(
        &self,
        pool: &PoolName,
        text: &str,
        who: &str,
        at: Time,
        found: Found,
    ) -> impl Future<Output = Result<Put, StoreError>> + Send;

    /// Remove the document of a pool where `found` is there. One that is not there is stale.
    fn remove_document(
        &self,
        pool: &PoolName,
        found: Found,
    ) -> impl Future<Output = Result<Put, StoreError>> + Send;

    /// Let go of what is older than is kept: of each pool's history and of the audit the first lines to the first that is
    /// younger, and answers that nobody is given any more. In parts, so that no other write waits long, and in a file
    /// the room it took is given back.
    fn sweep(
        &self,
        keep: &Keep,
        now: Time,
    ) -> impl Future<Output = Result<Swept, StoreError>> + Send;
}
