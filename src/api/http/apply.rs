//! Puts pools under management and removes them: writes their documents into the store; the daemon then reloads them.

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, IF_MATCH, IF_NONE_MATCH};

use super::audit::{ASKED, ChangeRequest, DONE};
use super::backend::{PoolOrigin, PoolView};
use super::persons::agreed;
use super::problem::Problem;
use super::request::{Call, HttpAnswer, HttpResult, names, tag};
use super::state::ApiState;
use crate::api::v1::API_VERSION;
use crate::api::v1::pool::{OutsideNames, PoolDocuments, to_json};
use crate::api::v1::resources::When;
use crate::api::v1::resources::asked::UnmanageReceipt;
use crate::memory::{Document, Expected, PoolRecord, PutOutcome, StoreError};
use crate::model::ids::PoolName;
use crate::model::machine::Machine;
use crate::model::policy::Policy;
use crate::model::quantity::counted;

pub async fn apply(state: &ApiState, call: &Call) -> HttpResult {
    let why = call.why()?;
    let policy = read(call, &state.backend.outside_names())?;
    let pool = policy.name.clone();
    let change = ChangeRequest { call, pool, verb: "apply", machine: None, why };
    let name = &change.pool;
    let _one_at_a_time = state.applying.lock().await;
    let current = state.backend.pool(name);
    own(current.as_ref(), name)?;
    conditions(call, current.as_ref())?;
    stays(current.as_ref(), &policy)?;
    alone(state, &policy)?;
    let text = std::str::from_utf8(&call.body).unwrap_or_default();
    state.audit.write(&change, ASKED).await?;
    keep(state, &change, text).await?;
    state.audit.write(&change, DONE).await?;
    let answer = HttpAnswer::tagged_bytes(to_json(&policy).into());
    let status = if current.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok(HttpAnswer { status, ..answer })
}

/// Stores the document and lets the daemon load it; if the daemon refuses it, restores what the store held before.
pub(super) async fn keep(
    state: &ApiState,
    change: &ChangeRequest<'_>,
    text: &str,
) -> Result<(), Problem> {
    let (name, call) = (&change.pool, change.call);
    let before = state.store.document(name).await?;
    let found = found(before.as_ref());
    let put = state.store.put_document(name, text, call.who(), call.now, found).await;
    let revision = settle(state, change, put).await?;
    if state.backend.reload(name).await
        && let Some((_, fault)) = state.backend.refused().into_iter().find(|(pool, _)| pool == name)
    {
        take_back(state, name, before, revision).await?;
        state.audit.write(change, "refused").await?;
        return Err(Problem::conflict("refused", fault.to_string()));
    }
    Ok(())
}

pub async fn unmanage(state: &ApiState, call: &Call) -> HttpResult {
    let why = call.why()?;
    let change = ChangeRequest { call, pool: call.pool(), verb: "unmanage", machine: None, why };
    let name = &change.pool;
    let _one_at_a_time = state.applying.lock().await;
    let current = state.backend.pool(name);
    conditions(call, current.as_ref())?;
    let document = state.store.document(name).await?;
    let left = left(state, name, current.as_ref()).await?;
    match (&document, &current) {
        (None, None) if !state.backend.is_unnamed(name) => {
            return Err(Problem::not_found("pool", name.as_str()));
        }
        (None, None | Some(PoolView { origin: PoolOrigin::Missing(_), .. })) => {
            ask_removal(state, &change).await?;
            state.backend.let_go(name).await;
            state.audit.write(&change, DONE).await?;
            return Ok(removed(&change, left));
        }
        (None, _) => own(current.as_ref(), name)?,
        // A refused document is removed in the same way as a managed one.
        (Some(_), _) => {}
    }
    let found = found(document.as_ref());
    ask_removal(state, &change).await?;
    let put = state.store.remove_document(name, found).await;
    settle(state, &change, put).await?;
    state.backend.reload(name).await;
    state.audit.write(&change, DONE).await?;
    Ok(removed(&change, left))
}

/// What the pool leaves behind once it is no longer managed.
async fn left(
    state: &ApiState,
    pool: &PoolName,
    current: Option<&PoolView>,
) -> Result<Vec<String>, Problem> {
    let PoolRecord { mut machines, state, inbox, .. } = state.store.load(pool).await?;
    inbox.put_on(&mut machines);
    let mut left = Vec::new();
    if let Some((open, state)) = state.as_ref().and_then(|s| Some((s.rollout.as_ref()?, s))) {
        left.push(format!("the open rollout to {} stops where it is", state.name(&open.to)));
    }
    let planned = current.and_then(|pool| pool.report.as_ref()?.planned.as_ref());
    if let Some(numbers) = planned.map(|planned| &planned.report.numbers) {
        let surplus = numbers.exist.saturating_sub(numbers.desired) as usize;
        let size = numbers.desired;
        left.extend(stay(surplus, &format!("above the desired size of {size}"), "removed"));
    }
    let held = machines.iter().filter(|machine| machine.hold().is_some()).count();
    left.extend(stay(held, "held by a person", "released"));
    // A delete that was sent already is not taken back.
    let waits = |machine: &&Machine| machine.delete_request().is_some() && !machine.goes();
    let marked = machines.iter().filter(waits).count();
    left.extend(stay(marked, "marked for deletion", "deleted"));
    Ok(left)
}

/// `2 machines held by a person are not released`; `None`: there are no such machines.
fn stay(machines: usize, which: &str, what: &str) -> Option<String> {
    let are = if machines == 1 { "is" } else { "are" };
    (machines > 0).then(|| format!("{} {which} {are} not {what}", counted(machines, "machine")))
}

