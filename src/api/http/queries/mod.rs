//! Read requests: the records of the store, joined with the results of the last turn.

pub mod history;
pub mod machines;
pub mod rollout;

use axum::http::StatusCode;

use super::backend::{PlanContext, PoolOrigin, PoolView};
use super::persons::{self, awaited};
use super::problem::Problem;
use super::request::{Call, HttpAnswer, HttpResult, Query};
use super::state::ApiState;
use crate::api::v1::resources::When;
use crate::api::v1::resources::pools::{
    Explanation, IgnoredFile, PoolList, PoolStatus, ReconcileError, RefusedDocument,
};
use crate::api::v1::resources::stop::StopDetail;
use crate::api::v1::resources::told::{HealthStatus, ReadinessStatus};
use crate::api::v1::{API_VERSION, plan as document, pool as pools};
use crate::memory::AuditEntry;

/// Most faults in a list of pools.
const MOST_FAULTS: usize = 100;

/// The input of the last turn's decision; a pool without a turn yet has no plan to show.
async fn context(state: &ApiState, call: &Call) -> Result<PlanContext, Problem> {
    let pool = state.pool(call)?;
    let context = state.backend.plan_context(&pool.policy.name).await;
    let context = context.filter(|context| context.report.planned.is_some());
    context.ok_or_else(|| {
        let problem = Problem::conflict("noPlanYet", "no turn of this pool has come to a plan yet");
        let problem = problem.later(5);
        match (&pool.trouble, pool.report.as_ref().and_then(|report| report.frozen.as_ref())) {
            (Some(trouble), _) => problem.help(trouble.say.to_string()),
            (None, Some(frozen)) => problem.help(frozen.message.to_string()),
            (None, None) => problem,
        }
    })
}

pub async fn pools(state: &ApiState, call: &Call) -> HttpResult {
    let (after, limit) = (call.query(Query::Cursor).unwrap_or_default(), call.limit()?);
    let mut all = state.backend.pools();
    all.retain(|pool| call.covers(pool.policy.name.as_str()));
    let mut later = all.iter().filter(|pool| pool.policy.name.as_str() > after);
    let of_all = OfAllPools::read(state).await;
    let of_pool = |pool| of_pool(pool, &of_all);
    let items: Vec<PoolStatus> = later.by_ref().take(limit).map(of_pool).collect();
    let next = later.next().and(items.last()).map(|last| last.name.clone());
    let refused = state.backend.refused().into_iter();
    let refused = refused.filter(|(name, _)| call.covers(name.as_str()));
    let refused =
        refused.map(|(name, why)| RefusedDocument { name: name.to_string(), message: why.into() });
    let (refused, kind) = (refused.collect(), "PoolList".into());
    // A fault may name any file and any pool, so only unscoped callers see it.
    let faults = if call.covers_all() { state.backend.faults() } else { Vec::new() };
    let faults = faults.iter().take(MOST_FAULTS).map(ToString::to_string).collect();
    Ok(HttpAnswer::tagged(&PoolList {
        api_version: API_VERSION.into(),
        kind,
        items,
        refused,
        faults,
        next,
    }))
}

pub fn pool(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?;
    Ok(HttpAnswer::tagged_bytes(pools::to_json(&pool.policy).into()))
}

pub async fn status(state: &ApiState, call: &Call) -> HttpResult {
    let pool = state.pool(call)?;
    Ok(HttpAnswer::tagged(&of_pool(&pool, &OfAllPools::read(state).await)))
}

pub async fn plan(state: &ApiState, call: &Call) -> HttpResult {
    let context = context(state, call).await?;
    let planned = context.report.planned.as_ref().ok_or_else(Problem::internal)?;
    let text = document::encode(&context.input(), planned);
    Ok(HttpAnswer::tagged_bytes(text.into()))
}

pub async fn explain(state: &ApiState, call: &Call) -> HttpResult {
    Ok(HttpAnswer::tagged(&explanation(state, call).await?.1))
}

/// The explanation of a pool, and what it rests on; the explanation of a machine says more.
async fn explanation(state: &ApiState, call: &Call) -> Result<(PlanContext, Explanation), Problem> {
    let context = context(state, call).await?;
    let planned = context.report.planned.as_ref().ok_or_else(Problem::internal)?;
    let mut plan = document::summary(&context.input(), planned);
    let again = state.pool(call)?.looked_at_again();
    plan.next_check_at = When(again.unwrap_or(context.report.again));
    let explanation = Explanation::of(&plan, &planned.report.machines);
    Ok((context, explanation))
}

/// What the store says of every pool at once; a store that cannot be read hides no pool.
struct OfAllPools {
    /// Requests that wait for a second person.
    awaited: Option<Vec<AuditEntry>>,
    stop: Option<StopDetail>,
}

impl OfAllPools {
    async fn read(state: &ApiState) -> Self {
        let stop = state.store.stop().await.ok().flatten();
        let stop = stop.as_ref().map(StopDetail::of);
        Self { awaited: awaited(state).await.ok(), stop }
    }
}

fn of_pool(pool: &PoolView, of_all: &OfAllPools) -> PoolStatus {
    let of_this = |line: &&AuditEntry| line.pool.as_ref() == Some(&pool.policy.name);
    let turn = pool.report.as_deref();
    let report = turn.and_then(|turn| turn.planned.as_ref()).map(|planned| &planned.report);
    let (origin, file) = match &pool.origin {
        PoolOrigin::File(file) | PoolOrigin::Missing(file) => {
            ("file".into(), Some(file.display().to_string()))
        }
        PoolOrigin::Api => ("api".into(), None),
    };
    PoolStatus {
        origin,
        at: turn.map(|turn| When(turn.at)),
        next_check_at: pool.looked_at_again().map(When),
        trouble: pool.trouble.as_ref().map(|trouble| ReconcileError {
            message: trouble.say.to_string(),
            since: When(trouble.since),
            retry: trouble.retry.map(When),
        }),
        ignored: pool.ignored.as_ref().map(|say| IgnoredFile {
            file: file.clone().unwrap_or_default(),
            message: say.to_string(),
        }),
        file,
        awaiting_second_person: of_all
            .awaited
            .as_ref()
            .map(|lines| lines.iter().filter(of_this).map(persons::shown).collect()),
        stop_all: of_all.stop.clone(),
        ..PoolStatus::of(&pool.policy, report, turn.and_then(|turn| turn.frozen.as_ref()))
    }
}

pub fn health(state: &ApiState) -> HttpAnswer {
    let health = HealthStatus {
        api_version: API_VERSION.into(),
        kind: "Health".into(),
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        troubles: state.backend.troubles(),
    };
    HttpAnswer::json(StatusCode::OK, &health)
}

pub fn ready(state: &ApiState) -> HttpAnswer {
    let readiness = state.backend.readiness();
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let shown = ReadinessStatus {
        api_version: API_VERSION.into(),
        kind: "Readiness".into(),
        ready: readiness.ready,
        message: readiness.say.to_string(),
        pools: state.backend.pools().len() as u32,
    };
    HttpAnswer::json(status, &shown)
}
