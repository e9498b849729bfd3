//! The read side of the simulated cloud: one GET of the set and the pages of one listing, and only what they show.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backends;
use super::refuse::classify;
use super::stage::{SharedStage, SimStage, StageRow};
use crate::model::autoscaler::{Autoscaler, AutoscalerBounds, AutoscalerDocument};
use crate::model::ids::{Etag, InstanceId, Revision, ScaleSetId, VmId, Zone};
use crate::model::inventory::{
    Eviction, Gap, Instance, Inventory, Lock, LockLevel, ModelFields, Orchestration,
    PlatformFeature, SetReading,
};
use crate::model::journal::Refusal;
use crate::model::machine::{Condition, Evidence, Protection};
use crate::model::time::{Skew, Span, Time};
use crate::observe::{ReadCloud, ReadError};
use crate::world::{
    self, GuestHealth, InstanceView, Leaf, ModelSpec, Power, Provisioning, SetView, WorldFailure,
};

impl ReadCloud for SharedStage {
    async fn list(&self, _set: &ScaleSetId) -> Result<Inventory, ReadError> {
        self.lock().look()
    }
}

impl SimStage {
    fn look(&mut self) -> Result<Inventory, ReadError> {
        let began = self.now();
        let set = self.world.get_set(self.set);
        self.pass_call();
        let set = set.map_err(|failure| self.nothing_seen(&failure))?;
        let Pages { picture, read, cut } = self.list()?;
        let mut gaps: Vec<Gap> = Vec::new();
        gaps.extend(
            cut.as_ref().map(|why| Gap { what: "listing".into(), why: why.to_string().into() }),
        );
        let mut names = std::mem::take(&mut self.names);
        names.compute_by(self.scheme);
        let views = picture.get(..read).unwrap_or_default();
        let mut instances: Vec<Instance> =
            views.iter().map(|view| self.instance(view, &set, &mut names)).collect();
        let told = self.adapter.ahead == Skew::NONE;
        self.showed = views.iter().zip(&instances).map(|pair| shown(pair, told)).collect();
        self.names = names;
        let set = self.set_seen(&set, began, cut.is_none());
        for machine in &mut instances {
            machine.protection = set.protection_of(&machine.id, machine.protection);
        }
        Ok(Inventory { set, instances, gaps })
    }

    /// A time as the cloud's clock shows it.
    fn clouds(&self, at: world::Millis) -> Time {
        Time::from_millis(at).shown_by(self.adapter.ahead)
    }

    fn nothing_seen(&self, failure: &WorldFailure) -> ReadError {
        let refused = classify(failure, self.now());
        ReadError {
            refusal: refused.as_ref().map_or(Refusal::Unclear, |refused| refused.refusal),
            code: None,
            retry_at: refused.and_then(|refused| refused.retry_at),
            say: failure.to_string().into(),
        }
    }

    fn list(&mut self) -> Result<Pages, ReadError> {
        let page = self.world.list_leaf(self.set, None);
        self.pass_call();
        let mut page = page.map_err(|failure| self.nothing_seen(&failure))?;
        let mut pages = 1;
        self.pace_listings(pages);
        while let Some(token) = page.next {
            let next = self.world.list_leaf(self.set, Some(token));
            self.pass_call();
            match next {
                Ok(next) => page = next,
                Err(why) => return Ok(Pages::of(page, Some(why))),
            }
            pages += 1;
            self.pace_listings(pages);
        }
        Ok(Pages::of(page, None))
    }

