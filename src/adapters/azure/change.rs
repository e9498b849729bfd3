//! Changes of a scale set: one request an order. Nothing is repeated: what a "no" asks for is planned again. Only for
//! VMs of a Flexible set some actions have no batch; there each VM is asked, one after the other.
//!
//! A batch that is refused for one stale id is not sent again without it from here: that would be a choice. Its entry
//! ends refused, and the next turn plans from a new listing, which lacks that id.

use serde_json::{Map, Value, json};
use url::Url;

use super::Azure;
use super::http::{Ask, Unheard, Verb};
use super::image::image_reference;
use super::known::Known;
use super::members::members;
use super::operation::{self, Address};
use super::path::SetPath;
use super::print::Step;
use super::protection::Harm;
use super::read::Read;
use super::refusal;
use super::throttle::{Asked, Class};
use crate::act::{Answer, ChangeCloud, Order, Poll};
use crate::model::action::{Expect, Target, WriteScope};
use crate::model::ids::{Etag, InstanceId, Revision, ScaleSetId};
use crate::model::inventory::{ModelFields, Orchestration};
use crate::model::journal::{CHANGED_SINCE_READ, Operation, Refusal, Refused};
use crate::model::machine::Protection;
use crate::model::owner::OwnerWrite;
use crate::observe::ReadFailed;

/// What a write rests on: the version to write against, and the size of the set where it was read again.
struct Verified {
    etag: Option<Etag>,
    size: Option<Box<str>>,
    disks: Option<Map<String, Value>>,
}

/// What a write needs to read again right before it leaves, whatever the set's version protects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// What no version protects.
    Unprotected,
    /// The capacity, which must be this.
    Capacity(u32),
    /// The disks, and the capacity where that is written too.
    Disks(Option<u32>),
}

/// What distinguishes one write from another.
pub(super) struct Write<'a> {
    pub class: Class,
    pub verb: Verb,
    pub url: Url,
    pub etag: Option<&'a Etag>,
    /// How many machines it names.
    pub machines: u32,
}

/// An action on some machines of a set.
#[derive(Clone)]
struct Batch<'a> {
    class: Class,
    action: &'a str,
    query: Option<(&'a str, &'a str)>,
    /// What the body says besides the ids.
    more: Map<String, Value>,
}

impl<'a> Batch<'a> {
    fn plain(class: Class, action: &'a str) -> Self {
        Self { class, action, query: None, more: Map::new() }
    }
}

impl ChangeCloud for Azure {
    async fn raise(&self, order: &Order<'_>, from: u32, to: u32, expect: &Expect) -> Answer {
        let Ok(path) = SetPath::parse(order.set) else {
            return refused(Refusal::Invalid, "InvalidSetId");
        };
        let verified = self.verify(order, &path, expect, Reads::Capacity(from)).await;
        let Verified { etag, size, .. } = match verified {
            Ok(verified) => verified,
            Err(stop) => return stop,
        };
        // The size goes along as it was read a moment ago: every known client of ARM sends both.
        let mut body = json!({"sku": {"capacity": to}});
        if let Some(size) = size {
            body["sku"]["name"] = json!(size);
        }
        self.patch(order, &path, &body, etag.as_ref()).await
    }

    async fn delete(&self, order: &Order<'_>, targets: &[Target], force: bool) -> Answer {
        if let Err(stop) = self.check_protection(order, targets, Harm::Removal).await {
            return stop;
        }
        let delete = Batch::plain(Class::DeleteMachines, "delete");
        let forced = Batch { query: force.then_some(("forceDeletion", "true")), ..delete.clone() };
        let mut answer = self.batch(order, forced, targets).await;
        // Azure takes no forced delete where people control the maintenance of hosts. It takes one without force.
        if force
            && matches!(&answer, Answer::Refused(no) if no.code.as_deref() == Some(refusal::NOT_BY_FORCE))
        {
            answer = self.batch(order, delete, targets).await;
        }
        match answer {
            // A set or group that the front door does not know is no word about these machines.
            Answer::Refused(no) if no.refusal == Refusal::Gone && is_of_the_set(&no) => {
                Answer::Refused(Refused { refusal: Refusal::Conflict, ..no })
            }
            answer => answer,
        }
    }

