//! Wraps the cloud's ports: identical reads share a call, and each set gets one request at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::lanes::{Lane, LanePlace, LaneState, Lanes};
use super::operation::PacedOperation;
use super::pacer::{Pacer, until_or};
use super::shared::SharedReads;
use crate::act::{BackendOrder, CallContext, CallOutcome, ChangeCloud, Poll, SetChange};
use crate::model::backend::{BackendChange, BackendPool};
use crate::model::ids::{BackendPoolId, ScaleSetId};
use crate::model::inventory::Inventory;
use crate::model::journal::{OperationUrl as Address, Refused};
use crate::model::time::Span;
use crate::observe::{ReadCloud, ReadError};

/// How long other callers may share a listing, counted from its start.
// 1 s: it includes any event older than the shortest useful window, and two turns are never closer than that.
pub const LISTING_IS_GOOD: Span = Span::seconds(1);

type SharedListing = Arc<Result<Inventory, ReadError>>;

/// Serializes writes per scale set and shares concurrent listings. Rate limiting happens later, at the HTTP client
/// ([`Pacer`]).
#[derive(Debug)]
pub struct SerializedCloud<P> {
    port: P,
    pacer: Arc<Pacer>,
    listings: SharedReads<SharedListing>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    lanes: Lanes,
    wakers: Vec<Waker>,
}

/// A place in line; dropping it leaves the line.
struct InLine<'a, P> {
    paced: &'a SerializedCloud<P>,
    set: &'a ScaleSetId,
    place: LanePlace,
}

impl<P> SerializedCloud<P> {
    pub fn new(port: P, pacer: Arc<Pacer>) -> Self {
        let listings = SharedReads::new(LISTING_IS_GOOD);
        Self { port, pacer, listings, lines: Mutex::default() }
    }

    pub fn port(&self) -> &P {
        &self.port
    }

    pub fn pacer(&self) -> &Arc<Pacer> {
        &self.pacer
    }

    /// The set changed: later callers read it as it is from now on.
    pub fn changed(&self, set: &ScaleSetId) {
        self.listings.forget(&key(set));
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: ChangeCloud + Sync> SerializedCloud<P> {
    async fn turn<'a>(&'a self, order: &CallContext<'a>, lane: Lane) -> Option<InLine<'a, P>> {
        let place = self.lines().lanes.enter(order.set, lane, order.before);
        let in_line = InLine { paced: self, set: order.set, place };
        let look = |waker: Option<&Waker>| {
            let now = self.pacer.now();
            let mut lines = self.lines();
            let standing = lines.lanes.look(order.set, place, now);
            if let (LaneState::Wait, Some(waker)) = (standing, waker) {
                lines.wakers.push(waker.clone());
            }
            standing
        };
        if look(None) == LaneState::Wait {
            let too_late = order.before.plus(Span::from_millis(1));
            let ready = |waker: &Waker| look(Some(waker)) != LaneState::Wait;
            until_or(self.pacer.sleep_until(too_late), ready).await;
        }
        (look(None) == LaneState::Go).then_some(in_line)
    }
}

impl<P> Drop for InLine<'_, P> {
    fn drop(&mut self) {
        let mut lines = self.paced.lines();
        lines.lanes.leave(self.set, self.place);
        let woken = std::mem::take(&mut lines.wakers);
        drop(lines);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl<P: ReadCloud + Sync> ReadCloud for SerializedCloud<P> {
    async fn list(&self, set: &ScaleSetId) -> Result<Inventory, ReadError> {
        let now = || self.pacer.now();
        let call = async { Arc::new(self.port.list(set).await) };
        let (listed, saved) =
            self.listings.read(&key(set), now, call, |listed| listed.is_ok()).await;
        if saved {
            self.pacer.saved(PacedOperation::List);
        }
        Arc::unwrap_or_clone(listed)
    }
}

impl<P: ChangeCloud + Sync> ChangeCloud for SerializedCloud<P> {
    /// Make the call when its turn comes, unless that is too late. Drop shared reads of the set before the call leaves
    /// and after its answer: a listing begun in between may show the set as it was.
    async fn change(&self, order: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        let (operation, lane) = match change {
            SetChange::Raise { .. } => (PacedOperation::Raise, Lane::Gives),
            SetChange::Delete { .. } => (PacedOperation::Delete, Lane::Takes),
            SetChange::Standby { .. } => (PacedOperation::Deallocate, Lane::Takes),
            SetChange::Reimage { .. } => (PacedOperation::Reimage, Lane::Takes),
            SetChange::UpdateModel { .. } => (PacedOperation::UpdateModel, Lane::Gives),
            SetChange::Restore { .. } => (PacedOperation::Start, Lane::Gives),
            SetChange::TagOwner { .. } | SetChange::WriteAutoscaler { .. } => {
                (PacedOperation::WriteOther, Lane::Gives)
            }
        };
        let asked = self.pacer.now();
        let in_line = self.turn(order, lane).await;
        let now = self.pacer.now();
        if now > asked {
            self.pacer.queued(operation, now.since(asked));
        }
        if in_line.is_none() || now > order.before {
            self.pacer.withdrawn(operation);
            return CallOutcome::NotSent;
        }
        self.changed(order.set);
        let answer = self.port.change(order, change).await;
        self.changed(order.set);
        answer
    }

    /// A poll changes nothing and waits in no line; but when it reports an end, the set has changed.
    async fn poll(&self, set: &ScaleSetId, operation: &Address) -> Poll {
        let poll = self.port.poll(set, operation).await;
        if !matches!(poll, Poll::Running { .. }) {
            self.changed(set);
        }
        poll
    }

    /// Load balancers are other resources than the set: neither its line nor its listings know of them.
    async fn backends(
        &self,
        set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        self.port.backends(set, pools).await
    }

    async fn set_backends(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        if self.pacer.now() > order.before {
            return CallOutcome::NotSent;
        }
        self.port.set_backends(order, pool, changes).await
    }
}

/// Azure ignores the case of ids.
fn key(set: &ScaleSetId) -> String {
    set.as_str().to_ascii_lowercase()
}
