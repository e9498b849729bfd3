//! A person's stop of all pools.

use std::fmt;

use super::time::Time;

/// Until a person lifts it, nothing is begun in any pool, of today or later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalStop {
    pub since: Time,
    pub by: Box<str>,
    pub why: Box<str>,
    /// Failed machines are still replaced.
    pub except_repair: bool,
}

impl GlobalStop {
    /// Asks for what is so already: who asks and when does not matter.
    pub fn is_same(&self, other: &GlobalStop) -> bool {
        (&self.why, self.except_repair) == (&other.why, other.except_repair)
    }
}

/// The sentence that every view begins with.
impl fmt::Display for GlobalStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let except = if self.except_repair { " except repair" } else { "" };
        let GlobalStop { since, by, why, .. } = self;
        write!(f, "all pools are stopped{except} since {since} by {by}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_since_when_by_whom_and_why() {
        let stop = GlobalStop {
            since: Time::from_millis(1_772_366_400_000),
            by: "kim".into(),
            why: "quota incident".into(),
            except_repair: false,
        };
        let said = "all pools are stopped since 2026-03-01T12:00:00Z by kim: quota incident";
        assert_eq!(stop.to_string(), said);
        let repairs = GlobalStop { except_repair: true, ..stop.clone() };
        assert!(repairs.to_string().starts_with("all pools are stopped except repair since "));
        let later = GlobalStop { since: Time::default(), by: "ann".into(), ..stop.clone() };
        assert!(later.is_same(&stop) && !repairs.is_same(&stop));
        assert!(!GlobalStop { why: "cost".into(), ..stop.clone() }.is_same(&stop));
    }
}
