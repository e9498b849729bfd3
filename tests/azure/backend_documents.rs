//! The document of a backend pool on the wire: what goes back, against which version, what each answer becomes, and how
//! often an interface is read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use poolkeeper::act::{BackendOrder, CallOutcome, ChangeCloud};
use poolkeeper::model::backend::{BackendChange, BackendPool, BackendState};
use poolkeeper::model::ids::{BackendPoolId, InstanceId, PoolName};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::Span;
use serde_json::json;

use crate::azure::kit::{self, Kit, START};
use crate::azure::server::{Heard, Says};

fn refusal(answer: &CallOutcome) -> (Refusal, Option<&str>) {
    let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
    (no.refusal, no.code.as_deref())
}

/// The group of the kit's set.
const KIT: &str = "/subscriptions/sub/resourceGroups/rg/providers";

fn kit_pool() -> BackendPoolId {
    BackendPoolId::new(format!(
        "{KIT}/Microsoft.Network/loadBalancers/front/backendAddressPools/web"
    ))
}

/// A pool of these elements as no library would write it.
fn document(etag: &str, elements: &[String]) -> String {
    format!(
        "{{\n {etag}  \"sku\" : {{ \"tier\":\"R\\u00e9gional\" , \"weight\": 1.0E+2 }},\r\n\t\"properties\":{{\"loadBalancerBackendAddresses\":[{}],\n\
         \"drainPeriodInSeconds\" : 30, \"of\":{{\"tomorrow\": [0.10, -0, null, \"é𝄞\"]}} }} }}\n",
        elements.join(" ,\n")
    )
}

fn of_uniform(machine: &str) -> String {
    let id = format!(
        "{KIT}/Microsoft.Compute/virtualMachineScaleSets/WEB/virtualMachines/{machine}/networkInterfaces/n/ipConfigurations/c"
    );
    format!(
        r#"{{"etag":"e", "name" : "a{machine}","properties":{{"x":7.50,"networkInterfaceIPConfiguration":{{"id":"{id}"}}}}}}"#
    )
}

async fn kit_write(kit: &Kit, pool: &BackendPool, name: &str) -> CallOutcome {
    let change = [BackendChange { name: name.into(), to: BackendState::Down }];
    let (name, set) = (PoolName::new("web"), kit::set_id());
    let order = BackendOrder { pool: &name, set: &set, before: START.plus(Span::seconds(60)) };
    kit.azure.set_backends(&order, pool, &change).await
}

async fn kit_read(kit: &Kit) -> BackendPool {
    kit.azure.backends(&kit::set_id(), &[kit_pool()]).await.unwrap().remove(0)
}

fn last(kit: &Kit) -> Heard {
    kit.server.heard().pop().unwrap()
}

