//! The store behind one object, with what handlers use of it: a handler does not depend on the kind of store.

use futures_util::future::BoxFuture;

use crate::memory::{
    ApiStore, AuditEntry, Claim, Document, Expected, HistoryRecord, Inbox, OverrideWrite,
    PoolRecord, PutOutcome, Seq, Store, StoreError,
};
use crate::model::ids::{Key, PoolName};
use crate::model::plan::Command;
use crate::model::stop::GlobalStop;
use crate::model::time::Time;

macro_rules! dyn_store {
    ($life:lifetime: $($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        pub trait DynStore: Send + Sync {
            $(fn $name<$life>(&$life self, $($arg: $type),*) -> BoxFuture<$life, Result<$out, StoreError>>;)*
        }

        impl<S: Store + ApiStore + Send + Sync> DynStore for S {
            $(fn $name<$life>(&$life self, $($arg: $type),*) -> BoxFuture<$life, Result<$out, StoreError>> {
                Box::pin(self.$name($($arg),*))
            })*
        }
    };
}

dyn_store! {
    'a:
    load(pool: &'a PoolName) -> PoolRecord;
    inbox(pool: &'a PoolName) -> Inbox;
    history(pool: &'a PoolName, last: usize) -> Vec<HistoryRecord>;
    history_after(pool: &'a PoolName, after: Seq, limit: usize) -> Vec<(Seq, HistoryRecord)>;
    history_before(pool: &'a PoolName, before: Seq, limit: usize) -> Vec<(Seq, HistoryRecord)>;
    events_after(after: Seq, limit: usize) -> Vec<(Seq, PoolName, HistoryRecord)>;
    pools() -> Vec<PoolName>;
    ask(pool: &'a PoolName, ask: &'a Command) -> ();
    mark(pool: &'a PoolName, machine: &'a Key, mark: &'a OverrideWrite) -> bool;
    set_stop(stop: Option<&'a GlobalStop>) -> bool;
    stop() -> Option<GlobalStop>;
    audit(line: &'a AuditEntry) -> Seq;
    audits_after(after: Seq, limit: usize) -> Vec<(Seq, AuditEntry)>;
    audits_before(before: Seq, limit: usize) -> Vec<(Seq, AuditEntry)>;
    claim(key: &'a str, request: &'a str, now: Time) -> Claim;
    answer(key: &'a str, answer: &'a str) -> bool;
    unclaim(key: &'a str) -> ();
    document(pool: &'a PoolName) -> Option<Document>;
    put_document(pool: &'a PoolName, text: &'a str, who: &'a str, at: Time, found: Expected) -> PutOutcome;
    remove_document(pool: &'a PoolName, found: Expected) -> PutOutcome;
}
