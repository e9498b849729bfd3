//! Lists a set: the set itself, then all pages of its machines. A page that fails or is incomplete is a gap, never an
//! absence.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

use super::Azure;
use super::compact_id::CompactId;
use super::condition::{condition, protection, worked_on};
use super::fingerprint::{ModelParts, PastModels, image_name};
use super::http::{ArmRequest, HttpVerb, NoResponse};
use super::image::ImageKind;
use super::orchestration::{Belongs, Members, members};
use super::path::SetPath;
use super::refusal;
use super::rest::rest_of;
use super::set_cache::{CachedInstance, Makes, SetCaches, Shelf, Since};
use super::wire::set::{Switch, is_spot};
use super::wire::{ArmScaleSet, ArmVm, ListPage, some};
use crate::model::ids::{Etag, InstanceId, Revision, ScaleSetId, VmId, Zone};
use crate::model::inventory::{
    Eviction, Gap, Instance, Inventory, ModelFields, Orchestration, PlatformFeature, PriorityMix,
    SetReading,
};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Protection, identity};
use crate::model::time::Time;
use crate::observe::{ReadCloud, ReadError};
use crate::pace::{CallCost, PacedOperation};

/// Maximum number of pages in one list. More means that the links form a cycle.
// 200: the largest set has 1,000 machines, and no page with fewer than 20 was ever observed.
const PAGES: usize = 200;

impl ReadCloud for Azure {
    async fn list(&self, set: &ScaleSetId) -> Result<Inventory, ReadError> {
        let path = SetPath::parse(set).map_err(|bad| failed(Refusal::Invalid, &bad.to_string()))?;
        let began = self.arm.clock.now();
        let seen = self.read_set(set, &path).await?;
        if let Some(location) = &seen.set.location {
            self.arm.locate(set, &location.to_ascii_lowercase().replace(' ', ""));
        }
        let rows = self.read_machines(set, &path, &seen, began).await?;
        let Rows { mut instances, attached, mut gaps, known, regular, .. } = rows;
        let mut shown = seen.shown(began, gaps.is_empty());
        shown.attached = attached;
        shown.attached.sort_unstable();
        let protections = async {
            match seen.orchestration {
                Orchestration::Uniform => None,
                Orchestration::Flexible => self.read_protections(set, &path, &mut instances).await,
            }
        };
        let ((autoscaler, gap), unread, locks) = tokio::join!(
            self.autoscaler(set, &path),
            Box::pin(protections),
            Box::pin(self.locks(&path))
        );
        gaps.extend(gap.into_iter().chain(unread));
        autoscaler.show(&mut shown);
        let mut known = seen.known(known, regular);
        let names = || instances.iter().map(|instance| instance.id.clone()).collect();
        known.names = (seen.orchestration == Orchestration::Flexible && shown.complete).then(names);
        self.shelf.keep(set, known);
        let mut seen = Inventory { set: shown, instances, gaps };
        Self::lay_locks(&locks, &path, &mut seen);
        Ok(seen)
    }
}

/// A Flexible set may have no VM profile. Then it has no size and no model: people add VMs one by one.
const NO_PROFILE: &str = "the scale set has no VM profile, so it has neither a size nor a model to keep; Poolkeeper keeps \
                          sets that have one: give this set a VM profile, or take the pool out of the files";

/// The set's response and what is derived from it.
#[derive(Debug)]
pub(super) struct Reading {
    set: ArmScaleSet,
    pub capacity: u32,
    pub model: ModelParts,
    orchestration: Orchestration,
    pub etag: Option<Etag>,
    since: Since,
}

