//! How the loop reaches the simulated cloud: directly, or over a caller's road, such as an adapter over HTTP.
//!
//! Code that builds a road gets a [`Backstage`]: its clock is the rehearsal's, and its sleep advances the world. The
//! world itself is lent out for each exchange and taken back after it. The rehearsal then reads the real effect of a
//! write from the world, so the judge of real effects trusts neither the road nor the adapter.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll as Wait, Waker};

use super::stage::{SharedStage, SimStage, StageRow};
use crate::act::{BackendOrder, CallContext, CallOutcome, ChangeCloud, Poll, SetChange};
use crate::ambient::{Clock, Sleep};
use crate::model::action::{ActionKind, Target};
use crate::model::backend::{BackendChange, BackendPool};
use crate::model::ids::{BackendPoolId, EntryId, Key, ScaleSetId};
use crate::model::inventory::Inventory;
use crate::model::journal::{OperationUrl, Refused};
use crate::model::time::Time;
use crate::observe::{ReadCloud, ReadError};
use crate::world::{Guid, ModelSpec, World, WorldSettings};

/// A future was not ready when polled: some code of the loop waits where it must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a future of the loop was not ready: the code waits where it must not")]
pub struct NotReady;

pub(super) fn now_or_never<F: Future>(future: F) -> Result<F::Output, NotReady> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Wait::Ready(output) => Ok(output),
        Wait::Pending => Err(NotReady),
    }
}

/// How calls reach the cloud, and how their futures run.
pub trait Road: Sync {
    type Cloud: ReadCloud + ChangeCloud + Sync;

    fn cloud(&self) -> &Self::Cloud;

    /// Runs the future to its end.
    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady>;
}

/// The stage is the cloud.
impl Road for SharedStage {
    type Cloud = SharedStage;

    fn cloud(&self) -> &SharedStage {
        self
    }

    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady> {
        now_or_never(journey)
    }
}

/// What code that builds a road gets.
#[derive(Debug, Clone)]
pub struct Backstage(SharedStage);

impl Backstage {
    pub(super) fn new(stage: SharedStage) -> Self {
        Self(stage)
    }

    /// Starts an exchange: hands the world to it and leaves an empty one with the same time in its place.
    pub fn lend(&self, writes: bool, to: impl FnOnce(World)) {
        let mut stage = self.0.lock();
        if writes {
            stage.leaves();
        }
        stage.away = true;
        let empty = World::new(0, stage.world.now(), WorldSettings::default());
        let world = std::mem::replace(&mut stage.world, empty);
        drop(stage);
        to(world);
    }

    /// Ends an exchange and advances time by its duration. `done`: the cloud accepted a write.
    pub fn take_back(&self, world: World, done: bool) {
        let mut stage = self.0.lock();
        stage.world = world;
        stage.away = false;
        stage.landed(done);
        stage.hear();
        stage.pass_call();
    }
}

impl Clock for Backstage {
    fn now(&self) -> Time {
        self.0.lock().now()
    }
}

/// A sleeper yields this many times first: other tasks may be about to start work that ends its sleep.
const COURTESY: u32 = 3;

/// Advances the world once no exchange is under way, for tasks that wait for time alone.
impl Sleep for Backstage {
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send {
        let mut yields = 0;
        poll_fn(move |context| {
            let mut stage = self.0.lock();
            if stage.now() >= at {
                return Wait::Ready(());
            }
            yields += 1;
            if stage.away || yields <= COURTESY {
                context.waker().wake_by_ref();
                return Wait::Pending;
            }
            stage.advance_to(at.millis());
            Wait::Ready(())
        })
    }
}

/// A cloud at the end of a road that records calls and listings.
#[derive(Debug)]
pub(super) struct Recording<R> {
    stage: SharedStage,
    road: R,
}

impl<R: Road> Recording<R> {
    pub fn new(stage: SharedStage, road: R) -> Self {
        Self { stage, road }
    }

    fn over(&self, answer: CallOutcome) -> CallOutcome {
        let mut stage = self.stage.lock();
        let meant = stage.meant.take();
        // Refused at the front door, and its deadline passed before a retry.
        if let (CallOutcome::NotSent, Some(meant)) = (&answer, meant) {
            stage.calls.pop_if(|last| last.entry == meant.entry && !last.took);
        }
        drop(stage);
        answer
    }
}

impl<R: Road> Road for Recording<R> {
    type Cloud = Self;

    fn cloud(&self) -> &Self {
        self
    }

    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady> {
        self.road.go(journey)
    }
}

impl<R: Road> ReadCloud for Recording<R> {
    async fn list(&self, set: &ScaleSetId) -> Result<Inventory, ReadError> {
        let seen = self.road.cloud().list(set).await?;
        self.stage.lock().shows(&seen);
        Ok(seen)
    }
}

