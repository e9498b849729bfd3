//! The made-up cloud as an adapter changes it: one call an order, its answer classified, and what it really hit noted.

use super::look::fingerprint;
use super::plant::Slip;
use super::refuse::{classify, of_operation};
use super::stage::{Call, Shared, Stage};
use crate::act::{Answer, ChangeCloud, Order, Poll};
use crate::model::action::{Expect, Target, Verb, WriteScope};
use crate::model::ids::{EntryId, Etag, Key, Revision, ScaleSetId};
use crate::model::inventory::ModelFields;
use crate::model::journal::{CHANGED_SINCE_READ, Operation, Refusal, Refused};
use crate::model::owner::{OWNER_TAG, OwnerWrite};
use crate::model::time::{Span, Time};
use crate::world::{
    Accepted, Answer as Said, Guid, InstanceId, ModelPatch, OpStatus, Provisioning,
};

impl ChangeCloud for Shared {
    async fn raise(&self, order: &Order<'_>, from: u32, to: u32, expect: &Expect) -> Answer {
        self.lock().raise(order, from, to, expect)
    }

    async fn delete(&self, order: &Order<'_>, targets: &[Target], force: bool) -> Answer {
        let mut stage = self.lock();
        let ids = stage.slipped(targets);
        stage.change(order, Verb::Delete, targets, |stage| {
            stage.world.delete_instances(stage.set, &ids, force)
        })
    }

    async fn reimage(&self, order: &Order<'_>, targets: &[Target], _to: &Revision) -> Answer {
        let mut stage = self.lock();
        let ids = ids(targets);
        stage.change(order, Verb::Reimage, targets, |stage| {
            stage.world.manual_upgrade(stage.set, &ids)
        })
    }

    async fn update_model(
        &self,
        order: &Order<'_>,
        fields: &ModelFields,
        _scope: WriteScope,
        expect: &Expect,
    ) -> Answer {
        self.lock().update_model(order, fields, expect)
    }

    async fn restore(&self, order: &Order<'_>, targets: &[Target]) -> Answer {
        let mut stage = self.lock();
        let ids = ids(targets);
        stage.change(order, Verb::Restore, targets, |stage| stage.world.start(stage.set, &ids))
    }

    async fn tag_owner(&self, order: &Order<'_>, write: &OwnerWrite) -> Answer {
        self.lock().tag_owner(order, write)
    }

    async fn poll(&self, _set: &ScaleSetId, operation: &Operation) -> Poll {
        self.lock().poll(operation)
    }
}

fn ids(targets: &[Target]) -> Vec<InstanceId> {
    targets.iter().map(|target| InstanceId::from(target.id.as_str())).collect()
}

impl Stage {
    /// Checked again right before the bytes leave.
    pub(super) fn too_late(&self, order: &Order<'_>) -> bool {
        self.now() > order.before
    }

    fn note(&mut self, order: &Order<'_>, verb: Verb, raise: Option<(u32, u32)>) {
        self.note_call(order.entry, verb, raise);
    }

    /// `raise`: from which capacity, as we read it, to which.
    pub(super) fn note_call(&mut self, entry: &EntryId, verb: Verb, raise: Option<(u32, u32)>) {
        let read = raise.zip(self.world.true_sizes(self.set));
        let fell = read.map_or(0, |((from, _), sizes)| from.saturating_sub(sizes.shown_capacity));
        let lacking = read.map_or(0, |((from, _), sizes)| {
            let number = sizes.shown_capacity.max(sizes.capacity).max(from);
            // From a number that still counts what is being deleted, as many more are asked for.
            // What the cloud made too many of is in no number.
            let counted = sizes.active.saturating_sub(sizes.extras);
            number.saturating_sub(counted).max(from.saturating_sub(sizes.capacity))
        });
        let (hit, to) = (Vec::new(), raise.map(|(_, to)| to));
        let (at, entry) = (self.now(), entry.clone());
        let (took, born, spare) = (false, Vec::new(), false);
        self.calls.push(Call { at, entry, verb, hit, to, lacking, fell, took, born, spare });
    }

    /// The answer, after the time it took; what it hit is known the moment it had its effect.
    fn answered(&mut self, said: Said<Accepted>) -> Answer {
        self.hear();
        let refused = match &said {
            Ok(_) => None,
            Err(failure) => classify(failure, self.now()),
        };
        self.pass_call();
        match (said, refused) {
            (Ok(accepted), _) => Answer::Accepted(Some(Operation::new(accepted.op.to_string()))),
            (Err(_), Some(refused)) => Answer::Refused(refused),
            (Err(_), None) => Answer::Lost,
        }
    }

