//! Long-running operations on the wire: both header patterns, and the document that a poll reads.

use serde_json::json;

use super::cloud::EmulatedCloud;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::text::{percent_encoded, rfc3339};
use crate::world::{
    Etag, Guid, Millis, OpFailure, OpId, OpStatus, OpView, OperationHandle, WorldRefusal,
};

/// The address of a real operation is about 3.5 kB long; clients must handle that.
const STUFFING: usize = 2_600;

/// PUT and PATCH: the answer holds a resource; a separate address shows the status.
pub(super) fn with_resource(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    reply: EmulatorReply,
    done: &OperationHandle,
    at: &str,
) -> EmulatorReply {
    let status = address(cloud, ask, done.op, at, false);
    let reply = reply
        .with("azure-asyncoperation", status)
        .with("azure-asyncnotification", "Enabled")
        .with("x-ms-request-id", done.op.to_string());
    paced(cloud, reply, done.retry_after)
}

/// DELETE and POST: the answer has no body yet.
pub(super) fn accepted(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    done: &OperationHandle,
    at: &str,
) -> EmulatorReply {
    let location = address(cloud, ask, done.op, at, true);
    with_resource(cloud, ask, EmulatorReply::empty(202), done, at).with("location", location)
}

fn paced(cloud: &EmulatedCloud, reply: EmulatorReply, world_seconds: Option<u32>) -> EmulatorReply {
    match world_seconds {
        Some(seconds) => reply.with("retry-after", cloud.pace.seconds(seconds).to_string()),
        None => reply,
    }
}

/// `at`: subscription and location, as in `…/locations/eastus2`.
fn address(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    op: OpId,
    at: &str,
    monitor: bool,
) -> String {
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

/// The scope segment of an operation's address.
pub(super) fn scope(subscription: &str, location: &str) -> String {
    format!("/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}")
}

/// An operation outside the world; it cannot fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationKind {
    started: Millis,
    ends: Millis,
}

impl EmulatedCloud {
    /// Starts one, which clients poll like any other.
    pub fn chore(&mut self, ends: Millis) -> OperationHandle {
        let op = self.guid();
        self.chores.insert(op, OperationKind { started: self.world.now(), ends });
        let retry_after = self.world.settings().poll_retry_after;
        OperationHandle { op, etag: Etag("\"0\"".into()), retry_after }
    }

    pub fn has_ended(&self, op: OpId) -> bool {
        self.chores.get(&op).is_none_or(|chore| chore.ends <= self.world.now())
    }

    fn operation(&mut self, op: OpId) -> Result<OpView, Rejection> {
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

/// The delete of a resource group, which clients poll only by its Location header.
pub(super) fn group_goes(cloud: &EmulatedCloud, ask: &EmulatorRequest, op: OpId) -> EmulatorReply {
    let version = percent_encoded(ask.get("api-version").unwrap_or_default());
    let signature = cloud.sign(&op.to_string());
    let location = format!(
        "{}/subscriptions/{}/operationresults/{op}?api-version={version}&s={signature}",
        ask.base,
        ask.subscription()
    );
    let reply = EmulatorReply::empty(202).with("location", location);
    paced(cloud, reply, cloud.world.settings().poll_retry_after)
}

/// `/subscriptions/{s}/operationresults/{op}`.
pub(super) fn group_gone(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    op: &str,
) -> HandledRequest {
    let op = known(cloud, ask, op)?;
    cloud.world.neighbour(false)?;
    let goes = cloud.groups.values().any(|group| group.deleting == Some(op));
    Ok(if goes { group_goes(cloud, ask, op) } else { EmulatorReply::empty(200) })
}

/// A caller can poll an operation only at the address from an answer.
fn known(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, op: &str) -> Result<OpId, Rejection> {
    let known =
        op.parse::<Guid>().ok().filter(|op| ask.get("s") == Some(&*cloud.sign(&op.to_string())));
    known
        .ok_or_else(|| cloud.turn_away(404, "NotFound", format!("Operation '{op}' was not found.")))
}

/// Answers a poll of the status or of the location.
pub(super) fn poll(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, op: &str) -> HandledRequest {
    cloud.subscription_of(ask.subscription())?;
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
    Ok(paced(cloud, EmulatorReply::ok(&document), view.retry_after))
}

fn located(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    op: OpId,
    status: &OpStatus,
    wait: Option<u32>,
) -> HandledRequest {
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
            let reply = EmulatorReply::empty(202).with("location", again);
            Ok(paced(cloud, reply.with("x-ms-request-id", op.to_string()), wait))
        }
        OpStatus::Succeeded => Ok(EmulatorReply::empty(200)),
        OpStatus::Failed(failure) | OpStatus::Canceled(failure) => {
            Err(Rejection::Refused(Box::new(refusal(failure))))
        }
    }
}

fn refusal(failure: &OpFailure) -> WorldRefusal {
    let mut refusal = WorldRefusal::new(409, failure.code, failure.message.clone());
    refusal.target = failure.target.as_ref().map(ToString::to_string);
    refusal
}
