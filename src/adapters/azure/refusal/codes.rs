//! Codes and texts of ARM, and what each means. Codes are compared without case: ARM writes some in two ways.

use crate::adapters::azure::wire::Faults;
use crate::model::journal::Refusal::{
    self, Conflict, Forbidden, Gone, Invalid, NoCapacity, Preempted, Quota, Throttled, Unclear,
};

/// What a code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Is(Refusal),
    /// The request was fine; a machine is not.
    BadMachine,
}

const CODES: &[(Refusal, &[&str])] = &[
    (
        Throttled,
        &[
            "TooManyRequests",
            "TooManyRequestsReceived",
            "SubscriptionRequestsThrottled",
            "ResourceRequestsThrottled",
            "ResourceCollectionRequestsThrottled",
        ],
    ),
    (
        NoCapacity,
        &[
            "SkuNotAvailable",
            "AllocationFailed",
            "ZonalAllocationFailed",
            "OverconstrainedAllocationRequest",
            "OverconstrainedZonalAllocationRequest",
        ],
    ),
    (
        Quota,
        &[
            "QuotaExceeded",
            "PublicIPCountLimitReached",
            "StaticPublicIPCountLimitReached",
            "IPv4BasicSkuPublicIpCountLimitReached",
            "SubnetIsFull",
        ],
    ),
    (
        Conflict,
        &[
            "PreconditionFailed",
            "ConditionNotMet",
            "AnotherOperationInProgress",
            "RetryableError",
            "RetryableErrorDueToAnotherOperation",
            "NicReservedForAnotherVm",
            "ResourceUpdateBlockedOnPlatformUpdate",
            "RollingUpgradeBatchStartTimeNotWithinScheduledWindows",
        ],
    ),
    (Preempted, &["OperationPreempted", "CanceledAndSupersededDueToAnotherOperation"]),
    (Gone, &["ResourceNotFound", "ResourceGroupNotFound", "NotFound", "ResourceGroupBeingDeleted"]),
    (
        Forbidden,
        &[
            "AuthenticationFailed",
            "InvalidAuthenticationToken",
            "ExpiredAuthenticationToken",
            "InvalidAuthenticationTokenTenant",
            "AuthorizationFailed",
            "LinkedAuthorizationFailed",
            "DenyAssignmentAuthorizationFailed",
            "RequestDisallowedByPolicy",
            "ScopeLocked",
            "SubscriptionNotFound",
            "ReadOnlyDisabledSubscription",
        ],
    ),
    (
        Invalid,
        &[
            "InvalidParameter",
            "InvalidRequestContent",
            "InvalidRequestFormat",
            "InvalidResourceReference",
            "InvalidResourceType",
            "MissingSubscriptionRegistration",
            "MissingApiVersionParameter",
            "NoRegisteredProviderFound",
            "PlatformImageNotFound",
            "GalleryImageNotFound",
            "ImageNotFound",
            "PropertyChangeNotAllowed",
            "NetworkInterfaceCountExceeded",
            "VMMarketplaceInvalidInput",
            "MarketplacePurchaseEligibilityFailed",
        ],
    ),
    (
        Unclear,
        &[
            // The model was written all the same; it is the cloud's own upgrade that did not go on.
            "MaxUnhealthyInstancePercentExceededBeforeRollingUpgrade",
            "MaxUnhealthyInstancePercentExceededInRollingUpgrade",
            "MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade",
            "DiskServiceInternalError",
            "DiskProcessingError",
            "DiskPreparationError",
            "NetworkingInternalOperationError",
            "InternalExecutionError",
            "InternalOperationError",
            "GatewayTimeout",
            "ServerTimeout",
            "ServiceUnavailable",
            "BadGateway",
            "InternalServerError",
        ],
    ),
];

/// A machine that did not come up, though the request was carried out: the next listing shows which.
const BAD_MACHINE: &[&str] = &[
    "OSProvisioningTimedOut",
    "OSProvisioningClientError",
    "OSProvisioningInternalError",
    "VMStartTimedOut",
    "VMExtensionProvisioningError",
    "VMExtensionProvisioningTimeout",
    "VMExtensionHandlerNonTransientError",
    "VMAgentStatusCommunicationError",
];

