//! The initial state of an emulator: subscriptions, scale sets, images, identities, and faults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::balancer_seed::BalancerSeed;
use super::faults::FaultSeed;
use super::locks::LockSeed;
use crate::world::{
    BusyBalancer, CapacityFalls, Durations, InitialState, InstanceId, InstanceProtection,
    InstanceSpec, MetricLoad, Millis, ModelSpec, Spread, Switches, WorldSettings,
};

pub(super) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
pub(super) const TENANT: &str = "11111111-1111-1111-1111-111111111111";
pub(super) const GROUP: &str = "rg";

/// The whole file; every key has a default.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Seed {
    /// Random seed of the world: the same seed and the same calls at the same times give the same events.
    pub seed: u64,
    pub location: String,
    pub subscriptions: Vec<String>,
    pub tenant: String,
    /// In addition to the groups that scale sets name.
    pub resource_groups: Vec<String>,
    pub scale_sets: Vec<SetSeed>,
    pub load_balancers: Vec<BalancerSeed>,
    pub galleries: Vec<ImageSeed>,
    pub locks: Vec<LockSeed>,
    /// Empty: every client may do everything, with any secret.
    pub identities: Vec<IdentitySeed>,
    /// Reject tokens that this emulator did not issue.
    pub strict_tokens: bool,
    pub token_seconds: u64,
    pub settings: SettingsSeed,
    pub faults: FaultSeed,
}

impl Default for Seed {
    fn default() -> Self {
        Self {
            seed: 0,
            location: "eastus2".to_owned(),
            subscriptions: vec![SUBSCRIPTION.to_owned()],
            tenant: TENANT.to_owned(),
            resource_groups: vec![GROUP.to_owned()],
            scale_sets: Vec::new(),
            load_balancers: Vec::new(),
            galleries: Vec::new(),
            locks: Vec::new(),
            identities: Vec::new(),
            strict_tokens: false,
            token_seconds: 3_599,
            settings: SettingsSeed::default(),
            faults: FaultSeed::default(),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SettingsSeed {
    pub page_size: Option<usize>,
    pub quota_cores: Option<u32>,
    /// Quota of Spot cores; the same as for regular cores if absent.
    pub quota_spot_cores: Option<u32>,
    pub throttling: Option<bool>,
    /// Retry-After of a poll, in world seconds; 0: no header.
    pub poll_retry_after: Option<u32>,
    /// Record requests and the changes of VMs, for `GET /_control/record`.
    pub record: bool,
    /// The same, with the bodies of answers.
    pub record_answers: bool,
    /// Divides all durations by this. Unlike a faster clock, it keeps world time equal to the clients' time.
    pub quicker: Option<f64>,
    pub switches: SwitchesSeed,
}

/// Undocumented behaviours; each default is the other behaviour.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SwitchesSeed {
    pub ids_reused: bool,
    pub busy_refused: bool,
    pub tags_flip_flag: bool,
    pub same_model_flips_flag: bool,
    pub protection_write_flips_flag: bool,
    pub etag_stays_on_capacity: bool,
    pub etag_stays_on_delete: bool,
    pub etag_moves_on_same_write: bool,
    pub capacity_falls: CapacityFallsSeed,
    pub reimage_takes_newest: bool,
    pub tokens_by_minute: bool,
    pub gone_delete_fails: bool,
    /// A lock on a VM of a Flexible set rejects a batch of the set that names the VM.
    pub locked_vm_stops_batch: bool,
    /// An attached VM does not count in the capacity of its set.
    pub attach_leaves_capacity: bool,
    /// A PATCH of the image without `osDisk` resets the OS disk to the image's kind and size.
    pub image_patch_resets_disks: bool,
    /// A PATCH of the image without `dataDisks` removes the data disks, as Azure did until October 2020.
    pub image_patch_drops_data_disks: bool,
    /// A start without capacity is refused at once, not at the end of its operation.
    pub start_refused_at_once: bool,
    /// A VM that could not be started keeps the provisioning state Succeeded.
    pub failed_start_leaves_vm: bool,
    pub deallocated_keeps_flag: bool,
    /// A VM that does not run shows no health instead of `unknown`.
    pub stopped_hides_health: bool,
    pub power_busy_refused: bool,
    pub autoscale_forgets_cooldown: bool,
    /// An autoscale setting without `enabled` is on.
    pub autoscale_on_unless_said: bool,
    /// A PATCH of an autoscale setting replaces `properties` as a whole.
    pub autoscale_patch_replaces: bool,
    /// Answers show an autoscale setting as it was written.
    pub autoscale_answers_plain: bool,
    pub busy_balancer: BusyBalancerSeed,
    /// The administrative state Down resets connections that exist.
    pub admin_down_resets: bool,
    /// Backend pools of Uniform sets refuse administrative states.
    pub uniform_admin_refused: bool,
    /// Elements of such pools name no network interface.
    pub uniform_elements_hide_interface: bool,
    /// A network interface that is being deleted blocks writes of its load balancer.
    pub deleting_interface_blocks: bool,
}

/// The answer to a write of a load balancer during another one.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BusyBalancerSeed {
    #[default]
    Refuses,
    Retryable,
    Supersedes,
}

impl From<BusyBalancerSeed> for BusyBalancer {
    fn from(seed: BusyBalancerSeed) -> Self {
        match seed {
            BusyBalancerSeed::Refuses => Self::Refuses,
            BusyBalancerSeed::Retryable => Self::Retryable,
            BusyBalancerSeed::Supersedes => Self::Supersedes,
        }
    }
}

/// When a machine delete lowers `sku.capacity`.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CapacityFallsSeed {
    #[default]
    AtAccept,
    /// It falls at once, but reads show the old number until the machine is gone.
    ShownLate,
    WhenDone,
}

