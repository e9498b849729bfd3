//! Real TCP: front ends on the loopback whose connections a load balancer sends to ports of the machines.
//!
//! A connection goes to a machine that the rule lets take new ones, and stays there. Each machine listens while its guest
//! runs, and everything that it still holds is cut when it stops. Never here: which machine may take a connection (the
//! world says that). Begin with [`Emulator::bind_fronts`]; `front` forwards, `machine` answers.

mod front;
mod machine;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::Emulator;
use super::cloud::EmulatedCloud;
use super::document::text;
use super::serve::EmulatorServeError;
use crate::world::{GuestState, PoolBackend, Power, SetId, VmId};
use machine::Machine;

/// How often machines start and stop to listen. Shorter than a person or a suite notices.
const TICK: Duration = Duration::from_millis(20);

/// A rule whose front end listens.
#[derive(Debug)]
pub(super) struct Front {
    /// The id of the balancer in lower case.
    pub balancer: Arc<str>,
    pub rule: String,
    /// The port 0 means any, until it is bound.
    pub address: SocketAddr,
}

/// What became of the connections and requests of a front end.
#[derive(Debug, Default)]
struct Counts {
    /// Answered by a machine that is well.
    served: AtomicU64,
    /// Answered with 503 by a machine that is ill.
    failed: AtomicU64,
    /// Connections for which the rule has no machine.
    refused: AtomicU64,
    /// Connections that the rule sent to a machine that does not listen.
    unanswered: AtomicU64,
    /// Requests that a machine held when it stopped.
    cut: AtomicU64,
    /// Requests that the balancer reset.
    reset: AtomicU64,
    /// Requests that the client gave up.
    abandoned: AtomicU64,
}

