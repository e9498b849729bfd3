//! The JSON of a pool that was read from the cloud: the counts, and the parts of the resulting plan.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::live_status::LiveStatus;
use crate::api::v1::API_VERSION;
use crate::api::v1::explanation::object;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::page::PoolFacts;
use crate::cli::text::{count, plain};
use crate::daemon::HealthSource;
use crate::model::action::MachineClass;
use crate::model::autoscaler::Autoscaler;
use crate::model::ids::{BackendPoolId, InstanceId, Zone};
use crate::model::machine::Condition;

/// Parts of the plan stand unchanged beside the facts.
pub(super) fn document(live: &LiveStatus<'_>) -> Value {
    let (seen, anatomy, plan) = (live.seen, live.anatomy, &live.facts.plan);
    let snapshot = &seen.looked.snapshot;
    let set = &snapshot.set;
    let ids = |is: &dyn Fn(&MachineStatus) -> bool| -> Vec<&str> {
        let of = live.facts.machines.iter().filter(|machine| is(machine));
        of.map(|machine| machine.id.as_str()).collect()
    };
    let ill = [Condition::Failed, Condition::Unready, Condition::Stopped, Condition::Unknown];
    let is = |machine: &MachineStatus, class| machine.class() == Some(class);
    let versions = live.versions().into_iter().map(|version| {
        json!({ "revision": version.revision, "name": version.name, "machines": version.machines, "isModel": version.is_model })
    });
    let gaps = seen.looked.gaps.iter().map(|gap| json!({ "what": gap.what, "why": gap.why }));
    let locks = set.locks.iter().map(
        |lock| json!({ "name": lock.name, "level": WordOf(lock.level).word(), "id": lock.id }),
    );
    let names = |features: &[_]| features.iter().map(|of| WordOf(*of).word()).collect::<Vec<_>>();
    json!({
        "apiVersion": API_VERSION,
        "kind": "Status",
        "pool": plan.pool,
        "at": plan.at,
        "message": headline(&live.facts),
        "scaleSet": {
            "id": snapshot.policy.scale_set.as_str(),
            "capacity": set.capacity,
            "revision": set.revision.as_str(),
            "orchestration": WordOf(set.orchestration).word(),
            "location": anatomy.location,
            "vmSize": set.vm_size,
            "spot": set.spot.map(|eviction| WordOf(eviction).word()),
            "priorityMix": set.priority_mix.map(|mix| json!({
                "baseRegularPriorityCount": mix.base_regular,
                "regularPriorityPercentageAboveBase": mix.regular_percent,
            })),
            "zones": set.zones.iter().map(Zone::as_str).collect::<Vec<_>>(),
            "attached": set.attached.iter().map(InstanceId::as_str).collect::<Vec<_>>(),
            "state": anatomy.state,
            "platformFeatures": names(&set.platform_features),
            "platformFeaturesUnknown": names(&set.platform_features_unknown),
            "autoscaler": set.autoscaler.as_ref().map(autoscaler),
            "locks": locks.collect::<Vec<_>>(),
            "loadBalancers": set.backends.iter().map(BackendPoolId::as_str).collect::<Vec<_>>(),
        },
        "judgedByDefaults": seen.meant.by_default,
        "complete": set.complete,
        "gaps": gaps.collect::<Vec<_>>(),
        "machines": live.conditions().into_iter().map(|(name, ids)| (name, ids.len())).collect::<BTreeMap<_, _>>(),
        "versions": versions.collect::<Vec<_>>(),
        "outdated": ids(&|machine| is(machine, MachineClass::Outdated)),
        "failed": ids(&|machine| is(machine, MachineClass::Failed)),
        "unready": ids(&|machine| {
            ill.contains(&machine.condition.0) && !is(machine, MachineClass::Failed)
        }),
        "beingMade": ids(&|machine| machine.condition.0 == Condition::Provisioning),
        "beingDeleted": ids(&|machine| machine.condition.0 == Condition::Deleting),
        "health": match &anatomy.health {
            HealthSource::Extension(_) => "applicationHealth",
            HealthSource::Probe => "probe",
            HealthSource::None => "provisioning",
        },
        "resolved": plan.resolved,
        "actions": plan.actions,
        "holds": plan.holds,
        "estimate": plan.estimate,
        "nextCheckAt": plan.next_check_at,
    })
}

/// One line: the availability of the pool, and what a plan would do.
fn headline(facts: &PoolFacts<'_>) -> String {
    let (plan, numbers) = (&facts.plan, &facts.plan.resolved);
    let acts = plan.actions.iter().map(|action| format!("{} {}", action.verb, object(action)));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let acts = if acts.is_empty() { "do nothing" } else { &acts };
    // Count like the list of failed machines: a machine that is failed and held counts as held.
    let failed = facts.machines.iter().filter(|one| one.class() == Some(MachineClass::Failed));
    let frozen = if facts.is_frozen() { ", and is frozen by the judge" } else { "" };
    format!(
        "{} has {} of {} available, {} outdated, {} failed; a plan would {acts}{frozen}",
        plain(&plan.pool),
        numbers.available,
        count(numbers.desired as usize, "machine"),
        numbers.outdated,
        failed.count()
    )
}

fn autoscaler(found: &Autoscaler) -> Value {
    let bounds = found.bounds.as_ref().map(|bounds| {
        json!({"profile": bounds.profile, "minimum": bounds.minimum, "maximum": bounds.maximum})
    });
    json!({"setting": found.setting, "enabled": found.enabled, "bounds": bounds})
}
