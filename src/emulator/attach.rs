//! VMs with a configuration of their own: created for a Flexible set, attached to it and detached from it. A detached
//! VM stands alone until a client attaches it again or deletes it.

use serde_json::{Value, json};

use super::cloud::{EmulatedCloud, NamedResource};
use super::document;
use super::flexible;
use super::instance::{self, Shapes, VmPath};
use super::members;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use crate::world::{InstanceId, SetId, SetOrchestration, SetView, VmSpec, WorldRefusal};

const SET: &str = "/properties/virtualMachineScaleSet";
const MORE: &str = "For more information, see https://aka.ms/vmo/attachdetach.";

fn refused(code: &str, text: String) -> Rejection {
    WorldRefusal::new(409, code, text).into()
}

fn not_changed() -> Rejection {
    let text = "Changing property 'virtualMachineScaleSet.id' is not allowed.";
    WorldRefusal::new(409, "PropertyChangeNotAllowed", text)
        .target("virtualMachineScaleSet.id")
        .into()
}

/// The set that a body names, if it accepts VMs of this group and zone.
fn wanted(
    cloud: &mut EmulatedCloud,
    named: NamedResource<'_>,
    id: &str,
    zone: Option<u8>,
) -> Result<(SetId, SetView), Rejection> {
    let found = flexible::set_by_id(cloud, id);
    let Some(set) = found else {
        cloud.world.neighbour(true)?;
        let text = format!(
            "The Virtual Machine Scale Set '{id}' referenced by the Virtual Machine does not exist."
        );
        return Err(Rejection::refused(404, "NotFound", text));
    };
    let (place, view) = (cloud.place(set)?.clone(), cloud.peek(set)?);
    let invalid = |target: &str, text: String| -> Rejection {
        WorldRefusal::new(400, "InvalidParameter", text).target(target).into()
    };
    if view.orchestration == SetOrchestration::Uniform {
        return Err(refused(
            "OperationNotAllowed",
            format!(
                "This operation is not allowed because referenced Virtual Machine Scale Set '{id}' does not have \
                 orchestration mode set to 'Flexible'."
            ),
        ));
    }
    if !place.group.eq_ignore_ascii_case(named.group) {
        let text = "The Virtual Machine and its Virtual Machine Scale Set must be in the same resource group.";
        return Err(invalid("virtualMachineScaleSet.id", text.to_owned()));
    }
    let fits = match zone {
        None => view.zones.is_empty(),
        Some(zone) => view.zones.contains(&zone),
    };
    if !fits {
        let text = format!(
            "The Virtual Machine must be in an availability zone of the Virtual Machine Scale Set '{}', and in none where it has none.",
            view.name
        );
        return Err(invalid("zones", text));
    }
    if view.single_placement {
        return Err(refused(
            "VmssDoesNotSupportAttachingWithSpg",
            format!(
                "Virtual Machine Scale Set '{}' does not support attaching an existing Virtual Machine to it because the \
                 Virtual Machine Scale Set has single placement group set to true or does not have single placement \
                 group explicitly set to false. Please see https://aka.ms/vmo/attachdetach for more information.",
                view.name
            ),
        ));
    }
    Ok((set, view))
}

fn has_many_domains(view: &SetView) -> bool {
    let whole = document::whole(view, "");
    let count = whole.pointer("/properties/platformFaultDomainCount").and_then(Value::as_u64);
    count.is_some_and(|count| count > 1)
}

fn zone(body: &Value) -> Option<u8> {
    document::text(body, "/zones/0").and_then(|zone| zone.parse().ok())
}

