//! For each field: what rolls, what does not, and what a machine shows of it.

use super::*;
use serde_json::json;

fn set() -> Value {
    json!({
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard", "capacity": 4},
        "zones": ["1", "2"],
        "tags": {"a": "b"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {"/subscriptions/S/id": {"principalId": "p"}}},
        "properties": {
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "timeCreated": "2026-01-01T00:00:00Z",
                "storageProfile": {
                    "imageReference": {"publisher": "P", "offer": "O", "sku": "S", "version": "1.0"},
                    "osDisk": {"createOption": "FromImage", "diskSizeGB": 30},
                    "dataDisks": [{"lun": 0, "diskSizeGB": 10}, {"lun": 1, "diskSizeGB": 20}]
                },
                "osProfile": {"computerNamePrefix": "web", "allowExtensionOperations": true},
                "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "properties": {"subnet": {"id": "/Subscriptions/X"}}}]},
                "extensionProfile": {"extensions": [
                    {"name": "a", "properties": {"typeHandlerVersion": "1.0", "settings": {"Port": 80}}},
                    {"name": "b", "properties": {"typeHandlerVersion": "2.0"}}]},
                "userData": "QUJD"
            }
        }
    })
}

fn revision(set: &Value) -> Revision {
    model(set).revision()
}

fn model(set: &Value) -> ModelParts {
    ModelParts::of(&ArmScaleSet::read(set.to_string().as_bytes()).unwrap())
}

fn put(set: &mut Value, pointer: &str, value: Value) {
    *set.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value;
}

const PROFILE: &str = "/properties/virtualMachineProfile";

#[test]
fn what_makes_machines_differ_changes_the_print() {
    for (pointer, value) in [
        ("/sku/name", json!("Standard_D4s_v3")),
        ("/zones", json!(["1", "2", "3"])),
        ("/identity", json!({"type": "SystemAssigned"})),
        ("/identity/userAssignedIdentities", json!({"/subscriptions/S/other": {}})),
        (&format!("{PROFILE}/storageProfile/imageReference/version"), json!("1.1")),
        (&format!("{PROFILE}/storageProfile/osDisk/diskSizeGB"), json!(64)),
        (&format!("{PROFILE}/storageProfile/dataDisks"), json!([{"lun": 0, "diskSizeGB": 10}])),
        (&format!("{PROFILE}/osProfile/computerNamePrefix"), json!("api")),
        (&format!("{PROFILE}/osProfile/allowExtensionOperations"), json!(false)),
        (&format!("{PROFILE}/networkProfile/networkInterfaceConfigurations/0/name"), json!("nic2")),
        (
            &format!("{PROFILE}/extensionProfile/extensions/0/properties/typeHandlerVersion"),
            json!("1.1"),
        ),
        (
            &format!("{PROFILE}/extensionProfile/extensions/0/properties/settings"),
            json!({"Port": 81}),
        ),
        (&format!("{PROFILE}/userData"), json!("QUJd")),
    ] {
        let mut other = set();
        put(&mut other, pointer, value);
        assert_ne!(revision(&other), revision(&set()), "{pointer}");
    }
}

#[test]
fn what_does_not_changes_nothing() {
    for (pointer, value) in [
        ("/sku/capacity", json!(9)),
        ("/sku/name", json!("STANDARD_D2S_V3")),
        ("/tags", json!({"policy": "put this here"})),
        ("/tags", json!(null)),
        ("/zones", json!(["2", "1"])),
        ("/properties/upgradePolicy", json!({"mode": "Rolling"})),
        (
            "/identity/userAssignedIdentities",
            json!({"/SUBSCRIPTIONS/S/id": {"principalId": "q", "clientId": "c"}}),
        ),
        (&format!("{PROFILE}/timeCreated"), json!("2026-02-02T00:00:00Z")),
        (&format!("{PROFILE}/storageProfile/imageReference/publisher"), json!("p")),
        (
            &format!("{PROFILE}/storageProfile/dataDisks"),
            json!([{"lun": 1, "diskSizeGB": 20}, {"diskSizeGB": 10, "lun": 0}]),
        ),
        (
            &format!(
                "{PROFILE}/networkProfile/networkInterfaceConfigurations/0/properties/subnet/id"
            ),
            json!("/subscriptions/x"),
        ),
        (
            &format!("{PROFILE}/extensionProfile/extensions/1/properties"),
            json!({"typeHandlerVersion": "2.0", "provisioningState": "Succeeded", "protectedSettings": null, "suppressFailures": false, "list": [], "map": {"x": null}}),
        ),
    ] {
        let mut other = set();
        put(&mut other, pointer, value);
        assert_eq!(revision(&other), revision(&set()), "{pointer}");
    }
}

