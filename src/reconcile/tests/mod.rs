//! A rig of one pool over fakes: production turns, a scripted cloud, a disk that can lose power. Not for other modules.
//! Begin with [`Rig`].

mod balanced;
mod budgets;
mod convergence;
pub(crate) mod decisions;
mod fake;
mod hooks;
mod looks;
mod notices;
mod steps;

use std::sync::{Arc, Mutex};

use super::*;
use crate::memory::Lease;
use crate::model::ids::{ClusterName, ScaleSetId};
use crate::model::policy::{Draft, Policy};
use crate::model::time::Span;
use fake::{Cloud, Disk, Sky, now_or_never};

struct Rig {
    cloud: Cloud,
    disk: Disk,
    decide: Decisions,
    policy: Policy,
    turns: PoolTurn,
    lease: Option<Lease>,
    starts: u32,
}

impl TurnEnvironment for Rig {
    type Facts = Cloud;
    type Cloud = Cloud;
    type Cluster = Cloud;
    type Hooks = Cloud;
    type Store = Disk;
    type Decide = Decisions;
    type Clock = Cloud;

    fn facts(&self) -> &Cloud {
        &self.cloud
    }
    fn cloud(&self) -> &Cloud {
        &self.cloud
    }
    fn cluster(&self) -> &Cloud {
        &self.cloud
    }
    fn hooks(&self) -> &Cloud {
        &self.cloud
    }
    fn store(&self) -> &Disk {
        &self.disk
    }
    fn decide(&self) -> &Decisions {
        &self.decide
    }
    fn clock(&self) -> &Cloud {
        &self.cloud
    }
    async fn budgets(&self, _: &ClusterName) -> Result<Vec<BudgetFact>, Box<str>> {
        let mut sky = self.cloud.sky();
        sky.budgets_read += 1;
        sky.budgets.clone().unwrap_or(Ok(Vec::new()))
    }
}

const LEASE: Span = Span::seconds(30);

impl Rig {
    fn new(revisions: &[&'static str], target: &'static str) -> Self {
        let start = Time::parse("2026-03-01T12:00:00Z").unwrap();
        let mut sky = Sky::with(revisions, start);
        sky.revision = target;
        let set = ScaleSetId::new("/subscriptions/s/virtualMachineScaleSets/web");
        let mut draft = Draft::with_defaults(PoolName::new("web"), set);
        draft.count = revisions.len() as u32;
        draft.rollout.ramp = None;
        Self {
            cloud: Cloud(Arc::new(Mutex::new(sky))),
            disk: Disk::default(),
            decide: Decisions::PRODUCTION,
            policy: Policy::build(draft).unwrap(),
            turns: PoolTurn::new(PoolName::new("web"), 7),
            lease: None,
            starts: 1,
        }
    }

    /// A pool that has been managed for a while, on r1, when r2 appears in its model.
    fn known(machines: usize) -> Self {
        let mut rig = Self::new(&vec!["r1"; machines], "r1");
        let _ = rig.turn().unwrap();
        rig.wait_until(rig.now().plus(Span::minutes(5)));
        rig.cloud.sky().revision = "r2";
        *rig.disk.commits.lock().unwrap() = 0;
        rig
    }

    fn set_cluster(&mut self, cluster: Option<&str>) {
        let mut draft = (*self.policy).clone();
        draft.cluster = cluster.map(ClusterName::new);
        self.policy = Policy::build(draft).unwrap();
    }

    /// A new process: memory is empty.
    fn restart(&mut self) {
        self.turns = PoolTurn::new(PoolName::new("web"), 7);
        self.lease = None;
        self.starts += 1;
        self.disk.cut = None;
    }

    fn now(&self) -> Time {
        self.cloud.now()
    }

    fn wait_until(&self, at: Time) {
        let mut sky = self.cloud.sky();
        sky.now = sky.now.max(at);
    }

    fn turn(&mut self) -> Result<TurnReport, TurnError> {
        let holder = format!("process-{}", self.starts);
        let lease = loop {
            match now_or_never(self.disk.acquire(&holder, self.now(), LEASE)) {
                Ok(lease) => break lease,
                Err(StoreError::Held { until, .. }) => self.wait_until(until),
                Err(other) => panic!("{other}"),
            }
        };
        let mut turns = std::mem::replace(&mut self.turns, PoolTurn::new(PoolName::new("-"), 0));
        let policy = self.policy.clone();
        let report = now_or_never(turns.turn(&*self, &policy, &lease));
        self.turns = turns;
        self.lease = Some(lease);
        report
    }

    /// Run turns until the rollout has ended and nothing is in flight. A failed turn counts as a crash.
    fn run(&mut self) -> u32 {
        for n in 1..400 {
            match self.turn() {
                Ok(report) => {
                    assert_eq!(report.frozen, None);
                    if self.is_settled(&report) {
                        return n;
                    }
                    let soon = self.now().plus(Span::seconds(60));
                    self.wait_until(report.again.min(soon).max(self.now().plus(Span::seconds(1))));
                }
                Err(_) => self.restart(),
            }
        }
        panic!("never settled: {:#?}", self.cloud.sky());
    }

    /// A new process that no longer manages the pool: what each of its turns leaves open, until nothing is.
    fn unmanage(&mut self) -> Vec<usize> {
        self.restart();
        let policy = self.policy.clone();
        let mut turns = PoolTurn::new(PoolName::new("web"), 7);
        let mut left = Vec::new();
        for n in 0..60 {
            self.wait_until(self.now().plus(LEASE).plus(LEASE));
            let holder = format!("w-{n}");
            let lease = now_or_never(self.disk.acquire(&holder, self.now(), LEASE)).unwrap();
            left.push(now_or_never(turns.watch(&*self, &policy, &lease)).unwrap());
            if left.last() == Some(&0) {
                break;
            }
        }
        left
    }

    fn is_settled(&self, report: &TurnReport) -> bool {
        let sky = self.cloud.sky();
        let current = sky.vms.iter().all(|vm| vm.revision == sky.revision && vm.gone_at.is_none());
        let planned = report.planned.as_ref();
        current
            && sky.vms.len() == self.policy.count as usize
            && planned.is_some_and(|p| p.state.rollout.is_none() && p.actions.is_empty())
            && self.turns.remembered().is_some_and(|pool| pool.journal.open().is_empty())
    }
}
