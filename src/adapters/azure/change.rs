//! Changes to a scale set: one request per order. Nothing is retried here: after a refusal, the next turn plans again.
//! Some actions on VMs of a Flexible set have no batch; those go to each VM in sequence.
//!
//! When a batch is refused because of one stale id, it is not sent again without that id: that would be a decision. Its
//! entry ends as refused, and the next turn plans from a new listing, which lacks that id.

mod outcome;
mod send;

use serde_json::{Map, Value, json};

use self::outcome::{disks_of, is_of_the_set};
pub(super) use self::outcome::{refused, unread};
pub(super) use self::send::Write;
use super::Azure;
use super::fingerprint::ReimageStep;
use super::http::{ArmRequest, HttpVerb};
use super::image::image_reference;
use super::operation::{self, Address};
use super::orchestration::members;
use super::path::SetPath;
use super::protection::Harm;
use super::refusal;
use super::set_cache::SetCaches;
use crate::act::{BackendOrder, CallContext, CallOutcome, ChangeCloud, Poll, SetChange};
use crate::model::action::{Expect, Target, WriteScope};
use crate::model::backend::{BackendChange, BackendPool};
use crate::model::ids::{BackendPoolId, Etag, InstanceId, ScaleSetId};
use crate::model::inventory::{ModelFields, Orchestration};
use crate::model::journal::{CHANGED_SINCE_READ, OperationUrl, Refusal, Refused};
use crate::pace::{CallCost, PacedOperation};

/// The verified state for a write: the version to write against, and the set's size and disks if they were read again.
struct WriteBase {
    etag: Option<Etag>,
    size: Option<Box<str>>,
    disks: Option<Map<String, Value>>,
}

/// What must be read again right before a write, whatever the set's version protects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Nothing, unless the set has no version.
    Unprotected,
    /// The capacity, which must equal this.
    Capacity(u32),
    /// The disks, and the capacity if it is written too.
    Disks(Option<u32>),
}

/// An action on some machines of a set.
#[derive(Clone)]
struct Batch<'a> {
    operation: PacedOperation,
    action: &'a str,
    query: Option<(&'a str, &'a str)>,
    /// The body's fields other than the ids.
    more: Map<String, Value>,
}

impl<'a> Batch<'a> {
    fn plain(operation: PacedOperation, action: &'a str) -> Self {
        Self { operation, action, query: None, more: Map::new() }
    }
}

impl ChangeCloud for Azure {
    async fn change(&self, order: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        match change {
            SetChange::Raise { from, to, expect } => {
                self.raise_capacity(order, from, to, expect).await
            }
            SetChange::Delete { targets, force } => {
                self.delete_machines(order, targets, force).await
            }
            SetChange::Reimage { targets } => self.update_in_place(order, targets).await,
            SetChange::UpdateModel { fields, scope, expect } => {
                self.write_model(order, fields, scope, expect).await
            }
            SetChange::Standby { targets } => self.deallocate_machines(order, targets).await,
            SetChange::Restore { targets } => self.start_machines(order, targets).await,
            SetChange::TagOwner { write } => self.write_owner(order, write).await,
            SetChange::WriteAutoscaler { write } => self.write_autoscaler(order, write).await,
        }
    }

    async fn poll(&self, set: &ScaleSetId, operation: &OperationUrl) -> Poll {
        let (Some(address), Ok(_)) = (Address::of_operation(operation), SetPath::parse(set)) else {
            return Poll::Lost;
        };
        let call = CallCost { set, operation: PacedOperation::Poll, machines: 0, before: None };
        let url = address.url().clone();
        let ask = ArmRequest { call, verb: HttpVerb::Get, url, body: None, if_match: None };
        let reply = self.arm.send(&ask).await;
        let (poll, told) = operation::polled(&address, reply, |id| self.shelf.zone(set, id));
        if let Some(told) = told {
            tracing::warn!(%set, why = %told.say(), "an operation failed");
        }
        poll
    }

    async fn backends(
        &self,
        set: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        self.read_backend_pools(set, pools).await
    }

    async fn set_backends(
        &self,
        order: &BackendOrder<'_>,
        pool: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        self.write_backend_pool(order, pool, changes).await
    }
}

