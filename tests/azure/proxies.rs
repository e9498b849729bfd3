//! Proxies, authorities and time: a tiny proxy of our own before the made-up Azure, and what is said where the road is
//! closed.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolkeeper::act::{CallContext, CallOutcome};
use poolkeeper::adapters::azure::auth::{AuthSettings, ClientSecret, TokenCache, TokenSource, Way};
use poolkeeper::adapters::azure::cloud::AzureCloud;
use poolkeeper::adapters::azure::{Azure, Net, Proxy};
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::emulator::{Emulator, EmulatorListener, Seed, Tls};
use poolkeeper::model::ids::ScaleSetId;
use poolkeeper::model::time::Span;
use poolkeeper::observe::{ReadCloud, ReadError};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::azure::kit::{Changes, Purse, Sheet, kit_of, target};
use crate::azure::server::Says;

const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";

const TENANT: &str = "00000000-0000-0000-0000-0000000000aa";

/// A made-up Azure behind TLS: its address, and the certificate of its authority.
async fn cloud() -> (String, String) {
    let seed: Seed = serde_json::from_value(
        json!({"tenant": TENANT, "scaleSets": [{"name": "web", "capacity": 3}]}),
    )
    .unwrap();
    let emulator = Emulator::by_the_clock(&seed, 1.0).unwrap();
    let tls = Tls::made().unwrap();
    let ca = tls.authority.clone().unwrap();
    let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), Some(tls)).await.unwrap();
    let base = format!("https://localhost:{}", there.address().port());
    tokio::spawn(there.serve(emulator));
    (base, ca)
}

fn adapter(base: &str, net: &Net) -> Azure {
    let cloud = AzureCloud::custom(base, base, None).unwrap();
    let http = net.http().unwrap();
    let settings = AuthSettings {
        way: Some(Way::ClientSecret),
        tenant: Some(TENANT.into()),
        client: Some("anybody".into()),
        secret: Some(ClientSecret::Value("anything".into())),
        ..AuthSettings::new(cloud.clone())
    };
    let tokens: Arc<dyn TokenSource> =
        Arc::new(TokenCache::new(settings, Arc::clone(&http), SystemClock));
    Azure::new(cloud, http, tokens, None, Arc::new(SystemClock))
}

/// The same with a token in its hand, so that the road to ARM itself is what is closed.
fn adapter_with_token(base: &str, net: &Net) -> Azure {
    let cloud = AzureCloud::custom(base, base, None).unwrap();
    let tokens = Purse { origin: Mutex::new(Some(cloud.origin())), ..Purse::default() };
    Azure::new(cloud, net.http().unwrap(), Arc::new(tokens), None, Arc::new(SystemClock))
}

/// It is said why, and nothing is taken for sent, whether it is the road to tokens that is closed or the one to ARM.
async fn closed(base: &str, net: &Net, say: &str) {
    for azure in [adapter(base, net), adapter_with_token(base, net)] {
        let failed = azure.list(&ScaleSetId::new(SET)).await.unwrap_err();
        assert!(failed.say.contains(say), "{failed}");
        let (sheet, one) = (Sheet::new(), [target("1")]);
        let later = SystemClock.now().plus(Span::seconds(60));
        let order = CallContext { before: later, ..sheet.order() };
        assert_eq!(azure.delete(&order, &one, false).await, CallOutcome::NotSent);
    }
}

async fn look(base: &str, net: &Net) -> Result<usize, ReadError> {
    Ok(adapter(base, net).list(&ScaleSetId::new(SET)).await?.instances.len())
}

fn trusting(ca: &str, proxy: Proxy) -> Net {
    Net { proxy, ca: Some(ca.as_bytes().to_vec()), ..Net::default() }
}

/// What a proxy answers to whoever wants to be connected.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Connects,
    /// Only for whoever shows this.
    Wants(&'static str),
    Forbids,
}

