//! What an answer says about limits.

use super::operation::OperationClass;
use crate::model::time::Span;

/// What an answer said about limits, in the server's own words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseHints {
    /// The call was rate-limited. A 429 with another meaning must not set this.
    pub throttled: bool,
    /// Send no call of this kind sooner.
    pub retry_after: Option<Span>,
    /// The cost of the call, if reported.
    pub charge: Option<u32>,
    /// Limits by name, with the remaining calls of each.
    pub remaining: Vec<(Box<str>, u32)>,
    /// Limits that a refusal names as exceeded.
    pub met: Vec<Box<str>>,
}

impl ResponseHints {
    /// The front door's limit for this class is all but used up: then the front door refused the call.
    pub(super) fn empties_front_door(&self, class: OperationClass) -> bool {
        self.remaining.iter().any(|(name, left)| **name == *class.limit() && *left <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_door_refuses_where_its_own_count_is_used_up() {
        let hints = ResponseHints {
            remaining: vec![("subscription-reads".into(), 0)],
            ..ResponseHints::default()
        };
        assert!(
            hints.empties_front_door(OperationClass::Reads)
                && !hints.empties_front_door(OperationClass::Writes)
        );
    }
}