#[tokio::test]
async fn what_is_not_known_goes_back_byte_for_byte_against_the_version_that_was_read() {
    let text = document("\"etag\" : \"W/\\\"1\\\"\",", &[of_uniform("0"), of_uniform("1")]);
    let says = Says::status(200, &text);
    let kit = kit::kit(move |heard| match heard.verb.as_str() {
        "GET" => says.clone(),
        _ => Says::status(200, "{}").with("Azure-AsyncOperation", "https://elsewhere.example/o"),
    })
    .await;
    let pool = kit_read(&kit).await;
    assert_eq!(&*pool.document, text);
    let machines: Vec<_> = pool.backends.iter().map(|one| one.machine.clone().unwrap()).collect();
    assert_eq!(machines, [InstanceId::new("0"), InstanceId::new("1")]);
    assert_eq!(kit_write(&kit, &pool, "a1").await, CallOutcome::Accepted(None));
    let sent = last(&kit);
    let target = format!("{}?api-version=2023-09-01", kit_pool());
    assert_eq!((sent.verb.as_str(), sent.target.as_str()), ("PUT", &*target));
    assert_eq!(sent.header("if-match"), Some("W/\"1\""));
    let second = of_uniform("1");
    let wanted = second.replace(r#""properties":{"x""#, r#""properties":{"adminState":"Down","x""#);
    assert_eq!(sent.body, text.replace(&second, &wanted));
    assert_eq!(kit.server.heard().len(), 2, "a version is protection enough");
}

#[tokio::test]
async fn a_pool_without_a_version_is_read_again_right_before() {
    let texts =
        [document("", &[of_uniform("0")]), document("", &[of_uniform("0"), of_uniform("1")])];
    for (header, moves) in [(None, false), (Some("W/\"9\""), false), (None, true)] {
        let (texts, reads) = (texts.clone(), Arc::new(Mutex::new(0)));
        let kit = kit::kit(move |heard| {
            if heard.verb != "GET" {
                return Says::status(200, "{}");
            }
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            let text = if moves && *reads > 1 { &texts[1] } else { &texts[0] };
            let says = Says::status(200, text);
            header.map_or(says.clone(), |header| says.with("ETag", header))
        })
        .await;
        let pool = kit_read(&kit).await;
        let answer = kit_write(&kit, &pool, "a0").await;
        if moves {
            assert_eq!(refusal(&answer), (Refusal::Conflict, Some("ChangedSinceRead")));
            assert_eq!(kit.server.count("PUT", ""), 0);
        } else {
            assert_eq!(answer, CallOutcome::Done);
            assert_eq!(last(&kit).header("if-match"), header);
        }
        assert_eq!(kit.server.count("GET", ""), 2);
    }
}

#[tokio::test]
async fn what_each_answer_to_a_write_becomes() {
    let text = document("", &[of_uniform("0")]);
    let retry = Says::fault(429, "RetryableError", "Later.").with("Retry-After", "10");
    let modifies = "ModificationOfNICIpConfigBackendPoolNotSupported";
    for (says, wanted) in [
        (Says::fault(412, "PreconditionFailed", "Moved."), Some(Refusal::Conflict)),
        (Says::fault(404, "NotFound", "No."), Some(Refusal::Gone)),
        (Says::fault(403, "AuthorizationFailed", "No."), Some(Refusal::Forbidden)),
        (Says::fault(400, modifies, "No."), Some(Refusal::Invalid)),
        (Says::fault(409, "AnotherOperationInProgress", "Busy."), Some(Refusal::Conflict)),
        (retry, Some(Refusal::Conflict)),
        (Says::fault(500, "InternalServerError", "Oh."), None),
        (Says::Nothing, None),
    ] {
        let (text, named) = (text.clone(), format!("{says:?}"));
        let kit = kit::kit(move |heard| match heard.verb.as_str() {
            "GET" => Says::status(200, &text),
            _ => says.clone(),
        })
        .await;
        let pool = kit_read(&kit).await;
        let answer = kit_write(&kit, &pool, "a0").await;
        match wanted {
            Some(wanted) => assert_eq!(refusal(&answer).0, wanted, "{named}"),
            None => assert_eq!(answer, CallOutcome::Lost, "{named}"),
        }
    }
}

#[tokio::test]
async fn a_pool_that_cannot_be_read_is_not_without_addresses() {
    for (says, wanted) in [
        (Says::fault(500, "InternalServerError", "Oh."), Refusal::Unclear),
        (Says::status(404, "<html>no such page</html>"), Refusal::Unclear),
        (Says::status(200, "<html>welcome</html>"), Refusal::Unclear),
        (Says::status(200, "{}"), Refusal::Unclear),
        (Says::Nothing, Refusal::Unclear),
        (Says::fault(429, "TooManyRequests", "Slow."), Refusal::Throttled),
    ] {
        let kit = kit::kit(move |_| says.clone()).await;
        let no = kit.azure.backends(&kit::set_id(), &[kit_pool()]).await.unwrap_err();
        assert_eq!(no.refusal, wanted);
    }
}

/// A Flexible set of machines `web_aaaaaa00`, … behind a pool, whose interfaces spell everything in upper case.
async fn flexible_kit(machines: u32) -> Kit {
    let name = |n: u32| format!("web_aaaaaa{n:02}");
    let nic = |n: u32| format!("{KIT}/Microsoft.Network/networkInterfaces/NIC-{n:02}");
    let interface = move |n: u32| {
        let vm = format!("{KIT}/Microsoft.Compute/virtualMachines/{}", name(n)).to_uppercase();
        json!({"id": nic(n).to_lowercase(), "properties": {"virtualMachine": {"id": vm}}})
    };
    let element = move |n: u32| {
        let id = format!("{}/ipConfigurations/c", nic(n));
        format!(
            r#"{{"name":"a{n}","properties":{{"networkInterfaceIPConfiguration":{{"id":"{id}"}}}}}}"#
        )
    };
    let text = document("", &(0..machines).map(element).collect::<Vec<_>>());
    let mut shown = kit::set();
    shown["properties"]["orchestrationMode"] = json!("Flexible");
    let vm = move |n: u32| {
        let mut vm = kit::machine(n);
        vm["name"] = json!(name(n));
        vm["properties"]["virtualMachineScaleSet"] = json!({"id": kit::SET});
        vm
    };
    kit::kit(move |heard| {
        let path = heard.target.split('?').next().unwrap();
        if path.contains("/backendAddressPools/") {
            Says::status(200, &text)
        } else if path.ends_with("/networkInterfaces") {
            Says::json(&json!({"value": (0..machines).map(interface).collect::<Vec<_>>()}))
        } else if let Some((_, name)) = path.split_once("/networkInterfaces/nic-") {
            let n: u32 = name.parse().unwrap();
            // The last one belongs to nothing yet.
            match n + 1 == machines {
                true => Says::json(&json!({"id": "x", "properties": {}})),
                false => Says::json(&interface(n)),
            }
        } else if path.ends_with("/virtualMachines") {
            Says::json(&json!({"value": (0..machines).map(vm).collect::<Vec<_>>()}))
        } else {
            kit::alone(heard, &(0..machines).map(vm).collect::<Vec<_>>()).unwrap_or_else(|| {
                match heard.target.contains("/autoscalesettings") {
                    true => Says::json(&json!({"value": []})),
                    false => Says::json(&shown),
                }
            })
        }
    })
    .await
}

#[tokio::test]
async fn an_interface_is_read_once_and_its_machine_is_spelled_as_listed() {
    let kit = flexible_kit(3).await;
    let listed = kit.look().await.unwrap();
    let pool = kit_read(&kit).await;
    let ids: Vec<_> = listed.instances.iter().map(|row| Some(row.id.clone())).collect();
    let owners: Vec<_> = pool.backends.iter().map(|one| one.machine.clone()).collect();
    assert_eq!(owners, [ids[0].clone(), ids[1].clone(), None]);
    assert!(pool.hidden, "an interface without a machine may become any machine's");
    let reads = |kit: &Kit| kit.server.count("GET", "/networkInterfaces/nic-");
    assert_eq!(reads(&kit), 3);
    kit_read(&kit).await;
    assert_eq!(reads(&kit), 4, "only the one that tells nothing");
    kit.clock.pass(Span::minutes(10));
    kit_read(&kit).await;
    assert_eq!(reads(&kit), 7);
}

#[tokio::test]
async fn many_interfaces_are_listed() {
    let kit = flexible_kit(40).await;
    kit.look().await.unwrap();
    let pool = kit_read(&kit).await;
    assert!(!pool.hidden && pool.backends.iter().all(|one| one.machine.is_some()));
    assert_eq!(kit.server.count("GET", "/networkInterfaces"), 1);
    let all: BTreeSet<_> = pool.backends.iter().map(|one| one.machine.clone()).collect();
    assert_eq!(all.len(), 40);
}
