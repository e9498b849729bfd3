//! The whole road, as it is in production: TLS by an authority of our own, a token by a client's secret, one client for
//! both, and the made-up Azure at the other end.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use azure_core::credentials::Secret;
use poolkeeper::act::{CallContext, CallOutcome, ChangeCloud, Poll};
use poolkeeper::adapters::azure::auth::{AuthSettings, ClientSecret, TokenCache, TokenSource, Way};
use poolkeeper::adapters::azure::cloud::AzureCloud;
use poolkeeper::adapters::azure::{Azure, Net, Proxy};
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::emulator::{Emulator, EmulatorListener, Seed, Tls};
use poolkeeper::model::action::{RemovalReason, Target};
use poolkeeper::model::ids::{EntryId, PoolName, ScaleSetId};
use poolkeeper::model::inventory::Inventory;
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::machine::Condition;
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadCloud;
use serde_json::{Value, json};

use crate::azure::kit::Changes;

const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";

async fn emulated(secret: &str) -> (Emulator, Azure, Arc<TokenCache<SystemClock>>) {
    let seed = json!({
        "scaleSets": [{"name": "web", "capacity": 5}],
        "identities": [{"clientId": "app", "secret": "right"}],
        "strictTokens": true,
        "settings": {"pageSize": 2},
    });
    of_seed(seed, secret).await
}

/// The emulator behind TLS, and an adapter that trusts it.
pub async fn of_seed(seed: Value, secret: &str) -> (Emulator, Azure, Arc<TokenCache<SystemClock>>) {
    let seed: Seed = serde_json::from_value(seed).unwrap();
    let tenant = seed.tenant.clone();
    let emulator = Emulator::by_the_clock(&seed, 1.0).unwrap();
    let tls = Tls::made().unwrap();
    let ca = tls.authority.clone().unwrap().into_bytes();
    let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), Some(tls)).await.unwrap();
    let base = format!("https://localhost:{}", there.address().port());
    tokio::spawn(there.serve(emulator.clone()));
    let cloud = AzureCloud::custom(&base, &base, None).unwrap();
    let net = Net { proxy: Proxy::None, ca: Some(ca), ..Net::default() };
    let http = net.http().unwrap();
    let settings = AuthSettings {
        way: Some(Way::ClientSecret),
        tenant: Some(tenant.into()),
        client: Some("app".into()),
        secret: Some(ClientSecret::Value(Secret::new(secret.to_owned()))),
        ..AuthSettings::new(cloud.clone())
    };
    let tokens = Arc::new(TokenCache::new(settings, Arc::clone(&http), SystemClock));
    let source: Arc<dyn TokenSource> = Arc::<TokenCache<SystemClock>>::clone(&tokens);
    let azure = Azure::new(cloud, http, source, None, Arc::new(SystemClock));
    (emulator, azure, tokens)
}

fn ids(seen: &Inventory) -> Vec<&str> {
    seen.instances.iter().map(|row| row.id.as_str()).collect()
}

#[tokio::test]
async fn it_sees_five_machines_takes_one_away_and_outlives_its_token() {
    let (emulator, azure, tokens) = emulated("right").await;
    let set = ScaleSetId::new(SET);
    let seen = azure.list(&set).await.unwrap();
    assert!(seen.set.complete, "{:?}", seen.gaps);
    assert_eq!((seen.set.capacity, seen.instances.len()), (5, 5), "three pages of two");
    assert!(seen.instances.iter().all(|row| row.condition == Condition::Ready), "{seen:?}");

    let (pool, entry) = (PoolName::new("web"), EntryId::new("e1"));
    let before = SystemClock.now().plus(Span::seconds(60));
    let order = CallContext { pool: &pool, set: &set, entry: &entry, before };
    let gone = seen.instances[1].clone();
    let because = RemovalReason::Outdated;
    let target =
        Target { id: gone.id.clone(), vm: gone.vm.clone(), created: gone.created, because };
    // Its token is taken back meanwhile: the delete goes once more with the next, and has its effect once.
    let old = tokens.token().await.unwrap();
    let revoke = Request::post("/_control/tokens").header("host", "localhost");
    let revoked = emulator.answer(revoke.body(Body::empty()).unwrap(), true).await;
    assert!(revoked.status().is_success(), "{revoked:?}");
    let CallOutcome::Accepted(Some(operation)) = azure.delete(&order, &[target], false).await
    else {
        panic!("the delete was not accepted")
    };
    assert_ne!(tokens.token().await.unwrap(), old);
    assert!(matches!(azure.poll(&set, &operation).await, Poll::Running { .. }));
    emulator.advance(Span::hours(1).millis());
    assert_eq!(azure.poll(&set, &operation).await, Poll::Done);
    let left = azure.list(&set).await.unwrap();
    assert_eq!((left.set.capacity, left.instances.len()), (4, 4));
    assert!(!ids(&left).contains(&gone.id.as_str()));
}

#[tokio::test]
async fn a_wrong_secret_is_said_so_and_nothing_is_asked() {
    let (_emulator, azure, _) = emulated("wrong").await;
    let failed = azure.list(&ScaleSetId::new(SET)).await.unwrap_err();
    assert_eq!(failed.refusal, Refusal::Forbidden);
    assert!(failed.say.contains("the client secret is wrong"), "{failed}");
}
