//! ARM's error codes and texts, with their meanings. Codes are compared without case: ARM spells some in two ways.

use crate::adapters::azure::wire::ArmFaults;
use crate::model::journal::Refusal::{
    self, Conflict, Forbidden, Gone, Invalid, NoCapacity, Preempted, Quota, Throttled, Unclear,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeMeaning {
    Is(Refusal),
    /// The request succeeded, but a machine is bad.
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
            // The model was written; Azure's own upgrade stopped.
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

/// A machine did not come up, although the request was carried out. The next listing shows which one.
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

/// Codes that only say that a nested error occurred.
const WRAPPERS: &[&str] = &[
    "DeploymentFailed",
    "InvalidTemplateDeployment",
    "ResourceDeploymentFailure",
    "Conflict",
    "BadRequest",
    "OperationNotAllowed",
];

/// Meanings of message texts, in the order of checking. Every fragment must be present. The code replaces ARM's in
/// reports if ARM's is ambiguous.
const TEXTS: &[(&[&str], CodeMeaning, Option<&str>)] = &[
    (
        &["reached its limit of", "Upgrade the VMs to the latest model"],
        CodeMeaning::Is(Quota),
        Some("ModelLimitReached"),
    ),
    (&["exceeding approved", "quota"], CodeMeaning::Is(Quota), Some("QuotaExceeded")),
    (&["Submit a request for Quota increase"], CodeMeaning::Is(Quota), Some("QuotaExceeded")),
    (&["protected from scale set action"], CodeMeaning::Is(Forbidden), Some("InstanceProtected")),
    (&["is not an active Virtual Machine Scale Set VM instanceId"], CodeMeaning::Is(Gone), None),
    (&["marked for deletion"], CodeMeaning::Is(Gone), None),
    (&["preempted by a more recent operation"], CodeMeaning::Is(Preempted), None),
    (&["Max price change is not allowed"], CodeMeaning::Is(Invalid), None),
    (
        &["Image type for a Virtual Machine Scale Set may not be changed"],
        CodeMeaning::Is(Invalid),
        Some("ImageTypeChangeNotAllowed"),
    ),
    (
        &["Changing property", "is not allowed"],
        CodeMeaning::Is(Invalid),
        Some("PropertyChangeNotAllowed"),
    ),
    (&["another operation is in progress"], CodeMeaning::Is(Conflict), None),
    (&["An ongoing operation is changing power state"], CodeMeaning::Is(Conflict), None),
    (&["rolling upgrade is in progress"], CodeMeaning::Is(Conflict), None),
];

pub(super) fn by_code(code: &str) -> Option<CodeMeaning> {
    let is = |known: &&&str| known.eq_ignore_ascii_case(code);
    if BAD_MACHINE.iter().any(|known| is(&known)) {
        return Some(CodeMeaning::BadMachine);
    }
    let found = CODES.iter().find(|(_, codes)| codes.iter().any(|known| is(&known)));
    found.map(|(refusal, _)| CodeMeaning::Is(*refusal))
}

pub(super) fn is_wrapper(code: &str) -> bool {
    WRAPPERS.iter().any(|known| known.eq_ignore_ascii_case(code))
}

/// ARM refused the delete because it was forced.
pub const NOT_BY_FORCE: &str =
    "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl";

/// The meaning by text, or by a code next to an ambiguous one.
pub(super) fn by_text(faults: &ArmFaults) -> Option<(CodeMeaning, Option<&'static str>)> {
    if faults.has_code("TooManyRequests") || faults.has_code("TooManyRequestsReceived") {
        return Some((CodeMeaning::Is(Throttled), None));
    }
    if faults.has_code(NOT_BY_FORCE) {
        return Some((CodeMeaning::Is(Invalid), Some(NOT_BY_FORCE)));
    }
    // Azure's own upgrade stopped for lack of capacity, so that is the cause to report.
    let upgrade = faults.deepest_first().filter_map(|fault| fault.code.as_deref());
    let stopped = upgrade.map(str::to_ascii_lowercase).any(|code| code.starts_with("maxunhealthy"));
    if stopped && faults.says("Allocation failed") {
        return Some((CodeMeaning::Is(NoCapacity), Some("AllocationFailed")));
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
    // An unknown problem with these ids: the next listing shows whether they are gone.
    stale.next().map(|_| (CodeMeaning::Is(Conflict), None))
}