/// Codes that only say that something inside went wrong.
const WRAPPERS: &[&str] = &[
    "DeploymentFailed",
    "InvalidTemplateDeployment",
    "ResourceDeploymentFailure",
    "Conflict",
    "BadRequest",
    "OperationNotAllowed",
];

/// What texts tell, in the order in which they are asked: every fragment must be there. The code stands for it in reports
/// where ARM gave one that is shared.
const TEXTS: &[(&[&str], Meaning, Option<&str>)] = &[
    (
        &["reached its limit of", "Upgrade the VMs to the latest model"],
        Meaning::Is(Quota),
        Some("ModelLimitReached"),
    ),
    (&["exceeding approved", "quota"], Meaning::Is(Quota), Some("QuotaExceeded")),
    (&["Submit a request for Quota increase"], Meaning::Is(Quota), Some("QuotaExceeded")),
    (&["protected from scale set action"], Meaning::Is(Forbidden), Some("InstanceProtected")),
    (&["is not an active Virtual Machine Scale Set VM instanceId"], Meaning::Is(Gone), None),
    (&["marked for deletion"], Meaning::Is(Gone), None),
    (&["preempted by a more recent operation"], Meaning::Is(Preempted), None),
    (&["Max price change is not allowed"], Meaning::Is(Invalid), None),
    (
        &["Image type for a Virtual Machine Scale Set may not be changed"],
        Meaning::Is(Invalid),
        Some("ImageTypeChangeNotAllowed"),
    ),
    (
        &["Changing property", "is not allowed"],
        Meaning::Is(Invalid),
        Some("PropertyChangeNotAllowed"),
    ),
    (&["another operation is in progress"], Meaning::Is(Conflict), None),
    (&["An ongoing operation is changing power state"], Meaning::Is(Conflict), None),
    (&["rolling upgrade is in progress"], Meaning::Is(Conflict), None),
];

pub(super) fn by_code(code: &str) -> Option<Meaning> {
    let is = |known: &&&str| known.eq_ignore_ascii_case(code);
    if BAD_MACHINE.iter().any(|known| is(&known)) {
        return Some(Meaning::BadMachine);
    }
    let found = CODES.iter().find(|(_, codes)| codes.iter().any(|known| is(&known)));
    found.map(|(refusal, _)| Meaning::Is(*refusal))
}

pub(super) fn is_wrapper(code: &str) -> bool {
    WRAPPERS.iter().any(|known| known.eq_ignore_ascii_case(code))
}

/// The delete is refused because it was forced.
pub const NOT_BY_FORCE: &str =
    "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl";

/// What is told by a text, or by a code that lies beside a shared one.
pub(super) fn by_text(faults: &Faults) -> Option<(Meaning, Option<&'static str>)> {
    if faults.has_code("TooManyRequests") || faults.has_code("TooManyRequestsReceived") {
        return Some((Meaning::Is(Throttled), None));
    }
    if faults.has_code(NOT_BY_FORCE) {
        return Some((Meaning::Is(Invalid), Some(NOT_BY_FORCE)));
    }
    // The cloud's own upgrade stopped because there was no room: that is what counts.
    let upgrade = faults.deepest_first().filter_map(|fault| fault.code.as_deref());
    let stopped = upgrade.map(str::to_ascii_lowercase).any(|code| code.starts_with("maxunhealthy"));
    if stopped && faults.says("Allocation failed") {
        return Some((Meaning::Is(NoCapacity), Some("AllocationFailed")));
    }
    let whole = |fragments: &[&str]| fragments.iter().all(|fragment| faults.says(fragment));
    if let Some((_, meaning, code)) = TEXTS.iter().find(|(fragments, ..)| whole(fragments)) {
        return Some((*meaning, *code));
    }
    let mut stale = faults.deepest_first().filter(|fault| {
        let is = |text: &Option<String>, it: &str| {
            text.as_deref().is_some_and(|text| text.eq_ignore_ascii_case(it))
        };
        is(&fault.code, "InvalidParameter") && is(&fault.target, "instanceIds")
    });
    // Something about these ids, in words we do not know: whether they are gone, the next listing tells.
    stale.next().map(|_| (Meaning::Is(Conflict), None))
}
