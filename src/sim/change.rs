//! The write side of the simulated cloud: one call per order, its answer classified, its real effect recorded.

use super::look::fingerprint;
use super::mutation::Slip;
use super::refuse::{classify, of_operation};
use super::stage::{SharedStage, SimCall, SimStage};
use crate::act::{BackendOrder, CallContext, CallOutcome, ChangeCloud, Poll, SetChange};
use crate::model::action::{ActionKind, Expect, Target};
use crate::model::autoscaler::{AutoscalerTarget, AutoscalerWrite};
use crate::model::backend::{BackendChange, BackendPool};
use crate::model::ids::{BackendPoolId, EntryId, Etag, Key, ScaleSetId};
use crate::model::inventory::ModelFields;
use crate::model::journal::{CHANGED_SINCE_READ, OperationUrl, Refusal, Refused};
use crate::model::owner::{OWNER_TAG, OwnerWrite};
use crate::model::time::{Span, Time};
use crate::world::{
    AutoscaleSetting, Guid, InstanceId, ModelPatch, OpStatus, OperationHandle, Provisioning,
    WorldAnswer as Said,
};

impl ChangeCloud for SharedStage {
    async fn change(&self, order: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        let mut stage = self.lock();
        match change {
            SetChange::Raise { from, to, expect } => stage.raise(order, from, to, expect),
            SetChange::Delete { targets, force } => {
                let ids = stage.slipped(targets);
                stage.change(order, ActionKind::Delete, targets, |stage| {
                    stage.world.delete_instances(stage.set, &ids, force)
                })
            }
            SetChange::Standby { targets } => {
                stage.change(order, ActionKind::Standby, targets, |stage| {
                    stage.world.deallocate(stage.set, &ids(targets))
                })
            }
            SetChange::Reimage { targets } => {
                stage.change(order, ActionKind::Reimage, targets, |stage| {
                    stage.world.manual_upgrade(stage.set, &ids(targets))
                })
            }
            SetChange::UpdateModel { fields, expect, .. } => {
                stage.update_model(order, fields, expect)
            }
            SetChange::Restore { targets } => {
                stage.change(order, ActionKind::Restore, targets, |stage| {
                    stage.world.start(stage.set, &ids(targets))
                })
            }
            SetChange::TagOwner { write } => stage.tag_owner(order, write),
            SetChange::WriteAutoscaler { write } => stage.write_autoscaler(order, write),
        }
    }

    async fn poll(&self, _set: &ScaleSetId, operation: &OperationUrl) -> Poll {
        self.lock().poll(operation)
    }

    async fn backends(
        &self,
        _set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        self.lock().read_backends(pools)
    }

    async fn set_backends(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        self.lock().write_backends(order, pool, changes)
    }
}

fn ids(targets: &[Target]) -> Vec<InstanceId> {
    targets.iter().map(|target| InstanceId::from(target.id.as_str())).collect()
}

impl SimStage {
    /// Checked again just before the request is sent.
    pub(super) fn too_late(&self, order: &CallContext<'_>) -> bool {
        self.now() > order.before
    }

    fn note(&mut self, order: &CallContext<'_>, verb: ActionKind, raise: Option<(u32, u32)>) {
        self.note_call(order.entry, verb, raise);
    }

    /// `raise`: the capacity that we read, and the one that we ask for.
    pub(super) fn note_call(
        &mut self,
        entry: &EntryId,
        verb: ActionKind,
        raise: Option<(u32, u32)>,
    ) {
        let read = raise.zip(self.world.true_sizes(self.set));
        let fell = read.map_or(0, |((from, _), sizes)| from.saturating_sub(sizes.shown_capacity));
        let lacking = read.map_or(0, |((from, _), sizes)| {
            let number = sizes.shown_capacity.max(sizes.capacity).max(from);
            // If the number read still counts deleting machines, the raise asks for that many more. Machines that the
            // cloud over-provisions are in no number.
            let counted = sizes.active.saturating_sub(sizes.extras);
            number.saturating_sub(counted).max(from.saturating_sub(sizes.capacity))
        });
        let (hit, to) = (Vec::new(), raise.map(|(_, to)| to));
        let (at, entry) = (self.now(), entry.clone());
        let (took, born, spare, serving) = (false, Vec::new(), false, Vec::new());
        self.calls.push(SimCall {
            at,
            entry,
            verb,
            hit,
            to,
            lacking,
            fell,
            took,
            born,
            spare,
            serving,
            with_pods: Vec::new(),
        });
    }

