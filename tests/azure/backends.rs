//! Backend pools of load balancers: whose each address is, and a state that changes alone.

use std::collections::BTreeMap;

use poolkeeper::act::{BackendOrder, CallOutcome, ChangeCloud};
use poolkeeper::adapters::azure::Azure;
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::emulator::Emulator;
use poolkeeper::model::backend::{BackendAddress, BackendChange, BackendPool, BackendState};
use poolkeeper::model::ids::{BackendPoolId, InstanceId, PoolName, ScaleSetId};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::observe::ReadCloud;
use serde_json::{Value, json};

use crate::azure::emulated::of_seed;
use crate::support::http::{Ask, Reply};

const GROUP: &str =
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers";
const VERSION: &str = "api-version=2024-07-01";

fn set() -> ScaleSetId {
    ScaleSetId::new(format!("{GROUP}/Microsoft.Compute/virtualMachineScaleSets/web"))
}

fn pool_id(name: &str) -> BackendPoolId {
    let balancer = format!("{GROUP}/Microsoft.Network/loadBalancers/front");
    BackendPoolId::new(format!("{balancer}/backendAddressPools/{name}"))
}

/// Two sets behind one pool, as Azure has it by default, and Azure itself to look at.
async fn emulated(seed: Value) -> (Emulator, Azure) {
    let (emulator, azure, _) = of_seed(seed, "right").await;
    (emulator, azure)
}

fn seed(flexible: bool) -> Value {
    json!({
        "scaleSets": [
            {"name": "web", "capacity": 4, "flexible": flexible, "pools": ["front/web", "front/web", "FRONT/spare"]},
            {"name": "web2", "capacity": 2, "flexible": flexible, "pools": ["front/web"]},
        ],
        "loadBalancers": [{"name": "front", "pools": ["web", "spare"]}],
    })
}

async fn ask(emulator: &Emulator, method: &str, path: &str, body: &Value) -> Reply {
    let path = if path.contains('?') { path.to_owned() } else { format!("{path}?{VERSION}") };
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let ask = Ask::new(method, &path).header("authorization", "Bearer x").text(&text);
    let answer = emulator.answer(ask.header("host", "localhost").request(), false).await;
    Reply::read(answer).await.unwrap().expect(200)
}

/// The pool as Azure shows it, without what every write changes.
async fn shown(emulator: &Emulator, name: &str) -> Value {
    let mut shown = ask(emulator, "GET", pool_id(name).as_str(), &Value::Null).await.json();
    shown.as_object_mut().unwrap().remove("etag");
    shown
}

async fn read(azure: &Azure, name: &str) -> BackendPool {
    let mut read = azure.backends(&set(), &[pool_id(name)]).await.unwrap();
    assert_eq!(read.len(), 1);
    read.remove(0)
}

fn changes(pool: &BackendPool, machines: &[InstanceId], to: BackendState) -> Vec<BackendChange> {
    let ours = |one: &&BackendAddress| one.machine.as_ref().is_some_and(|it| machines.contains(it));
    let ours = pool.backends.iter().filter(ours);
    ours.map(|one| BackendChange { name: one.name.clone(), to }).collect()
}

async fn write(azure: &Azure, pool: &BackendPool, changes: &[BackendChange]) -> CallOutcome {
    write_before(azure, pool, changes, SystemClock.now().plus(Span::seconds(60))).await
}

async fn write_before(
    azure: &Azure,
    pool: &BackendPool,
    changes: &[BackendChange],
    before: Time,
) -> CallOutcome {
    let (name, set) = (PoolName::new("web"), set());
    azure.set_backends(&BackendOrder { pool: &name, set: &set, before }, pool, changes).await
}

fn states(pool: &BackendPool) -> BTreeMap<&str, BackendState> {
    let ours =
        pool.backends.iter().filter_map(|one| Some((one.machine.as_ref()?.as_str(), one.state)));
    ours.collect()
}

fn refusal(answer: &CallOutcome) -> (Refusal, Option<&str>) {
    let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
    (no.refusal, no.code.as_deref())
}