/// Records the request; succeeds only if one person suffices or another person asked before.
async fn ask_removal(state: &ApiState, change: &ChangeRequest<'_>) -> Result<(), Problem> {
    let asked = agreed(state, change.line("")).await?;
    state.audit.write_line(&asked).await
}

fn removed(change: &ChangeRequest<'_>, left: Vec<String>) -> HttpAnswer {
    let removed = UnmanageReceipt {
        api_version: API_VERSION.into(),
        kind: "Removed".into(),
        pool: change.pool.to_string(),
        who: change.call.who().to_owned(),
        why: change.why.to_string(),
        at: When(change.call.now),
        left,
    };
    HttpAnswer::json(StatusCode::OK, &removed)
}

/// The one pool of the body: valid, and with the name in the path.
fn read(call: &Call, names: &OutsideNames) -> Result<Policy, Problem> {
    let (mut policies, faults) = PoolDocuments::with_names(names).read_bytes(&call.body, None);
    if !faults.is_empty() {
        return Err(Problem::faults(faults));
    }
    let (Some(policy), true) = (policies.pop(), policies.is_empty()) else {
        let say = "one pool document is needed here";
        return Err(Problem::invalid("invalidDocument", say));
    };
    if policy.name.as_str() != call.param("pool") {
        let say = format!("the document is of pool {}, the path of another", policy.name);
        return Err(Problem::invalid("otherPool", say));
    }
    Ok(policy)
}

/// A pool from a file is changed only in its file; otherwise file and API would overwrite each other.
fn own(current: Option<&PoolView>, name: &PoolName) -> Result<(), Problem> {
    match current.map(|pool| &pool.origin) {
        Some(PoolOrigin::File(file)) => {
            let say = format!("pool {name} is written in {}", file.display());
            Err(Problem::conflict("fileOwned", say).help("change the file; it is watched"))
        }
        Some(PoolOrigin::Missing(file)) => {
            let say = format!("pool {name} was written in {}, which is gone", file.display());
            Err(Problem::conflict("fileOwned", say)
                .help("put the file back, or run `poolkeeper unmanage` for the pool first"))
        }
        Some(PoolOrigin::Api) | None => Ok(()),
    }
}

/// Checks If-Match and If-None-Match against what GET answers.
fn conditions(call: &Call, current: Option<&PoolView>) -> Result<(), Problem> {
    let failed = |say: &str| {
        Err(Problem::new(StatusCode::PRECONDITION_FAILED, "preconditionFailed", say)
            .help("get the pool, and apply the change to that"))
    };
    let tag =
        current.and_then(|pool| HeaderValue::from_str(&tag(to_json(&pool.policy).as_bytes())).ok());
    let matches = |header| tag.as_ref().is_some_and(|tag| names(&call.headers, header, tag));
    if call.header(&IF_MATCH).is_some() && !matches(&IF_MATCH) {
        return failed("the pool is not, or no longer, what If-Match says");
    }
    if call.header(&IF_NONE_MATCH).is_some() && matches(&IF_NONE_MATCH) {
        return failed("the pool is there already");
    }
    Ok(())
}

/// The scale set cannot change: the pool's stored state belongs to its scale set.
fn stays(current: Option<&PoolView>, policy: &Policy) -> Result<(), Problem> {
    match current {
        Some(pool) if pool.policy.scale_set != policy.scale_set => {
            let say = format!("pool {} has another scale set", policy.name);
            Err(Problem::conflict("otherScaleSet", say)
                .help("give the pool of another scale set another name"))
        }
        _ => Ok(()),
    }
}

/// No two pools share a name or a scale set, compared without case.
fn alone(state: &ApiState, policy: &Policy) -> Result<(), Problem> {
    for other in state.backend.pools().iter().map(|pool| &pool.policy) {
        if other.name == policy.name {
            continue;
        }
        if other.name.as_str().eq_ignore_ascii_case(policy.name.as_str()) {
            let say = format!(
                "there is a pool {}, and letters count the same in upper and lower case",
                other.name
            );
            return Err(Problem::conflict("nameTaken", say));
        }
        if other.scale_set == policy.scale_set {
            let say = format!("pool {} has this scale set", other.name);
            return Err(Problem::conflict("scaleSetTaken", say));
        }
    }
    Ok(())
}

fn found(document: Option<&Document>) -> Expected {
    document.map_or(Expected::Nothing, |document| Expected::Revision(document.revision))
}

/// The daemon refused the document after it was stored: restore what the store held before.
async fn take_back(
    state: &ApiState,
    name: &PoolName,
    before: Option<Document>,
    revision: u64,
) -> Result<(), Problem> {
    let found = Expected::Revision(revision);
    match before {
        Some(Document { text, who, at, .. }) => {
            state.store.put_document(name, &text, &who, at, found).await?
        }
        None => state.store.remove_document(name, found).await?,
    };
    state.backend.reload(name).await;
    Ok(())
}

/// Result of the write. If it differs from the request, the audit records that too.
async fn settle(
    state: &ApiState,
    change: &ChangeRequest<'_>,
    put: Result<PutOutcome, StoreError>,
) -> Result<u64, Problem> {
    let (came, problem) = match put {
        Ok(PutOutcome::Done { revision }) => return Ok(revision),
        Ok(PutOutcome::Stale { .. }) => {
            let say = "the document was changed at the same time";
            ("stale", Problem::conflict("changedMeanwhile", say))
        }
        Err(error) => ("failed", error.into()),
    };
    state.audit.write(change, came).await?;
    Err(problem)
}
