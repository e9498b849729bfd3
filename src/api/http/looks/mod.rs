//! What may be looked at: the records of the store, joined with what the last turn said.

mod machines;
mod rollout;
mod told;

pub use machines::{explain_machine, machine, machines};
pub use rollout::{revisions, rollout};
pub use told::{ask, audit, history};

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;

use super::House;
use super::call::{Answer, Call};
use super::persons::{self, awaited};
use super::problem::Problem;
use super::route::Query;
use super::view::{Origin, Pool, Scene, View};
use crate::api::v1::foremost::foremost;
use crate::api::v1::resources::When;
use crate::api::v1::resources::pools::{
    EstimateShown, Explanation, HoldShown, IgnoredShown, PoolList, PoolNumbers, PoolStatus,
    RefusedDocument, TroubleShown,
};
use crate::api::v1::resources::told::{Health, ReadyShown};
use crate::api::v1::{API_VERSION, plan as document, pool as pools};
use crate::memory::{Audit, Desk};
use crate::model::action::Class;
use crate::model::budget::{Hold, HoldReason};
use crate::model::plan::{Estimate, Planned, Report, RolloutPhase};

fn known<S, V: View>(house: &House<S, V>, call: &Call) -> Result<Pool, Problem> {
    let name = call.pool();
    house.view.pool(&name).ok_or_else(|| Problem::not_found("pool", name.as_str()))
}

/// Faults that a list of pools shows.
const MOST_FAULTS: usize = 100;

/// What the last turn decided from; a pool that had none yet has no plan to show.
async fn scene<S, V: View>(house: &House<S, V>, call: &Call) -> Result<Scene, Problem> {
    let pool = known(house, call)?;
    let scene = house.view.scene(&pool.policy.name).await;
    let scene = scene.filter(|scene| scene.report.planned.is_some());
    scene.ok_or_else(|| {
        let problem = Problem::conflict("noPlanYet", "no turn of this pool has come to a plan yet");
        let problem = problem.later(5);
        match (&pool.trouble, pool.report.as_ref().and_then(|report| report.frozen.as_ref())) {
            (Some(trouble), _) => problem.help(trouble.say.to_string()),
            (None, Some(frozen)) => problem.help(frozen.say.to_string()),
            (None, None) => problem,
        }
    })
}

pub async fn pools<S: Desk, V: View>(
    house: &Arc<House<S, V>>,
    call: &Call,
) -> Result<Answer, Problem> {
    let (after, limit) = (call.query(Query::Cursor).unwrap_or_default(), call.limit()?);
    let mut all = house.view.pools();
    all.retain(|pool| call.covers(pool.policy.name.as_str()));
    let mut later = all.iter().filter(|pool| pool.policy.name.as_str() > after);
    let awaited = awaited(house).await.ok();
    let of_pool = |pool| of_pool(pool, awaited.as_deref());
    let items: Vec<PoolStatus> = later.by_ref().take(limit).map(of_pool).collect();
    let next = later.next().and(items.last()).map(|last| last.name.clone());
    let refused = house.view.refused().into_iter();
    let refused = refused.filter(|(name, _)| call.covers(name.as_str()));
    let refused =
        refused.map(|(name, why)| RefusedDocument { name: name.to_string(), message: why.into() });
    let (refused, kind) = (refused.collect(), "PoolList");
    // A fault may name any file and any pool.
    let faults = if call.covers_house() { house.view.faults() } else { Vec::new() };
    let faults = faults.iter().take(MOST_FAULTS).map(ToString::to_string).collect();
    Ok(Answer::tagged(&PoolList { api_version: API_VERSION, kind, items, refused, faults, next }))
}

pub fn pool<S, V: View>(house: &House<S, V>, call: &Call) -> Result<Answer, Problem> {
    let pool = known(house, call)?;
    Ok(Answer::tagged_bytes(pools::to_json(&pool.policy).into()))
}

pub async fn status<S: Desk, V: View>(
    house: &Arc<House<S, V>>,
    call: &Call,
) -> Result<Answer, Problem> {
    let pool = known(house, call)?;
    Ok(Answer::tagged(&of_pool(&pool, awaited(house).await.ok().as_deref())))
}

pub async fn plan<S, V: View>(house: &Arc<House<S, V>>, call: &Call) -> Result<Answer, Problem> {
    let scene = scene(house, call).await?;
    let planned = scene.report.planned.as_ref().ok_or_else(super::broken)?;
    let text = document::encode(&scene.input(), planned);
    Ok(Answer::tagged_bytes(text.into()))
}

pub async fn explain<S, V: View>(house: &Arc<House<S, V>>, call: &Call) -> Result<Answer, Problem> {
    let scene = scene(house, call).await?;
    let planned = scene.report.planned.as_ref().ok_or_else(super::broken)?;
    let again = known(house, call)?.looked_at_again();
    let again = When(again.unwrap_or(scene.report.again));
    Ok(Answer::tagged(&Explanation { again, ..explanation(&scene, planned) }))
}

