//! Rolling upgrades that the platform plays: the latest one, its cancel, and those that swapped disks before.

use serde_json::{Value, json};

use super::ask::Ask;
use super::cloud::Cloud;
use super::document;
use super::instance;
use super::operation;
use super::reply::{Done, Reply, Turned};
use super::set;
use super::text::rfc3339;
use crate::world::{By, OsUpgrade, RollingStands, RollingView, SetId};

fn code(run: &RollingView) -> &'static str {
    match &run.stands {
        RollingStands::Forward => "RollingForward",
        RollingStands::Cancelled => "Cancelled",
        RollingStands::Completed => "Completed",
        RollingStands::Faulted(_) => "Faulted",
    }
}

/// What both documents say of a run.
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

fn shown(cloud: &Cloud, set: SetId, properties: &Value) -> Result<Value, Turned> {
    Ok(json!({ "type": "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades",
        "location": cloud.place(set)?.location, "properties": properties }))
}

/// `{set}/rollingUpgrades/latest`: the one under way, or the last one.
pub(super) fn latest(cloud: &mut Cloud, set: SetId) -> Done {
    cloud.world.neighbour(false)?;
    let Some(run) = cloud.world.rolling(set) else {
        let text = "The entity was not found in this Azure location.";
        return Err(Turned::refused(404, "NotFound", text));
    };
    let mut properties = properties(&run);
    properties["policy"] = document::rolling_policy(&run.rolling);
    let (action, at) = run.cancelled.map_or(("Start", run.began), |at| ("Cancel", at));
    properties["runningStatus"]["lastAction"] = json!(action);
    properties["runningStatus"]["lastActionTime"] = json!(rfc3339(at));
    Ok(Reply::ok(&shown(cloud, set, &properties)?))
}

/// `{set}/rollingUpgrades/cancel`.
pub(super) fn cancel(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    let done = cloud.world.cancel_rolling(set)?;
    let place = cloud.place(set)?;
    let scope = operation::scope(&place.subscription, &place.location);
    Ok(operation::accepted(cloud, ask, &done, &scope))
}

/// `{set}/osUpgradeHistory`: the newest first. A run that swapped no disk is no OS upgrade.
pub(super) fn history(cloud: &mut Cloud, ask: &Ask, set: SetId) -> Done {
    cloud.world.neighbour(false)?;
    let mut all = Vec::new();
    for run in cloud.world.rollings(set) {
        let Some(os) = &run.os else { continue };
        let mut properties = properties(&run);
        if let Some(ended) = run.ended {
            properties["runningStatus"]["endTime"] = json!(rfc3339(ended));
        }
        properties["startedBy"] = json!(if os.by == By::Native { "Platform" } else { "User" });
        properties["targetImageReference"] = target(os);
        // Nothing is rolled back here.
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