    /// The answer, after the call's duration. The effect is recorded at once.
    fn answered(&mut self, said: Said<OperationHandle>) -> CallOutcome {
        let accepted = |of: OperationHandle| Some(OperationUrl::new(of.op.to_string()));
        self.answered_with(said, |of| CallOutcome::Accepted(accepted(of)))
    }

    fn answered_with<T>(
        &mut self,
        said: Said<T>,
        taken: impl FnOnce(T) -> CallOutcome,
    ) -> CallOutcome {
        self.hear();
        let refused = match &said {
            Ok(_) => None,
            Err(failure) => classify(failure, self.now()),
        };
        self.pass_call();
        match (said, refused) {
            (Ok(answer), _) => taken(answer),
            (Err(_), Some(refused)) => CallOutcome::Refused(refused),
            (Err(_), None) => CallOutcome::Lost,
        }
    }

    fn raise(
        &mut self,
        order: &CallContext<'_>,
        from: u32,
        to: u32,
        expect: &Expect,
    ) -> CallOutcome {
        let etag = match self.verify(order, expect, Some(from)) {
            Ok(etag) => etag,
            Err(stop) => return stop,
        };
        self.note(order, ActionKind::Raise, Some((from, to)));
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

    fn tag_owner(&mut self, order: &CallContext<'_>, write: &OwnerWrite) -> CallOutcome {
        if self.too_late(order) {
            return CallOutcome::NotSent;
        }
        self.note(order, ActionKind::TagOwner, None);
        let Some(was) = self.world.true_model(self.set).cloned() else {
            return CallOutcome::NotSent;
        };
        let mut tags = was.tags.clone();
        if !write.may_follow(tags.get(OWNER_TAG).map(String::as_str)) {
            let code = Some(CHANGED_SINCE_READ.into());
            return CallOutcome::Refused(Refused { code, ..Refused::plain(Refusal::Conflict) });
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

    fn write_autoscaler(
        &mut self,
        order: &CallContext<'_>,
        write: &AutoscalerWrite,
    ) -> CallOutcome {
        if self.too_late(order) {
            return CallOutcome::NotSent;
        }
        self.note(order, write.verb(), None);
        let was = self.world.true_autoscale(self.set).cloned();
        let now = self.now();
        let found = was.as_ref().map(|setting| self.autoscaler(setting, now));
        if write.is_done(found.as_ref()) {
            return CallOutcome::Done;
        }
        if !found.is_some_and(|found| write.may_follow(&found)) {
            let code = Some(CHANGED_SINCE_READ.into());
            return CallOutcome::Refused(Refused { code, ..Refused::plain(Refusal::Conflict) });
        }
        let number = write.document.rest().parse::<usize>().ok();
        let Some(owed) = number.and_then(|number| self.settings.get(number)) else {
            return CallOutcome::NotSent;
        };
        let enabled = write.to == AutoscalerTarget::PutBack;
        let setting = AutoscaleSetting { enabled, ..owed.clone() };
        let said = self.world.put_autoscale(self.set, Some(setting));
        let took = self.world.true_autoscale(self.set) != was.as_ref();
        if let Some(call) = self.calls.last_mut() {
            call.took = took;
        }
        self.answered_with(said, |()| CallOutcome::Done)
    }

    fn update_model(
        &mut self,
        order: &CallContext<'_>,
        fields: &ModelFields,
        expect: &Expect,
    ) -> CallOutcome {
        let etag = match self.verify(order, expect, None) {
            Ok(etag) => etag,
            Err(stop) => return stop,
        };
        self.note(order, ActionKind::UpdateModel, None);
        let text = |field: &Option<Box<str>>| field.as_deref().map(str::to_owned);
        let was = self.world.true_model(self.set).cloned();
        // The write replaces all tags of the set, so it includes existing ones such as the owner's.
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

    /// Reads a capacity again just before writing it; also a set without a version to check the write against. Returns
    /// the version to write against.
    fn verify(
        &mut self,
        order: &CallContext<'_>,
        expect: &Expect,
        from: Option<u32>,
    ) -> Result<Option<Etag>, CallOutcome> {
        let mut etag = expect.etag.clone();
        if (from.is_some() || etag.is_none()) && !self.too_late(order) {
            let read = self.world.get_set(self.set);
            self.pass_call();
            match read {
                Err(failure) => {
                    let unread = Refused::plain(Refusal::Throttled);
                    let refused = classify(&failure, self.now()).unwrap_or(unread);
                    return Err(CallOutcome::Refused(refused));
                }
                Ok(set) => {
                    let moved = from.is_some_and(|from| set.capacity != from);
                    if moved || fingerprint(self.scheme, &set.model) != expect.revision {
                        let code = Some(CHANGED_SINCE_READ.into());
                        let refused = Refused { code, ..Refused::plain(Refusal::Conflict) };
                        return Err(CallOutcome::Refused(refused));
                    }
                    // Capacity and model are as read: a version that changed for another reason is not a conflict.
                    etag = etag.map(|_| Etag::new(&*set.etag.0));
                }
            }
        }
        if self.too_late(order) { Err(CallOutcome::NotSent) } else { Ok(etag) }
    }

    /// A batch on machines. The truth shows which of them it reached.
    fn change(
        &mut self,
        order: &CallContext<'_>,
        verb: ActionKind,
        targets: &[Target],
        call: impl FnOnce(&mut SimStage) -> Said<OperationHandle>,
    ) -> CallOutcome {
        if self.too_late(order) {
            return CallOutcome::NotSent;
        }
        self.note(order, verb, None);
        let neighbour = self.neighbour(targets).filter(|_| verb == ActionKind::Delete);
        let targets: Vec<Target> = targets.iter().cloned().chain(neighbour).collect();
        let before = self.standing(&targets);
        self.served = self.served_of(&before);
        let said = call(self);
        let after = self.standing(&targets);
        let took = said.is_ok() || before != after;
        if took {
            self.reached(&before, &after, verb);
        }
        self.answered(said)
    }

    /// Of machines about to be hit those that load balancers send new connections to, or that hooks did not let go.
    pub(super) fn served_of(&self, before: &[ModelStanding]) -> Vec<Key> {
        let there = || before.iter().filter(|was| !was.deleting).filter_map(|was| was.vm);
        let mut served = self.kept_by_hooks(there());
        if !self.pools.is_empty() {
            served.extend(self.with_traffic(|vm| there().any(|was| was == vm)));
        }
        served
    }

    pub(super) fn reached(
        &mut self,
        before: &[ModelStanding],
        after: &[ModelStanding],
        verb: ActionKind,
    ) {
        let deletes = verb == ActionKind::Delete;
        let changed = before.iter().zip(after).filter(|(was, is)| match deletes {
            // Already deleting, by any actor: another delete changes nothing.
            true => is.deleting && !was.deleting,
            false => was.vm.is_some(),
        });
        let hit: Vec<Guid> = changed.filter_map(|(was, _)| was.vm).collect();
        let takes = matches!(verb, ActionKind::Delete | ActionKind::Standby | ActionKind::Reimage);
        let served = std::mem::take(&mut self.served);
        let serving = if takes { served } else { Vec::new() };
        let with_pods = hit.iter().filter(|vm| takes && self.has_pods(**vm));
        let with_pods = with_pods.map(|vm| Key::new(vm.to_string())).collect();
        // Only deletes count as touched: a machine that an update takes out of service shows as not ready.
        if deletes {
            let now = self.now();
            self.touched.extend(hit.iter().map(|vm| (*vm, now)));
        }
        if let Some(call) = self.calls.last_mut() {
            call.took = true;
            call.serving = serving;
            call.with_pods = with_pods;
            call.hit = hit.into_iter().map(|vm| Key::new(vm.to_string())).collect();
        }
    }

    /// Planted fault: the delete also takes a machine that the order does not name.
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

    pub(super) fn standing(&self, targets: &[Target]) -> Vec<ModelStanding> {
        let of = |target: &Target| {
            let found = self.world.true_instance(self.set, &InstanceId::from(target.id.as_str()));
            let deleting = found.as_ref().is_some_and(|i| i.provisioning == Provisioning::Deleting);
            let changing = found.as_ref().is_some_and(|i| i.provisioning == Provisioning::Updating);
            // The cloud reuses ids: the order means the machine that the listing showed under this id, not a later
            // read.
            let shown = self.showed.iter().find(|row| *row.id == *target.id.as_str());
            let meant = target.vm.as_ref().and_then(|vm| vm.as_str().parse::<Guid>().ok());
            let meant = meant.filter(|meant| shown.is_some_and(|view| view.vm == *meant));
            let vm = found.map(|instance| meant.unwrap_or(instance.vm));
            ModelStanding { vm, deleting, changing }
        };
        targets.iter().map(of).collect()
    }

    fn poll(&mut self, operation: &OperationUrl) -> Poll {
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
pub(super) struct ModelStanding {
    vm: Option<Guid>,
    deleting: bool,
    changing: bool,
}
