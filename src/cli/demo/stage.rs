//! The stage: the Azure emulator and the daemon that `serve` runs, in this process on the loopback. Time passes faster,
//! equally for both.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinHandle;

use super::service::{ServiceLimits, ServiceReport};
use crate::cli::client::ServerLine;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::text::short;
use crate::cli::{cloud, emulate, serve};
use crate::daemon::api_server::{ApiServerError, ListenError, listen};
use crate::daemon::run::{Calls, Daemon, DaemonConfig, DaemonEnd, FastClock, ServeError, Stop};
use crate::daemon::settings::{Settings, Sources};
use crate::daemon::{Access, Handle, descriptors};
use crate::emulator::{Emulator, EmulatorListener, Extremes, Rule, Seed};
use crate::memory::MemoryStore;
use crate::model::time::{Span, Time};

/// Name of the pool and of its scale set.
pub const POOL: &str = "web";
pub const MACHINES: u32 = 30;
/// How long a machine must be unhealthy before it is replaced.
pub const GRACE: Span = Span::minutes(2);
/// The Retry-After of a throttled call.
pub const QUIET: Span = Span::seconds(90);

const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/virtualMachineScaleSets/web";
const IMAGE: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/demo/providers/Microsoft.Compute/galleries/demo/images/web/versions/";
/// The port that this program's commands use by default.
const USUAL_PORT: u16 = 7770;

/// The desired image of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoVersion {
    Old,
    New,
}

#[derive(Debug)]
pub struct DemoStage {
    pub azure: SocketAddr,
    pub api: SocketAddr,
    pub clock: FastClock,
    pub began: Time,
    emulator: Emulator,
    handle: Arc<Handle<MemoryStore, FastClock>>,
    stop: Stop,
    daemon: JoinHandle<Result<DaemonEnd, ServeError>>,
}

impl DemoStage {
    /// Starts the emulator and the daemon, without a pool. `api`: the address on which the API must listen.
    pub async fn set_up(api: Option<SocketAddr>, times: u32) -> Result<Self, CommandFailure> {
        if let Some(api) = api.filter(|api| !api.ip().is_loopback()) {
            let say = format!(
                "{api} is reachable from other machines: the demo listens on loopback only"
            );
            return Err(
                CommandFailure::usage(say).help("use 127.0.0.1 or [::1], or leave --listen out")
            );
        }
        let clock = FastClock::new(times);
        let seed = seed()?;
        let emulator = Emulator::new(&seed, 1.0, Arc::new(clock))
            .map_err(|error| fault(&format!("the Azure emulator failed: {error}")))?;
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let there =
            EmulatorListener::at(free, None).await.map_err(|error| emulate::unserved(&error))?;
        let azure = there.address();
        tokio::spawn(there.serve(emulator.clone()));
        let (daemon, api) = open(api, azure, &seed.tenant, clock).await?;
        let (handle, stop) = (daemon.handle(), daemon.stop());
        let daemon = tokio::spawn(daemon.run());
        let began = handle.now();
        Ok(Self { azure, api, clock, began, emulator, handle, stop, daemon })
    }

    /// A connection, as any client has one.
    pub fn line(&self) -> Result<ServerLine, CommandFailure> {
        ServerLine::without_token(&format!("http://{}", self.api))
    }

    /// Makes a machine unhealthy from now on.
    pub fn sicken(&self, machine: &str) -> Result<(), CommandFailure> {
        let order = json!({ "instance": machine, "deed": { "sicken": {} } });
        self.emulator.befall(&order).map_err(|why| fault(&format!("machine {machine}: {why}")))
    }

    /// Makes Azure throttle the next call about the scale set.
    pub fn throttle(&self) -> Result<(), CommandFailure> {
        let seconds = QUIET.millis() / 1_000;
        let rule = json!({ "path": SET, "times": 1, "status": 429, "code": "TooManyRequests",
            "message": "the subscription is over its limit of calls", "retryAfter": seconds });
        let rule: Rule = serde_json::from_value(rule).map_err(|error| fault(&error.to_string()))?;
        self.emulator.order(rule);
        Ok(())
    }

    pub fn now(&self) -> Time {
        self.handle.now()
    }

    pub fn calls(&self) -> Calls {
        self.handle.calls()
    }

    /// The number of broken invariants.
    pub fn violations(&self) -> u64 {
        self.handle.counters().laws()
    }

    /// The extremes of the emulated machines themselves, not of what the daemon saw.
    pub fn extremes(&self) -> Option<Extremes> {
        self.emulator.extremes()
    }

