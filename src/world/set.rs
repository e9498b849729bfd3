//! A scale set: its true state, and its view in ARM.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::autoscaler::AutoscaleRun;
use super::external_events::Deletes;
use super::instance::{InstanceView, Lowers, Power, WorldInstance};
use super::quirks::{CapacityFalls, Switches};
use super::resource::{OsUpgrade, RollingStands, RollingView};
use super::spec::{
    Etag, Guid, InstanceId, Millis, ModelSpec, OpId, PlatformSpec, SECOND, ScaleIn, SetId,
    SetOrchestration, SetSpec, VmPriority, ZoneNumber,
};

/// A Uniform set may use this many models.
pub const MODEL_LIMIT: usize = 10;
pub(super) const SINGLE_PLACEMENT_LIMIT: u32 = 100;
pub(super) const SET_LIMIT: u32 = 1_000;
/// Old pictures kept for stale reads; a reader lists at most a few times a minute.
const PICTURES: usize = 8;
const PICTURE_EVERY: Millis = 30 * SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetState {
    Updating,
    Succeeded,
    Failed,
    Deleting,
}

/// GET of the set.
#[derive(Debug, Clone, PartialEq)]
pub struct SetView {
    pub id: SetId,
    pub name: Arc<str>,
    pub unique_id: Guid,
    pub created: Millis,
    pub orchestration: SetOrchestration,
    pub zones: Arc<[ZoneNumber]>,
    pub capacity: u32,
    pub etag: Etag,
    pub model: Arc<ModelSpec>,
    pub provisioning: SetState,
    pub native: Arc<PlatformSpec>,
    pub priority: VmPriority,
    pub single_placement: bool,
    pub scale_in: ScaleIn,
    pub health_extension: bool,
    pub rest: Arc<str>,
}

/// The list of VMs at one moment.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub at: Millis,
    pub items: Arc<Vec<InstanceView>>,
}

#[derive(Debug, Clone)]
pub(super) struct RollingRun {
    pub number: u64,
    pub op: OpId,
    pub rolling: super::spec::Rolling,
    pub left: VecDeque<u64>,
    pub batch: Vec<u64>,
    pub batch_began: Millis,
    /// The batch has ended and is in the two counts.
    pub counted: bool,
    pub done: u32,
    pub failed: u32,
    pub began: Millis,
    /// When it was cancelled, and by which operation.
    pub cancelled: Option<(Millis, OpId)>,
    pub os: Option<OsUpgrade>,
}

impl RollingRun {
    pub fn view(&self) -> RollingView {
        RollingView {
            rolling: self.rolling,
            began: self.began,
            stands: RollingStands::Forward,
            done: self.done,
            failed: self.failed,
            in_progress: if self.counted { 0 } else { self.batch.len() as u32 },
            pending: self.left.len() as u32,
            cancelled: self.cancelled.map(|(at, _)| at),
            ended: None,
            os: self.os.clone(),
        }
    }
}

/// How many VMs of a Flexible Spot set are regular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpotMix {
    /// This many VMs are regular first.
    pub base: u32,
    /// Percentage of regular VMs above `base`.
    pub percent: u32,
}

impl SpotMix {
    /// Regular VMs among `all`; the remainder is Spot.
    pub fn regular(self, all: u32) -> u32 {
        let above = all.saturating_sub(self.base);
        all - above + above * self.percent.min(100) / 100
    }
}

#[derive(Debug, Clone)]
pub(super) struct WorldSet {
    pub id: SetId,
    pub name: Arc<str>,
    pub unique_id: Guid,
    pub created: Millis,
    pub orchestration: SetOrchestration,
    pub zones: Arc<[ZoneNumber]>,
    pub priority: VmPriority,
    pub mix: Option<SpotMix>,
    pub single_placement: bool,
    pub strict_zone_balance: bool,
    pub scale_in: ScaleIn,
    pub health_extension: bool,
    pub windows: bool,
    pub force_delete_refused: bool,
    pub rest: Arc<str>,
    pub native: Arc<PlatformSpec>,
    pub model: Arc<ModelSpec>,
    pub model_no: u32,
    /// The capacity that Azure works towards.
    pub goal: u32,
    /// Deleting VMs that the goal no longer counts.
    pub leaving: u32,
    pub etag: u64,
    pub next_id: u32,
    pub instances: BTreeMap<u64, WorldInstance>,
    pub by_id: BTreeMap<InstanceId, u64>,
    /// Numbers below `next_id` that are free again.
    pub free_ids: BTreeSet<u32>,
    /// Deleted VMs that listings still show, and until when.
    pub ghosts: Vec<(Millis, InstanceView)>,
    pub running: Vec<OpId>,
    pub last_failed: bool,
    pub deleting: bool,
    pub locked: bool,
    pub deletes: Deletes,
    pub rolling: Option<RollingRun>,
    /// Ended upgrades, the newest last.
    pub rolled: VecDeque<RollingView>,
    pub pictures: VecDeque<Picture>,
    pub views: VecDeque<(Millis, SetView)>,
    /// Random deeds planned under an older number do not happen.
    pub chaos: Option<u64>,
    /// Likewise for timers of platform features.
    pub native_number: u64,
    /// Running over-provisioned raises.
    pub raising: Vec<OpId>,
    pub autoscale: AutoscaleRun,
}

