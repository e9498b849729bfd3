//! Checks of one pool: its set, its machines, quota, health, and other actors on the set.

use std::sync::Arc;

use super::check::Check;
use super::cluster;
use super::hooks;
use super::rights::{self, KnownPermissions, Right};
use crate::adapters::azure::path::SetPath;
use crate::adapters::azure::{Anatomy, ApiVersioned, HealthSource};
use crate::daemon::trouble::{Trouble, TroubleCause};
use crate::daemon::{CloudReader, CloudReading};
use crate::model::autoscaler::Autoscaler;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::inventory::{
    AUTOSCALE_SETTINGS, LOCKS, Lock, NODES, Orchestration, PlatformFeature, SetReading,
};
use crate::model::owner::{OWNER_TAG, OwnerTag};
use crate::model::plan::Quota;
use crate::model::policy::{HealthPolicy, Owner, PlatformFeatures, Policy};
use crate::model::quantity::counted;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolChecks {
    pub pool: PoolName,
    pub set: ScaleSetId,
    pub checks: Vec<Check>,
    /// All required permissions, held or not.
    pub rights: Vec<Right>,
}

impl CloudReader {
    pub(super) async fn examine_pool(
        &self,
        policy: &Arc<Policy>,
        known: &mut KnownPermissions,
    ) -> PoolChecks {
        let (set, pool) = (policy.scale_set.clone(), policy.name.clone());
        let anatomy = match self.anatomy(policy).await {
            Ok(anatomy) => anatomy,
            Err(trouble) => {
                let forbidden = trouble.cause == TroubleCause::NotPermitted;
                let mut checks = vec![of_trouble("scaleSet", trouble)];
                let mut rights = Vec::new();
                if forbidden {
                    rights = self.rights(policy, None, known).await;
                    checks.extend(rights::checks(&rights, known));
                }
                return PoolChecks { pool, set, checks, rights };
            }
        };
        let mut checks = vec![seen(&anatomy)];
        let looked = self.look(policy).await;
        match &looked {
            Ok(looked) => checks.extend(machines(looked)),
            Err(trouble) => checks.push(of_trouble("machines", trouble.clone())),
        }
        let rights = self.rights(policy, Some(&anatomy), known).await;
        checks.extend(rights::checks(&rights, known));
        let picture = looked.as_ref().ok();
        checks.push(quota(policy, picture, &anatomy));
        checks.extend(platform_features(policy, picture, &anatomy));
        checks.extend(picture.into_iter().flat_map(locks));
        checks.extend(picture.map(owner));
        checks.push(health(policy, &anatomy));
        checks.extend(self.balancers(policy, &anatomy).await);
        checks.extend(picture.and_then(|looked| cluster::nodes(policy, looked)));
        checks.extend(hooks::check(&policy.drain.hooks));
        checks.push(etag(policy, picture, &anatomy));
        PoolChecks { pool, set, checks, rights }
    }
}

fn of_trouble(name: &'static str, trouble: Trouble) -> Check {
    let Trouble { cause, say, next } = trouble;
    let next = match cause {
        TroubleCause::NotPermitted => "see the permissions below".to_owned(),
        _ => next,
    };
    Check::finding(name, say).next(next)
}

fn seen(anatomy: &Anatomy) -> Check {
    let kind = match anatomy.orchestration {
        Orchestration::Uniform => "Uniform",
        Orchestration::Flexible => "Flexible",
    };
    let state = anatomy.state.as_deref().unwrap_or("unknown");
    let capacity = anatomy.capacity.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let size = anatomy.size.as_deref().unwrap_or("mixed sizes");
    let say = format!("{kind} in {}, capacity {capacity}, {size}, {state}", anatomy.location);
    if state.eq_ignore_ascii_case("Failed") {
        // The daemon judges each machine by itself, so this alone blocks nothing.
        return Check::note("scaleSet", format!("{say}: its last operation failed"))
            .next("`az vmss get-instance-view` tells why; machines that are bad because of it are seen one by one");
    }
    Check::fine("scaleSet", say)
}

