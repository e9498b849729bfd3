//! A scripted cloud and cluster, a store that can lose power, and a loop that drives turns over them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll as TaskPoll, Waker};

use crate::act::{
    AskHooks, BackendOrder, CallContext, CallOutcome, ChangeCloud, ChangeCluster, DrainProgress,
    DrainRequest, GoneRequest, Poll, SetChange, SignsOutcome, SignsRequest,
};
use crate::ambient::Clock;
use crate::memory::*;
use crate::model::backend::{BackendAddress, BackendChange, BackendPool, BackendState, HookOrder};
use crate::model::facts::BudgetFact;
use crate::model::gone::GoneMachines;
use crate::model::hook::{HookAnswer, HookPhase};
use crate::model::ids::*;
use crate::model::inventory::*;
use crate::model::journal::{OperationUrl, Refusal, Refused};
use crate::model::machine::{Condition, Evidence, Protection};
use crate::model::plan::Facts;
use crate::model::signs::NodeSigns;
use crate::model::time::{Span, Time};
use crate::observe::{ReadCloud, ReadError, ReadFacts};

/// Futures here never wait: one poll completes them.
pub fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        TaskPoll::Ready(value) => value,
        TaskPoll::Pending => panic!("nothing here waits"),
    }
}

#[derive(Debug, Clone)]
pub struct Vm {
    pub id: String,
    pub name: String,
    pub created: Time,
    pub revision: &'static str,
    pub gone_at: Option<Time>,
    pub node: bool,
}

/// What happens to the n-th write request to the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    LostAfterEffect,
    LostBeforeEffect,
    Refused(Refusal),
    OperationForgotten,
}

#[derive(Debug, Default)]
pub struct Sky {
    pub now: Time,
    pub capacity: u32,
    pub revision: &'static str,
    pub vms: Vec<Vm>,
    pub born: u32,
    pub operations: BTreeMap<String, Time>,
    pub asked: u32,
    pub lists: u32,
    /// What a drain that goes on waits for.
    pub waits_for: Option<&'static str>,
    pub mishaps: BTreeMap<u32, Mishap>,
    /// The writes in order of arrival.
    pub calls: Vec<String>,
    pub deleted: Vec<String>,
    pub most: usize,
    pub least_serving: usize,
    pub blind: bool,
    pub incomplete: bool,
    /// The cloud protects all machines.
    pub protected: bool,
    pub draining: BTreeMap<String, Time>,
    pub blocked: BTreeSet<String>,
    pub released: Vec<String>,
    /// What was said last of the signs on nodes, and the answer to it.
    pub signs: Option<NodeSigns>,
    pub sign_answer: SignsOutcome,
    /// What was said last of machines that are gone, and why their nodes stay.
    pub gone: Option<GoneMachines>,
    pub undeleted: Option<Box<str>>,
    pub slow_calls: Option<Span>,
    /// What a load balancer was told of each machine, by its id; `None`: there is no load balancer.
    pub balancer: Option<BTreeMap<String, BackendState>>,
    /// Since when it sends a machine nothing.
    pub off_since: BTreeMap<String, Time>,
    /// What the next hooks of a phase answer; then: done.
    pub hook_answers: BTreeMap<HookPhase, Vec<HookAnswer>>,
    /// The budgets that can never allow a disruption; `None`: there are none.
    pub budgets: Option<Result<Vec<BudgetFact>, Box<str>>>,
    pub budgets_read: u32,
    /// Each attempt at a hook.
    pub hooks: Vec<HookAttempt>,
}

const BOOT: Span = Span::seconds(45);
const DELETE: Span = Span::seconds(20);

