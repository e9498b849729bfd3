//! Simulated rolling upgrades of the platform: the latest one, its cancel, and the history of OS upgrades.

use serde_json::{Value, json};

use super::cloud::EmulatedCloud;
use super::document;
use super::instance;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::set;
use super::text::rfc3339;
use crate::world::{Actor, OsUpgrade, RollingStands, RollingView, SetId};

fn code(run: &RollingView) -> &'static str {
    match &run.stands {
        RollingStands::Forward => "RollingForward",
        RollingStands::Cancelled => "Cancelled",
        RollingStands::Completed => "Completed",
        RollingStands::Faulted(_) => "Faulted",
    }
}

/// The properties of a run that both documents share.
fn properties(run: &RollingView) -> Value {
    let mut properties = json!({
        "runningStatus": { "code": code(run), "startTime": rfc3339(run.began) },
        "progress": { "successfulInstanceCount": run.done, "failedInstanceCount": run.failed,
            "inProgressInstanceCount": run.in_progress, "pendingInstanceCount": run.pending },
    });
    if let RollingStands::Faulted(failure) = &run.stands {
        properties["error"] = json!({ "code": failure.code, "message": failure.message });
    }
    properties
}

fn shown(cloud: &EmulatedCloud, set: SetId, properties: &Value) -> Result<Value, Rejection> {
    Ok(json!({ "type": "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades",
        "location": cloud.place(set)?.location, "properties": properties }))
}

/// `{set}/rollingUpgrades/latest`: the current run, or the last one.
pub(super) fn latest(cloud: &mut EmulatedCloud, set: SetId) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let Some(run) = cloud.world.rolling(set) else {
        let text = "The entity was not found in this Azure location.";
        return Err(Rejection::refused(404, "NotFound", text));
    };
    let mut properties = properties(&run);
    properties["policy"] = document::rolling_policy(&run.rolling);
    let (action, at) = run.cancelled.map_or(("Start", run.began), |at| ("Cancel", at));
    properties["runningStatus"]["lastAction"] = json!(action);
    properties["runningStatus"]["lastActionTime"] = json!(rfc3339(at));
    Ok(EmulatorReply::ok(&shown(cloud, set, &properties)?))
}

/// `{set}/rollingUpgrades/cancel`.
pub(super) fn cancel(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
) -> HandledRequest {
    let done = cloud.world.cancel_rolling(set)?;
    let place = cloud.place(set)?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// `{set}/osUpgradeHistory`: newest first. A run that swapped no disk is not an OS upgrade.
pub(super) fn history(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    set: SetId,
) -> HandledRequest {
    cloud.world.neighbour(false)?;
    let mut all = Vec::new();
    for run in cloud.world.rollings(set) {
        let Some(os) = &run.os else { continue };
        let mut properties = properties(&run);
        if let Some(ended) = run.ended {
            properties["runningStatus"]["endTime"] = json!(rfc3339(ended));
        }
        properties["startedBy"] = json!(if os.by == Actor::Native { "Platform" } else { "User" });
        properties["targetImageReference"] = target(os);
        // The emulator never rolls back.
        properties["rollbackInfo"] =
            json!({ "successfullyRolledbackInstanceCount": 0, "failedRolledbackInstanceCount": 0 });
        all.push(shown(cloud, set, &properties)?);
    }
    Ok(set::page(ask, &all))
}

/// The image with the version that goes on the disks.
fn target(os: &OsUpgrade) -> Value {
    let mut image = document::image(&os.image);
    image["version"] = json!(instance::exact_version(&image, &os.image, &os.exact));
    image
}
