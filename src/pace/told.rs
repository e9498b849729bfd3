//! What an answer says about limits.

use super::operation::Class;
use crate::model::time::Span;

/// What an answer told about limits, in the words of the other side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told<'a> {
    /// The call was refused for its rate. An answer of status 429 that says something else must not set this.
    pub throttled: bool,
    pub retry_after: Option<Span>,
    /// What the call cost, where it says so.
    pub charge: Option<u32>,
    /// Limits by name, with what is left of each.
    pub remaining: Vec<(&'a str, u32)>,
    /// Limits that a refusal names as those that were met.
    pub met: Vec<&'a str>,
}

impl Told<'_> {
    /// The limit of the front door for this kind of call is all but used up: then it was the front door that refused.
    pub(super) fn empties_front_door(&self, class: Class) -> bool {
        self.remaining.iter().any(|(name, left)| *name == class.limit() && *left <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_door_refuses_where_its_own_count_is_used_up() {
        let told = Told { remaining: vec![("subscription-reads", 0)], ..Told::default() };
        assert!(told.empties_front_door(Class::Reads) && !told.empties_front_door(Class::Writes));
    }
}