/// Of the pool; who explains a machine says more.
fn explanation(scene: &Scene, planned: &Planned) -> Explanation {
    let report = &planned.report;
    let hold = scene.report.frozen.as_ref().or_else(|| foremost(&report.holds));
    let mut classes: BTreeMap<&'static str, u32> =
        Class::ALL.iter().map(|class| (class.name(), 0)).collect();
    for machine in &report.machines {
        *classes.entry(machine.class.name()).or_default() += 1;
    }
    Explanation {
        api_version: API_VERSION,
        kind: "Explanation",
        pool: scene.policy.name.to_string(),
        at: When(scene.report.at),
        say: headline(scene, planned, hold),
        reason: hold.map(of_hold),
        machine: None,
        becomes: None,
        classes,
        again: When(scene.report.again),
    }
}

/// What is done, and why no more.
fn headline(scene: &Scene, planned: &Planned, hold: Option<&Hold>) -> String {
    let (name, numbers) = (&scene.policy.name, &planned.report.numbers);
    let acts: Vec<String> =
        planned.actions.iter().map(|action| action.reason().to_owned()).collect();
    let is_frozen = scene.report.frozen.is_some();
    match (hold, acts.is_empty() || is_frozen) {
        (Some(hold), true) => format!("{name} waits: {}: {}", rule(hold), hold.say),
        (Some(hold), false) => {
            let acts = acts.join(", ");
            format!("{name} does now: {acts}; no more, because of {}: {}", rule(hold), hold.say)
        }
        (None, false) => format!("{name} does now: {}; nothing stands against it", acts.join(", ")),
        (None, true) => format!(
            "{name} has nothing to do: {} of {} available, {} outdated",
            numbers.available, numbers.desired, numbers.outdated
        ),
    }
}

/// The reason of a hold as documents have it.
fn rule(hold: &Hold) -> String {
    match (hold.reason, hold.law) {
        (HoldReason::Law, Some(law)) => format!("law:{law}"),
        (reason, _) => reason.code().to_owned(),
    }
}

fn of_hold(hold: &Hold) -> HoldShown {
    HoldShown {
        reason: rule(hold),
        meaning: hold.reason.meaning(),
        say: hold.say.to_string(),
        numbers: hold.numbers.iter().copied().collect(),
        blockers: hold.blockers.iter().map(ToString::to_string).collect(),
        recheck: When(hold.recheck),
        verb: hold.verb,
    }
}

/// `awaited`: what waits for a second person, in all pools.
fn of_pool(pool: &Pool, awaited: Option<&[Audit]>) -> PoolStatus {
    let of_this = |line: &&Audit| line.pool.as_ref() == Some(&pool.policy.name);
    let turn = pool.report.as_deref();
    let report = turn.and_then(|turn| turn.planned.as_ref()).map(|planned| &planned.report);
    let (origin, file) = match &pool.origin {
        Origin::File(file) | Origin::Missing(file) => ("file", Some(file.display().to_string())),
        Origin::Api => ("api", None),
    };
    PoolStatus {
        name: pool.policy.name.to_string(),
        scale_set: pool.policy.scale_set.to_string(),
        origin,
        at: turn.map(|turn| When(turn.at)),
        again: pool.looked_at_again().map(When),
        numbers: report.map(of_numbers),
        phase: report.map_or(RolloutPhase::None, |report| report.rollout.phase).name(),
        holds: report.map(|report| report.holds.iter().map(of_hold).collect()).unwrap_or_default(),
        frozen: turn.and_then(|turn| turn.frozen.as_ref()).map(of_hold),
        trouble: pool.trouble.as_ref().map(|trouble| TroubleShown {
            say: trouble.say.to_string(),
            since: When(trouble.since),
            retry: trouble.retry.map(When),
        }),
        ignored: pool.ignored.as_ref().map(|say| IgnoredShown {
            file: file.clone().unwrap_or_default(),
            say: say.to_string(),
        }),
        file,
        estimate: report.map(|report| of_estimate(&report.estimate)),
        awaiting_second_person: awaited
            .map(|lines| lines.iter().filter(of_this).map(persons::shown).collect()),
    }
}

fn of_numbers(report: &Report) -> PoolNumbers {
    let (numbers, resolved) = (&report.numbers, &report.resolved);
    PoolNumbers {
        desired: numbers.desired,
        surge: resolved.surge,
        unavailable: resolved.unavailable,
        floor: resolved.floor,
        ceiling: resolved.ceiling,
        live: numbers.live,
        available: numbers.available,
        current: numbers.current,
        outdated: numbers.outdated,
        failed: numbers.failed,
        young: numbers.young,
        leaving: numbers.leaving,
        pending: numbers.pending,
    }
}

fn of_estimate(estimate: &Estimate) -> EstimateShown {
    EstimateShown {
        finishes: estimate.finishes.map(When),
        peak_machines: estimate.peak_machines,
        peak_cores: estimate.peak_cores,
        calls: estimate.calls,
    }
}

pub fn health<S, V: View>(house: &House<S, V>) -> Answer {
    let health = Health {
        api_version: API_VERSION,
        kind: "Health",
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        troubles: house.view.troubles(),
    };
    Answer::json(StatusCode::OK, &health)
}

pub fn ready<S, V: View>(house: &House<S, V>) -> Answer {
    let readiness = house.view.readiness();
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let shown = ReadyShown {
        api_version: API_VERSION,
        kind: "Readiness",
        ready: readiness.ready,
        say: readiness.say.to_string(),
        pools: house.view.pools().len() as u32,
    };
    Answer::json(status, &shown)
}
