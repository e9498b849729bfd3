//! Why a pool could not be read, for people: what is wrong, and the next step.

use super::access::ProxyAddress;
use crate::adapters::azure::ProbeError;
use crate::adapters::azure::auth::AuthError;
use crate::adapters::azure::cloud::AzureCloud;
use crate::model::ids::ScaleSetId;
use crate::model::journal::Refusal;
use crate::model::time::Time;
use crate::observe::ReadError;

/// Kind of trouble, for callers that need only the category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleCause {
    /// Authentication failed.
    NotBelieved,
    /// Our identity lacks a permission.
    NotPermitted,
    NotFound,
    /// No answer, or not now.
    Unreachable,
    /// The request is invalid.
    Invalid,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{say}")]
pub struct Trouble {
    pub cause: TroubleCause,
    pub say: String,
    pub next: String,
}

impl Trouble {
    fn new(cause: TroubleCause, say: impl Into<String>, next: impl Into<String>) -> Self {
        Self { cause, say: say.into(), next: next.into() }
    }

    /// `what` did not answer.
    pub(super) fn unreached(what: &str, why: ProbeError, proxy: Option<&ProxyAddress>) -> Self {
        let by = proxy.map(|proxy| format!(" by the proxy {proxy}")).unwrap_or_default();
        let say = format!("{what} cannot be reached{by}: {why}");
        Self::new(TroubleCause::Unreachable, say, next_on_the_road(why, proxy))
    }

    /// No token could be acquired.
    pub(super) fn no_token(failed: &AuthError) -> Self {
        let (cause, next) = if failed.is_final() {
            let next = match failed.tried.len() {
                1 => {
                    "give what is missing or wrong in the environment, or choose another way with --auth"
                }
                _ => {
                    "set up one of these ways; --auth chooses one and says more, `poolkeeper doctor` lists them"
                }
            };
            (TroubleCause::NotBelieved, next)
        } else {
            (
                TroubleCause::Unreachable,
                "try again; `poolkeeper doctor` shows what responds and what does not",
            )
        };
        Self::new(cause, failed.to_string(), next)
    }

    /// ARM answered, but not with the set.
    pub(super) fn unread(set: &ScaleSetId, failed: &ReadError, now: Time) -> Self {
        let code = failed.say.split(':').next().unwrap_or_default();
        let (cause, next) = match failed.refusal {
            Refusal::Gone => (TroubleCause::NotFound, not_found(code)),
            Refusal::Forbidden if code == "SubscriptionNotFound" => {
                let next = "check the subscription in the id, and that the identity's tenant is the subscription's";
                (TroubleCause::NotFound, next.to_owned())
            }
            Refusal::Forbidden if TOKENS.contains(&code) => {
                let next = "the token is not taken: check that --tenant is the subscription's, and --cloud and --audience";
                (TroubleCause::NotBelieved, next.to_owned())
            }
            Refusal::Forbidden => {
                let next = format!(
                    "run `poolkeeper doctor {set}`: it names each permission that is missing"
                );
                (TroubleCause::NotPermitted, next)
            }
            Refusal::Invalid => (TroubleCause::Invalid, "check the id of the scale set".to_owned()),
            Refusal::Throttled => {
                let wait = failed.retry_at.map_or(60, |at| at.since(now).millis() / 1_000 + 1);
                let next = format!("too many requests: try again in {} s", wait.max(1));
                (TroubleCause::Unreachable, next)
            }
            _ => (
                TroubleCause::Unreachable,
                "try again; if it persists, run `poolkeeper doctor`".to_owned(),
            ),
        };
        Self::new(cause, format!("{}: {}", name(set), failed.say), next)
    }
}

/// ARM's codes for rejected tokens.
const TOKENS: [&str; 4] = [
    "AuthenticationFailed",
    "InvalidAuthenticationToken",
    "InvalidAuthenticationTokenTenant",
    "ExpiredAuthenticationToken",
];

fn not_found(code: &str) -> String {
    let look = match code {
        "ResourceGroupNotFound" => "the resource group",
        _ => "the name of the scale set and its resource group",
    };
    format!("check {look} in the id; `az vmss list -o table` lists the ids there are")
}

/// `web (group rg)` instead of a long resource id.
pub(super) fn name(set: &ScaleSetId) -> String {
    let parts: Vec<&str> = set.as_str().split('/').collect();
    match parts[..] {
        ["", _, _, _, group, _, _, _, name, ..] => format!("scale set {name} (group {group})"),
        _ => format!("scale set {set}"),
    }
}

/// The cloud's endpoints by name, for messages.
pub(super) fn arm(cloud: &AzureCloud) -> String {
    format!("the resource manager {}", cloud.origin().as_str())
}

pub(super) fn authority(cloud: &AzureCloud) -> String {
    let origin = cloud.authority().origin().ascii_serialization();
    format!("{origin}, which gives out tokens,")
}

fn next_on_the_road(why: ProbeError, proxy: Option<&ProxyAddress>) -> String {
    match (why, proxy) {
        (ProbeError::UnknownAuthority, _) => {
            "give the certificate of that authority with --ca-file or SSL_CERT_FILE, if it is meant to be trusted".to_owned()
        }
        (ProbeError::OtherName, _) => "check the address; something else may stand between".to_owned(),
        (ProbeError::Expired, _) => "check this machine's clock, then the certificate".to_owned(),
        (ProbeError::Tls, _) => "check that the address speaks TLS, and that nothing stands between".to_owned(),
        (ProbeError::ProxyLogin, Some(proxy)) => format!("give the proxy's user in {}", proxy.variable),
        (_, Some(proxy)) => format!(
            "check the proxy in {}, or name the address in NO_PROXY if it needs none",
            proxy.variable
        ),
        (ProbeError::NoName, None) => "check the address, and that this machine can look up names".to_owned(),
        (_, None) => "check the address and the network; HTTPS_PROXY names a proxy, if one is needed".to_owned(),
    }
}
