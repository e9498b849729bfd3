//! The input of a simulation: the pool of a pool file, or the pool, the scale set and the machines of a snapshot.

use std::path::Path;

use serde_json::Value;

use crate::api::v1::pool::PoolDocuments;
use crate::api::v1::problem::DocumentProblem;
use crate::api::v1::snapshot::{self, NodePod, SnapshotInput, Snapshots};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::source::SnapshotSource;
use crate::cli::text::list;
use crate::model::cluster::PodOwner;
use crate::model::facts::BudgetFact;
use crate::model::policy::{Draft, HealthPolicy, Owner, Policy};
use crate::model::time::{Span, Time};
use crate::sim::{ClusterSpec, Scenario, UserAction, WorldFaults};

/// The most pool names that an error lists.
const NAMED: usize = 10;

#[derive(Debug)]
pub enum SimulateInput {
    Pool(Box<Policy>),
    Snapshot(Box<SnapshotInput>),
}

/// Options that apply to every run alike.
#[derive(Debug, Clone)]
pub struct Terms {
    pub machines: Option<u32>,
    pub faults: WorldFaults,
    pub pods: Option<u32>,
    pub start: Option<Time>,
}

impl SimulateInput {
    pub fn read(
        path: &Path,
        pool: Option<&str>,
        shell: &Shell,
    ) -> Result<SimulateInput, CommandFailure> {
        let source = SnapshotSource::new(path);
        let bytes = source.read(shell, snapshot::MAX_BYTES)?;
        let file = source.file();
        if is_snapshot(&bytes) {
            let read = Snapshots::default().read(&bytes);
            let read =
                read.map_err(|problem| CommandFailure::bad_input(problem, file.as_deref()))?;
            return Ok(SimulateInput::Snapshot(Box::new(read)));
        }
        let (policies, found) = PoolDocuments::default().read_bytes(&bytes, None);
        if let Some(problem) = DocumentProblem::of(&found) {
            return Err(CommandFailure::bad_input(problem, file.as_deref()));
        }
        choose(policies, pool, &source.name()).map(|policy| SimulateInput::Pool(Box::new(policy)))
    }

    pub fn policy(&self) -> &Policy {
        match self {
            SimulateInput::Pool(policy) => policy,
            SimulateInput::Snapshot(snapshot) => &snapshot.policy,
        }
    }

    /// Checks that the size of the pool is known: from the pool file, from the snapshot, or from the command line.
    pub fn check(&self, terms: &Terms) -> Result<(), CommandFailure> {
        let policy = self.policy();
        match self {
            SimulateInput::Snapshot(_) if terms.machines.is_some() => Err(CommandFailure::usage(
                "--machines is for pool files: a snapshot brings its machines",
            )),
            SimulateInput::Pool(_)
                if policy.owner == Owner::ScaleSet && terms.machines.is_none() =>
            {
                let say = format!(
                    "pool {} does not say how many machines it has: its scale set does",
                    policy.name.as_str()
                );
                Err(CommandFailure::usage(say).help("say how many to rehearse with: --machines 30"))
            }
            _ => Ok(()),
        }
    }

    pub fn scenario(&self, terms: &Terms, seed: u64) -> Scenario {
        self.scenario_with(self.policy(), terms, seed)
    }

    /// Health from nodes requires nodes. A node without pods would be drained in no time.
    pub fn cluster(policy: &Policy, terms: &Terms) -> Option<ClusterSpec> {
        let nodes = (policy.health == HealthPolicy::Node).then_some(1);
        let pods = terms.pods.or(nodes);
        pods.map(|pods_per_node| ClusterSpec { pods_per_node, ..ClusterSpec::default() })
    }

