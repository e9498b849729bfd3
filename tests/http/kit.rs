//! A backend of two pools behind the API: one that a turn has planned, one that is new. It keeps what it is asked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use axum::http::Request;
use futures_util::future::BoxFuture;
use poolkeeper::api::http::auth::{Authentication, Role, TokenTable, tokens};
use poolkeeper::api::http::{Api, Backend, PlanContext, PoolOrigin, PoolView, Readiness};
use poolkeeper::api::v1::diagnostic::Diagnostic;
use poolkeeper::api::v1::pool::PoolDocuments;
use poolkeeper::memory::{
    ApiStore, AuditEntry, Commit, Expected, HistoryEvent, HistoryRecord, MemoryStore, TurnStore,
};
use poolkeeper::model::hold::{Hold, HoldReason};
use poolkeeper::model::ids::{CommandId, Epoch, InstanceId, PoolName, Revision};
use poolkeeper::model::inventory::SetReading;
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::plan::{Facts, RolloutPhase};
use poolkeeper::model::policy::Policy;
use poolkeeper::model::revisions::{KnownRevision, Revisions};
use poolkeeper::model::rollout::{
    GoodRevision, PoolState, Rollout, RolloutCause, RolloutEnding, RolloutRecord,
};
use poolkeeper::model::scale::ScaleOrder;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::reconcile::TurnReport;
use tokio::sync::watch;

use crate::http::contract;
pub use crate::support::http::{Ask, Reply};
pub use crate::support::pool::NOW;
use crate::support::pool::{self, rev};

pub const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
pub const WHY: &str = r#"{"why":"because"}"#;

pub fn document(name: &str, count: u32) -> String {
    let set = format!(
        "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
    );
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: {set}\nreplicas: {{owner: pool, count: {count}}}\n"
    )
}

pub fn policy(text: &str) -> Policy {
    let (mut policies, faults) = PoolDocuments::default().read(text, None);
    assert!(faults.is_empty(), "{faults:?}");
    policies.remove(0)
}

/// What the backend knows, and what it was asked.
pub struct Known {
    pub now: Time,
    pub pools: BTreeMap<PoolName, PoolView>,
    pub contexts: BTreeMap<PoolName, PlanContext>,
    pub woken: Vec<PoolName>,
    pub ready: bool,
    /// It takes no document in.
    pub refuses: bool,
    pub refused: Option<(PoolName, Box<str>)>,
    pub faults: Vec<Diagnostic>,
    /// By status.
    pub answered: BTreeMap<u16, u32>,
    pub approvals: u32,
    /// Copied to the log.
    pub audited: Vec<AuditEntry>,
    /// Tokens that were brought after their end.
    pub expired: Vec<(String, Time)>,
    /// By address, name and code.
    pub not_admitted: BTreeMap<String, u32>,
    /// A turn answers what waits once the pool is woken, in this way.
    pub answers: Option<(bool, &'static str)>,
}

#[derive(Clone)]
pub struct TestBackend {
    pub known: Arc<Mutex<Known>>,
    pub store: Arc<MemoryStore>,
    pub news: Arc<watch::Sender<u64>>,
}

impl TestBackend {
    pub fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    async fn read_again(&self, name: &PoolName) -> bool {
        let document = self.store.document(name).await.unwrap();
        // As in the daemon, other requests run meanwhile.
        tokio::task::yield_now().await;
        let mut known = self.lock();
        known.refused = None;
        if document.is_some() && known.refuses {
            known.refused = Some((name.clone(), "another pool has this scale set".into()));
            return true;
        }
        match document {
            None => drop(known.pools.remove(name)),
            Some(document) => {
                let policy = Arc::new(policy(&document.text));
                let pool = PoolView {
                    policy,
                    origin: PoolOrigin::Api,
                    report: None,
                    trouble: None,
                    ignored: None,
                };
                known.pools.insert(name.clone(), pool);
            }
        }
        true
    }
}

impl Backend for TestBackend {
    fn now(&self) -> Time {
        self.lock().now
    }

    fn pools(&self) -> Vec<PoolView> {
        self.lock().pools.values().cloned().collect()
    }