fn machines(looked: &CloudReading) -> Vec<Check> {
    let count = counted(looked.snapshot.machines.len(), "machine");
    let listing = match looked.snapshot.set.complete {
        true => Check::fine("machines", format!("{count} listed, none left out")),
        false => {
            Check::finding("machines", format!("{count} listed, and the listing is not complete"))
                .next("Poolkeeper does nothing to a pool that it cannot read completely; try again")
        }
    };
    let told = [AUTOSCALE_SETTINGS, LOCKS, NODES];
    let gaps = looked.gaps.iter().filter(|gap| !told.contains(&&*gap.what));
    let gaps = gaps.map(|gap| Check::unknown("machines", format!("{}: {}", gap.what, gap.why)));
    std::iter::once(listing).chain(gaps).collect()
}

fn quota(policy: &Policy, looked: Option<&CloudReading>, anatomy: &Anatomy) -> Check {
    let desired = policy.desired(anatomy.capacity.unwrap_or(0));
    let surge = policy.limits(desired).surge;
    let Some(Quota { family, cores_left, cores_each }) =
        looked.and_then(|looked| looked.snapshot.facts.quota.as_ref())
    else {
        let say = match &anatomy.size {
            Some(size) => format!("what is left for {size} could not be read"),
            None => "machines of several sizes: no single quota tells what is left".to_owned(),
        };
        return Check::unknown("quota", say)
            .next("see the permissions above; `az vm list-usage` shows the quota");
    };
    let fits = cores_left.checked_div(*cores_each).unwrap_or(u32::MAX);
    let is = looked.map_or(0, |looked| looked.snapshot.machines.len() as u32);
    let wanted = (desired + surge).saturating_sub(is);
    let say = format!(
        "{} of {family} left, room for {} of {cores_each} cores; {wanted} may be needed ({surge} as surge)",
        counted(*cores_left as usize, "core"),
        counted(fits as usize, "machine")
    );
    if fits < wanted {
        let next = format!(
            "request more {family} quota in {}, or lower maxSurge and allow maxUnavailable",
            anatomy.location
        );
        return Check::finding("quota", say).next(next);
    }
    Check::fine("quota", say)
}

const PLATFORM_FEATURES: &str = "platformFeatures";

/// Other actors on the set, and the command that switches each one off.
fn acting(
    policy: &Policy,
    autoscaler: Option<&Autoscaler>,
    anatomy: &Anatomy,
) -> Vec<(String, String)> {
    let path = SetPath::parse(&policy.scale_set).ok();
    let (group, name) = path.map(|path| (path.group, path.name)).unwrap_or_default();
    let set = |what: &str| format!("az vmss update -g {group} -n {name} --set {what}");
    let mut acting: Vec<(String, String)> = Vec::new();
    let mut acts = |say: &str, off: String| acting.push((say.to_owned(), off));
    if anatomy.automatic_os_upgrade {
        let off = set("upgradePolicy.automaticOSUpgradePolicy.enableAutomaticOSUpgrade=false");
        acts("automatic OS upgrade is on: Azure replaces disks by itself", off);
    }
    if !anatomy.upgrade_mode.eq_ignore_ascii_case("Manual") {
        let off = set("upgradePolicy.mode=Manual");
        let say = match anatomy.upgrade_mode.eq_ignore_ascii_case("Rolling") {
            true => {
                "the upgrade mode is Rolling: Azure rolls out each change of the model by itself"
            }
            false => {
                "the upgrade mode is Automatic: Azure updates machines at once when the model changes"
            }
        };
        acts(say, off);
    }
    if anatomy.automatic_repairs {
        let off = set("automaticRepairsPolicy.enabled=false");
        acts("automatic repairs are on: Azure replaces unhealthy machines by itself", off);
    }
    if anatomy.overprovision {
        let off = set("overprovision=false");
        acts(
            "overprovisioning is on: Azure creates more machines than requested and deletes the rest",
            off,
        );
    }
    if anatomy.zone_rebalancing {
        let off = set("resiliencyPolicy.automaticZoneRebalancingPolicy.enabled=false");
        acts("zone rebalancing is on: Azure moves machines between zones", off);
    }
    if anatomy.spot_restore {
        let off = set("spotRestorePolicy.enabled=false");
        acts("spot restore is on: Azure brings evicted machines back by itself", off);
    }
    if let Some(autoscaler) = autoscaler {
        let id = &autoscaler.setting;
        let off = format!("az monitor autoscale update --ids {id} --enabled false");
        let bounds = bounds_now(autoscaler);
        let name = autoscaler.name();
        acts(&format!("the autoscale setting {name} writes the capacity of this set{bounds}"), off);
    }
    acting
}