    /// Whether the emulated machines kept serving until now, while these failed by themselves.
    pub fn service(&self, limits: ServiceLimits, failed: &[Box<str>]) -> Option<ServiceReport> {
        let now = self.emulator.now();
        ServiceReport::new(&self.emulator.ready_counts(), now, limits, failed)
    }

    /// Whether the daemon ended by itself, which must never happen.
    pub fn has_ended(&self) -> bool {
        self.daemon.is_finished()
    }

    /// Stops the daemon gracefully, as a signal would.
    pub async fn end(self) -> Result<(), CommandFailure> {
        self.stop.stop();
        match self.daemon.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(fault(&error.to_string())),
            Err(_) => Err(fault("the daemon broke down")),
        }
    }
}

fn seed() -> Result<Seed, CommandFailure> {
    let seed = json!({
        "scaleSets": [{ "name": POOL, "resourceGroup": "demo", "capacity": MACHINES,
            "zones": ["1", "2", "3"], "image": DemoVersion::Old.image() }],
        "settings": { "record": true },
    });
    serde_json::from_value(seed).map_err(|error| fault(&error.to_string()))
}

impl DemoVersion {
    pub const fn number(self) -> &'static str {
        match self {
            DemoVersion::Old => "1.0.0",
            DemoVersion::New => "1.1.0",
        }
    }

    fn image(self) -> String {
        format!("{IMAGE}{}", self.number())
    }
}

/// The pool document with this image.
pub fn document(version: DemoVersion) -> String {
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {POOL}\nscaleSet: {SET}\n\
         replicas: {{owner: pool, count: {MACHINES}}}\nmodel: {{image: {}}}\n\
         rollout: {{maxSurge: 3, maxUnavailable: 1, minReady: 30s}}\nrepair: {{after: {}}}\nadopt: roll\n",
        version.image(),
        short(GRACE)
    )
}

/// Opens the daemon at `api`. Without `api`, tries the usual port, then any free port.
async fn open(
    api: Option<SocketAddr>,
    azure: SocketAddr,
    tenant: &str,
    clock: FastClock,
) -> Result<(Daemon<MemoryStore, FastClock>, SocketAddr), CommandFailure> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
    let mut places = vec![api.unwrap_or(usual)];
    places.extend(api.is_none().then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
    let mut refused = None;
    for place in places {
        let settings = settings(place, azure, tenant)?;
        let secret = |name: &str| (name == "AZURE_CLIENT_SECRET").then(|| "demo".to_owned());
        let access =
            Access::settle(&settings.choice, secret).map_err(|bad| cloud::not_opened(&bad))?;
        let plan = DaemonConfig::forgetful(settings, access, clock);
        let opened = Daemon::open(plan).await;
        let mut daemon = opened.map_err(|error| fault(&error.to_string()))?;
        match listen(&mut daemon, descriptors::raise()).await {
            Ok(Some(address)) => return Ok((daemon, address)),
            Ok(None) => return Err(fault("the API listens nowhere")),
            Err(error @ ApiServerError::Listen(ListenError::Listen { .. })) => {
                refused = Some(error);
            }
            Err(error) => return Err(serve::closed(&error)),
        }
    }
    Err(refused.map_or_else(
        || fault("there is no port"),
        |error| {
            serve::closed(&error)
                .help("the port is in use: leave --listen out, or choose another port")
        },
    ))
}

fn settings(api: SocketAddr, azure: SocketAddr, tenant: &str) -> Result<Settings, CommandFailure> {
    let azure = format!("http://{azure}");
    let set = [
        ("pools", "off".to_owned()),
        ("store.path", "memory".to_owned()),
        // The daemon must keep the lease even if the host sleeps: there is no other candidate.
        ("lease.ttl", "1h".to_owned()),
        ("api.listen", api.to_string()),
        ("azure.resourceManager", azure.clone()),
        ("azure.authority", azure),
        ("azure.auth", "client-secret".to_owned()),
        ("azure.tenant", tenant.to_owned()),
        // The emulator accepts any client.
        ("azure.clientId", "demo".to_owned()),
    ];
    let flags = set.into_iter().map(|(key, value)| ("set", key.to_owned(), value)).collect();
    let settled = Sources { flags, ..Sources::default() }.settle();
    let first = |faults: Vec<_>| faults.first().map_or_else(String::new, ToString::to_string);
    settled.map(|settled| settled.settings()).map_err(|faults| fault(&first(faults)))
}

/// An internal error: no user input can cause it.
fn fault(say: &str) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", say)
}
