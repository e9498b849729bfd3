//! A rehearsal whose cloud is at the other end of a wire: the adapter behind its manners, one client for tokens and calls,
//! a listener on the loopback, the emulator, and the rehearsal's own world in it for as long as each exchange takes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use azure_core::credentials::Secret;
use azure_core::http::HttpClient;
use poolkeeper::act::{
    AskHooks, CallContext, CallOutcome, ChangeCloud, ChangeCluster, DrainProgress, DrainRequest,
    GoneRequest, SignsOutcome, SignsRequest,
};
use poolkeeper::adapters::azure::auth::{AuthSettings as Auth, ClientSecret, TokenCache, Way};
use poolkeeper::adapters::azure::cloud::AzureCloud;
use poolkeeper::adapters::azure::{Azure, Net, Proxy};
use poolkeeper::ambient::{Clock, Sleep};
use poolkeeper::emulator::{Emulator, EmulatorListener, Seed, Tls};
use poolkeeper::memory::MemoryStore;
use poolkeeper::model::backend::HookOrder;
use poolkeeper::model::hook::HookAnswer;
use poolkeeper::model::ids::{EntryId, PoolName, ScaleSetId};
use poolkeeper::model::plan::Facts;
use poolkeeper::model::policy::{Draft, Image, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Time;
use poolkeeper::observe::{ReadCloud, ReadFacts};
use poolkeeper::pace::{Pacer, SerializedCloud};
use poolkeeper::reconcile::{Decisions, TurnEnvironment};
use poolkeeper::sim::{Backstage, NotReady, Road, RunOutcome, START, Scenario, run_over};
use poolkeeper::world;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::arm;
pub use crate::support::arm::{SUBSCRIPTION, image};
use crate::wire::carrier::{Carrier, GLOBAL, Heard, TENANT, nowhere};
pub use crate::wire::carrier::{Mishap, Passing, Trouble};

/// The same as the made-up cloud keeps it.
pub fn reference(version: &str) -> String {
    json!({ "id": image(version) }).to_string()
}

pub fn set_id(name: &str) -> ScaleSetId {
    ScaleSetId::new(arm::set(name))
}

/// A cluster without nodes, beside the facts that it is made with.
#[derive(Debug)]
pub struct NoNodes(pub Facts);

impl ReadFacts for NoNodes {
    async fn facts(&self, _pool: &PoolName) -> Facts {
        self.0.clone()
    }
}

impl ChangeCluster for NoNodes {
    async fn drain(&self, _order: &CallContext<'_>, _machine: DrainRequest<'_>) -> CallOutcome {
        CallOutcome::Done
    }

    async fn drain_state(&self, _: &EntryId, _machine: DrainRequest<'_>) -> DrainProgress {
        DrainProgress::Done
    }

    async fn drain_states(&self, drains: &[(EntryId, DrainRequest<'_>)]) -> Vec<DrainProgress> {
        let mut all = Vec::new();
        for (entry, machine) in drains {
            all.push(self.drain_state(entry, *machine).await);
        }
        all
    }

    async fn release(&self, _machine: DrainRequest<'_>) -> CallOutcome {
        CallOutcome::Done
    }

    async fn show_signs(&self, _request: SignsRequest<'_>) -> SignsOutcome {
        SignsOutcome::default()
    }

    async fn remove_gone(&self, _request: GoneRequest<'_>) -> Option<Box<str>> {
        None
    }
}

impl AskHooks for NoNodes {
    async fn ask(&self, orders: &[HookOrder<'_>]) -> Vec<HookAnswer> {
        let none = || HookAnswer::Refused { say: "there is no webhook".to_owned() };
        orders.iter().map(|_| none()).collect()
    }
}

/// A daemon, as far as its turns see it.
pub struct House<A, C> {
    pub cloud: Arc<A>,
    pub nodes: NoNodes,
    pub store: MemoryStore,
    pub decide: Decisions,
    pub clock: C,
}

impl<A: ReadCloud + ChangeCloud, C: Clock> TurnEnvironment for House<A, C> {
    type Facts = NoNodes;
    type Cloud = A;
    type Cluster = NoNodes;
    type Hooks = NoNodes;
    type Store = MemoryStore;
    type Decide = Decisions;
    type Clock = C;

    fn facts(&self) -> &NoNodes {
        &self.nodes
    }

    fn cloud(&self) -> &A {
        &self.cloud
    }

    fn cluster(&self) -> &NoNodes {
        &self.nodes
    }

    fn hooks(&self) -> &NoNodes {
        &self.nodes
    }

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    fn decide(&self) -> &Decisions {
        &self.decide
    }

    fn clock(&self) -> &C {
        &self.clock
    }
}

/// The defaults of a pool file but for the ramp, which only slows tests down.
pub fn policy(name: &str, count: u32, how: impl FnOnce(&mut Draft)) -> Policy {
    let mut draft = Draft { count, ..Draft::with_defaults(PoolName::new(name), set_id(name)) };
    draft.rollout.ramp = None;
    how(&mut draft);
    Policy::build(draft).unwrap()
}

pub fn limits(draft: &mut Draft, surge: &str, unavailable: &str) {
    draft.rollout.max_surge = Quantity::parse(surge).unwrap();
    draft.rollout.max_unavailable = Quantity::parse(unavailable).unwrap();
}

/// The pool's file names the new image.
pub fn upgraded(draft: &mut Draft) {
    draft.model.image = Some(Image::Exact(image("2.0.0").into()));
}

/// What is at the other end of the wire.
#[derive(Debug, Clone)]
pub struct There {
    pub machines: u32,
    pub flexible: bool,
    /// Further keys of the seed, and of its set.
    pub seed: Value,
    pub set: Value,
    pub trouble: Trouble,
    /// Tokens come from the identity service of the machine.
    pub managed: bool,
    /// The adapter asks a host of the region, and every link that it is given names the host of the whole cloud.
    pub regional: bool,
}

impl There {
    pub fn uniform(machines: u32) -> Self {
        let (seed, set) = (json!({}), json!({}));
        let (trouble, managed, regional) = (Trouble::default(), false, false);
        Self { machines, flexible: false, seed, set, trouble, managed, regional }
    }

    pub fn flexible(machines: u32) -> Self {
        Self { flexible: true, ..Self::uniform(machines) }
    }

    fn seed(&self, name: &str) -> Seed {
        let mut set = json!({
            "name": name, "capacity": self.machines, "flexible": self.flexible, "image": image("1.0.0"),
        });
        lay_over(&mut set, &self.set);
        let mut seed = json!({
            "scaleSets": [set], "strictTokens": true,
            "identities": [{"clientId": "app", "secret": "right"}],
        });
        lay_over(&mut seed, &self.seed);
        serde_json::from_value(seed).unwrap()
    }
}

fn lay_over(to: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        to[key] = value.clone();
    }
}

/// The emulator is there before the stage whose time it goes by.
#[derive(Debug, Clone, Default)]
struct StageTime(Arc<OnceLock<Backstage>>);

impl Clock for StageTime {
    fn now(&self) -> Time {
        self.0.get().map_or(START, Clock::now)
    }
}

/// The road: everything on one thread, and no timer but those of the client.
#[derive(Debug)]
pub struct Wire {
    runtime: Runtime,
    paced: SerializedCloud<Azure>,
}

impl Road for Wire {
    type Cloud = SerializedCloud<Azure>;

    fn cloud(&self) -> &Self::Cloud {
        &self.paced
    }

    fn go<F: Future>(&self, journey: F) -> Result<F::Output, NotReady> {
        Ok(self.runtime.block_on(journey))
    }
}

/// A listener that serves the emulator for as long as the runtime runs, and how to reach it.
pub struct Ends {
    pub runtime: Runtime,
    pub cloud: AzureCloud,
    pub net: Net,
}

pub fn ends(emulator: &Emulator) -> Ends {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = "127.0.0.1:0".parse().unwrap();
    let tls = Tls::made().unwrap();
    let ca = tls.authority.clone().unwrap().into_bytes();
    let there = runtime.block_on(EmulatorListener::at(address, Some(tls))).unwrap();
    let base = format!("https://localhost:{}", there.address().port());
    runtime.spawn(there.serve(emulator.clone()));
    let cloud = AzureCloud::custom(&base, &base, None).unwrap();
    Ends { runtime, cloud, net: Net { proxy: Proxy::None, ca: Some(ca), ..Net::default() } }
}

pub fn tokens<C: Sleep + Send + Sync>(
    cloud: &AzureCloud,
    http: &Arc<dyn HttpClient>,
    clock: C,
) -> Arc<TokenCache<C>> {
    tokens_by(Way::ClientSecret, cloud, http, clock)
}

fn tokens_by<C: Sleep + Send + Sync>(
    way: Way,
    cloud: &AzureCloud,
    http: &Arc<dyn HttpClient>,
    clock: C,
) -> Arc<TokenCache<C>> {
    let settings = Auth {
        way: Some(way),
        tenant: Some(TENANT.into()),
        client: Some("app".into()),
        secret: Some(ClientSecret::Value(Secret::new("right"))),
        ..Auth::new(cloud.clone())
    };
    Arc::new(TokenCache::new(settings, Arc::clone(http), clock))
}

fn wire(
    emulator: &Emulator,
    stage: &Backstage,
    policy: &Policy,
    there: &There,
    heard: &Arc<Heard>,
) -> Wire {
    let Ends { runtime, mut cloud, net } = ends(emulator);
    let base = cloud.resource_manager().clone();
    if there.regional {
        let region = format!("https://eastus2.{GLOBAL}");
        cloud = AzureCloud::custom(base.as_str(), &region, None).unwrap();
    }
    let hasty = Net { answer_within: Duration::from_millis(40), ..net.clone() };
    let carrier = Carrier {
        patient: net.http().unwrap(),
        hasty: hasty.http().unwrap(),
        emulator: emulator.clone(),
        stage: stage.clone(),
        trouble: there.trouble.clone(),
        base,
        one_at_a_time: tokio::sync::Mutex::new(0),
        heard: Arc::clone(heard),
    };
    let http: Arc<dyn HttpClient> = Arc::new(carrier);
    let way = if there.managed { Way::ManagedIdentity } else { Way::ClientSecret };
    let tokens = tokens_by(way, &cloud, &http, stage.clone());
    let pacer = Arc::new(Pacer::new(stage.clone()));
    let paced = Some(Arc::clone(&pacer));
    let azure = Azure::new(cloud, http, tokens, paced, Arc::new(stage.clone()));
    azure.watch(&policy.name, policy);
    Wire { runtime, paced: SerializedCloud::new(azure, pacer) }
}

/// What a rehearsal over the wire came to.
pub struct Played {
    pub outcome: RunOutcome,
    /// Requests to ARM as the other end counts them, by method and kind; those for tokens are not among them.
    pub requests: BTreeMap<String, u64>,
    pub throttled: u64,
    pub mishaps: u64,
    /// Tokens asked for.
    pub tokens: u64,
    /// The emulator's own account of itself.
    pub state: Value,
    deletes: Vec<Value>,
    /// Bodies of PATCHes of the set.
    pub patches: Vec<Value>,
    /// And of PUTs, as they were sent.
    pub puts: Vec<String>,
}

impl Played {
    /// Instance ids that were sent in deletes, sorted.
    pub fn deleted(&self) -> Vec<String> {
        let ids = self.deletes.iter().flat_map(|body| body["instanceIds"].as_array().unwrap());
        let mut ids: Vec<String> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
        ids.sort_unstable();
        ids
    }

    /// Those that were sent in more than one.
    pub fn deleted_twice(&self) -> Vec<String> {
        let ids = self.deleted();
        let twice = ids.windows(2).filter(|pair| pair[0] == pair[1]);
        twice.map(|pair| pair[0].clone()).collect()
    }

    /// Its end, for a test that failed.
    pub fn story(&self, lines: usize) -> String {
        let all = &self.outcome.story;
        let last = all[all.len().saturating_sub(lines)..].join("\n");
        let why = self.outcome.last_failure.as_deref().unwrap_or("none");
        format!("{last}\n{} turns failed, the last: {why}", self.outcome.failed)
    }

    pub fn calls(&self) -> u64 {
        self.requests.values().sum()
    }

    pub fn asked(&self, of: impl Fn(&str) -> bool) -> u64 {
        self.requests.iter().filter(|(kind, _)| of(kind)).map(|(_, n)| n).sum()
    }
}

/// What is rehearsed: a calm world, as the emulator has it, with the scenario's own trouble.
pub fn scenario(policy: &Policy, there: &There, seed: u64) -> Scenario {
    let set = world::SetSpec::new(policy.name.as_str(), there.machines, &reference("1.0.0"));
    Scenario::plain(policy.clone(), seed, set)
}

pub fn play(scenario: &Scenario, there: &There) -> Played {
    let clock = StageTime::default();
    let mut seed = there.seed(scenario.policy.name.as_str());
    seed.seed = scenario.seed;
    let emulator = Emulator::new(&seed, 1.0, Arc::new(clock.clone())).unwrap();
    let heard = Arc::new(Heard::default());
    let world = emulator.exchange(nowhere());
    let set = world.sets().next().unwrap().0;
    let ends = OnceLock::new();
    let outcome = run_over(scenario, world, set, |stage| {
        let wire = wire(&emulator, &stage, &scenario.policy, there, &heard);
        ends.set(stage.clone()).unwrap();
        clock.0.set(stage).unwrap();
        wire
    });
    // The world goes back once more, so that the emulator can tell what it answered.
    let stage = ends.into_inner().unwrap();
    stage.lend(false, |world| drop(emulator.exchange(world)));
    let state = emulator.state();
    let requests = serde_json::from_value(state["requests"].clone()).unwrap();
    let throttled = emulator.with_world(|world| world.calls().values().map(|c| c.throttled).sum());
    let deletes = std::mem::take(&mut *heard.deletes.lock().unwrap());
    let patches = std::mem::take(&mut *heard.patches.lock().unwrap());
    let puts = std::mem::take(&mut *heard.puts.lock().unwrap());
    let (mishaps, tokens) = (heard.mishaps.load(Relaxed), heard.tokens.load(Relaxed));
    Played { outcome, requests, throttled, mishaps, tokens, state, deletes, patches, puts }
}
