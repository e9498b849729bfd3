//! Sends a write, once.

use serde_json::Value;
use url::Url;

use super::super::Azure;
use super::super::http::{ArmRequest, HttpVerb};
use super::super::operation;
use super::super::refusal::{self, RefusalDetail};
use super::outcome::no_response;
use crate::act::{CallContext, CallOutcome};
use crate::model::ids::{Etag, ScaleSetId};
use crate::model::time::Time;
use crate::pace::{CallCost, PacedOperation};

/// The parts that differ between writes.
pub(in super::super) struct Write<'a> {
    pub operation: PacedOperation,
    pub verb: HttpVerb,
    pub url: Url,
    pub etag: Option<&'a Etag>,
    /// Number of machines that the write names.
    pub machines: u32,
}

impl Azure {
    pub(in super::super) async fn write(
        &self,
        order: &CallContext<'_>,
        write: Write<'_>,
        body: &Value,
    ) -> CallOutcome {
        self.write_text(order, write, body.to_string()).await
    }

    pub(in super::super) async fn write_text(
        &self,
        order: &CallContext<'_>,
        write: Write<'_>,
        body: String,
    ) -> CallOutcome {
        let operation = write.operation.name();
        let told = match self.send_write((order.set, order.before), write, body).await {
            Ok(outcome) => return outcome,
            Err(told) => told,
        };
        let (pool, entry) = (order.pool, order.entry);
        tracing::warn!(%pool, %entry, operation, why = %told.say(), "ARM refused");
        match told.machines.is_empty() {
            true => CallOutcome::Refused(told.refused),
            false => CallOutcome::RefusedFor(told.refused, told.machines),
        }
    }

    /// Every change to Azure is sent from here. `Err`: ARM refused it.
    pub(in super::super) async fn send_write(
        &self,
        (set, before): (&ScaleSetId, Time),
        write: Write<'_>,
        body: String,
    ) -> Result<CallOutcome, RefusalDetail> {
        let Write { operation, verb, url, etag, machines } = write;
        let call = CallCost { set, operation, machines, before: Some(before) };
        let body = Some(body.into_bytes());
        let ask = ArmRequest { call, verb, url, body, if_match: etag.map(Etag::as_str) };
        match self.arm.send(&ask).await {
            Ok(reply) if reply.is_success() => {
                Ok(operation::accepted(&reply, |url| self.arm.cloud.owns(url)))
            }
            Ok(reply) => Err(refusal::of_answer(&reply)),
            Err(why) => Ok(no_response(&why)),
        }
    }
}
