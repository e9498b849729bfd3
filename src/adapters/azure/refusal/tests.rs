//! Every code that was observed from ARM, and its meaning.

use super::*;
use crate::model::time::Time;

const AT: Time = Time::from_millis(1_000_000);

fn answer(status: u16, body: &str) -> RefusalDetail {
    of_answer(&ArmReply::made_up(status, &[("x-ms-request-id", "r-1")], body, AT))
}

fn error(code: &str, message: &str) -> String {
    serde_json::json!({"error": {"code": code, "message": message}}).to_string()
}

fn operation(code: &str, message: &str, target: Option<&str>) -> Option<RefusalDetail> {
    let fault = ArmFault {
        code: Some(code.into()),
        message: Some(message.into()),
        target: target.map(Into::into),
        ..ArmFault::default()
    };
    of_operation(Some(fault), |id| (id == "243").then(|| Zone::new("3")))
}

/// Refusals of a request: status, code, message, meaning.
#[rustfmt::skip]
const REQUESTS: &[(u16, &str, &str, Refusal)] = &[
    // Capacity
    (409, "SkuNotAvailable", "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_B1s' is currently not available in location 'eastus'.", Refusal::NoCapacity),
    (409, "AllocationFailed", "Allocation failed. If you are trying to add a new VM to a Virtual Machine Scale Set with a single placement group …", Refusal::NoCapacity),
    (409, "OverConstrainedAllocationRequest", "Allocation failed. VM(s) with the following constraints cannot be allocated …", Refusal::NoCapacity),
    // Quota
    (409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: l, Current Limit: 10, Current Usage: 8, Additional Required: 8, (Minimum) New Limit Required: 16. Submit a request for Quota increase at https://aka.ms/x", Refusal::Quota),
    (403, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved LowPriorityCores quota.", Refusal::Quota),
    (409, "QuotaExceeded", "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.", Refusal::Quota),
    (400, "PublicIPCountLimitReached", "Cannot create more than 300 public IP addresses for this subscription in this region.", Refusal::Quota),
    (400, "StaticPublicIPCountLimitReached", "…", Refusal::Quota),
    (400, "IPv4BasicSkuPublicIpCountLimitReached", "…", Refusal::Quota),
    (400, "SubnetIsFull", "Subnet a with address prefix p doesn't have enough capacity for 3 IP addresses.", Refusal::Quota),
    (400, "NetworkInterfaceCountExceeded", "The number of network interfaces is 4 and the maximum allowed is 2.", Refusal::Invalid),
    (400, "Whatever", "Virtual Machine Scale Set 'n' has reached its limit of 10 models that may be referenced by one or more VMs belonging to the Virtual Machine Scale Set. Upgrade the VMs to the latest model of the Virtual Machine Scale Set before trying again.", Refusal::Quota),
    // Conflict, pre-emption, state
    (409, "Conflict", "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog …", Refusal::Conflict),
    (412, "PreconditionFailed", "Etag provided in if-match header \"invalid\" does not match etag \"1\" of resource.", Refusal::Conflict),
    (409, "OperationNotAllowed", "Operation 'Update' is not allowed on VM 'v' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).", Refusal::Gone),
    (409, "OperationNotAllowed", "Operation 'X' is not allowed on Virtual Machine Scale Set 'n' since it is marked for deletion.", Refusal::Gone),
    (409, "OperationNotAllowed", "… since another operation is in progress.", Refusal::Conflict),
    (409, "OperationNotAllowed", "An ongoing operation is changing power state of Virtual Machine v to running. Please perform operation x after some time.", Refusal::Conflict),
    (409, "OperationNotAllowed", "InstanceIds may not contain instances that are protected from scale set actions. The following instance ids are protected from scale set action: 4, 5.", Refusal::Forbidden),
    (400, "InvalidParameter", "The protectionPolicy properties protectFromScaleIn and protectFromScaleSetActions conflict with each other.", Refusal::Invalid),
    (409, "OperationNotAllowed", "Max price change is not allowed. For more information, see http://aka.ms/AzureSpot/errormessages", Refusal::Invalid),
    (409, "OperationNotAllowed", "The Image type for a Virtual Machine Scale Set may not be changed.", Refusal::Invalid),
    (409, "PropertyChangeNotAllowed", "Changing property 'imageReference.offer' is not allowed.", Refusal::Invalid),
    (409, "OperationNotAllowed", "Changing property 'imageReference.offer' is not allowed.", Refusal::Invalid),
    (409, "OperationNotAllowed", "something new", Refusal::Conflict),
    (409, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.", Refusal::Conflict),
    (400, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.", Refusal::Conflict),
    (429, "RetryableError", "The call can be retried in 7 seconds.", Refusal::Conflict),
    (429, "RetryableErrorDueToAnotherOperation", "… is updating resource …", Refusal::Conflict),
    (429, "QuotaExceeded", "…", Refusal::Quota),
    (429, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved Total Regional Cores quota.", Refusal::Quota),
    (429, "OperationNotAllowed", "… since another operation is in progress.", Refusal::Conflict),
    (429, "AllocationFailed", "…", Refusal::NoCapacity),
    (429, "OperationPreempted", "…", Refusal::Preempted),
    (400, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after 180 seconds.", Refusal::Conflict),
    (409, "ResourceUpdateBlockedOnPlatformUpdate", "Resource cannot be updated at this time due to ongoing platform update.", Refusal::Conflict),
    (409, "OperationPreempted", "Operation execution has been preempted by a more recent operation.", Refusal::Preempted),
    (409, "CanceledAndSupersededDueToAnotherOperation", "…", Refusal::Preempted),
    // Gone and wrong input
    (404, "ResourceNotFound", "The Resource 'Microsoft.Compute/virtualMachineScaleSets/x' under resource group 'rg' was not found.", Refusal::Gone),
    (404, "ResourceGroupNotFound", "Resource group 'rg' could not be found.", Refusal::Gone),
    (404, "NotFound", "The entity was not found in this Azure location.", Refusal::Gone),
    (400, "InvalidParameter", "The provided instanceId 857 is not an active Virtual Machine Scale Set VM instanceId.", Refusal::Gone),
    (404, "SubscriptionNotFound", "The subscription 'x' could not be found.", Refusal::Forbidden),
    (409, "ResourceGroupBeingDeleted", "The resource group 'n' is in deprovisioning state and cannot perform this operation.", Refusal::Gone),
    (409, "ReadOnlyDisabledSubscription", "The subscription 'x' is disabled and therefore marked as read only.", Refusal::Forbidden),
    (404, "PlatformImageNotFound", "The platform image 'p:o:s:v' is not available.", Refusal::Invalid),
    (404, "GalleryImageNotFound", "The gallery image x is not available in y region.", Refusal::Invalid),
    (404, "ImageNotFound", "…", Refusal::Invalid),
    (409, "PropertyChangeNotAllowed", "Changing property 'zones' is not allowed.", Refusal::Invalid),
    (400, "InvalidParameter", "Virtual Machine Scale Set VM instanceId must be a number.", Refusal::Invalid),
    (400, "BadRequest", "…", Refusal::Invalid),
    (400, "InvalidRequestContent", "…", Refusal::Invalid),
    (400, "InvalidResourceReference", "…", Refusal::Invalid),
    (409, "MissingSubscriptionRegistration", "…", Refusal::Invalid),
    (400, "MissingApiVersionParameter", "…", Refusal::Invalid),
    (400, "NoRegisteredProviderFound", "…", Refusal::Invalid),
    (400, "InvalidResourceType", "…", Refusal::Invalid),
    (400, "VMMarketplaceInvalidInput", "…", Refusal::Invalid),
    (400, "MarketplacePurchaseEligibilityFailed", "…", Refusal::Invalid),
    // Identity, policy, locks, gateway
    (401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.", Refusal::Forbidden),
    (401, "InvalidAuthenticationToken", "The access token is invalid.", Refusal::Forbidden),
    (401, "ExpiredAuthenticationToken", "The access token expiry UTC time '…' is earlier than current UTC time '…'.", Refusal::Forbidden),
    (401, "InvalidAuthenticationTokenTenant", "The access token is from the wrong issuer '…'.", Refusal::Forbidden),
    (403, "AuthorizationFailed", "The client 'x' with object id 'x' does not have authorization to perform action 'y' over scope 'z' or the scope is invalid.", Refusal::Forbidden),
    (403, "LinkedAuthorizationFailed", "…", Refusal::Forbidden),
    (403, "RequestDisallowedByPolicy", "Resource 'n' was disallowed by policy.", Refusal::Forbidden),
    (409, "ScopeLocked", "The scope 'x' cannot perform delete operation because following scope(s) are locked: 'y'.", Refusal::Forbidden),
    (403, "DenyAssignmentAuthorizationFailed", "…", Refusal::Forbidden),
    (504, "GatewayTimeout", "The gateway did not receive a response from 'Microsoft.Compute' within the specified time period.", Refusal::Unclear),
    (500, "ServerTimeout", "…", Refusal::Unclear),
    (503, "ServiceUnavailable", "…", Refusal::Unclear),
    (502, "BadGateway", "…", Refusal::Unclear),
    (500, "InternalServerError", "…", Refusal::Unclear),
    (500, "InternalExecutionError", "An internal execution error occurred. Please retry later.", Refusal::Unclear),
    (500, "AllocationFailed", "said by a server that fell over: it may have happened", Refusal::Unclear),
    // Throttling
    (429, "OperationNotAllowed", "The server rejected the request because too many requests have been received for this subscription.", Refusal::Throttled),
    (429, "SubscriptionRequestsThrottled", "Number of requests for subscription 'x' and operation 'y' exceeded the backend storage limit. Please try again after '6' seconds.", Refusal::Throttled),
    (429, "ResourceRequestsThrottled", "… Please try after '11' seconds.", Refusal::Throttled),
    (429, "ResourceCollectionRequestsThrottled", "…", Refusal::Throttled),
    (429, "ResourceReadFailed", "Policy required full resource content to evaluate the request. The request to GET resource 'x' failed with status '429'.", Refusal::Throttled),
    (429, "Unheard", "of", Refusal::Throttled),
    // By status alone
    (400, "Unheard", "of", Refusal::Invalid),
    (403, "Unheard", "of", Refusal::Forbidden),
    (404, "Unheard", "of", Refusal::Gone),
    (409, "Unheard", "of", Refusal::Conflict),
    (408, "Unheard", "of", Refusal::Unclear),
    (302, "Unheard", "of", Refusal::Unclear),
    (599, "Unheard", "of", Refusal::Unclear),
];

#[test]
fn each_refusal_of_a_request_has_its_meaning() {
    for (status, code, message, expected) in REQUESTS {
        let told = answer(*status, &error(code, message));
        assert_eq!(told.refused.refusal, *expected, "{status} {code}: {message}");
        assert!(told.refused.code.is_some(), "{status} {code}");
        assert_eq!(told.request_id.as_deref(), Some("r-1"));
        // The case does not matter.
        let other = answer(*status, &error(&code.to_uppercase(), message));
        assert_eq!(other.refused.refusal, *expected, "{status} {code} in capitals");
        // A wrapper must not hide the meaning.
        let inner = serde_json::json!({"error": {"code": "DeploymentFailed", "message": "See inner errors.",
            "details": [{"code": code, "message": message}]}});
        assert_eq!(
            answer(*status, &inner.to_string()).refused.refusal,
            *expected,
            "{code} wrapped"
        );
    }
}

/// Errors of operations: code, message, meaning. `None`: a machine is bad, but the request succeeded.
#[rustfmt::skip]
const OPERATIONS: &[(&str, &str, Option<Refusal>)] = &[
    ("AllocationFailed", "The VM allocation failed due to an internal error.", Some(Refusal::NoCapacity)),
    ("ZonalAllocationFailed", "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.", Some(Refusal::NoCapacity)),
    ("OverconstrainedZonalAllocationRequest", "Allocation failed. … - Availability Zone", Some(Refusal::NoCapacity)),
    ("MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade", "Rolling Upgrade failed … The most impactful error is: Allocation failed. …", Some(Refusal::NoCapacity)),
    ("MaxUnhealthyInstancePercentExceededBeforeRollingUpgrade", "Rolling Upgrade failed due to exceeding the MaxUnhealthyInstancePercent value", Some(Refusal::Unclear)),
    ("MaxUnhealthyInstancePercentExceededInRollingUpgrade", "…First failed instance ID is: 0.", Some(Refusal::Unclear)),
    ("RollingUpgradeBatchStartTimeNotWithinScheduledWindows", "…", Some(Refusal::Conflict)),
    ("OperationNotAllowed", "Operation could not be completed as it results in exceeding approved X Family Cores quota.", Some(Refusal::Quota)),
    ("OperationPreempted", "The operation has been preempted by a more recent operation", Some(Refusal::Preempted)),
    ("CanceledAndSupersededDueToAnotherOperation", "…", Some(Refusal::Preempted)),
    ("AnotherOperationInProgress", "…", Some(Refusal::Conflict)),
    ("GalleryImageNotFound", "…", Some(Refusal::Invalid)),
    ("InternalOperationError", "3 goal seeking tasks failed.", Some(Refusal::Unclear)),
    ("InternalExecutionError", "…", Some(Refusal::Unclear)),
    ("DiskServiceInternalError", "…", Some(Refusal::Unclear)),
    ("DiskProcessingError", "…", Some(Refusal::Unclear)),
    ("DiskPreparationError", "…", Some(Refusal::Unclear)),
    ("NetworkingInternalOperationError", "Unknown network allocation error.", Some(Refusal::Unclear)),
    ("Unheard", "of", Some(Refusal::Unclear)),
    ("OSProvisioningTimedOut", "OS Provisioning for VM 'x' did not finish in the allotted time.", None),
    ("OSProvisioningClientError", "…", None),
    ("OSProvisioningInternalError", "…", None),
    ("VMStartTimedOut", "…", None),
    ("VMExtensionProvisioningError", "VM has reported a failure when processing extension 'x'.", None),
    ("VMExtensionProvisioningTimeout", "…", None),
    ("VMExtensionHandlerNonTransientError", "…", None),
    ("VMAgentStatusCommunicationError", "…", None),
];

#[test]
fn each_error_of_an_operation_has_its_meaning() {
    for (code, message, expected) in OPERATIONS {
        let told = operation(code, message, None);
        assert_eq!(told.map(|told| told.refused.refusal), *expected, "{code}: {message}");
    }
    assert_eq!(of_operation(None, |_| None).unwrap().refused.refusal, Refusal::Unclear);
}

#[test]
fn zones_come_from_the_text_or_from_the_machine_named() {
    let zone = |code, message, target| operation(code, message, target).unwrap().refused.zone;
    let named = zone("ZonalAllocationFailed", "no capacity for size X in zone 2.", Some("243"));
    assert_eq!(named, Some(Zone::new("2")));
    let shown = zone("ZonalAllocationFailed", "in this zone", Some("243"));
    assert_eq!(shown, Some(Zone::new("3")));
    assert_eq!(zone("ZonalAllocationFailed", "in this zone", Some("9")), None);
    assert_eq!(zone("AllocationFailed", "everywhere", Some("243")), None);
}

#[test]
fn force_that_is_not_allowed_is_named() {
    let body = r#"{"error":{"code":"OperationNotAllowed","message":"no","innererror":{"internalErrorCode":
        "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl"}}}"#;
    let told = answer(409, body);
    assert_eq!(told.refused.refusal, Refusal::Invalid);
    assert!(told.refused.code.unwrap().ends_with("WithMaintenanceControl"));
}

#[test]
fn throttling_is_seen_whatever_the_outer_code_says_and_always_has_an_end() {
    let bare = r#"{"code":"OperationNotAllowed","message":"The server rejected the request because too many requests have been received for this subscription.",
        "details":[{"code":"TooManyRequests","target":"HighCostGet","message":"{\"operationGroup\":\"HighCostGet\",\"allowedRequestCount\":300,\"measuredRequestCount\":1238}"}]}"#;
    let told = answer(429, bare);
    assert_eq!(told.refused.refusal, Refusal::Throttled);
    assert_eq!(told.refused.retry_at, Some(AT.plus(THROTTLED_FOR)));
    assert_eq!(told.target.as_deref(), Some("HighCostGet"));
    let inner = r#"{"error":{"code":"OperationNotAllowed","message":"m","innererror":{"internalErrorCode":"TooManyRequestsReceived"}}}"#;
    assert_eq!(answer(409, inner).refused.refusal, Refusal::Throttled);
    let header = ArmReply::made_up(429, &[("Retry-After", "17")], "", AT);
    assert_eq!(of_answer(&header).refused.retry_at, Some(AT.plus(Span::seconds(17))));
}

#[test]
fn waits_told_in_words_are_heard() {
    let wait = |status, code, message: &str| {
        answer(status, &error(code, message))
            .refused
            .retry_at
            .map(|at| at.since(AT).millis() / 1000)
    };
    assert_eq!(wait(429, "SubscriptionRequestsThrottled", "try again after '6' seconds."), Some(6));
    assert_eq!(wait(400, "NicReservedForAnotherVm", "reserved for 180 seconds."), Some(180));
    assert_eq!(wait(409, "Conflict", "a few seconds later"), None);
    assert_eq!(wait(409, "Conflict", "wait 99999999999999999999 seconds"), None);
}

#[test]
fn not_found_by_a_stranger_is_not_gone() {
    let of = |headers: &[(&str, &str)], body: &str| {
        of_answer(&ArmReply::made_up(404, headers, body, AT)).refused.refusal
    };
    assert_eq!(of(&[], "<html>404</html>"), Refusal::Unclear);
    assert_eq!(of(&[], ""), Refusal::Unclear);
    assert_eq!(of(&[("x-ms-request-id", "r")], ""), Refusal::Gone);
    assert_eq!(of(&[], &error("NotFound", "m")), Refusal::Gone);
}

#[test]
fn sayings_are_one_short_line() {
    let told = answer(403, &error("AuthorizationFailed", &format!("a\n b {}", "x".repeat(9_000))));
    let say = told.say();
    assert!(say.starts_with("AuthorizationFailed: a b xxx") && say.ends_with("(request r-1)"));
    assert!(say.chars().count() < LONGEST_SAYING + 60 && !say.contains('\n'), "{say}");
}

#[test]
fn azures_own_sentence_is_kept_short_and_without_signatures() {
    let kind = "The Image type for a Virtual Machine Scale Set may not be changed.";
    let told = answer(409, &error("OperationNotAllowed", kind));
    assert_eq!(told.refused.code.as_deref(), Some("ImageTypeChangeNotAllowed"));
    assert_eq!(told.refused.message.as_deref(), Some(kind));
    let long = answer(400, &error("InvalidParameter", &"ab ".repeat(400)));
    assert_eq!(long.refused.message.unwrap().chars().count(), LONGEST_MESSAGE + 1);
    let signed =
        "The blob https://a.blob.core.windows.net/v/d.vhd?sv=1&sig=SECRET cannot be\nread. Why?";
    let kept = answer(400, &error("InvalidParameter", signed)).refused.message.unwrap();
    assert_eq!(&*kept, "The blob https://a.blob.core.windows.net/v/d.vhd?… cannot be read. Why?");
    assert_eq!(answer(409, "{}").refused.message, None, "nothing was said");
    let failed = operation("SkuNotAvailable", "No room.", None).unwrap();
    assert_eq!(failed.refused.message.as_deref(), Some("No room."));
}

/// ARM may accept a batch without the machines that a refusal names. With a lock on the set or above it, it accepts
/// none.
#[test]
fn machines_that_alone_stand_in_the_way_are_named() {
    let named = |code: &str, message: &str| -> Vec<String> {
        let told = answer(409, &error(code, message));
        told.machines.iter().map(|id| id.as_str().to_owned()).collect()
    };
    let protected = "InstanceIds may not contain instances that are protected from scale set actions. \
                     The following instance ids are protected from scale set action: 4, 15.";
    assert_eq!(named("OperationNotAllowed", protected), ["4", "15"]);
    let group = "/subscriptions/s/resourceGroups/rg";
    let set = format!("{group}/providers/Microsoft.Compute/virtualMachineScaleSets/web");
    let locked = |scopes: &str| {
        let message = format!(
            "The scope '{set}' cannot perform delete operation because following scope(s) are locked: \
             {scopes}. Please remove the lock and try again."
        );
        named("ScopeLocked", &message)
    };
    let vm = format!("{group}/providers/Microsoft.Compute/virtualMachines/web_1a2b");
    assert_eq!(locked(&format!("'{vm}'")), ["web_1a2b"]);
    assert_eq!(locked(&format!("'{set}/virtualMachines/7'")), ["7"]);
    assert_eq!(locked(&format!("'{vm}','{set}/virtualMachines/7'")), ["web_1a2b", "7"]);
    for above in [group, &set, &format!("{vm}','{group}"), ""] {
        assert!(locked(&format!("'{above}'")).is_empty(), "{above}");
    }
    assert!(named("AuthorizationFailed", "no").is_empty());
}