    /// An upgrade where one of them needs it: to those that are on the model it does nothing. Where all are on it, or
    /// lack what an upgrade does not bring, a new disk.
    async fn reimage(&self, order: &Order<'_>, targets: &[Target], _to: &Revision) -> Answer {
        if let Err(stop) = self.check_protection(order, targets, Harm::Update).await {
            return stop;
        }
        let known = self.shelf.of(order.set);
        let new_disk = known.filter(|known| {
            let step =
                |target: &Target| known.row(&target.id).map_or(Step::Upgrade, |row| row.step);
            targets.iter().all(|target| step(target) != Step::Upgrade)
        });
        let Some(known) = new_disk else {
            let upgrade = Batch::plain(Class::Actions, "manualupgrade");
            return self.batch(order, upgrade, targets).await;
        };
        let asked = self.arm.clock.now();
        let answer = self.make_anew(order, &known, targets).await;
        if !answer.changed_nothing() {
            self.shelf.ask_anew(order.set, targets, asked);
        }
        answer
    }

    async fn update_model(
        &self,
        order: &Order<'_>,
        fields: &ModelFields,
        scope: WriteScope,
        expect: &Expect,
    ) -> Answer {
        let Ok(path) = SetPath::parse(order.set) else {
            return refused(Refusal::Invalid, "InvalidSetId");
        };
        let Some(mut body) = self.model_patch(order.set, fields, expect.capacity) else {
            return refused(Refusal::Invalid, "InvalidImage");
        };
        // Azure's refusal would be final: the last listing shows as much.
        let kind = self.shelf.of(order.set).and_then(|known| known.image);
        let wanted = fields.image.as_deref();
        if let Some(no) = kind.zip(wanted).and_then(|(kind, image)| kind.refuses(image)) {
            let (code, message) = (Some(no.code.into()), Some(no.message.into()));
            return Answer::Refused(Refused { code, message, ..Refused::plain(Refusal::Invalid) });
        }
        // A write of the size carries the number, which must be the one of this moment.
        let capacity = fields.vm_size.as_ref().map(|_| expect.capacity);
        let reads = match (scope, capacity) {
            (WriteScope::StorageProfile, _) if fields.image.is_some() => Reads::Disks(capacity),
            (_, Some(capacity)) => Reads::Capacity(capacity),
            (_, None) => Reads::Unprotected,
        };
        let Verified { etag, disks, .. } = match self.verify(order, &path, expect, reads).await {
            Ok(verified) => verified,
            Err(stop) => return stop,
        };
        if let Some(disks) = disks
            && let Some(Value::Object(storage)) = body.pointer_mut(STORAGE)
        {
            storage.extend(disks);
        }
        self.patch(order, &path, &body, etag.as_ref()).await
    }

    async fn restore(&self, order: &Order<'_>, targets: &[Target]) -> Answer {
        self.power(order, "start", targets).await
    }

    async fn tag_owner(&self, order: &Order<'_>, write: &OwnerWrite) -> Answer {
        self.write_owner(order, write).await
    }

    async fn poll(&self, set: &ScaleSetId, operation: &Operation) -> Poll {
        let (Some(address), Ok(path)) = (Address::of_operation(operation), SetPath::parse(set))
        else {
            return Poll::Lost;
        };
        let (class, subscription) = (Class::Poll, &*path.subscription);
        let asked = Asked { class, subscription, set: Some(set), machines: 0, before: None };
        let url = address.url().clone();
        let ask = Ask { asked, verb: Verb::Get, url, body: None, if_match: None };
        let reply = self.arm.send(&ask).await;
        let (poll, told) = operation::polled(&address, reply, |id| self.shelf.zone(set, id));
        if let Some(told) = told {
            tracing::warn!(%set, why = %told.say(), "an operation failed");
        }
        poll
    }
}

impl Azure {
    /// Give machines back and keep their disks, so that `restore` can start them again.
    pub async fn deallocate(&self, order: &Order<'_>, targets: &[Target]) -> Answer {
        self.power(order, "deallocate", targets).await
    }

    async fn power(&self, order: &Order<'_>, action: &str, targets: &[Target]) -> Answer {
        let kind = self.shelf.of(order.set).map(|known| known.orchestration);
        match kind {
            Some(Orchestration::Flexible) => self.each(order, action, targets, &json!({})).await,
            _ => self.batch(order, Batch::plain(Class::Actions, action), targets).await,
        }
    }