fn bounds_now(found: &Autoscaler) -> String {
    found.bounds.as_ref().map_or_else(String::new, |bounds| format!(", now {bounds}"))
}

/// The autoscaler that the pool file accepts, and what a rollout does with it.
fn beside(policy: &Policy, found: &Autoscaler) -> Check {
    let bounds = bounds_now(found);
    let during = match policy.suspends_autoscaler() {
        true => "a rollout switches it off and puts it back",
        false => "a rollout goes no higher than its maximum",
    };
    let name = found.name();
    let say = format!(
        "the autoscale setting {name} sets the size, as the pool file accepts{bounds}; {during}"
    );
    Check::fine(PLATFORM_FEATURES, say)
}

fn platform_features(
    policy: &Policy,
    looked: Option<&CloudReading>,
    anatomy: &Anatomy,
) -> Vec<Check> {
    let gap = looked.and_then(|l| l.gaps.iter().find(|gap| &*gap.what == AUTOSCALE_SETTINGS));
    let set = looked.map(|looked| &looked.snapshot.set);
    let is_unknown = set.is_none_or(SetReading::hides_autoscaler);
    let accepted = set.and_then(|set| policy.accepted_autoscaler(set));
    let autoscaler = set.and_then(|set| set.autoscaler.as_ref());
    let autoscaler = autoscaler.filter(|found| found.enabled && accepted.is_none());
    let warns = policy.platform_features == PlatformFeatures::Warn;
    let mut checks: Vec<Check> = acting(policy, autoscaler, anatomy)
        .into_iter()
        .map(|(say, off)| match warns {
            true => Check::note(PLATFORM_FEATURES, say)
                .next(format!("the pool says `platformFeatures: warn`; off: {off}")),
            false => {
                Check::finding(PLATFORM_FEATURES, format!("{say}, and this pool refuses that"))
                    .next(format!("{off}; or write `platformFeatures: warn` into the pool file"))
            }
        })
        .collect();
    checks.extend(accepted.map(|found| beside(policy, found)));
    if is_unknown {
        let why = gap.map_or("the set was not listed", |gap| &gap.why);
        checks.push(
            Check::unknown(
                PLATFORM_FEATURES,
                format!("autoscale settings could not be read: {why}"),
            )
            .next("allow Microsoft.Insights/autoscaleSettings/read at the subscription"),
        );
    }
    if checks.is_empty() {
        checks
            .push(Check::fine(PLATFORM_FEATURES, "none: no Azure feature acts on this scale set"));
    }
    checks
}

/// Each lock that covers the set or one of its machines.
fn locks(looked: &CloudReading) -> Vec<Check> {
    const NAME: &str = "locks";
    let check = |lock: &Lock| {
        let next = format!("az lock delete --ids {}", lock.id);
        match lock.machine() {
            Some(_) => Check::note(NAME, format!("{lock} protects that machine")).next(next),
            None => {
                Check::finding(NAME, format!("{lock} protects every machine of the set")).next(next)
            }
        }
    };
    let mut checks: Vec<Check> = looked.snapshot.set.locks.iter().map(check).collect();
    match looked.gaps.iter().find(|gap| &*gap.what == LOCKS) {
        Some(gap) => checks.push(
            Check::unknown(NAME, format!("locks could not be read: {}", gap.why))
                .next("allow Microsoft.Authorization/locks/read at the resource group"),
        ),
        None if checks.is_empty() => {
            checks.push(Check::fine(NAME, "none on the set, on what contains it, or on a machine"));
        }
        None => {}
    }
    checks
}

