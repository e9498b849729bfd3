//! The stage: a made-up Azure, and the daemon that `serve` runs, in this process on the loopback. Time passes faster on it,
//! for both alike.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use tokio::task::JoinHandle;

use super::sight::Sight;
use crate::api::client::{Client, Request};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{client, cloud, emulate, serve};
use crate::daemon::door::{ListenError, NoDoor, listen};
use crate::daemon::run::{Calls, Daemon, Doors, Ended, FastClock, Plan, ServeError, Stop};
use crate::daemon::settings::{Settings, Sources};
use crate::daemon::{Access, descriptors};
use crate::emulator::{Emulator, Extremes, Listening, Rule, Seed};
use crate::memory::{Line, MemoryStore, Seq, Store};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

/// The pool, and its scale set.
pub const POOL: &str = "web";
pub const MACHINES: u32 = 30;
/// How long Azure wants to be left alone, once it does.
pub const PATIENCE: Span = Span::seconds(90);

const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/virtualMachineScaleSets/web";
const IMAGE: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/galleries/demo/images/web/versions/";
/// Where the commands of this program ask, where nobody says otherwise.
const USUAL_PORT: u16 = 7770;
/// Lines of history that are read at once.
const LINES: usize = 200;

/// Which image the pool is meant to be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Old,
    New,
}

#[derive(Debug)]
pub struct Stage {
    pub azure: SocketAddr,
    pub api: SocketAddr,
    pub clock: FastClock,
    pub began: Time,
    emulator: Emulator,
    doors: Doors<MemoryStore, FastClock>,
    pool: PoolName,
    client: Client,
    read: Seq,
    stop: Stop,
    daemon: JoinHandle<Result<Ended, ServeError>>,
}

impl Stage {
    /// Everything listens, and the daemon runs; no pool is there yet. `api`: where its API must listen.
    pub async fn set_up(api: Option<SocketAddr>, times: u32) -> Result<Self, Failure> {
        if let Some(api) = api.filter(|api| !api.ip().is_loopback()) {
            let say = format!("{api} is reached by others: the demo listens on this machine only");
            return Err(Failure::usage(say).help("use 127.0.0.1 or [::1], or leave --listen out"));
        }
        let clock = FastClock::new(times);
        let seed = seed()?;
        let emulator = Emulator::new(&seed, 1.0, std::sync::Arc::new(clock))
            .map_err(|error| fault(&format!("the made-up Azure is not sound: {error}")))?;
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let there = Listening::at(free, None).await.map_err(|error| emulate::unserved(&error))?;
        let azure = there.address();
        tokio::spawn(there.serve(emulator.clone()));
        let (daemon, api) = open(api, azure, &seed.tenant, clock).await?;
        let (doors, stop) = (daemon.doors(), daemon.stop());
        let client = Client::new(&format!("http://{api}"), None, None)
            .map_err(|error| client::failure(&error))?;
        let (pool, read) = (PoolName::new(POOL), Seq(0));
        let daemon = tokio::spawn(daemon.run());
        let began = doors.now();
        Ok(Self { azure, api, clock, began, emulator, doors, pool, client, read, stop, daemon })
    }

    /// As everybody would: over the API.
    pub async fn apply(&self, version: Version) -> Result<(), Failure> {
        let (document, why) = (document(version), "the demo");
        let path = ["pools", POOL];
        let request = Request::put(&path, document.into_bytes());
        let request = request.map_err(|error| client::failure(&error))?.with("why", why);
        self.client.send(&request).await.map(|_| ()).map_err(|error| client::failure(&error))
    }

    /// From now on this machine serves nobody.
    pub fn sicken(&self, machine: &str) -> Result<(), Failure> {
        let order = json!({ "instance": machine, "deed": { "sicken": {} } });
        self.emulator.befall(&order).map_err(|why| fault(&format!("machine {machine}: {why}")))
    }

    /// The next call about the scale set is refused for the number of them.
    pub fn throttle(&self) -> Result<(), Failure> {
        let seconds = PATIENCE.millis() / 1_000;
        let rule = json!({ "path": SET, "times": 1, "status": 429, "code": "TooManyRequests",
            "retryAfter": seconds });
        let rule: Rule = serde_json::from_value(rule).map_err(|error| fault(&error.to_string()))?;
        self.emulator.order(rule);
        Ok(())
    }

    pub fn now(&self) -> Time {
        self.doors.now()
    }

    /// `None`: no turn decided anything yet.
    pub async fn look(&self) -> Option<Sight> {
        let scene = self.doors.bell.scene(&self.pool).await?;
        Sight::of(&scene, self.calls(), self.doors.counters().laws(), self.now())
    }