impl Sky {
    pub fn with(revisions: &[&'static str], now: Time) -> Self {
        let mut sky = Sky { now, revision: "r1", least_serving: usize::MAX, ..Sky::default() };
        for revision in revisions {
            sky.bear(now.minus(Span::days(1)), revision);
        }
        sky.capacity = revisions.len() as u32;
        sky
    }

    fn bear(&mut self, created: Time, revision: &'static str) {
        self.born += 1;
        let (id, name) = (self.born.to_string(), format!("vm-{:03}", self.born));
        self.vms.push(Vm { id, name, created, revision, gone_at: None, node: false });
        self.most = self.most.max(self.vms.len());
    }

    fn pool(&self, id: &BackendPoolId) -> BackendPool {
        let told = self.balancer.clone().unwrap_or_default();
        let backends = self.vms.iter().map(|vm| BackendAddress {
            name: vm.name.as_str().into(),
            machine: Some(InstanceId::new(&vm.id)),
            state: told.get(&vm.name).copied().unwrap_or(BackendState::None),
        });
        let backends = backends.collect();
        BackendPool { id: id.clone(), settled: true, backends, hidden: false, document: "".into() }
    }

    fn settle(&mut self) {
        let now = self.now;
        self.vms.retain(|vm| vm.gone_at.is_none_or(|at| at > now));
    }

    pub fn serving(&self) -> usize {
        self.vms.iter().filter(|vm| vm.gone_at.is_none() && self.is_up(vm)).count()
    }

    fn is_up(&self, vm: &Vm) -> bool {
        self.now.since(vm.created) >= BOOT
    }

    fn instance(&self, vm: &Vm) -> Instance {
        let condition = if vm.gone_at.is_some() {
            Condition::Deleting
        } else if self.is_up(vm) {
            Condition::Ready
        } else {
            Condition::Provisioning
        };
        Instance {
            id: InstanceId::new(&vm.id),
            vm: Some(VmId::new(&vm.name)),
            zone: None,
            created: vm.created,
            imaged: None,
            revision: Some(Revision::new(vm.revision)),
            evidence: Evidence::Model,
            condition,
            since: (condition == Condition::Ready).then(|| vm.created.plus(BOOT)),
            protection: if self.protected { Protection::All } else { Protection::None },
            workloads: 0,
            node: vm.node.then(|| NodeName::new(&vm.name)),
            joined: vm.node.then(|| vm.created.plus(BOOT)),
            unreachable_since: None,
            marked: false,
            autoscaler_removes: false,
        }
    }

    fn begin(&mut self, call: String, lasts: Span) -> (Option<Mishap>, OperationUrl) {
        self.asked += 1;
        self.calls.push(call);
        if let Some(slow) = self.slow_calls {
            self.now = self.now.plus(slow);
        }
        let mishap = self.mishaps.get(&self.asked).copied();
        let address = format!("operation-{}", self.asked);
        if mishap != Some(Mishap::OperationForgotten) {
            self.operations.insert(address.clone(), self.now.plus(lasts));
        }
        (mishap, OperationUrl::new(address))
    }

    fn answer(mishap: Option<Mishap>, operation: OperationUrl) -> CallOutcome {
        match mishap {
            None | Some(Mishap::OperationForgotten) => CallOutcome::Accepted(Some(operation)),
            Some(Mishap::LostAfterEffect | Mishap::LostBeforeEffect) => CallOutcome::Lost,
            Some(Mishap::Refused(refusal)) => CallOutcome::Refused(Refused::plain(refusal)),
        }
    }
}

fn happens(mishap: Option<Mishap>) -> bool {
    !matches!(mishap, Some(Mishap::LostBeforeEffect | Mishap::Refused(_)))
}

#[derive(Debug, Clone)]
pub struct Cloud(pub Arc<Mutex<Sky>>);

impl Cloud {
    pub fn sky(&self) -> std::sync::MutexGuard<'_, Sky> {
        self.0.lock().unwrap()
    }
}

impl Clock for Cloud {
    fn now(&self) -> Time {
        self.sky().now
    }
}

impl ReadCloud for Cloud {
    async fn list(&self, _: &ScaleSetId) -> Result<Inventory, ReadError> {
        let mut sky = self.sky();
        sky.lists += 1;
        sky.settle();
        if sky.blind {
            let refusal = Refusal::Throttled;
            let retry_at = Some(sky.now.plus(Span::seconds(30)));
            return Err(ReadError {
                refusal,
                code: None,
                retry_at,
                say: "too many requests".into(),
            });
        }
        let balanced = sky.balancer.is_some();
        let set = SetReading {
            backends: balanced.then(|| BackendPoolId::new("/front/web")).into_iter().collect(),
            etag: Some(Etag::new(sky.asked.to_string())),
            complete: !sky.incomplete,
            ..SetReading::new(Revision::new(sky.revision), sky.capacity, sky.now)
        };
        let instances = sky.vms.iter().map(|vm| sky.instance(vm)).collect();
        sky.now = sky.now.plus(Span::seconds(1));
        Ok(Inventory { set, instances, gaps: Vec::new() })
    }
}

