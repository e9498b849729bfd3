//! Quota and followed images: what ARM lists, what is made of it, and how seldom it is asked.

use poolkeeper::model::plan::Quota;
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use crate::kit::{Kit, kit, set_id, usual};
use crate::server::{Heard, Says};

const IMAGE: &str =
    "/subscriptions/other/resourceGroups/g/providers/Microsoft.Compute/galleries/G/images/I";

fn size(name: &str, cores: &str) -> Value {
    json!({"resourceType": "virtualMachines", "name": name, "family": "standardDSv3Family",
        "capabilities": [{"name": "MemoryGB", "value": "8"}, {"name": "vCPUs", "value": cores}]})
}

fn usage(name: &str, used: i64, limit: i64) -> Value {
    json!({"unit": "Count", "currentValue": used, "limit": limit, "name": {"value": name, "localizedValue": "x"}})
}

fn version(name: &str, region: &str, state: &str, excluded: bool) -> Value {
    json!({"id": format!("{IMAGE}/versions/{name}"), "name": name, "properties": {
        "provisioningState": state,
        "publishingProfile": {"excludeFromLatest": excluded, "targetRegions": [{"name": region}]}}})
}

fn supply(heard: &Heard) -> Says {
    let disk = json!({"resourceType": "disks", "name": "Standard_D2s_v3", "family": "x"});
    match () {
        () if heard.target.contains("/skus") => Says::json(
            &json!({"value": [disk, size("Standard_D4s_v3", "4"), size("Standard_D2s_v3", "2")]}),
        ),
        () if heard.target.contains("/usages") => Says::json(&json!({"value": [
            usage("cores", 90, 100), usage("standardDSv3Family", 3, 50), usage("other", 0, 0)]})),
        () if heard.target.contains("/versions") => Says::json(&json!({"value": [
            version("1.9.0", "West Europe", "Succeeded", false),
            version("1.10.0", "West Europe", "Succeeded", false),
            version("1.11.0", "West Europe", "Creating", false),
            version("1.12.0", "East US", "Succeeded", false),
            version("1.13.0", "westeurope", "Succeeded", true),
            version("latest", "westeurope", "Succeeded", false)]})),
        () => usual(heard),
    }
}

async fn seen(says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Kit {
    let kit = kit(says).await;
    kit.look().await.unwrap();
    kit
}

#[tokio::test]
async fn the_tightest_limit_counts() {
    let kit = seen(supply).await;
    let quota = kit.azure.quota(&set_id()).await;
    let expected = Quota { family: "standardDSv3Family".into(), cores_left: 10, cores_each: 2 };
    assert_eq!(quota, Some(expected));
    let asked: Vec<String> =
        kit.server.heard().into_iter().map(|heard| heard.target).skip(3).collect();
    assert_eq!(
        asked[0],
        "/subscriptions/sub/providers/Microsoft.Compute/skus?api-version=2021-07-01&%24filter=location+eq+%27westeurope%27"
    );
    assert_eq!(
        asked[1],
        "/subscriptions/sub/providers/Microsoft.Compute/locations/westeurope/usages?api-version=2024-07-01"
    );
    kit.azure.quota(&set_id()).await;
    assert_eq!(kit.server.heard().len(), 5, "both answers are good for a while");
    kit.hand.turn(Span::minutes(3));
    kit.azure.quota(&set_id()).await;
    assert_eq!((kit.server.count("GET", "/skus"), kit.server.count("GET", "/usages")), (1, 2));
}

#[tokio::test]
async fn a_quota_that_cannot_be_had_is_not_known() {
    assert_eq!(kit(supply).await.azure.quota(&set_id()).await, None, "the set was never seen");
    for part in ["/skus", "/usages"] {
        let kit = seen(move |heard| match heard.target.contains(part) {
            true => Says::fault(403, "AuthorizationFailed", "no"),
            false => supply(heard),
        });
        assert_eq!(kit.await.azure.quota(&set_id()).await, None, "{part}");
        let kit = seen(move |heard| match heard.target.contains(part) {
            true => Says::json(&json!({"value": []})),
            false => supply(heard),
        });
        assert_eq!(kit.await.azure.quota(&set_id()).await, None, "{part} empty");
    }
}

#[tokio::test]
async fn an_image_stands_at_its_newest_whole_version_here() {
    let kit = seen(supply).await;
    let follow = kit.azure.followed(IMAGE, &set_id()).await.unwrap();
    assert_eq!(&*follow.image, format!("{IMAGE}/versions/1.10.0"));
    let asked = kit.server.heard().pop().unwrap().target;
    assert_eq!(asked, format!("{IMAGE}/versions?api-version=2023-07-03"));
    kit.azure.followed(&IMAGE.to_uppercase(), &set_id()).await;
    assert_eq!(kit.server.count("GET", "/versions"), 1);
}

#[tokio::test]
async fn half_a_list_of_versions_names_none() {
    let kit = seen(|heard| match () {
        () if heard.target.contains("skiptoken") => Says::fault(500, "InternalServerError", "m"),
        () if heard.target.contains("/versions") => {
            let next = format!("http://{}/versions?$skiptoken=x", heard.header("host").unwrap());
            Says::json(
                &json!({"value": [version("1.0.0", "westeurope", "Succeeded", false)], "nextLink": next}),
            )
        }
        () => supply(heard),
    });
    assert_eq!(kit.await.azure.followed(IMAGE, &set_id()).await, None);
}

#[tokio::test]
async fn only_gallery_images_are_followed() {
    let kit = seen(supply).await;
    let before = kit.server.heard().len();
    for strange in [
        "",
        "ubuntu",
        "p:o:s:v",
        &format!("{IMAGE}/versions/1.0.0"),
        &IMAGE.replace("/G/", "/../"),
        &IMAGE.replace("galleries", "disks"),
    ] {
        assert_eq!(kit.azure.followed(strange, &set_id()).await, None, "{strange}");
    }
    assert_eq!(kit.server.heard().len(), before);
}