impl<R: Road> ChangeCloud for Recording<R> {
    async fn change(&self, order: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        let (verb, raise, targets) = match change {
            SetChange::Raise { from, to, .. } => (ActionKind::Raise, Some((from, to)), &[][..]),
            SetChange::Delete { targets, .. } => (ActionKind::Delete, None, targets),
            SetChange::Standby { targets } => (ActionKind::Standby, None, targets),
            SetChange::Reimage { targets } => (ActionKind::Reimage, None, targets),
            SetChange::UpdateModel { .. } => (ActionKind::UpdateModel, None, &[][..]),
            SetChange::Restore { targets } => (ActionKind::Restore, None, targets),
            SetChange::TagOwner { .. } => (ActionKind::TagOwner, None, &[][..]),
            SetChange::WriteAutoscaler { write } => (write.verb(), None, &[][..]),
        };
        let (entry, targets) = (order.entry.clone(), targets.to_vec());
        let meant = IntendedCall { entry, verb, raise, targets, left: None };
        self.stage.lock().meant = Some(meant);
        self.over(self.road.cloud().change(order, change).await)
    }

    async fn poll(&self, set: &ScaleSetId, operation: &OperationUrl) -> Poll {
        self.road.cloud().poll(set, operation).await
    }

    async fn backends(
        &self,
        set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        self.road.cloud().backends(set, pools).await
    }

    async fn set_backends(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        self.over(self.road.cloud().set_backends(order, pool, changes).await)
    }
}

/// An ordered write, and the state of the world when it was sent.
#[derive(Debug)]
pub(super) struct IntendedCall {
    entry: EntryId,
    verb: ActionKind,
    raise: Option<(u32, u32)>,
    targets: Vec<Target>,
    left: Option<Leftovers>,
}

#[derive(Debug)]
struct Leftovers {
    capacity: Option<u32>,
    model: Option<Arc<ModelSpec>>,
    autoscaler: Option<crate::world::AutoscaleSetting>,
    standing: Vec<super::change::ModelStanding>,
    deleting: BTreeSet<Guid>,
}

impl SimStage {
    /// Called when the bytes of a write are sent.
    fn leaves(&mut self) {
        let Some(mut meant) = self.meant.take() else { return };
        // A write that the front door refused and that is sent again counts as one call.
        self.calls.pop_if(|last| last.entry == meant.entry && !last.took);
        self.note_call(&meant.entry, meant.verb, meant.raise);
        meant.left = Some(Leftovers {
            capacity: self.world.true_sizes(self.set).map(|sizes| sizes.capacity),
            model: self.world.true_model(self.set).cloned(),
            autoscaler: self.world.true_autoscale(self.set).cloned(),
            standing: self.standing(&meant.targets),
            deleting: self.deleting().collect(),
        });
        self.meant = Some(meant);
    }

    fn landed(&mut self, done: bool) {
        let Some(mut meant) = self.meant.take() else { return };
        if let Some(left) = meant.left.take() {
            self.happened(&meant, &left, done);
        }
        self.meant = Some(meant);
    }

    fn happened(&mut self, meant: &IntendedCall, left: &Leftovers, done: bool) {
        match meant.verb {
            ActionKind::Raise => {
                self.hear();
                let capacity = self.world.true_sizes(self.set).map(|sizes| sizes.capacity);
                let moved = left.capacity != capacity;
                if let Some(call) = self.calls.last_mut() {
                    call.took |= moved || !call.born.is_empty();
                }
            }
            ActionKind::SuspendAutoscaler | ActionKind::PutBackAutoscaler => {
                let moved = left.autoscaler != self.world.true_autoscale(self.set).cloned();
                if let Some(call) = self.calls.last_mut() {
                    call.took |= moved;
                }
            }
            ActionKind::UpdateModel | ActionKind::TagOwner => {
                let moved = left.model != self.world.true_model(self.set).cloned();
                if let Some(call) = self.calls.last_mut() {
                    call.took |= moved;
                }
            }
            verb => {
                let after = self.standing(&meant.targets);
                if done || left.standing != after {
                    self.reached(&left.standing, &after, verb);
                }
                self.taken_along(&left.deleting);
            }
        }
    }

    fn deleting(&self) -> impl Iterator<Item = Guid> + '_ {
        self.world.briefs(self.set).filter(|brief| brief.deleting).map(|brief| brief.vm)
    }

    /// Machines that the order did not name but that started deleting; no time has passed since, so this call did it.
    fn taken_along(&mut self, before: &BTreeSet<Guid>) {
        let now = self.now();
        let begun: Vec<Guid> = self.deleting().filter(|vm| !before.contains(vm)).collect();
        let Some(call) = self.calls.last_mut() else { return };
        for vm in begun {
            let key = Key::new(vm.to_string());
            if !call.hit.contains(&key) {
                call.took = true;
                call.hit.push(key);
                self.touched.insert(vm, now);
            }
        }
    }

    /// Records the rows of a listing.
    fn shows(&mut self, seen: &Inventory) {
        let row = |row: &crate::model::inventory::Instance| {
            let vm = row.vm.as_ref()?.as_str();
            Some(StageRow {
                id: row.id.as_str().into(),
                vm: vm.parse::<Guid>().ok()?,
                text: vm.into(),
                created: row.created.millis(),
                condition: row.condition,
                since: row.since,
            })
        };
        self.showed = seen.instances.iter().filter_map(row).collect();
    }
}