fn row(image: Value, size: &str, flag: Option<bool>) -> (Revision, Evidence) {
    of(&model(&set()), image, size, flag, false)
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
fn of(
    model: &ModelParts,
    image: Value,
    size: &str,
    flag: Option<bool>,
    updated: bool,
) -> (Revision, Evidence) {
    let placed = place(model, &image, size, flag, PastModels { updated, ..PastModels::default() });
    (placed.revision, placed.evidence)
}

fn place(
    model: &ModelParts,
    image: &Value,
    size: &str,
    flag: Option<bool>,
    past: PastModels,
) -> ImagePlacement {
    let row = json!({"sku": {"name": size}, "properties":
        {"latestModelApplied": flag, "storageProfile": {"imageReference": image}}});
    let text = row.to_string();
    model.of_machine(&ArmVm::read(text.as_bytes()).unwrap(), past)
}

const SIZE: &str = "Standard_D2s_v3";

fn image(version: &str) -> Value {
    json!({"publisher": "p", "offer": "o", "sku": "s", "version": version, "exactVersion": version})
}

#[test]
fn a_machine_is_on_the_model_by_what_it_shows_and_the_flag_only_advises() {
    let on = revision(&set());
    assert_eq!(row(image("1.0"), SIZE, Some(true)), (on.clone(), Evidence::Stamp));
    assert_eq!(row(image("1.0"), SIZE, None), (on.clone(), Evidence::Stamp));
    // The flag alone is only advisory, and the head is equal, so a stamp outweighs it.
    let (flagged, evidence) = row(image("1.0"), SIZE, Some(false));
    assert_eq!(evidence, Evidence::LatestModelApplied);
    assert_ne!(flagged, on);
    assert!(crate::model::revision::same_head(&flagged, &on));
    // A different image or size is detected whatever the flag says.
    for (other, size) in [(image("0.9"), SIZE), (image("1.0"), "Standard_D4s_v3")] {
        for flag in [Some(true), Some(false), None] {
            let (revision, evidence) = row(other.clone(), size, flag);
            assert_eq!(evidence, Evidence::Model);
            assert!(!crate::model::revision::same_head(&revision, &on), "{other} {size}");
        }
    }
    // Missing information proves nothing.
    assert_eq!(row(Value::Null, SIZE, Some(true)), (on.clone(), Evidence::LatestModelApplied));
    // Created from "latest", and got exactly this version.
    let latest = json!({"publisher": "P", "offer": "O", "sku": "S", "version": "latest", "exactVersion": "1.0"});
    assert_eq!(row(latest, SIZE, Some(true)), (on, Evidence::LatestModelApplied));
}

#[test]
fn an_update_in_place_is_believed_when_it_ended_after_the_model_was_seen() {
    let on = revision(&set());
    let model = model(&set());
    assert_eq!(of(&model, image("1.0"), SIZE, Some(true), true), (on, Evidence::Model));
    assert_eq!(of(&model, image("1.0"), SIZE, Some(false), true).1, Evidence::LatestModelApplied);
}

#[test]
fn a_model_that_follows_is_met_by_every_version() {
    let gallery =
        "/subscriptions/S/resourceGroups/g/providers/Microsoft.Compute/galleries/G/images/I";
    let mut follows = set();
    put(&mut follows, &format!("{PROFILE}/storageProfile/imageReference"), json!({"id": gallery}));
    let model_of = model(&follows);
    let version = json!({"id": format!("{}/versions/1.2.3", gallery.to_uppercase().replace("/VERSIONS", "/versions"))});
    assert_eq!(
        of(&model_of, version, SIZE, Some(true), false),
        (revision(&follows), Evidence::LatestModelApplied)
    );
    let other = json!({"id": format!("{gallery}2/versions/1.2.3")});
    assert_eq!(of(&model_of, other, SIZE, Some(true), false).1, Evidence::Model);
    let mut latest = set();
    put(&mut latest, &format!("{PROFILE}/storageProfile/imageReference/version"), json!("latest"));
    assert_eq!(
        of(&model(&latest), image("7"), SIZE, Some(true), false),
        (revision(&latest), Evidence::LatestModelApplied)
    );
}

#[test]
fn sets_of_many_sizes_and_sets_without_a_profile_have_prints() {
    let mut mixed = set();
    mixed["properties"]["skuProfile"] = json!({"vmSizes": [{"name": "a"}, {"name": "b"}]});
    mixed["sku"]["name"] = json!("Mix");
    let (revision_of, evidence) = of(&model(&mixed), image("1.0"), "b", None, false);
    assert_eq!((revision_of, evidence), (revision(&mixed), Evidence::Stamp));
    let bare = json!({"sku": {"capacity": 0}});
    assert!(revision(&bare).as_str().starts_with("v1:"));
    assert_eq!(crate::model::revision::scheme(&revision(&bare)), Some(1));
}

#[test]
fn an_upgrade_brings_what_it_can_and_a_new_disk_the_rest() {
    let (model, now) = (model(&set()), PastModels::default());
    let step = |image: Value, flag, past| place(&model, &image, SIZE, flag, past).step;
    assert_eq!(step(image("0.9"), Some(false), now), ReimageStep::Upgrade);
    assert_eq!(step(image("1.0"), Some(false), now), ReimageStep::Upgrade, "extensions, networks");
    // An upgrade has no effect on a machine that is already on the model.
    assert_eq!(step(image("1.0"), Some(true), now), ReimageStep::Reimage);
    assert_eq!(step(image("1.0"), None, now), ReimageStep::Reimage);
    let os = PastModels { older: true, os_older: true, os_alone: true, updated: false };
    assert_eq!(step(image("1.0"), Some(false), os), ReimageStep::Reimage);
    let both = PastModels { os_alone: false, ..os };
    assert_eq!(
        step(image("1.0"), Some(false), both),
        ReimageStep::Upgrade,
        "first what an upgrade brings"
    );
    assert_eq!(step(image("1.0"), Some(true), both), ReimageStep::Reimage, "then the rest");
}

#[test]
fn an_os_profile_is_there_when_the_disk_is_newer_whatever_the_flag_says() {
    let (on, model) = (revision(&set()), model(&set()));
    let at = |flag, past| {
        let placed = place(&model, &image("1.0"), SIZE, flag, past);
        (placed.revision == on, placed.evidence)
    };
    let before = PastModels { older: true, os_older: true, os_alone: true, updated: true };
    assert_eq!(
        at(Some(true), before),
        (false, Evidence::LatestModelApplied),
        "an upgrade did not bring it"
    );
    assert_eq!(at(Some(false), before), (false, Evidence::LatestModelApplied));
    let after = PastModels { os_older: false, ..before };
    assert_eq!(at(Some(true), after), (true, Evidence::Model));
    assert_eq!(at(Some(false), after), (true, Evidence::Model), "a reimage may leave it down");
    let born = PastModels { older: false, ..after };
    assert_eq!(at(Some(true), born), (true, Evidence::Model));
}

#[test]
fn a_disk_that_an_upgrade_did_not_swap_is_seen() {
    let (on, model) = (revision(&set()), model(&set()));
    let kept = json!({"publisher": "p", "offer": "o", "sku": "s", "version": "1.0", "exactVersion": "0.9"});
    let upgraded = PastModels { older: true, updated: true, ..PastModels::default() };
    let placed = place(&model, &kept, SIZE, Some(true), upgraded);
    assert!(placed.revision != on && placed.step == ReimageStep::Swap, "{placed:?}");
    // A machine created from this model got its disk from it, whatever version it reports.
    let born = place(&model, &kept, SIZE, Some(true), PastModels::default());
    assert_eq!((born.revision, born.evidence), (on, Evidence::Stamp));
    let strange = json!({"publisher": "p", "offer": "o", "sku": "s", "version": "1.0", "exactVersion": "aaaa"});
    assert_eq!(place(&model, &strange, SIZE, Some(true), upgraded).evidence, Evidence::Model);
    assert_eq!(model.version(), Some("1.0"));
}
