//! The question whether the cluster lets us do something, without trying it.

use std::fmt;

use serde::Deserialize;
use serde_json::json;

use super::watch::parsed;
use super::wire::Unreadable;
use crate::net::server::plain;

pub(super) const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// A right in a cluster, as a rule of a role grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterRight {
    pub verb: &'static str,
    /// Empty for the core of the API.
    pub group: &'static str,
    /// With its part after a slash, if the right is on that alone.
    pub resource: &'static str,
    /// Where it is needed; empty for all namespaces.
    pub namespace: &'static str,
}

impl fmt::Display for ClusterRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        match self.group {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}

/// The cluster's answer: whether it would refuse a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessReview {
    pub allowed: bool,
    /// What went wrong while it looked for roles.
    pub fault: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
struct WireReview {
    status: WireReviewStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReviewStatus {
    allowed: bool,
    #[serde(default)]
    evaluation_error: Box<str>,
}

/// The body of the question. The cluster answers for us alone, and keeps nothing.
pub(super) fn request(right: &ClusterRight) -> String {
    let (resource, part) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    let mut review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": right.verb, "group": right.group, "resource": resource, "subresource": part,
        }},
    });
    if !right.namespace.is_empty() {
        review["spec"]["resourceAttributes"]["namespace"] = json!(right.namespace);
    }
    review.to_string()
}

pub(super) fn answer(body: &[u8]) -> Result<AccessReview, Unreadable> {
    let WireReview { status } = parsed(body)?;
    let fault = status.evaluation_error;
    let fault = (!fault.is_empty()).then(|| plain(&fault, &[]).into());
    Ok(AccessReview { allowed: status.allowed, fault })
}
