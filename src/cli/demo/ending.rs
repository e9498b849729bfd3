//! How it went, and what to try next.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::sight::Sight;
use super::stage::{POOL, Stage};
use crate::api::client::DEFAULT_SERVER;
use crate::api::v1::API_VERSION;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{short, wrap};
use crate::emulator::Extremes;
use crate::model::time::Span;

#[derive(Debug)]
pub struct Ending {
    sight: Sight,
    /// By what was really there.
    extremes: Option<Extremes>,
    /// From the new image to the last machine.
    took: Span,
    azure: SocketAddr,
    api: SocketAddr,
    times: u32,
}

impl Ending {
    pub fn of(stage: &Stage, sight: Sight, took: Span) -> Self {
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
            "lawsBroken": sight.laws })
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
                "A law was broken, and the pool froze: that is a fault of poolkeeper.".to_owned(),
            ];
        }
        let range = self.extremes.map_or_else(String::new, |seen| {
            let ill = if seen.fewest_ready < limits.floor as usize { ", the ill one missing" } else { "" };
            format!(
                " There were never fewer than {} in service{ill} (at least {} are promised), and never more than {} alive (at most {}).",
                seen.fewest_ready, limits.floor, seen.most_there, limits.ceiling
            )
        });
        vec![
            format!("All {} machines are on the new image.{range}", sight.numbers.desired),
            format!(
                "It took {}, played {} times as fast, and {} calls; {} refused, and made up for.",
                short(self.took),
                self.times,
                sight.calls.made,
                match sight.calls.throttled {
                    1 => "1 was".to_owned(),
                    n => format!("{n} were"),
                }
            ),
            "Every plan was judged, before anything was sent, by laws that share nothing with the planner: none was broken.".to_owned(),
        ]
    }

    /// While the API stays up.
    pub fn door(&self, term: Term, program: &str) -> String {
        let mut page = String::from("\n");
        let api = format!("http://{}", self.api);
        let server = if api == DEFAULT_SERVER { String::new() } else { format!(" --server {api}") };
        push_line(
            &mut page,
            &term.paint(Style::Bold, "The daemon goes on until Ctrl-C. Try, in another terminal"),
        );
        let last = self.sight.machines.last().map_or("0", |machine| &*machine.id);
        let asks = [
            (
                format!("{program} status {POOL}{server}"),
                "is anything wrong, what moves, when does it end",
            ),
            (
                format!("{program} explain {POOL} {last}{server}"),
                "one machine: why it is as it is, and what comes next",
            ),
            (
                format!("{program} history {POOL}{server}"),
                "what was decided and done, with the reasons",
            ),
            (
                format!("{program} delete-machine {POOL} {last} --why 'see what happens'{server}"),
                "it is replaced, safely, and that is told here",
            ),
            (format!("{program} refresh {POOL} --why 'again'{server}"), "all of them once more"),
        ];
        for (command, why) in asks {
            told(&mut page, term, &command, why);
        }
        told(&mut page, term, &format!("curl {api}/metrics"), "what Prometheus would read");
        told(
            &mut page,
            term,
            &format!("http://{}/", self.azure),
            "the made-up Azure, for a browser",
        );
        page.push('\n');
        page
    }
}

/// What needs nothing that goes on.
pub fn next(term: Term, program: &str) -> String {
    let mut page = String::from("\n");
    push_line(&mut page, &term.paint(Style::Bold, "Try next, in a clone of the repository"));
    for (command, why) in [
        ("simulate config/pools/web.yaml --faults storm", "a pool file, on a bad day, at once"),
        ("plan --snapshot tests/cli/inputs/rolling.json", "what to do now, and why"),
        ("validate config/pools", "whether pool files are sound"),
    ] {
        told(&mut page, term, &format!("{program} {command}"), why);
    }
    page
}

fn told(page: &mut String, term: Term, command: &str, why: &str) {
    push_line(page, &format!("  {}", term.paint(Style::Dim, &format!("# {why}"))));
    push_line(page, &format!("  {command}"));
}
