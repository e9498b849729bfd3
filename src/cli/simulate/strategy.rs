//! The strategies of a comparison: those of other managers, and Poolkeeper with other rollout keys.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Number, Value, json};

use crate::api::v1::pool;
use crate::api::v1::problem::DocumentProblem;
use crate::cli::exit::CommandFailure;
use crate::model::policy::Policy;
use crate::sim::Strategy;

/// The name of the production loop in the comparison. It keeps every slot busy instead of waiting for a wave to end.
pub const OURS: &str = "poolkeeper";

/// A value of `--compare`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareStrategy {
    Other(Strategy),
    Ours(RolloutSettings),
}

/// Keys of `rollout`, each with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSettings(Vec<(String, String)>);

impl FromStr for CompareStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(OURS).and_then(|rest| rest.strip_prefix(':')) {
            Some(settings) => settings.parse().map(CompareStrategy::Ours),
            None => text.parse().map(CompareStrategy::Other).map_err(|unknown: <Strategy as FromStr>::Err| {
                format!("{unknown}; {OURS}:maxSurge=3+maxUnavailable=0 is this pool with other rollout keys")
            }),
        }
    }
}

impl FromStr for RolloutSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        let pair = |pair: &str| {
            let (key, value) = pair
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| format!("`{pair}` is not KEY=VALUE; separate several with +"))?;
            if !seen.insert(key.to_owned()) {
                return Err(format!("{key} stands twice"));
            }
            Ok((key.to_owned(), value.to_owned()))
        };
        text.split('+').map(pair).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for CompareStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareStrategy::Other(strategy) => strategy.fmt(f),
            CompareStrategy::Ours(settings) => write!(f, "{OURS}:{}", settings.joined("+")),
        }
    }
}

impl RolloutSettings {
    fn joined(&self, between: &str) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(between)
    }

    /// For people, with spaces where a line may break.
    pub fn name(&self) -> String {
        format!("{OURS} with {}", self.joined(" "))
    }

    /// The policy with these keys, or what the pool file's reader says against them.
    pub fn apply(&self, policy: &Policy) -> Result<Policy, CommandFailure> {
        let mut document: Value =
            serde_json::from_str(&pool::to_json(policy)).unwrap_or_else(|_| json!({}));
        if let Some(rollout) = document.get_mut("rollout").and_then(Value::as_object_mut) {
            for (key, value) in &self.0 {
                set(rollout, key, typed(value));
            }
        }
        pool::read_inside(&document.to_string()).map_err(|faults| {
            let text = format!("--compare {OURS}:{}", self.joined("+"));
            let Some(problem) = DocumentProblem::of(&faults) else {
                return CommandFailure::usage(format!("{text}: the pool is refused"));
            };
            let failure =
                CommandFailure::usage(format!("{text}: {}: {}", problem.field, problem.message));
            match problem.help {
                Some(help) => failure.help(help),
                None => failure,
            }
        })
    }
}

/// `ramp.first` is the key `first` of `ramp`.
fn set(rollout: &mut Map<String, Value>, key: &str, value: Value) {
    let Some((outer, inner)) = key.split_once('.') else {
        rollout.insert(key.to_owned(), value);
        return;
    };
    let slot = rollout.entry(outer).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    if let Some(map) = slot.as_object_mut() {
        map.insert(inner.to_owned(), value);
    }
}

/// As a pool file types it: a number, true or false, else text.
fn typed(value: &str) -> Value {
    let number = value.parse::<i64>().ok().filter(|n| n.to_string() == value);
    match (number, value) {
        (Some(number), _) => Value::Number(Number::from(number)),
        (None, "true" | "false") => Value::Bool(value == "true"),
        (None, text) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::quantity::Quantity;
    use crate::model::time::Span;
    use crate::sim::draft;

    fn policy() -> Policy {
        Policy::build(draft("web", 30)).unwrap()
    }

    fn settings(text: &str) -> RolloutSettings {
        match text.parse().unwrap() {
            CompareStrategy::Ours(settings) => settings,
            CompareStrategy::Other(strategy) => panic!("{strategy}"),
        }
    }

    #[test]
    fn strategies_print_as_they_are_written() {
        for text in
            ["waves", "batch:20%", "one-by-one", "poolkeeper:maxSurge=3+maxUnavailable=0+ramp=off"]
        {
            assert_eq!(text.parse::<CompareStrategy>().unwrap().to_string(), text);
        }
        for bad in ["", "poolkeeper", "poolkeeper:", "poolkeeper:maxSurge", "poolkeeper:=3"] {
            assert!(bad.parse::<CompareStrategy>().is_err(), "{bad}");
        }
        let twice = "poolkeeper:maxSurge=1+maxSurge=2".parse::<CompareStrategy>();
        assert_eq!(twice, Err("maxSurge stands twice".to_owned()));
    }

    #[test]
    fn settings_change_their_keys_and_nothing_else() {
        let before = policy();
        let text = "poolkeeper:maxSurge=3+maxUnavailable=10%+minReady=45s+ramp.first=4";
        let after = settings(text).apply(&before).unwrap();
        assert_eq!(after.rollout.max_surge, Quantity::of(3));
        assert_eq!(after.rollout.max_unavailable, Quantity::percent(10));
        assert_eq!(after.rollout.min_ready, Span::seconds(45));
        assert_eq!(after.rollout.ramp.map(|ramp| ramp.first), Some(4));
        assert_eq!((&after.name, after.count), (&before.name, before.count));
        let off = settings("poolkeeper:ramp=off").apply(&before).unwrap();
        assert_eq!(off.rollout.ramp, None);
    }

    #[test]
    fn what_a_pool_file_refuses_is_refused() {
        for (text, hint) in [
            ("poolkeeper:maxSurg=3", "maxSurg"),
            ("poolkeeper:maxSurge=-1", "rollout.maxSurge"),
            ("poolkeeper:minReady=soon", "rollout.minReady"),
            ("poolkeeper:ramp.second=1", "second"),
        ] {
            let failure = settings(text).apply(&policy()).unwrap_err();
            assert!(failure.report.message.contains(hint), "{text}: {failure:?}");
        }
    }
}
