//! Deallocation and instance protection, which no plan requests: the conformance tests call them.

use serde_json::json;

use super::super::Azure;
use super::super::http::HttpVerb;
use super::super::orchestration::members;
use super::super::path::SetPath;
use super::{Write, refused};
use crate::act::{CallContext, CallOutcome};
use crate::model::action::Target;
use crate::model::journal::Refusal;
use crate::model::machine::Protection;
use crate::pace::PacedOperation;

impl Azure {
    /// Deallocates machines. Their disks remain, so that `restore` can start them again.
    pub async fn deallocate(&self, order: &CallContext<'_>, targets: &[Target]) -> CallOutcome {
        self.power(order, PacedOperation::Deallocate, "deallocate", targets).await
    }

    /// Sets or lifts a machine's protection from the set's own actions. Sends no other field: any other field would
    /// give the machine a model of its own.
    pub async fn protect(
        &self,
        order: &CallContext<'_>,
        target: &Target,
        to: Protection,
    ) -> CallOutcome {
        let known = self.shelf.of(order.set);
        let (Ok(path), Some(known)) = (SetPath::parse(order.set), known) else {
            return refused(Refusal::Invalid, "UnknownSet");
        };
        // The path under the set also works for a Flexible set. The VM resource itself has no such field.
        let url = path.set(&self.arm.cloud, &["virtualMachines", target.id.as_str()]);
        if !members(known.orchestration).may_name(&target.id) {
            return refused(Refusal::Invalid, "InvalidInstanceId");
        }
        let policy = json!({
            "protectFromScaleIn": to != Protection::None,
            "protectFromScaleSetActions": matches!(to, Protection::All | Protection::Unknown),
        });
        let body = json!({"location": known.location, "properties": {"protectionPolicy": policy}});
        let operation = PacedOperation::UpdateMachine;
        let write = Write { operation, verb: HttpVerb::Put, url, etag: None, machines: 1 };
        self.write(order, write, &body).await
    }
}
