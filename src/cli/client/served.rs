//! What a Poolkeeper that serves says of its pools, as pages tell it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Line, Server, strange};
use crate::api::client::Request;
use crate::api::v1::foremost::rank;
use crate::api::v1::resources::read::{
    ActionRead, AnswerRead, HoldRead, MachineRead, NumbersRead, PlanRead, ProgressRead,
    RolloutRead, StatusRead, class,
};
use crate::cli::exit::{Exit, Failure};
use crate::cli::page::{
    ActionFacts, AskFacts, Facts, HoldFacts, MachineFacts, RolloutFacts, targets, written,
};
use crate::cli::text::{alike, list};
use crate::model::action::Class;

/// The names that are told where a pool is not known.
const NAMES: usize = 8;

impl Line {
    /// One part of a pool. Where there is no such pool, those that there are help.
    pub fn of_pool<T: DeserializeOwned>(
        &self,
        pool: &str,
        part: &[&str],
    ) -> Result<(String, T), Failure> {
        let path = [&["pools", pool], part].concat();
        self.read(&Request::get(&path)).map_err(|failure| self.nearest(pool, failure))
    }

    /// Of a pool that is not there: what its name looks like.
    fn nearest(&self, pool: &str, failure: Failure) -> Failure {
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
            (true, true) => failure.help("no pool is under management there"),
            (true, false) => failure.help(format!("there are: {}", list(names.into_iter(), NAMES))),
        }
    }

    pub fn status(&self, pool: &str) -> Result<(String, StatusRead), Failure> {
        self.of_pool(pool, &["status"])
    }

    pub fn rollout(&self, pool: &str) -> Result<(String, RolloutRead), Failure> {
        self.of_pool(pool, &["rollout"])
    }

    /// Every pool, as it was answered and as it was understood.
    pub fn pools(&self) -> Result<Vec<(Value, StatusRead)>, Failure> {
        items(self.all(&["pools"])?)
    }

    pub fn machines(&self, pool: &str) -> Result<Vec<MachineRead>, Failure> {
        let machines = items(self.all(&["pools", pool, "machines"])?)?;
        Ok(machines.into_iter().map(|(_, machine)| machine).collect())
    }

    /// The plan of the last turn, as it was answered and as pages tell it.
    pub fn decided(&self, pool: &str) -> Result<(String, Facts<'static>), Failure> {
        let (_, status) = self.status(pool)?;
        self.plan(pool, &status, &self.machines(pool)?)
    }

    /// The same, where the rest is known already.
    pub fn plan(
        &self,
        pool: &str,
        status: &StatusRead,
        machines: &[MachineRead],
    ) -> Result<(String, Facts<'static>), Failure> {
        let (text, plan): (_, PlanRead) = self.of_pool(pool, &["plan"])?;
        Ok((text, facts(&plan, status, machines)))
    }
}

impl Server {
    pub(super) fn nearest(&self, pool: &str, failure: Failure) -> Failure {
        match self.line() {
            Ok(line) if failure.exit == Exit::NotFound => line.nearest(pool, failure),
            _ => failure,
        }
    }
}

fn items<T: DeserializeOwned>(mut list: Value) -> Result<Vec<(Value, T)>, Failure> {
    let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let read = |item: Value| T::deserialize(&item).map(|read| (item, read));
    items.into_iter().map(read).collect::<Result<_, _>>().map_err(|error| strange(&error))
}

fn facts(plan: &PlanRead, status: &StatusRead, machines: &[MachineRead]) -> Facts<'static> {
    let at = plan.at.0;
    // Those of the status say what they mean; a frozen pool has one more.
    let told = if status.holds.is_empty() { &plan.holds } else { &status.holds };
    let mut holds: Vec<HoldFacts> = told.iter().map(hold).collect();
    if let Some(frozen) = status.frozen.as_ref().map(hold).filter(|frozen| !holds.contains(frozen))
    {
        holds.insert(0, frozen);
    }
    let foremost = (0..holds.len()).min_by_key(|at| holds.get(*at).map(|hold| rank(&hold.rule)));
    let machines = machines.iter().map(|machine| {
        let (say, next) = (machine.say.clone().unwrap_or_default(), machine.next.map(|at| at.0));
        let name = machine.revision_name.as_deref();
        MachineFacts::told(machine.record(), name, machine.class(), say, next)
    });
    let resolved = &plan.resolved;
    Facts {
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
        again: plan.again.0,
        notices: resolved.notices.clone(),
        actions: plan.actions.iter().map(action).collect(),
        holds,
        foremost,
        asks: plan.asks.iter().map(ask).collect(),
        machines: machines.collect(),
    }
}

fn numbers(plan: &PlanRead, more: Option<NumbersRead>) -> Vec<(&'static str, u32)> {
    let resolved = &plan.resolved;
    let mut numbers = vec![
        ("live", resolved.live),
        ("available", resolved.available),
        ("promise", resolved.promise),
        ("current", resolved.current),
        ("outdated", resolved.outdated),
    ];
    numbers.extend(more.iter().flat_map(|more| {
        [
            ("pending", more.pending),
            ("young", more.young),
            ("failed", more.failed),
            ("leaving", more.leaving),
        ]
    }));
    numbers
}

pub(in crate::cli) fn rollout(progress: &ProgressRead) -> RolloutFacts {
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

fn action(action: &ActionRead) -> ActionFacts {
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
                let class = named.and_then(|name| class(name)).unwrap_or(Class::Unknown);
                (id.clone(), class)
            };
            targets(&action.machines.iter().map(of).collect::<Vec<_>>())
        }
    };
    ActionFacts { verb: action.verb.clone(), object, reason: action.reason.clone() }
}

pub(in crate::cli) fn hold(hold: &HoldRead) -> HoldFacts {
    HoldFacts {
        rule: hold.reason.clone(),
        meaning: hold.meaning.clone(),
        say: hold.say.clone(),
        numbers: hold.numbers.iter().map(|(name, n)| (name.clone(), *n)).collect(),
        blockers: hold.blockers.clone(),
        recheck: hold.recheck.0,
        verb: hold.verb.clone(),
    }
}

fn ask(answer: &AnswerRead) -> AskFacts {
    AskFacts {
        id: answer.id.clone(),
        verb: String::new(),
        accepted: answer.accepted,
        say: answer.say.clone(),
    }
}
