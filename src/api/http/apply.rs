//! Pools put under management and taken out of it: their documents in the store, which the house then takes up.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{HeaderValue, IF_MATCH, IF_NONE_MATCH};

use super::House;
use super::audited;
use super::call::{Answer, Call, names, tag};
use super::persons::agreed;
use super::problem::Problem;
use super::view::{Origin, Pool, View};
use super::wishes::DONE;
use crate::api::v1::API_VERSION;
use crate::api::v1::pool::{Pools, to_json};
use crate::api::v1::resources::When;
use crate::api::v1::resources::asked::Removed;
use crate::memory::{Desk, Document, Found, Put, Store, StoreError};
use crate::model::ids::PoolName;
use crate::model::policy::Policy;

pub async fn apply<S, V>(house: &Arc<House<S, V>>, call: &Call) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let why = call.why()?;
    let policy = read(call)?;
    let name = policy.name.clone();
    let _one_at_a_time = house.applying.lock().await;
    let current = house.view.pool(&name);
    own(current.as_ref(), &name)?;
    conditions(call, current.as_ref())?;
    stays(current.as_ref(), &policy)?;
    alone(house, &policy)?;
    let text = std::str::from_utf8(&call.body).unwrap_or_default();
    let before = document(house, &name).await?;
    let found = found(before.as_ref());
    write_down(house, call, &name, "apply", &why, "asked").await?;
    let put = house.store.put_document(&name, text, call.who(), call.now, found).await;
    let revision = settle(house, call, &name, "apply", &why, put).await?;
    if house.view.reload(&name).await
        && let Some((_, fault)) = house.view.refused().into_iter().find(|(pool, _)| *pool == name)
    {
        take_back(house, &name, before, revision).await?;
        write_down(house, call, &name, "apply", &why, "refused").await?;
        return Err(Problem::conflict("refused", fault.to_string()));
    }
    write_down(house, call, &name, "apply", &why, DONE).await?;
    let answer = Answer::tagged_bytes(to_json(&policy).into());
    let status = if current.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Answer { status, ..answer })
}

pub async fn remove<S, V>(house: &Arc<House<S, V>>, call: &Call) -> Result<Answer, Problem>
where
    S: Store + Desk,
    V: View,
{
    let why = call.why()?;
    let name = call.pool();
    let _one_at_a_time = house.applying.lock().await;
    let current = house.view.pool(&name);
    conditions(call, current.as_ref())?;
    let document = document(house, &name).await?;
    match (&document, &current) {
        (None, None) if !house.view.is_unnamed(&name) => {
            return Err(Problem::not_found("pool", name.as_str()));
        }
        (None, None | Some(Pool { origin: Origin::Missing(_), .. })) => {
            ask_removal(house, call, &name, &why).await?;
            house.view.let_go(&name).await;
            write_down(house, call, &name, "remove", &why, DONE).await?;
            return Ok(removed(call, &name, &why));
        }
        (None, _) => own(current.as_ref(), &name)?,
        // A refused document is removed as a managed one is.
        (Some(_), _) => {}
    }
    let found = found(document.as_ref());
    ask_removal(house, call, &name, &why).await?;
    let put = house.store.remove_document(&name, found).await;
    settle(house, call, &name, "remove", &why, put).await?;
    house.view.reload(&name).await;
    write_down(house, call, &name, "remove", &why, DONE).await?;
    Ok(removed(call, &name, &why))
}

/// Written down, where no second person is needed or one asked before.
async fn ask_removal<S: Desk, V: View>(
    house: &House<S, V>,
    call: &Call,
    name: &PoolName,
    why: &str,
) -> Result<(), Problem> {
    let asked = agreed(house, audited::line(call, name, "remove", why, "")).await?;
    audited::write_down(house, &asked).await.map_err(|error| Problem::store(&error))
}