impl From<CapacityFallsSeed> for CapacityFalls {
    fn from(seed: CapacityFallsSeed) -> Self {
        match seed {
            CapacityFallsSeed::AtAccept => Self::AtAccept,
            CapacityFallsSeed::ShownLate => Self::ShownLate,
            CapacityFallsSeed::WhenDone => Self::WhenDone,
        }
    }
}

impl SettingsSeed {
    pub(super) fn settings(&self, location: &str) -> WorldSettings {
        let mut settings = WorldSettings::default();
        location.clone_into(&mut settings.location);
        settings.page_size = self.page_size.unwrap_or(settings.page_size).max(1);
        settings.quota_cores = self.quota_cores;
        settings.quota_spot_cores = self.quota_spot_cores;
        settings.durations = quicker(settings.durations, self.quicker.unwrap_or(1.0));
        settings.throttling = self.throttling.unwrap_or(true);
        settings.poll_retry_after = match self.poll_retry_after {
            Some(0) => None,
            Some(seconds) => Some(seconds),
            None => settings.poll_retry_after,
        };
        settings.switches = self.switches.switches();
        settings
    }
}

impl SwitchesSeed {
    pub(super) fn switches(self) -> Switches {
        Switches {
            ids_reused: self.ids_reused,
            busy_refused: self.busy_refused,
            tags_flip_flag: self.tags_flip_flag,
            same_model_flips_flag: self.same_model_flips_flag,
            protection_write_flips_flag: self.protection_write_flips_flag,
            etag_moves_on_capacity: !self.etag_stays_on_capacity,
            etag_moves_on_delete: !self.etag_stays_on_delete,
            etag_moves_on_same_write: self.etag_moves_on_same_write,
            capacity_falls: self.capacity_falls.into(),
            reimage_takes_newest: self.reimage_takes_newest,
            tokens_by_minute: self.tokens_by_minute,
            gone_delete_succeeds: !self.gone_delete_fails,
            start_refused_at_once: self.start_refused_at_once,
            failed_start_marks_vm: !self.failed_start_leaves_vm,
            deallocated_keeps_flag: self.deallocated_keeps_flag,
            stopped_shows_health: !self.stopped_hides_health,
            power_busy_refused: self.power_busy_refused,
            autoscale_forgets_cooldown: self.autoscale_forgets_cooldown,
            busy_balancer: self.busy_balancer.into(),
            admin_down_resets: self.admin_down_resets,
            uniform_admin_refused: self.uniform_admin_refused,
            deleting_interface_blocks: self.deleting_interface_blocks,
            ..Switches::default()
        }
    }
}

