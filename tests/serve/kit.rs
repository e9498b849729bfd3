//! A daemon and its emulator in one process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use poolkeeper::ambient::{Clock, FastClock, Sleep};
use poolkeeper::daemon::api_server::{ApiServerError, listen};
use poolkeeper::daemon::board::{ManagementStatus, PoolBoard};
use poolkeeper::daemon::run::{Daemon, DaemonConfig, DaemonEnd, Stop};
use poolkeeper::daemon::settings::Sources;
use poolkeeper::daemon::{Access, Handle, ServiceNotify};
use poolkeeper::emulator::{Emulator, EmulatorListener, Seed};
use poolkeeper::memory::{ApiStore, MemoryStore, Store};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::reconcile::Decisions;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use crate::support::arm::{image, set};

pub const SECRET: &str = "swordfish-in-the-secret";

/// A minute in a third of a second: a rollout of minutes ends within seconds, and a read stays fresh over a slow answer.
const SPEED: u32 = 200;

/// Files and connections that a daemon here may open.
const DESCRIPTORS: u64 = 4_096;

/// Nothing here takes this long but what never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A pool that wants this many machines on this version.
pub fn pool(name: &str, count: u32, version: &str) -> String {
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: {}\nreplicas: {{owner: pool, count: {count}}}\n\
         model: {{image: {}}}\nrollout: {{maxSurge: 1, minReady: 10s, ramp: off, coalesce: 1s}}\nadopt: roll\n",
        set(name),
        image(version)
    )
}

pub struct House {
    pub emulator: Emulator,
    pub clock: FastClock,
    pub store: Arc<MemoryStore>,
    pub folder: PathBuf,
    base: String,
    tenant: String,
}

impl House {
    /// Sets of this many machines on version 1.0.0.
    pub async fn new(test: &str, sets: &[(&str, u32)]) -> Self {
        Self::seeded(test, sets, json!([])).await
    }

    /// The same, behind a load balancer: one backend pool for all.
    pub async fn balanced(test: &str, sets: &[(&str, u32)]) -> Self {
        let balancers = json!([{"name": "front", "pools": ["web"]}]);
        Self::seeded(test, sets, balancers).await
    }

    async fn seeded(test: &str, sets: &[(&str, u32)], balancers: Value) -> Self {
        let clock = FastClock::new(SPEED);
        let balanced = balancers.as_array().is_some_and(|all| !all.is_empty());
        let pools: &[&str] = if balanced { &["front/web"] } else { &[] };
        let set = |(name, count): &(&str, u32)| json!({"name": name, "capacity": count, "image": image("1.0.0"), "pools": pools});
        let sets: Vec<Value> = sets.iter().map(set).collect();
        let seed = json!({
            "scaleSets": sets, "loadBalancers": balancers, "strictTokens": true,
            "identities": [{"clientId": "app", "secret": SECRET}],
        });
        let seed: Seed = serde_json::from_value(seed).unwrap();
        let emulator = Emulator::new(&seed, 1.0, Arc::new(clock)).unwrap();
        let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let base = format!("http://{}", there.address());
        tokio::spawn(there.serve(emulator.clone()));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serve").join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let store = Arc::new(MemoryStore::new());
        Self { emulator, clock, store, folder, base, tenant: seed.tenant }
    }

    pub fn write(&self, file: &str, text: &str) {
        // As an editor does it: whole, or not at all.
        let aside = self.folder.join(".aside");
        fs::write(&aside, text).unwrap();
        // A key among them: others may not read it.
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&aside, self.folder.join(file)).unwrap();
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(self.folder.join(file)).unwrap();
    }

    pub async fn begin(&self) -> Running {
        self.begin_as("first", Decisions::PRODUCTION, &[]).await
    }

    pub async fn begin_as(&self, holder: &str, decide: Decisions, set: &[(&str, &str)]) -> Running {
        Running::begin(self.open(holder, decide, set).await)
    }

    /// With its API on a free port, or the reason why not.
    pub async fn serve(
        &self,
        holder: &str,
        set: &[(&str, &str)],
    ) -> Result<Served, ApiServerError> {
        let mut daemon = self.open(holder, Decisions::PRODUCTION, set).await;
        let address = listen(&mut daemon, DESCRIPTORS).await?;
        Ok(Served { daemon: Running::begin(daemon), address: address.unwrap() })
    }

    /// Put together, and not begun.
    pub async fn open(
        &self,
        holder: &str,
        decide: Decisions,
        set: &[(&str, &str)],
    ) -> Daemon<MemoryStore, FastClock> {
        self.open_on(Arc::clone(&self.store), holder, decide, set).await
    }

    /// The same, on a store of another kind.
    pub async fn open_on<S: Store + ApiStore + Send + Sync + 'static>(
        &self,
        store: Arc<S>,
        holder: &str,
        decide: Decisions,
        set: &[(&str, &str)],
    ) -> Daemon<S, FastClock> {
        let mut flags = vec![
            ("set", "azure.auth".to_owned(), "client-secret".to_owned()),
            ("pools", "pools".to_owned(), self.folder.display().to_string()),
            ("set", "lease.ttl".to_owned(), "10m".to_owned()),
            ("set", "api.listen".to_owned(), "127.0.0.1:0".to_owned()),
        ];
        flags
            .extend(set.iter().map(|(key, value)| ("set", (*key).to_owned(), (*value).to_owned())));
        let settings = Sources { flags, ..Sources::default() }.settle().unwrap().settings();
        let all = self.environment();
        let env = |name: &str| {
            all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        let access = Access::settle(&settings.choice, env).unwrap();
        let plan = DaemonConfig {
            settings,
            access,
            store,
            clock: self.clock,
            manager: ServiceNotify::default(),
            holder: holder.to_owned(),
            decide,
        };
        Daemon::open(plan).await.unwrap()
    }

    /// What a process is told by its environment, all of it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AZURE_RESOURCE_MANAGER_URL", self.base.clone()),
            ("AZURE_AUTHORITY_HOST", self.base.clone()),
            ("AZURE_TENANT_ID", self.tenant.clone()),
            ("AZURE_CLIENT_ID", "app".to_owned()),
            ("AZURE_CLIENT_SECRET", SECRET.to_owned()),
        ]
    }

    /// What the emulator says of a set.
    pub fn seen(&self, name: &str) -> Value {
        let state = self.emulator.state();
        let sets = state["scaleSets"].as_array().unwrap();
        let id = set(name).to_ascii_lowercase();
        sets.iter()
            .find(|set| set["id"].as_str().unwrap().to_ascii_lowercase() == id)
            .unwrap()
            .clone()
    }

    /// All of it runs on this version, and serves.
    pub fn is_on(&self, name: &str, count: usize, version: &str) -> bool {
        let seen = self.seen(name);
        let all = seen["instances"].as_array().unwrap();
        let on = |vm: &&Value| {
            vm["ready"] == true && vm["image"].to_string().contains(&format!("versions/{version}"))
        };
        all.len() == count && all.iter().filter(on).count() == count
    }

    /// Calls that change something.
    pub fn writes(&self) -> u64 {
        let state = self.emulator.state();
        let requests = state["requests"].as_object().unwrap();
        let writes =
            requests.iter().filter(|(what, _)| !what.starts_with("GET") && !what.contains("oken"));
        writes.map(|(_, count)| count.as_u64().unwrap()).sum()
    }
}

