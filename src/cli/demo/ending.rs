//! The results of the demo, and what to try next.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::sight::DemoSight;
use super::stage::{DemoStage, POOL};
use crate::api::client::DEFAULT_SERVER;
use crate::api::v1::API_VERSION;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{short, wrap};
use crate::emulator::Extremes;
use crate::model::quantity::counted;
use crate::model::time::Span;

#[derive(Debug)]
pub struct DemoSummary {
    sight: DemoSight,
    /// The extremes of the emulated machines themselves.
    extremes: Option<Extremes>,
    /// The time from applying the new image until the last machine was done.
    took: Span,
    azure: SocketAddr,
    api: SocketAddr,
    times: u32,
}

impl DemoSummary {
    pub fn of(stage: &DemoStage, sight: DemoSight, took: Span) -> Self {
        let times = stage.clock.times();
        let (azure, api, extremes) = (stage.azure, stage.api, stage.extremes());
        Self { sight, extremes, took, azure, api, times }
    }

    pub fn is_good(&self) -> bool {
        self.sight.laws == 0
    }

    pub fn document(&self) -> Value {
        let (sight, extremes) = (&self.sight, self.extremes);
        json!({ "apiVersion": API_VERSION, "kind": "Demo",
            "desired": sight.numbers.desired, "floor": sight.limits.floor, "ceiling": sight.limits.ceiling,
            "fewestReady": extremes.map(|e| e.fewest_ready), "mostThere": extremes.map(|e| e.most_there),
            "outdated": sight.numbers.outdated, "took": self.took.to_string(),
            "calls": sight.calls.made, "saved": sight.calls.saved, "refused": sight.calls.throttled,
            "invariantViolations": sight.laws })
    }

    pub fn page(&self, term: Term) -> String {
        let mut page = String::from("\n");
        let style = if self.is_good() { Style::Green } else { Style::Red };
        for (n, line) in self.verdict().iter().enumerate() {
            for line in wrap(line, term.width) {
                push_line(&mut page, &term.paint(if n == 0 { style } else { Style::Plain }, &line));
            }
        }
        page
    }

    fn verdict(&self) -> Vec<String> {
        let (sight, limits) = (&self.sight, self.sight.limits);
        if !self.is_good() {
            return vec![
                "An invariant was violated, and the pool froze: this is a bug in Poolkeeper."
                    .to_owned(),
            ];
        }
        let range = self.extremes.map_or_else(String::new, |seen| {
            let ill = if seen.fewest_ready < limits.floor as usize { ", and one machine failed by itself" } else { "" };
            format!(
                " Never fewer than {} machines served (the floor is {}{ill}), and never more than {} existed (the ceiling is {}).",
                seen.fewest_ready, limits.floor, seen.most_there, limits.ceiling
            )
        });
        vec![
            format!("All {} machines are on the new image.{range}", sight.numbers.desired),
            format!(
                "It took {} (shown {} times as fast) and {} calls; Azure refused {}, and Poolkeeper retried later.",
                short(self.took),
                self.times,
                sight.calls.made,
                counted(sight.calls.throttled as usize, "call")
            ),
            "Every plan was checked against invariants that share no code with the planner before anything was sent: none was violated.".to_owned(),
        ]
    }

    /// Commands to try while the API stays up.
    pub fn door(&self, term: Term, program: &str) -> String {
        let mut page = String::from("\n");
        let api = format!("http://{}", self.api);
        let server = if api == DEFAULT_SERVER { String::new() } else { format!(" --server {api}") };
        push_line(
            &mut page,
            &term.paint(Style::Bold, "The daemon goes on until Ctrl-C. Try, in another terminal"),
        );
        let last = self.sight.machines.last().map_or("0", |machine| &*machine.id);
        let commands = [
            (format!("{program} status {POOL}{server}"), "health, progress and end of the rollout"),
            (
                format!("{program} explain {POOL} {last}{server}"),
                "one machine: its state, the reason, the next step",
            ),
            (format!("{program} history {POOL}{server}"), "decisions and actions, with reasons"),
            (
                format!("{program} delete-machine {POOL} {last} --why 'see what happens'{server}"),
                "it is replaced safely; this terminal shows it",
            ),
            (
                format!("{program} refresh {POOL} --why 'again'{server}"),
                "replace all machines once more",
            ),
        ];
        for (command, why) in commands {
            push_command(&mut page, term, &command, why);
        }
        push_command(&mut page, term, &format!("curl {api}/metrics"), "what Prometheus would read");
        push_command(
            &mut page,
            term,
            &format!("http://{}/", self.azure),
            "the Azure emulator, in a browser",
        );
        page.push('\n');
        page
    }
}

/// Commands to try that need no running daemon.
pub fn next(term: Term, program: &str) -> String {
    let mut page = String::from("\n");
    push_line(&mut page, &term.paint(Style::Bold, "Try next, in a clone of the repository"));
    for (command, why) in [
        ("simulate config/pools/web.yaml --faults storm", "a pool file, rehearsed with faults"),
        ("plan --snapshot tests/cli/inputs/rolling.json", "the next actions, and why"),
        ("validate config/pools", "check pool files"),
    ] {
        push_command(&mut page, term, &format!("{program} {command}"), why);
    }
    page
}

fn push_command(page: &mut String, term: Term, command: &str, why: &str) {
    push_line(page, &format!("  {}", term.paint(Style::Dim, &format!("# {why}"))));
    push_line(page, &format!("  {command}"));
}
