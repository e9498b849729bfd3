//! Idempotency: a request that carries its own key runs once, however often it is sent. The same key with the same
//! request gets the same answer; the same key with another request is refused.

use std::sync::Arc;

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use super::problem::Problem;
use super::request::{Call, Content, HttpAnswer};
use super::request_id::Id;
use super::route::{ApiOperation, Route};
use super::text::fingerprint;
use super::{House, apply, broken, commands};
use crate::memory::{Claim, Desk, Store};
use crate::model::time::Span;

pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: &str = "idempotency-replayed";
const LONGEST_KEY: usize = 255;
/// An unanswered claim younger than this is still in progress; an older one belongs to a crashed request.
// Twice the longest time for an answer.
const DOING: Span = Span::seconds(60);

/// A stored answer.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    status: u16,
    body: String,
    tag: Option<String>,
}

pub async fn perform<S, V>(
    house: &Arc<House<S, V>>,
    route: &Route,
    call: &Call,
) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk + Send + Sync + 'static,
    V: Backend,
{
    let Some(key) = key(call)? else { return run(house, call, &Id::fresh()?).await };
    let name = claim_key(call.who(), key);
    let why = call.query(super::route::Query::Why).unwrap_or_default();
    let mut parts: Vec<&[u8]> =
        vec![route.method.as_str().as_bytes(), call.path.as_bytes(), why.as_bytes(), &call.body];
    // The same change with another condition is another request.
    for header in [&IF_MATCH, &IF_NONE_MATCH] {
        let values = call.headers.get_all(header).iter();
        parts.extend(values.flat_map(|value| [header.as_str().as_bytes(), value.as_bytes()]));
    }
    let request = fingerprint(&parts);
    let desk = &house.store;
    let claim = desk.claim(&name, &request, call.now).await;
    let since = match claim.map_err(|error| Problem::store(&error))? {
        Claim::Yours => call.now,
        Claim::Answered(kept) => return replay(&kept),
        Claim::Another => {
            let say = "this Idempotency-Key was used for another request";
            return Err(Problem::invalid("keyReused", say).help("make a new key for a new request"));
        }
        Claim::Asked { at } if call.now.since(at) < DOING => {
            let say = "the same request is being done";
            return Err(Problem::conflict("inProgress", say).later(1));
        }
        Claim::Asked { at } => at,
    };
    let done = run(house, call, &Id::claimed(&name, since)).await;
    match &done {
        Ok(answer) => {
            let kept = serde_json::to_string(&kept(answer)).unwrap_or_default();
            let answered = desk.answer(&name, &kept).await;
            answered.map_err(|error| Problem::store(&error))?;
        }
        // After a store failure the write may have happened: the claim stays, and a repetition uses the same id.
        Err(problem) if problem.status.is_server_error() => {}
        Err(_) => desk.unclaim(&name).await.map_err(|error| Problem::store(&error))?,
    }
    done
}

/// The caller, a slash and the caller's key, as hashes: the store limits the keys of each caller.
fn claim_key(who: &str, key: &str) -> String {
    format!("{}/{}", fingerprint(&[who.as_bytes()]), fingerprint(&[key.as_bytes()]))
}

fn key(call: &Call) -> Result<Option<&str>, Problem> {
    let mut given = call.headers.get_all(&KEY).iter();
    let (Some(first), second) = (given.next(), given.next()) else { return Ok(None) };
    let key = first.to_str().ok().map(str::trim).filter(|_| second.is_none());
    let fits = |key: &&str| {
        (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|sign| sign.is_ascii_graphic())
    };
    key.filter(fits).map(Some).ok_or_else(|| {
        let say = format!("an Idempotency-Key is one word of 1 to {LONGEST_KEY} visible signs");
        Problem::bad("badKey", say)
    })
}

async fn run<S, V>(house: &Arc<House<S, V>>, call: &Call, id: &Id) -> Result<HttpAnswer, Problem>
where
    S: Store + Desk + Send + Sync + 'static,
    V: Backend,
{
    match call.op {
        ApiOperation::Verb(name) => commands::verb(house, call, id, name).await,
        ApiOperation::Mark(verb) => commands::mark(house, call, id, verb).await,
        ApiOperation::Abandon => commands::write_off(house, call, id).await,
        ApiOperation::Apply => apply::apply(house, call).await,
        ApiOperation::Unmanage => apply::remove(house, call).await,
        _ => Err(broken()),
    }
}

fn kept(answer: &HttpAnswer) -> StoredAnswer {
    let body = match &answer.content {
        Content::Json(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Content::Text(_) | Content::Events(_) => String::new(),
    };
    StoredAnswer { status: answer.status.as_u16(), body, tag: answer.tag.clone() }
}

fn replay(kept: &str) -> Result<HttpAnswer, Problem> {
    let kept: StoredAnswer = serde_json::from_str(kept).map_err(|_| broken())?;
    let status = StatusCode::from_u16(kept.status).map_err(|_| broken())?;
    let content = Content::Json(kept.body.into());
    let answer = HttpAnswer { status, content, tag: kept.tag, headers: Vec::new() };
    Ok(answer.with(REPLAYED, "true"))
}