/// A daemon, and where its API listens.
pub struct Served {
    pub daemon: Running,
    pub address: SocketAddr,
}

pub struct Running<S = MemoryStore> {
    pub handle: Arc<Handle<S, FastClock>>,
    pub stop: Stop,
    pub reload: Arc<Notify>,
    pub ended: JoinHandle<DaemonEnd>,
}

impl<S: Store + ApiStore + Send + Sync + 'static> Running<S> {
    pub fn begin(daemon: Daemon<S, FastClock>) -> Self {
        let (handle, stop, reload) = (daemon.handle(), daemon.stop(), daemon.reload());
        let ended = tokio::spawn(async move { daemon.run().await.unwrap() });
        Running { handle, stop, reload, ended }
    }

    pub fn pool(&self, name: &str) -> Option<Arc<PoolBoard>> {
        self.handle.board.pool(&PoolName::new(name))
    }

    pub fn sentence(&self, name: &str) -> String {
        sentence_of(&self.pool(name).unwrap())
    }

    /// Until it is so, looked at after each change on the board.
    pub async fn until(&self, what: &str, is: impl Fn(&Running<S>) -> bool) {
        let mut changes = self.handle.board.subscribe();
        let so = async {
            while !is(self) {
                let soon = tokio::time::timeout(Duration::from_millis(50), changes.changed());
                let _either = soon.await;
            }
        };
        if tokio::time::timeout(PATIENCE, so).await.is_err() {
            let pools = self.handle.board.pools();
            let say: Vec<String> = pools
                .iter()
                .map(|seen| format!("{}: {}", seen.policy.name, sentence_of(seen)))
                .collect();
            panic!("not so: {what}; {say:?} {:?}", self.handle.board.status());
        }
    }

    /// Turns of a pool that ended well, as far as this can be told.
    pub fn looked_at(&self, name: &str) -> Option<Time> {
        Some(self.pool(name)?.report.as_ref()?.at)
    }

    pub async fn end(self) -> DaemonEnd {
        self.stop.stop();
        tokio::time::timeout(Duration::from_secs(10), self.ended).await.unwrap().unwrap()
    }
}

/// A while in which nothing may happen.
pub async fn pass(clock: &FastClock, span: Span) {
    clock.sleep_until(clock.now().plus(span)).await;
}

/// A pool in one sentence.
fn sentence_of(seen: &PoolBoard) -> String {
    if let Some(failing) = &seen.failing {
        return format!("cannot be managed: {}", failing.say);
    }
    if seen.standing == ManagementStatus::Released {
        return format!("released; open entries still watched: {}", seen.open);
    }
    let Some(report) = &seen.report else { return "not read yet".to_owned() };
    if let Some(hold) = &report.frozen {
        return format!("frozen: {}", hold.message);
    }
    let Some(planned) = &report.planned else { return "frozen".to_owned() };
    let (numbers, rollout) = (&planned.report.numbers, &planned.report.rollout);
    let serve = format!("{} of {} serve", numbers.available, numbers.desired);
    let first = planned.report.holds.first().map(|hold| format!("; {}", hold.message));
    let first = first.unwrap_or_default();
    match rollout.phase {
        RolloutPhase::None => format!("{serve}{first}"),
        phase => format!("{serve}; {} {}/{}{first}", phase.name(), rollout.done, rollout.total),
    }
}