#[tokio::test]
async fn machines_leave_a_pool_together_and_come_back_and_nothing_else_changes() {
    for flexible in [false, true] {
        let (emulator, azure) = emulated(seed(flexible)).await;
        let listed = azure.list(&set()).await.unwrap();
        assert_eq!(listed.set.backends, [pool_id("web"), pool_id("SPARE")], "each once, in order");
        let ids: Vec<InstanceId> = listed.instances.iter().map(|row| row.id.clone()).collect();
        let before = shown(&emulator, "web").await;
        let pool = read(&azure, "web").await;
        assert!(pool.settled && !pool.hidden, "{pool:?}");
        assert_eq!(pool.backends.len(), 6, "the other set is behind it too");
        let all_up: BTreeMap<&str, BackendState> =
            ids.iter().map(|id| (id.as_str(), BackendState::None)).collect();
        assert_eq!(states(&pool), all_up);

        let two = [ids[1].clone(), ids[3].clone()];
        let answer = write(&azure, &pool, &changes(&pool, &two, BackendState::Down)).await;
        let CallOutcome::Accepted(Some(operation)) = answer else { panic!("{answer:?}") };
        let writing = read(&azure, "web").await;
        assert!(!writing.settled && writing.document != pool.document);
        emulator.advance(Span::hours(1).millis());
        assert!(matches!(azure.poll(&set(), &operation).await, poolkeeper::act::Poll::Done));
        let down = read(&azure, "web").await;
        let mut wanted = all_up.clone();
        wanted.extend(two.iter().map(|id| (id.as_str(), BackendState::Down)));
        assert!(down.settled);
        assert_eq!(states(&down), wanted);
        let mut after = shown(&emulator, "web").await;
        assert_ne!(after, before);

        let answer = write(&azure, &down, &changes(&down, &two, BackendState::None)).await;
        assert!(matches!(answer, CallOutcome::Accepted(_)), "{answer:?}");
        emulator.advance(Span::hours(1).millis());
        assert_eq!(states(&read(&azure, "web").await), all_up);
        after = shown(&emulator, "web").await;
        let elements = after.pointer_mut("/properties/loadBalancerBackendAddresses").unwrap();
        let mut none = 0;
        for element in elements.as_array_mut().unwrap() {
            let state = element["properties"].as_object_mut().unwrap().remove("adminState");
            none += usize::from(state == Some(json!("None")));
        }
        assert_eq!((none, after), (2, before), "None, and not Up");
    }
}

#[tokio::test]
async fn a_pool_that_changed_since_it_was_read_is_not_written() {
    let (emulator, azure) = emulated(seed(false)).await;
    let pool = read(&azure, "web").await;
    let one = changes(&pool, &[InstanceId::new("0")], BackendState::Down);
    assert!(matches!(write(&azure, &pool, &one).await, CallOutcome::Accepted(_)));
    emulator.advance(Span::hours(1).millis());
    let other = changes(&pool, &[InstanceId::new("1")], BackendState::Down);
    let answer = write(&azure, &pool, &other).await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, Some("PreconditionFailed")));
    let CallOutcome::Refused(no) = answer else { unreachable!() };
    assert!(no.met_a_change());
    // The balancer is busy: its writes do not queue.
    let pool = read(&azure, "web").await;
    assert!(matches!(write(&azure, &pool, &other).await, CallOutcome::Accepted(_)));
    let busy = read(&azure, "web").await;
    let answer = write(&azure, &busy, &one).await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, Some("AnotherOperationInProgress")));
    // One that is late, or names what is not there, is not sent.
    emulator.advance(Span::hours(1).millis());
    let pool = read(&azure, "web").await;
    let late = SystemClock.now().minus(Span::seconds(1));
    assert_eq!(write_before(&azure, &pool, &one, late).await, CallOutcome::NotSent);
    assert_eq!(write(&azure, &pool, &[]).await, CallOutcome::Done);
    let absent = [BackendChange { name: "absent".into(), to: BackendState::Down }];
    let answer = write(&azure, &pool, &absent).await;
    assert_eq!(refusal(&answer), (Refusal::Invalid, Some("InvalidBackendPool")));
    assert_eq!(read(&azure, "web").await.document, pool.document);
}

#[tokio::test]
async fn a_machine_that_left_meanwhile_stops_the_write() {
    let (emulator, azure) = emulated(seed(false)).await;
    let pool = read(&azure, "web").await;
    let delete = format!("{}/delete", set());
    let names = json!({"instanceIds": ["0"]});
    let path = format!("{delete}?{VERSION}");
    let ask = Ask::new("POST", &path).header("authorization", "Bearer x").text(&names.to_string());
    let accepted = emulator.answer(ask.header("host", "localhost").request(), false).await;
    assert_eq!(accepted.status().as_u16(), 202);
    emulator.advance(Span::hours(1).millis());
    let one = changes(&pool, &[InstanceId::new("1")], BackendState::Down);
    assert_eq!(refusal(&write(&azure, &pool, &one).await).0, Refusal::Conflict);
    let pool = read(&azure, "web").await;
    assert_eq!(states(&pool).len(), 3);
    assert!(matches!(write(&azure, &pool, &one).await, CallOutcome::Accepted(_)));
}

#[tokio::test]
async fn a_pool_that_is_gone_has_no_address() {
    let (_emulator, azure) = emulated(seed(false)).await;
    let elsewhere = format!("{GROUP}/Microsoft.Network/loadBalancers/no/backendAddressPools/web");
    let pools = [pool_id("no"), BackendPoolId::new(elsewhere), pool_id("spare")];
    let read = azure.backends(&set(), &pools).await.unwrap();
    for gone in &read[..2] {
        assert!(gone.settled && !gone.hidden && gone.backends.is_empty(), "{gone:?}");
    }
    assert_eq!(read[2].backends.len(), 4);
    assert_eq!(read.iter().map(|pool| pool.id.clone()).collect::<Vec<_>>(), pools);
    let one = [BackendChange { name: "a".into(), to: BackendState::Down }];
    assert_eq!(refusal(&write(&azure, &read[0], &one).await).0, Refusal::Invalid);
    assert_eq!(azure.backends(&set(), &[]).await, Ok(Vec::new()));
    let odd = azure.backends(&set(), &[BackendPoolId::new("/web")]).await.unwrap_err();
    assert_eq!(odd.refusal, Refusal::Invalid);
}