/// A proxy, and the heads of the requests it was sent.
struct Middleman {
    at: Url,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Middleman {
    async fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connect(stream, mood, Arc::clone(&ears)));
            }
        });
        Self { at, heads }
    }

    fn asked(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn connect(mut from: TcpStream, mood: Mood, ears: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if from.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let to = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let refusal = match mood {
        Mood::Wants(proof) if !head.contains(proof) => {
            Some("407 Proxy Authentication Required\r\nproxy-authenticate: Basic")
        }
        Mood::Forbids => Some("403 Forbidden"),
        _ => None,
    };
    ears.lock().unwrap().push(head);
    if let Some(refusal) = refusal {
        let text = format!("HTTP/1.1 {refusal}\r\ncontent-length: 0\r\n\r\n");
        let _ = from.write_all(text.as_bytes()).await;
        return;
    }
    let Ok(mut there) = TcpStream::connect(to).await else { return };
    let _ = from.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await;
    let _ = copy_bidirectional(&mut from, &mut there).await;
}

#[tokio::test]
async fn all_goes_through_the_proxy_that_is_named_tokens_too() {
    let (base, ca) = cloud().await;
    let proxy = Middleman::start(Mood::Connects).await;
    let net = trusting(&ca, Proxy::At(proxy.at.clone()));
    assert_eq!(look(&base, &net).await.unwrap(), 3);
    let asked = proxy.asked();
    let host = base.strip_prefix("https://").unwrap();
    assert!(!asked.is_empty());
    for head in &asked {
        assert!(head.starts_with(&format!("CONNECT {host} ")), "{head}");
        assert!(!head.to_lowercase().contains("bearer"), "it sees no token");
    }
    assert_eq!(look(&base, &trusting(&ca, Proxy::None)).await.unwrap(), 3);
    assert_eq!(proxy.asked().len(), asked.len());
}

#[tokio::test]
async fn a_proxy_that_wants_a_name_gets_the_one_in_its_address_and_nobody_sees_it() {
    let (base, ca) = cloud().await;
    let proxy = Middleman::start(Mood::Wants("Basic dXNlcjpwYXNzd29yZA==")).await;
    let mut known = proxy.at.clone();
    known.set_username("user").unwrap();
    known.set_password(Some("password")).unwrap();
    let net = trusting(&ca, Proxy::At(known));
    assert_eq!(look(&base, &net).await.unwrap(), 3);
    assert!(!format!("{net:?}").contains("password"), "{net:?}");
    let nameless = trusting(&ca, Proxy::At(proxy.at));
    closed(&base, &nameless, "put name and password into its address").await;
}

#[tokio::test]
async fn a_proxy_that_is_closed_or_away_is_said_so_and_nothing_is_taken_for_sent() {
    let (base, ca) = cloud().await;
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
    };
    let forbids = Middleman::start(Mood::Forbids).await;
    for (at, say) in [(gone, "nothing listens there"), (forbids.at.clone(), "name it in NO_PROXY")]
    {
        closed(&base, &trusting(&ca, Proxy::At(at)), say).await;
    }
}

const BASE: &str = "POOLKEEPER_TEST_BASE";
const CA: &str = "POOLKEEPER_TEST_CA";

/// The other half of the test below: in a process of its own, since the environment is everybody's.
#[tokio::test]
async fn in_an_environment_of_its_own() {
    let (Ok(base), Ok(ca)) = (std::env::var(BASE), std::env::var(CA)) else { return };
    assert_eq!(look(&base, &trusting(&ca, Proxy::FromEnvironment)).await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_names_the_proxy_and_those_who_need_none() {
    let (base, ca) = cloud().await;
    let proxy = Middleman::start(Mood::Connects).await;
    let child = |no_proxy: &str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "azure::proxies::in_an_environment_of_its_own"]);
        for name in
            ["HTTP_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"]
        {
            child.env_remove(name);
        }
        child.env(BASE, &base).env(CA, &ca).env("NO_PROXY", no_proxy);
        child.env("HTTPS_PROXY", proxy.at.as_str());
        async move { tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap() }
    };
    let out = child("elsewhere.example").await;
    assert!(out.status.success(), "{out:?}");
    let through = proxy.asked().len();
    assert!(through > 0, "it did not go through the proxy");
    let out = child("elsewhere.example,localhost").await;
    assert!(out.status.success(), "{out:?}");
    assert_eq!(proxy.asked().len(), through, "it was to go by itself");
}

#[tokio::test]
async fn an_authority_that_nobody_trusts_is_said_so_with_what_to_do() {
    let (base, _) = cloud().await;
    let (_, other) = cloud().await;
    for net in [Net { proxy: Proxy::None, ..Net::default() }, trusting(&other, Proxy::None)] {
        closed(&base, &net, "add that authority's certificate (PEM)").await;
    }
    let bad = Net { ca: Some(b"no certificate".to_vec()), ..Net::default() };
    let failed = bad.http().unwrap_err();
    assert!(failed.to_string().contains("no certificate (PEM)"), "{failed}");
}

#[tokio::test]
async fn what_speaks_no_tls_is_said_so() {
    let (listener, base) = silent().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let net = Net { proxy: Proxy::None, ..Net::default() };
    closed(&base, &net, "an address that speaks TLS").await;
}

/// Takes whoever comes, and says nothing to him.
async fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    (listener, base)
}

#[tokio::test]
async fn too_slow_to_connect_is_not_sent_and_too_slow_to_answer_is_lost() {
    let (_listener, base) = silent().await;
    let slow = Duration::from_millis(200);
    let net = Net { proxy: Proxy::None, connect_within: slow, ..Net::default() };
    closed(&base, &net, "could not be connected in time").await;

    for says in [Says::Stall("{".into()), Says::Stall(String::new())] {
        let kit = kit_of(Purse::default(), slow, move |_| says.clone()).await;
        let failed = kit.look().await.unwrap_err();
        assert!(failed.say.contains("nothing was heard for too long"), "{failed}");
        let answer = kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await;
        assert_eq!(answer, CallOutcome::Lost);
    }
}
