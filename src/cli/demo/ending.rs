//! The results of the demo, and what to try next.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::service::{ServiceLimits, ServiceReport};
use super::stage::{DemoStage, POOL};
use crate::api::client::DEFAULT_SERVER;
use crate::api::v1::API_VERSION;
use crate::api::v1::resources::pools::PoolNumbers;
use crate::cli::status::PoolLook;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{short, width, wrap};
use crate::daemon::run::Calls;
use crate::emulator::Extremes;
use crate::model::time::Span;

/// The program's name, where its path is too long for a hint.
pub const NAME: &str = "poolkeeper";
/// The widest hint: it survives a terminal of 80 columns, and copying.
const WIDEST: usize = 78;

#[derive(Debug)]
pub struct DemoSummary {
    numbers: PoolNumbers,
    /// The machine that is last on the screen.
    machine: Box<str>,
    calls: Calls,
    /// The number of broken invariants.
    violations: u64,
    service: Option<ServiceReport>,
    /// The extremes of the emulated machines themselves.
    extremes: Option<Extremes>,
    /// The time from applying the new image until the last machine was done.
    took: Span,
    azure: SocketAddr,
    api: SocketAddr,
    times: u32,
}

impl DemoSummary {
    /// `failed`: the machines that the script made unhealthy.
    pub fn of(
        stage: &DemoStage,
        look: &PoolLook,
        numbers: PoolNumbers,
        took: Span,
        failed: &[Box<str>],
    ) -> Self {
        let limits = ServiceLimits { desired: numbers.desired, floor: numbers.floor };
        Self {
            numbers,
            machine: look.more.machines.last().map_or("0", |machine| &machine.id).into(),
            calls: stage.calls(),
            violations: stage.violations(),
            service: stage.service(limits, failed),
            extremes: stage.extremes(),
            took,
            azure: stage.azure,
            api: stage.api,
            times: stage.clock.times(),
        }
    }

    pub fn is_good(&self) -> bool {
        self.violations == 0 && !self.is_above_ceiling()
    }

    fn is_above_ceiling(&self) -> bool {
        self.extremes.is_some_and(|seen| seen.most_there > self.numbers.ceiling as usize)
    }

    pub fn document(&self) -> Value {
        let (numbers, extremes) = (&self.numbers, self.extremes);
        json!({ "apiVersion": API_VERSION, "kind": "Demo",
            "desired": numbers.desired, "floor": numbers.floor, "ceiling": numbers.ceiling,
            "fewestReady": extremes.map(|e| e.fewest_ready), "mostThere": extremes.map(|e| e.most_there),
            "belowFloor": self.service.as_ref().map(|service| service.below.to_string()),
            "outdated": numbers.outdated, "took": self.took.to_string(),
            "calls": self.calls.made, "saved": self.calls.saved, "refused": self.calls.throttled,
            "invariantViolations": self.violations })
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
        let numbers = &self.numbers;
        if self.violations > 0 {
            let say = "An invariant was violated, and the pool froze: this is a bug in Poolkeeper.";
            return vec![say.to_owned()];
        }
        let mut lines = vec![format!(
            "All {} machines are on the new image, after {} (shown {} times as fast).",
            numbers.desired,
            short(self.took),
            self.times
        )];
        lines.extend(self.service.as_ref().map(ServiceReport::sentence));
        let own = self.service.as_ref().and_then(ServiceReport::own_part);
        let bug = if self.is_above_ceiling() { ": this is a bug in Poolkeeper" } else { "" };
        let most = self.extremes.map(|seen| {
            format!(
                "At most {} existed (the ceiling is {}){bug}.",
                seen.most_there, numbers.ceiling
            )
        });
        lines.push(own.into_iter().chain(most).collect::<Vec<_>>().join(" "));
        let throttled = match self.calls.throttled {
            0 => "Azure throttled none of them".to_owned(),
            1 => "1 was throttled and retried".to_owned(),
            more => format!("{more} were throttled and retried"),
        };
        lines.push(format!("{} calls to Azure: {throttled}.", self.calls.made));
        lines.push("An independent safety checker verified every plan: 0 violations.".to_owned());
        lines
    }

    /// Commands to try while the API stays up.
    pub fn hints(&self, term: Term, program: &str) -> String {
        let mut page = String::from("\n");
        let say = "The daemon runs until Ctrl-C. Try, in another terminal:";
        push_line(&mut page, &term.paint(Style::Bold, say));
        let api = format!("http://{}", self.api);
        if api != DEFAULT_SERVER {
            push_line(&mut page, &format!("  export POOLKEEPER_SERVER={api}"));
        }
        let last = &self.machine;
        let commands = [
            format!("status {POOL}"),
            format!("explain {POOL} {last}"),
            format!("history {POOL}"),
            format!("delete-machine {POOL} {last} --why test"),
            format!("refresh {POOL} --why again"),
        ];
        push_commands(&mut page, program, &commands);
        push_line(
            &mut page,
            &format!("  http://{}/ (the Azure emulator, in a browser)", self.azure),
        );
        page
    }
}

/// Commands to try that need no running daemon.
pub fn next(term: Term, program: &str) -> String {
    let mut page = String::from("\n");
    let say = "Try next, in a clone of the repository:";
    push_line(&mut page, &term.paint(Style::Bold, say));
    let commands = [
        "simulate config/pools/web.yaml --faults storm",
        "plan --snapshot tests/cli/inputs/rolling.json",
        "validate config/pools",
    ];
    push_commands(&mut page, program, &commands.map(str::to_owned));
    page
}

/// One command a line. A program with a long path gets its usual name first.
fn push_commands(page: &mut String, program: &str, commands: &[String]) {
    let longest = commands.iter().map(|command| width(command)).max().unwrap_or(0);
    let fits = "  ".len() + width(program) + " ".len() + longest <= WIDEST;
    if !fits {
        let path = program.replace('\'', r"'\''");
        push_line(page, &format!("  alias {NAME}='{path}'"));
    }
    for command in commands {
        push_line(page, &format!("  {} {command}", if fits { program } else { NAME }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_short_and_can_be_copied() {
        let usual = next(Term::PLAIN, "target/release/poolkeeper");
        assert!(usual.contains("\n  target/release/poolkeeper validate config/pools\n"), "{usual}");
        assert!(usual.lines().all(|line| width(line) <= WIDEST), "{usual}");
        let far = next(Term::PLAIN, "/opt/it's/a/long/way/to/the/program/poolkeeper");
        assert!(far.contains(r"alias poolkeeper='/opt/it'\''s/a/long"), "{far}");
        assert!(far.contains("\n  poolkeeper validate config/pools\n"), "{far}");
    }
}