impl ReadFacts for Cloud {
    async fn facts(&self, _: &PoolName) -> Facts {
        Facts::default()
    }
}

impl ChangeCloud for Cloud {
    async fn change(&self, _: &CallContext<'_>, change: SetChange<'_>) -> CallOutcome {
        match change {
            SetChange::Raise { from, to, .. } => {
                let mut sky = self.sky();
                let (mishap, operation) = sky.begin(format!("raise {from} to {to}"), BOOT);
                if happens(mishap) {
                    assert_eq!(sky.capacity, from, "no other client writes here");
                    sky.capacity = to;
                    let (now, revision) = (sky.now, sky.revision);
                    (from..to).for_each(|_| sky.bear(now, revision));
                }
                Sky::answer(mishap, operation)
            }
            SetChange::Delete { targets, .. } => {
                let mut sky = self.sky();
                let names: Vec<&str> = targets.iter().map(|target| target.id.as_str()).collect();
                let (mishap, operation) = sky.begin(format!("delete {}", names.join(",")), DELETE);
                if happens(mishap) {
                    let gone_at = sky.now.plus(DELETE);
                    for target in targets {
                        let vm = target.vm.as_ref().unwrap().to_string();
                        if sky.balancer.is_some() {
                            let off = sky.off_since.get(&vm).map(|since| sky.now.since(*since));
                            assert!(off >= Some(Span::seconds(30)), "{vm} is off for {off:?}");
                        }
                        let there = sky.vms.iter_mut().find(|there| there.name == vm).unwrap();
                        assert_eq!(there.gone_at, None, "deleted twice: {vm}");
                        there.gone_at = Some(gone_at);
                        sky.deleted.push(vm);
                        sky.capacity -= 1;
                    }
                    sky.least_serving = sky.least_serving.min(sky.serving());
                }
                Sky::answer(mishap, operation)
            }
            SetChange::Restore { .. } => CallOutcome::Done,
            SetChange::Standby { .. }
            | SetChange::Reimage { .. }
            | SetChange::UpdateModel { .. }
            | SetChange::TagOwner { .. }
            | SetChange::WriteAutoscaler { .. } => {
                CallOutcome::Refused(Refused::plain(Refusal::Invalid))
            }
        }
    }

    async fn poll(&self, _: &ScaleSetId, operation: &OperationUrl) -> Poll {
        let sky = self.sky();
        match sky.operations.get(operation.address()) {
            None => Poll::Lost,
            Some(done) if *done <= sky.now => Poll::Done,
            Some(_) => Poll::Running { retry_at: Some(sky.now.plus(Span::seconds(10))) },
        }
    }

    async fn backends(
        &self,
        _: &ScaleSetId,
        pools: &[BackendPoolId],
    ) -> Result<Vec<BackendPool>, Refused> {
        let sky = self.sky();
        Ok(pools.iter().map(|id| sky.pool(id)).collect())
    }

    async fn set_backends(
        &self,
        _: &BackendOrder<'_>,
        _: &BackendPool,
        changes: &[BackendChange],
    ) -> CallOutcome {
        let mut sky = self.sky();
        let now = sky.now;
        for BackendChange { name, to } in changes {
            sky.calls.push(format!("{name} is {}", to.name()));
            if let Some(told) = &mut sky.balancer {
                told.insert(name.to_string(), *to);
            }
            match to {
                BackendState::Down => sky.off_since.insert(name.to_string(), now),
                BackendState::None | BackendState::Up => sky.off_since.remove(&**name),
            };
        }
        CallOutcome::Accepted(None)
    }
}

const DRAIN: Span = Span::seconds(15);

/// One attempt at a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAttempt {
    pub phase: HookPhase,
    pub machine: String,
    /// When it was decided: the delivery.
    pub since: Time,
    pub attempt: u32,
    pub at: Time,
}

