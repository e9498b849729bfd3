//! The permissions that managing one pool needs, their scopes, and whether we hold them.

use std::collections::BTreeMap;

use super::check::Check;
use crate::adapters::azure::path::SetPath;
use crate::adapters::azure::{Anatomy, Permissions};
use crate::daemon::CloudReader;
use crate::model::drain::BalancerChoice;
use crate::model::ids::BackendPoolId;
use crate::model::inventory::Orchestration;
use crate::model::policy::{Image, Method, Policy};

/// Permissions by scope, since pools share subscriptions and networks. `Err`: why they cannot be read.
pub(super) type KnownPermissions = BTreeMap<String, Result<Permissions, String>>;

/// A required permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    pub action: &'static str,
    pub scope: String,
    /// What it is for.
    pub what: &'static str,
    /// `None`: unknown.
    pub held: Option<bool>,
}

/// Permissions that every pool needs on its set.
const OF_SET: &[(&str, &str)] = &[
    ("Microsoft.Compute/virtualMachineScaleSets/read", "to see the scale set"),
    ("Microsoft.Compute/virtualMachineScaleSets/write", "to raise the capacity"),
    ("Microsoft.Compute/virtualMachineScaleSets/delete/action", "to delete machines by name"),
];
const LIST: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read";
const LIST_FLEXIBLE: &str = "Microsoft.Compute/virtualMachines/read";
const UPGRADE: &str = "Microsoft.Compute/virtualMachineScaleSets/manualUpgrade/action";
const VERSIONS: &str = "Microsoft.Compute/galleries/images/versions/read";

const WRITE_AUTOSCALE: &str = "Microsoft.Insights/autoscaleSettings/write";

const LOCKS: &str = "Microsoft.Authorization/locks/read";
const TAGS: &str = "Microsoft.Resources/tags/write";

/// Permissions on each backend pool of a load balancer.
const OF_BACKENDS: &[(&str, &str)] = &[
    (
        "Microsoft.Network/loadBalancers/backendAddressPools/read",
        "to see which machines a load balancer sends traffic to",
    ),
    (
        "Microsoft.Network/loadBalancers/backendAddressPools/write",
        "to take machines out of their load balancer before they go; `drain: {loadBalancer: off}` in the pool file takes none out",
    ),
];
const INTERFACES: &str = "Microsoft.Network/networkInterfaces/read";
const SET_INTERFACES: &str = "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read";
const WHOSE_ADDRESS: &str = "to see which machine an address of a load balancer belongs to";
/// Doctor looks at the rules of load balancers; no turn does.
pub(super) const BALANCERS: &str = "Microsoft.Network/loadBalancers/read";

/// Permissions to read from the subscription.
const OF_SUBSCRIPTION: &[(&str, &str)] = &[
    ("Microsoft.Insights/autoscaleSettings/read", "to see who else scales the set"),
    ("Microsoft.Compute/locations/usages/read", "to see the quota"),
    ("Microsoft.Compute/skus/read", "to know what a machine takes from the quota"),
];

/// All permissions that a role must grant to a daemon whose pools use every feature. Sorted.
pub const ROLE: &[&str] = &[
    LOCKS,
    // Doctor reads its own permissions; no turn does.
    "Microsoft.Authorization/permissions/read",
    VERSIONS,
    // Status of long operations.
    "Microsoft.Compute/locations/operations/read",
    "Microsoft.Compute/locations/usages/read",
    "Microsoft.Compute/skus/read",
    // For surplus that is switched off before it goes.
    "Microsoft.Compute/virtualMachineScaleSets/deallocate/action",
    "Microsoft.Compute/virtualMachineScaleSets/delete/action",
    UPGRADE,
    // For backend pools of plain addresses.
    SET_INTERFACES,
    "Microsoft.Compute/virtualMachineScaleSets/read",
    // Reimage: for in-place updates where an upgrade changes nothing and a new disk does. Start: to restore stopped
    // machines.
    "Microsoft.Compute/virtualMachineScaleSets/reimage/action",
    "Microsoft.Compute/virtualMachineScaleSets/start/action",
    LIST,
    "Microsoft.Compute/virtualMachineScaleSets/write",
    "Microsoft.Compute/virtualMachines/deallocate/action",
    // Machines of a Flexible set are separate VM resources.
    LIST_FLEXIBLE,
    "Microsoft.Compute/virtualMachines/reimage/action",
    "Microsoft.Compute/virtualMachines/start/action",
    "Microsoft.Insights/autoscaleSettings/read",
    // For an autoscaler that a rollout switches off and puts back.
    WRITE_AUTOSCALE,
    // To take machines out of their load balancers before they go.
    "Microsoft.Network/loadBalancers/backendAddressPools/read",
    "Microsoft.Network/loadBalancers/backendAddressPools/write",
    BALANCERS,
    INTERFACES,
    // The owner tag, without changing other tags of the set.
    TAGS,
];

