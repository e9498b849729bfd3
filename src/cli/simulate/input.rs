//! What is rehearsed: the pool of a file, or the pool, the scale set and the machines of a snapshot.

use std::path::Path;

use serde_json::Value;

use crate::api::v1::pool::Pools;
use crate::api::v1::problem::Problem;
use crate::api::v1::snapshot::{self, SnapshotInput, Snapshots};
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::source::Source;
use crate::cli::text::list;
use crate::model::policy::{Health, Owner, Policy};
use crate::model::time::Time;
use crate::sim::{ClusterSpec, Faults, Scenario};

/// Names of pools that an error lists.
const NAMED: usize = 10;

#[derive(Debug)]
pub enum Input {
    Pool(Box<Policy>),
    Snapshot(Box<SnapshotInput>),
}

/// What options say about every rehearsal alike.
#[derive(Debug, Clone)]
pub struct Terms {
    pub machines: Option<u32>,
    pub faults: Faults,
    pub pods: Option<u32>,
    pub start: Option<Time>,
}

impl Input {
    pub fn read(path: &Path, pool: Option<&str>, shell: &Shell) -> Result<Input, Failure> {
        let source = Source::new(path);
        let bytes = source.read(shell, snapshot::MAX_BYTES)?;
        let file = source.file();
        if is_snapshot(&bytes) {
            let read = Snapshots::default().read(&bytes);
            let read = read.map_err(|problem| Failure::bad_input(problem, file.as_deref()))?;
            return Ok(Input::Snapshot(Box::new(read)));
        }
        let (policies, found) = Pools::default().read_bytes(&bytes, None);
        if let Some(problem) = Problem::of(&found) {
            return Err(Failure::bad_input(problem, file.as_deref()));
        }
        choose(policies, pool, &source.name()).map(|policy| Input::Pool(Box::new(policy)))
    }

    pub fn policy(&self) -> &Policy {
        match self {
            Input::Pool(policy) => policy,
            Input::Snapshot(snapshot) => &snapshot.policy,
        }
    }

    /// A size is needed: that of the file, of the snapshot, or of the command line.
    pub fn check(&self, terms: &Terms) -> Result<(), Failure> {
        let policy = self.policy();
        match self {
            Input::Snapshot(_) if terms.machines.is_some() => {
                Err(Failure::usage("--machines is for pool files: a snapshot brings its machines"))
            }
            Input::Pool(_) if policy.owner == Owner::ScaleSet && terms.machines.is_none() => {
                let say = format!(
                    "pool {} does not say how many machines it has: its scale set does",
                    policy.name.as_str()
                );
                Err(Failure::usage(say).help("say how many to rehearse with: --machines 30"))
            }
            _ => Ok(()),
        }
    }

    pub fn scenario(&self, terms: &Terms, seed: u64) -> Scenario {
        let mut scenario = match self {
            Input::Pool(policy) => {
                Scenario::from_policy(policy, terms.machines, seed, terms.faults)
            }
            Input::Snapshot(it) => {
                Scenario::from_snapshot(&it.policy, &it.set, &it.machines, seed, terms.faults)
            }
        };
        // Health that is read from nodes needs nodes.
        let nodes = (self.policy().health == Health::Node).then_some(0);
        scenario.cluster = terms
            .pods
            .or(nodes)
            .map(|pods_per_node| ClusterSpec { pods_per_node, ..ClusterSpec::default() });
        scenario.start = terms.start.unwrap_or(scenario.start);
        scenario
    }
}

/// By its kind; of what is no JSON, by whether it tries to be one.
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

fn choose(mut policies: Vec<Policy>, pool: Option<&str>, name: &str) -> Result<Policy, Failure> {
    let names = policies.iter().map(|policy| policy.name.as_str().to_owned()).collect::<Vec<_>>();
    let names = list(names.iter().map(String::as_str), NAMED);
    if let Some(pool) = pool {
        let found = policies.into_iter().find(|policy| policy.name.as_str() == pool);
        return found.ok_or_else(|| {
            let say = format!("{name} has no pool {pool}");
            Failure::new(Exit::NotFound, "notFound", say).help(format!("it has: {names}"))
        });
    }
    match (policies.pop(), policies.len()) {
        (Some(policy), 0) => Ok(policy),
        (Some(_), more) => {
            let say = format!("{name} has {} pools", more + 1);
            Err(Failure::usage(say).help(format!("say which with --pool: {names}")))
        }
        (None, _) => Err(Failure::new(Exit::Input, "missingKey", format!("{name} has no pool"))
            .help("give a pool file in YAML, or a snapshot in JSON")),
    }
}
