//! Derives a machine's condition from its row. Missing information means `Unknown`, never unhealthy.

use super::wire::some;
use super::wire::vm::{ArmInstanceView, InstanceStatus, VmProperties};
use crate::model::machine::{Condition, Protection};
use crate::model::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provisioning {
    Creating,
    Updating,
    Deleting,
    Failed,
    Succeeded,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    Running,
    Starting,
    /// Stopped or stopping, allocated or deallocated.
    Off,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Healthy,
    Initializing,
    /// Unhealthy, or unknown to the probe: Azure's own upgrades also count that as unhealthy.
    Unhealthy,
}

/// The condition, and its start time if Azure reports it.
pub(super) fn condition(properties: &VmProperties<'_>) -> (Condition, Option<Time>) {
    let view = properties.instance_view.as_ref();
    let provisioning = provisioning(properties, view);
    let power = power(view);
    let health = view.and_then(health);
    let since = health.and_then(|(_, since)| since);
    let health = health.map(|(health, _)| health);
    match provisioning {
        Provisioning::Deleting => (Condition::Deleting, None),
        _ if power == Power::Off => (Condition::Stopped, None),
        _ if health == Some(Health::Healthy) => (Condition::Ready, since),
        Provisioning::Failed => (Condition::Failed, None),
        Provisioning::Creating | Provisioning::Updating => (Condition::Provisioning, None),
        _ if power == Power::Starting => (Condition::Provisioning, None),
        Provisioning::Unknown => (Condition::Unknown, None),
        Provisioning::Succeeded => match health {
            Some(Health::Initializing) => (Condition::Provisioning, None),
            Some(_) => (Condition::Unready, since),
            // Without a health signal, a running machine is assumed to serve.
            None if power == Power::Running => (Condition::Ready, None),
            None => (Condition::Unknown, None),
        },
    }
}

pub(super) fn protection(properties: &VmProperties<'_>) -> Protection {
    let Some(policy) = &properties.protection_policy else { return Protection::None };
    let on = |flag: Option<bool>| flag.unwrap_or(false);
    if on(policy.protect_from_scale_set_actions) {
        Protection::All
    } else if on(policy.protect_from_scale_in) {
        Protection::ScaleIn
    } else {
        Protection::None
    }
}

/// When the last operation on the machine succeeded.
pub(super) fn worked_on(properties: &VmProperties<'_>) -> Option<Time> {
    let mut statuses = properties.instance_view.as_ref()?.statuses.iter().flatten();
    let ended = statuses.find(|status| second(status, "ProvisioningState") == Some("succeeded"))?;
    time(ended)
}

fn provisioning(properties: &VmProperties<'_>, view: Option<&ArmInstanceView<'_>>) -> Provisioning {
    let shown = some(properties.provisioning_state.as_ref());
    let told = || of_view(view, "ProvisioningState");
    let Some(word) = shown.or_else(told) else { return Provisioning::Unknown };
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    match () {
        () if is("Succeeded") => Provisioning::Succeeded,
        () if is("Failed") || is("Canceled") => Provisioning::Failed,
        () if is("Deleting") => Provisioning::Deleting,
        () if is("Creating") => Provisioning::Creating,
        () if is("Updating") || is("Migrating") => Provisioning::Updating,
        () => Provisioning::Unknown,
    }
}

fn power(view: Option<&ArmInstanceView<'_>>) -> Power {
    let Some(word) = of_view(view, "PowerState") else { return Power::Unknown };
    let is = |known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    match () {
        () if is(&["running"]) => Power::Running,
        () if is(&["starting"]) => Power::Starting,
        () if is(&["stopping", "stopped", "deallocating", "deallocated"]) => Power::Off,
        () => Power::Unknown,
    }
}

fn health(view: &ArmInstanceView<'_>) -> Option<(Health, Option<Time>)> {
    let status = view.vm_health.as_ref()?.status.as_ref()?;
    let word = second(status, "HealthState")?;
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    let health = match () {
        () if is("healthy") => Health::Healthy,
        () if is("initializing") => Health::Initializing,
        () => Health::Unhealthy,
    };
    Some((health, time(status)))
}

fn of_view<'v>(view: Option<&'v ArmInstanceView<'_>>, kind: &str) -> Option<&'v str> {
    view?.statuses.iter().flatten().find_map(|status| second(status, kind))
}

/// `PowerState/running` has the kind `PowerState` and the value `running`. A third part is ignored.
fn second<'s>(status: &'s InstanceStatus<'_>, kind: &str) -> Option<&'s str> {
    let mut parts = some(status.code.as_ref())?.split('/');
    let same = parts.next().is_some_and(|first| first.eq_ignore_ascii_case(kind));
    parts.next().filter(|_| same)
}

fn time(status: &InstanceStatus<'_>) -> Option<Time> {
    Time::parse(some(status.time.as_ref())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::azure::wire::ArmVm;

    fn of(state: &str, statuses: &[&str], health: Option<&str>) -> Condition {
        let statuses: Vec<_> = statuses.iter().map(|c| serde_json::json!({"code": c})).collect();
        let mut view = serde_json::json!({"statuses": statuses});
        if let Some(health) = health {
            view["vmHealth"] = serde_json::json!({"status":
                {"code": format!("HealthState/{health}"), "time": "2026-03-01T12:00:00+00:00"}});
        }
        let row =
            serde_json::json!({"properties": {"provisioningState": state, "instanceView": view}});
        let text = row.to_string();
        let vm = ArmVm::read(text.as_bytes()).unwrap();
        condition(&vm.properties.unwrap()).0
    }

    #[test]
    fn every_state_has_its_condition() {
        use Condition::{Deleting, Failed, Provisioning, Ready, Stopped, Unknown, Unready};
        let (on, off) = ("PowerState/running", "PowerState/deallocated");
        for (state, power, health, expected) in [
            ("Succeeded", on, None, Ready),
            ("Succeeded", on, Some("healthy"), Ready),
            ("Succeeded", on, Some("Initializing"), Provisioning),
            ("Succeeded", on, Some("unhealthy"), Unready),
            ("Succeeded", on, Some("unknown"), Unready),
            ("Succeeded", "PowerState/starting", None, Provisioning),
            ("Succeeded", off, Some("healthy"), Stopped),
            ("Succeeded", "PowerState/stopping", None, Stopped),
            ("Succeeded", "PowerState/unknown", None, Unknown),
            ("Succeeded", "", None, Unknown),
            ("Creating", on, None, Provisioning),
            ("Creating", on, Some("healthy"), Ready),
            ("Updating", on, None, Provisioning),
            ("Migrating", on, None, Provisioning),
            ("Failed", "", None, Failed),
            ("Failed", on, Some("healthy"), Ready),
            ("Failed", off, None, Stopped),
            ("deleting", on, Some("healthy"), Deleting),
            ("Transmogrifying", on, None, Unknown),
            ("Transmogrifying", on, Some("healthy"), Ready),
        ] {
            assert_eq!(of(state, &[power], health), expected, "{state} {power} {health:?}");
        }
    }

    #[test]
    fn the_view_tells_where_the_property_is_missing() {
        let codes = ["ProvisioningState/failed/OSProvisioningTimedOut", "powerstate/RUNNING"];
        assert_eq!(of("", &codes, None), Condition::Failed);
        assert_eq!(
            of("", &["ProvisioningState/creating/OSProvisioningInProgress"], None),
            Condition::Provisioning
        );
        assert_eq!(
            of("", &["ProvisioningState/succeeded", "PowerState/running"], None),
            Condition::Ready
        );
        assert_eq!(of("", &[], None), Condition::Unknown);
    }
}
