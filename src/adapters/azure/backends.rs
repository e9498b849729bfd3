//! Backend pools of load balancers: read as a whole, with the machines of a set that their addresses belong to, and
//! written back as a whole with other administrative states. Azure has no smaller write.

use std::sync::Arc;

use url::Url;

use super::Azure;
use super::backend_document::{BackendDocument, with_states};
use super::change::{Write, refused, unread};
use super::http::HttpVerb;
use super::interfaces::{AddressBook, AddressOwner};
use super::path::{self, SetPath};
use super::read::failed;
use crate::act::{BackendOrder, CallOutcome};
use crate::model::backend::{BackendAddress, BackendChange, BackendPool};
use crate::model::ids::{BackendPoolId, Etag, ScaleSetId};
use crate::model::journal::{CHANGED_SINCE_READ, Refusal, Refused};
use crate::model::time::{Span, Time};
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// Time limit for each read. A turn waits for them, and its listing grows old meanwhile.
const READ_WITHIN: Span = Span::seconds(20);

/// A pool as it was read.
struct ReadPool {
    text: Arc<str>,
    document: BackendDocument,
    /// From a header: for a document that shows no version.
    etag: Option<Etag>,
}

impl Azure {
    pub(super) async fn read_backend_pools(
        &self,
        set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        let Ok(path) = SetPath::parse(set) else {
            return Err(Refused {
                code: Some("InvalidSetId".into()),
                ..Refused::plain(Refusal::Invalid)
            });
        };
        let mut read = Vec::with_capacity(pools.len());
        for id in pools {
            let before = self.now().plus(READ_WITHIN);
            let pool = self.read_backend_pool(set, id, before).await.map_err(told)?;
            read.push((id, pool));
        }
        let found = read.iter().filter_map(|(_, pool)| pool.as_ref());
        let documents: Vec<&BackendDocument> = found.map(|pool| &pool.document).collect();
        let before = self.now().plus(READ_WITHIN);
        let book = self.address_book(set, &path, &documents, before).await.map_err(told)?;
        Ok(read.into_iter().map(|(id, pool)| shown(id, pool, &book)).collect())
    }

    /// `None`: it is gone.
    async fn read_backend_pool(
        &self,
        set: &ScaleSetId,
        id: &BackendPoolId,
        before: Time,
    ) -> Result<Option<ReadPool>, ReadError> {
        let Some(url) = path::backend_pool(&self.arm.cloud, id) else {
            return Err(failed(Refusal::Invalid, &format!("`{id}` is no id of a backend pool")));
        };
        let read = self.get_before(PacedOperation::ReadOther, set, url, Some(before)).await;
        let reply = match read {
            Ok(reply) => reply,
            Err(why) if why.refusal == Refusal::Gone => return Ok(None),
            Err(why) => return Err(why),
        };
        let strange = |why: &str| failed(Refusal::Unclear, &format!("backend pool {id}: {why}"));
        let text = std::str::from_utf8(&reply.body).map_err(|why| strange(&why.to_string()))?;
        let document = BackendDocument::read(text).map_err(|why| strange(&why.to_string()))?;
        let etag = reply.header("etag").map(Etag::new);
        Ok(Some(ReadPool { text: text.into(), document, etag }))
    }

    pub(super) async fn write_backend_pool(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        let Some(url) = path::backend_pool(&self.arm.cloud, &pool.id) else {
            return refused(Refusal::Invalid, "InvalidBackendPoolId");
        };
        if changes.is_empty() {
            return CallOutcome::Done;
        }
        let document = BackendDocument::read(&pool.document);
        let (Ok(document), Some(body)) = (document, with_states(&pool.document, changes)) else {
            return refused(Refusal::Invalid, "InvalidBackendPool");
        };
        if self.now() > order.before {
            return CallOutcome::NotSent;
        }
        let etag = match document.etag {
            Some(etag) => Some(Etag::new(etag)),
            None => match self.unchanged(order, pool).await {
                Ok(etag) => etag,
                Err(stop) => return stop,
            },
        };
        self.put_backend_pool(order, pool, (url, body), etag.as_ref()).await
    }

    async fn put_backend_pool(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        (url, body): (Url, String),
        etag: Option<&Etag>,
    ) -> CallOutcome {
        let operation = PacedOperation::WriteOther;
        let write = Write { operation, verb: HttpVerb::Put, url, etag, machines: 0 };
        let told = match self.send_write((order.set, order.before), write, body).await {
            Ok(outcome) => return outcome,
            Err(told) => told,
        };
        let (of, backends) = (order.pool, &pool.id);
        tracing::warn!(pool = %of, %backends, why = %told.say(), "ARM refused to change a backend pool");
        match told.refused.refusal {
            Refusal::Unclear => CallOutcome::Lost,
            _ => CallOutcome::Refused(told.refused),
        }
    }

    /// A pool without a version is read again right before it is written. Returns the version in a header, if there is
    /// one.
    async fn unchanged(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
    ) -> Result<Option<Etag>, CallOutcome> {
        let read = self.read_backend_pool(order.set, &pool.id, order.before).await;
        match read.map_err(|why| unread(&why))? {
            Some(now) if now.text == pool.document => Ok(now.etag),
            _ => Err(refused(Refusal::Conflict, CHANGED_SINCE_READ)),
        }
    }
}

fn shown(id: &BackendPoolId, read: Option<ReadPool>, book: &AddressBook<'_>) -> BackendPool {
    let Some(ReadPool { text, document, .. }) = read else {
        let (backends, document) = (Vec::new(), "".into());
        return BackendPool { id: id.clone(), settled: true, backends, hidden: false, document };
    };
    let owners = book.owners(&document);
    let (mut backends, mut hidden) = (Vec::with_capacity(owners.len()), false);
    for (element, owner) in document.elements.into_iter().zip(owners) {
        // No write could name an address without a name.
        let Some(name) = element.name else {
            hidden |= owner != AddressOwner::Other;
            continue;
        };
        let machine = match owner {
            AddressOwner::Machine(machine) => Some(machine),
            AddressOwner::Other => None,
            AddressOwner::Unknown => {
                hidden = true;
                None
            }
        };
        backends.push(BackendAddress { name, machine, state: element.state });
    }
    BackendPool { id: id.clone(), settled: document.settled, backends, hidden, document: text }
}

fn told(why: ReadError) -> Refused {
    let ReadError { refusal, code, retry_at, say } = why;
    Refused { refusal, code, message: Some(say), zone: None, retry_at }
}
