//! Storms: scenarios drawn from seeds, each played to its end and judged. One command plays thousands; a failing seed
//! prints the one that replays it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use super::draw::drawn;
use super::outcome::{End, Outcome};
use super::run::run;
use super::scenario::Scenario;

/// Threads that play storms at once, at most.
// 16: each holds one world of a few megabytes; more than this no machine of ours has.
const THREADS: usize = 16;

/// One storm, as its seed says.
pub fn storm(seed: u64) -> (Scenario, Outcome) {
    let scenario = drawn(seed);
    let outcome = run(&scenario);
    (scenario, outcome)
}

/// A seed that broke a law, or did not settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub seed: u64,
    pub say: String,
}

impl Failed {
    /// The command that plays it again.
    pub fn replay(&self) -> String {
        format!("poolkeeper simulate --storm-seed {}", self.seed)
    }
}

/// What many storms came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub first_seed: u64,
    pub storms: u64,
    /// By seed.
    pub failed: Vec<Failed>,
    /// How they ended, and how often.
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

    fn add(&mut self, seed: u64, end: String, outcome: Option<&Outcome>, failed: Option<String>) {
        self.storms += 1;
        *self.ends.entry(end).or_default() += 1;
        self.failed.extend(failed.map(|say| Failed { seed, say }));
        if let Some(outcome) = outcome {
            self.turns += u64::from(outcome.turns);
            self.crashes += u64::from(outcome.crashes);
            self.calls += outcome.calls_made();
            self.machines += outcome.timeline.rows.len() as u64;
        }
    }
}

/// Play so many storms, on all cores; `told` hears of each one that is done.
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
    // A panic is a finding with its seed; the other storms go on.
    let played = catch_unwind(AssertUnwindSafe(|| storm(seed).1));
    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(outcome) = played else {
        summary.add(seed, "panicked".to_owned(), None, Some("it panicked".to_owned()));
        return;
    };
    let (end, failed) = match &outcome.end {
        End::Ended(phase) => (phase.name().to_owned(), None),
        End::Waits { verb, hold } => (format!("waits for {verb} ({hold})"), None),
        End::Broken => {
            let said = outcome.breaches.first().map(|breach| {
                let which = if breach.before { "the plan" } else { "what happened" };
                format!("law {} broken by {which}: {}", breach.law, breach.say)
            });
            ("broken".to_owned(), Some(said.unwrap_or_default()))
        }
        End::NotSettled { why } => ("not settled".to_owned(), Some(format!("not settled: {why}"))),
    };
    summary.add(seed, end, Some(&outcome), failed);
}
