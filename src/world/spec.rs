//! The parts of a scale set: names, models and platform features.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::autoscale::AutoscaleSetting;
use super::load_balancer::IpConfiguration;
use super::set::SpotMix;
use crate::ambient::Dice;

/// Milliseconds since the Unix epoch, or a duration in milliseconds.
pub type Millis = i64;
pub const SECOND: Millis = 1_000;
pub const MINUTE: Millis = 60 * SECOND;
pub const HOUR: Millis = 60 * MINUTE;

pub type ZoneNumber = u8;
pub type VmId = Guid;
pub type OpId = Guid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

/// A decimal number in Uniform sets, the VM's name in Flexible ones. May be reused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub Arc<str>);

impl From<&str> for InstanceId {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A counter in quotes, as on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etag(pub Arc<str>);

impl Etag {
    pub(super) fn number(n: u64) -> Self {
        Self(Arc::from(format!("\"{n}\"")))
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u128);

impl Guid {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        Self((u128::from(dice.next_u64()) << 64) | u128::from(dice.next_u64()))
    }

    pub(super) fn text(self) -> Arc<str> {
        self.to_string().into()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let (a, b, c) = ((n >> 96) as u32, (n >> 80) as u16, (n >> 64) as u16);
        let (d, e) = ((n >> 48) as u16, n & 0xffff_ffff_ffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

impl FromStr for Guid {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        u128::from_str_radix(&digits, 16).map(Guid)
    }
}

/// What a VM is created from. Tags belong to the set's resource and are not part of [`ModelSpec::print`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelSpec {
    pub image: String,
    pub vm_size: String,
    /// Reaches existing VMs by reimage only.
    pub custom_data: String,
    /// Name to settings.
    pub extensions: BTreeMap<String, String>,
    pub tags: BTreeMap<String, String>,
    /// The OS disk is on the host: such VMs cannot be deallocated.
    pub ephemeral_disk: bool,
    /// Its network interfaces, as `rest` says too.
    pub interfaces: Vec<IpConfiguration>,
    /// All other VM settings, as a text that the world does not read.
    pub rest: String,
}

impl ModelSpec {
    pub fn of_image(image: &str) -> Self {
        let vm_size = "Standard_D4s_v5".to_owned();
        Self { image: image.to_owned(), vm_size, ..Self::default() }
    }

    /// Fingerprint of what runs on a VM: equal prints, equal VMs.
    pub fn print(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut eat = |text: &str| {
            for byte in text.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for field in [&self.image, &self.vm_size, &self.custom_data] {
            eat(field);
        }
        for (name, settings) in &self.extensions {
            eat(name);
            eat(settings);
        }
        if !self.rest.is_empty() {
            eat(&self.rest);
        }
        if self.ephemeral_disk {
            eat("ephemeral");
        }
        format!("{hash:016x}")
    }

    /// Equal except for tags.
    pub fn same_vm(&self, other: &ModelSpec) -> bool {
        self.image == other.image
            && self.vm_size == other.vm_size
            && self.custom_data == other.custom_data
            && self.extensions == other.extensions
            && self.ephemeral_disk == other.ephemeral_disk
            && self.rest == other.rest
    }

    pub fn cores(&self) -> u32 {
        cores(&self.vm_size)
    }
}

/// `Standard_D4s_v5` has four; a name without a number counts as one.
fn cores(vm_size: &str) -> u32 {
    let family = vm_size.split('_').nth(1).unwrap_or(vm_size);
    let digits = family.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end).and_then(|d| d.parse().ok()).unwrap_or(1)
}

/// The model's part of a PATCH: absent fields stay; maps are replaced as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPatch {
    pub image: Option<String>,
    pub vm_size: Option<String>,
    pub custom_data: Option<String>,
    pub extensions: Option<BTreeMap<String, String>>,
    pub tags: Option<BTreeMap<String, String>>,
}

impl ModelPatch {
    pub fn image(image: &str) -> Self {
        Self { image: Some(image.to_owned()), ..Self::default() }
    }

