//! The true state, for judges. No caller of a real cloud ever sees this.

use std::sync::Arc;

use super::World;
use super::autoscale::AutoscaleSetting;
use super::instance::{GuestState, Power, Provisioning, WorldInstance};
use super::spec::{
    InstanceId, InstanceProtection, Millis, ModelSpec, OpId, SetId, VmId, VmPriority, ZoneNumber,
};

#[derive(Debug, Clone, PartialEq)]
pub struct TrueSet {
    /// The goal that Azure works towards, whatever reads show.
    pub capacity: u32,
    pub shown_capacity: u32,
    pub model: Arc<ModelSpec>,
    pub model_no: u32,
    pub etag: u64,
    pub running: Vec<OpId>,
    /// VMs above the requested number, of current raises.
    pub extras: u32,
    pub instances: Vec<TrueInstance>,
}

impl TrueSet {
    /// VMs that are not being deleted.
    pub fn active(&self) -> usize {
        self.instances.iter().filter(|i| i.provisioning != Provisioning::Deleting).count()
    }

    pub fn ready(&self) -> usize {
        self.instances.iter().filter(|i| i.is_ready()).count()
    }

    pub fn outdated(&self) -> usize {
        self.instances.iter().filter(|i| !i.installed.same_vm(&self.model)).count()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueInstance {
    pub id: InstanceId,
    pub vm: VmId,
    pub vm_text: Arc<str>,
    pub zone: Option<ZoneNumber>,
    pub created: Millis,
    pub model_no: u32,
    pub installed: Arc<ModelSpec>,
    pub exact_image: Arc<str>,
    pub provisioning: Provisioning,
    pub power: Power,
    pub guest: GuestState,
    pub guest_since: Millis,
    pub protection: Option<InstanceProtection>,
    pub priority: VmPriority,
    pub evicting: bool,
}

/// The part of a set's state that judges read at every turn and every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrueSizes {
    pub capacity: u32,
    pub shown_capacity: u32,
    /// VMs that are not being deleted.
    pub active: u32,
    pub extras: u32,
}

/// The part of a VM's state that judges read at every turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceTruth<'a> {
    pub id: &'a InstanceId,
    pub vm: VmId,
    pub vm_text: &'a Arc<str>,
    pub created: Millis,
    pub ready: bool,
    pub guest_since: Millis,
    pub deleting: bool,
    /// It became unhealthy, or its provisioning failed.
    pub failed: bool,
}

impl TrueInstance {
    /// Running, and its guest serves.
    pub fn is_ready(&self) -> bool {
        self.power == Power::Running && self.guest == GuestState::Ready
    }
}

impl World {
    pub fn truth(&self, set: SetId) -> Option<TrueSet> {
        let it = self.sets.get(&set)?;
        Some(TrueSet {
            capacity: it.goal,
            shown_capacity: it.shown(&self.settings.switches),
            model: Arc::clone(&it.model),
            model_no: it.model_no,
            etag: it.etag,
            running: it.running.clone(),
            extras: self.extras(set),
            instances: it.instances.values().map(true_instance).collect(),
        })
    }

    pub fn true_sizes(&self, set: SetId) -> Option<TrueSizes> {
        let it = self.sets.get(&set)?;
        Some(TrueSizes {
            capacity: it.goal,
            shown_capacity: it.shown(&self.settings.switches),
            active: it.active().count() as u32,
            extras: self.extras(set),
        })
    }

    pub fn true_model(&self, set: SetId) -> Option<&Arc<ModelSpec>> {
        self.sets.get(&set).map(|it| &it.model)
    }

    pub fn true_autoscale(&self, set: SetId) -> Option<&AutoscaleSetting> {
        self.sets.get(&set)?.native.autoscale.as_ref()
    }

    /// All VMs that the set created, in order of creation. Attached VMs do not belong to a pool.
    pub fn briefs(&self, set: SetId) -> impl Iterator<Item = InstanceTruth<'_>> {
        let instances = self.sets.get(&set).map(|it| it.instances.values());
        let made = instances.into_iter().flatten().filter(|i| !i.own_model);
        made.map(|i| InstanceTruth {
            id: &i.id,
            vm: i.vm,
            vm_text: &i.vm_text,
            created: i.created,
            ready: i.is_ready(),
            guest_since: i.guest_since,
            deleting: i.is_deleting(),
            failed: !i.is_ready()
                && (i.guest == GuestState::Sick || matches!(i.state, Provisioning::Failed(_))),
        })
    }

    /// One VM, even if listings hide it.
    pub fn true_instance(&self, set: SetId, id: &InstanceId) -> Option<TrueInstance> {
        self.sets.get(&set)?.find(id).map(true_instance)
    }
}

fn true_instance(i: &WorldInstance) -> TrueInstance {
    TrueInstance {
        id: i.id.clone(),
        vm: i.vm,
        vm_text: Arc::clone(&i.vm_text),
        zone: i.zone,
        created: i.created,
        model_no: i.model_no,
        installed: Arc::clone(&i.installed),
        exact_image: Arc::clone(&i.exact_image),
        provisioning: i.state,
        power: i.power,
        guest: i.guest,
        guest_since: i.guest_since,
        protection: i.protection,
        priority: i.priority,
        evicting: i.evicting,
    }
}
