//! Reads pools from a running Poolkeeper server and converts them for the pages.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Server, ServerLine, strange};
use crate::api::client::Request;
use crate::api::v1::primary_hold::rank;
use crate::api::v1::resources::read::{
    ClientAction, ClientHold, ClientMachine, ClientNumbers, ClientPlan, ClientProgress,
    ClientRollout, ClientStatus, CommandOutcome, class,
};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::{
    ActionFacts, CommandFacts, HoldFacts, MachineFacts, PoolFacts, RolloutFacts, targets, written,
};
use crate::cli::text::{alike, list};
use crate::model::action::MachineClass;

/// The most pool names that an error about an unknown pool lists.
const NAMES: usize = 8;

impl ServerLine {
    /// One part of a pool. If the pool does not exist, the error suggests existing names.
    pub fn of_pool<T: DeserializeOwned>(
        &self,
        pool: &str,
        part: &[&str],
    ) -> Result<(String, T), CommandFailure> {
        let path = [&["pools", pool], part].concat();
        self.read(&Request::get(&path)).map_err(|failure| self.nearest(pool, failure))
    }

    /// Adds the nearest pool names to an error about an unknown pool.
    fn nearest(&self, pool: &str, failure: CommandFailure) -> CommandFailure {
        if failure.exit != Exit::NotFound || failure.told.help.is_some() {
            return failure;
        }
        let Ok(pools) = self.pools() else { return failure };
        let names: Vec<&str> = pools.iter().map(|(_, pool)| pool.name.as_str()).collect();
        if names.contains(&pool) {
            return failure;
        }
        let near = alike(&names, pool);
        match (near.is_empty(), names.is_empty()) {
            (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), NAMES))),
            (true, true) => failure.help("the daemon manages no pool"),
            (true, false) => failure.help(format!("there are: {}", list(names.into_iter(), NAMES))),
        }
    }

    pub fn status(&self, pool: &str) -> Result<(String, ClientStatus), CommandFailure> {
        self.of_pool(pool, &["status"])
    }

    pub fn rollout(&self, pool: &str) -> Result<(String, ClientRollout), CommandFailure> {
        self.of_pool(pool, &["rollout"])
    }

    /// All pools, each as raw JSON and parsed.
    pub fn pools(&self) -> Result<Vec<(Value, ClientStatus)>, CommandFailure> {
        items(self.all(&["pools"])?)
    }

    pub fn machines(&self, pool: &str) -> Result<Vec<ClientMachine>, CommandFailure> {
        let machines = items(self.all(&["pools", pool, "machines"])?)?;
        Ok(machines.into_iter().map(|(_, machine)| machine).collect())
    }

    /// The plan of the last turn, as raw text and as facts for the pages.
    pub fn decided(&self, pool: &str) -> Result<(String, PoolFacts<'static>), CommandFailure> {
        let (_, status) = self.status(pool)?;
        self.plan(pool, &status, &self.machines(pool)?)
    }

    /// Like [`Self::decided`], for callers that already read the status and the machines.
    pub fn plan(
        &self,
        pool: &str,
        status: &ClientStatus,
        machines: &[ClientMachine],
    ) -> Result<(String, PoolFacts<'static>), CommandFailure> {
        let (text, plan): (_, ClientPlan) = self.of_pool(pool, &["plan"])?;
        Ok((text, facts(&plan, status, machines)))
    }
}

impl Server {
    pub(super) fn nearest(&self, pool: &str, failure: CommandFailure) -> CommandFailure {
        match self.line() {
            Ok(line) if failure.exit == Exit::NotFound => line.nearest(pool, failure),
            _ => failure,
        }
    }
}

fn items<T: DeserializeOwned>(mut list: Value) -> Result<Vec<(Value, T)>, CommandFailure> {
    let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let read = |item: Value| T::deserialize(&item).map(|read| (item, read));
    items.into_iter().map(read).collect::<Result<_, _>>().map_err(|error| strange(&error))
}