/// Creates a VM for a set; a VM without a set is not supported.
pub(super) fn put(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    let body = Value::Object(ask.object()?);
    let Some(id) = document::text(&body, &format!("{SET}/id")).filter(|id| !id.is_empty()) else {
        return Err(members::not_served(ask));
    };
    document::location(&body)?;
    let (set, _) = wanted(cloud, ask.named(), id, zone(&body))?;
    let mut profile = body["properties"].clone();
    let size = document::text(&profile, "/hardwareProfile/vmSize").unwrap_or_default().to_owned();
    if size.is_empty() {
        return Err(document::missing("hardwareProfile.vmSize"));
    }
    let priority = document::priority(&profile);
    if let Some(profile) = profile.as_object_mut() {
        profile.retain(|key, _| OWN.contains(&key.as_str()));
    }
    let model = document::model(&body, &profile, &size, true)?;
    cloud.spell_image(&model.image);
    let name = InstanceId::from(ask.named().name);
    let spec = VmSpec { name: name.clone(), model, zone: zone(&body), priority };
    let done = cloud.world.put_vm(set, &spec, !cloud.switches.attach_leaves_capacity)?;
    let (place, reply) = (cloud.place(set)?, EmulatorReply::json(201, &shown(cloud, set, &name)?));
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::with_resource(cloud, ask, reply, &done, &scope))
}

/// Keys of such a VM that are stored as requested; the rest is computed.
const OWN: [&str; 3] = ["storageProfile", "osProfile", "networkProfile"];

fn shown(cloud: &EmulatedCloud, set: SetId, id: &InstanceId) -> Result<Value, Rejection> {
    let gone =
        || Rejection::refused(404, "NotFound", "The entity was not found in this Azure location.");
    let vm = cloud.world.peek_instance(set, id).ok_or_else(gone)?;
    let (place, view) = (cloud.place(set)?, cloud.peek(set)?);
    let frame = members::frame(place, &view, VmPath::OfGroup, false);
    let etag = cloud.vm_etag(vm.vm);
    Ok(json!(instance::vm(&frame, Shapes::default().of(&vm.installed), &vm, etag, false)))
}

/// A write of an existing VM. Only its set may change.
pub(super) fn write(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    id: &InstanceId,
) -> HandledRequest {
    let mut body = Value::Object(ask.object()?);
    let to = body["properties"].as_object_mut().and_then(|p| p.remove("virtualMachineScaleSet"));
    let before = shown(cloud, set, id)?;
    let mut after = before.clone();
    document::merge(&mut after, &body);
    if after != before {
        return Err(members::not_served(ask));
    }
    let from = cloud.place(set)?.clone();
    let target = match &to {
        None => return same(cloud, &before),
        Some(to) => to.get("id").filter(|id| !id.is_null()),
    };
    let leaves = cloud.switches.attach_leaves_capacity;
    let (to, counts) = match target {
        None if from.alone => return same(cloud, &before),
        None => {
            let view = cloud.peek(set)?;
            if has_many_domains(&view) {
                let text = format!(
                    "Virtual Machine Scale Set '{}' does not support detaching an existing Virtual Machine from it because \
                     the Virtual Machine Scale Set has more than 1 fault domains. {MORE}",
                    view.name
                );
                return Err(refused("OperationNotAllowed", text));
            }
            (cloud.alone(&from), (!leaves, false))
        }
        Some(target) => {
            let target = target.as_str().unwrap_or_default();
            let now = document::text(&before, &format!("{SET}/id"));
            match now {
                Some(now) if now.eq_ignore_ascii_case(target) => return same(cloud, &before),
                Some(_) => return Err(not_changed()),
                None => {}
            }
            let (to, view) = wanted(cloud, ask.named(), target, zone(&before))?;
            if has_many_domains(&view) {
                let text = format!(
                    "Referenced Virtual Machine Scale Set '{}' does not support attaching an existing Virtual Machine to \
                     it because the Virtual Machine Scale Set has more than 1 fault domains. {MORE}",
                    view.name
                );
                return Err(refused("VmssDoesNotSupportAttachingExistingVMMultiFD", text));
            }
            (to, (false, !leaves))
        }
    };
    let done = cloud.world.move_vm((set, to), id, counts)?;
    let mut body = shown(cloud, to, id)?;
    document::put(&mut body, &["properties", "provisioningState"], json!("Updating"));
    let scope = operation::scope(&from.subscription, &from.location);
    Ok(operation::with_resource(cloud, ask, EmulatorReply::ok(&body), &done, &scope))
}

fn same(cloud: &mut EmulatedCloud, shown: &Value) -> HandledRequest {
    cloud.world.neighbour(true)?;
    Ok(EmulatorReply::ok(shown))
}