impl Azure {
    async fn raise_capacity(
        &self,
        order: &CallContext<'_>,
        from: u32,
        to: u32,
        expect: &Expect,
    ) -> CallOutcome {
        let Ok(path) = SetPath::parse(order.set) else {
            return refused(Refusal::Invalid, "InvalidSetId");
        };
        let verified = self.verify(order, &path, expect, Reads::Capacity(from)).await;
        let WriteBase { etag, size, .. } = match verified {
            Ok(verified) => verified,
            Err(stop) => return stop,
        };
        // The size was read a moment ago and is sent too: every known ARM client sends both.
        let mut body = json!({"sku": {"capacity": to}});
        if let Some(size) = size {
            body["sku"]["name"] = json!(size);
        }
        self.patch(PacedOperation::Raise, order, &path, &body, etag.as_ref()).await
    }

    async fn delete_machines(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
        force: bool,
    ) -> CallOutcome {
        if let Err(stop) = self.check_protection(order, targets, Harm::Removal).await {
            return stop;
        }
        let delete = Batch::plain(PacedOperation::Delete, "delete");
        let forced = Batch { query: force.then_some(("forceDeletion", "true")), ..delete.clone() };
        let mut answer = self.batch(order, forced, targets).await;
        // Azure rejects a forced delete if customers control host maintenance, but accepts an unforced one.
        if force
            && matches!(&answer, CallOutcome::Refused(no) if no.code.as_deref() == Some(refusal::NOT_BY_FORCE))
        {
            answer = self.batch(order, delete, targets).await;
        }
        match answer {
            // ARM does not find the set or the group, which proves nothing about these machines.
            CallOutcome::Refused(no) if no.refusal == Refusal::Gone && is_of_the_set(&no) => {
                CallOutcome::Refused(Refused { refusal: Refusal::Conflict, ..no })
            }
            answer => answer,
        }
    }

    /// Upgrades if any of the targets needs it: an upgrade has no effect on machines that are on the model. If all are
    /// on it, or the missing change is one that an upgrade does not apply, reimages.
    async fn update_in_place(&self, order: &CallContext<'_>, targets: &[Target]) -> CallOutcome {
        if let Err(stop) = self.check_protection(order, targets, Harm::Update).await {
            return stop;
        }
        let known = self.shelf.of(order.set);
        let new_disk = known.filter(|known| {
            let step = |target: &Target| {
                known.row(&target.id).map_or(ReimageStep::Upgrade, |row| row.step)
            };
            targets.iter().all(|target| step(target) != ReimageStep::Upgrade)
        });
        let Some(known) = new_disk else {
            let upgrade = Batch::plain(PacedOperation::Upgrade, "manualupgrade");
            return self.batch(order, upgrade, targets).await;
        };
        let asked = self.arm.clock.now();
        let answer = self.make_anew(order, &known, targets).await;
        if !answer.changed_nothing() {
            self.shelf.ask_anew(order.set, targets, asked);
        }
        answer
    }

    async fn write_model(
        &self,
        order: &CallContext<'_>,
        fields: &ModelFields,
        scope: WriteScope,
        expect: &Expect,
    ) -> CallOutcome {
        let Ok(path) = SetPath::parse(order.set) else {
            return refused(Refusal::Invalid, "InvalidSetId");
        };
        let Some(mut body) = self.model_patch(order.set, fields, expect.capacity) else {
            return refused(Refusal::Invalid, "InvalidImage");
        };
        // Azure's refusal would be final, and the last listing already predicts it.
        let kind = self.shelf.of(order.set).and_then(|known| known.image);
        let wanted = fields.image.as_deref();
        if let Some(no) = kind.zip(wanted).and_then(|(kind, image)| kind.refuses(image)) {
            let (code, message) = (Some(no.code.into()), Some(no.message.into()));
            return CallOutcome::Refused(Refused {
                code,
                message,
                ..Refused::plain(Refusal::Invalid)
            });
        }
        // A write of the size includes the capacity, which must be the current one.
        let capacity = fields.vm_size.as_ref().map(|_| expect.capacity);
        let reads = match (scope, capacity) {
            (WriteScope::StorageProfile, _) if fields.image.is_some() => Reads::Disks(capacity),
            (_, Some(capacity)) => Reads::Capacity(capacity),
            (_, None) => Reads::Unprotected,
        };
        let WriteBase { etag, disks, .. } = match self.verify(order, &path, expect, reads).await {
            Ok(verified) => verified,
            Err(stop) => return stop,
        };
        if let Some(disks) = disks
            && let Some(Value::Object(storage)) = body.pointer_mut(STORAGE)
        {
            storage.extend(disks);
        }
        self.patch(PacedOperation::UpdateModel, order, &path, &body, etag.as_ref()).await
    }

