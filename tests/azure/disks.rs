//! The disks in the model: how a look shows them, and what a write of the image sends of them.

use poolkeeper::act::CallOutcome;
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::Refusal;
use serde_json::{Value, json};

use crate::azure::kit::{Changes, Kit, Sheet, expect, kit, set, usual};
use crate::azure::server::{Heard, Says};

/// A set with these disks; every write is accepted.
async fn with_disks(storage: Value) -> Kit {
    with(move |set| {
        let shown = &mut set["properties"]["virtualMachineProfile"]["storageProfile"];
        for (key, value) in storage.as_object().unwrap() {
            shown[key] = value.clone();
        }
    })
    .await
}

async fn with(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Kit {
    kit(move |heard: &Heard| match () {
        () if heard.verb != "GET" => Says::status(202, ""),
        () if heard.target.contains("userData") => {
            let mut shown = set();
            change(&mut shown);
            Says::json(&shown)
        }
        () => usual(heard),
    })
    .await
}

fn disk(lun: u32, size: u32) -> Value {
    json!({"lun": lun, "createOption": "Empty", "diskSizeGB": size, "writeAcceleratorEnabled": false,
        "managedDisk": {"storageAccountType": "Premium_LRS"}})
}

fn os_disk() -> Value {
    json!({"osType": "Linux", "createOption": "FromImage", "name": "os", "caching": "ReadWrite",
        "diskSizeGB": 128, "managedDisk": {"storageAccountType": "Premium_LRS"}})
}

fn image() -> ModelFields {
    ModelFields { image: Some("p:o:s:2.0".into()), ..ModelFields::default() }
}

#[tokio::test]
async fn a_look_shows_each_field_of_the_disks_and_a_fingerprint_of_the_rest() {
    let rest = async |storage: Value| {
        let kit = with_disks(storage).await;
        kit.look().await.unwrap().set.model_rest
    };
    let named = rest(json!({"osDisk": os_disk(), "dataDisks": [disk(1, 64), disk(0, 32)]})).await;
    let of = |name: &str| named.get(name).map(|value| &**value);
    assert_eq!(of("osDisk.managedDisk.storageAccountType"), Some("Premium_LRS"));
    assert_eq!(of("osDisk.diskSizeGB"), Some("128"));
    assert_eq!(
        (of("dataDisks[0].diskSizeGB"), of("dataDisks[1].diskSizeGB")),
        (Some("32"), Some("64"))
    );
    assert!(of("zones").unwrap().starts_with("fingerprint "), "{named:?}");
    // What is off says as much as what is absent, and the image stands elsewhere.
    let strange =
        |name: &&str| name.contains("writeAccelerator") || name.contains("imageReference");
    assert_eq!(named.keys().map(|name| &**name).find(strange), None);
    // Disks come in no promised order.
    let turned = rest(json!({"osDisk": os_disk(), "dataDisks": [disk(0, 32), disk(1, 64)]})).await;
    assert_eq!(turned, named);
    assert_ne!(rest(json!({"osDisk": os_disk(), "dataDisks": [disk(0, 32)]})).await, named);
}

/// What may be a secret stands nowhere in words.
#[tokio::test]
async fn the_other_parts_show_a_fingerprint() {
    let rest = async |data: &'static str| {
        let kit = with(move |set| {
            let profile = &mut set["properties"]["virtualMachineProfile"];
            profile["userData"] = json!(data);
            profile["osProfile"] = json!({"computerNamePrefix": "web", "customData": data});
        });
        kit.await.look().await.unwrap().set.model_rest
    };
    let (one, other) = (rest("c2VjcmV0").await, rest("b3RoZXI=").await);
    assert!(!format!("{one:?}").contains("c2VjcmV0"), "{one:?}");
    for part in ["userData", "osProfile"] {
        assert_ne!(one.get(part).unwrap(), other.get(part).unwrap(), "{part}");
    }
}

#[tokio::test]
async fn a_whole_storage_profile_is_sent_as_it_was_read_a_moment_before() {
    let disks =
        json!({"osDisk": os_disk(), "dataDisks": [disk(0, 32)], "diskControllerType": "NVMe"});
    let kit = with_disks(disks).await;
    let seen = kit.look().await.unwrap().set;
    // The version that a listing showed is older than what goes along.
    let expect = expect(&seen.revision, Some("\"6\""));
    let (sheet, whole) = (Sheet::new(), WriteScope::StorageProfile);
    let before = kit.server.count("GET", "userData");
    let answer = kit.azure.update_model(&sheet.order(), &image(), whole, &expect).await;
    assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
    assert_eq!(kit.server.count("GET", "userData"), before + 1);
    let sent = kit.server.heard().pop().unwrap();
    assert_eq!(sent.header("if-match"), Some("\"7\""));
    let os = json!({"caching": "ReadWrite", "diskSizeGB": 128,
        "managedDisk": {"storageAccountType": "Premium_LRS"}});
    let storage = json!({
        "imageReference": {"publisher": "p", "offer": "o", "sku": "s", "version": "2.0"},
        "osDisk": os, "dataDisks": [disk(0, 32)], "diskControllerType": "NVMe"
    });
    let model = json!({"properties": {"virtualMachineProfile": {"storageProfile": storage}}});
    assert_eq!(sent.json(), model);
    // Without a version from the listing it goes by the one it read.
    let expect = crate::azure::kit::expect(&seen.revision, None);
    let _ = kit.azure.update_model(&sheet.order(), &image(), whole, &expect).await;
    assert_eq!(kit.server.heard().pop().unwrap().header("if-match"), Some("\"7\""));
    // Tags alone carry no disks.
    let tags = ModelFields { tags: [("a".into(), "b".into())].into(), ..ModelFields::default() };
    let _ = kit.azure.update_model(&sheet.order(), &tags, whole, &expect).await;
    assert!(kit.server.heard().pop().unwrap().json().get("properties").is_none());
}

#[tokio::test]
async fn ephemeral_disks_are_never_sent() {
    let os = json!({"diffDiskSettings": {"option": "Local"}, "diskSizeGB": 30});
    let kit = with_disks(json!({"osDisk": os})).await;
    let expect = expect(&kit.look().await.unwrap().set.revision, Some("\"7\""));
    let (sheet, whole) = (Sheet::new(), WriteScope::StorageProfile);
    let answer = kit.azure.update_model(&sheet.order(), &image(), whole, &expect).await;
    let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
    assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Invalid, Some("EphemeralOsDisk")));
    assert!(no.message.unwrap().contains("model.write: image"));
    assert_eq!(kit.server.count("PATCH", ""), 0);
    let alone = kit.azure.update_model(&sheet.order(), &image(), WriteScope::Image, &expect).await;
    assert!(matches!(alone, CallOutcome::Accepted(_)), "{alone:?}");
}