fn quicker(mut all: Durations, times: f64) -> Durations {
    // A factor below 1 makes no sense; one above 1,000 would leave operations no time at all.
    let times = if times.is_finite() { times.clamp(1.0, 1_000.0) } else { 1.0 };
    for one in [
        &mut all.visible,
        &mut all.provision,
        &mut all.provision_windows,
        &mut all.boot,
        &mut all.delete,
        &mut all.leaves_list,
        &mut all.reimage,
        &mut all.upgrade_current,
        &mut all.upgrade_settings,
        &mut all.upgrade_image,
        &mut all.deallocate,
        &mut all.start,
        &mut all.autoscale,
        &mut all.balancer,
        &mut all.accept,
    ] {
        *one = Spread::new(one.median / times, one.sigma, one.min / times, one.max / times);
    }
    for one in [&mut all.create_timeout, &mut all.delete_timeout, &mut all.eviction_notice] {
        *one = (*one as f64 / times) as Millis;
    }
    all
}

/// A scale set that exists from the start, in short form or as a resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetSeed {
    pub name: String,
    pub subscription: Option<String>,
    pub resource_group: Option<String>,
    #[serde(default = "three")]
    pub capacity: u32,
    #[serde(default)]
    pub flexible: bool,
    #[serde(default)]
    pub zones: Vec<String>,
    pub size: Option<String>,
    /// An image reference, or the id of an image.
    pub image: Option<Value>,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Backend pools that its network interfaces join, as `balancer/pool`.
    #[serde(default)]
    pub pools: Vec<String>,
    /// VMs report application health.
    #[serde(default = "yes")]
    pub health: bool,
    /// As ARM writes it; overrides the keys above.
    #[serde(default)]
    pub resource: Map<String, Value>,
    #[serde(default)]
    pub instances: Vec<InstanceSeed>,
    /// The properties of an autoscale setting of this name that targets the set.
    pub autoscale: Option<Value>,
    /// What the metric of its rules shows.
    pub load: Option<LoadSeed>,
}

/// What the metric of a scale set shows to autoscale rules.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadSeed {
    Wanders,
    Unreadable,
    Level(f64),
    Shared(f64),
}