impl CloudReader {
    pub(super) async fn rights(
        &self,
        policy: &Policy,
        anatomy: Option<&Anatomy>,
        known: &mut KnownPermissions,
    ) -> Vec<Right> {
        let mut rights = needed(policy, anatomy);
        for right in &mut rights {
            let key = right.scope.to_ascii_lowercase();
            if !known.contains_key(&key) {
                let read = self.azure.permissions(&right.scope).await;
                known.insert(key.clone(), read.map_err(|failed| failed.say.into()));
            }
            let permissions = known.get(&key).and_then(|known| known.as_ref().ok());
            right.held = permissions.map(|permissions| permissions.allow(right.action));
        }
        rights
    }
}

fn needed(policy: &Policy, anatomy: Option<&Anatomy>) -> Vec<Right> {
    let Ok(path) = SetPath::parse(&policy.scale_set) else { return Vec::new() };
    let set = policy.scale_set.as_str().to_owned();
    let subscription = format!("/subscriptions/{}", path.subscription);
    let group = format!("{subscription}/resourceGroups/{}", path.group);
    let right = |action: &'static str, scope: &str, what: &'static str| Right {
        action,
        scope: scope.to_owned(),
        what,
        held: None,
    };
    let mut all: Vec<Right> =
        OF_SET.iter().map(|(action, what)| right(action, &set, what)).collect();
    let flexible = anatomy.is_some_and(|a| a.orchestration == Orchestration::Flexible);
    if flexible {
        all.push(right(LIST_FLEXIBLE, &group, "to list its machines"));
        all.push(right(LIST, &set, "to see which of its machines are protected"));
    } else {
        all.push(right(LIST, &set, "to list its machines"));
    }
    let backends = backends(policy, anatomy);
    let plain = matches!(policy.drain.balancers, BalancerChoice::Pools(_));
    if plain && !flexible && !backends.is_empty() {
        all.push(right(SET_INTERFACES, &set, WHOSE_ADDRESS));
    }
    if flexible && !backends.is_empty() {
        all.push(right(INTERFACES, &group, WHOSE_ADDRESS));
    }
    all.push(right(LOCKS, &group, "to see which locks protect the set and its machines"));
    if policy.tags_owner {
        let what = "to write the owner tag alone; `owner: {tag: off}` in the pool file writes none";
        all.push(right(TAGS, &set, what));
    }
    if policy.rollout.method == Method::Reimage {
        all.push(right(UPGRADE, &set, "to update machines in place"));
    }
    if policy.switches_off() {
        let what = "to switch surplus off (`scaleDown.gray.state: standby`)";
        let action = match flexible {
            true => "Microsoft.Compute/virtualMachines/deallocate/action",
            false => "Microsoft.Compute/virtualMachineScaleSets/deallocate/action",
        };
        all.push(right(action, if flexible { &group } else { &set }, what));
    }
    if policy.suspends_autoscaler() {
        let what = "to switch the autoscaler off for a rollout and put it back (`autoscaler.during: suspend`)";
        all.push(right(WRITE_AUTOSCALE, &subscription, what));
    }
    if let Some(Image::Follow(image)) = &policy.model.image {
        all.push(right(VERSIONS, image, "to follow the gallery image"));
    }
    all.extend(OF_SUBSCRIPTION.iter().map(|(action, what)| right(action, &subscription, what)));
    let linked = anatomy.into_iter().flat_map(|anatomy| &anatomy.linked);
    let linked =
        linked.map(|linked| right(linked.action, &linked.id, "to make machines that use it"));
    let of_pool = |pool: &BackendPoolId| {
        let pool = pool.as_str().to_owned();
        OF_BACKENDS.iter().map(move |(action, what)| right(action, &pool, what))
    };
    // Machines that join a pool and machines that leave it: rights on the same resource.
    let mut others: Vec<Right> = linked.chain(backends.iter().flat_map(of_pool)).collect();
    others.sort_by_key(|right| right.scope.to_ascii_lowercase());
    all.extend(others);
    all
}