    fn pool(&self, name: &PoolName) -> Option<PoolView> {
        self.lock().pools.get(name).cloned()
    }

    fn size_line(&self, _: &PoolName) -> Option<u32> {
        Some(5)
    }

    fn plan_context<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, Option<PlanContext>> {
        Box::pin(async { self.lock().contexts.get(name).cloned() })
    }

    fn wake(&self, name: &PoolName) {
        let mut known = self.lock();
        known.woken.push(name.clone());
        if let Some((accepted, message)) = known.answers {
            let (store, at, pool) = (Arc::clone(&self.store), known.now, name.clone());
            tokio::spawn(async move { answer(&store, &pool, at, accepted, message).await });
        }
    }

    fn reload<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, bool> {
        Box::pin(self.read_again(name))
    }

    fn refused(&self) -> Vec<(PoolName, Box<str>)> {
        self.lock().refused.iter().cloned().collect()
    }

    fn faults(&self) -> Vec<Diagnostic> {
        self.lock().faults.clone()
    }

    fn let_go<'a>(&'a self, name: &'a PoolName) -> BoxFuture<'a, bool> {
        Box::pin(async { self.lock().pools.remove(name).is_some() })
    }

    fn readiness(&self) -> Readiness {
        let ready = self.lock().ready;
        Readiness { ready, say: if ready { "ready" } else { "reading the store" }.into() }
    }

    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }

    fn answered(&self, status: u16) {
        *self.lock().answered.entry(status).or_default() += 1;
    }

    fn approvals(&self) -> u32 {
        self.lock().approvals
    }

    fn audited(&self, line: &AuditEntry) {
        self.lock().audited.push(line.clone());
    }

    fn expired(&self, name: &str, at: Time) {
        self.lock().expired.push((name.to_owned(), at));
    }

    fn not_admitted(&self, client: IpAddr, name: Option<&str>, code: &'static str) {
        let line = format!("{client} {} {code}", name.unwrap_or("-"));
        *self.lock().not_admitted.entry(line).or_default() += 1;
    }

    fn metrics(&self) -> String {
        "# TYPE poolkeeper_up gauge\npoolkeeper_up 1\n".to_owned()
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}

pub struct Kit {
    pub api: Api,
    pub backend: TestBackend,
    pub store: Arc<MemoryStore>,
    /// By role, where the door is guarded.
    pub tokens: BTreeMap<&'static str, String>,
}

pub fn machine(n: u32, revision: &str) -> Machine {
    let born = NOW.minus(Span::hours(2)).plus(Span::seconds(i64::from(n)));
    let mut machine = pool::machine(&n.to_string(), born, Condition::Ready);
    machine.revision = Some(rev(revision));
    machine
}

/// A pool of seven in the middle of a rollout, as its last turn left it.
fn context() -> PlanContext {
    let policy = Arc::new(policy(&document("web", 7)));
    let machines: Vec<Machine> =
        (1..=7).map(|n| machine(n, if n < 3 { "r2" } else { "r1" })).collect();
    let set = SetReading::new(Revision::new("r2"), 7, NOW.minus(Span::seconds(1)));
    let state = PoolState {
        adopted: Some(NOW.minus(Span::days(9))),
        revisions: revisions(NOW.minus(Span::days(9))),
        ..PoolState::default()
    };
    let mut context = PlanContext {
        policy,
        report: Arc::new(TurnReport {
            pool: PoolName::new("web"),
            at: NOW,
            set,
            gaps: Vec::new(),
            changes: Vec::new(),
            planned: None,
            frozen: None,
            notes: Vec::new(),
            made: Vec::new(),
            moved: Vec::new(),
            audit: Vec::new(),
            notifies: false,
            again: NOW.plus(Span::seconds(30)),
        }),
        machines,
        open: Vec::new(),
        commands: Vec::new(),
        facts: Facts::default(),
        stop: None,
        state: Some(state),
    };
    let planned = poolkeeper::plan::plan(&context.input()).unwrap();
    Arc::get_mut(&mut context.report).unwrap().planned = Some(planned);
    context
}

impl Kit {
    pub async fn open() -> Self {
        Self::new(Authentication::Open, BTreeMap::new()).await
    }