    fn raise(&mut self, order: &Order<'_>, from: u32, to: u32, expect: &Expect) -> Answer {
        let etag = match self.verify(order, expect, Some(from)) {
            Ok(etag) => etag,
            Err(stop) => return stop,
        };
        self.note(order, Verb::Raise, Some((from, to)));
        let before = self.world.true_sizes(self.set).map(|sizes| sizes.capacity);
        let etag = etag.as_ref().map(Etag::as_str);
        let asked = to + u32::from(self.slip == Slip::AsksForMore);
        let said = self.world.patch_capacity(self.set, asked, etag);
        let after = self.world.true_sizes(self.set);
        let answer = self.answered(said);
        if let Some(call) = self.calls.last_mut() {
            call.took = before != after.map(|sizes| sizes.capacity) || !call.born.is_empty();
            call.spare = after.is_some_and(|sizes| sizes.extras > 0);
        }
        answer
    }

    fn tag_owner(&mut self, order: &Order<'_>, write: &OwnerWrite) -> Answer {
        if self.too_late(order) {
            return Answer::NotSent;
        }
        self.note(order, Verb::TagOwner, None);
        let Some(was) = self.world.true_model(self.set).cloned() else { return Answer::NotSent };
        let mut tags = was.tags.clone();
        if !write.may_follow(tags.get(OWNER_TAG).map(String::as_str)) {
            let code = Some(CHANGED_SINCE_READ.into());
            return Answer::Refused(Refused { code, ..Refused::plain(Refusal::Conflict) });
        }
        match write {
            OwnerWrite::Put { tag, .. } => drop(tags.insert(OWNER_TAG.into(), tag.to_string())),
            OwnerWrite::TakeAway(_) => drop(tags.remove(OWNER_TAG)),
        }
        let patch = ModelPatch { tags: Some(tags), ..ModelPatch::default() };
        let said = self.world.patch_model(self.set, &patch, None);
        let took = self.world.true_model(self.set) != Some(&was);
        if let Some(call) = self.calls.last_mut() {
            call.took = took;
        }
        self.answered(said)
    }

    fn update_model(&mut self, order: &Order<'_>, fields: &ModelFields, expect: &Expect) -> Answer {
        let etag = match self.verify(order, expect, None) {
            Ok(etag) => etag,
            Err(stop) => return stop,
        };
        self.note(order, Verb::UpdateModel, None);
        let text = |field: &Option<Box<str>>| field.as_deref().map(str::to_owned);
        let was = self.world.true_model(self.set).cloned();
        // All tags of the set go along, the owner's with them.
        let tags = was.as_ref().filter(|_| !fields.tags.is_empty()).map(|was| {
            let ours = fields.tags.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            was.tags.clone().into_iter().chain(ours).collect()
        });
        let patch = ModelPatch {
            image: text(&fields.image),
            vm_size: text(&fields.vm_size),
            tags,
            ..ModelPatch::default()
        };
        let etag = etag.as_ref().map(Etag::as_str);
        let said = self.world.patch_model(self.set, &patch, etag);
        let is = self.world.true_model(self.set).cloned();
        if let Some(call) = self.calls.last_mut() {
            call.took = was != is;
        }
        self.answered(said)
    }

    /// A capacity is read once more right before it is written, and so is a set that has no version to check the write
    /// against. The version to write against.
    fn verify(
        &mut self,
        order: &Order<'_>,
        expect: &Expect,
        from: Option<u32>,
    ) -> Result<Option<Etag>, Answer> {
        let mut etag = expect.etag.clone();
        if (from.is_some() || etag.is_none()) && !self.too_late(order) {
            let read = self.world.get_set(self.set);
            self.pass_call();
            match read {
                Err(failure) => {
                    let unread = Refused::plain(Refusal::Throttled);
                    let refused = classify(&failure, self.now()).unwrap_or(unread);
                    return Err(Answer::Refused(refused));
                }
                Ok(set) => {
                    let moved = from.is_some_and(|from| set.capacity != from);
                    if moved || fingerprint(self.scheme, &set.model) != expect.revision {
                        let code = Some(CHANGED_SINCE_READ.into());
                        let refused = Refused { code, ..Refused::plain(Refusal::Conflict) };
                        return Err(Answer::Refused(refused));
                    }
                    // The capacity and the model are what was read: a version that moved for anything else is no conflict.
                    etag = etag.map(|_| Etag::new(&*set.etag.0));
                }
            }
        }
        if self.too_late(order) { Err(Answer::NotSent) } else { Ok(etag) }
    }

