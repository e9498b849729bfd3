//! One VM: its true state, and its view in ARM.

use std::sync::Arc;

use super::events::WorldChange;
use super::names::named;
use super::spec::{
    InstanceId, InstanceProtection, Millis, ModelSpec, OpId, SetOrchestration, VmId, VmPriority,
    ZoneNumber,
};
use crate::ambient::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provisioning {
    Creating,
    Updating,
    Succeeded,
    /// With the status code of the instance view.
    Failed(&'static str),
    Deleting,
}

named! {
    pub enum Power {
        /// ARM shows no power state.
        None = "none",
        Starting = "starting",
        Running = "running",
        Stopping = "stopping",
        Stopped = "stopped",
        Deallocating = "deallocating",
        Deallocated = "deallocated",
    }
}

/// As the health extension reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestHealth {
    Initializing,
    Healthy,
    Unhealthy,
    Unknown,
}

named! {
    pub enum GuestState {
        Down = "down",
        Booting = "booting",
        Ready = "ready",
        Sick = "sick",
    }
}

/// How the end of a delete changes the set's goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lowers {
    No,
    /// The goal has fallen already; reads may still count the VM.
    Already,
    AtEnd,
}

/// The next provisioning step of a VM.
#[derive(Debug, Clone)]
pub(super) enum InstanceStep {
    Provisioned(ProvisionPlan),
    Changed(ChangePlan),
    Gone,
    DeleteFails,
    Evict,
}

/// How a change of a VM will end.
#[derive(Debug, Clone)]
pub(super) struct ChangePlan {
    pub change: WorldChange,
    pub to: Option<ModelState>,
    /// The code, if it fails.
    pub fails: Option<&'static str>,
    /// The power state before it.
    pub was: Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProvisionPlan {
    Fine,
    Fails(&'static str),
    FailsServing,
}

/// The model that an upgrade or a reimage puts on the VM.
#[derive(Debug, Clone)]
pub(super) struct ModelState {
    pub model_no: u32,
    pub installed: Arc<ModelSpec>,
    pub exact_image: Arc<str>,
    pub clears_flag: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum GuestStep {
    Ready,
    /// Unhealthy for this long; `None`: permanently.
    Sick(Option<Millis>),
    Well,
    RepairCheck,
}

#[derive(Debug, Clone)]
pub(super) struct WorldInstance {
    pub key: u64,
    pub id: InstanceId,
    pub vm: VmId,
    /// `vm` as text, computed once: every listing shows it.
    pub vm_text: Arc<str>,
    pub zone: Option<ZoneNumber>,
    pub created: Millis,
    pub visible_at: Millis,
    pub model_no: u32,
    pub installed: Arc<ModelSpec>,
    pub exact_image: Arc<str>,
    pub state: Provisioning,
    pub power: Power,
    pub guest: GuestState,
    pub guest_since: Millis,
    /// The last time in which the guest was ready and after which it was not.
    pub served: Option<(Millis, Millis)>,
    /// The end of the notice of its delete, and whether the guest has approved.
    pub notice: Option<(Millis, bool)>,
    /// Its network interface has the state Failed.
    pub interface_failed: bool,
    pub protection: Option<InstanceProtection>,
    pub priority: VmPriority,
    /// `latestModelApplied` is shown inverted.
    pub flag_lies: bool,
    pub customised: bool,
    /// The caller created it; it has none of the set's extensions and reports no health.
    pub own_model: bool,
    /// One of the VMs above the requested number.
    pub extra: bool,
    pub repairing: bool,
    pub evicting: bool,
    pub lowers: Lowers,
    /// The actor that started the delete.
    pub by: super::events::Actor,
    /// Steps planned under an older turn do not run.
    pub turn: u32,
    pub guest_turn: u32,
    /// Operations that wait for this VM.
    pub ops: Vec<OpId>,
    pub dice: Dice,
}

impl WorldInstance {
    pub fn is_deleting(&self) -> bool {
        self.state == Provisioning::Deleting
    }

    pub fn is_ready(&self) -> bool {
        self.power == Power::Running && self.guest == GuestState::Ready
    }

    pub fn set_guest(&mut self, guest: GuestState, now: Millis) {
        if self.guest != guest {
            if self.guest == GuestState::Ready {
                self.served = Some((self.guest_since, now));
            }
            self.guest = guest;
            self.guest_since = now;
        }
        self.guest_turn += 1;
    }

    pub fn is_protected_from_set(&self) -> bool {
        self.protection.is_some_and(|p| p.set_actions)
    }

    pub fn view(
        &self,
        orchestration: SetOrchestration,
        model_no: u32,
        health: bool,
    ) -> InstanceView {
        let health = health && !self.own_model;
        let latest = (self.model_no == model_no) != self.flag_lies;
        InstanceView {
            id: self.id.clone(),
            vm: self.vm,
            vm_text: Arc::clone(&self.vm_text),
            zone: self.zone,
            created: self.created,
            installed: Arc::clone(&self.installed),
            exact_image: Arc::clone(&self.exact_image),
            latest_model_applied: (orchestration == SetOrchestration::Uniform).then_some(latest),
            customised: self.customised,
            own_model: self.own_model,
            provisioning: self.state,
            power: self.power,
            health: health.then(|| self.health()),
            health_since: health.then_some(self.guest_since),
            protection: self.protection,
            priority: self.priority,
        }
    }

    fn health(&self) -> GuestHealth {
        match (self.power, self.guest) {
            (Power::Running, GuestState::Booting) => GuestHealth::Initializing,
            (Power::Running, GuestState::Ready) => GuestHealth::Healthy,
            (Power::Running, GuestState::Sick) => GuestHealth::Unhealthy,
            _ => GuestHealth::Unknown,
        }
    }
}

/// One item of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceView {
    pub id: InstanceId,
    pub vm: VmId,
    /// `vm` as text.
    pub vm_text: Arc<str>,
    pub zone: Option<ZoneNumber>,
    pub created: Millis,
    pub installed: Arc<ModelSpec>,
    /// The version on the disk, whatever the model says.
    pub exact_image: Arc<str>,
    /// Absent for Flexible. May be wrong.
    pub latest_model_applied: Option<bool>,
    /// `modelDefinitionApplied` is "VirtualMachine".
    pub customised: bool,
    /// Created with its own configuration.
    pub own_model: bool,
    pub provisioning: Provisioning,
    pub power: Power,
    /// Absent without the health extension.
    pub health: Option<GuestHealth>,
    pub health_since: Option<Millis>,
    pub protection: Option<InstanceProtection>,
    pub priority: VmPriority,
}