    /// With a token for each role.
    pub async fn guarded() -> Self {
        let made: Vec<_> =
            Role::ALL.iter().map(|role| tokens::make(role.name(), *role).unwrap()).collect();
        let lines: Vec<&str> = made.iter().map(|made| made.line.as_str()).collect();
        let tokens = TokenTable::read(&lines.join("\n")).unwrap();
        let by_role =
            Role::ALL.iter().map(|role| role.name()).zip(made.iter().map(|m| m.token.clone()));
        Self::new(Authentication::Guarded { tokens, oidc: None }, by_role.collect()).await
    }

    pub async fn new(door: Authentication, tokens: BTreeMap<&'static str, String>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let context = context();
        let web = PoolView {
            policy: Arc::clone(&context.policy),
            origin: PoolOrigin::Api,
            report: Some(Arc::clone(&context.report)),
            trouble: None,
            ignored: None,
        };
        let batch = PoolView {
            policy: Arc::new(policy(&document("batch", 3))),
            origin: PoolOrigin::File("pools/batch.yaml".into()),
            report: None,
            trouble: None,
            ignored: None,
        };
        remember(&store, &context).await;
        let pools = [web, batch].into_iter().map(|pool| (pool.policy.name.clone(), pool)).collect();
        let contexts = [(context.policy.name.clone(), context)].into_iter().collect();
        let (woken, answered) = (Vec::new(), BTreeMap::new());
        let known = Known {
            now: NOW,
            pools,
            contexts,
            woken,
            ready: true,
            refuses: false,
            refused: None,
            faults: Vec::new(),
            answered,
            approvals: 1,
            audited: Vec::new(),
            expired: Vec::new(),
            not_admitted: BTreeMap::new(),
            answers: None,
        };
        let known = Arc::new(Mutex::new(known));
        let backend =
            TestBackend { known, store: Arc::clone(&store), news: Arc::new(watch::Sender::new(0)) };
        let api = Api::new(Arc::clone(&store), Arc::new(backend.clone()), door);
        Self { api, backend, store, tokens }
    }

    /// Another pool of which this much is told, and which nobody counts.
    pub async fn tell(&self, pool: &str, event: HistoryEvent) {
        let line = HistoryRecord::new(self.backend.lock().now, event);
        let commit =
            Commit { history: vec![line], ..Commit::new(PoolName::new(pool), Epoch(1), NOW) };
        self.store.commit(&commit).await.unwrap();
        self.backend.news.send_modify(|n| *n += 1);
    }

    /// Lines of history as they were recorded, each with its own time.
    pub async fn record(&self, pool: &str, lines: Vec<HistoryRecord>) {
        let commit = Commit { history: lines, ..Commit::new(PoolName::new(pool), Epoch(1), NOW) };
        self.store.commit(&commit).await.unwrap();
        self.backend.news.send_modify(|n| *n += 1);
    }

    /// The last plan of `web` would have broken an invariant.
    pub fn freeze(&self) {
        let mut known = self.backend.lock();
        let pool = known.pools.get_mut(&PoolName::new("web")).unwrap();
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        report.frozen = Some(Hold {
            reason: HoldReason::InvariantViolated,
            message: "the floor".into(),
            numbers: Vec::new(),
            blockers: Vec::new(),
            next_check_at: NOW,
            remedy: None,
        });
        pool.report = Some(Arc::new(report));
    }

    /// An operator scaled `web` to seven for an hour.
    pub fn scale(&self) {
        let mut known = self.backend.lock();
        let context = known.contexts.get_mut(&PoolName::new("web")).unwrap();
        context.state.as_mut().unwrap().scale = Some(ScaleOrder {
            to: 7,
            until: Some(NOW.plus(Span::hours(1))),
            over: 7,
            remove: Vec::new(),
            earlier: Vec::new(),
            by: "kim".into(),
            why: "a sale".into(),
            at: NOW,
        });
        let planned = poolkeeper::plan::plan(&context.input()).unwrap();
        Arc::make_mut(&mut context.report).planned = Some(planned);
    }

