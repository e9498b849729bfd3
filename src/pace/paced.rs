//! The cloud's ports with manners: reads that are the same share a call, and each set is sent one request at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::lanes::{Lane, Lanes, Place, Standing};
use super::operation::Operation;
use super::pacer::{Pacer, until_or};
use super::shared::SharedReads;
use crate::act::{Answer, ChangeCloud, Order, Poll};
use crate::ambient::Sleep;
use crate::model::action::{Expect, Target, WriteScope};
use crate::model::ids::{Revision, ScaleSetId};
use crate::model::inventory::{Inventory, ModelFields};
use crate::model::journal::Operation as Address;
use crate::model::owner::OwnerWrite;
use crate::model::time::Span;
use crate::observe::{ReadCloud, ReadFailed};

/// How long a listing is good for others than the one who asked for it, counted from its start.
// 1 s: news that are older than the shortest useful window are in it, and no turn comes sooner after another.
pub const LISTING_IS_GOOD: Span = Span::seconds(1);

type Listed = Arc<Result<Inventory, ReadFailed>>;

/// A cloud behind its manners. The tokens of a request are not its business: whoever sends bytes asks the [`Pacer`].
#[derive(Debug)]
pub struct Paced<P, C> {
    port: P,
    pacer: Arc<Pacer<C>>,
    listings: SharedReads<Listed>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    lanes: Lanes,
    wakers: Vec<Waker>,
}

/// Somebody in line, who leaves it when he is dropped.
struct InLine<'a, P, C> {
    paced: &'a Paced<P, C>,
    set: &'a ScaleSetId,
    place: Place,
}

impl<P, C> Paced<P, C> {
    pub fn new(port: P, pacer: Arc<Pacer<C>>) -> Self {
        let listings = SharedReads::new(LISTING_IS_GOOD);
        Self { port, pacer, listings, lines: Mutex::default() }
    }

    pub fn port(&self) -> &P {
        &self.port
    }

    pub fn pacer(&self) -> &Arc<Pacer<C>> {
        &self.pacer
    }

    /// Something changed this set: whoever looks from now on sees it as it is from now on.
    pub fn changed(&self, set: &ScaleSetId) {
        self.listings.forget(&key(set));
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: ChangeCloud + Sync, C: Sleep + Send + Sync> Paced<P, C> {
    /// Make the call when it is its turn, unless that is too late. What is known of the set is dropped before it leaves and
    /// when it was answered: a listing that was begun between the two may show the set as it was.
    async fn change(
        &self,
        order: &Order<'_>,
        operation: Operation,
        lane: Lane,
        call: impl Future<Output = Answer> + Send,
    ) -> Answer {
        let asked = self.pacer.clock().now();
        let in_line = self.turn(order, lane).await;
        let now = self.pacer.clock().now();
        if now > asked {
            self.pacer.queued(operation, now.since(asked));
        }
        if in_line.is_none() || now > order.before {
            self.pacer.withdrawn(operation);
            return Answer::NotSent;
        }
        self.changed(order.set);
        let answer = call.await;
        self.changed(order.set);
        answer
    }

    async fn turn<'a>(&'a self, order: &Order<'a>, lane: Lane) -> Option<InLine<'a, P, C>> {
        let place = self.lines().lanes.enter(order.set, lane, order.before);
        let in_line = InLine { paced: self, set: order.set, place };
        let look = |waker: Option<&Waker>| {
            let now = self.pacer.clock().now();
            let mut lines = self.lines();
            let standing = lines.lanes.look(order.set, place, now);
            if let (Standing::Wait, Some(waker)) = (standing, waker) {
                lines.wakers.push(waker.clone());
            }
            standing
        };
        if look(None) == Standing::Wait {
            let too_late = order.before.plus(Span::from_millis(1));
            let ready = |waker: &Waker| look(Some(waker)) != Standing::Wait;
            until_or(self.pacer.clock().sleep_until(too_late), ready).await;
        }
        (look(None) == Standing::Go).then_some(in_line)
    }
}

impl<P, C> Drop for InLine<'_, P, C> {
    fn drop(&mut self) {
        let mut lines = self.paced.lines();
        lines.lanes.leave(self.set, self.place);
        let woken = std::mem::take(&mut lines.wakers);
        drop(lines);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl<P: ReadCloud + Sync, C: Sleep + Send + Sync> ReadCloud for Paced<P, C> {
    async fn list(&self, set: &ScaleSetId) -> Result<Inventory, ReadFailed> {
        let now = || self.pacer.clock().now();
        let call = async { Arc::new(self.port.list(set).await) };
        let (listed, saved) =
            self.listings.read(&key(set), now, call, |listed| listed.is_ok()).await;
        if saved {
            self.pacer.saved(Operation::List);
        }
        Arc::unwrap_or_clone(listed)
    }
}

impl<P: ChangeCloud + Sync, C: Sleep + Send + Sync> ChangeCloud for Paced<P, C> {
    async fn raise(&self, order: &Order<'_>, from: u32, to: u32, expect: &Expect) -> Answer {
        let call = self.port.raise(order, from, to, expect);
        self.change(order, Operation::Raise, Lane::Gives, call).await
    }

    async fn delete(&self, order: &Order<'_>, targets: &[Target], force: bool) -> Answer {
        let call = self.port.delete(order, targets, force);
        self.change(order, Operation::Delete, Lane::Takes, call).await
    }

    async fn reimage(&self, order: &Order<'_>, targets: &[Target], to: &Revision) -> Answer {
        let call = self.port.reimage(order, targets, to);
        self.change(order, Operation::Reimage, Lane::Takes, call).await
    }

    async fn update_model(
        &self,
        order: &Order<'_>,
        fields: &ModelFields,
        scope: WriteScope,
        expect: &Expect,
    ) -> Answer {
        let call = self.port.update_model(order, fields, scope, expect);
        self.change(order, Operation::UpdateModel, Lane::Gives, call).await
    }

    async fn restore(&self, order: &Order<'_>, targets: &[Target]) -> Answer {
        let call = self.port.restore(order, targets);
        self.change(order, Operation::Start, Lane::Gives, call).await
    }

    async fn tag_owner(&self, order: &Order<'_>, write: &OwnerWrite) -> Answer {
        let call = self.port.tag_owner(order, write);
        self.change(order, Operation::WriteOther, Lane::Gives, call).await
    }

    /// A poll changes nothing and waits for nobody; but what it tells of an end is news about the set.
    async fn poll(&self, set: &ScaleSetId, operation: &Address) -> Poll {
        let poll = self.port.poll(set, operation).await;
        if !matches!(poll, Poll::Running { .. }) {
            self.changed(set);
        }
        poll
    }
}

/// The cloud does not look at the case of ids.
fn key(set: &ScaleSetId) -> String {
    set.as_str().to_ascii_lowercase()
}
