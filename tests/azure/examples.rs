//! Official examples and recorded answers give the facts that stand in them.

use poolkeeper::adapters::azure::wire::autoscale::{Setting, Whole};
use poolkeeper::adapters::azure::wire::gallery::GalleryVersion;
use poolkeeper::adapters::azure::wire::status::OperationStatus;
use poolkeeper::adapters::azure::wire::supply::{QuotaUsage, SkuSupply};
use poolkeeper::adapters::azure::wire::vm::ArmInstanceView;
use poolkeeper::adapters::azure::wire::{ArmFaults, ArmScaleSet, ArmVm, ListPage};
use poolkeeper::model::ids::{InstanceId, VmId, Zone};
use poolkeeper::model::inventory::{Eviction, Orchestration, PlatformFeature, PriorityMix};
use poolkeeper::model::machine::{Condition, Protection};
use poolkeeper::model::time::Time;
use serde_json::{Value, json};

use crate::azure::kit::{SET, kit, machine, set, usual};
use crate::azure::server::Says;

pub fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/azure/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// A look at this set with these machines.
async fn look(set: Value, rows: Vec<Value>) -> poolkeeper::model::inventory::Inventory {
    let kit = kit(move |heard| match () {
        () if heard.target.contains("autoscale") => usual(heard),
        () if heard.target.contains("/virtualMachines?") => Says::json(&json!({"value": rows})),
        () => Says::json(&set),
    });
    kit.await.look().await.unwrap()
}

fn value(name: &str) -> Value {
    serde_json::from_str(&fixture(name)).unwrap()
}

#[tokio::test]
async fn a_scale_set_with_user_data() {
    let seen = look(value("set_get_user_data"), vec![]).await.set;
    assert_eq!((seen.capacity, seen.orchestration), (4, Orchestration::Uniform));
    assert_eq!(seen.vm_size.as_deref(), Some("Standard_D2s_v3"));
    assert_eq!(seen.platform_features, [PlatformFeature::RollingUpgrade], "its mode is Automatic");
    assert_eq!((seen.etag, seen.zones), (None, vec![]));
    let model = seen.model.unwrap();
    let image = "azuredatabricks:databricks:databricksworker:3.15.2";
    assert_eq!(model.image.as_deref(), Some(image));
    assert_eq!(model.tags.get("myTag1").map(AsRef::as_ref), Some("tagValue1"));
}

#[tokio::test]
async fn every_official_scale_set_is_read() {
    let mut sets = vec![
        value("set_get"),
        value("set_get_user_data"),
        value("set_create_zones"),
        value("set_create_scale_in"),
        value("set_create_terminate"),
        value("set_update_maximum"),
    ];
    for list in ["set_list_by_location", "set_list_maximum"] {
        sets.extend(value(list)["value"].as_array().unwrap().iter().cloned());
    }
    let mut prints = Vec::new();
    for set in sets {
        let read = ArmScaleSet::read(set.to_string().as_bytes()).unwrap();
        let capacity = set["sku"]["capacity"].as_u64().map(|n| n as u32);
        assert_eq!(read.sku.as_ref().and_then(|sku| sku.capacity), capacity);
        if capacity.is_none() {
            continue;
        }
        let seen = look(set.clone(), vec![]).await.set;
        let zones: Vec<Zone> = set["zones"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|z| Zone::new(z.as_str().unwrap()))
            .collect();
        assert_eq!(seen.zones, zones);
        let repairs = set["properties"]["automaticRepairsPolicy"]["enabled"] == json!(true);
        assert_eq!(seen.platform_features.contains(&PlatformFeature::AutomaticRepairs), repairs);
        let manual =
            set["properties"]["upgradePolicy"]["mode"].as_str().is_none_or(|m| m == "Manual");
        assert_eq!(seen.platform_features.contains(&PlatformFeature::RollingUpgrade), !manual);
        prints.push(seen.revision);
    }
    assert!(prints.len() >= 6, "{prints:?}");
    prints.sort();
    prints.dedup();
    assert!(prints.len() >= 5, "sets that differ have fingerprints that differ: {prints:?}");
}