    fn set_seen(&mut self, set: &SetView, began: Time, complete: bool) -> SetReading {
        let tags = set.model.tags.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into()));
        let mut reading = SetReading {
            backends: backends::of_model(&set.model),
            terminate_notice: terminate_notice(&set.native),
            revision: fingerprint(self.scheme, &set.model),
            capacity: set.capacity,
            etag: self.adapter.shows_etag.then(|| Etag::new(&*set.etag.0)),
            orchestration: match set.orchestration {
                world::SetOrchestration::Uniform => Orchestration::Uniform,
                world::SetOrchestration::Flexible => Orchestration::Flexible,
            },
            zones: set.zones.iter().map(|zone| Zone::new(zone.to_string())).collect(),
            attached: Vec::new(),
            read_at: began,
            complete,
            busy: None,
            platform_features: platform_features(&set.native),
            platform_features_unknown: Vec::new(),
            autoscaler: None,
            locks: self.locks(&set.name),
            spot: eviction(set.priority),
            priority_mix: None,
            vm_size: Some(set.model.vm_size.as_str().into()),
            model: Some(ModelFields {
                image: Some(set.model.image.as_str().into()),
                vm_size: Some(set.model.vm_size.as_str().into()),
                tags: tags.collect::<BTreeMap<_, _>>(),
            }),
            model_rest: [("rest".into(), format!("\"{}\"", set.model.rest).into())].into(),
        };
        let found = set.native.autoscale.as_ref();
        reading.show_autoscaler(found.map(|setting| self.autoscaler(setting, began)));
        reading
    }

    pub(super) fn autoscaler(&mut self, setting: &world::AutoscaleSetting, at: Time) -> Autoscaler {
        let bounds = setting.profile_at(at.millis()).map(|profile| AutoscalerBounds {
            profile: profile.name.as_str().into(),
            minimum: profile.minimum,
            maximum: profile.maximum,
        });
        let is_on = world::AutoscaleSetting { enabled: true, ..setting.clone() };
        let known = self.settings.iter().position(|known| *known == is_on);
        let number = known.unwrap_or(self.settings.len());
        if known.is_none() {
            self.settings.push(is_on);
        }
        let document = AutoscalerDocument::new("", number.to_string());
        let (setting, enabled) = (setting.name.as_str().into(), setting.enabled);
        Autoscaler { setting, enabled, bounds, document: Some(document) }
    }

    /// On the set itself, so that they cover all its machines.
    fn locks(&self, name: &str) -> Vec<Lock> {
        let stand = self.world.locks(self.set);
        let levels = [
            (stand.delete_only, LockLevel::CanNotDelete, "keep"),
            (stand.read_only, LockLevel::ReadOnly, "freeze"),
        ];
        let there = levels.into_iter().filter(|(stands, ..)| *stands && self.adapter.shows_locks);
        let scope = "/subscriptions/rehearsal/resourceGroups/rehearsal/providers/Microsoft.Compute/virtualMachineScaleSets";
        let lock = |(_, level, lock): (bool, LockLevel, &str)| Lock {
            level,
            name: lock.into(),
            id: format!("{scope}/{name}/providers/Microsoft.Authorization/locks/{lock}").into(),
        };
        there.map(lock).collect()
    }

    fn instance(&self, view: &InstanceView, set: &SetView, names: &mut SimNames) -> Instance {
        let (condition, since) = condition(view);
        let (revision, evidence) = match view.latest_model_applied {
            Some(latest) if !self.adapter.shows_models => {
                let revision = if latest { names.print(&set.model) } else { names.other() };
                (revision, Evidence::LatestModelApplied)
            }
            _ => (names.print(&view.installed), Evidence::Model),
        };
        let protection = match view.protection {
            Some(world::InstanceProtection { set_actions: true, .. }) => Protection::All,
            Some(world::InstanceProtection { scale_in: true, .. }) => Protection::ScaleIn,
            _ => Protection::None,
        };
        Instance {
            id: InstanceId::shared(&view.id.0),
            vm: Some(VmId::shared(&view.vm_text)),
            zone: view.zone.map(|zone| names.zone(zone)),
            created: self.clouds(view.created),
            imaged: self.disks.get(&view.vm).copied().map(|at| self.clouds(at)),
            revision: Some(revision),
            evidence,
            condition,
            since: since.map(|at| at.shown_by(self.adapter.ahead)),
            protection,
            workloads: 0,
            node: None,
            joined: None,
            unreachable_since: None,
            marked: false,
            autoscaler_removes: false,
        }
    }
}

/// If the cloud's clock differs from ours, its times do not show since when a machine serves; our records do.
fn shown((view, row): (&InstanceView, &Instance), told: bool) -> StageRow {
    StageRow {
        id: Arc::clone(&view.id.0),
        vm: view.vm,
        text: Arc::clone(&view.vm_text),
        created: view.created,
        condition: row.condition,
        since: row.since.filter(|_| told),
    }
}

/// All pages read until the last one or the first failure, and that failure.
#[derive(Debug)]
struct Pages {
    picture: Arc<Vec<InstanceView>>,
    /// Number of rows read.
    read: usize,
    cut: Option<WorldFailure>,
}

impl Pages {
    fn of(last: Leaf, cut: Option<WorldFailure>) -> Self {
        Self { picture: last.picture, read: last.rows.end, cut }
    }
}

