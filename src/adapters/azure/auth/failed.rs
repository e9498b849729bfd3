//! Why there is no token, in words of our own: an answer may repeat what it was sent.

use std::fmt;

use super::settings::Way;
use crate::model::time::Span;

/// No token, by any way that was tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct AuthFailed {
    pub tried: Vec<Tried>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub way: Way,
    pub why: Why,
    /// Retry-After of the last answer.
    pub wait: Option<Span>,
}

/// What was wrong with one way, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// This was not given.
    NotSet(&'static str),
    /// What was given cannot be used.
    Unusable { what: &'static str, say: &'static str },
    /// The other side refused: HTTP status, its number for it if it is one of Entra's, its code if it is a plain word.
    Refused { status: u16, number: Option<u32>, code: Option<Box<str>> },
    /// No answer: nobody is there, the line broke, or what came was no answer.
    Unanswered(&'static str),
    /// No answer within so many seconds.
    Late(u32),
}

/// A good answer that is none.
pub(super) const NO_TOKEN: &str = "what was answered is no token";

impl AuthFailed {
    /// Asking again without a change of settings will not help.
    pub fn is_final(&self) -> bool {
        let is_final = |tried: &Tried| match &tried.why {
            Why::NotSet(_) | Why::Unusable { .. } => true,
            _ if tried.passes().is_some() => false,
            Why::Refused { status, number, .. } => {
                *status != 429 && *status < 500 && !number.is_some_and(|n| COMES_LATE.contains(&n))
            }
            Why::Unanswered(_) | Why::Late(_) => false,
        };
        self.tried.iter().all(is_final)
    }
}

impl Tried {
    /// A refusal that ends without a change of settings. The identity service of a machine answers 404 or 410 during an
    /// update, and 400 until the machine knows a new identity. It answers 400 as well for an identity that has no assignment.
    fn passes(&self) -> Option<&'static str> {
        match (&self.why, self.way) {
            (Why::Refused { status: 404 | 410, .. }, Way::ManagedIdentity) => Some(
                "the identity service of this machine is being updated; that takes about a minute",
            ),
            (Why::Refused { status: 400, .. }, Way::ManagedIdentity) => Some(
                "this machine does not know the identity; check its assignment, a new one takes minutes",
            ),
            _ => None,
        }
    }
}

/// A trust that was just set up may be unknown for minutes; an assertion out of its time is written anew.
const COMES_LATE: [u32; 4] = [70_021, 700_213, 7_002_138, 700_024];

/// Entra's numbers that have a known next step.
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

impl fmt::Display for AuthFailed {
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

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way.name(), self.why)?;
        self.passes().map_or(Ok(()), |say| write!(f, ": {say}"))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotSet(what) => write!(f, "{what} is not set"),
            Why::Unusable { what, say } => write!(f, "{what}: {say}"),
            Why::Refused { status, number, code } => {
                let known = number.and_then(|n| KNOWN.iter().find(|(known, _)| *known == n));
                match (known, number, code) {
                    (Some((number, say)), ..) => write!(f, "{say} (AADSTS{number})"),
                    (None, Some(number), _) => write!(f, "refused with {status} (AADSTS{number})"),
                    (None, None, Some(code)) => write!(f, "refused with {status} ({code})"),
                    (None, None, None) => write!(f, "refused with {status}"),
                }
            }
            Why::Unanswered(say) => f.write_str(say),
            Why::Late(seconds) => write!(f, "no answer within {seconds} s"),
        }
    }
}