#[tokio::test]
async fn the_maximal_list_of_machines() {
    let rows = value("machine_list_maximum")["value"].as_array().unwrap().clone();
    let count = rows.len();
    let mut set = set();
    set["sku"]["capacity"] = json!(count);
    let text = fixture("machine_list_maximum");
    let page: ListPage<'_, ArmVm<'_>> = ListPage::read(text.as_bytes()).unwrap();
    assert_eq!(
        page.next.as_ref().map(|next| &*next.0),
        value("machine_list_maximum")["nextLink"].as_str()
    );
    let first = &page.value[0];
    let properties = first.properties.as_ref().unwrap();
    assert_eq!(properties.vm_id.as_ref().map(|id| &*id.0), rows[0]["properties"]["vmId"].as_str());
    assert_eq!(properties.latest_model_applied, Some(true));
    assert!(properties.instance_view.as_ref().unwrap().vm_health.is_some());
    // Ids in it are letters, which no set has: a machine that cannot be named is a gap.
    let seen = look(set, rows).await;
    assert_eq!(seen.instances.len() + seen.gaps.len(), count);
}

#[tokio::test]
async fn one_machine_as_the_list_would_show_it() {
    let mut row = value("machine_get_user_data");
    row["instanceId"] = json!("0");
    let seen = look(set(), vec![row]).await;
    let one = &seen.instances[0];
    assert_eq!(one.id, InstanceId::new("0"));
    assert_eq!(one.vm, Some(VmId::new("42af9fdf-b906-4ad7-9905-8316209ff619")));
    // It shows no view, so whether it runs is not known.
    assert_eq!(one.condition, Condition::Unknown);
    assert_ne!(one.revision, Some(seen.set.revision), "another image than the set's");
}

#[test]
fn the_maximal_machine_of_an_update() {
    let text = fixture("machine_update_maximum");
    let vm = ArmVm::read(text.as_bytes()).unwrap();
    let whole = value("machine_update_maximum");
    assert_eq!(vm.instance_id.as_ref().map(|id| &*id.0), whole["instanceId"].as_str());
    let policy = vm.properties.unwrap().protection_policy.unwrap();
    assert_eq!(
        policy.protect_from_scale_in,
        whole["properties"]["protectionPolicy"]["protectFromScaleIn"].as_bool()
    );
    let minimum = fixture("machine_update_minimum");
    assert!(ArmVm::read(minimum.as_bytes()).unwrap().properties.is_none());
}

#[test]
fn an_instance_view_of_an_ordinary_vm() {
    let text = fixture("instance_view");
    let view: ArmInstanceView<'_> = serde_json::from_str(&text).unwrap();
    let codes: Vec<&str> =
        view.statuses.iter().flatten().filter_map(|s| s.code.as_ref()).map(AsRef::as_ref).collect();
    assert_eq!(codes, ["ProvisioningState/succeeded", "PowerState/running"]);
}

#[test]
fn autoscale_settings() {
    let text = fixture("autoscale_list");
    let page: ListPage<'_, Setting<'_>> = ListPage::read(text.as_bytes()).unwrap();
    let target = "/subscriptions/b67f7fec-69fc-4974-9099-a26bd6ffeda3/resourceGroups/TestingMetricsScaleSet/providers/Microsoft.Compute/virtualMachineScaleSets/testingsc";
    let on = page.value.iter().filter(|setting| setting.is_enabled());
    assert_eq!(on.filter_map(Setting::target).collect::<Vec<_>>(), [target]);
    let one = fixture("autoscale_get");
    let one: Setting<'_> = serde_json::from_str(&one).unwrap();
    assert_eq!((one.target(), one.is_enabled()), (Some(target), true));
    let profiles = one.profiles().unwrap();
    let capacity = profiles[0].capacity.as_ref().unwrap();
    assert_eq!(
        (profiles.len(), capacity.minimum, capacity.maximum),
        (2, Some(Whole(1)), Some(Whole(10)))
    );
}

