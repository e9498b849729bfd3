//! Storms: random scenarios generated from seeds, many at once.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::words;
use crate::api::v1::API_VERSION;
use crate::cli::output::Shell;
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::{ProgressLine, Style, Term};
use crate::cli::text::{count, plain, wrap};
use crate::judge;
use crate::sim::{self, Summary};

/// The most failing storms that a page lists; that many are more than enough to start fixing.
const NAMED: usize = 20;

/// How an end begins that is not the rollout's.
const WAITS: &str = "waits for ";
const LEGEND: &str = "waits for X (hold): the pool is safe and stands still until a person does X; `explain` shows the hold of that name";

pub fn run(first: u64, storms: u64, shell: &Shell) -> Summary {
    let progress = Mutex::new((ProgressLine::new(shell.term), 0));
    sim::storms(first, storms, &|_| {
        // Storms end in any order; count the ones that ended.
        let mut counted = progress.lock().unwrap_or_else(PoisonError::into_inner);
        counted.1 += 1;
        let done = counted.1;
        counted.0.show(done, storms, "of the storms are over");
    })
}

pub fn document(summary: &Summary) -> Value {
    let failed = |failed: &sim::FailedStorm| json!({"seed": failed.seed, "message": failed.say, "replay": failed.replay()});
    json!({
        "apiVersion": API_VERSION,
        "kind": "Storms",
        "firstSeed": summary.first_seed,
        "storms": summary.storms,
        "ends": summary.ends,
        "turns": summary.turns,
        "invariants": judge::LAWS,
        "machines": summary.machines,
        "calls": summary.calls,
        "crashes": summary.crashes,
        "failed": summary.failed.iter().map(failed).collect::<Vec<Value>>(),
    })
}

pub fn page(summary: &Summary, term: Term) -> String {
    let mut text = String::new();
    let last = summary.first_seed.wrapping_add(summary.storms.saturating_sub(1));
    let storms = count(summary.storms as usize, "storm");
    let title = format!("{storms}, seeds {} to {last}", summary.first_seed);
    push_line(&mut text, &term.paint(Style::Bold, &title));
    let played = format!(
        "turns {}   invariants {}   machines {}   calls {}   crashes {}",
        summary.turns,
        judge::LAWS,
        summary.machines,
        summary.calls,
        summary.crashes
    );
    push_line(&mut text, &format!("  {}", term.paint(Style::Dim, &played)));
    text.push('\n');
    let mut ends = Table::new(2);
    for (end, n) in &summary.ends {
        let end = match end.as_str() {
            "None" => "settled, without a rollout".to_owned(),
            end if end.contains(' ') => end.to_owned(),
            phase => words::spoken(phase),
        };
        ends.row([Cell::new(format!("{n:>7}"), Style::Plain), Cell::new(end, Style::Plain)]);
    }
    ends.draw(term, &mut text);
    if summary.ends.keys().any(|end| end.starts_with(WAITS)) {
        text.push('\n');
        for line in wrap(LEGEND, term.width.map(|wide| wide.saturating_sub(2))) {
            push_line(&mut text, &format!("  {}", term.paint(Style::Dim, &line)));
        }
    }
    text.push('\n');
    if summary.is_clean() {
        let say = "all storms passed: no invariant was violated, and every one ended or waits for a person";
        push_line(&mut text, &term.paint(Style::Green, say));
        return text;
    }
    push_line(&mut text, &term.paint(Style::Red, &format!("{} failed", summary.failed.len())));
    for failed in summary.failed.iter().take(NAMED) {
        push_line(&mut text, &format!("  {}", failed.replay()));
        for line in wrap(&plain(&failed.say), term.width.map(|wide| wide.saturating_sub(4))) {
            push_line(&mut text, &format!("    {}", term.paint(Style::Dim, &line)));
        }
    }
    let more = summary.failed.len().saturating_sub(NAMED);
    if more > 0 {
        push_line(&mut text, &format!("  and {more} more; -o json names them all"));
    }
    text
}