    pub fn pass(&self, span: Span) {
        let mut known = self.backend.lock();
        known.now = known.now.plus(span);
    }

    pub async fn send(&self, request: Request<Body>) -> Reply {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let reply = Reply::read(self.api.answer(request, HERE).await).await.unwrap();
        contract::check(&method, &path, &reply);
        reply
    }

    pub async fn ask(&self, ask: Ask<'_>) -> Reply {
        self.send(ask.request()).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask(Ask::new("GET", path)).await
    }

    pub async fn post(&self, path: &str, body: &str) -> Reply {
        self.ask(Ask::new("POST", path).json(body)).await
    }

    /// What the audit says: who, verb, pool and what came of it.
    pub async fn audit(&self) -> Vec<String> {
        let lines = self.store.audits_after(poolkeeper::memory::Seq::FIRST, 1_000).await.unwrap();
        let shown = |line: &poolkeeper::memory::AuditEntry| {
            let pool = line.pool.as_ref().map_or("", |pool| pool.as_str());
            format!("{} {} {pool}/{} ({}): {}", line.who, line.verb, line.on, line.why, line.came)
        };
        lines.iter().map(|(_, line)| shown(line)).collect()
    }
}

/// What a turn writes about the commands that wait.
/// A turn of the pool answers what waits.
pub async fn answer(store: &MemoryStore, pool: &PoolName, at: Time, accepted: bool, message: &str) {
    let commands = store.inbox(pool).await.unwrap().commands;
    let answered = |id| HistoryEvent::Answered { command: id, accepted, message: message.into() };
    let history =
        commands.into_iter().map(|ask| HistoryRecord::new(at, answered(ask.id))).collect();
    let commit = Commit { history, ..Commit::new(pool.clone(), Epoch(1), NOW) };
    store.commit(&commit).await.unwrap();
}

fn revisions(seen: Time) -> Revisions {
    let known = |number, name: &str, version| KnownRevision {
        number,
        revision: Revision::new(name),
        image: Some(format!("/subscriptions/s/galleries/g/images/web/versions/{version}").into()),
        vm_size: Some("Standard_D4s_v5".into()),
        seen,
    };
    Revisions { known: vec![known(1, "r1", "1.0.0"), known(2, "r2", "2.0.0")] }
}

async fn remember(store: &MemoryStore, context: &PlanContext) {
    store.acquire("test", NOW, Span::hours(1)).await.unwrap();
    let at = NOW.minus(Span::minutes(5));
    let (from, to) = (Some(Revision::new("r1")), Revision::new("r2"));
    let state = PoolState {
        rollout: Some(Rollout::open(RolloutCause::Revision, from, to.clone(), at, 7)),
        last: Some(RolloutRecord {
            cause: RolloutCause::Refresh,
            to: to.clone(),
            opened: None,
            at,
            how: RolloutEnding::Succeeded,
            done: 7,
            covered: 7,
            failed: 0,
        }),
        revisions: revisions(at),
        good_revisions: vec![GoodRevision::plain(Revision::new("r1"))],
        wanted: Some(to.clone()),
        ..PoolState::default()
    };
    let events = vec![
        HistoryEvent::Rollout { phase: RolloutPhase::Progressing, to: Some(to) },
        HistoryEvent::Answered {
            command: CommandId::new("old"),
            accepted: false,
            message: "nothing to resume".into(),
        },
        HistoryEvent::FirstAvailable { id: InstanceId::new("2"), key: machine(2, "r2").key() },
    ];
    let commit = Commit {
        machines: context.machines.clone(),
        state: Some(state),
        history: events.into_iter().map(|event| HistoryRecord::new(at, event)).collect(),
        ..Commit::new(PoolName::new("web"), Epoch(1), NOW)
    };
    store.commit(&commit).await.unwrap();
    let (pool, text) = (PoolName::new("web"), document("web", 7));
    store.put_document(&pool, &text, "test", at, Expected::Nothing).await.unwrap();
}
