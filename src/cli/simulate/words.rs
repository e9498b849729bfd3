//! How a rehearsal ended, in words for people and in names for programs.

use crate::model::plan::RolloutPhase;
use crate::sim::{Call, End, Outcome};

/// The name of an end; public contract.
pub fn name(end: &End) -> &'static str {
    match end {
        End::Ended(_) => "ended",
        End::Waits { .. } => "waits",
        End::Broken => "broken",
        End::NotSettled { .. } => "notSettled",
    }
}

/// What ends are counted by.
pub fn kind(end: &End) -> String {
    match end {
        End::Ended(RolloutPhase::None) => "nothing to do".to_owned(),
        End::Ended(phase) => spoken(phase.name()),
        End::Waits { hold, verb } => format!("waits for {verb} ({hold})"),
        End::Broken => "a law was broken".to_owned(),
        End::NotSettled { .. } => "not settled".to_owned(),
    }
}

pub fn sentence(outcome: &Outcome) -> String {
    match &outcome.end {
        End::NotSettled { why } => format!("not settled: {why}"),
        End::Broken => {
            let laws: Vec<String> = outcome
                .breaches
                .iter()
                .map(|breach| format!("law {} in turn {}: {}", breach.law, breach.turn, breach.say))
                .collect();
            format!("a law was broken, which is a fault of poolkeeper; {}", laws.join("; "))
        }
        end => kind(end),
    }
}

/// `SucceededWithExceptions` as `succeeded with exceptions`.
fn spoken(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

/// `getSet`, as programs read it.
pub fn call(call: Call) -> String {
    let name = format!("{call:?}");
    let mut letters = name.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        assert_eq!(spoken("SucceededWithExceptions"), "succeeded with exceptions");
        assert_eq!(call(Call::GetSet), "getSet");
        assert_eq!(kind(&End::Ended(RolloutPhase::RolledBack)), "rolled back");
    }
}