#[test]
fn supply_and_gallery() {
    let text = fixture("usages");
    let page: ListPage<'_, QuotaUsage<'_>> = ListPage::read(text.as_bytes()).unwrap();
    let name = page.value[0].name.as_ref().and_then(|name| name.value.as_ref());
    assert_eq!((page.value[0].left(), name.map(|n| &*n.0)), (Some(2), Some("aaaaaaaaaaaaaaaaaa")));
    let text = fixture("skus");
    let page: ListPage<'_, SkuSupply<'_>> = ListPage::read(text.as_bytes()).unwrap();
    let sizes: Vec<_> = page
        .value
        .iter()
        .filter(|sku| sku.is_size())
        .map(|sku| (sku.name.as_ref().map(|n| &*n.0), sku.cores()))
        .collect();
    let expected = [(Some("Standard_A0"), Some(1)), (Some("Standard_A1"), Some(1))];
    assert_eq!(sizes, expected);
    let text = fixture("gallery_version");
    let version: GalleryVersion<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(version.number(), Some([1, 0, 0]));
    assert_eq!(
        (version.standing("westus").is_some(), version.standing("northeurope")),
        (true, None)
    );
}

/// A machine as real traffic shows it, in the order of the wire: the etag last, no health, no protection.
fn recorded() -> Value {
    json!({
        "name": "vmss_0",
        "id": format!("{SET}/virtualMachines/0"),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": "eastus2",
        "instanceId": "0",
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard"},
        "properties": {
            "latestModelApplied": true,
            "modelDefinitionApplied": "VirtualMachineScaleSet",
            "hardwareProfile": {"vmSize": "Standard_D2s_v3"},
            "resilientVMDeletionStatus": "Disabled",
            "networkProfileConfiguration": {"networkInterfaceConfigurations": []},
            "provisioningState": "Creating",
            "vmId": "2b0a9d1e-0000-4000-8000-000000000000",
            "timeCreated": "2024-08-26T08:30:41.7+00:00",
            "instanceView": {
                "placementGroupId": "x", "platformUpdateDomain": 0,
                "vmAgent": {"vmAgentVersion": "Unknown", "statuses": [{"code": "ProvisioningState/Unavailable", "displayStatus": "Not Ready"}]},
                "statuses": [
                    {"code": "ProvisioningState/creating/OSProvisioningInProgress", "level": "Info", "displayStatus": "x"},
                    {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"}]
            }
        },
        "etag": "\"1\""
    })
}

#[tokio::test]
async fn a_recorded_machine_that_comes_up() {
    let seen = look(set(), vec![recorded()]).await;
    let one = &seen.instances[0];
    assert_eq!(one.condition, Condition::Provisioning);
    assert_eq!(one.created, Time::parse("2024-08-26T08:30:41.7Z").unwrap());
    assert_eq!((one.protection, &one.zone), (Protection::None, &None));
}

#[tokio::test]
async fn recorded_ends_of_machines() {
    let with = |state: &str, power: Option<&str>| {
        let mut row = machine(0);
        row["properties"]["provisioningState"] = json!(state);
        row["properties"]["instanceView"] =
            json!({"statuses": power.map(|p| json!({"code": p})).into_iter().collect::<Vec<_>>()});
        row
    };
    for (row, expected) in [
        (with("Failed", None), Condition::Failed),
        (with("Deleting", Some("PowerState/stopping")), Condition::Deleting),
        // Evicted, and kept.
        (with("Succeeded", Some("PowerState/deallocated")), Condition::Stopped),
    ] {
        assert_eq!(look(set(), vec![row]).await.instances[0].condition, expected);
    }
}

#[test]
fn recorded_status_documents_and_errors() {
    let read = |text: &str| OperationStatus::read(text.as_bytes()).unwrap();
    let going =
        read(r#"{"startTime":"2024-08-26T08:30:41.7+00:00","status":"InProgress","name":"o"}"#);
    assert_eq!(going.status.as_deref(), Some("InProgress"));
    let failed = read(
        r#"{"startTime":"x","endTime":"y","status":"Failed","error":{"code":"AllocationFailed","message":"m"},"name":"o"}"#,
    );
    assert_eq!(failed.error.unwrap().code.as_deref(), Some("AllocationFailed"));
    let precondition = r#"{"error":{"code":"PreconditionFailed","message":"Etag provided in if-match header \"invalid\" does not match etag \"1\" of resource."}}"#;
    assert!(ArmFaults::read(precondition.as_bytes()).has_code("preconditionfailed"));
}

/// A VM of a Flexible set, as the list of VMs shows it.
fn member(name: &str, computer: &str, image: &str) -> Value {
    let mut row = machine(0);
    row["name"] = json!(name);
    (row["instanceId"], row["sku"]) = (Value::Null, Value::Null);
    let properties = &mut row["properties"];
    properties["vmId"] = json!(format!("id-{name}"));
    properties["latestModelApplied"] = Value::Null;
    properties["hardwareProfile"] = json!({"vmSize": "Standard_D2s_v3"});
    properties["virtualMachineScaleSet"] = json!({"id": SET});
    properties["osProfile"] = json!({"computerName": computer});
    properties["storageProfile"]["imageReference"]["version"] = json!(image);
    row
}

fn flexible(capacity: u32) -> Value {
    let mut set = set();
    set["sku"]["capacity"] = json!(capacity);
    set["properties"]["orchestrationMode"] = json!("Flexible");
    set["properties"]["virtualMachineProfile"]["osProfile"] = json!({"computerNamePrefix": "web"});
    set
}

/// As in Microsoft's page on attaching: another image, a name and a computer of its own.
#[tokio::test]
async fn a_vm_that_was_attached_is_no_machine_of_the_pool() {
    let made = member("web_1a2b3c4d", "webQ7K2ZX", "1.0");
    let rows = || {
        let dated = member("web_20260301", "web-20260301", "9.9");
        vec![member("myVM", "myVM", "9.9"), made.clone(), dated]
    };
    // Whether the capacity counts them no document says.
    for capacity in [1, 3] {
        let seen = look(flexible(capacity), rows()).await;
        let ids: Vec<&str> = seen.instances.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["web_1a2b3c4d"]);
        assert_eq!(seen.set.attached, ["myVM", "web_20260301"].map(InstanceId::new));
        assert_eq!(seen.instances[0].revision.as_ref(), Some(&seen.set.revision));
        assert!(seen.set.complete, "{:?}", seen.gaps);
    }
}

#[tokio::test]
async fn where_no_vm_has_a_name_of_the_set_nothing_is_believed() {
    let rows = || vec![member("myVM", "myVM", "1.0"), member("db", "db", "1.0")];
    let seen = look(flexible(2), rows()).await;
    assert!(!seen.set.complete && seen.instances.is_empty());
    assert!(seen.gaps.iter().any(|gap| gap.why.contains("`web_` and eight digits")));
    // The capacity does not count them, so the set made none.
    let seen = look(flexible(1), rows()).await;
    assert_eq!((seen.set.complete, seen.set.attached.len()), (true, 2));
}

/// As Microsoft's pages on Spot and Spot Priority Mix write it.
#[tokio::test]
async fn what_an_eviction_does_is_read_off_the_profile() {
    let seen = async |priority: Value, eviction: Value, mix: Value| {
        let mut set = flexible(0);
        let profile = &mut set["properties"]["virtualMachineProfile"];
        (profile["priority"], profile["evictionPolicy"]) = (priority, eviction);
        set["properties"]["priorityMixPolicy"] = mix;
        let seen = look(set, vec![]).await.set;
        (seen.spot, seen.priority_mix)
    };
    let mixed =
        || json!({"baseRegularPriorityCount": 10, "regularPriorityPercentageAboveBase": 50});
    let mix = Some(PriorityMix { base_regular: 10, regular_percent: 50 });
    let (spot, none) = (|| json!("Spot"), || Value::Null);
    assert_eq!(seen(json!("Regular"), none(), none()).await, (None, None));
    let deallocated = Some(Eviction::Deallocate);
    assert_eq!(seen(spot(), none(), none()).await, (deallocated, None));
    assert_eq!(seen(json!("Low"), json!("Deallocate"), none()).await, (deallocated, None));
    assert_eq!(seen(spot(), json!("Delete"), none()).await, (Some(Eviction::Delete), None));
    assert_eq!(seen(spot(), none(), mixed()).await, (deallocated, mix));
    // Some of a mix are Spot whatever else the profile says.
    assert_eq!(seen(none(), json!("Delete"), mixed()).await, (Some(Eviction::Delete), mix));
}
