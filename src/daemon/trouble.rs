//! Why a pool could not be looked at, told to people: what is wrong, and the next step.

use super::access::Proxied;
use crate::adapters::azure::Unreached;
use crate::adapters::azure::auth::AuthFailed;
use crate::adapters::azure::cloud::Cloud;
use crate::model::ids::ScaleSetId;
use crate::model::journal::Refusal;
use crate::model::time::Time;
use crate::observe::ReadFailed;

/// What kind of trouble, for those who only want to know how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Nobody believes who we are.
    NotBelieved,
    /// Who we are is not allowed that.
    NotPermitted,
    NotFound,
    /// Nobody answers, or not now.
    Unreachable,
    /// What was asked for makes no sense.
    Invalid,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{say}")]
pub struct Trouble {
    pub cause: Cause,
    pub say: String,
    pub next: String,
}

impl Trouble {
    fn new(cause: Cause, say: impl Into<String>, next: impl Into<String>) -> Self {
        Self { cause, say: say.into(), next: next.into() }
    }

    /// `what` did not answer.
    pub(super) fn unreached(what: &str, why: Unreached, proxy: Option<&Proxied>) -> Self {
        let by = proxy.map(|proxy| format!(" by the proxy {proxy}")).unwrap_or_default();
        let say = format!("{what} cannot be reached{by}: {why}");
        Self::new(Cause::Unreachable, say, next_on_the_road(why, proxy))
    }

    /// No token.
    pub(super) fn no_token(failed: &AuthFailed) -> Self {
        let (cause, next) = if failed.is_final() {
            let next = match failed.tried.len() {
                1 => {
                    "give what is missing or wrong in the environment, or choose another way with --auth"
                }
                _ => {
                    "set up one of these ways; --auth chooses one and says more, `poolkeeper doctor` lists them"
                }
            };
            (Cause::NotBelieved, next)
        } else {
            (
                Cause::Unreachable,
                "try again; `poolkeeper doctor` shows what answers and what does not",
            )
        };
        Self::new(cause, failed.to_string(), next)
    }

    /// ARM answered, and it was no picture of the set.
    pub(super) fn unread(set: &ScaleSetId, failed: &ReadFailed, now: Time) -> Self {
        let code = failed.say.split(':').next().unwrap_or_default();
        let (cause, next) = match failed.refusal {
            Refusal::Gone => (Cause::NotFound, not_found(code)),
            Refusal::Forbidden if code == "SubscriptionNotFound" => {
                let next = "check the subscription in the id, and that the identity's tenant is the subscription's";
                (Cause::NotFound, next.to_owned())
            }
            Refusal::Forbidden if TOKENS.contains(&code) => {
                let next = "the token is not taken: check that --tenant is the subscription's, and --cloud and --audience";
                (Cause::NotBelieved, next.to_owned())
            }
            Refusal::Forbidden => {
                let next = format!(
                    "run `poolkeeper doctor {set}`: it names each permission that is missing"
                );
                (Cause::NotPermitted, next)
            }
            Refusal::Invalid => (Cause::Invalid, "check the id of the scale set".to_owned()),
            Refusal::Throttled => {
                let wait = failed.retry_at.map_or(60, |at| at.since(now).millis() / 1_000 + 1);
                let next = format!("it is asked too often: try again in {} s", wait.max(1));
                (Cause::Unreachable, next)
            }
            _ => (
                Cause::Unreachable,
                "try again; if it stays so, run `poolkeeper doctor`".to_owned(),
            ),
        };
        Self::new(cause, format!("{}: {}", name(set), failed.say), next)
    }
}

/// Codes of ARM for tokens that it does not take.
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

/// `web (group rg)` instead of an id that is a line long.
pub(super) fn name(set: &ScaleSetId) -> String {
    let parts: Vec<&str> = set.as_str().split('/').collect();
    match parts[..] {
        ["", _, _, _, group, _, _, _, name, ..] => format!("scale set {name} (group {group})"),
        _ => format!("scale set {set}"),
    }
}

/// Which cloud's parts there are to reach, for messages.
pub(super) fn arm(cloud: &Cloud) -> String {
    format!("the resource manager {}", cloud.origin().as_str())
}

pub(super) fn authority(cloud: &Cloud) -> String {
    let origin = cloud.authority().origin().ascii_serialization();
    format!("{origin}, which gives out tokens,")
}

fn next_on_the_road(why: Unreached, proxy: Option<&Proxied>) -> String {
    match (why, proxy) {
        (Unreached::UnknownAuthority, _) => {
            "give the certificate of that authority with --ca-file or SSL_CERT_FILE, if it is meant to be trusted".to_owned()
        }
        (Unreached::OtherName, _) => "check the address; something else may stand between".to_owned(),
        (Unreached::Expired, _) => "check this machine's clock, then the certificate".to_owned(),
        (Unreached::Tls, _) => "check that the address speaks TLS, and that nothing stands between".to_owned(),
        (Unreached::ProxyLogin, Some(proxy)) => format!("give the proxy's user in {}", proxy.variable),
        (_, Some(proxy)) => format!(
            "check the proxy in {}, or name the address in NO_PROXY if it needs none",
            proxy.variable
        ),
        (Unreached::NoName, None) => "check the address, and that this machine can look up names".to_owned(),
        (_, None) => "check the address and the network; HTTPS_PROXY names a proxy, if one is needed".to_owned(),
    }
}