/// The backend pools that the pool file wants machines to be taken out of.
pub(super) fn backends<'a>(
    policy: &'a Policy,
    anatomy: Option<&'a Anatomy>,
) -> &'a [BackendPoolId] {
    policy.drain.balancers.pools(anatomy.map_or(&[], |anatomy| &anatomy.backends))
}

/// ARM's list of permissions shows only roles.
const UNSEEN: &str =
    "; deny assignments and conditions of role assignments are not seen by this check";

/// One check for each missing or unknown permission, and one for all that we hold.
pub(super) fn checks(rights: &[Right], known: &KnownPermissions) -> Vec<Check> {
    const NAME: &str = "permissions";
    let held = rights.iter().filter(|right| right.held == Some(true)).count();
    let mut checks = Vec::new();
    let missing: Vec<&Right> = rights.iter().filter(|right| right.held == Some(false)).collect();
    for (n, right) in missing.iter().enumerate() {
        let say = format!("{} is not held, which is needed {}", right.action, right.what);
        let mut check = Check::finding(NAME, say);
        // Permissions of one scope are adjacent, and one role assignment grants them together.
        if missing.get(n + 1).is_none_or(|next| next.scope != right.scope) {
            let all = missing.iter().filter(|other| other.scope == right.scope).count();
            let it = if all == 1 { "it" } else { "them" };
            check = check.next(format!("allow {it} to this identity by a role at {}", right.scope));
        }
        checks.push(check);
    }
    let mut unread: Vec<&str> =
        rights.iter().filter(|right| right.held.is_none()).map(|right| &*right.scope).collect();
    unread.dedup();
    for scope in unread {
        let actions = rights.iter().filter(|right| right.scope == scope);
        let names: Vec<&str> = actions.map(|right| right.action).collect();
        let why = known.get(&scope.to_ascii_lowercase()).and_then(|known| known.as_ref().err());
        let why = why.map_or("", String::as_str);
        let say = format!("what is allowed at {scope} cannot be read: {why}");
        let next = format!(
            "allow Microsoft.Authorization/permissions/read there to have it checked; needed are {}",
            names.join(", ")
        );
        checks.push(Check::unknown(NAME, say).next(next));
    }
    if held > 0 {
        checks.insert(
            0,
            Check::fine(
                NAME,
                format!("{held} of {} that are needed are held{UNSEEN}", rights.len()),
            ),
        );
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::azure::{ApiVersioned, HealthSource, SetLink};
    use crate::model::autoscaler::{AutoscalerPolicy, DuringRollout};
    use crate::model::drain::DrainPolicy;
    use crate::model::ids::{PoolName, ScaleSetId};
    use crate::model::policy::{Draft, Owner};

    #[test]
    fn the_role_allows_all_that_a_pool_may_need() {
        let of_sets = OF_SET.iter().chain(OF_SUBSCRIPTION).chain(OF_BACKENDS);
        let of_sets = of_sets.map(|(action, _)| *action);
        for action in of_sets.chain([
            LIST,
            LIST_FLEXIBLE,
            LOCKS,
            TAGS,
            UPGRADE,
            VERSIONS,
            INTERFACES,
            SET_INTERFACES,
            BALANCERS,
        ]) {
            assert!(ROLE.contains(&action), "{action}");
        }
        assert!(ROLE.contains(&WRITE_AUTOSCALE) && ROLE.is_sorted());
        assert!(!ROLE.iter().any(|action| action.contains('*') || action.ends_with("/delete")));
    }

    #[test]
    fn only_a_pool_that_suspends_needs_to_write_autoscale_settings() {
        let writes = |autoscaler: Option<DuringRollout>| {
            let set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
            let draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(set));
            let autoscaler = autoscaler.map(|during| AutoscalerPolicy { during, setting: None });
            let policy = Policy::build(Draft { owner: Owner::ScaleSet, autoscaler, ..draft });
            let needed = needed(&policy.unwrap(), None);
            needed.iter().any(|right| right.action == WRITE_AUTOSCALE)
        };
        assert!(writes(Some(DuringRollout::Suspend)));
        assert!(!writes(Some(DuringRollout::Keep)) && !writes(None));
    }

    #[test]
    fn only_a_pool_behind_load_balancers_needs_rights_on_them() {
        let set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let of = |balancers: BalancerChoice, flexible: bool, pools: &[&str]| {
            let draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(set));
            let drain = DrainPolicy { balancers, ..draft.drain };
            let policy = Policy::build(Draft { drain, ..draft }).unwrap();
            let anatomy = anatomy(flexible, pools);
            let needed = needed(&policy, Some(&anatomy));
            let network = needed.iter().filter(|right| {
                right.action.starts_with("Microsoft.Network/") || right.action == SET_INTERFACES
            });
            network.map(|right| (right.action, right.scope.clone())).collect::<Vec<_>>()
        };
        let [a, b] = ["/l/backendAddressPools/a", "/l/backendAddressPools/b"];
        let [read, write] = [OF_BACKENDS[0].0, OF_BACKENDS[1].0];
        let both = |pool: &str| [(read, pool.to_owned()), (write, pool.to_owned())];
        let join = |pool: &str| (JOIN, pool.to_owned());
        let auto = of(BalancerChoice::Auto, false, &[a, b]);
        let wanted = [[join(a)].as_slice(), &both(a), &[join(b)], &both(b)].concat();
        assert_eq!(auto, wanted, "the rights of one scope are adjacent");
        assert_eq!(of(BalancerChoice::Auto, false, &[]), []);
        assert_eq!(of(BalancerChoice::Off, true, &[a]), [join(a)]);
        let group = "/subscriptions/s/resourceGroups/rg".to_owned();
        let flexible = of(BalancerChoice::Auto, true, &[a]);
        assert_eq!(flexible[0], (INTERFACES, group));
        let plain = BalancerChoice::Pools(vec![BackendPoolId::new(b)]);
        let wanted = [[(SET_INTERFACES, set.to_owned())].as_slice(), &both(b)].concat();
        assert_eq!(of(plain, false, &[]), wanted);
    }

    const JOIN: &str = "Microsoft.Network/loadBalancers/backendAddressPools/join/action";

    fn anatomy(flexible: bool, pools: &[&str]) -> Anatomy {
        let link = |pool: &&str| SetLink { id: (*pool).into(), action: JOIN };
        Anatomy {
            orchestration: if flexible { Orchestration::Flexible } else { Orchestration::Uniform },
            location: "westeurope".into(),
            size: None,
            capacity: None,
            zones: Vec::new(),
            state: None,
            versioned: ApiVersioned::No,
            upgrade_mode: "Manual".into(),
            automatic_os_upgrade: false,
            automatic_repairs: false,
            overprovision: false,
            zone_rebalancing: false,
            spot_restore: false,
            health: HealthSource::None,
            linked: pools.iter().map(link).collect(),
            backends: pools.iter().map(BackendPoolId::new).collect(),
        }
    }
}