    /// A batch on machines: which of them it really reached is read off the truth.
    fn change(
        &mut self,
        order: &Order<'_>,
        verb: Verb,
        targets: &[Target],
        call: impl FnOnce(&mut Stage) -> Said<Accepted>,
    ) -> Answer {
        if self.too_late(order) {
            return Answer::NotSent;
        }
        self.note(order, verb, None);
        let neighbour = self.neighbour(targets).filter(|_| verb == Verb::Delete);
        let targets: Vec<Target> = targets.iter().cloned().chain(neighbour).collect();
        let before = self.standing(&targets);
        let said = call(self);
        let after = self.standing(&targets);
        let took = said.is_ok() || before != after;
        if took {
            self.reached(&before, &after, verb);
        }
        self.answered(said)
    }

    pub(super) fn reached(&mut self, before: &[Standing], after: &[Standing], verb: Verb) {
        let deletes = verb == Verb::Delete;
        let changed = before.iter().zip(after).filter(|(was, is)| match deletes {
            // Deleting already, whoever began it: asked once more, it changes nothing.
            true => is.deleting && !was.deleting,
            false => was.vm.is_some(),
        });
        let hit: Vec<Guid> = changed.filter_map(|(was, _)| was.vm).collect();
        // What an update in place takes out of service shows itself as not ready.
        if deletes {
            let now = self.now();
            self.touched.extend(hit.iter().map(|vm| (*vm, now)));
        }
        if let Some(call) = self.calls.last_mut() {
            call.took = true;
            call.hit = hit.into_iter().map(|vm| Key::new(vm.to_string())).collect();
        }
    }

    /// Planted: a machine that nobody named is taken along.
    fn neighbour(&self, targets: &[Target]) -> Option<Target> {
        if self.slip != Slip::TakesNeighbour {
            return None;
        }
        let first = targets.first()?;
        let named = |id: &str| targets.iter().any(|target| target.id.as_str() == id);
        let truth = self.world.truth(self.set)?;
        let other = truth.instances.iter().find(|instance| !named(&instance.id.0))?;
        Some(Target { id: crate::model::ids::InstanceId::new(&*other.id.0), ..first.clone() })
    }

    fn slipped(&self, targets: &[Target]) -> Vec<InstanceId> {
        ids(targets)
            .into_iter()
            .chain(self.neighbour(targets).map(|t| InstanceId::from(t.id.as_str())))
            .collect()
    }

    pub(super) fn standing(&self, targets: &[Target]) -> Vec<Standing> {
        let of = |target: &Target| {
            let found = self.world.true_instance(self.set, &InstanceId::from(target.id.as_str()));
            let deleting = found.as_ref().is_some_and(|i| i.provisioning == Provisioning::Deleting);
            let changing = found.as_ref().is_some_and(|i| i.provisioning == Provisioning::Updating);
            // The cloud gives ids out again: what the listing showed under this id is what was meant, and no later read.
            let shown = self.showed.iter().find(|row| *row.id == *target.id.as_str());
            let meant = target.vm.as_ref().and_then(|vm| vm.as_str().parse::<Guid>().ok());
            let meant = meant.filter(|meant| shown.is_some_and(|view| view.vm == *meant));
            let vm = found.map(|instance| meant.unwrap_or(instance.vm));
            Standing { vm, deleting, changing }
        };
        targets.iter().map(of).collect()
    }

    fn poll(&mut self, operation: &Operation) -> Poll {
        let Ok(op) = operation.address().parse::<Guid>() else { return Poll::Lost };
        let said = self.world.operation(op);
        self.pass_call();
        let now = self.now();
        let view = match said {
            Ok(view) => view,
            Err(failure) => {
                let refused = classify(&failure, now);
                return match refused {
                    Some(refused) if refused.refusal == Refusal::Gone => Poll::Lost,
                    Some(refused) => Poll::Running { retry_at: refused.retry_at },
                    None => Poll::Running { retry_at: None },
                };
            }
        };
        let later = |wait: u32| -> Time { now.plus(Span::seconds(wait.into())) };
        match view.status {
            OpStatus::InProgress => Poll::Running { retry_at: view.retry_after.map(later) },
            OpStatus::Succeeded => Poll::Done,
            OpStatus::Failed(failure) | OpStatus::Canceled(failure) => {
                let zone_of =
                    |id: &InstanceId| self.world.true_instance(self.set, id).and_then(|i| i.zone);
                of_operation(&failure, zone_of).map_or(Poll::Done, Poll::Failed)
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    vm: Option<Guid>,
    deleting: bool,
    changing: bool,
}
