//! ARM's answers, through the adapter. A part begins with `== <kind> <status> <header>: <value>; …` and goes on with its
//! body; the answers of a kind are given in their order, and after them the usual one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, HttpClient, Method, Request, StatusCode};
use poolkeeper::act::{CallOutcome, ChangeCloud, Poll};
use poolkeeper::adapters::azure::Azure;
use poolkeeper::adapters::azure::cloud::AzureCloud;
use poolkeeper::ambient::Clock;
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::ids::Revision;
use poolkeeper::model::inventory::{Inventory, ModelFields};
use poolkeeper::model::journal::{OperationUrl, Refused};
use poolkeeper::model::machine::Machine;
use poolkeeper::model::owner::{OwnerTag, OwnerWrite};
use poolkeeper::model::time::{Span, Time};
use poolkeeper::observe::{Observation, ReadCloud, fold};
use serde_json::json;

use crate::azure::kit::{self as azure, Changes as _, Purse, Sheet};
use crate::{bounded, runtime};

const ARM: &str = "https://arm.example";
/// Of an operation's address, which is signed.
const SIGNATURE: &str = "c2lnbmF0dXJl";
const GALLERY: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/web";
/// What the path of a request holds, and the kind of its answer.
const KINDS: [(&str, &str); 8] = [
    ("/virtualMachines?", "machines"),
    ("/operations/", "operation"),
    ("/autoscalesettings", "autoscale"),
    ("/locks", "locks"),
    ("/skus", "sizes"),
    ("/usages", "usages"),
    ("/versions", "versions"),
    ("/permissions", "permissions"),
];

struct Said {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

struct Arm(Mutex<BTreeMap<String, VecDeque<Said>>>);

impl std::fmt::Debug for Arm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Arm")
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        azure::START
    }
}

fn said(text: &str) -> BTreeMap<String, VecDeque<Said>> {
    let mut all: BTreeMap<String, VecDeque<Said>> = BTreeMap::new();
    for part in text.strip_prefix("== ").unwrap_or(text).split("\n== ") {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        let mut words = head.splitn(3, ' ');
        let kind = words.next().unwrap_or_default();
        let status = words.next().and_then(|status| status.parse().ok()).unwrap_or(200);
        let headers = words.next().unwrap_or_default().split("; ");
        let headers = headers.filter_map(|header| header.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        let said = Said { status, headers: headers.collect(), body: body.to_owned() };
        all.entry(kind.to_owned()).or_default().push_back(said);
    }
    all
}

fn kind(request: &Request) -> &'static str {
    let path = request.url().as_str();
    let found = KINDS.iter().find(|(part, _)| path.contains(part));
    match (request.method(), found) {
        (Method::Get, Some((_, kind))) => kind,
        (Method::Get, None) => "set",
        _ => "write",
    }
}

fn usual(kind: &str) -> Said {
    let body = match kind {
        "set" | "write" => azure::set(),
        "machines" => json!({"value": [azure::machine(0), azure::machine(1)]}),
        _ => json!({"value": []}),
    };
    Said { status: 200, headers: Vec::new(), body: body.to_string() }
}

#[async_trait::async_trait]
impl HttpClient for Arm {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let kind = kind(request);
        let next = self.0.lock().unwrap().get_mut(kind).and_then(VecDeque::pop_front);
        let said = next.unwrap_or_else(|| usual(kind));
        let mut headers = Headers::new();
        for (name, value) in said.headers {
            headers.insert(name, value);
        }
        Ok(AsyncRawResponse::from_bytes(
            StatusCode::from(said.status),
            headers,
            said.body.into_bytes(),
        ))
    }
}

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let said = said(&text);
    let bodies = || said.values().flatten().map(|said| said.body.as_str());
    let echoes = bodies().any(|body| body.contains(SIGNATURE));
    let shown = runtime().block_on(everything(said));
    assert!(!shown.contains(azure::SECRET), "the token is shown: {shown}");
    assert!(echoes || !shown.contains(SIGNATURE), "an operation's address is shown: {shown}");
}