impl WorldSet {
    pub fn from_spec(id: SetId, spec: &SetSpec, now: Millis, unique_id: Guid) -> Self {
        Self {
            id,
            name: Arc::from(spec.name.as_str()),
            unique_id,
            created: now,
            orchestration: spec.orchestration,
            zones: Arc::from(spec.zones.as_slice()),
            priority: spec.priority,
            mix: spec.mix,
            single_placement: spec.single_placement,
            strict_zone_balance: spec.strict_zone_balance,
            scale_in: spec.scale_in,
            health_extension: spec.health_extension,
            windows: spec.windows,
            force_delete_refused: spec.force_delete_refused,
            rest: Arc::from(spec.rest.as_str()),
            native: Arc::new(spec.native.clone()),
            model: Arc::new(spec.model.clone()),
            model_no: 1,
            goal: spec.capacity,
            leaving: 0,
            etag: 1,
            next_id: first_free_id(spec),
            instances: BTreeMap::new(),
            by_id: BTreeMap::new(),
            free_ids: BTreeSet::new(),
            ghosts: Vec::new(),
            running: Vec::new(),
            last_failed: false,
            deleting: false,
            locked: false,
            deletes: Deletes::default(),
            rolling: None,
            rolled: VecDeque::new(),
            pictures: VecDeque::new(),
            views: VecDeque::new(),
            chaos: None,
            native_number: 0,
            raising: Vec::new(),
            autoscale: AutoscaleRun::default(),
        }
    }

    /// `sku.capacity` as a read shows it.
    pub fn shown(&self, switches: &Switches) -> u32 {
        match switches.capacity_falls {
            CapacityFalls::ShownLate => self.goal + self.leaving,
            CapacityFalls::AtAccept | CapacityFalls::WhenDone => self.goal,
        }
    }

    pub fn etag(&self) -> Etag {
        Etag::number(self.etag)
    }

    /// VMs that are not being deleted.
    pub fn active(&self) -> impl Iterator<Item = &WorldInstance> {
        self.instances.values().filter(|i| !i.is_deleting())
    }

    /// The number of VMs that are not being deleted, and of the regular ones among them.
    pub fn by_priority(&self) -> (u32, u32) {
        self.active().fold((0, 0), |(all, regular), i| {
            (all + 1, regular + u32::from(i.priority == VmPriority::Regular))
        })
    }

    /// Splits `more` VMs into regular ones and those of the set's own priority.
    pub fn split(&self, more: u32) -> (u32, u32) {
        let Some(mix) = self.mix else { return (0, more) };
        let (all, regular) = self.by_priority();
        let regular = mix.regular(all + more).saturating_sub(regular).min(more);
        (regular, more - regular)
    }

    pub fn next_priority(&self) -> VmPriority {
        if self.split(1).0 > 0 { VmPriority::Regular } else { self.priority }
    }

    /// The number from which a capacity change is computed.
    pub fn base(&self, switches: &Switches, extras: u32) -> u32 {
        // A Flexible set with fewer VMs than its capacity was observed to stay so.
        let uniform = self.orchestration == SetOrchestration::Uniform;
        if switches.drift_repaired && uniform { self.counted(extras) } else { self.goal }
    }

    /// VMs that the capacity counts now: a delete may lower it only at its end.
    pub fn counted(&self, extras: u32) -> u32 {
        let counted = |i: &&WorldInstance| !i.is_deleting() || i.lowers == Lowers::AtEnd;
        (self.instances.values().filter(counted).count() as u32).saturating_sub(extras)
    }

    pub fn find(&self, id: &InstanceId) -> Option<&WorldInstance> {
        self.instances.get(self.by_id.get(id)?)
    }

    /// Models in use by VMs, and the set's own.
    pub fn models(&self) -> BTreeSet<u32> {
        self.active().map(|i| i.model_no).chain([self.model_no]).collect()
    }

