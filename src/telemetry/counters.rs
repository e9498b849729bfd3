//! Metrics that need counters: turns and their duration, invariants that a plan would have broken, changes of pool
//! files.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::families::{LAWS, NOT_ADMITTED, RELOADS, REQUESTS, TURN_TIME, TURNS};
use super::page::Exposition;
use crate::model::time::Span;
use crate::model::vocabulary::vocabulary;

/// Upper bounds of the turn duration buckets, in seconds.
// A quiet turn is one listing, tenths of a second; a busy one waits up to a minute for answers and for rate limits.
pub const TURN_SECONDS: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

vocabulary! {
    pub enum TurnOutcome {
        Done = "done",
        /// The plan would have broken an invariant.
        Frozen = "frozen",
        /// The listing or the store failed.
        Failed = "failed",
        /// A bug in Poolkeeper, contained to this pool.
        Panicked = "panicked",
    }
}

/// Classes of response status codes.
const ANSWERS: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The most common reasons to refuse a request. They are exported from the start, so that an alarm sees the first
/// refusal.
const REASONS: [&str; 4] = ["forbidden", "noRole", "tooManyRequests", "unauthenticated"];

#[derive(Debug, Default)]
pub struct Counters(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    turns: [u64; TurnOutcome::ALL.len()],
    /// One more bucket than bounds, for longer turns.
    times: [u64; TURN_SECONDS.len() + 1],
    seconds: f64,
    /// By class, starting with 2xx.
    answers: [u64; ANSWERS.len()],
    not_admitted: BTreeMap<&'static str, u64>,
    laws: BTreeMap<u8, u64>,
    reloads: u64,
}

impl Counters {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn turn(&self, outcome: TurnOutcome, took: Span) {
        let seconds = took.millis() as f64 / 1_000.0;
        let bucket = TURN_SECONDS.iter().position(|bound| seconds <= *bound);
        let mut sums = self.sums();
        sums.turns[outcome as usize] += 1;
        sums.times[bucket.unwrap_or(TURN_SECONDS.len())] += 1;
        sums.seconds += seconds;
    }

    /// `law` is 0 if the planner contradicted itself.
    pub fn law(&self, law: u8) {
        *self.sums().laws.entry(law).or_default() += 1;
    }

    /// Count a response by its status.
    pub fn answered(&self, status: u16) {
        let Some(class) = (status / 100).checked_sub(2) else { return };
        if let Some(count) = self.sums().answers.get_mut(usize::from(class)) {
            *count += 1;
        }
    }

    /// Count by one of our own codes, of which there are few.
    pub fn not_admitted(&self, code: &'static str) {
        *self.sums().not_admitted.entry(code).or_default() += 1;
    }

    pub fn reloaded(&self) {
        self.sums().reloads += 1;
    }

    pub fn turns(&self, outcome: TurnOutcome) -> u64 {
        self.sums().turns[outcome as usize]
    }

    pub fn laws(&self) -> u64 {
        self.sums().laws.values().sum()
    }

    pub fn write(&self, page: &mut Exposition) {
        let sums = self.sums();
        let each = ANSWERS.iter().zip(sums.answers);
        page.family(&REQUESTS, each.map(|(class, count)| ([*class], count as f64)));
        let mut reasons = sums.not_admitted.clone();
        for reason in REASONS {
            reasons.entry(reason).or_default();
        }
        let each = reasons.iter().map(|(reason, count)| ([*reason], *count as f64));
        page.family(&NOT_ADMITTED, each);
        page.family(&RELOADS, [([""; 0], sums.reloads as f64)]);
        let each =
            TurnOutcome::ALL.map(|outcome| ([outcome.name()], sums.turns[outcome as usize] as f64));
        page.family(&TURNS, each);
        page.histogram(&TURN_TIME, &TURN_SECONDS, &sums.times, sums.seconds);
        // Export zeros as well, so that an alarm sees the first increment.
        let laws = (0..=13_u8).map(|law| {
            let count = sums.laws.get(&law).copied().unwrap_or(0);
            (law.to_string(), count as f64)
        });
        let laws: Vec<(String, f64)> = laws.collect();
        page.family(&LAWS, laws.iter().map(|(law, count)| ([law.as_str()], *count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_fall_into_the_bucket_that_holds_them() {
        let counters = Counters::default();
        counters.turn(TurnOutcome::Done, Span::from_millis(100));
        counters.turn(TurnOutcome::Failed, Span::from_millis(101));
        counters.turn(TurnOutcome::Done, Span::minutes(10));
        counters.law(2);
        for status in [200, 202, 404, 503, 101, 999] {
            counters.answered(status);
        }
        let mut page = Exposition::default();
        counters.write(&mut page);
        let text = page.finish();
        for line in [
            "poolkeeper_api_requests_total{answer=\"2xx\"} 2",
            "poolkeeper_api_requests_total{answer=\"3xx\"} 0",
            "poolkeeper_api_requests_total{answer=\"5xx\"} 1",
            "poolkeeper_turns_total{outcome=\"done\"} 2",
            "poolkeeper_turn_seconds_bucket{le=\"0.1\"} 1",
            "poolkeeper_turn_seconds_bucket{le=\"0.25\"} 2",
            "poolkeeper_turn_seconds_bucket{le=\"60\"} 2",
            "poolkeeper_turn_seconds_bucket{le=\"+Inf\"} 3",
            "poolkeeper_invariant_violations_total{invariant=\"2\"} 1",
            "poolkeeper_invariant_violations_total{invariant=\"13\"} 0",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