    async fn deallocate_machines(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
    ) -> CallOutcome {
        // Azure would refuse each request, and the last listing already predicts it.
        if self.shelf.of(order.set).is_some_and(|known| known.ephemeral) {
            let message = "the OS disks of this set are ephemeral: its machines cannot be deallocated; set `scaleDown.gray.state: cutoff` in the pool file";
            let (code, message) = (Some("EphemeralDisks".into()), Some(message.into()));
            let no = Refused { code, message, ..Refused::plain(Refusal::Invalid) };
            return CallOutcome::Refused(no);
        }
        if let Err(stop) = self.check_protection(order, targets, Harm::Removal).await {
            return stop;
        }
        self.power(order, targets, PacedOperation::Deallocate, "deallocate").await
    }

    async fn start_machines(&self, order: &CallContext<'_>, targets: &[Target]) -> CallOutcome {
        self.power(order, targets, PacedOperation::Start, "start").await
    }

    async fn power(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
        operation: PacedOperation,
        action: &'static str,
    ) -> CallOutcome {
        match self.shelf.of(order.set).map(|known| known.orchestration) {
            Some(Orchestration::Flexible) => self.each(order, action, targets, &json!({})).await,
            _ => self.batch(order, Batch::plain(operation, action), targets).await,
        }
    }

    /// Reimages the machines. Without a version, ARM keeps the current one.
    async fn make_anew(
        &self,
        order: &CallContext<'_>,
        known: &SetCaches,
        targets: &[Target],
    ) -> CallOutcome {
        let mut more = Map::new();
        let swaps =
            |target: &Target| known.row(&target.id).is_some_and(|r| r.step == ReimageStep::Swap);
        if let Some(version) = known.model.version().filter(|_| targets.iter().any(swaps)) {
            more.insert("exactVersion".into(), version.into());
        }
        match known.orchestration {
            Orchestration::Uniform => {
                if known.ephemeral {
                    more.insert("forceUpdateOSDiskForEphemeral".into(), true.into());
                }
                let batch = Batch { more, ..Batch::plain(PacedOperation::Reimage, "reimage") };
                self.batch(order, batch, targets).await
            }
            // These VMs always keep their OS disk.
            Orchestration::Flexible if !known.ephemeral => {
                refused(Refusal::Invalid, "ReimageNeedsEphemeralDisk")
            }
            Orchestration::Flexible => {
                self.each(order, "reimage", targets, &Value::Object(more)).await
            }
        }
    }

    /// Re-reads right before a write: a capacity, disks that are written with an image, and a set that has no version
    /// to check the write against. Returns the version to write against.
    async fn verify(
        &self,
        order: &CallContext<'_>,
        path: &SetPath,
        expect: &Expect,
        reads: Reads,
    ) -> Result<WriteBase, CallOutcome> {
        if reads == Reads::Unprotected && expect.etag.is_some() {
            return Ok(WriteBase { etag: expect.etag.clone(), size: None, disks: None });
        }
        if self.arm.clock.now() > order.before {
            return Err(CallOutcome::NotSent);
        }
        match self.read_set(order.set, path).await {
            Err(why) => Err(unread(&why)),
            Ok(now) => {
                let from = match reads {
                    Reads::Unprotected => None,
                    Reads::Capacity(from) => Some(from),
                    Reads::Disks(from) => from,
                };
                let moved = from.is_some_and(|from| now.capacity != from);
                if moved || now.model.revision() != expect.revision {
                    return Err(refused(Refusal::Conflict, CHANGED_SINCE_READ));
                }
                // Capacity and model are unchanged, so a version that changed for another reason is not a conflict.
                let size = now.sku_name().map(Into::into);
                let disks = match reads {
                    Reads::Disks(_) => Some(disks_of(&now)?),
                    _ => None,
                };
                let known = expect.etag.is_some() || disks.is_some();
                let etag = now.etag.or_else(|| expect.etag.clone()).filter(|_| known);
                Ok(WriteBase { etag, size, disks })
            }
        }
    }

