//! Quota and followed images: what ARM lists, what is made of it, and how seldom it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolkeeper::model::ids::PoolName;
use poolkeeper::model::plan::{Facts, Quota};
use poolkeeper::model::policy::{Draft, Image, Policy};
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadFacts;
use serde_json::{Value, json};

use crate::azure::kit::{Kit, kit, set, set_id, usual};
use crate::azure::server::{Heard, Says};

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
        kit.server.heard().into_iter().map(|heard| heard.target).skip(4).collect();
    assert_eq!(
        asked[0],
        "/subscriptions/sub/providers/Microsoft.Compute/skus?api-version=2021-07-01&%24filter=location+eq+%27westeurope%27"
    );
    assert_eq!(
        asked[1],
        "/subscriptions/sub/providers/Microsoft.Compute/locations/westeurope/usages?api-version=2024-07-01"
    );
    kit.azure.quota(&set_id()).await;
    assert_eq!(kit.server.heard().len(), 6, "both answers are good for a while");
    kit.clock.pass(Span::minutes(3));
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
async fn pages_of_versions_in_a_circle_end() {
    let kit = seen(|heard| match heard.target.contains("/versions") {
        true => {
            let token = if heard.target.ends_with("=x") { "y" } else { "x" };
            let next =
                format!("http://{}/versions?$skiptoken={token}", heard.header("host").unwrap());
            Says::json(&json!({"value": [], "nextLink": next}))
        }
        false => supply(heard),
    });
    let kit = kit.await;
    assert_eq!(kit.azure.followed(IMAGE, &set_id()).await, None);
    assert_eq!(kit.server.count("GET", "/versions"), 3);
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

fn pool(name: &str, follow: Option<&str>) -> (PoolName, Policy) {
    let name = PoolName::new(name);
    let mut draft = Draft::with_defaults(name.clone(), set_id());
    draft.model.image = follow.map(|image| Image::Follow(image.into()));
    (name, Policy::build(draft).unwrap())
}

#[tokio::test]
async fn a_pool_has_the_facts_of_what_its_policy_names() {
    let kit = seen(supply).await;
    let (web, policy) = pool("web", Some(IMAGE));
    assert_eq!(kit.azure.facts(&web).await, Facts::default(), "nobody told what it is about");
    kit.azure.watch(&web, &policy);
    let facts = kit.azure.facts(&web).await;
    assert_eq!(facts.quota.map(|quota| quota.cores_left), Some(10));
    assert_eq!(&*facts.follow.unwrap().image, format!("{IMAGE}/versions/1.10.0"));
    let (plain, policy) = pool("plain", None);
    kit.azure.watch(&plain, &policy);
    let facts = kit.azure.facts(&plain).await;
    assert!(facts.quota.is_some() && facts.follow.is_none());
    kit.azure.forget(&web);
    assert_eq!(kit.azure.facts(&web).await, Facts::default());
}

#[tokio::test]
async fn a_hundred_pools_that_ask_at_once_make_one_call_each_kind() {
    let kit = seen(supply).await;
    let names: Vec<PoolName> = (0..100)
        .map(|n| {
            let (name, policy) = pool(&format!("pool-{n}"), Some(IMAGE));
            kit.azure.watch(&name, &policy);
            name
        })
        .collect();
    let azure = Arc::new(kit.azure);
    let asked: Vec<_> = names
        .into_iter()
        .map(|name| {
            let azure = Arc::clone(&azure);
            tokio::spawn(async move { azure.facts(&name).await })
        })
        .collect();
    for facts in asked {
        let facts = facts.await.unwrap();
        assert!(facts.quota.is_some() && facts.follow.is_some());
    }
    for part in ["/skus", "/usages", "/versions"] {
        assert_eq!(kit.server.count("GET", part), 1, "{part}");
    }
}

#[tokio::test]
async fn what_cannot_be_had_is_not_asked_for_every_turn() {
    let kit = seen(|heard| match () {
        () if heard.target.contains("/skus") => Says::fault(403, "AuthorizationFailed", "no"),
        () if heard.target.contains("/versions") => {
            Says::fault(429, "SubscriptionRequestsThrottled", "m").with("Retry-After", "300")
        }
        () => supply(heard),
    })
    .await;
    let (web, policy) = pool("web", Some(IMAGE));
    kit.azure.watch(&web, &policy);
    let counts = || ["/skus", "/versions"].map(|part| kit.server.count("GET", part));
    for _ in 0..20 {
        assert_eq!(kit.azure.facts(&web).await, Facts::default());
    }
    assert_eq!(counts(), [1, 1]);
    kit.clock.pass(Span::seconds(61));
    kit.azure.facts(&web).await;
    assert_eq!(counts(), [2, 1], "not before it was told");
    kit.clock.pass(Span::seconds(241));
    kit.azure.facts(&web).await;
    assert_eq!(counts(), [3, 2]);
}

#[tokio::test]
async fn spare_capacity_has_a_quota_of_its_own_and_a_closed_size_none() {
    let spot = |heard: &Heard| match () {
        () if heard.target.contains("userData") => {
            let mut set = set();
            set["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
            Says::json(&set)
        }
        () if heard.target.contains("/usages") => Says::json(&json!({"value": [
            usage("cores", 100, 100), usage("standardDSv3Family", 50, 50), usage("lowPriorityCores", 4, 30)]})),
        () => supply(heard),
    };
    let quota = seen(spot).await.azure.quota(&set_id()).await.unwrap();
    assert_eq!((&*quota.family, quota.cores_left, quota.cores_each), ("lowPriorityCores", 26, 2));
    for (reason, left) in [("QuotaId", 0), ("NotAvailableForSubscription", 10)] {
        let kit = seen(move |heard| match heard.target.contains("/skus") {
            true => {
                let mut closed = size("Standard_D2s_v3", "2");
                closed["restrictions"] =
                    json!([{"type": "Location", "values": ["westeurope"], "reasonCode": reason}]);
                Says::json(&json!({"value": [closed]}))
            }
            false => supply(heard),
        });
        assert_eq!(kit.await.azure.quota(&set_id()).await.unwrap().cores_left, left, "{reason}");
    }
}

#[tokio::test]
async fn a_version_that_is_being_changed_never_leads_back_to_an_older_one() {
    let changing = Arc::new(AtomicBool::new(false));
    let seen_by = Arc::clone(&changing);
    let versions = move |heard: &Heard| match heard.target.contains("/versions") {
        true => {
            let changing = seen_by.load(Ordering::SeqCst);
            let state = if changing { "Updating" } else { "Succeeded" };
            Says::json(&json!({"value": [version("1.0.0", "westeurope", "Succeeded", false),
                version("2.0.0", "westeurope", state, false),
                version("3.0.0", "westeurope", "Failed", false)]}))
        }
        false => supply(heard),
    };
    let kit = seen(versions.clone()).await;
    let stands = async |kit: &Kit| {
        let follow = kit.azure.followed(IMAGE, &set_id()).await;
        follow.map(|follow| follow.image.rsplit_once('/').unwrap().1.to_owned())
    };
    assert_eq!(stands(&kit).await.as_deref(), Some("2.0.0"));
    changing.store(true, Ordering::SeqCst);
    kit.clock.pass(Span::minutes(11));
    assert_eq!(stands(&kit).await.as_deref(), Some("2.0.0"), "it was whole, and is sent on");
    let fresh = seen(versions).await;
    assert_eq!(stands(&fresh).await, None, "nobody knows, so nothing older is taken for it");
    changing.store(false, Ordering::SeqCst);
    fresh.clock.pass(Span::minutes(11));
    assert_eq!(stands(&fresh).await.as_deref(), Some("2.0.0"));
}

/// A Flexible set, how many of its VMs are Regular and Spot, and what is left of three families and of spare capacity.
async fn mixed(
    properties: Value,
    (regular, spot): (u32, u32),
    left: [i64; 4],
) -> Option<(String, u32)> {
    let set = move || {
        let mut set = set();
        set["sku"]["capacity"] = json!(regular + spot);
        set["properties"]["orchestrationMode"] = json!("Flexible");
        set["properties"]["virtualMachineProfile"]["priority"] = json!("Spot");
        for (key, value) in properties.as_object().unwrap() {
            set["properties"][key] = value.clone();
        }
        set
    };
    let vm = move |n: u32| {
        let mut vm = crate::azure::kit::machine(n);
        vm["name"] = json!(format!("web_{n:08x}"));
        vm["properties"]["virtualMachineScaleSet"] = json!({"id": crate::azure::kit::SET});
        vm["properties"]["priority"] = if n < regular { Value::Null } else { json!("Spot") };
        vm
    };
    let kit = seen(move |heard: &Heard| match () {
        () if heard.target.contains("userData") => Says::json(&set()),
        () if heard.target.contains("/usages") => {
            let names = ["standardDSv3Family", "b", "c", "lowPriorityCores"];
            let usages = names.into_iter().zip(left).filter(|(_, left)| *left >= 0);
            let usages: Vec<Value> = usages.map(|(name, left)| usage(name, 0, left)).collect();
            Says::json(&json!({"value": usages}))
        }
        () if heard.target.contains("/skus") => {
            let of = |name: &str, cores: &str, family: &str| {
                let mut size = size(name, cores);
                size["family"] = json!(family);
                size
            };
            Says::json(&json!({"value": [size("Standard_D2s_v3", "2"),
                of("Standard_B4", "4", "b"), of("Standard_C8", "8", "c")]}))
        }
        () if heard.target.contains("Compute/virtualMachines?") => {
            Says::json(&json!({"value": (0..regular + spot).map(vm).collect::<Vec<_>>()}))
        }
        () => usual(heard),
    });
    let quota = kit.await.azure.quota(&set_id()).await?;
    Some((quota.family.into(), quota.cores_left / quota.cores_each))
}

#[tokio::test]
async fn a_mix_of_priorities_needs_the_quota_of_the_kind_that_comes_next() {
    let mix = |base: u32, percent: u32| {
        json!({"priorityMixPolicy": {"baseRegularPriorityCount": base,
            "regularPriorityPercentageAboveBase": percent}})
    };
    for (policy, there, (cores, spot), expected) in [
        // Two more Regular ones fill the base; then there is no room for Spot.
        (mix(4, 0), (2, 0), (100, 0), ("lowPriorityCores", 2)),
        (mix(4, 0), (2, 0), (2, 100), ("standardDSv3Family", 1)),
        // The base is there: only Spot comes, however little the family has left.
        (mix(2, 0), (2, 0), (0, 6), ("lowPriorityCores", 3)),
        // Half and half above it, Spot first.
        (mix(2, 50), (2, 0), (100, 4), ("lowPriorityCores", 4)),
        (mix(2, 50), (2, 0), (2, 100), ("standardDSv3Family", 3)),
        // Spot VMs were evicted: they come back before more Regular ones do.
        (mix(0, 50), (4, 0), (0, 100), ("standardDSv3Family", 5)),
        (mix(0, 100), (1, 0), (6, 0), ("standardDSv3Family", 3)),
    ] {
        let told = mixed(policy.clone(), there, [cores, -1, -1, spot]).await;
        let expected = Some((expected.0.to_owned(), expected.1));
        assert_eq!(told, expected, "{policy} {there:?} {cores} {spot}");
    }
    assert_eq!(mixed(mix(2, 50), (2, 0), [100, -1, -1, -1]).await, None, "of Spot it is unknown");
}

#[tokio::test]
async fn a_mix_of_sizes_is_short_of_quota_where_each_of_them_is() {
    let sizes = |names: &[&str]| {
        let sizes: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"skuProfile": {"vmSizes": sizes, "allocationStrategy": "LowestPrice"},
            "virtualMachineProfile": {"priority": "Regular"}})
    };
    let three = || sizes(&["Standard_D2s_v3", "Standard_B4", "Standard_C8"]);
    let told = async |left| mixed(three(), (1, 0), left).await;
    assert_eq!(
        told([1, 8, 9, 0]).await,
        Some(("b".to_owned(), 2)),
        "Azure takes the one with room"
    );
    let short = told([1, 3, 7, 100]).await.unwrap();
    assert_eq!(short.1, 0, "{short:?}");
    assert_eq!(told([1, 3, -1, 100]).await, None, "what one family has left is not known");
    let unlisted = sizes(&["Standard_D2s_v3", "Standard_New"]);
    assert_eq!(mixed(unlisted, (1, 0), [1, 1, 1, 1]).await, None);
    let plain = json!({"skuProfile": {"vmSizes": ["Standard_B4"]},
        "virtualMachineProfile": {"priority": "Regular"}});
    assert_eq!(mixed(plain, (1, 0), [0, 8, 0, 0]).await, Some(("b".to_owned(), 2)));
}