impl AskHooks for Cloud {
    async fn ask(&self, orders: &[HookOrder<'_>]) -> Vec<HookAnswer> {
        let mut sky = self.sky();
        orders.iter().map(|order| sky.ask_hook(order)).collect()
    }
}

impl Sky {
    fn ask_hook(&mut self, order: &HookOrder<'_>) -> HookAnswer {
        let (phase, at) = (order.call.phase, self.now);
        let machine = order.row.vm.as_ref().unwrap().to_string();
        self.calls.push(format!("{} {machine}", phase.name()));
        let (since, attempt) = (order.call.since, order.call.attempts);
        self.hooks.push(HookAttempt { phase, machine, since, attempt, at });
        let next = self.hook_answers.get_mut(&phase).filter(|all| !all.is_empty());
        next.map_or(HookAnswer::Done, |all| all.remove(0))
    }
}

impl ChangeCluster for Cloud {
    async fn drain(&self, _: &CallContext<'_>, machine: DrainRequest<'_>) -> CallOutcome {
        let mut sky = self.sky();
        let done = sky.now.plus(DRAIN);
        let node = machine.node.unwrap().to_string();
        sky.calls.push(format!("drain {node}"));
        sky.draining.insert(node, done);
        CallOutcome::Accepted(None)
    }

    async fn drain_state(&self, _: &EntryId, machine: DrainRequest<'_>) -> DrainProgress {
        let sky = self.sky();
        let Some(node) = machine.node else { return DrainProgress::Done };
        let blocked = sky.blocked.contains(node.as_str());
        match sky.draining.get(node.as_str()) {
            None => DrainProgress::NotBegun,
            Some(done) if *done > sky.now => {
                let blocker = sky.waits_for.map(Into::into);
                DrainProgress::Running { step: "evict".into(), blocker }
            }
            Some(_) if blocked => {
                DrainProgress::Blocked { code: "Budget".into(), say: None, retry_at: None }
            }
            Some(_) => DrainProgress::Done,
        }
    }

    async fn drain_states(&self, drains: &[(EntryId, DrainRequest<'_>)]) -> Vec<DrainProgress> {
        let mut all = Vec::new();
        for (entry, machine) in drains {
            all.push(self.drain_state(entry, *machine).await);
        }
        all
    }

    async fn release(&self, machine: DrainRequest<'_>) -> CallOutcome {
        let mut sky = self.sky();
        let node = machine.node.unwrap().to_string();
        sky.draining.remove(&node);
        sky.released.push(node);
        CallOutcome::Done
    }

    async fn show_signs(&self, request: SignsRequest<'_>) -> SignsOutcome {
        let mut sky = self.sky();
        sky.signs = Some(request.signs.clone());
        sky.sign_answer.clone()
    }

    async fn remove_gone(&self, request: GoneRequest<'_>) -> Option<Box<str>> {
        let mut sky = self.sky();
        sky.gone = Some(request.machines.clone());
        sky.undeleted.clone()
    }
}

/// When the power fails: before or after the n-th commit reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Before(u32),
    After(u32),
}

#[derive(Debug, Default)]
pub struct Disk {
    pub store: MemoryStore,
    pub commits: Mutex<u32>,
    pub cut: Option<Cut>,
}

impl TurnStore for Disk {
    async fn load(&self, pool: &PoolName) -> Result<PoolRecord, StoreError> {
        self.store.load(pool).await
    }

    async fn inbox(&self, pool: &PoolName) -> Result<Inbox, StoreError> {
        self.store.inbox(pool).await
    }

    async fn acquire(&self, holder: &str, now: Time, ttl: Span) -> Result<Lease, StoreError> {
        self.store.acquire(holder, now, ttl).await
    }

    async fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        let n = {
            let mut commits = self.commits.lock().unwrap();
            *commits += 1;
            *commits
        };
        let off = || StoreError::Unavailable("the power was cut".into());
        if self.cut == Some(Cut::Before(n)) {
            return Err(off());
        }
        self.store.commit(commit).await?;
        if self.cut == Some(Cut::After(n)) { Err(off()) } else { Ok(()) }
    }
}
