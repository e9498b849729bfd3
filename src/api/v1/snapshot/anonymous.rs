//! A snapshot under substitute names: the plan is the same, with these names in it.
//!
//! Each part names all of its fields, and each key of a pool file is listed or known as harmless, so that a new one
//! cannot slip through.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::input::{ClusterPods, NodePod, SnapshotInput};
use super::names::{NameKind, SubstituteNames};
use crate::api::v1::pool::{read_inside, to_json};
use crate::model::autoscaler::{Autoscaler, AutoscalerBounds};
use crate::model::cluster::PodOwner;
use crate::model::facts::{BudgetFact, Facts, Follow};
use crate::model::ids::{BackendPoolId, InstanceId, NodeName, VmId};
use crate::model::inventory::{Lock, ModelFields, SetReading};
use crate::model::machine::{DeleteRequest, Machine, MachineHold, Overrides};
use crate::model::owner::{OWNER_TAG, OwnerTag};
use crate::model::policy::Policy;

/// The same snapshot with substitutes for the names for pools, subscriptions, resource groups, machines, nodes, pods, budgets and
/// all else that people name. `None`: the pool cannot be read under these names.
pub fn anonymous(snapshot: &SnapshotInput) -> Option<SnapshotInput> {
    let mut names = SubstituteNames::default();
    renamed(snapshot, Arc::clone(&snapshot.policy), &mut names);
    pool(&snapshot.policy, &mut names);
    names.substitute();
    let text = pool(&snapshot.policy, &mut names);
    let policy = read_inside(&text).ok()?;
    Some(renamed(snapshot, Arc::new(policy), &mut names))
}

fn renamed(
    snapshot: &SnapshotInput,
    policy: Arc<Policy>,
    names: &mut SubstituteNames,
) -> SnapshotInput {
    let SnapshotInput { set, machines, facts, cluster, .. } = snapshot;
    SnapshotInput {
        policy,
        set: scale_set(set, names),
        machines: machines.iter().map(|of| machine(of, names)).collect(),
        facts: of_facts(facts, names),
        cluster: cluster.as_ref().map(|of| pods(of, names)),
        ..snapshot.clone()
    }
}