impl Azure {
    pub(super) async fn read_set(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
    ) -> Result<Reading, ReadError> {
        let mut url = path.set(&self.arm.cloud, &[]);
        // User data is part of the model, but ARM returns it only on request.
        url.query_pairs_mut().append_pair("$expand", "userData");
        let reply = self.get(PacedOperation::ReadSet, set, url).await?;
        let read = ArmScaleSet::read(&reply.body);
        let shown =
            read.map_err(|why| failed(Refusal::Unclear, &format!("the scale set: {why}")))?;
        let lacks = |what| failed(Refusal::Unclear, &format!("the scale set shows no {what}"));
        let properties = shown.properties.as_ref().ok_or(lacks("properties"))?;
        let mode = properties.orchestration_mode.as_deref();
        let orchestration = match mode {
            Some(mode) if mode.eq_ignore_ascii_case("Flexible") => Orchestration::Flexible,
            _ => Orchestration::Uniform,
        };
        if orchestration == Orchestration::Flexible && shown.profile().is_none() {
            return Err(failed(Refusal::Invalid, NO_PROFILE));
        }
        let capacity = shown.sku.as_ref().and_then(|sku| sku.capacity).ok_or(lacks("capacity"))?;
        let etag = shown.etag.clone().or_else(|| reply.header("etag").map(str::to_owned));
        let model = ModelParts::of(&shown);
        let since = self.shelf.since(set, &model, self.arm.clock.now());
        Ok(Reading { capacity, model, orchestration, etag: etag.map(Etag::new), since, set: shown })
    }

    async fn read_machines<'a>(
        &'a self,
        set: &'a ScaleSetId,
        path: &'a SetPath,
        seen: &'a Reading,
        began: Time,
    ) -> Result<Rows<'a>, ReadError> {
        let kind = members(seen.orchestration);
        let mut rows = Rows {
            set,
            path,
            kind,
            seen,
            began,
            shelf: &self.shelf,
            instances: Vec::new(),
            attached: Vec::new(),
            known: Vec::new(),
            regular: 0,
            gaps: Vec::new(),
            zones: Same(Vec::new()),
            revisions: Same(Vec::new()),
        };
        let mut url = kind.list(path, &self.arm.cloud);
        let mut asked = Vec::new();
        for page in 1.. {
            asked.push(url.clone());
            let operation = match (seen.orchestration, page) {
                (Orchestration::Flexible, _) => PacedOperation::ListVms,
                (Orchestration::Uniform, 1) => PacedOperation::List,
                (Orchestration::Uniform, _) => PacedOperation::NextPage,
            };
            let got = self.get(operation, set, url);
            let next = got.await.and_then(|reply| rows.take(&reply.body));
            url = match next {
                Ok(None) => break,
                Ok(Some(next)) if page < PAGES && !asked.contains(&next) => next,
                Ok(Some(_)) => {
                    rows.cut(page + 1, "the pages go round in circles");
                    break;
                }
                Err(why) if page == 1 => return Err(why),
                Err(why) => {
                    rows.cut(page, &why.say);
                    break;
                }
            };
        }
        rows.doubt_names();
        Ok(rows)
    }

    /// Sends a read. A refusal is an error. `set` may be the id of a subscription, as in [`CallCost`].
    pub(super) async fn get(
        &self,
        operation: PacedOperation,
        set: &ScaleSetId,
        url: Url,
    ) -> Result<super::http::ArmReply, ReadError> {
        self.get_before(operation, set, url, None).await
    }

    /// Sends a read, but no later than `before`.
    pub(super) async fn get_before(
        &self,
        operation: PacedOperation,
        set: &ScaleSetId,
        url: Url,
        before: Option<Time>,
    ) -> Result<super::http::ArmReply, ReadError> {
        let call = CallCost { set, operation, machines: 0, before };
        let ask = ArmRequest { call, verb: HttpVerb::Get, url, body: None, if_match: None };
        let reply = self.arm.send(&ask).await.map_err(|why| unheard(&why))?;
        if reply.is_success() {
            return Ok(reply);
        }
        let told = refusal::of_answer(&reply);
        let (refusal, retry_at) = (told.refused.refusal, told.refused.retry_at);
        Err(ReadError { refusal, code: told.refused.code.clone(), retry_at, say: told.say() })
    }
}

/// Parser errors may quote their entire input.
pub(super) fn failed(refusal: Refusal, say: &str) -> ReadError {
    let say = refusal::shorten(say).into();
    ReadError { refusal, code: None, retry_at: None, say }
}