#[tokio::test]
async fn a_right_that_is_missing_is_said() {
    let denied = |seed: Value, actions: &[&str]| {
        let mut seed = seed;
        seed["identities"] =
            json!([{"clientId": "app", "secret": "right", "deniedActions": actions}]);
        seed["strictTokens"] = json!(true);
        emulated(seed)
    };
    let (_emulator, azure) = denied(seed(false), &["backendAddressPools/read"]).await;
    let no = azure.backends(&set(), &[pool_id("web")]).await.unwrap_err();
    assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Forbidden, Some("AuthorizationFailed")));
    assert!(no.message.unwrap().contains("backendAddressPools/read"));

    let (_emulator, azure) = denied(seed(false), &["backendAddressPools/write"]).await;
    let pool = read(&azure, "web").await;
    let one = changes(&pool, &[InstanceId::new("0")], BackendState::Down);
    assert_eq!(refusal(&write(&azure, &pool, &one).await).0, Refusal::Forbidden);

    // The interfaces of a Flexible set are other resources.
    let (_emulator, azure) = denied(seed(true), &["networkInterfaces/read"]).await;
    let no = azure.backends(&set(), &[pool_id("web")]).await.unwrap_err();
    assert_eq!(no.refusal, Refusal::Forbidden);
}

#[tokio::test]
async fn addresses_that_name_no_machine_are_hidden_unless_they_are_certainly_others() {
    let mut hides = seed(false);
    hides["settings"] = json!({"switches": {"uniformElementsHideInterface": true}});
    let (_emulator, azure) = emulated(hides).await;
    let pool = read(&azure, "web").await;
    assert!(pool.hidden && pool.backends.len() == 6, "{pool:?}");
    assert!(pool.backends.iter().all(|one| one.machine.is_none()));
    let other = ScaleSetId::new(set().as_str().replace("/web", "/web3"));
    let pools = azure.backends(&other, &[pool_id("web")]).await.unwrap();
    assert!(!pools[0].hidden, "all of the pool belongs to other sets");
}

#[tokio::test]
async fn plain_addresses_are_those_of_the_sets_interfaces() {
    for flexible in [false, true] {
        let (emulator, azure) = emulated(json!({
            "scaleSets": [{"name": "web", "flexible": flexible}, {"name": "web2", "flexible": flexible}],
            "loadBalancers": [{"name": "front", "pools": ["ip"]}],
        }))
        .await;
        let interfaces = match flexible {
            true => format!("{GROUP}/Microsoft.Network/networkInterfaces"),
            false => format!("{}/networkInterfaces", set()),
        };
        let all = ask(&emulator, "GET", &interfaces, &Value::Null).await.json();
        let row = |n: usize| {
            let one = &all["value"][n]["properties"];
            let vm = one["virtualMachine"]["id"].as_str().unwrap();
            let address = &one["ipConfigurations"][0]["properties"]["privateIPAddress"];
            (vm.rsplit('/').next().unwrap().to_owned(), address.clone())
        };
        let network = json!({"id": format!("{GROUP}/microsoft.network/virtualNetworks/NETWORK")});
        let element = |name: &str, address: &Value, network: &Value| json!({"name": name, "properties": {"ipAddress": address, "virtualNetwork": network}});
        let other = json!({"id": format!("{GROUP}/Microsoft.Network/virtualNetworks/network2")});
        let ((machine, mine), (_, second)) = (row(1), row(2));
        let elements = [
            element("mine", &mine, &network),
            element("same address elsewhere", &second, &other),
            element("a stranger", &json!("10.200.0.9"), &network),
        ];
        let body = json!({"properties": {"loadBalancerBackendAddresses": elements}});
        ask(&emulator, "PUT", pool_id("ip").as_str(), &body).await;
        emulator.advance(Span::hours(1).millis());
        azure.list(&set()).await.unwrap();
        let pool = read(&azure, "ip").await;
        assert!(!pool.hidden);
        let owners: Vec<Option<&str>> =
            pool.backends.iter().map(|one| one.machine.as_ref().map(InstanceId::as_str)).collect();
        assert_eq!(owners, [Some(&*machine), None, None]);
        let down = changes(&pool, &[InstanceId::new(&machine)], BackendState::Down);
        assert!(matches!(write(&azure, &pool, &down).await, CallOutcome::Accepted(_)));
        emulator.advance(Span::hours(1).millis());
        let pool = read(&azure, "ip").await;
        assert_eq!(states(&pool), BTreeMap::from([(&*machine, BackendState::Down)]));
    }
}
