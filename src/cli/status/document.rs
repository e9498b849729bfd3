//! The JSON of a status: the counts, and the parts of the resulting plan.

use serde::Serialize;
use serde_json::{Value, json};

use super::facts::{SetHealth, headline};
use crate::api::v1::plan::ActionKeys;
use crate::api::v1::resources::When;
use crate::api::v1::resources::plans::PlanNumbers;
use crate::api::v1::resources::pools::EstimateStatus;
use crate::api::v1::{self, API_VERSION};
use crate::cli::exit::{CommandFailure, Exit};
use crate::daemon::HealthSource;
use crate::model::ids::{InstanceId, Zone};
use crate::model::inventory::{Eviction, LockLevel, Orchestration};

/// Parts of the plan stand unchanged beside the facts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, H> {
    #[serde(flatten)]
    facts: Value,
    resolved: PlanNumbers,
    actions: Vec<ActionKeys<'a>>,
    holds: H,
    estimate: EstimateStatus,
    next_check_at: When,
}

pub(super) fn document(standing: &SetHealth<'_>) -> Result<String, CommandFailure> {
    let (input, seen) = (standing.seen.looked.snapshot.input(), standing.seen);
    let plan = v1::plan::document(&input, &seen.decision.planned);
    let document = Document {
        facts: facts(standing),
        resolved: plan.resolved,
        actions: plan.actions,
        holds: plan.holds,
        estimate: plan.estimate,
        next_check_at: plan.next_check_at,
    };
    serde_json::to_string(&document)
        .map_err(|error| CommandFailure::new(Exit::Internal, "internal", error.to_string()))
}

fn facts(standing: &SetHealth<'_>) -> Value {
    let (seen, anatomy) = (standing.seen, standing.anatomy);
    let snapshot = &seen.looked.snapshot;
    let versions = standing.versions.iter().map(|version| {
        json!({ "revision": version.revision, "name": version.name, "machines": version.machines, "isModel": version.is_model })
    });
    let gaps = seen.looked.gaps.iter().map(|gap| json!({ "what": gap.what, "why": gap.why }));
    let locks = snapshot.set.locks.iter().map(|lock| {
        let level = match lock.level {
            LockLevel::CanNotDelete => "canNotDelete",
            LockLevel::ReadOnly => "readOnly",
        };
        json!({ "name": lock.name, "level": level, "id": lock.id })
    });
    json!({
        "apiVersion": API_VERSION,
        "kind": "Status",
        "pool": snapshot.policy.name.as_str(),
        "at": snapshot.now.to_string(),
        "message": headline(seen),
        "scaleSet": {
            "id": snapshot.policy.scale_set.as_str(),
            "capacity": snapshot.set.capacity,
            "revision": snapshot.set.revision.as_str(),
            "orchestration": match snapshot.set.orchestration {
                Orchestration::Uniform => "Uniform",
                Orchestration::Flexible => "Flexible",
            },
            "location": anatomy.location,
            "vmSize": snapshot.set.vm_size,
            "spot": snapshot.set.spot.map(|eviction| match eviction {
                Eviction::Deallocate => "deallocate",
                Eviction::Delete => "delete",
            }),
            "priorityMix": snapshot.set.priority_mix.map(|mix| json!({
                "baseRegularPriorityCount": mix.base_regular,
                "regularPriorityPercentageAboveBase": mix.regular_percent,
            })),
            "zones": snapshot.set.zones.iter().map(Zone::as_str).collect::<Vec<_>>(),
            "attached": snapshot.set.attached.iter().map(InstanceId::as_str).collect::<Vec<_>>(),
            "state": anatomy.state,
            "platformFeatures": standing.platform_features,
            "platformFeaturesUnknown": standing.platform_features_unknown,
            "locks": locks.collect::<Vec<_>>(),
        },
        "judgedByDefaults": seen.meant.by_default,
        "complete": snapshot.set.complete,
        "gaps": gaps.collect::<Vec<_>>(),
        "machines": standing.conditions,
        "versions": versions.collect::<Vec<_>>(),
        "outdated": standing.outdated,
        "failed": standing.failed,
        "unready": standing.unready,
        "beingMade": standing.making,
        "beingDeleted": standing.leaving,
        "health": match &anatomy.health {
            HealthSource::Extension(_) => "applicationHealth",
            HealthSource::Probe => "probe",
            HealthSource::None => "provisioning",
        },
    })
}