fn unheard(why: &NoResponse) -> ReadError {
    let (refusal, retry_at) = match why {
        NoResponse::NoToken(failed) if failed.is_final() => (Refusal::Forbidden, None),
        NoResponse::Foreign => (Refusal::Invalid, None),
        NoResponse::Late { retry_at } => (Refusal::Throttled, *retry_at),
        _ => (Refusal::Unclear, None),
    };
    ReadError { retry_at, ..failed(refusal, &why.to_string()) }
}

/// The rows that could be read, and the gaps.
struct Rows<'a> {
    set: &'a ScaleSetId,
    path: &'a SetPath,
    kind: &'static dyn Members,
    seen: &'a Reading,
    began: Time,
    shelf: &'a Shelf,
    instances: Vec<Instance>,
    attached: Vec<InstanceId>,
    known: Vec<CachedInstance>,
    /// Number of machines that are not Spot.
    regular: u32,
    gaps: Vec<Gap>,
    zones: Same<Zone>,
    revisions: Same<Revision>,
}

/// Texts that most rows of a listing share, stored once.
#[derive(Debug)]
struct Same<T>(Vec<T>);

/// Limits the linear search, which must stay cheaper than storing a text twice.
const SAME_MOST: usize = 16;

impl<T: Clone + PartialEq> Same<T> {
    fn of(&mut self, text: T) -> T {
        if let Some(known) = self.0.iter().find(|known| **known == text) {
            return known.clone();
        }
        if self.0.len() < SAME_MOST {
            self.0.push(text.clone());
        }
        text
    }
}

