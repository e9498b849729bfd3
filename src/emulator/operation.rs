//! Long-running operations on the wire: both header patterns, and the document a poll reads.

use serde_json::json;

use super::ask::Ask;
use super::cloud::Cloud;
use super::reply::{Done, Reply, Turned};
use super::text::{percent_encoded, rfc3339};
use crate::world::{Accepted, Etag, Guid, Ms, OpFailure, OpId, OpStatus, OpView, Refusal};

/// The address of a real operation is about 3.5 kB long; clients must bear it.
const STUFFING: usize = 2_600;

/// PUT and PATCH: a resource is answered, and the status is polled beside it.
pub(super) fn with_resource(
    cloud: &Cloud,
    ask: &Ask,
    reply: Reply,
    done: &Accepted,
    at: &str,
) -> Reply {
    let status = address(cloud, ask, done.op, at, false);
    let reply = reply
        .with("azure-asyncoperation", status)
        .with("azure-asyncnotification", "Enabled")
        .with("x-ms-request-id", done.op.to_string());
    paced(cloud, reply, done.retry_after)
}

/// DELETE and POST: nothing is answered yet.
pub(super) fn accepted(cloud: &Cloud, ask: &Ask, done: &Accepted, at: &str) -> Reply {
    let location = address(cloud, ask, done.op, at, true);
    with_resource(cloud, ask, Reply::empty(202), done, at).with("location", location)
}

fn paced(cloud: &Cloud, reply: Reply, world_seconds: Option<u32>) -> Reply {
    match world_seconds {
        Some(seconds) => reply.with("retry-after", cloud.pace.seconds(seconds).to_string()),
        None => reply,
    }
}

/// `at`: subscription and location, as in `…/locations/eastus2`.
fn address(cloud: &Cloud, ask: &Ask, op: OpId, at: &str, monitor: bool) -> String {
    let version = ask.get("api-version").unwrap_or("2024-07-01");
    let signature = cloud.sign(&op.to_string());
    let stuffing = signature.repeat(STUFFING / signature.len());
    let monitor = if monitor { "&monitor=true" } else { "" };
    format!(
        "{}{at}/operations/{op}?p={op}{monitor}&api-version={}&t=638600000000000000&c={stuffing}\
         &s={signature}&h=emulated",
        ask.base,
        percent_encoded(version)
    )
}

/// The stretch of an operation's address that names where.
pub(super) fn scope(subscription: &str, location: &str) -> String {
    format!("/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}")
}

/// What goes on beside the world's own operations; it cannot fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chore {
    started: Ms,
    ends: Ms,
}

impl Cloud {
    /// A new one, which is polled like any other.
    pub fn chore(&mut self, ends: Ms) -> Accepted {
        let op = self.guid();
        self.chores.insert(op, Chore { started: self.world.now(), ends });
        let retry_after = self.world.settings().poll_retry_after;
        Accepted { op, etag: Etag("\"0\"".into()), retry_after }
    }

    pub fn has_ended(&self, op: OpId) -> bool {
        self.chores.get(&op).is_none_or(|chore| chore.ends <= self.world.now())
    }

    fn operation(&mut self, op: OpId) -> Result<OpView, Turned> {
        let Some(chore) = self.chores.get(&op).copied() else {
            return Ok(self.world.operation(op)?);
        };
        self.world.neighbour(false)?;
        let ended = (chore.ends <= self.world.now()).then_some(chore.ends);
        let status = if ended.is_some() { OpStatus::Succeeded } else { OpStatus::InProgress };
        let wait = self.world.settings().poll_retry_after;
        let retry_after = wait.filter(|_| ended.is_none());
        Ok(OpView { op, started: chore.started, ended, status, retry_after })
    }
}

/// The delete of a resource group is polled by its location alone.
pub(super) fn group_goes(cloud: &Cloud, ask: &Ask, subscription: &str, op: OpId) -> Reply {
    let version = percent_encoded(ask.get("api-version").unwrap_or_default());
    let signature = cloud.sign(&op.to_string());
    let location = format!(
        "{}/subscriptions/{subscription}/operationresults/{op}?api-version={version}&s={signature}",
        ask.base
    );
    let reply = Reply::empty(202).with("location", location);
    paced(cloud, reply, cloud.world.settings().poll_retry_after)
}

/// `/subscriptions/{s}/operationresults/{op}`.
pub(super) fn group_gone(cloud: &mut Cloud, ask: &Ask, subscription: &str, op: &str) -> Done {
    let op = known(cloud, ask, op)?;
    cloud.world.neighbour(false)?;
    let goes = cloud.groups.values().any(|group| group.deleting == Some(op));
    Ok(if goes { group_goes(cloud, ask, subscription, op) } else { Reply::empty(200) })
}

/// A caller can ask about an operation only by the address that an answer gave.
fn known(cloud: &mut Cloud, ask: &Ask, op: &str) -> Result<OpId, Turned> {
    let known =
        op.parse::<Guid>().ok().filter(|op| ask.get("s") == Some(&*cloud.sign(&op.to_string())));
    known
        .ok_or_else(|| cloud.turn_away(404, "NotFound", format!("Operation '{op}' was not found.")))
}

/// A poll, of the status or of the location.
pub(super) fn poll(cloud: &mut Cloud, ask: &Ask, subscription: &str, op: &str) -> Done {
    cloud.subscription_of(subscription)?;
    let op = known(cloud, ask, op)?;
    let view = cloud.operation(op)?;
    if ask.is_true("monitor") {
        return located(cloud, ask, op, &view.status, view.retry_after);
    }
    let mut document = json!({ "startTime": rfc3339(view.started), "name": op.to_string() });
    if let Some(ended) = view.ended {
        document["endTime"] = json!(rfc3339(ended));
    }
    let (status, failure) = match &view.status {
        OpStatus::InProgress => ("InProgress", None),
        OpStatus::Succeeded => ("Succeeded", None),
        OpStatus::Failed(failure) => ("Failed", Some(failure)),
        OpStatus::Canceled(failure) => ("Canceled", Some(failure)),
    };
    document["status"] = json!(status);
    if let Some(failure) = failure {
        document["error"] = super::reply::error(&refusal(failure));
    }
    Ok(paced(cloud, Reply::ok(&document), view.retry_after))
}

fn located(cloud: &Cloud, ask: &Ask, op: OpId, status: &OpStatus, wait: Option<u32>) -> Done {
    match status {
        OpStatus::InProgress => {
            let query: Vec<String> = ask
                .query
                .iter()
                .map(|(name, value)| {
                    format!("{}={}", percent_encoded(name), percent_encoded(value))
                })
                .collect();
            let again = format!("{}{}?{}", ask.base, ask.path, query.join("&"));
            let reply = Reply::empty(202).with("location", again);
            Ok(paced(cloud, reply.with("x-ms-request-id", op.to_string()), wait))
        }
        OpStatus::Succeeded => Ok(Reply::empty(200)),
        OpStatus::Failed(failure) | OpStatus::Canceled(failure) => {
            Err(Turned::Refused(Box::new(refusal(failure))))
        }
    }
}

fn refusal(failure: &OpFailure) -> Refusal {
    let mut refusal = Refusal::new(409, failure.code, failure.message.clone());
    refusal.target = failure.target.as_ref().map(ToString::to_string);
    refusal
}
