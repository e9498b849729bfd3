//! What is asked of a set by POST: batches of its VMs, and its native services.

use serde_json::{Map, Value};

use super::ask::Ask;
use super::cloud::Cloud;
use super::members;
use super::operation;
use super::reply::{Done, Turned};
use super::set::{REBALANCING, REPAIRS};
use crate::world::{Accepted, Change, InstanceId, Native, Refusal, SetId, SetWrite};

/// Which VMs a body means.
#[derive(Debug, PartialEq, Eq)]
enum Which {
    Every,
    These(Vec<InstanceId>),
}

fn which(body: &Map<String, Value>) -> Result<Option<Which>, Turned> {
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

fn not_ids() -> Turned {
    let text = "The request content was invalid and could not be deserialized: 'instanceIds' is a list of texts.";
    Refusal::new(400, "InvalidRequestContent", text).into()
}

fn required() -> Turned {
    let text = "Required parameter 'instanceIds' is missing (null).";
    let mut refusal = Refusal::new(400, "InvalidParameter", text);
    refusal.target = Some("instanceIds".to_owned());
    refusal.into()
}

pub(super) fn act(cloud: &mut Cloud, ask: &Ask, set: SetId, action: &str) -> Done {
    match action {
        "delete" => delete(cloud, ask, set),
        "setorchestrationservicestate" => service(cloud, ask, set),
        _ => match members::change(action) {
            Some(change) => batch(cloud, ask, set, change),
            None => Err(members::not_served(ask)),
        },
    }
}

fn done(cloud: &Cloud, ask: &Ask, set: SetId, accepted: &Accepted) -> Done {
    let place = cloud.place(set)?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, accepted, &scope))
}

fn delete(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let ids = match which(&ask.object_or_none()?)? {
        Some(Which::These(ids)) => ids,
        // An asterisk is no id of any VM.
        Some(Which::Every) => vec![InstanceId::from("*")],
        None => return Err(required()),
    };
    let accepted = cloud.world.delete_instances(set, &ids, ask.is_true("forceDeletion"))?;
    done(cloud, ask, set, &accepted)
}

fn batch(cloud: &mut Cloud, ask: &Ask, set: SetId, change: Change) -> Done {
    let accepted = match which(&ask.object_or_none()?)? {
        None if change == Change::Upgrade => return Err(required()),
        None | Some(Which::Every) => cloud.world.change_every(set, change)?,
        Some(Which::These(ids)) => match change {
            Change::Upgrade => cloud.world.manual_upgrade(set, &ids)?,
            Change::Reimage => cloud.world.reimage(set, &ids)?,
            Change::Start => cloud.world.start(set, &ids)?,
            Change::Restart => cloud.world.restart(set, &ids)?,
            Change::PowerOff => cloud.world.power_off(set, &ids)?,
            Change::Deallocate => cloud.world.deallocate(set, &ids)?,
        },
    };
    done(cloud, ask, set, &accepted)
}

/// Suspends or resumes a native actor; what its policy says stays written.
fn service(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let body = ask.object()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    let (service, action) = (text("serviceName").to_ascii_lowercase(), text("action"));
    let known = [REPAIRS, REBALANCING].contains(&service.as_str());
    let suspend = match action.to_ascii_lowercase().as_str() {
        "suspend" if known => true,
        "resume" if known => false,
        _ => {
            let text = "The serviceName or the action of the orchestration service is not known.";
            return Err(Refusal::new(400, "InvalidParameter", text).into());
        }
    };
    let view = cloud.peek(set)?;
    let mut place = cloud.place(set)?.clone();
    if suspend {
        place.suspended.insert(service);
    } else {
        place.suspended.remove(&service);
    }
    let written = super::document::meaning(&super::document::whole(&view, &place.location))?.native;
    let native = Native {
        autoscale: view.native.autoscale,
        repairs: written.repairs.filter(|_| !place.suspended.contains(REPAIRS)),
        rebalance: written.rebalance && !place.suspended.contains(REBALANCING),
        ..Native::clone(&view.native)
    };
    let write = SetWrite { native: Some(native), ..SetWrite::default() };
    let accepted = cloud.world.write_set(set, &write, None)?;
    cloud.places.insert(set, place);
    done(cloud, ask, set, &accepted)
}
