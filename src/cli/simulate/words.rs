//! How a run ended, as sentences for people and as names for programs.

use crate::model::plan::RolloutPhase;
use crate::sim::{End, RunOutcome};

/// The name of an end. Public contract.
pub fn name(end: &End) -> &'static str {
    match end {
        End::Ended(_) => "ended",
        End::Waits { .. } => "waits",
        End::Broken => "broken",
        End::Over => "over",
        End::NotSettled { .. } => "notSettled",
    }
}

/// The key by which ends are counted.
pub fn kind(end: &End) -> String {
    match end {
        End::Ended(RolloutPhase::None) => "nothing to do".to_owned(),
        End::Ended(phase) => spoken(phase.name()),
        End::Waits { hold, remedy } => format!("waits for {} ({hold})", remedy.name()),
        End::Broken => "an invariant was violated".to_owned(),
        End::Over => "the time is over".to_owned(),
        End::NotSettled { .. } => "not settled".to_owned(),
    }
}

pub fn sentence(outcome: &RunOutcome) -> String {
    match &outcome.end {
        End::NotSettled { why } => format!("not settled: {why}"),
        End::Broken => {
            let laws: Vec<String> = outcome
                .breaches
                .iter()
                .map(|breach| {
                    format!("invariant {} in turn {}: {}", breach.law, breach.turn, breach.say)
                })
                .collect();
            format!("an invariant was violated, which is a bug in Poolkeeper; {}", laws.join("; "))
        }
        end => kind(end),
    }
}

/// `SucceededWithExceptions` as `succeeded with exceptions`.
pub fn spoken(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        assert_eq!(spoken("SucceededWithExceptions"), "succeeded with exceptions");
        assert_eq!(kind(&End::Ended(RolloutPhase::RolledBack)), "rolled back");
    }
}
