//! Answers and refusals, in the words ARM uses.

use super::spec::{Etag, InstanceId, OpId, SetId};
use super::throttle::ThrottlePolicy;

pub type WorldAnswer<T> = Result<T, WorldFailure>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldFailure {
    #[error(transparent)]
    Refused(#[from] WorldRefusal),
    /// Time-out or cut connection: the write may have taken effect or not.
    #[error("no answer")]
    Lost,
}

impl WorldFailure {
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Lost => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}: {message}")]
pub struct WorldRefusal {
    pub status: u16,
    pub code: String,
    pub message: String,
    pub target: Option<String>,
    /// Whole seconds.
    pub retry_after: Option<u32>,
    pub detail: Option<Box<ErrorDetail>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDetail {
    pub code: String,
    pub target: Option<String>,
    pub message: String,
}

/// The cloud accepted a write; `op` shows its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationHandle {
    pub op: OpId,
    /// The set's etag after the write.
    pub etag: Etag,
    /// Seconds to wait before the first poll.
    pub retry_after: Option<u32>,
}

impl WorldRefusal {
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        let (code, message) = (code.to_owned(), message.into());
        Self { status, code, message, target: None, retry_after: None, detail: None }
    }

    /// Names the part of the request that is refused.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    pub(super) fn no_set(set: SetId) -> Self {
        let name = set.0;
        Self::new(
            404,
            "ResourceNotFound",
            format!(
                "The Resource 'Microsoft.Compute/virtualMachineScaleSets/{name}' was not found. \
                 For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            ),
        )
    }

    pub(super) fn vm_not_found() -> Self {
        Self::new(404, "NotFound", "The entity was not found in this Azure location.")
    }

    pub(super) fn operation_not_found(op: OpId) -> Self {
        Self::new(404, "NotFound", format!("Operation '{op}' was not found."))
    }

    pub(super) fn stale_id(id: &InstanceId) -> Self {
        let text = format!(
            "The provided instanceId {id} is not an active Virtual Machine Scale Set VM instanceId."
        );
        Self::new(400, "InvalidParameter", text).target("instanceIds")
    }

    pub(super) fn no_ids() -> Self {
        let text = "Required parameter 'instanceIds' is missing (null or empty).";
        Self::new(400, "InvalidParameter", text).target("instanceIds")
    }

    pub(super) fn skip_token() -> Self {
        Self::new(400, "InvalidParameter", "The provided $skiptoken is not valid.")
            .target("$skiptoken")
    }

    pub(super) fn too_many(limit: u32) -> Self {
        let text = format!("The Virtual Machine Scale Set can have at most {limit} instances.");
        Self::new(400, "InvalidParameter", text).target("sku.capacity")
    }

    pub(super) fn etag(given: &str, is: &Etag) -> Self {
        let text = format!(
            "Etag provided in if-match header {given} does not match etag {is} of resource."
        );
        Self::new(412, "PreconditionFailed", text)
    }

    pub(super) fn conflict() -> Self {
        let text = "The request failed due to conflict with a concurrent request. To resolve it, \
                    please refer to https://aka.ms/activitylog to get more details on the \
                    conflicting requests.";
        Self::new(409, "Conflict", text)
    }

    pub(super) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new(409, "OperationNotAllowed", message)
    }

    pub(super) fn marked_for_deletion(name: &str) -> Self {
        Self::not_allowed(format!(
            "Operation is not allowed on Virtual Machine Scale Set '{name}' since it is marked for \
             deletion. You can only retry the Delete operation (or wait for an ongoing one to \
             complete)."
        ))
    }

    pub(super) fn vm_marked_for_deletion(id: &InstanceId) -> Self {
        Self::not_allowed(format!(
            "Operation is not allowed on VM '{id}' since the VM is marked for deletion. You can \
             only retry the Delete operation (or wait for an ongoing one to complete)."
        ))
    }

    pub(super) fn ephemeral() -> Self {
        Self::not_allowed(
            "Operation 'deallocate' is not supported for VMs or VM Scale Set instances using an \
             ephemeral OS disk.",
        )
    }

    pub(super) fn power_busy(id: &InstanceId, power: &str, change: &str) -> Self {
        Self::not_allowed(format!(
            "An ongoing operation is changing power state of Virtual Machine {id} to {power}. \
             Please perform operation {change} after some time."
        ))
    }

    pub(super) fn rolling(name: &str) -> Self {
        Self::not_allowed(format!(
            "Operation is not allowed on Virtual Machine Scale Set '{name}' since a rolling \
             upgrade is in progress."
        ))
    }

    pub(super) fn not_rolling() -> Self {
        Self::not_allowed("There is no ongoing Rolling Upgrade to cancel.")
    }

    pub(super) fn protected(ids: &[InstanceId]) -> Self {
        let ids: Vec<&str> = ids.iter().map(|id| &*id.0).collect();
        Self::not_allowed(format!(
            "InstanceIds may not contain instances that are protected from scale set actions. The \
             following instance ids are protected from scale set action: {}.",
            ids.join(", ")
        ))
    }

    pub(super) fn protected_floor(protected: u32) -> Self {
        Self::not_allowed(format!(
            "The capacity cannot be lowered: {protected} instances are protected from scale-in."
        ))
    }

    pub(super) fn protection_conflict() -> Self {
        let text = "The protectionPolicy properties protectFromScaleIn and \
                    protectFromScaleSetActions conflict with each other. protectFromScaleIn cannot \
                    be false when protectFromScaleSetActions is true.";
        Self::new(400, "InvalidParameter", text).target("protectionPolicy")
    }

    pub(super) fn force_refused() -> Self {
        let mut refusal = Self::not_allowed("Force deletion is not allowed on this resource.");
        refusal.detail = Some(Box::new(ErrorDetail {
            code: "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl".into(),
            target: None,
            message: refusal.message.clone(),
        }));
        refusal
    }

    pub(super) fn locked(name: &str) -> Self {
        let text = format!(
            "The scope '{name}' cannot perform write operation because following scope(s) are \
             locked: '{name}'. Please remove the lock and try again."
        );
        Self::new(409, "ScopeLocked", text)
    }

    pub(super) fn delete_locked(name: &str) -> Self {
        let text = format!(
            "The scope '{name}' cannot perform delete operation because following scope(s) are \
             locked: '{name}'. Please remove the lock and try again."
        );
        Self::new(409, "ScopeLocked", text)
    }

    pub(super) fn delete_forbidden(name: &str) -> Self {
        let text = format!(
            "The client does not have authorization to perform action \
             'Microsoft.Compute/virtualMachineScaleSets/delete/action' over scope '{name}' or the \
             scope is invalid. If access was recently granted, please refresh your credentials."
        );
        Self::new(403, "AuthorizationFailed", text)
    }

    pub(super) fn model_limit(name: &str, limit: usize) -> Self {
        let text = format!(
            "Virtual Machine Scale Set '{name}' has reached its limit of {limit} models that may \
             be referenced by one or more VMs belonging to the Virtual Machine Scale Set. Upgrade \
             the VMs to the latest model of the Virtual Machine Scale Set before trying again."
        );
        Self::new(400, "BadRequest", text)
    }

    pub(super) fn sku_not_available(size: &str, location: &str) -> Self {
        let text = format!(
            "The requested VM size for resource 'Following SKUs have failed for Capacity \
             Restrictions: {size}' is currently not available in location '{location}'. Please try \
             another size or deploy to a different location or different zone. See \
             https://aka.ms/azureskunotavailable"
        );
        Self::new(409, "SkuNotAvailable", text).target("sku.name")
    }

    /// Compute's own 429: quota and state errors share its top-level code.
    pub(super) fn throttled(policy: ThrottlePolicy, retry_after: u32) -> Self {
        let name = policy.name();
        if policy.is_front_door() {
            let text = format!(
                "Number of requests for subscription exceeded the backend storage limit. Please \
                 try again after '{retry_after}' seconds."
            );
            let mut refusal = Self::new(429, "SubscriptionRequestsThrottled", text);
            refusal.retry_after = Some(retry_after);
            return refusal;
        }
        let text = "The server rejected the request because too many requests have been received \
                    for this subscription.";
        let mut refusal = Self::new(429, "OperationNotAllowed", text);
        refusal.retry_after = Some(retry_after);
        refusal.detail = Some(Box::new(ErrorDetail {
            code: "TooManyRequests".into(),
            target: Some(name.into()),
            message: format!("{{\"operationGroup\":\"{name}\"}}"),
        }));
        refusal
    }

    pub(super) fn gateway_timeout() -> Self {
        let text = "The gateway did not receive a response from 'Microsoft.Compute' within the \
                    specified time period.";
        Self::new(504, "GatewayTimeout", text)
    }

    pub(super) fn server_error(n: u64) -> Self {
        match n % 3 {
            0 => Self::new(500, "InternalServerError", "Encountered internal server error."),
            1 => Self::new(502, "BadGateway", "Bad gateway."),
            _ => Self::new(503, "ServiceUnavailable", "The service is unavailable."),
        }
    }
}

/// Numbers of a quota refusal; clients parse this text.
pub(super) fn quota_text(quota: &str, location: &str, limit: u32, used: u32, more: u32) -> String {
    format!(
        "Operation could not be completed as it results in exceeding approved {quota} \
         quota. Additional details - Deployment Model: Resource Manager, Location: {location}, \
         Current Limit: {limit}, Current Usage: {used}, Additional Required: {more}, (Minimum) New \
         Limit Required: {}. Submit a request for Quota increase at \
         https://aka.ms/ProdportalCRP/.",
        used.saturating_add(more)
    )
}