    /// The same pool under another policy.
    pub fn scenario_with(&self, policy: &Policy, terms: &Terms, seed: u64) -> Scenario {
        let mut scenario = match self {
            SimulateInput::Pool(_) => {
                Scenario::from_policy(policy, terms.machines, seed, terms.faults)
            }
            SimulateInput::Snapshot(it) => {
                let policy = ordered(policy, it);
                let mut scenario =
                    Scenario::from_snapshot(&policy, &it.set, &it.machines, seed, terms.faults);
                let stop = it.stop.as_ref().map(|stop| stop.except_repair);
                let stop = stop.map(|except_repair| UserAction::StopAll { except_repair });
                scenario.wishes.extend(stop.map(|stop| (Span::ZERO, stop)));
                scenario
            }
        };
        scenario.cluster = match self {
            SimulateInput::Snapshot(it) if terms.pods.is_none() => cluster_of(it),
            _ => None,
        }
        .or_else(|| Self::cluster(policy, terms));
        scenario.start = terms.start.unwrap_or(scenario.start);
        scenario
    }
}

/// A cluster as busy as that of the snapshot: as many pods on a node as there are on average, as many of them without a
/// controller, and a pod that cannot be evicted on as many nodes.
fn cluster_of(snapshot: &SnapshotInput) -> Option<ClusterSpec> {
    let nodes = &snapshot.cluster.as_ref()?.0;
    let never = |name: &str| {
        let known = snapshot.facts.budgets.iter().find(|of| *of.name == *name);
        known.is_some_and(BudgetFact::never_allows)
    };
    let is_evicted = |pod: &&NodePod| !matches!(pod.owner, PodOwner::DaemonSet(_));
    let pods = || nodes.values().flatten().filter(is_evicted);
    let all = pods().count();
    let bare = pods().filter(|pod| pod.owner == PodOwner::Bare).count();
    let blocks = |pods: &&Vec<NodePod>| {
        pods.iter().filter(is_evicted).any(|pod| pod.budgets.iter().any(|name| never(name)))
    };
    let blocked = nodes.values().filter(blocks).count();
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    let pods_per_node = share(all, nodes.len()).round() as u32;
    (all > 0).then(|| ClusterSpec {
        pods_per_node: pods_per_node.max(1),
        bare: share(bare, all),
        blocked: share(blocked, nodes.len()),
        blocked_for: Span::days(1).millis(),
        ..ClusterSpec::default()
    })
}

/// Whether the input is a snapshot: by its `kind`, or, if the JSON is broken, by the text `"Snapshot"` in it.
fn is_snapshot(bytes: &[u8]) -> bool {
    let opens = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if !opens {
        return false;
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => value.get("kind").and_then(Value::as_str) != Some("Pool"),
        Err(_) => String::from_utf8_lossy(bytes).contains("\"Snapshot\""),
    }
}

fn choose(
    mut policies: Vec<Policy>,
    pool: Option<&str>,
    name: &str,
) -> Result<Policy, CommandFailure> {
    let names = policies.iter().map(|policy| policy.name.as_str().to_owned()).collect::<Vec<_>>();
    let names = list(names.iter().map(String::as_str), NAMED);
    if let Some(pool) = pool {
        let found = policies.into_iter().find(|policy| policy.name.as_str() == pool);
        return found.ok_or_else(|| {
            let say = format!("{name} has no pool {pool}");
            CommandFailure::new(Exit::NotFound, "notFound", say).help(format!("it has: {names}"))
        });
    }
    match (policies.pop(), policies.len()) {
        (Some(policy), 0) => Ok(policy),
        (Some(_), more) => {
            let say = format!("{name} has {} pools", more + 1);
            Err(CommandFailure::usage(say).help(format!("say which with --pool: {names}")))
        }
        (None, _) => {
            Err(CommandFailure::new(Exit::Input, "missingKey", format!("{name} has no pool"))
                .help("give a pool file in YAML, or a snapshot in JSON"))
        }
    }
}

/// The policy with the size that a person ordered, while the order outranks the document.
fn ordered(policy: &Policy, snapshot: &SnapshotInput) -> Policy {
    let order = snapshot.state.as_ref().and_then(|state| state.scale.as_ref());
    let Some(order) = order.filter(|order| order.outranks(policy.count, snapshot.now)) else {
        return policy.clone();
    };
    let mut draft = Draft::clone(policy);
    draft.fix_count(order.to);
    Policy::build(draft).unwrap_or_else(|_| policy.clone())
}
