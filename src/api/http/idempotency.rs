//! Idempotency: a request that carries its own key runs once, however often it is sent. The same key with the same
//! request gets the same answer; the same key with another request is refused.

use std::sync::Arc;

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, StatusCode};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::request::{Call, Content, HttpAnswer, HttpResult, Query};
use super::request_id::Id;
use super::route::CommandHandler;
use super::state::ApiState;
use super::text::fingerprint;
use crate::memory::Claim;
use crate::model::time::Span;

pub const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: &str = "idempotency-replayed";
const LONGEST_KEY: usize = 255;
/// An unanswered claim younger than this is still in progress; an older one belongs to a crashed request.
// Twice the longest time for an answer.
const DOING: Span = Span::seconds(60);

#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    status: u16,
    body: String,
    tag: Option<String>,
}

/// Runs the handler, unless the request's key already has an answer.
pub async fn perform(state: &Arc<ApiState>, call: &Call, handler: &CommandHandler) -> HttpResult {
    let Some(key) = key(call)? else { return handler(state, call, &Id::fresh()?).await };
    let name = claim_key(call.who(), key);
    let why = call.query(Query::Why).unwrap_or_default();
    let mut parts: Vec<&[u8]> =
        vec![call.method.as_str().as_bytes(), call.path.as_bytes(), why.as_bytes(), &call.body];
    // The same change with another condition is another request.
    for header in [&IF_MATCH, &IF_NONE_MATCH] {
        let values = call.headers.get_all(header).iter();
        parts.extend(values.flat_map(|value| [header.as_str().as_bytes(), value.as_bytes()]));
    }
    let request = fingerprint(&parts);
    let (since, is_repeated) = match state.store.claim(&name, &request, call.now).await? {
        Claim::Yours => (call.now, false),
        Claim::Answered(kept) => return replay(&kept),
        Claim::Another => {
            let say = "this Idempotency-Key was used for another request";
            return Err(Problem::invalid("keyReused", say).help("make a new key for a new request"));
        }
        Claim::Asked { at } if call.now.since(at) < DOING => {
            let say = "the same request is being done";
            return Err(Problem::conflict("inProgress", say).later(1));
        }
        Claim::Asked { at } => (at, true),
    };
    let done = handler(state, call, &Id::claimed(&name, since, is_repeated)).await;
    match &done {
        Ok(answer) => {
            let kept = serde_json::to_string(&kept(answer)).unwrap_or_default();
            state.store.answer(&name, &kept).await?;
        }
        // After a store failure the write may have happened: the claim stays, and a repetition uses the same id.
        Err(problem) if problem.status.is_server_error() => {}
        Err(_) => state.store.unclaim(&name).await?,
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

fn kept(answer: &HttpAnswer) -> StoredAnswer {
    let body = match &answer.content {
        Content::Json(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Content::Text(_) | Content::Events(_) => String::new(),
    };
    StoredAnswer { status: answer.status.as_u16(), body, tag: answer.tag.clone() }
}

fn replay(kept: &str) -> HttpResult {
    let kept: StoredAnswer = serde_json::from_str(kept).map_err(|_| Problem::internal())?;
    let status = StatusCode::from_u16(kept.status).map_err(|_| Problem::internal())?;
    let content = Content::Json(kept.body.into());
    let answer = HttpAnswer { status, content, tag: kept.tag, headers: Vec::new() };
    Ok(answer.with(REPLAYED, "true"))
}