impl From<LoadSeed> for MetricLoad {
    fn from(seed: LoadSeed) -> Self {
        match seed {
            LoadSeed::Wanders => Self::Wanders,
            LoadSeed::Unreadable => Self::Unreadable,
            LoadSeed::Level(level) => Self::Level(level),
            LoadSeed::Shared(work) => Self::Shared(work),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InstanceSeed {
    pub id: Option<String>,
    pub zone: Option<u8>,
    pub image: Option<Value>,
    pub found: FoundSeed,
    pub protect_from_scale_in: bool,
    pub protect_from_scale_set_actions: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FoundSeed {
    #[default]
    Ready,
    Creating,
    Booting,
    Sick,
    Failed,
    FailedServing,
    Stopped,
    Deallocated,
    Deleting,
}

/// A version of a gallery image.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageSeed {
    pub resource_group: Option<String>,
    pub gallery: String,
    pub image: String,
    pub version: String,
    /// Empty: the emulator's own region.
    #[serde(default)]
    pub regions: Vec<String>,
    #[serde(default)]
    pub exclude_from_latest: bool,
}

/// An identity that may request tokens.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IdentitySeed {
    pub client_id: String,
    /// Absent: any.
    pub secret: Option<String>,
    /// Parts of resource ids on which it may do nothing.
    #[serde(default)]
    pub denied: Vec<String>,
    /// Suffixes of actions that it may not do: `write`, `delete/action`.
    #[serde(default)]
    pub denied_actions: Vec<String>,
}

impl std::fmt::Debug for IdentitySeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentitySeed").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

fn three() -> u32 {
    3
}

fn yes() -> bool {
    true
}

impl SetSeed {
    pub(super) fn group(&self) -> &str {
        self.resource_group.as_deref().unwrap_or(GROUP)
    }

    /// The resource, as a client would have requested it from ARM.
    pub(super) fn body(&self, location: &str, subscription: &str) -> Map<String, Value> {
        let image = self.image.as_ref().map_or_else(default_image, image_reference);
        let mut profile = json!({
            "osProfile": { "computerNamePrefix": self.name, "adminUsername": "azureuser",
                "linuxConfiguration": { "disablePasswordAuthentication": true } },
            "storageProfile": { "imageReference": image, "osDisk": { "osType": "Linux",
                "createOption": "FromImage", "caching": "ReadWrite",
                "diskSizeGB": super::document::IMAGE_DISK_GB,
                "managedDisk": { "storageAccountType": "Premium_LRS" } } },
            "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic",
                "properties": { "primary": true, "ipConfigurations": [{ "name": "ip",
                    "properties": { "primary": true, "privateIPAddressVersion": "IPv4" } }] } }] },
        });
        if !self.pools.is_empty() {
            let pools = self.pools.iter();
            let pools =
                pools.map(|pool| super::balancer_seed::pool(subscription, self.group(), pool));
            profile["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"]
                [0]["properties"]["loadBalancerBackendAddressPools"] = pools.collect();
        }
        if self.health {
            profile["extensionProfile"] = json!({ "extensions": [{ "name": "health",
                "properties": { "publisher": "Microsoft.ManagedServices",
                    "type": "ApplicationHealthLinux", "typeHandlerVersion": "2.0",
                    "autoUpgradeMinorVersion": true, "settings": { "protocol": "http",
                    "port": 8080, "requestPath": "/health" } } }] });
        }
        let mut body = json!({
            "location": location,
            "sku": { "name": self.size.as_deref().unwrap_or("Standard_D4s_v5"),
                "tier": "Standard", "capacity": self.capacity },
            "properties": {
                "orchestrationMode": if self.flexible { "Flexible" } else { "Uniform" },
                "singlePlacementGroup": false, "overprovision": false,
                "upgradePolicy": { "mode": "Manual" }, "platformFaultDomainCount": 1,
                "virtualMachineProfile": profile,
            },
        });
        if !self.tags.is_empty() {
            body["tags"] = json!(self.tags);
        }
        if !self.zones.is_empty() {
            body["zones"] = json!(self.zones);
        }
        super::document::merge(&mut body, &Value::Object(self.resource.clone()));
        match body {
            Value::Object(body) => body,
            _ => Map::new(),
        }
    }

    pub(super) fn instances(&self, model: &ModelSpec) -> Vec<InstanceSpec> {
        self.instances.iter().map(|one| one.spec(model)).collect()
    }
}

impl InstanceSeed {
    fn spec(&self, model: &ModelSpec) -> InstanceSpec {
        let image = self.image.as_ref().map(|image| image_reference(image).to_string());
        InstanceSpec {
            id: self.id.as_deref().map(InstanceId::from),
            vm: None,
            zone: self.zone,
            model: image.map(|image| ModelSpec { image, ..model.clone() }),
            created: None,
            found: self.found.into(),
            protection: InstanceProtection {
                scale_in: self.protect_from_scale_in || self.protect_from_scale_set_actions,
                set_actions: self.protect_from_scale_set_actions,
            },
        }
    }
}

impl From<FoundSeed> for InitialState {
    fn from(seed: FoundSeed) -> Self {
        match seed {
            FoundSeed::Ready => Self::Ready,
            FoundSeed::Creating => Self::Creating,
            FoundSeed::Booting => Self::Booting,
            FoundSeed::Sick => Self::Sick,
            FoundSeed::Failed => Self::Failed,
            FoundSeed::FailedServing => Self::FailedServing,
            FoundSeed::Stopped => Self::Stopped,
            FoundSeed::Deallocated => Self::Deallocated,
            FoundSeed::Deleting => Self::Deleting,
        }
    }
}

fn default_image() -> Value {
    json!({ "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server",
        "version": "24.04.202408010" })
}

/// A string is the id of an image.
pub(super) fn image_reference(image: &Value) -> Value {
    match image {
        Value::String(id) => json!({ "id": id }),
        other => other.clone(),
    }
}