    /// The ids that an action may name, without duplicates, or the answer if it must not be sent.
    pub(super) fn named<'t>(
        &self,
        order: &CallContext<'_>,
        targets: &'t [Target],
    ) -> Result<(SetPath, Vec<&'t str>), CallOutcome> {
        let Ok(path) = SetPath::parse(order.set) else {
            return Err(refused(Refusal::Invalid, "InvalidSetId"));
        };
        let mut ids: Vec<&InstanceId> = targets.iter().map(|target| &target.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Err(CallOutcome::Done);
        }
        let known = self.shelf.of(order.set);
        let nameable = |id: &&InstanceId| match &known {
            Some(known) => members(known.orchestration).may_name(id),
            None => {
                let either = [Orchestration::Uniform, Orchestration::Flexible].map(members);
                either.iter().any(|kind| kind.may_name(id))
            }
        };
        if !ids.iter().all(nameable) {
            return Err(refused(Refusal::Invalid, "InvalidInstanceId"));
        }
        // ARM only sees the id, and it reuses ids.
        if known.is_some_and(|known| known.replaced(targets).is_some()) {
            return Err(refused(Refusal::Conflict, "AnotherMachine"));
        }
        Ok((path, ids.into_iter().map(InstanceId::as_str).collect()))
    }

    /// One action on these machines. Never sent without ids: ARM applies an empty batch to all machines.
    async fn batch(
        &self,
        order: &CallContext<'_>,
        batch: Batch<'_>,
        targets: &[Target],
    ) -> CallOutcome {
        let (path, names) = match self.named(order, targets) {
            Ok(named) => named,
            Err(stop) => return stop,
        };
        let Batch { operation, action, query, mut more } = batch;
        let mut url = path.set(&self.arm.cloud, &[action]);
        if let Some((key, value)) = query {
            url.query_pairs_mut().append_pair(key, value);
        }
        let machines = u32::try_from(names.len()).unwrap_or(u32::MAX);
        more.insert("instanceIds".into(), json!(names));
        let write = Write { operation, verb: HttpVerb::Post, url, etag: None, machines };
        self.write(order, write, &Value::Object(more)).await
    }

    /// The same action for each VM of a Flexible set, for actions without a batch. After one request is accepted, the
    /// next listing shows the results for the others.
    async fn each(
        &self,
        order: &CallContext<'_>,
        action: &str,
        targets: &[Target],
        body: &Value,
    ) -> CallOutcome {
        let (path, names) = match self.named(order, targets) {
            Ok(named) => named,
            Err(stop) => return stop,
        };
        let (alone, mut begun) = (names.len() == 1, false);
        for name in names {
            let url = path.vms(&self.arm.cloud, &[name, action]);
            let operation = PacedOperation::UpdateMachine;
            let write = Write { operation, verb: HttpVerb::Post, url, etag: None, machines: 1 };
            match self.write(order, write, body).await {
                answer if alone => return answer,
                CallOutcome::Accepted(_) | CallOutcome::Done => begun = true,
                CallOutcome::Lost => return CallOutcome::Lost,
                answer if !begun => return answer,
                _ => break,
            }
        }
        CallOutcome::Accepted(None)
    }

    pub(super) async fn patch(
        &self,
        operation: PacedOperation,
        order: &CallContext<'_>,
        path: &SetPath,
        body: &Value,
        etag: Option<&Etag>,
    ) -> CallOutcome {
        let url = path.set(&self.arm.cloud, &[]);
        let write = Write { operation, verb: HttpVerb::Patch, url, etag, machines: 0 };
        self.write(order, write, body).await
    }

    /// Only the fields that the pool owns. The set's other tags are sent too, so it does not matter whether ARM merges
    /// tags.
    fn model_patch(&self, set: &ScaleSetId, fields: &ModelFields, capacity: u32) -> Option<Value> {
        let mut body = Map::new();
        if let Some(size) = &fields.vm_size {
            body.insert("sku".into(), json!({"name": size, "capacity": capacity}));
        }
        if let Some(image) = &fields.image {
            let storage = json!({"imageReference": image_reference(image)?});
            let profile = json!({"virtualMachineProfile": {"storageProfile": storage}});
            body.insert("properties".into(), profile);
        }
        if !fields.tags.is_empty() {
            let mut tags = self.shelf.of(set).map(|known| known.tags).unwrap_or_default();
            for (key, value) in &fields.tags {
                tags.retain(|known, _| !known.eq_ignore_ascii_case(key));
                tags.insert(key.to_string(), value.to_string());
            }
            body.insert("tags".into(), json!(tags));
        }
        Some(Value::Object(body))
    }
}

/// The storage profile's path in a PATCH of the model.
const STORAGE: &str = "/properties/virtualMachineProfile/storageProfile";