fn facts(
    plan: &ClientPlan,
    status: &ClientStatus,
    machines: &[ClientMachine],
) -> PoolFacts<'static> {
    let at = plan.at.0;
    // The holds of the status carry their meaning.
    let told = if status.holds.is_empty() { &plan.holds } else { &status.holds };
    let holds: Vec<HoldFacts> = told.iter().map(hold).collect();
    let foremost = (0..holds.len()).min_by_key(|at| holds.get(*at).map(|hold| rank(&hold.reason)));
    let machines = machines.iter().map(|machine| {
        let (say, next) =
            (machine.message.clone().unwrap_or_default(), machine.next_check_at.map(|at| at.0));
        let name = machine.revision_name.as_deref();
        MachineFacts::told(machine.record(), name, machine.class(), say, next)
    });
    let resolved = &plan.resolved;
    PoolFacts {
        pool: plan.pool.clone(),
        at,
        frozen: status.frozen.is_some(),
        resolved: vec![
            ("desired", resolved.desired),
            ("surge", resolved.surge),
            ("unavailable", resolved.unavailable),
            ("floor", resolved.floor),
            ("ceiling", resolved.ceiling),
        ],
        numbers: numbers(plan, status.numbers),
        available: resolved.available,
        desired: resolved.desired,
        outdated: resolved.outdated,
        rollout: rollout(&plan.rollout),
        finishes: plan.estimate.finishes.map(|at| at.0),
        peak_machines: plan.estimate.peak_machines,
        peak_cores: plan.estimate.peak_cores,
        calls: plan.estimate.calls,
        next_check_at: plan.next_check_at.0,
        notices: resolved.notices.clone(),
        actions: plan.actions.iter().map(action).collect(),
        holds,
        foremost,
        commands: plan.commands.iter().map(ask).collect(),
        machines: machines.collect(),
    }
}

fn numbers(plan: &ClientPlan, more: Option<ClientNumbers>) -> Vec<(&'static str, u32)> {
    let resolved = &plan.resolved;
    let mut numbers = vec![
        ("total", resolved.total),
        ("available", resolved.available),
        ("committed", resolved.committed),
        ("current", resolved.current),
        ("outdated", resolved.outdated),
    ];
    numbers.extend(more.iter().flat_map(|more| {
        [
            ("requested", more.requested),
            ("notYetAvailable", more.not_yet_available),
            ("failed", more.failed),
            ("deleting", more.deleting),
        ]
    }));
    numbers
}

pub(in crate::cli) fn rollout(progress: &ClientProgress) -> RolloutFacts {
    RolloutFacts {
        phase: progress.phase.clone(),
        from: progress.from_name.clone(),
        to: progress.to_name.clone(),
        reference: progress.reference_name.clone(),
        done: progress.done,
        total: progress.total,
        failed: progress.failed,
    }
}

fn action(action: &ClientAction) -> ActionFacts {
    let fields = &action.fields;
    let object = match (action.from, action.to) {
        (Some(from), Some(to)) => format!("{from} → {to}"),
        _ if action.tag.is_some() => action.tag.clone().unwrap_or_default(),
        _ if action.machines.is_empty() => {
            written(fields.image.as_deref(), fields.vm_size.as_deref(), fields.tags.len())
        }
        _ => {
            let of = |id: &String| {
                let named = action.class.as_ref().or_else(|| action.classes.get(id));
                let class = named.and_then(|name| class(name)).unwrap_or(MachineClass::Unknown);
                (id.clone(), class)
            };
            targets(&action.machines.iter().map(of).collect::<Vec<_>>())
        }
    };
    ActionFacts { verb: action.verb.clone(), object, reason: action.message.clone() }
}

pub(in crate::cli) fn hold(hold: &ClientHold) -> HoldFacts {
    HoldFacts {
        reason: hold.reason.clone(),
        meaning: hold.meaning.clone(),
        message: hold.message.clone(),
        numbers: hold.numbers.iter().map(|(name, n)| (name.clone(), *n)).collect(),
        blockers: hold.blockers.clone(),
        next_check_at: hold.next_check_at.0,
        remedy: hold.remedy.clone(),
    }
}

fn ask(answer: &CommandOutcome) -> CommandFacts {
    CommandFacts {
        id: answer.id.clone(),
        verb: String::new(),
        accepted: answer.accepted,
        message: answer.message.clone(),
    }
}
