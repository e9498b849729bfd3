//! POST actions on a set: batches of its VMs, and its orchestration services.

use serde_json::{Map, Value};

use super::cloud::EmulatedCloud;
use super::members;
use super::operation;
use super::reply::{HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::set::{REBALANCING, REPAIRS};
use crate::world::{
    InstanceId, OperationHandle, PlatformSpec, SetId, SetWrite, WorldChange, WorldRefusal,
};

/// The VMs that a body selects.
#[derive(Debug, PartialEq, Eq)]
enum Which {
    Every,
    These(Vec<InstanceId>),
}

fn which(body: &Map<String, Value>) -> Result<Option<Which>, Rejection> {
    match body.get("instanceIds") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(ids)) => {
            let ids: Option<Vec<&str>> = ids.iter().map(Value::as_str).collect();
            match ids.as_deref() {
                None => Err(not_ids()),
                Some(["*"]) => Ok(Some(Which::Every)),
                Some(ids) => {
                    Ok(Some(Which::These(ids.iter().map(|id| InstanceId::from(*id)).collect())))
                }
            }
        }
        Some(_) => Err(not_ids()),
    }
}

fn not_ids() -> Rejection {
    let text = "The request content was invalid and could not be deserialized: 'instanceIds' is a list of texts.";
    WorldRefusal::new(400, "InvalidRequestContent", text).into()
}

fn required() -> Rejection {
    let text = "Required parameter 'instanceIds' is missing (null).";
    WorldRefusal::new(400, "InvalidParameter", text).target("instanceIds").into()
}

pub(super) fn act(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    action: &str,
) -> HandledRequest {
    match action {
        "delete" => delete(cloud, ask, set),
        "setorchestrationservicestate" => service(cloud, ask, set),
        _ => match members::change(action) {
            Some(change) => batch(cloud, ask, set, change),
            None => Err(members::not_served(ask)),
        },
    }
}

fn done(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    accepted: &OperationHandle,
) -> HandledRequest {
    let place = cloud.place(set)?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, accepted, &scope))
}

fn delete(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, set: SetId) -> HandledRequest {
    let ids = match which(&ask.object_or_none()?)? {
        Some(Which::These(ids)) => ids,
        // `*` is never the id of a VM.
        Some(Which::Every) => vec![InstanceId::from("*")],
        None => return Err(required()),
    };
    let accepted = cloud.world.delete_instances(set, &ids, ask.is_true("forceDeletion"))?;
    done(cloud, ask, set, &accepted)
}

fn batch(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
    change: WorldChange,
) -> HandledRequest {
    let accepted = match which(&ask.object_or_none()?)? {
        None if change == WorldChange::Upgrade => return Err(required()),
        None | Some(Which::Every) => cloud.world.change_every(set, change)?,
        Some(Which::These(ids)) => match change {
            WorldChange::Upgrade => cloud.world.manual_upgrade(set, &ids)?,
            WorldChange::Reimage => cloud.world.reimage(set, &ids)?,
            WorldChange::Start => cloud.world.start(set, &ids)?,
            WorldChange::Restart => cloud.world.restart(set, &ids)?,
            WorldChange::PowerOff => cloud.world.power_off(set, &ids)?,
            WorldChange::Deallocate => cloud.world.deallocate(set, &ids)?,
        },
    };
    done(cloud, ask, set, &accepted)
}

/// Suspends or resumes an orchestration service; its policy keeps what was written.
fn service(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, set: SetId) -> HandledRequest {
    let body = ask.object()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let (service, action) = (text("serviceName").to_ascii_lowercase(), text("action"));
    let known = [REPAIRS, REBALANCING].contains(&service.as_str());
    let suspend = match action.to_ascii_lowercase().as_str() {
        "suspend" if known => true,
        "resume" if known => false,
        _ => {
            let text = "The serviceName or the action of the orchestration service is not known.";
            return Err(WorldRefusal::new(400, "InvalidParameter", text).into());
        }
    };
    let view = cloud.peek(set)?;
    let mut place = cloud.place(set)?.clone();
    if suspend {
        place.suspended.insert(service);
    } else {
        place.suspended.remove(&service);
    }
    let written =
        super::document::meaning(&view.name, &super::document::whole(&view, &place.location))?
            .native;
    let native = PlatformSpec {
        autoscale: view.native.autoscale.clone(),
        repairs: written.repairs.filter(|_| !place.suspended.contains(REPAIRS)),
        rebalance: written.rebalance && !place.suspended.contains(REBALANCING),
        ..PlatformSpec::clone(&view.native)
    };
    let write = SetWrite { native: Some(native), ..SetWrite::default() };
    let accepted = cloud.world.write_set(set, &write, None)?;
    cloud.places.insert(set, place);
    done(cloud, ask, set, &accepted)
}