impl Rows<'_> {
    /// The set may have created all of these VMs under names of an undocumented form. Then they would look attached,
    /// and replacements for them would be created.
    fn doubt_names(&mut self) {
        let counted = self.seen.capacity as usize >= self.attached.len();
        if self.instances.is_empty() && !self.attached.is_empty() && counted {
            let set = &self.path.name;
            let why = format!(
                "no VM has a name that the scale set gives, `{set}_` and eight digits of a GUID, so none can be told from an attached one"
            );
            self.gap("listing", &why);
        }
    }

    fn cut(&mut self, page: usize, why: &str) {
        self.gap("listing", &format!("page {page}: {why}"));
    }

    fn gap(&mut self, what: &str, why: &str) {
        let [what, why] = [what, why].map(|text| refusal::shorten(text).into());
        self.gaps.push(Gap { what, why });
    }

    /// Reads the rows of one page, and the link to the next page.
    fn take(&mut self, body: &[u8]) -> Result<Option<Url>, ReadError> {
        let bad = |why: String| failed(Refusal::Unclear, &format!("the list of machines: {why}"));
        let next = match ListPage::<'_, ArmVm<'_>>::read(body) {
            Ok(page) => {
                self.instances.reserve(page.value.len());
                page.value.iter().for_each(|vm| self.row(vm));
                page.next
            }
            // A malformed row is a gap and must not affect the others.
            Err(_) => {
                let page =
                    ListPage::<'_, &RawValue>::read(body).map_err(|why| bad(why.to_string()))?;
                for row in page.value {
                    match ArmVm::read(row.get().as_bytes()) {
                        Ok(vm) => self.row(&vm),
                        Err(why) => self.unreadable(row, &why),
                    }
                }
                page.next
            }
        };
        let next = some(next.as_ref()).map(Url::parse).transpose();
        next.map_err(|_| bad("the address of the next page is none".into()))
    }

    fn row(&mut self, vm: &ArmVm<'_>) {
        match self.kind.belongs(self.path, self.seen.set.computer_name_prefix(), vm) {
            Belongs::Elsewhere => {}
            Belongs::Attached(id) => self.attached.push(id),
            Belongs::Here(id) => match self.instance(id, vm) {
                Some((instance, known)) => {
                    self.instances.push(instance);
                    self.known.push(known);
                    let properties = vm.properties.as_ref();
                    let priority = properties.and_then(|p| some(p.priority.as_ref()));
                    self.regular += u32::from(!priority.is_some_and(is_spot));
                }
                None => self.nameless(vm, "shows neither its identity nor its birth"),
            },
            Belongs::Nameless => self.nameless(vm, "has no name it could be called by"),
        }
    }

    fn unreadable(&mut self, row: &RawValue, why: &serde_json::Error) {
        let row: Value = serde_json::from_str(row.get()).unwrap_or_default();
        let name = row.get("name").or(row.get("id")).and_then(Value::as_str).unwrap_or("?");
        self.gap(&format!("machine {name}"), &format!("is of another shape: {why}"));
    }

    fn nameless(&mut self, vm: &ArmVm<'_>, why: &str) {
        let name = some(vm.name.as_ref()).or_else(|| some(vm.id.as_ref())).unwrap_or("?");
        self.gap(&format!("machine {name}"), why);
    }

    fn instance(&mut self, id: InstanceId, vm: &ArmVm<'_>) -> Option<(Instance, CachedInstance)> {
        let none = super::wire::vm::VmProperties::default();
        let properties = vm.properties.as_ref().unwrap_or(&none);
        let vm_id = some(properties.vm_id.as_ref()).map(VmId::new);
        let created = some(properties.time_created.as_ref()).and_then(|at| Time::parse(at).ok());
        // Without a creation time, assume now: too recent is safe, and the identity does not depend on it.
        let created = created.or(vm_id.as_ref().map(|_| self.began))?;
        let worked_on = worked_on(properties);
        let key = identity(&id, vm_id.as_ref(), created);
        let imaged = self.shelf.imaged(self.set, key, worked_on);
        let placed = self.seen.model.of_machine(vm, self.past(created, imaged, worked_on));
        let (condition, since): (Condition, _) = condition(properties);
        let zone = vm.zones.iter().flatten().next().map(|zone| self.zones.of(Zone::new(zone)));
        let revision = self.revisions.of(placed.revision);
        let known = CachedInstance {
            id: CompactId::of(id.as_str()),
            vm: vm_id.as_ref().map(|vm| CompactId::of(vm.as_str())),
            created,
            zone: zone.clone(),
            step: placed.step,
        };
        let is_uniform = self.seen.orchestration == Orchestration::Uniform;
        let instance = Instance {
            id,
            vm: vm_id,
            zone,
            created,
            imaged,
            revision: Some(revision),
            evidence: placed.evidence,
            condition,
            since,
            // No listing shows the protection of a Flexible VM: it is read separately.
            protection: if is_uniform { protection(properties) } else { Protection::Unknown },
            workloads: 0,
            node: None,
            joined: None,
            unreachable_since: None,
            marked: false,
            autoscaler_removes: false,
        };
        Some((instance, known))
    }

    fn past(&self, created: Time, imaged: Option<Time>, worked_on: Option<Time>) -> PastModels {
        let Since { changed, os, os_alone } = self.seen.since;
        let disk = imaged.unwrap_or(created);
        PastModels {
            updated: changed.zip(worked_on).is_some_and(|(seen, ended)| ended > seen),
            older: changed.is_some_and(|seen| created < seen),
            os_older: os.is_some_and(|seen| disk < seen),
            os_alone,
        }
    }
}

impl Reading {
    /// As ARM shows it, even if the set mixes sizes.
    pub(super) fn sku_name(&self) -> Option<&str> {
        self.set.sku.as_ref()?.name.as_deref().filter(|name| !name.is_empty())
    }

    /// The disks in the form that a PATCH accepts. `None`: the OS disks are ephemeral, and writing any `osDisk` makes
    /// every machine outdated.
    pub(super) fn disks(&self) -> Option<Map<String, Value>> {
        let storage = self.set.profile().and_then(|profile| profile.get("storageProfile"));
        let mut disks = storage.and_then(Value::as_object).cloned().unwrap_or_default();
        disks.remove("imageReference");
        if let Some(os) = disks.get_mut("osDisk").and_then(Value::as_object_mut) {
            // These can be set only when the set is created.
            os.retain(|key, _| !matches!(key.as_str(), "createOption" | "name" | "osType"));
        }
        (!self.set.is_ephemeral()).then_some(disks)
    }