/// The owner tag on the set. Doctor has no store, so it cannot say whether the tag is our own.
fn owner(looked: &CloudReading) -> Check {
    const NAME: &str = "owner";
    let Some(value) = looked.snapshot.set.owner() else {
        return Check::fine(NAME, "no store has put its tag on the scale set");
    };
    let say = match OwnerTag::parse(value) {
        Some(OwnerTag { store, since }) => {
            format!("store {store} owns the scale set since {since}, as its tag says")
        }
        None => format!("the tag `{OWNER_TAG}` says `{value}`, which no store wrote"),
    };
    Check::note(NAME, say)
        .next("a Poolkeeper with another store begins nothing here before `take-over`")
}

fn health(policy: &Policy, anatomy: &Anatomy) -> Check {
    const NAME: &str = "health";
    let wants = policy.health == HealthPolicy::ApplicationHealth;
    match &anatomy.health {
        HealthSource::Extension(name) => {
            Check::fine(NAME, format!("the Application Health extension tells it ({name})"))
        }
        HealthSource::Probe if !wants => {
            Check::fine(NAME, "a load balancer's probe tells it")
        }
        _ if wants => Check::finding(NAME, "`health: {source: applicationHealth}` needs the Application Health extension, which the model lacks")
            .next("add the extension to the model (Microsoft.ManagedServices, ApplicationHealthLinux or ApplicationHealthWindows)"),
        _ => Check::note(NAME, "neither the Application Health extension nor a probe: a machine counts as ready once Azure has provisioned it")
            .next("add the extension, so that a machine that boots but does not serve is noticed"),
    }
}