    pub fn calls(&self) -> Calls {
        self.doors.calls()
    }

    /// What was told since this was asked last.
    pub async fn news(&mut self) -> Result<Vec<Line>, Failure> {
        let told = self.doors.store.history_after(&self.pool, self.read, LINES).await;
        let told = told.map_err(|error| fault(&error.to_string()))?;
        self.read = told.last().map_or(self.read, |(seq, _)| *seq);
        Ok(told.into_iter().map(|(_, line)| line).collect())
    }

    /// By what was really there, not by what the daemon saw.
    pub fn extremes(&self) -> Option<Extremes> {
        self.emulator.extremes()
    }

    /// The daemon ended by itself, which it never should.
    pub fn has_ended(&self) -> bool {
        self.daemon.is_finished()
    }

    /// As a signal would end it: in order.
    pub async fn end(self) -> Result<(), Failure> {
        self.stop.stop();
        match self.daemon.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(fault(&error.to_string())),
            Err(_) => Err(fault("the daemon broke down")),
        }
    }
}

fn seed() -> Result<Seed, Failure> {
    let seed = json!({
        "scaleSets": [{ "name": POOL, "resourceGroup": "demo", "capacity": MACHINES,
            "zones": ["1", "2", "3"], "image": image(Version::Old) }],
        "settings": { "record": true },
    });
    serde_json::from_value(seed).map_err(|error| fault(&error.to_string()))
}

fn image(version: Version) -> String {
    let number = match version {
        Version::Old => "1.0.0",
        Version::New => "1.1.0",
    };
    format!("{IMAGE}{number}")
}

fn document(version: Version) -> String {
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {POOL}\nscaleSet: {SET}\n\
         replicas: {{owner: pool, count: {MACHINES}}}\nmodel: {{image: {}}}\n\
         rollout: {{maxSurge: 3, maxUnavailable: 1, minReady: 30s}}\nrepair: {{after: 2m}}\nadopt: roll\n",
        image(version)
    )
}

/// At the usual port where nobody says otherwise; where that is taken, at any.
async fn open(
    api: Option<SocketAddr>,
    azure: SocketAddr,
    tenant: &str,
    clock: FastClock,
) -> Result<(Daemon<MemoryStore, FastClock>, SocketAddr), Failure> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
    let mut places = vec![api.unwrap_or(usual)];
    places.extend(api.is_none().then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
    let mut refused = None;
    for place in places {
        let settings = settings(place, azure, tenant)?;
        let secret = |name: &str| (name == "AZURE_CLIENT_SECRET").then(|| "made-up".to_owned());
        let access =
            Access::settle(&settings.choice, secret).map_err(|bad| cloud::not_opened(&bad))?;
        let plan = Plan::forgetful(settings, access, clock);
        let opened = Daemon::open(plan).await;
        let mut daemon = opened.map_err(|error| fault(&error.to_string()))?;
        match listen(&mut daemon, descriptors::raise()).await {
            Ok(Some(address)) => return Ok((daemon, address)),
            Ok(None) => return Err(fault("the API listens nowhere")),
            Err(no_door @ NoDoor::Listen(ListenError::Listen { .. })) => refused = Some(no_door),
            Err(no_door) => return Err(serve::closed(&no_door)),
        }
    }
    Err(refused.map_or_else(
        || fault("there is no port"),
        |no_door| {
            serve::closed(&no_door)
                .help("something listens there already: leave --listen out, or name another port")
        },
    ))
}

fn settings(api: SocketAddr, azure: SocketAddr, tenant: &str) -> Result<Settings, Failure> {
    let azure = format!("http://{azure}");
    let set = [
        ("pools", "off".to_owned()),
        ("store.path", "memory".to_owned()),
        // A machine that slept is no reason to stop leading: nobody else is there.
        ("lease.ttl", "1h".to_owned()),
        ("api.listen", api.to_string()),
        ("azure.resourceManager", azure.clone()),
        ("azure.authority", azure),
        ("azure.auth", "client-secret".to_owned()),
        ("azure.tenant", tenant.to_owned()),
        // It believes whoever asks.
        ("azure.clientId", "demo".to_owned()),
    ];
    let flags = set.into_iter().map(|(key, value)| ("set", key.to_owned(), value)).collect();
    let settled = Sources { flags, ..Sources::default() }.settle();
    let first = |faults: Vec<_>| faults.first().map_or_else(String::new, ToString::to_string);
    settled.map(|settled| settled.settings()).map_err(|faults| fault(&first(faults)))
}

/// Nothing of it depends on what a person gave.
fn fault(say: &str) -> Failure {
    Failure::new(Exit::Internal, "internal", say)
}
