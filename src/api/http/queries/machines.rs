//! Answers for the machines of a pool.

use super::super::backend::PlanContext;
use super::super::problem::Problem;
use super::super::request::{Call, HttpAnswer, HttpResult, Query};
use super::super::state::ApiState;
use super::explanation;
use crate::api::v1::API_VERSION;
use crate::api::v1::replacements::Departure;
use crate::api::v1::resources::machines::{MachineList, MachineStatus};
use crate::api::v1::resources::told::HistoryLine;
use crate::memory::HISTORY_KEPT;
use crate::model::ids::{Key, PoolName};
use crate::model::machine::Machine;
use crate::model::plan::{Decision, Input, MachineReport};
use crate::model::scale::find;
use crate::model::time::Time;
use std::collections::BTreeMap;

/// The recorded machines with their marks, in listing order.
async fn listed(state: &ApiState, pool: &PoolName) -> Result<Vec<Machine>, Problem> {
    let mut loaded = state.store.load(pool).await?;
    loaded.inbox.put_on(&mut loaded.machines);
    Ok(loaded.machines)
}

pub async fn machines(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?.policy.name.clone();
    let (after, limit) = (cursor(call)?, call.limit()?);
    let machines = listed(state, &pool).await?;
    let context = state.backend.plan_context(&pool).await;
    let judgements = context.as_ref().and_then(Judgements::of);
    let mut later =
        machines.iter().filter(|machine| after.as_ref().is_none_or(|at| at.is_before(machine)));
    let page: Vec<&Machine> = later.by_ref().take(limit).collect();
    let next = later.next().and(page.last()).map(|last| Place::of(last).written());
    let items = page.iter().map(|machine| shown(machine, judgements.as_ref())).collect();
    let (kind, pool) = ("MachineList".into(), pool.to_string());
    Ok(HttpAnswer::tagged(&MachineList {
        api_version: API_VERSION.into(),
        kind,
        pool,
        items,
        next,
    }))
}

pub async fn machine(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?.policy.name.clone();
    let machines = listed(state, &pool).await?;
    let written = call.param("machine");
    let found = find(&machines, written);
    let machine = found.ok_or_else(|| Problem::no_machine(&pool, written, &machines))?;
    let context = state.backend.plan_context(&pool).await;
    let judgements = context.as_ref().and_then(Judgements::of);
    Ok(HttpAnswer::tagged(&shown(machine, judgements.as_ref())))
}

fn shown(machine: &Machine, judgements: Option<&Judgements<'_>>) -> MachineStatus {
    judgements.map_or_else(|| MachineStatus::of(machine), |judgements| judgements.status(machine))
}

pub async fn explain(state: &ApiState, call: &Call) -> HttpResult {
    let (context, explained) = explanation(state, call).await?;
    let written = call.param("machine");
    let Some(machine) = find(&context.machines, written) else {
        let departure = departure(state, &context, written).await?;
        return Ok(HttpAnswer::tagged(&explained.about_departure(&departure)));
    };
    let judgements = Judgements::of(&context).ok_or_else(Problem::internal)?;
    let why = judgements.report(machine).map(|report| report.why);
    Ok(HttpAnswer::tagged(&explained.about(judgements.status(machine), why)))
}

/// The end of a machine that the pool had, from its history.
async fn departure(
    state: &ApiState,
    context: &PlanContext,
    written: &str,
) -> Result<Departure, Problem> {
    let pool = &context.policy.name;
    let records = state.store.history(pool, HISTORY_KEPT).await?;
    let lines = records.iter().map(|line| HistoryLine::of(0, pool.as_str(), line));
    let lines: Vec<HistoryLine> = lines.collect();
    let found = Departure::find(&lines, written);
    found.ok_or_else(|| Problem::no_machine(pool, written, &context.machines))
}

/// What a plan decided about machines, by their keys: the records may have changed since.
struct Judgements<'a> {
    input: Input<'a>,
    planned: &'a Decision,
    by_key: BTreeMap<Key, &'a MachineReport>,
}

impl<'a> Judgements<'a> {
    /// `None`: the last turn has no plan.
    fn of(context: &'a PlanContext) -> Option<Self> {
        let planned = context.report.planned.as_ref()?;
        let keyed = planned.report.machines.iter().filter_map(|report| {
            Some((context.machines.get(report.index as usize)?.key(), report))
        });
        Some(Self { input: context.input(), planned, by_key: keyed.collect() })
    }

    fn report(&self, machine: &Machine) -> Option<&'a MachineReport> {
        self.by_key.get(&machine.key()).copied()
    }

    fn status(&self, machine: &Machine) -> MachineStatus {
        MachineStatus::planned(machine, self.report(machine), &self.input, self.planned)
    }
}

/// Where a page ended: a position in the listing order, whether or not that machine still exists.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    created: Time,
    vm: Option<String>,
    id: String,
}

impl Place {
    fn of(machine: &Machine) -> Self {
        let vm = machine.vm.as_ref().map(ToString::to_string);
        Self { created: machine.created, vm, id: machine.id.to_string() }
    }

    fn is_before(&self, machine: &Machine) -> bool {
        *self < Place::of(machine)
    }

    fn written(&self) -> String {
        let vm = self.vm.as_deref().map(|vm| format!("={vm}")).unwrap_or_default();
        format!("{}:{vm}:{}", self.created.millis(), self.id)
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (created, vm, id) = (parts.next()?, parts.next()?, parts.next()?);
        let created = Time::from_millis(created.parse().ok()?);
        let vm = match vm {
            "" => None,
            vm => Some(vm.strip_prefix('=')?.to_owned()),
        };
        Some(Self { created, vm, id: id.to_owned() })
    }
}

fn cursor(call: &Call) -> Result<Option<Place>, Problem> {
    let Some(text) = call.query(Query::Cursor) else { return Ok(None) };
    let place = Place::read(text);
    let bad = || Problem::bad("badQuery", "after is what `next` of the page before says");
    place.map(Some).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_it_is_written() {
        for (vm, id) in [(Some("vm-1"), "1"), (None, "a:b"), (Some(""), "")] {
            let created = Time::from_millis(-5);
            let place = Place { created, vm: vm.map(str::to_owned), id: id.to_owned() };
            assert_eq!(Place::read(&place.written()), Some(place));
        }
        for text in ["", "1", "1:2:3", "x::1", "1:=2"] {
            assert_eq!(Place::read(text), None, "{text}");
        }
    }
}
