//! Storms: scenarios drawn from seeds, each played to its end and judged. One command plays thousands; each failing
//! seed comes with the command that replays it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use super::generate::drawn;
use super::outcome::{End, RunOutcome};
use super::run::run;
use super::scenario::Scenario;

/// The most threads that play storms at once.
// 16: each holds one world of a few megabytes; none of our machines has more cores.
const THREADS: usize = 16;

pub fn storm(seed: u64) -> (Scenario, RunOutcome) {
    let scenario = drawn(seed);
    let outcome = run(&scenario);
    (scenario, outcome)
}

/// A seed that broke a law or did not settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStorm {
    pub seed: u64,
    pub say: String,
}

impl FailedStorm {
    /// The command that replays it.
    pub fn replay(&self) -> String {
        format!("poolkeeper simulate --storm-seed {}", self.seed)
    }
}

/// The results of many storms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub first_seed: u64,
    pub storms: u64,
    /// By seed.
    pub failed: Vec<FailedStorm>,
    /// How they ended, with counts.
    pub ends: BTreeMap<String, u64>,
    pub turns: u64,
    pub crashes: u64,
    pub calls: u64,
    pub machines: u64,
}

impl Summary {
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty()
    }

    fn add(
        &mut self,
        seed: u64,
        end: String,
        outcome: Option<&RunOutcome>,
        failed: Option<String>,
    ) {
        self.storms += 1;
        *self.ends.entry(end).or_default() += 1;
        self.failed.extend(failed.map(|say| FailedStorm { seed, say }));
        if let Some(outcome) = outcome {
            self.turns += u64::from(outcome.turns);
            self.crashes += u64::from(outcome.crashes);
            self.calls += outcome.calls_made();
            self.machines += outcome.timeline.rows.len() as u64;
        }
    }
}

/// Plays this many storms on all cores; calls `told` after each one.
pub fn storms(first_seed: u64, count: u64, told: &(dyn Fn(u64) + Sync)) -> Summary {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary { first_seed, ..Summary::default() });
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(THREADS) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let seed = first_seed.wrapping_add(n);
                    play(seed, &summary);
                    told(n + 1);
                }
            });
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.failed.sort_by_key(|failed| failed.seed);
    summary
}

fn play(seed: u64, summary: &Mutex<Summary>) {
    // A panic is a finding with its seed; the other storms continue.
    let played = catch_unwind(AssertUnwindSafe(|| storm(seed).1));
    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(outcome) = played else {
        summary.add(seed, "panicked".to_owned(), None, Some("it panicked".to_owned()));
        return;
    };
    let (end, failed) = match &outcome.end {
        End::Ended(phase) => (phase.name().to_owned(), None),
        End::Waits { remedy, hold } => (format!("waits for {} ({hold})", remedy.name()), None),
        End::Broken => {
            let said = outcome.breaches.first().map(|breach| {
                let which = if breach.before { "the plan" } else { "what happened" };
                format!("invariant {} violated by {which}: {}", breach.law, breach.say)
            });
            ("broken".to_owned(), Some(said.unwrap_or_default()))
        }
        End::Over => ("over".to_owned(), None),
        End::NotSettled { why } => ("not settled".to_owned(), Some(format!("not settled: {why}"))),
    };
    summary.add(seed, end, Some(&outcome), failed);
}