/// Each kind of call, and all that was shown of what became of it.
async fn everything(said: BTreeMap<String, VecDeque<Said>>) -> String {
    let cloud = AzureCloud::custom("https://login.example/", ARM, Some(ARM)).unwrap();
    let purse = Arc::new(Purse::default());
    *purse.origin.lock().unwrap() = Some(cloud.origin());
    let http = Arc::new(Arm(Mutex::new(said)));
    let azure = Azure::new(cloud, http, purse, None, Arc::new(Still));
    let (set, mut shown) = (azure::set_id(), String::new());
    for _ in 0..2 {
        match azure.list(&set).await {
            Ok(seen) => look(&seen, &mut shown),
            Err(failed) => {
                bounded(&failed);
                let _ = write!(shown, "{failed} {failed:?} ");
            }
        }
    }
    let (quota, follow) = (azure.quota(&set).await, azure.followed(GALLERY, &set).await);
    let _ = write!(shown, "{quota:?} {follow:?} {:?} ", azure.permissions(set.as_str()).await);
    changes(&azure, &mut shown).await;
    shown
}

fn look(seen: &Inventory, shown: &mut String) {
    assert!(seen.set.complete || !seen.gaps.is_empty(), "what lacks of it? {seen:?}");
    for gap in &seen.gaps {
        bounded(&gap.what);
        bounded(&gap.why);
    }
    // A page may repeat what another showed.
    let (tombs, vanished) = (&[], &[]);
    let (min_ready, now) = (Span::ZERO, azure::START);
    let look =
        Observation { inventory: seen, tombs, vanished, min_ready, now, before: None, fresh: true };
    let machines = fold(Vec::new(), &look).machines;
    let keys: BTreeSet<_> = machines.iter().map(Machine::key).collect();
    assert_eq!(keys.len(), machines.len(), "a machine has two records: {machines:?}");
    let _ = write!(shown, "{seen:?} ");
}

async fn changes(azure: &Azure, shown: &mut String) {
    let sheet = Sheet::new();
    let (order, targets) = (sheet.order(), [azure::target("0"), azure::target("1")]);
    let revision = Revision::new("r1");
    let expect = azure::expect(&revision, None);
    let fields = ModelFields { vm_size: Some("Standard_D4s_v3".into()), ..ModelFields::default() };
    let mut answers = vec![
        azure.raise(&order, 2, 3, &expect).await,
        azure.delete(&order, &targets, false).await,
        azure.reimage(&order, &targets).await,
        azure.update_model(&order, &fields, WriteScope::Image, &expect).await,
        azure.restore(&order, &targets).await,
    ];
    let tag = OwnerTag::parse("store since 2026-03-01T12:00:00Z");
    if let Some(tag) = tag {
        answers.push(azure.tag_owner(&order, &OwnerWrite::Put { tag, over: None }).await);
    }
    for answer in &answers {
        match answer {
            CallOutcome::Refused(why) | CallOutcome::RefusedFor(why, _) => refused(why),
            CallOutcome::Accepted(Some(operation)) => {
                let state = azure.poll(order.set, operation).await;
                let _ = write!(shown, "{state:?} ");
            }
            CallOutcome::Accepted(None)
            | CallOutcome::Done
            | CallOutcome::Lost
            | CallOutcome::NotSent => {}
        }
        let _ = write!(shown, "{answer:?} ");
    }
    let operation = OperationUrl::new(format!("async {ARM}/operations/o?s={SIGNATURE}"));
    let state = azure.poll(order.set, &operation).await;
    if let Poll::Failed(why) = &state {
        refused(why);
    }
    let _ = write!(shown, "{state:?} {operation:?} {azure:?}");
}

/// What a record keeps of a refusal.
fn refused(why: &Refused) {
    for text in [&why.code, &why.message].into_iter().flatten() {
        assert!(text.len() < 2_000, "{} bytes are kept of a refusal: {text}", text.len());
    }
}