    /// A new disk. Without a version ARM takes the one that is there.
    async fn make_anew(&self, order: &Order<'_>, known: &Known, targets: &[Target]) -> Answer {
        let mut more = Map::new();
        let swaps = |target: &Target| known.row(&target.id).is_some_and(|r| r.step == Step::Swap);
        if let Some(version) = known.model.version().filter(|_| targets.iter().any(swaps)) {
            more.insert("exactVersion".into(), version.into());
        }
        match known.orchestration {
            Orchestration::Uniform => {
                if known.ephemeral {
                    more.insert("forceUpdateOSDiskForEphemeral".into(), true.into());
                }
                let batch = Batch { more, ..Batch::plain(Class::Actions, "reimage") };
                self.batch(order, batch, targets).await
            }
            // VMs of their own keep their disk for good.
            Orchestration::Flexible if !known.ephemeral => {
                refused(Refusal::Invalid, "ReimageNeedsEphemeralDisk")
            }
            Orchestration::Flexible => {
                self.each(order, "reimage", targets, &Value::Object(more)).await
            }
        }
    }

    /// Set or lift what protects one machine from the set's own actions. Nothing else of it is sent: whatever is sent
    /// back makes it a machine of its own model.
    pub async fn protect(&self, order: &Order<'_>, target: &Target, to: Protection) -> Answer {
        let known = self.shelf.of(order.set);
        let (Ok(path), Some(known)) = (SetPath::parse(order.set), known) else {
            return refused(Refusal::Invalid, "UnknownSet");
        };
        // Under the set's own machines also for a Flexible set: VMs themselves have no such field.
        let url = path.set(&self.arm.cloud, &["virtualMachines", target.id.as_str()]);
        if !members(known.orchestration).may_name(&target.id) {
            return refused(Refusal::Invalid, "InvalidInstanceId");
        }
        let policy = json!({
            "protectFromScaleIn": to != Protection::None,
            "protectFromScaleSetActions": matches!(to, Protection::All | Protection::Unknown),
        });
        let body = json!({"location": known.location, "properties": {"protectionPolicy": policy}});
        let class = Class::UpdateMachine;
        let write = Write { class, verb: Verb::Put, url, etag: None, machines: 1 };
        self.write(order, &path, write, &body).await
    }