    pub fn apply(&self, to: &ModelSpec) -> ModelSpec {
        let or = |new: &Option<String>, old: &String| new.as_ref().unwrap_or(old).clone();
        ModelSpec {
            image: or(&self.image, &to.image),
            vm_size: or(&self.vm_size, &to.vm_size),
            custom_data: or(&self.custom_data, &to.custom_data),
            extensions: self.extensions.as_ref().unwrap_or(&to.extensions).clone(),
            tags: self.tags.as_ref().unwrap_or(&to.tags).clone(),
            ephemeral_disk: to.ephemeral_disk,
            interfaces: to.interfaces.clone(),
            rest: to.rest.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetOrchestration {
    #[default]
    Uniform,
    Flexible,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VmPriority {
    #[default]
    Regular,
    Spot(EvictionPolicy),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvictionPolicy {
    #[default]
    Deallocate,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceProtection {
    pub scale_in: bool,
    pub set_actions: bool,
}

/// Which VMs a scale-in deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleIn {
    #[default]
    Default,
    Oldest,
    Newest,
}

/// Features of the cloud that change a set without a request from its manager.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlatformSpec {
    pub upgrade: UpgradeMode,
    /// Replaces OS disks in place when a version is published behind the model's image.
    pub auto_os_upgrade: bool,
    pub repairs: Option<Repairs>,
    /// Creates more VMs than requested and keeps the first to come up. Uniform only.
    pub overprovision: bool,
    /// Azure replaces a VM that fails to provision.
    pub resilient_create: bool,
    pub rebalance: bool,
    /// The setting that targets this set: a resource of its own.
    pub autoscale: Option<AutoscaleSetting>,
    pub terminate_notice: Option<TerminateNotice>,
}

/// The guest learns of a delete before it happens, and may approve it earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminateNotice {
    /// Every guest approves after 5 to 15 minutes.
    Approves,
    /// Nothing but [`ExternalEvent::ApproveDelete`](super::ExternalEvent) ends it earlier.
    Lasts(Millis),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpgradeMode {
    #[default]
    Manual,
    Automatic,
    Rolling(Rolling),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rolling {
    pub batch_percent: u32,
    pub max_unhealthy_percent: u32,
    pub pause: Millis,
}

impl Default for Rolling {
    fn default() -> Self {
        Self { batch_percent: 20, max_unhealthy_percent: 20, pause: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repairs {
    pub grace: Millis,
    pub action: RepairAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairAction {
    Replace,
    Reimage,
    Restart,
}

/// State of a VM at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialState {
    #[default]
    Ready,
    Creating,
    Booting,
    /// Unhealthy, permanently.
    Sick,
    Failed,
    /// Provisioning state Failed, but serving.
    FailedServing,
    Stopped,
    Deallocated,
    Deleting,
}

/// One VM that exists at the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceSpec {
    pub id: Option<InstanceId>,
    pub vm: Option<VmId>,
    pub zone: Option<ZoneNumber>,
    /// `None`: the set's model.
    pub model: Option<ModelSpec>,
    pub created: Option<Millis>,
    pub found: InitialState,
    pub protection: InstanceProtection,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SetSpec {
    pub name: String,
    pub orchestration: SetOrchestration,
    pub zones: Vec<ZoneNumber>,
    pub capacity: u32,
    pub model: ModelSpec,
    pub priority: VmPriority,
    pub mix: Option<SpotMix>,
    pub single_placement: bool,
    /// A raise that would leave zones unbalanced fails.
    pub strict_zone_balance: bool,
    pub scale_in: ScaleIn,
    /// Without it VMs show no health.
    pub health_extension: bool,
    pub windows: bool,
    /// Isolated sizes and dedicated hosts refuse forced deletes.
    pub force_delete_refused: bool,
    pub native: PlatformSpec,
    /// All other set settings, as a text that the world does not read.
    pub rest: String,
    /// Empty: `capacity` running VMs on `model`.
    pub instances: Vec<InstanceSpec>,
}

impl SetSpec {
    pub fn new(name: &str, capacity: u32, image: &str) -> Self {
        Self {
            name: name.to_owned(),
            orchestration: SetOrchestration::Uniform,
            zones: Vec::new(),
            capacity,
            model: ModelSpec::of_image(image),
            priority: VmPriority::Regular,
            mix: None,
            single_placement: false,
            strict_zone_balance: false,
            scale_in: ScaleIn::Default,
            health_extension: true,
            windows: false,
            force_delete_refused: false,
            native: PlatformSpec::default(),
            rest: String::new(),
            instances: Vec::new(),
        }
    }

    pub fn zones(mut self, zones: &[ZoneNumber]) -> Self {
        self.zones = zones.to_vec();
        self
    }

    pub fn flexible(mut self) -> Self {
        self.orchestration = SetOrchestration::Flexible;
        self
    }

    pub fn spot(mut self, policy: EvictionPolicy) -> Self {
        self.priority = VmPriority::Spot(policy);
        self
    }

    pub fn native(mut self, native: PlatformSpec) -> Self {
        self.native = native;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_from_the_size() {
        for (size, want) in
            [("Standard_D4s_v5", 4), ("Standard_DS1_v2", 1), ("Standard_E64", 64), ("odd", 1)]
        {
            assert_eq!(cores(size), want, "{size}");
        }
    }

    #[test]
    fn the_print_names_what_runs_and_no_tags() {
        let old = ModelSpec::of_image("v1");
        let mut tagged = old.clone();
        tagged.tags.insert("team".into(), "a".into());
        assert_eq!(old.print(), tagged.print());
        assert_ne!(old.print(), ModelPatch::image("v2").apply(&old).print());
    }

    #[test]
    fn a_guid_reads_back() {
        let guid = Guid(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(guid.to_string(), "01234567-89ab-cdef-0011-223344556677");
        assert_eq!(guid.to_string().parse(), Ok(guid));
    }
}
