//! Why there is no token, in the daemon's own words: a response may repeat what it was sent.

use std::fmt;

use super::settings::Way;
use crate::model::time::Span;

/// No method that was tried returned a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct AuthError {
    pub tried: Vec<CredentialAttempt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialAttempt {
    pub way: Way,
    pub why: AuthFailureReason,
    /// Retry-After of the last response.
    pub wait: Option<Span>,
}

/// What failed with one method, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthFailureReason {
    /// This setting is missing.
    NotSet(&'static str),
    /// This setting is invalid or unusable.
    Unusable { what: &'static str, say: &'static str },
    /// The server refused: HTTP status, the AADSTS number if Entra gave one, and the code if it is a documented one.
    Refused { status: u16, number: Option<u32>, code: Option<Box<str>> },
    /// No valid response: nothing listens, the connection broke, or the response was not a token.
    Unanswered(&'static str),
    /// No response within this many seconds.
    Late(u32),
}

/// A successful response without a token.
pub(super) const NO_TOKEN: &str = "what was answered is no token";

impl AuthError {
    /// Whether a retry is useless until the settings change.
    pub fn is_final(&self) -> bool {
        let is_final = |tried: &CredentialAttempt| match &tried.why {
            AuthFailureReason::NotSet(_) | AuthFailureReason::Unusable { .. } => true,
            _ if tried.passes().is_some() => false,
            AuthFailureReason::Refused { status, number, .. } => {
                *status != 429 && *status < 500 && !number.is_some_and(|n| COMES_LATE.contains(&n))
            }
            AuthFailureReason::Unanswered(_) | AuthFailureReason::Late(_) => false,
        };
        self.tried.iter().all(is_final)
    }
}

impl CredentialAttempt {
    /// A refusal that ends without a change of settings. A machine's identity service answers 404 or 410 during an
    /// update, and 400 until the machine knows a new identity. It also answers 400 for an identity that has no
    /// assignment.
    fn passes(&self) -> Option<&'static str> {
        match (&self.why, self.way) {
            (AuthFailureReason::Refused { status: 404 | 410, .. }, Way::ManagedIdentity) => Some(
                "the identity service of this machine is being updated; that takes about a minute",
            ),
            (AuthFailureReason::Refused { status: 400, .. }, Way::ManagedIdentity) => Some(
                "this machine does not know the identity; check its assignment, a new one takes minutes",
            ),
            _ => None,
        }
    }
}

/// A new trust may take minutes to take effect, and an assertion outside its validity is created again.
const COMES_LATE: [u32; 4] = [70_021, 700_213, 7_002_138, 700_024];

/// Entra error numbers with a known remedy.
const KNOWN: &[(u32, &str)] = &[
    (7_000_215, "the client secret is wrong: give the secret's value, not its id"),
    (7_000_222, "the client secret has expired: make a new one and give it here"),
    (700_016, "the tenant knows no application with this client id: check client id and tenant"),
    (700_027, "the certificate is not registered for this application: upload it there"),
    (90_002, "there is no such tenant: check the tenant id and the cloud"),
    (900_023, "there is no such tenant: check the tenant id and the cloud"),
    (
        70_021,
        "no federated credential of the application matches this token; a new one takes minutes",
    ),
    (
        700_213,
        "no federated credential of the application matches this token's subject; a new one takes minutes",
    ),
    (
        7_002_138,
        "no federated credential of the application matches this token; a new one takes minutes",
    ),
    (700_024, "the assertion is outside of its time: check this machine's clock"),
    (50_034, "the tenant does not know this account"),
    (53_003, "a conditional access policy of the tenant forbids it"),
];

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.tried[..] {
            return write!(f, "no token by {only}");
        }
        f.write_str("no token by any way")?;
        for (n, tried) in self.tried.iter().enumerate() {
            write!(f, "{} {tried}", if n == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl fmt::Display for CredentialAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way.name(), self.why)?;
        self.passes().map_or(Ok(()), |say| write!(f, ": {say}"))
    }
}

impl fmt::Display for AuthFailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthFailureReason::NotSet(what) => write!(f, "{what} is not set"),
            AuthFailureReason::Unusable { what, say } => write!(f, "{what}: {say}"),
            AuthFailureReason::Refused { status, number, code } => {
                let known = number.and_then(|n| KNOWN.iter().find(|(known, _)| *known == n));
                match (known, number, code) {
                    (Some((number, say)), ..) => write!(f, "{say} (AADSTS{number})"),
                    (None, Some(number), _) => write!(f, "refused with {status} (AADSTS{number})"),
                    (None, None, Some(code)) => write!(f, "refused with {status} ({code})"),
                    (None, None, None) => write!(f, "refused with {status}"),
                }
            }
            AuthFailureReason::Unanswered(say) => f.write_str(say),
            AuthFailureReason::Late(seconds) => write!(f, "no answer within {seconds} s"),
        }
    }
}