impl Counts {
    fn shown(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({ "served": of(&self.served), "failed": of(&self.failed), "refused": of(&self.refused),
            "unanswered": of(&self.unanswered), "cut": of(&self.cut), "reset": of(&self.reset),
            "abandoned": of(&self.abandoned) })
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// A connection that a front end forwards.
#[derive(Debug)]
struct ForwardedConnection {
    front: usize,
    vm: VmId,
    is_reset: AtomicBool,
    reset: Notify,
}

/// What the front ends, the machines and the control API share.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    fronts: Vec<Front>,
    counts: Vec<Counts>,
    bound: Mutex<Vec<SocketAddr>>,
    /// By the local port that a machine sees as its peer.
    forwarded: Mutex<BTreeMap<u16, Arc<ForwardedConnection>>>,
    machines: Mutex<BTreeMap<VmId, SocketAddr>>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole after each statement, so a panic elsewhere leaves them sound.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Traffic {
    pub fn new(fronts: Vec<Front>) -> Self {
        let counts = fronts.iter().map(|_| Counts::default()).collect();
        Self { fronts, counts, ..Self::default() }
    }
}

/// Bound front ends that are not served yet.
#[derive(Debug)]
pub struct BoundFronts {
    emulator: Emulator,
    traffic: Arc<Traffic>,
    listeners: Vec<TcpListener>,
}

impl Emulator {
    /// Binds the front ends that the seed names.
    pub async fn bind_fronts(&self) -> Result<BoundFronts, EmulatorServeError> {
        let traffic = Arc::clone(&self.unmoved().traffic);
        let mut listeners = Vec::new();
        for front in &traffic.fronts {
            let address = front.address;
            let failed = |source| EmulatorServeError::Listen { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            locked(&traffic.bound).push(bound);
            listeners.push(listener);
        }
        Ok(BoundFronts { emulator: self.clone(), traffic, listeners })
    }
}

impl BoundFronts {
    /// In the order of the seed.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        locked(&self.traffic.bound).clone()
    }

    /// Serves until the future is dropped.
    pub async fn serve(self) {
        let Self { emulator, traffic, listeners } = self;
        if listeners.is_empty() {
            return std::future::pending().await;
        }
        let mut tasks = JoinSet::new();
        for (n, listener) in listeners.into_iter().enumerate() {
            tasks.spawn(front::serve(emulator.clone(), Arc::clone(&traffic), n, listener));
        }
        let mut machines: BTreeMap<VmId, Machine> = BTreeMap::new();
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let (wanted, resets) = {
                let cloud = emulator.lock();
                (listening(&cloud, &traffic), resets(&cloud, &traffic))
            };
            keep(&traffic, &mut machines, wanted).await;
            for forwarded in locked(&traffic.forwarded).values() {
                if resets.contains(&(forwarded.front, forwarded.vm)) {
                    forwarded.is_reset.store(true, Ordering::Relaxed);
                    forwarded.reset.notify_one();
                }
            }
        }
    }
}

/// A machine that should listen.
#[derive(Debug)]
struct Listening {
    name: String,
    is_ill: bool,
}

/// Every machine of a served pool whose guest runs.
fn listening(cloud: &EmulatedCloud, traffic: &Traffic) -> BTreeMap<VmId, Listening> {
    let backends = traffic.fronts.iter().flat_map(|one| backends(cloud, one));
    let machines = backends.filter_map(|backend| backend.member.machine);
    let mut sets: Vec<SetId> = machines.map(|machine| machine.id.set).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut all = BTreeMap::new();
    for set in sets {
        let (Some(truth), Some(view)) = (cloud.world.truth(set), cloud.world.peek(set)) else {
            continue;
        };
        for vm in truth.instances {
            let is_ill = match (vm.power, vm.guest) {
                (Power::Running, GuestState::Ready) => false,
                (Power::Running, GuestState::Sick) => true,
                _ => continue,
            };
            all.insert(vm.vm, Listening { name: format!("{}/{}", view.name, vm.id), is_ill });
        }
    }
    all
}

fn backends(cloud: &EmulatedCloud, front: &Front) -> Vec<PoolBackend> {
    cloud.world.backends(&front.balancer, &front.rule)
}

fn resets(cloud: &EmulatedCloud, traffic: &Traffic) -> Vec<(usize, VmId)> {
    let of = |(n, front): (usize, &Front)| {
        let resets = backends(cloud, front).into_iter().filter(|backend| backend.resets);
        resets.filter_map(move |backend| Some((n, backend.member.machine?.vm))).collect::<Vec<_>>()
    };
    traffic.fronts.iter().enumerate().flat_map(of).collect()
}

/// Starts and stops machines; a stop cuts what the machine holds.
async fn keep(
    traffic: &Arc<Traffic>,
    machines: &mut BTreeMap<VmId, Machine>,
    wanted: BTreeMap<VmId, Listening>,
) {
    machines.retain(|vm, machine| {
        let stays = wanted.contains_key(vm);
        if !stays {
            locked(&traffic.machines).remove(vm);
            machine.stop();
        }
        stays
    });
    for (vm, listening) in wanted {
        if let Some(machine) = machines.get(&vm) {
            machine.set_ill(listening.is_ill);
            continue;
        }
        // Without a free port the machine is one that does not answer; the next tick tries again.
        let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await else { continue };
        let Ok(address) = listener.local_addr() else { continue };
        let machine = Machine::start(Arc::clone(traffic), listener, listening.name);
        machine.set_ill(listening.is_ill);
        machines.insert(vm, machine);
        locked(&traffic.machines).insert(vm, address);
    }
}

/// Load balancers for `GET /_control/state`: what each rule does now, and what became of requests.
pub(super) fn state(cloud: &EmulatedCloud) -> Vec<Value> {
    let one = |(key, document): (&Arc<str>, &Value)| {
        let rules = document.pointer("/properties/loadBalancingRules").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().filter_map(|rule| text(rule, "/name"));
        let rules: Vec<Value> = rules.map(|rule| rule_state(cloud, key, rule)).collect();
        json!({ "id": document["id"], "rules": rules })
    };
    cloud.balancers.iter().map(one).collect()
}

fn rule_state(cloud: &EmulatedCloud, key: &str, rule: &str) -> Value {
    let backends: Vec<Value> = cloud.world.backends(key, rule).iter().map(backend_state).collect();
    let mut shown = json!({ "name": rule, "backends": backends });
    let traffic = &cloud.traffic;
    let is = |front: &Front| *front.balancer == *key && front.rule.eq_ignore_ascii_case(rule);
    if let Some(n) = traffic.fronts.iter().position(is) {
        shown["address"] = json!(locked(&traffic.bound).get(n).map(ToString::to_string));
        shown["requests"] = traffic.counts.get(n).map(Counts::shown).unwrap_or_default();
    }
    shown
}

fn backend_state(backend: &PoolBackend) -> Value {
    let machine = backend.member.machine.as_ref();
    json!({ "instance": machine.map(|machine| machine.id.instance.to_string()),
        "vmId": machine.map(|machine| machine.vm.to_string()),
        "address": backend.member.address.to_string(), "adminState": backend.admin.name(),
        "probe": backend.probe, "takesNew": backend.takes_new })
}
