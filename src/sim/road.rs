//! The way from the loop to the made-up cloud: none at all, or one that others built, such as an adapter over HTTP.
//!
//! Whoever builds a road gets a [`Backstage`]: its clock is the rehearsal's, its sleep lets the world go on, and the
//! world itself is lent for each exchange and taken back after it. What a write really hit is read off the world then,
//! so the judge of what happened asks neither the road nor the adapter.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll as Wait, Waker};

use super::stage::{Row, Shared, Stage};
use crate::act::{Answer, ChangeCloud, Order, Poll};
use crate::ambient::{Clock, Sleep};
use crate::model::action::{Expect, Target, Verb, WriteScope};
use crate::model::ids::{EntryId, Key, Revision, ScaleSetId};
use crate::model::inventory::{Inventory, ModelFields};
use crate::model::journal::Operation;
use crate::model::owner::OwnerWrite;
use crate::model::time::Time;
use crate::observe::{ReadCloud, ReadFailed};
use crate::world::{Guid, Model, Settings, World};

/// A future was not ready when it was polled: somebody waits where nobody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a future of the loop was not ready: somebody waits where nobody may")]
pub struct NotReady;

pub(super) fn now_or_never<F: Future>(future: F) -> Result<F::Output, NotReady> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Wait::Ready(output) => Ok(output),
        Wait::Pending => Err(NotReady),
    }
}

/// How calls reach the cloud, and how they are waited for.
pub trait Road {
    type Cloud: ReadCloud + ChangeCloud;

    fn cloud(&self) -> &Self::Cloud;

    /// To the end of it.
    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady>;
}

/// The stage is the cloud.
impl Road for Shared {
    type Cloud = Shared;

    fn cloud(&self) -> &Shared {
        self
    }

    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady> {
        now_or_never(journey)
    }
}

/// The door for whoever builds a road.
#[derive(Debug, Clone)]
pub struct Backstage(Shared);

impl Backstage {
    pub(super) fn new(stage: Shared) -> Self {
        Self(stage)
    }

    /// An exchange begins: the world goes where it takes place. An empty one of the same time stands in for it.
    pub fn lend(&self, writes: bool, to: impl FnOnce(World)) {
        let mut stage = self.0.lock();
        if writes {
            stage.leaves();
        }
        stage.away = true;
        let empty = World::new(0, stage.world.now(), Settings::default());
        let world = std::mem::replace(&mut stage.world, empty);
        drop(stage);
        to(world);
    }

    /// It is over, and took its time. `done`: a write was answered, and not refused.
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

/// So often whoever sleeps lets others go first: what they are about to begin may end his sleep.
const COURTESY: u32 = 3;

/// The world goes on once nobody is on the road, for whoever waits for time alone.
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

/// A cloud at the end of a road, with a note of what was asked of it and what it showed.
#[derive(Debug)]
pub(super) struct Noted<R> {
    stage: Shared,
    road: R,
}

impl<R: Road> Noted<R> {
    pub fn new(stage: Shared, road: R) -> Self {
        Self { stage, road }
    }

    fn means(&self, order: &Order<'_>, verb: Verb, raise: Option<(u32, u32)>, targets: &[Target]) {
        let targets = targets.to_vec();
        let meant = Meant { entry: order.entry.clone(), verb, raise, targets, left: None };
        self.stage.lock().meant = Some(meant);
    }