/// What the rows of all listings share: a handful of models and zones.
#[derive(Debug, Default)]
pub(super) struct SimNames {
    scheme: u32,
    prints: Vec<(Arc<ModelSpec>, Revision)>,
    zones: Vec<(u8, Zone)>,
    other: Option<Revision>,
}

impl SimNames {
    fn compute_by(&mut self, scheme: u32) {
        if self.scheme != scheme {
            (self.scheme, self.prints) = (scheme, Vec::new());
        }
    }

    fn print(&mut self, model: &Arc<ModelSpec>) -> Revision {
        let known = self.prints.iter().find(|(known, _)| Arc::ptr_eq(known, model));
        known.map(|(_, print)| print.clone()).unwrap_or_else(|| {
            let print = fingerprint(self.scheme, model);
            self.prints.push((Arc::clone(model), print.clone()));
            print
        })
    }

    /// The revision of a machine that is not on the set's model, if the cloud does not show its own.
    fn other(&mut self) -> Revision {
        self.other.get_or_insert_with(|| Revision::new("v1:?")).clone()
    }

    fn zone(&mut self, number: u8) -> Zone {
        let known = self.zones.iter().find(|(known, _)| *known == number);
        known.map(|(_, zone)| zone.clone()).unwrap_or_else(|| {
            let zone = Zone::new(number.to_string());
            self.zones.push((number, zone.clone()));
            zone
        })
    }
}

/// Computed from what the cloud shows of a model, which never includes custom data.
pub(super) fn fingerprint(scheme: u32, model: &ModelSpec) -> Revision {
    let shown = ModelSpec { custom_data: String::new(), ..model.clone() };
    let print = shown.print();
    match scheme {
        1 => Revision::new(format!("v1:{print}")),
        // The new scheme shares nothing recognizable with the old one.
        scheme => {
            let print: String = print.chars().rev().collect();
            Revision::new(format!("v{scheme}:{print}"))
        }
    }
}

fn eviction(priority: world::VmPriority) -> Option<Eviction> {
    match priority {
        world::VmPriority::Regular => None,
        world::VmPriority::Spot(world::EvictionPolicy::Deallocate) => Some(Eviction::Deallocate),
        world::VmPriority::Spot(world::EvictionPolicy::Delete) => Some(Eviction::Delete),
    }
}

fn platform_features(native: &world::PlatformSpec) -> Vec<PlatformFeature> {
    let upgrades = native.upgrade != world::UpgradeMode::Manual;
    [
        (upgrades, PlatformFeature::RollingUpgrade),
        (native.auto_os_upgrade, PlatformFeature::AutoOsUpgrade),
        (native.repairs.is_some(), PlatformFeature::AutomaticRepairs),
        (native.overprovision, PlatformFeature::Overprovision),
    ]
    .into_iter()
    .filter_map(|(on, native)| on.then_some(native))
    .collect()
}

fn is_stopped(view: &InstanceView) -> bool {
    use Power::{Deallocated, Deallocating, Stopped, Stopping};
    matches!(view.power, Stopped | Stopping | Deallocated | Deallocating)
}

fn comes_up(view: &InstanceView) -> bool {
    view.provisioning == Provisioning::Creating || view.power == Power::Starting
}

fn condition(view: &InstanceView) -> (Condition, Option<Time>) {
    let since = view.health_since.map(Time::from_millis);
    let serves = view.health == Some(GuestHealth::Healthy);
    match view.provisioning {
        Provisioning::Deleting => (Condition::Deleting, None),
        _ if is_stopped(view) => (Condition::Stopped, None),
        _ if serves => (Condition::Ready, since),
        Provisioning::Failed(_) => (Condition::Failed, None),
        _ if comes_up(view) => (Condition::Provisioning, None),
        Provisioning::Creating | Provisioning::Updating => (Condition::Provisioning, None),
        Provisioning::Succeeded => match view.health {
            // The cloud shows no health: a running machine counts as serving.
            None if view.power == Power::Running => (Condition::Ready, None),
            None | Some(GuestHealth::Initializing) => (Condition::Provisioning, None),
            Some(_) => (Condition::Unready, since),
        },
    }
}

/// A guest that approves does so within the longest notice that the cloud allows.
fn terminate_notice(native: &world::PlatformSpec) -> Span {
    match native.terminate_notice {
        None => Span::ZERO,
        Some(world::TerminateNotice::Approves) => Span::minutes(15),
        Some(world::TerminateNotice::Lasts(long)) => Span::from_millis(long),
    }
}