fn etag(policy: &Policy, looked: Option<&CloudReading>, anatomy: &Anatomy) -> Check {
    const NAME: &str = "etag";
    match anatomy.versioned {
        ApiVersioned::InBody => {
            return Check::fine(NAME, "the scale set's etag protects capacity changes");
        }
        ApiVersioned::InHeader => {
            return Check::fine(
                NAME,
                "the scale set's etag, shown as a header, protects capacity changes",
            );
        }
        ApiVersioned::No => {}
    }
    let autoscaled = looked.is_some_and(|looked| {
        looked.snapshot.set.platform_features.contains(&PlatformFeature::Autoscale)
    });
    if policy.owner == Owner::ScaleSet || autoscaled {
        return Check::finding(NAME, "the scale set has no etag, and another client writes its capacity: a capacity change would overwrite that, so it waits")
            .next("suspend what writes the capacity while machines are replaced");
    }
    Check::note(NAME, "the scale set has no etag: Poolkeeper reads it again before each capacity change, but another writer can still overtake it")
        .next("let no other client write the capacity")
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::{self, Finding, Fine, Note, Unknown};
    use super::*;
    use crate::model::autoscaler::{AutoscalerBounds, AutoscalerPolicy, DuringRollout};
    use crate::model::ids::{PoolName, ScaleSetId};
    use crate::model::policy::Draft;

    fn policy(change: impl FnOnce(&mut Draft)) -> Policy {
        let set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let mut draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(set));
        change(&mut draft);
        Policy::build(draft).unwrap()
    }

    fn quiet() -> Anatomy {
        Anatomy {
            orchestration: Orchestration::Uniform,
            location: "westeurope".into(),
            size: Some("Standard_D2s_v5".into()),
            capacity: Some(3),
            zones: Vec::new(),
            state: Some("Succeeded".into()),
            versioned: ApiVersioned::No,
            upgrade_mode: "manual".into(),
            automatic_os_upgrade: false,
            automatic_repairs: false,
            overprovision: false,
            zone_rebalancing: false,
            spot_restore: false,
            health: HealthSource::None,
            linked: Vec::new(),
            backends: Vec::new(),
        }
    }

    fn autoscaler() -> Autoscaler {
        Autoscaler {
            setting: "/subscriptions/s/resourceGroups/rg/providers/microsoft.insights/autoscalesettings/web-scale".into(),
            enabled: true,
            bounds: Some(AutoscalerBounds { profile: "all".into(), minimum: 2, maximum: 8 }),
            document: None,
        }
    }

    #[test]
    fn an_accepted_autoscaler_is_told_with_what_a_rollout_does() {
        let of = |during| {
            let accepts = policy(|draft| {
                draft.owner = Owner::ScaleSet;
                draft.autoscaler = Some(AutoscalerPolicy { during, setting: None });
            });
            let check = beside(&accepts, &autoscaler());
            assert!(check.outcome == Fine && check.say.contains("web-scale sets"), "{check:?}");
            check
                .say
                .split_once("accepts, now 2 to 8 machines (profile all); ")
                .unwrap()
                .1
                .to_owned()
        };
        assert_eq!(of(DuringRollout::Keep), "a rollout goes no higher than its maximum");
        assert_eq!(of(DuringRollout::Suspend), "a rollout switches it off and puts it back");
    }

    #[test]
    fn whatever_acts_beside_us_is_named_with_how_to_stop_it() {
        let loud = Anatomy {
            upgrade_mode: "Automatic".into(),
            automatic_os_upgrade: true,
            automatic_repairs: true,
            overprovision: true,
            zone_rebalancing: true,
            spot_restore: true,
            ..quiet()
        };
        let refuses = policy(|_| {});
        assert!(acting(&refuses, None, &quiet()).is_empty());
        let autoscaler = autoscaler();
        let acting = acting(&refuses, Some(&autoscaler), &loud);
        assert_eq!(acting.len(), 7);
        let (last, others) = acting.split_last().unwrap();
        assert!(others.iter().all(|(_, off)| off.contains("-g rg")), "{acting:?}");
        assert!(last.0.ends_with("of this set, now 2 to 8 machines (profile all)"), "{acting:?}");
        let off =
            format!("az monitor autoscale update --ids {} --enabled false", autoscaler.setting);
        assert_eq!(last.1, off);
        let outcomes = |policy: &Policy| -> Vec<CheckOutcome> {
            platform_features(policy, None, &loud).iter().map(|check| check.outcome).collect()
        };
        // Whether autoscale acts is unknown, because the set was not listed.
        assert_eq!(outcomes(&refuses), [[Finding; 6].as_slice(), &[Unknown]].concat());
        let warns = policy(|draft| draft.platform_features = PlatformFeatures::Warn);
        assert_eq!(outcomes(&warns), [[Note; 6].as_slice(), &[Unknown]].concat());
    }

    #[test]
    fn without_a_version_another_writer_is_a_finding() {
        let of = |owner, versioned| {
            etag(&policy(|draft| draft.owner = owner), None, &Anatomy { versioned, ..quiet() })
                .outcome
        };
        assert_eq!(of(Owner::Pool, ApiVersioned::InBody), Fine);
        assert_eq!(of(Owner::ScaleSet, ApiVersioned::InHeader), Fine);
        assert_eq!(of(Owner::Pool, ApiVersioned::No), Note);
        assert_eq!(of(Owner::ScaleSet, ApiVersioned::No), Finding);
    }

    #[test]
    fn health_is_wanted_as_the_pool_says() {
        let of = |source, found: HealthSource| {
            health(&policy(|draft| draft.health = source), &Anatomy { health: found, ..quiet() })
                .outcome
        };
        let extension = || HealthSource::Extension("h".into());
        assert_eq!(of(HealthPolicy::Auto, extension()), Fine);
        assert_eq!(of(HealthPolicy::ApplicationHealth, extension()), Fine);
        assert_eq!(of(HealthPolicy::Auto, HealthSource::Probe), Fine);
        assert_eq!(of(HealthPolicy::ApplicationHealth, HealthSource::Probe), Finding);
        assert_eq!(of(HealthPolicy::Auto, HealthSource::None), Note);
        assert_eq!(of(HealthPolicy::ApplicationHealth, HealthSource::None), Finding);
    }

    #[test]
    fn a_failed_set_is_told_and_mixed_sizes_have_no_quota() {
        assert_eq!(seen(&Anatomy { state: Some("Failed".into()), ..quiet() }).outcome, Note);
        let mixed = quota(&policy(|_| {}), None, &Anatomy { size: None, ..quiet() });
        assert!(mixed.outcome == Unknown && mixed.say.contains("several sizes"), "{mixed:?}");
    }
}