    fn shown(&self, read_at: Time, complete: bool) -> SetReading {
        let size: Option<Box<str>> = self.set.size().map(Into::into);
        let image = self.set.image().as_ref().and_then(image_name).map(Into::into);
        let tags = self.tags().into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        SetReading {
            backends: self.set.backend_pools(),
            terminate_notice: self.set.terminate_notice(),
            revision: self.model.revision(),
            capacity: self.capacity,
            etag: self.etag.clone(),
            orchestration: self.orchestration,
            zones: self.set.zones.iter().flatten().map(Zone::new).collect(),
            attached: Vec::new(),
            read_at,
            complete,
            busy: None,
            platform_features: self.platform_features(),
            platform_features_unknown: Vec::new(),
            autoscaler: None,
            locks: Vec::new(),
            spot: self.set.is_spot().then(|| match self.set.deletes_evicted() {
                true => Eviction::Delete,
                false => Eviction::Deallocate,
            }),
            priority_mix: self.priority_mix(),
            vm_size: size.clone(),
            model: Some(ModelFields { image, vm_size: size, tags }),
            model_rest: rest_of(&self.set),
        }
    }

    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        let tags = self.set.tags.iter().flatten();
        tags.map(|(key, value)| (key.clone(), value.clone().unwrap_or_default())).collect()
    }

    fn priority_mix(&self) -> Option<PriorityMix> {
        let policy = self.set.priority_mix()?;
        Some(PriorityMix {
            base_regular: policy.base_regular_priority_count.unwrap_or(0),
            regular_percent: policy.regular_priority_percentage_above_base.unwrap_or(0),
        })
    }

    fn known(&self, rows: Vec<CachedInstance>, regular: u32) -> SetCaches {
        let makes = match self.priority_mix() {
            Some(mix) => {
                // Machines of the goal that are not listed yet will be created as the mix prescribes.
                let unlisted = self.capacity.saturating_sub(rows.len() as u32);
                let lacks = mix.regular_of(self.capacity).saturating_sub(regular);
                let regular = regular + lacks.min(unlisted);
                Makes::Mixed { mix, capacity: self.capacity, regular }
            }
            None if self.set.is_spot() => Makes::Spot,
            None => Makes::Regular,
        };
        SetCaches {
            orchestration: self.orchestration,
            location: self.set.location.as_deref().unwrap_or_default().into(),
            sizes: self.set.sizes().into_iter().map(Into::into).collect(),
            makes,
            ephemeral: self.set.is_ephemeral(),
            model: self.model.clone(),
            image: self.set.image().as_ref().and_then(ImageKind::of),
            since: self.since,
            tags: self.tags(),
            rows: rows.into(),
            names: None,
        }
    }

    /// Enabled platform features that would act on the set alongside the daemon.
    fn platform_features(&self) -> Vec<PlatformFeature> {
        let Some(properties) = &self.set.properties else { return Vec::new() };
        let upgrade = properties.upgrade_policy.as_ref();
        let mode = upgrade.and_then(|upgrade| upgrade.mode.as_deref()).unwrap_or("Manual");
        let os = upgrade.and_then(|upgrade| upgrade.automatic_os_upgrade.as_ref());
        let uniform = self.orchestration == Orchestration::Uniform;
        [
            (!mode.eq_ignore_ascii_case("Manual"), PlatformFeature::RollingUpgrade),
            (os.and_then(|os| os.enable).unwrap_or(false), PlatformFeature::AutoOsUpgrade),
            (
                Switch::is_on(properties.automatic_repairs_policy.as_ref()),
                PlatformFeature::AutomaticRepairs,
            ),
            // Enabled by default.
            (uniform && properties.overprovision.unwrap_or(true), PlatformFeature::Overprovision),
        ]
        .into_iter()
        .filter_map(|(on, native)| on.then_some(native))
        .collect()
    }
}