fn removed(call: &Call, name: &PoolName, why: &str) -> Answer {
    let removed = Removed {
        api_version: API_VERSION,
        kind: "Removed",
        pool: name.to_string(),
        who: call.who().to_owned(),
        why: why.to_string(),
        at: When(call.now),
    };
    Answer::json(StatusCode::OK, &removed)
}

/// The one pool of the body, sound, and of the name in the path.
fn read(call: &Call) -> Result<Policy, Problem> {
    let (mut policies, faults) = Pools::default().read_bytes(&call.body, None);
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

/// A pool of a file is changed in its file, or the two would fight.
fn own(current: Option<&Pool>, name: &PoolName) -> Result<(), Problem> {
    match current.map(|pool| &pool.origin) {
        Some(Origin::File(file)) => {
            let say = format!("pool {name} is written in {}", file.display());
            Err(Problem::conflict("fileOwned", say).help("change the file; it is watched"))
        }
        Some(Origin::Missing(file)) => {
            let say = format!("pool {name} was written in {}, which is gone", file.display());
            Err(Problem::conflict("fileOwned", say)
                .help("put the file back, or remove the pool first"))
        }
        Some(Origin::Api) | None => Ok(()),
    }
}

/// If-Match and If-None-Match, against what GET answers.
fn conditions(call: &Call, current: Option<&Pool>) -> Result<(), Problem> {
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

/// What is remembered of a pool is remembered of its scale set.
fn stays(current: Option<&Pool>, policy: &Policy) -> Result<(), Problem> {
    match current {
        Some(pool) if pool.policy.scale_set != policy.scale_set => {
            let say = format!("pool {} has another scale set", policy.name);
            Err(Problem::conflict("otherScaleSet", say)
                .help("give the pool of another scale set another name"))
        }
        _ => Ok(()),
    }
}

/// No two pools share a name or a scale set, in upper case or lower.
fn alone<S, V: View>(house: &House<S, V>, policy: &Policy) -> Result<(), Problem> {
    for other in house.view.pools().iter().map(|pool| &pool.policy) {
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

async fn document<S: Desk, V>(
    house: &House<S, V>,
    name: &PoolName,
) -> Result<Option<Document>, Problem> {
    house.store.document(name).await.map_err(|error| Problem::store(&error))
}

fn found(document: Option<&Document>) -> Found {
    document.map_or(Found::Nothing, |document| Found::Revision(document.revision))
}

/// The document is refused where all pools are known: the store keeps what it had before.
async fn take_back<S: Desk, V: View>(
    house: &House<S, V>,
    name: &PoolName,
    before: Option<Document>,
    revision: u64,
) -> Result<(), Problem> {
    let found = Found::Revision(revision);
    let put = match before {
        Some(Document { text, who, at, .. }) => {
            house.store.put_document(name, &text, &who, at, found).await
        }
        None => house.store.remove_document(name, found).await,
    };
    put.map_err(|error| Problem::store(&error))?;
    house.view.reload(name).await;
    Ok(())
}

/// What came of the writing; where it was not what was asked for, the audit says so too.
async fn settle<S: Desk, V: View>(
    house: &House<S, V>,
    call: &Call,
    name: &PoolName,
    verb: &str,
    why: &str,
    put: Result<Put, StoreError>,
) -> Result<u64, Problem> {
    let (came, problem) = match put {
        Ok(Put::Done { revision }) => return Ok(revision),
        Ok(Put::Stale { .. }) => {
            let say = "the document was changed at the same time";
            ("stale", Problem::conflict("changedMeanwhile", say))
        }
        Err(error) => ("failed", Problem::store(&error)),
    };
    write_down(house, call, name, verb, why, came).await?;
    Err(problem)
}

async fn write_down<S: Desk, V: View>(
    house: &House<S, V>,
    call: &Call,
    name: &PoolName,
    verb: &str,
    why: &str,
    came: &str,
) -> Result<(), Problem> {
    let written = audited::write_down(house, &audited::line(call, name, verb, why, came)).await;
    written.map_err(|error| Problem::store(&error))
}