/// Where a pool file has names, and of what. `*`: any key of a map.
const POOL_NAMES: &[(&str, PoolText)] = {
    use NameKind::{Cluster, Gate, Namespace, Outside, Pool, Profile, Query, Value};
    use PoolText::{Id, Image, Of};
    &[
        ("name", Of(Pool)),
        ("scaleSet", Id),
        ("cluster", Of(Cluster)),
        ("replicas.profiles[].name", Of(Profile)),
        ("replicas.profiles[].metric.server", Of(Outside)),
        ("replicas.profiles[].metric.query", Of(Query)),
        ("replicas.profiles[].share.of[]", Of(Pool)),
        ("model.image", Image),
        ("model.image.follow", Image),
        ("model.tags.*", Of(Value)),
        ("rollout.checkpoints[].gates[]", Of(Gate)),
        ("gates[].name", Of(Gate)),
        ("gates[].prometheus.server", Of(Outside)),
        ("gates[].prometheus.query", Of(Query)),
        ("gates[].http.endpoint", Of(Outside)),
        ("gates[].command.run", Of(Outside)),
        ("notifications[].webhook", Of(Outside)),
        ("drain.loadBalancer[]", Id),
        ("drain.hooks.before", Of(Outside)),
        ("drain.hooks.after", Of(Outside)),
        ("drain.rules[].match.namespace", Of(Namespace)),
        ("drain.rules[].match.labels.*", Of(Value)),
        ("scaleDown.gray.gates[]", Of(Gate)),
        ("autoscaler.setting", Id),
    ]
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolText {
    Of(NameKind),
    Id,
    Image,
}

/// The pool file as JSON.
fn pool(policy: &Policy, names: &mut SubstituteNames) -> String {
    let mut document: Value = serde_json::from_str(&to_json(policy)).unwrap_or_default();
    rename(&mut document, "", names);
    document.to_string()
}

fn rename(value: &mut Value, path: &str, names: &mut SubstituteNames) {
    match value {
        Value::Object(keys) => {
            let is_free =
                POOL_NAMES.iter().any(|(known, _)| known.strip_suffix(".*") == Some(path));
            for (key, value) in keys {
                let key = if is_free { "*" } else { key.as_str() };
                let dot = if path.is_empty() { "" } else { "." };
                rename(value, &format!("{path}{dot}{key}"), names);
            }
        }
        Value::Array(items) => {
            for item in items {
                rename(item, &format!("{path}[]"), names);
            }
        }
        Value::String(text) => {
            let Some((_, what)) = POOL_NAMES.iter().find(|(known, _)| *known == path) else {
                return;
            };
            *text = match what {
                PoolText::Of(kind) => names.of(*kind, text),
                // A word, such as `auto`.
                PoolText::Id if !text.starts_with('/') => return,
                PoolText::Id => names.of_id(text),
                PoolText::Image => names.of_image(text),
            };
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn scale_set(set: &SetReading, names: &mut SubstituteNames) -> SetReading {
    let SetReading {
        attached,
        autoscaler,
        locks,
        backends,
        model,
        model_rest,
        revision,
        capacity,
        etag,
        orchestration,
        zones,
        read_at,
        complete,
        busy,
        platform_features,
        platform_features_unknown,
        terminate_notice,
        spot,
        priority_mix,
        vm_size,
    } = set;
    let bounds = |of: &AutoscalerBounds, names: &mut SubstituteNames| AutoscalerBounds {
        profile: names.of(NameKind::Profile, &of.profile).into(),
        ..of.clone()
    };
    let mut locks: Vec<Lock> = locks.iter().map(|of| lock(of, names)).collect();
    locks.sort_unstable();
    let id = |id: &BackendPoolId| BackendPoolId::new(names.of_id(id.as_str()));
    let mut backends: Vec<BackendPoolId> = backends.iter().map(id).collect();
    backends.sort_unstable();
    SetReading {
        attached: attached.iter().map(|id| instance(id, names)).collect(),
        autoscaler: autoscaler.as_ref().map(|of| Autoscaler {
            setting: names.of_id(&of.setting).into(),
            enabled: of.enabled,
            bounds: of.bounds.as_ref().map(|of| bounds(of, names)),
            document: None,
        }),
        locks,
        backends,
        model: model.as_ref().map(|of| fields(of, names)),
        model_rest: values(model_rest, names),
        revision: revision.clone(),
        capacity: *capacity,
        etag: etag.clone(),
        orchestration: *orchestration,
        zones: zones.clone(),
        read_at: *read_at,
        complete: *complete,
        busy: busy.clone(),
        platform_features: platform_features.clone(),
        platform_features_unknown: platform_features_unknown.clone(),
        terminate_notice: *terminate_notice,
        spot: *spot,
        priority_mix: *priority_mix,
        vm_size: vm_size.clone(),
    }
}

fn lock(of: &Lock, names: &mut SubstituteNames) -> Lock {
    let Lock { level, name, id } = of;
    let name = names.of(NameKind::Resource, name).into();
    Lock { level: *level, name, id: names.of_id(id).into() }
}

fn fields(of: &ModelFields, names: &mut SubstituteNames) -> ModelFields {
    let ModelFields { image, vm_size, tags } = of;
    ModelFields {
        image: image.as_ref().map(|image| names.of_image(image).into()),
        vm_size: vm_size.clone(),
        tags: values(tags, names),
    }
}

/// Keys stay. The owner tag says only which store owns the set, in letters of chance.
fn values(
    of: &BTreeMap<Box<str>, Box<str>>,
    names: &mut SubstituteNames,
) -> BTreeMap<Box<str>, Box<str>> {
    let mut value = |key: &str, value: &str| -> Box<str> {
        let is_owner = key.eq_ignore_ascii_case(OWNER_TAG) && OwnerTag::parse(value).is_some();
        if is_owner { value.into() } else { names.of(NameKind::Value, value).into() }
    };
    of.iter().map(|(key, text)| (key.clone(), value(key, text))).collect()
}

fn instance(id: &InstanceId, names: &mut SubstituteNames) -> InstanceId {
    InstanceId::new(names.of(NameKind::Machine, id.as_str()))
}

fn node(name: &NodeName, names: &mut SubstituteNames) -> NodeName {
    NodeName::new(names.of(NameKind::Node, name.as_str()))
}

fn machine(of: &Machine, names: &mut SubstituteNames) -> Machine {
    let Machine {
        id,
        vm,
        node: name,
        joined,
        marks,
        zone,
        created,
        imaged,
        first_seen,
        updated,
        revision,
        evidence,
        condition,
        since,
        claimed_since,
        before_gap,
        ever_available,
        lifecycle,
        lifecycle_since,
        unreachable_since,
        protection,
        missed,
        workloads,
    } = of;
    Machine {
        id: instance(id, names),
        vm: vm.as_ref().map(|vm| VmId::new(names.of(NameKind::Vm, vm.as_str()))),
        node: name.as_ref().map(|name| node(name, names)),
        joined: *joined,
        marks: marks.as_ref().map(|of| Box::new(overrides(of, names))),
        zone: zone.clone(),
        created: *created,
        imaged: *imaged,
        first_seen: *first_seen,
        updated: *updated,
        revision: revision.clone(),
        evidence: *evidence,
        condition: *condition,
        since: *since,
        claimed_since: *claimed_since,
        before_gap: *before_gap,
        ever_available: *ever_available,
        lifecycle: *lifecycle,
        lifecycle_since: *lifecycle_since,
        unreachable_since: *unreachable_since,
        protection: *protection,
        missed: *missed,
        workloads: *workloads,
    }
}

fn overrides(of: &Overrides, names: &mut SubstituteNames) -> Overrides {
    let Overrides { delete, hold } = of;
    let mut person = |by: &str, why: &str| {
        let by = if by.is_empty() { String::new() } else { names.of(NameKind::Person, by) };
        let why = if why.is_empty() { String::new() } else { names.of(NameKind::Reason, why) };
        (by.into(), why.into())
    };
    Overrides {
        delete: delete.as_ref().map(|DeleteRequest { by, why, now }| {
            let (by, why) = person(by, why);
            DeleteRequest { by, why, now: *now }
        }),
        hold: hold.as_ref().map(|MachineHold { by, why }| {
            let (by, why) = person(by, why);
            MachineHold { by, why }
        }),
    }
}

/// Those of a pool that is seen for the first time.
fn of_facts(facts: &Facts, names: &mut SubstituteNames) -> Facts {
    let Facts {
        budgets,
        machine_budgets,
        follow,
        quota,
        clock_ahead,
        gates: _,
        drains: _,
        witnesses: _,
        metrics: _,
        pools: _,
        budgets_unread: _,
        nodes_unseen: _,
        autoscaler_removes: _,
        nodes_anew: _,
        runs_on: _,
        sign_refused: _,
        node_undeleted: _,
        keeper: _,
    } = facts;
    let mut budgets: Vec<BudgetFact> = budgets
        .iter()
        .map(|of| BudgetFact { name: names.of_budget(&of.name).into(), ..of.clone() })
        .collect();
    budgets.sort_by(|one, other| one.name.cmp(&other.name));
    let mut of_machines = BTreeMap::new();
    for (id, budgets) in machine_budgets {
        of_machines.insert(instance(id, names), budget_names(budgets, names));
    }
    Facts {
        budgets,
        machine_budgets: of_machines,
        follow: follow
            .as_ref()
            .map(|Follow { image, at }| Follow { image: names.of_image(image).into(), at: *at }),
        quota: quota.clone(),
        clock_ahead: *clock_ahead,
        ..Facts::default()
    }
}

/// The names of budgets, in order: that of their namespaces need not be that of both.
fn budget_names(budgets: &[Box<str>], names: &mut SubstituteNames) -> Vec<Box<str>> {
    let mut all: Vec<Box<str>> = budgets.iter().map(|name| names.of_budget(name).into()).collect();
    all.sort_unstable();
    all
}

fn pods(of: &ClusterPods, names: &mut SubstituteNames) -> ClusterPods {
    let mut all = BTreeMap::new();
    for (name, pods) in &of.0 {
        let mut pods: Vec<NodePod> = pods.iter().map(|of| pod(of, names)).collect();
        pods.sort_unstable();
        all.insert(node(name, names), pods);
    }
    ClusterPods(all)
}

fn pod(of: &NodePod, names: &mut SubstituteNames) -> NodePod {
    let NodePod { namespace, name, owner, ready, budgets } = of;
    NodePod {
        namespace: names.of(NameKind::Namespace, namespace).into(),
        name: names.of(NameKind::Pod, name).into(),
        owner: match owner {
            PodOwner::Bare => PodOwner::Bare,
            PodOwner::DaemonSet(name) => {
                PodOwner::DaemonSet(names.of(NameKind::Owner, name).into())
            }
            PodOwner::Controller { kind, name } => PodOwner::Controller {
                kind: kind.clone(),
                name: names.of(NameKind::Owner, name).into(),
            },
        },
        ready: *ready,
        budgets: budget_names(budgets, names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::pool::file_schema;

    /// Texts of a pool file that no person makes up.
    const HARMLESS: &[&str] = &[
        "gates[].prometheus.fail",
        "gates[].prometheus.pass",
        "model.vmSize",
        "replicas.profiles[].cron.end",
        "replicas.profiles[].cron.start",
        "replicas.profiles[].cron.timeZone",
        "rollout.schedule[].cron",
        "rollout.schedule[].timeZone",
        "windows.allow[].cron",
        "windows.allow[].from",
        "windows.allow[].timeZone",
        "windows.allow[].until",
        "windows.deny[].cron",
        "windows.deny[].from",
        "windows.deny[].timeZone",
        "windows.deny[].until",
    ];

    /// The paths at which a pool file takes a text that is no word of a list, no duration and no percentage.
    fn texts(schema: &Value, path: &str, found: &mut Vec<String>) {
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        let measured = pattern.contains("([0-9]+ms)") || pattern.ends_with("%$");
        let is_word = schema.get("enum").is_some() || schema.get("const").is_some();
        if schema["type"] == "string" && !is_word && !measured {
            found.push(path.to_owned());
        }
        let dot = if path.is_empty() { "" } else { "." };
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            texts(inner, &format!("{path}{dot}{key}"), found);
        }
        if schema["additionalProperties"].is_object() {
            texts(&schema["additionalProperties"], &format!("{path}.*"), found);
        }
        texts_of_items(schema, path, found);
        for either in schema["anyOf"].as_array().into_iter().flatten() {
            texts(either, path, found);
        }
    }

    fn texts_of_items(schema: &Value, path: &str, found: &mut Vec<String>) {
        if schema["items"].is_object() {
            texts(&schema["items"], &format!("{path}[]"), found);
        }
    }

    #[test]
    fn each_text_of_a_pool_file_is_renamed_or_harmless() {
        let mut found = Vec::new();
        texts(&file_schema(), "", &mut found);
        found.sort();
        found.dedup();
        let renamed = POOL_NAMES.iter().map(|(path, _)| *path);
        let mut known: Vec<&str> = HARMLESS.iter().copied().chain(renamed).collect();
        known.sort_unstable();
        assert_eq!(found, known);
    }
}