    /// A capacity is read once more right before it is written, and so are disks that go with an image, and a set that has no
    /// version to check the write against. The version to write against.
    async fn verify(
        &self,
        order: &Order<'_>,
        path: &SetPath,
        expect: &Expect,
        reads: Reads,
    ) -> Result<Verified, Answer> {
        if reads == Reads::Unprotected && expect.etag.is_some() {
            return Ok(Verified { etag: expect.etag.clone(), size: None, disks: None });
        }
        if self.arm.clock.now() > order.before {
            return Err(Answer::NotSent);
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
                // The capacity and the model are what was read: a version that moved for anything else is no conflict.
                let size = now.sku_name().map(Into::into);
                let disks = match reads {
                    Reads::Disks(_) => Some(disks_of(&now)?),
                    _ => None,
                };
                let known = expect.etag.is_some() || disks.is_some();
                let etag = now.etag.or_else(|| expect.etag.clone()).filter(|_| known);
                Ok(Verified { etag, size, disks })
            }
        }
    }

    /// The ids that an action may name, once each; or why it must not leave.
    pub(super) fn named<'t>(
        &self,
        order: &Order<'_>,
        targets: &'t [Target],
    ) -> Result<(SetPath, Vec<&'t str>), Answer> {
        let Ok(path) = SetPath::parse(order.set) else {
            return Err(refused(Refusal::Invalid, "InvalidSetId"));
        };
        let mut ids: Vec<&InstanceId> = targets.iter().map(|target| &target.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Err(Answer::Done);
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
        // ARM goes by the id alone, and gives ids out again.
        if known.is_some_and(|known| known.replaced(targets).is_some()) {
            return Err(refused(Refusal::Conflict, "AnotherMachine"));
        }
        Ok((path, ids.into_iter().map(InstanceId::as_str).collect()))
    }

    /// One action on these machines. Never on none of them: ARM takes an empty batch for all.
    async fn batch(&self, order: &Order<'_>, batch: Batch<'_>, targets: &[Target]) -> Answer {
        let (path, names) = match self.named(order, targets) {
            Ok(named) => named,
            Err(stop) => return stop,
        };
        let Batch { class, action, query, mut more } = batch;
        let mut url = path.set(&self.arm.cloud, &[action]);
        if let Some((key, value)) = query {
            url.query_pairs_mut().append_pair(key, value);
        }
        let machines = u32::try_from(names.len()).unwrap_or(u32::MAX);
        more.insert("instanceIds".into(), json!(names));
        let write = Write { class, verb: Verb::Post, url, etag: None, machines };
        self.write(order, &path, write, &Value::Object(more)).await
    }

    /// The same of VMs of a Flexible set, for which this action has no batch. Once one of them was accepted, what became
    /// of the others the next listing tells.
    async fn each(
        &self,
        order: &Order<'_>,
        action: &str,
        targets: &[Target],
        body: &Value,
    ) -> Answer {
        let (path, names) = match self.named(order, targets) {
            Ok(named) => named,
            Err(stop) => return stop,
        };
        let (alone, mut begun) = (names.len() == 1, false);
        for name in names {
            let url = path.vms(&self.arm.cloud, &[name, action]);
            let class = Class::UpdateMachine;
            let write = Write { class, verb: Verb::Post, url, etag: None, machines: 1 };
            match self.write(order, &path, write, body).await {
                answer if alone => return answer,
                Answer::Accepted(_) | Answer::Done => begun = true,
                Answer::Lost => return Answer::Lost,
                answer if !begun => return answer,
                _ => break,
            }
        }
        Answer::Accepted(None)
    }

    pub(super) async fn patch(
        &self,
        order: &Order<'_>,
        path: &SetPath,
        body: &Value,
        etag: Option<&Etag>,
    ) -> Answer {
        let url = path.set(&self.arm.cloud, &[]);
        let write = Write { class: Class::UpdateSet, verb: Verb::Patch, url, etag, machines: 0 };
        self.write(order, path, write, body).await
    }

    /// The one door through which every change leaves.
    pub(super) async fn write(
        &self,
        order: &Order<'_>,
        path: &SetPath,
        write: Write<'_>,
        body: &Value,
    ) -> Answer {
        let Write { class, verb, url, etag, machines } = write;
        let (subscription, set) = (&*path.subscription, Some(order.set));
        let asked = Asked { class, subscription, set, machines, before: Some(order.before) };
        let body = Some(body.to_string().into_bytes());
        let ask = Ask { asked, verb, url, body, if_match: etag.map(Etag::as_str) };
        let reply = match self.arm.send(&ask).await {
            Ok(reply) => reply,
            Err(why) => return not_heard(&why),
        };
        if reply.is_success() {
            return operation::accepted(&reply, |url| self.arm.cloud.owns(url));
        }
        let told = refusal::of_answer(&reply);
        let (pool, entry, class) = (order.pool, order.entry, class.name());
        tracing::warn!(%pool, %entry, class, why = %told.say(), "ARM refused");
        match told.machines.is_empty() {
            true => Answer::Refused(told.refused),
            false => Answer::RefusedFor(told.refused, told.machines),
        }
    }

    /// Only the fields the pool owns. All tags of the set go along with ours, whether ARM merges them or not.
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

/// In a PATCH of the model.
const STORAGE: &str = "/properties/virtualMachineProfile/storageProfile";

fn disks_of(now: &Read) -> Result<Map<String, Value>, Answer> {
    let message = "the OS disks of this set are ephemeral and must not be written; set `model.write: image` in the pool file";
    now.disks().ok_or_else(|| {
        let (code, message) = (Some("EphemeralOsDisk".into()), Some(message.into()));
        Answer::Refused(Refused { code, message, ..Refused::plain(Refusal::Invalid) })
    })
}

/// What could not be read was not written either.
pub(super) fn unread(why: &ReadFailed) -> Answer {
    match why.refusal {
        Refusal::Unclear => Answer::NotSent,
        refusal => {
            let retry_at = why.retry_at;
            Answer::Refused(Refused { retry_at, ..Refused::plain(refusal) })
        }
    }
}

pub(super) fn refused(refusal: Refusal, code: &str) -> Answer {
    Answer::Refused(Refused { code: Some(code.into()), ..Refused::plain(refusal) })
}

fn is_of_the_set(no: &Refused) -> bool {
    let set = ["ResourceNotFound", "ResourceGroupNotFound", "ResourceGroupBeingDeleted"];
    no.code.as_deref().is_none_or(|code| set.iter().any(|known| known.eq_ignore_ascii_case(code)))
}

fn not_heard(why: &Unheard) -> Answer {
    match why {
        Unheard::NoToken(failed) if failed.is_final() => refused(Refusal::Forbidden, "NoToken"),
        Unheard::Foreign => refused(Refusal::Invalid, "ForeignAddress"),
        // Certain not to have left: it is planned again.
        Unheard::NoToken(_) | Unheard::TokenLate | Unheard::Late { .. } | Unheard::NotSent(_) => {
            Answer::NotSent
        }
        Unheard::Lost(_) => Answer::Lost,
    }
}