    fn over(&self, answer: Answer) -> Answer {
        let mut stage = self.stage.lock();
        let meant = stage.meant.take();
        // Turned away at the door, and its time was over before it could leave once more.
        if let (Answer::NotSent, Some(meant)) = (&answer, meant) {
            stage.calls.pop_if(|last| last.entry == meant.entry && !last.took);
        }
        drop(stage);
        answer
    }
}

impl<R: Road + Sync> Road for Noted<R>
where
    R::Cloud: Sync,
{
    type Cloud = Self;

    fn cloud(&self) -> &Self {
        self
    }

    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady> {
        self.road.go(journey)
    }
}

impl<R: Road + Sync> ReadCloud for Noted<R>
where
    R::Cloud: Sync,
{
    async fn list(&self, set: &ScaleSetId) -> Result<Inventory, ReadFailed> {
        let seen = self.road.cloud().list(set).await?;
        self.stage.lock().shows(&seen);
        Ok(seen)
    }
}

impl<R: Road + Sync> ChangeCloud for Noted<R>
where
    R::Cloud: Sync,
{
    async fn raise(&self, order: &Order<'_>, from: u32, to: u32, expect: &Expect) -> Answer {
        self.means(order, Verb::Raise, Some((from, to)), &[]);
        self.over(self.road.cloud().raise(order, from, to, expect).await)
    }

    async fn delete(&self, order: &Order<'_>, targets: &[Target], force: bool) -> Answer {
        self.means(order, Verb::Delete, None, targets);
        self.over(self.road.cloud().delete(order, targets, force).await)
    }

    async fn reimage(&self, order: &Order<'_>, targets: &[Target], to: &Revision) -> Answer {
        self.means(order, Verb::Reimage, None, targets);
        self.over(self.road.cloud().reimage(order, targets, to).await)
    }

    async fn update_model(
        &self,
        order: &Order<'_>,
        fields: &ModelFields,
        scope: WriteScope,
        expect: &Expect,
    ) -> Answer {
        self.means(order, Verb::UpdateModel, None, &[]);
        self.over(self.road.cloud().update_model(order, fields, scope, expect).await)
    }

    async fn restore(&self, order: &Order<'_>, targets: &[Target]) -> Answer {
        self.means(order, Verb::Restore, None, targets);
        self.over(self.road.cloud().restore(order, targets).await)
    }

    async fn tag_owner(&self, order: &Order<'_>, write: &OwnerWrite) -> Answer {
        self.means(order, Verb::TagOwner, None, &[]);
        self.over(self.road.cloud().tag_owner(order, write).await)
    }

    async fn poll(&self, set: &ScaleSetId, operation: &Operation) -> Poll {
        self.road.cloud().poll(set, operation).await
    }
}

/// A write that was ordered, and how the world stood when it left.
#[derive(Debug)]
pub(super) struct Meant {
    entry: EntryId,
    verb: Verb,
    raise: Option<(u32, u32)>,
    targets: Vec<Target>,
    left: Option<Left>,
}

#[derive(Debug)]
struct Left {
    capacity: Option<u32>,
    model: Option<Arc<Model>>,
    standing: Vec<super::change::Standing>,
    deleting: BTreeSet<Guid>,
}

impl Stage {
    /// Bytes of a write leave now.
    fn leaves(&mut self) {
        let Some(mut meant) = self.meant.take() else { return };
        // What was turned away at the door and leaves once more is one call.
        self.calls.pop_if(|last| last.entry == meant.entry && !last.took);
        self.note_call(&meant.entry, meant.verb, meant.raise);
        meant.left = Some(Left {
            capacity: self.world.true_sizes(self.set).map(|sizes| sizes.capacity),
            model: self.world.true_model(self.set).cloned(),
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

    fn happened(&mut self, meant: &Meant, left: &Left, done: bool) {
        match meant.verb {
            Verb::Raise => {
                self.hear();
                let capacity = self.world.true_sizes(self.set).map(|sizes| sizes.capacity);
                let moved = left.capacity != capacity;
                if let Some(call) = self.calls.last_mut() {
                    call.took |= moved || !call.born.is_empty();
                }
            }
            Verb::UpdateModel | Verb::TagOwner => {
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

    /// Machines that nobody named and that began to go all the same, for no time passed meanwhile.
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

    /// What a listing showed, to whoever asked.
    fn shows(&mut self, seen: &Inventory) {
        let row = |row: &crate::model::inventory::Instance| {
            let vm = row.vm.as_ref()?.as_str();
            Some(Row {
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
