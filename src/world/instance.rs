//! One VM as it truly is, and as ARM shows it.

use std::sync::Arc;

use super::events::Change;
use super::spec::{InstanceId, Model, Ms, OpId, Orchestration, Priority, Protection, VmId, Zone};
use crate::ambient::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provisioning {
    Creating,
    Updating,
    Succeeded,
    /// With the code of the instance view.
    Failed(&'static str),
    Deleting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// No power state is shown.
    None,
    Starting,
    Running,
    Stopping,
    Stopped,
    Deallocating,
    Deallocated,
}

/// As the health extension reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Initializing,
    Healthy,
    Unhealthy,
    Unknown,
}

/// What runs inside the VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    Down,
    Booting,
    Ready,
    Sick,
}

/// How the end of a delete touches the set's goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lowers {
    No,
    /// The goal is lowered already; reads may still count the VM.
    Already,
    AtEnd,
}

/// What the next step of a VM's provisioning will be.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Provisioned(Birth),
    Changed { change: Change, to: Option<Applied>, fails: bool },
    Gone,
    DeleteFails,
    Evict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Birth {
    Fine,
    Fails(&'static str),
    FailsServing,
}

/// A model that an upgrade or a reimage puts on the VM.
#[derive(Debug, Clone)]
pub(super) struct Applied {
    pub model_no: u32,
    pub installed: Arc<Model>,
    pub exact_image: Arc<str>,
    pub clears_flag: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum GuestStep {
    Ready,
    /// Unhealthy, for so long; for ever without a number.
    Sick(Option<Ms>),
    Well,
    RepairCheck,
}

#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub key: u64,
    pub id: InstanceId,
    pub vm: VmId,
    /// `vm` as text, made once: every listing shows it.
    pub vm_text: Arc<str>,
    pub zone: Option<Zone>,
    pub created: Ms,
    pub visible_at: Ms,
    pub model_no: u32,
    pub installed: Arc<Model>,
    pub exact_image: Arc<str>,
    pub state: Provisioning,
    pub power: Power,
    pub guest: Guest,
    pub guest_since: Ms,
    pub protection: Option<Protection>,
    pub priority: Priority,
    /// `latestModelApplied` is shown the other way round.
    pub flag_lies: bool,
    pub customised: bool,
    /// Its owner made it; it has none of the set's extensions, and reports no health.
    pub own_model: bool,
    /// One of the VMs over the asked number.
    pub extra: bool,
    pub repairing: bool,
    pub evicting: bool,
    pub lowers: Lowers,
    /// Who began the delete.
    pub by: super::events::By,
    /// A step planned under an older turn does not happen.
    pub turn: u32,
    pub guest_turn: u32,
    /// Operations that wait for this VM.
    pub ops: Vec<OpId>,
    pub dice: Dice,
}

impl Instance {
    pub fn is_deleting(&self) -> bool {
        self.state == Provisioning::Deleting
    }

    pub fn is_ready(&self) -> bool {
        self.power == Power::Running && self.guest == Guest::Ready
    }

    pub fn set_guest(&mut self, guest: Guest, now: Ms) {
        if self.guest != guest {
            self.guest = guest;
            self.guest_since = now;
        }
        self.guest_turn += 1;
    }

    pub fn is_protected_from_set(&self) -> bool {
        self.protection.is_some_and(|p| p.set_actions)
    }

    pub fn view(&self, orchestration: Orchestration, model_no: u32, health: bool) -> InstanceView {
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
            latest_model_applied: (orchestration == Orchestration::Uniform).then_some(latest),
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

    fn health(&self) -> Health {
        match (self.power, self.guest) {
            (Power::Running, Guest::Booting) => Health::Initializing,
            (Power::Running, Guest::Ready) => Health::Healthy,
            (Power::Running, Guest::Sick) => Health::Unhealthy,
            _ => Health::Unknown,
        }
    }
}

/// One item of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceView {
    pub id: InstanceId,
    pub vm: VmId,
    /// The same as text.
    pub vm_text: Arc<str>,
    pub zone: Option<Zone>,
    pub created: Ms,
    pub installed: Arc<Model>,
    /// The version that is on the disk, whatever the model says.
    pub exact_image: Arc<str>,
    /// Absent for Flexible. May lie.
    pub latest_model_applied: Option<bool>,
    /// `modelDefinitionApplied` is "VirtualMachine".
    pub customised: bool,
    /// It was made with a configuration of its own.
    pub own_model: bool,
    pub provisioning: Provisioning,
    pub power: Power,
    /// Absent without the health extension.
    pub health: Option<Health>,
    pub health_since: Option<Ms>,
    pub protection: Option<Protection>,
    pub priority: Priority,
}