    pub fn at_model_limit(&self) -> bool {
        self.orchestration == SetOrchestration::Uniform && self.models().len() >= MODEL_LIMIT
    }

    /// VMs per zone, for every zone of the set.
    pub fn zone_counts(&self) -> BTreeMap<Option<ZoneNumber>, u32> {
        let mut counts: BTreeMap<Option<ZoneNumber>, u32> = match &*self.zones {
            [] => BTreeMap::from([(None, 0)]),
            zones => zones.iter().map(|z| (Some(*z), 0)).collect(),
        };
        for instance in self.active() {
            if let Some(n) = counts.get_mut(&instance.zone) {
                *n += 1;
            }
        }
        counts
    }

    pub fn state(&self) -> SetState {
        if self.deleting {
            SetState::Deleting
        } else if !self.running.is_empty() {
            SetState::Updating
        } else if self.last_failed {
            SetState::Failed
        } else {
            SetState::Succeeded
        }
    }

    pub fn view(&self, switches: &Switches) -> SetView {
        SetView {
            id: self.id,
            name: Arc::clone(&self.name),
            unique_id: self.unique_id,
            created: self.created,
            orchestration: self.orchestration,
            zones: Arc::clone(&self.zones),
            capacity: self.shown(switches),
            etag: self.etag(),
            model: Arc::clone(&self.model),
            provisioning: self.state(),
            native: Arc::clone(&self.native),
            priority: self.priority,
            single_placement: self.single_placement,
            scale_in: self.scale_in,
            health_extension: self.health_extension,
            rest: Arc::clone(&self.rest),
        }
    }

    pub fn show(&self, instance: &WorldInstance, switches: &Switches) -> InstanceView {
        let reports = switches.stopped_shows_health || instance.power == Power::Running;
        instance.view(self.orchestration, self.model_no, self.health_extension && reports)
    }

    /// Deallocated VMs keep the flag that they showed while the set had the model `before`.
    pub fn keep_flags(&mut self, before: u32) {
        let now = self.model_no;
        for instance in self.instances.values_mut().filter(|i| i.power == Power::Deallocated) {
            let shown = (instance.model_no == before) != instance.flag_lies;
            instance.flag_lies = (instance.model_no == now) != shown;
        }
    }

    /// What a listing shows now, ghosts included.
    pub fn picture(&mut self, now: Millis, switches: &Switches) -> Picture {
        self.ghosts.retain(|(until, _)| *until > now);
        let listed =
            |i: &&WorldInstance| i.visible_at <= now && (switches.extras_listed || !i.extra);
        let view = |i: &WorldInstance| self.show(i, switches);
        let ghosts = self.ghosts.iter().filter(|(_, g)| !self.by_id.contains_key(&g.id));
        let mut items: Vec<InstanceView> =
            self.instances.values().filter(listed).map(view).collect();
        items.extend(ghosts.map(|(_, ghost)| ghost.clone()));
        Picture { at: now, items: Arc::new(items) }
    }

    /// Keeps at most one per interval, so that the kept pictures reach back over minutes.
    pub fn keep_picture(&mut self, picture: Picture) {
        if self.pictures.back().is_some_and(|last| picture.at - last.at < PICTURE_EVERY) {
            return;
        }
        if self.pictures.len() == PICTURES {
            self.pictures.pop_front();
        }
        self.pictures.push_back(picture);
    }

    pub fn keep_view(&mut self, now: Millis, view: SetView) {
        if self.views.back().is_some_and(|(at, _)| now - at < PICTURE_EVERY) {
            return;
        }
        if self.views.len() == PICTURES {
            self.views.pop_front();
        }
        self.views.push_back((now, view));
    }

    /// Removes the VM from the set; returns it with the view that listings may still show.
    pub fn remove(
        &mut self,
        key: u64,
        switches: &Switches,
    ) -> Option<(WorldInstance, InstanceView)> {
        let instance = self.instances.remove(&key)?;
        self.by_id.remove(&instance.id);
        if let Ok(number) = instance.id.0.parse() {
            self.free_ids.insert(number);
        }
        match instance.lowers {
            Lowers::No => {}
            Lowers::Already => self.leaving = self.leaving.saturating_sub(1),
            Lowers::AtEnd => self.goal = self.goal.saturating_sub(1),
        }
        let view = self.show(&instance, switches);
        Some((instance, view))
    }
}

/// Above every requested number, so that no id is given out twice.
fn first_free_id(spec: &SetSpec) -> u32 {
    let numbers = spec.instances.iter().filter_map(|i| i.id.as_ref()?.0.parse::<u32>().ok());
    numbers.max().map_or(0, |highest| highest.saturating_add(1))
}
