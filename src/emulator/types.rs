//! The JSON type of each field of a scale set, by Compute's schema. Values that Compute's reader can convert pass: a
//! quoted number, a whole number written as 5.0, an unquoted string.

use serde_json::{Map, Value};

use super::reply::Rejection;
use super::schema::misread;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Object,
    List,
    Whole,
    Flag,
    Text,
}

impl Kind {
    fn takes(self, given: &Value) -> bool {
        match (self, given) {
            (_, Value::Null)
            | (Self::Object, Value::Object(_))
            | (Self::List, Value::Array(_))
            | (Self::Flag, Value::Bool(_))
            | (Self::Text, Value::String(_) | Value::Number(_) | Value::Bool(_)) => true,
            (Self::Whole, Value::Number(number)) => {
                number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            (Self::Whole, Value::String(text)) => text.parse::<i64>().is_ok(),
            (Self::Flag, Value::String(text)) => {
                ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word))
            }
            _ => false,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::List => "array",
            Self::Whole => "integer",
            Self::Flag => "boolean",
            Self::Text => "string",
        }
    }
}

/// Names of members, by required type.
type Members = &'static [(Kind, &'static [&'static str])];

/// Below the document, below `properties`, and below the profile of its VMs.
const PLACES: [(&str, Members); 3] =
    [("", TOP), ("properties", PROPERTIES), ("properties.virtualMachineProfile", PROFILE)];

const TOP: Members = &[
    (Kind::Object, &["sku", "plan", "identity", "properties", "placement", "extendedLocation"]),
    (Kind::Text, &["location", "sku.name", "sku.tier", "identity.type"]),
    (Kind::Text, &["plan.name", "plan.publisher", "plan.product", "plan.promotionCode"]),
    (Kind::Object, &["identity.userAssignedIdentities"]),
    (Kind::Whole, &["sku.capacity"]),
];

const PROPERTIES: Members = &[
    (Kind::Object, &["upgradePolicy", "automaticRepairsPolicy", "virtualMachineProfile"]),
    (Kind::Object, &["additionalCapabilities", "scaleInPolicy", "proximityPlacementGroup"]),
    (Kind::Object, &["hostGroup", "priorityMixPolicy", "spotRestorePolicy", "resiliencyPolicy"]),
    (Kind::Object, &["scheduledEventsPolicy", "skuProfile", "upgradePolicy.rollingUpgradePolicy"]),
    (Kind::Object, &["upgradePolicy.automaticOSUpgradePolicy"]),
    (Kind::List, &["scaleInPolicy.rules", "skuProfile.vmSizes"]),
    (
        Kind::Whole,
        &[
            "platformFaultDomainCount",
            "priorityMixPolicy.baseRegularPriorityCount",
            "priorityMixPolicy.regularPriorityPercentageAboveBase",
            "upgradePolicy.rollingUpgradePolicy.maxBatchInstancePercent",
            "upgradePolicy.rollingUpgradePolicy.maxUnhealthyInstancePercent",
            "upgradePolicy.rollingUpgradePolicy.maxUnhealthyUpgradedInstancePercent",
        ],
    ),
    (Kind::Flag, &["overprovision", "doNotRunExtensionsOnOverprovisionedVMs", "zoneBalance"]),
    (Kind::Flag, &["singlePlacementGroup", "automaticRepairsPolicy.enabled"]),
    (Kind::Flag, &["scaleInPolicy.forceDeletion", "spotRestorePolicy.enabled"]),
    (Kind::Flag, &["upgradePolicy.rollingUpgradePolicy.prioritizeUnhealthyInstances"]),
    (Kind::Flag, &["upgradePolicy.automaticOSUpgradePolicy.enableAutomaticOSUpgrade"]),
    (Kind::Flag, &["upgradePolicy.automaticOSUpgradePolicy.disableAutomaticRollback"]),
    (Kind::Text, &["orchestrationMode", "upgradePolicy.mode", "proximityPlacementGroup.id"]),
    (Kind::Text, &["automaticRepairsPolicy.gracePeriod", "automaticRepairsPolicy.repairAction"]),
    (Kind::Text, &["spotRestorePolicy.restoreTimeout", "skuProfile.allocationStrategy"]),
    (Kind::Text, &["upgradePolicy.rollingUpgradePolicy.pauseTimeBetweenBatches"]),
];

const PROFILE: Members = &[
    (Kind::Object, &["osProfile", "storageProfile", "networkProfile", "securityProfile"]),
    (Kind::Object, &["diagnosticsProfile", "extensionProfile", "billingProfile"]),
    (Kind::Object, &["scheduledEventsProfile", "hardwareProfile", "capacityReservation"]),
    (Kind::Object, &["applicationProfile", "securityPostureReference"]),
    (Kind::Object, &["storageProfile.imageReference", "storageProfile.osDisk"]),
    (
        Kind::Object,
        &["storageProfile.osDisk.managedDisk", "storageProfile.osDisk.diffDiskSettings"],
    ),
    (Kind::Object, &["osProfile.linuxConfiguration", "osProfile.windowsConfiguration"]),
    (Kind::Object, &["networkProfile.healthProbe"]),
    (Kind::List, &["storageProfile.dataDisks", "networkProfile.networkInterfaceConfigurations"]),
    (Kind::List, &["extensionProfile.extensions", "osProfile.secrets"]),
    (Kind::Whole, &["storageProfile.osDisk.diskSizeGB"]),
    (Kind::Flag, &["storageProfile.osDisk.writeAcceleratorEnabled"]),
    (Kind::Text, &["licenseType", "priority", "evictionPolicy", "userData"]),
    (Kind::Text, &["osProfile.computerNamePrefix", "osProfile.adminUsername"]),
    (Kind::Text, &["osProfile.adminPassword", "osProfile.customData"]),
    (Kind::Text, &["storageProfile.imageReference.id", "storageProfile.imageReference.publisher"]),
    (Kind::Text, &["storageProfile.imageReference.offer", "storageProfile.imageReference.sku"]),
    (Kind::Text, &["storageProfile.imageReference.version", "storageProfile.osDisk.caching"]),
    (Kind::Text, &["storageProfile.osDisk.createOption", "storageProfile.osDisk.osType"]),
    (Kind::Text, &["storageProfile.osDisk.managedDisk.storageAccountType"]),
];

/// Checks types; the error names the first wrong field.
pub(super) fn check(body: &Map<String, Value>) -> Result<(), Rejection> {
    let body = Value::Object(body.clone());
    for (place, kinds) in PLACES {
        let Some(place_of) = at(&body, place) else { continue };
        for (kind, paths) in kinds {
            for path in *paths {
                let Some(given) = at(place_of, path).filter(|given| !kind.takes(given)) else {
                    continue;
                };
                let path = format!("{place}.{path}");
                return Err(misread(kind.name(), given, path.trim_start_matches('.')));
            }
        }
    }
    Ok(())
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|word| !word.is_empty()).try_fold(value, |value, word| value.get(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every listed field rejects a value that no reader converts.
    #[test]
    fn no_field_takes_another_type() {
        for (place, kinds) in PLACES {
            for (kind, paths) in kinds {
                for path in *paths {
                    let wrong = match kind {
                        Kind::Object | Kind::List | Kind::Whole | Kind::Flag => json!("many"),
                        Kind::Text => json!({ "a": 1 }),
                    };
                    let whole = format!("{place}.{path}");
                    let words = whole.split('.').filter(|word| !word.is_empty()).rev();
                    let body = words.fold(wrong, |inner, word| json!({ word: inner }));
                    let Value::Object(body) = body else { continue };
                    assert!(check(&body).is_err(), "{whole}");
                }
            }
        }
    }

    #[test]
    fn what_can_be_converted_passes() {
        let body = json!({ "sku": { "capacity": "5", "name": null }, "properties": {
            "overprovision": "False", "platformFaultDomainCount": 1.0,
            "virtualMachineProfile": { "storageProfile": { "imageReference": { "version": 1 } } } } });
        let Value::Object(body) = body else { return };
        assert!(check(&body).is_ok());
    }
}
