//! A VM as ARM shows it: as a member of a Uniform set, as a resource in a Flexible set, and its instance view. Keys are
//! in wire order.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::document;
use super::text::{base36, guid_of, hash, rfc3339};
use crate::world::{GuestHealth, InstanceView, ModelSpec, Power, Provisioning, VmPriority};

/// The two addresses of a VM: under its set, and (Flexible only) as a resource of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VmPath {
    OfSet,
    OfGroup,
}

/// What all VMs of a page share.
#[derive(Debug)]
pub(super) struct RenderContext<'a> {
    /// The id of the set, as the answer spells it; a standalone VM has none.
    pub set_id: Option<String>,
    pub set_name: &'a str,
    pub subscription: &'a str,
    pub group: &'a str,
    pub location: &'a str,
    pub flexible: bool,
    pub path: VmPath,
}

/// What a VM takes from its model; many VMs share one.
#[derive(Debug)]
pub(super) struct Shape {
    model: Arc<ModelSpec>,
    profile: Value,
    image: Value,
    prefix: String,
    extensions: Vec<Value>,
}

/// The shapes in one answer.
#[derive(Debug, Default)]
pub(super) struct Shapes(Vec<Shape>);

impl Shapes {
    pub fn of(&mut self, model: &Arc<ModelSpec>) -> &Shape {
        let known = self.0.iter().position(|shape| Arc::ptr_eq(&shape.model, model));
        let at = known.unwrap_or_else(|| {
            self.0.push(Shape::new(model));
            self.0.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found or pushed just now")]
        &self.0[at]
    }
}

impl Shape {
    fn new(model: &Arc<ModelSpec>) -> Self {
        let profile = document::profile(model, false, false);
        let extensions = profile.pointer("/extensionProfile/extensions").and_then(Value::as_array);
        Self {
            model: Arc::clone(model),
            image: document::image(&model.image),
            prefix: document::text(&profile, "/osProfile/computerNamePrefix")
                .unwrap_or("vm")
                .to_owned(),
            extensions: extensions.cloned().unwrap_or_default(),
            profile,
        }
    }

    fn part(&self, pointer: &str) -> Value {
        self.profile.pointer(pointer).cloned().unwrap_or_default()
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VmTemplate {
    name: String,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    location: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<Value>,
    properties: Properties,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zones: Option<[String; 1]>,
    etag: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_model_applied: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_definition_applied: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    network_profile_configuration: Value,
    hardware_profile: Value,
    #[serde(rename = "resilientVMDeletionStatus", skip_serializing_if = "Option::is_none")]
    resilient_vm_deletion_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_machine_scale_set: Option<Value>,
    storage_profile: Value,
    os_profile: Value,
    network_profile: Value,
    provisioning_state: &'static str,
    vm_id: String,
    time_created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protection_policy: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_view: Option<ViewKind>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusRow {
    code: String,
    level: &'static str,
    #[serde(rename = "displayStatus")]
    shown: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ViewKind {
    #[serde(skip_serializing_if = "Option::is_none")]
    placement_group_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_update_domain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fault_domain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computer_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    os_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    os_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm_agent: Option<Value>,
    disks: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<Value>,
    #[serde(rename = "hyperVGeneration")]
    hyper_v_generation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm_health: Option<Value>,
    pub statuses: Vec<StatusRow>,
}

impl StatusRow {
    /// The form for summaries: without the failure code.
    pub fn summary(&self) -> String {
        self.code.splitn(3, '/').take(2).collect::<Vec<_>>().join("/")
    }
}

pub(super) fn provisioning(state: Provisioning) -> &'static str {
    match state {
        Provisioning::Creating => "Creating",
        Provisioning::Updating => "Updating",
        Provisioning::Succeeded => "Succeeded",
        Provisioning::Failed(_) => "Failed",
        Provisioning::Deleting => "Deleting",
    }
}

/// Six characters: the number in a Uniform set, a hash in a Flexible set.
fn computer_name(frame: &RenderContext<'_>, shape: &Shape, vm: &InstanceView) -> String {
    if let Some(given) = document::text(&shape.profile, "/osProfile/computerName") {
        return given.to_owned();
    }
    match vm.id.0.parse::<u64>() {
        Ok(number) if !frame.flexible => format!("{}{}", shape.prefix, base36(number)),
        _ => format!("{}{}", shape.prefix, base36(hash(&vm.id.0) % 36_u64.pow(6))),
    }
}

/// The id of the VM under its set, or as a resource of its own.
pub(super) fn id(frame: &RenderContext<'_>, vm: &str) -> String {
    if frame.flexible {
        let (subscription, group) = (frame.subscription, frame.group);
        format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{vm}"
        )
    } else {
        format!("{}/virtualMachines/{vm}", frame.set_id.as_deref().unwrap_or_default())
    }
}

pub(super) fn vm(
    frame: &RenderContext<'_>,
    shape: &Shape,
    vm: &InstanceView,
    etag: u64,
    with_view: bool,
) -> VmTemplate {
    let id = id(frame, &vm.id.0);
    let name = match frame.flexible {
        true => vm.id.to_string(),
        false => format!("{}_{}", frame.set_name, vm.id),
    };
    VmTemplate {
        name,
        kind: match frame.flexible {
            true => "Microsoft.Compute/virtualMachines",
            false => "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        },
        location: frame.location.to_owned(),
        tags: (frame.flexible && !vm.installed.tags.is_empty()).then(|| json!(vm.installed.tags)),
        instance_id: (!frame.flexible).then(|| vm.id.to_string()),
        sku: (!frame.flexible).then(|| json!({ "name": vm.installed.vm_size, "tier": "Standard" })),
        properties: properties(frame, shape, vm, &id, with_view),
        resources: resources(frame, shape, &id),
        zones: vm.zone.map(|zone| [zone.to_string()]),
        etag: format!("\"{etag}\""),
        id,
    }
}

fn properties(
    frame: &RenderContext<'_>,
    shape: &Shape,
    vm: &InstanceView,
    id: &str,
    with_view: bool,
) -> Properties {
    let uniform = !frame.flexible;
    let nics = shape.part("/networkProfile/networkInterfaceConfigurations");
    let nic = document::text(&nics, "/0/name").unwrap_or("nic");
    let definition = if vm.customised { "VirtualMachine" } else { "VirtualMachineScaleSet" };
    let mut os = shape.part("/osProfile");
    document::put(&mut os, &["computerName"], json!(computer_name(frame, shape, vm)));
    if let Some(os) = os.as_object_mut() {
        os.remove("computerNamePrefix");
    }
    Properties {
        latest_model_applied: vm.latest_model_applied,
        model_definition_applied: uniform.then_some(definition),
        network_profile_configuration: match uniform {
            true => json!({ "networkInterfaceConfigurations": nics }),
            false => Value::Null,
        },
        hardware_profile: json!({ "vmSize": vm.installed.vm_size }),
        resilient_vm_deletion_status: uniform.then_some("Disabled"),
        // A VM resource names its set. The schema has no such property under the path of the set.
        virtual_machine_scale_set: frame
            .set_id
            .as_ref()
            .filter(|_| frame.path == VmPath::OfGroup)
            .map(|id| json!({ "id": id })),
        storage_profile: storage(frame, shape, vm),
        os_profile: os,
        network_profile: match shape.part("/networkProfile/networkInterfaces") {
            Value::Null => json!({ "networkInterfaces":
                [{ "id": interface_id(frame, vm, id, nic) }] }),
            given => json!({ "networkInterfaces": given }),
        },
        provisioning_state: provisioning(vm.provisioning),
        vm_id: vm.vm_text.to_string(),
        time_created: rfc3339(vm.created),
        priority: match vm.priority {
            VmPriority::Regular => None,
            VmPriority::Spot(_) => Some("Spot"),
        },
        // A VM resource has no such property: Azure shows it only under the path of the set.
        protection_policy: vm.protection.filter(|_| frame.path == VmPath::OfSet).map(|p| {
            json!({ "protectFromScaleIn": p.scale_in, "protectFromScaleSetActions": p.set_actions })
        }),
        instance_view: with_view.then(|| view(frame, shape, vm)),
    }
}

/// The interface of a Flexible set's VM is a resource of its own.
fn interface_id(frame: &RenderContext<'_>, vm: &InstanceView, id: &str, nic: &str) -> String {
    if !frame.flexible {
        return format!("{id}/networkInterfaces/{nic}");
    }
    format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/networkInterfaces/{}",
        frame.subscription,
        frame.group,
        super::interfaces::flexible_name(nic, &vm.vm_text)
    )
}

/// As in the model, with the version that is really on the disk.
fn storage(frame: &RenderContext<'_>, shape: &Shape, vm: &InstanceView) -> Value {
    let mut image = shape.image.clone();
    document::put(
        &mut image,
        &["exactVersion"],
        json!(exact_version(&shape.image, &vm.installed.image, &vm.exact_image)),
    );
    let disk = disk_name(frame, vm);
    let mut os_disk = shape.part("/storageProfile/osDisk");
    document::put(&mut os_disk, &["name"], json!(disk));
    // A set may omit disks; each VM still has one.
    if os_disk.get("createOption").is_none() {
        document::put(&mut os_disk, &["createOption"], json!("FromImage"));
    }
    let disk_id = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute/disks/{disk}",
        frame.subscription, frame.group
    );
    document::put(&mut os_disk, &["managedDisk", "id"], json!(disk_id));
    json!({ "imageReference": image, "osDisk": os_disk, "dataDisks": [] })
}

fn disk_name(frame: &RenderContext<'_>, vm: &InstanceView) -> String {
    let hex = guid_of(&format!("{}/{}", vm.vm_text, vm.exact_image)).0;
    if vm.own_model {
        return format!("{}_OsDisk_1_{hex:032x}", vm.id);
    }
    format!("{0}_{0}_{1}_OS__1_{hex:032x}", frame.set_name, vm.id)
}

/// `exact`: the version on the disk, as the world names it. If it is the image itself, the reference holds the version.
pub(super) fn exact_version(image: &Value, installed: &str, exact: &str) -> String {
    if exact != installed {
        return exact.to_owned();
    }
    let version = document::text(image, "/version").filter(|v| !v.eq_ignore_ascii_case("latest"));
    let of_id = document::text(image, "/id").and_then(|id| id.rsplit_once("/versions/"));
    version.or(of_id.map(|(_, version)| version)).unwrap_or("1.0.0").to_owned()
}

fn resources(frame: &RenderContext<'_>, shape: &Shape, id: &str) -> Option<Vec<Value>> {
    let one = |extension: &Value| {
        let name = document::text(extension, "/name").unwrap_or_default();
        let mut properties = extension.get("properties").cloned().unwrap_or_default();
        document::put(&mut properties, &["provisioningState"], json!("Succeeded"));
        json!({ "name": name, "id": format!("{id}/extensions/{name}"), "location": frame.location,
            "type": "Microsoft.Compute/virtualMachines/extensions", "properties": properties })
    };
    let all: Vec<Value> = shape.extensions.iter().map(one).collect();
    (!all.is_empty()).then_some(all)
}

fn status(code: impl Into<String>, level: &'static str, shown: &'static str) -> StatusRow {
    StatusRow { code: code.into(), level, shown, message: None, time: None }
}

/// Provisioning first, power second.
pub(super) fn statuses(vm: &InstanceView) -> Vec<StatusRow> {
    let since = vm.health_since.unwrap_or(vm.created);
    let first = match vm.provisioning {
        Provisioning::Creating => status("ProvisioningState/creating", "Info", "Creating"),
        Provisioning::Updating => status("ProvisioningState/updating", "Info", "Updating"),
        Provisioning::Succeeded => {
            status("ProvisioningState/succeeded", "Info", "Provisioning succeeded")
        }
        Provisioning::Deleting => status("ProvisioningState/deleting", "Info", "Deleting"),
        Provisioning::Failed(code) => StatusRow {
            message: Some(format!("{code} for VM '{}'.", vm.id)),
            ..status(format!("ProvisioningState/failed/{code}"), "Error", "Provisioning failed")
        },
    };
    let power = match vm.power {
        Power::None => None,
        Power::Starting => Some(("starting", "VM starting")),
        Power::Running => Some(("running", "VM running")),
        Power::Stopping => Some(("stopping", "VM stopping")),
        Power::Stopped => Some(("stopped", "VM stopped")),
        Power::Deallocating => Some(("deallocating", "VM deallocating")),
        Power::Deallocated => Some(("deallocated", "VM deallocated")),
    };
    let power = power.map(|(code, shown)| status(format!("PowerState/{code}"), "Info", shown));
    [Some(StatusRow { time: Some(rfc3339(since)), ..first }), power].into_iter().flatten().collect()
}

/// What the VM agent reports exists only once it runs.
pub(super) fn view(frame: &RenderContext<'_>, shape: &Shape, vm: &InstanceView) -> ViewKind {
    let since = rfc3339(vm.health_since.unwrap_or(vm.created));
    let agent_runs = vm.power == Power::Running && vm.health != Some(GuestHealth::Initializing);
    let ready = json!({ "code": "ProvisioningState/succeeded", "level": "Info",
        "displayStatus": "Ready", "message": "Guest Agent is running", "time": since });
    let not_ready = json!({ "code": "ProvisioningState/Unavailable", "level": "Warning",
        "displayStatus": "Not Ready", "message": "VM status blob is found but not yet populated.",
        "time": since });
    let agent = json!({
        "vmAgentVersion": if agent_runs { "2.11.1.12" } else { "Unknown" },
        "statuses": [if agent_runs { ready } else { not_ready }],
    });
    let health = vm.health.map(|health| {
        let (code, level, shown) = match health {
            GuestHealth::Initializing => ("initializing", "Info", "The VM is initializing"),
            GuestHealth::Healthy => ("healthy", "Info", "The VM is reporting itself as healthy"),
            GuestHealth::Unhealthy => (
                "unhealthy",
                "Warning",
                "The VM is reporting itself as unhealthy or is unreachable",
            ),
            GuestHealth::Unknown => ("unknown", "Warning", "The VM health is not known"),
        };
        json!({ "status": { "code": format!("HealthState/{code}"), "level": level,
            "displayStatus": shown, "time": since } })
    });
    let number = hash(&vm.vm_text);
    ViewKind {
        placement_group_id: (!frame.flexible)
            .then(|| guid_of(frame.set_id.as_deref().unwrap_or_default()).to_string()),
        platform_update_domain: (!frame.flexible).then_some(number % 5),
        platform_fault_domain: Some(number / 5 % 5),
        computer_name: agent_runs.then(|| computer_name(frame, shape, vm)),
        os_name: agent_runs.then_some("ubuntu"),
        os_version: agent_runs.then_some("24.04"),
        vm_agent: (vm.power != Power::None).then_some(agent),
        disks: vec![json!({ "name": disk_name(frame, vm), "statuses": [{
            "code": "ProvisioningState/succeeded", "level": "Info",
            "displayStatus": "Provisioning succeeded", "time": since }] })],
        extensions: if agent_runs { extensions(shape, &since) } else { Vec::new() },
        hyper_v_generation: "V2",
        vm_health: health,
        statuses: statuses(vm),
    }
}

fn extensions(shape: &Shape, since: &str) -> Vec<Value> {
    let one = |extension: &Value| {
        let part = |pointer: &str| document::text(extension, pointer).unwrap_or_default();
        let kind = format!("{}.{}", part("/properties/publisher"), part("/properties/type"));
        json!({ "name": part("/name"), "type": kind,
            "typeHandlerVersion": part("/properties/typeHandlerVersion"),
            "statuses": [{ "code": "ProvisioningState/succeeded", "level": "Info",
                "displayStatus": "Provisioning succeeded", "time": since }] })
    };
    shape.extensions.iter().map(one).collect()
}
