//! `demo`: a rollout of thirty machines, drawn live where somebody watches, told in a page where not.
//!
//! Never here: what happens (it is a rehearsal like every other). Begin with [`Demo::run`]; `moments` chooses what is
//! told, `frame` draws, `pacer` waits.

mod frame;
mod moments;
mod pacer;

use std::env;
use std::io::{self, IsTerminal};

use clap::Args;

use super::args::with_exit_codes;
use super::draw::axis::{Ms, clock};
use super::draw::{Limits, page};
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::simulate::document;
use super::table::push_line;
use super::term::{Style, Term};
use super::text::{short, wrap};
use crate::model::time::Span;
use crate::sim::{self, Outcome};
use frame::Film;
use moments::{Moment, moments, never_served, took};
use pacer::FRAMES;

const ABOUT: &str = "Plays the rollout of a new image to 30 machines, fast-forwarded";
const MORE: &str = "\
Needs nothing: no file, no account, no network. The loop that would run in production is rehearsed with a made-up cloud \
and a made-up clock: 30 machines get a new image while they serve, one of the new machines never becomes ready, and \
after every turn the laws are checked. On a terminal it is drawn live and takes a quarter of a minute; elsewhere it is \
told in a page, at once.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper demo
  poolkeeper demo --fast                the page, without the show
  poolkeeper demo -o json               the same rehearsal as a document";

/// Lines of the picture at the end.
const LINES: usize = 36;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Demo {
    /// Do not play it, only print how it went
    #[arg(long)]
    fast: bool,
}

impl Demo {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("demo")?;
        let scenario = sim::showpiece().map_err(|faults| {
            let say = format!("the pool of the demo is not sound: {faults:?}");
            Failure::new(Exit::Internal, "internal", say)
        })?;
        let outcome = sim::run(&scenario);
        let exit = if outcome.is_broken() { Exit::Refused } else { Exit::Done };
        if json {
            shell.line(&document::one(&scenario, "calm", &outcome, true).to_string())?;
            return Ok(exit);
        }
        let limits = Limits::of(&scenario);
        let told = moments(&scenario, &outcome, limits);
        let play = can_play(shell.term) && !self.fast;
        let page = Page { outcome: &outcome, limits, took: took(&scenario, &outcome), shell };
        if play {
            page.play(&told)?;
        } else {
            page.tell(&told)?;
        }
        Ok(exit)
    }
}

/// Somebody watches, and frames can be drawn over one another.
fn can_play(term: Term) -> bool {
    let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
    let wide = term.width.is_some_and(|columns| columns >= frame::WIDE);
    let tall = term.height.is_none_or(|lines| lines > frame::TALL);
    io::stdout().is_terminal() && !dumb && wide && tall
}

struct Page<'a> {
    outcome: &'a Outcome,
    limits: Limits,
    took: Option<Span>,
    shell: &'a mut Shell,
}

impl Page<'_> {
    fn play(self, told: &[Moment]) -> Result<(), Failure> {
        let film = Film::new(self.outcome, self.limits, told, self.shell.term);
        let timeline = &self.outcome.timeline;
        let span = timeline.to - timeline.from;
        self.shell.print("\n")?;
        let mut back = 0;
        for n in 0..=FRAMES {
            let picture = film.at(timeline.from + span * n / FRAMES);
            let mut drawn = if back > 0 { format!("\u{1b}[{back}A") } else { String::new() };
            for line in picture.lines() {
                // Each line ends what was there; nothing is hidden that an interrupt would leave hidden.
                drawn.extend(["\r", line, "\u{1b}[K\n"]);
            }
            back = picture.lines().count();
            self.shell.print(&drawn)?;
            self.shell.flush()?;
            pacer::after(n);
        }
        self.shell.print("\n")?;
        self.end()
    }

    fn tell(self, told: &[Moment]) -> Result<(), Failure> {
        let term = self.shell.term;
        let from: Ms = self.outcome.timeline.from;
        let mut page = String::new();
        let title = "A pool gets a new image, and keeps serving";
        push_line(&mut page, &term.paint(Style::Bold, title));
        page.push('\n');
        for moment in told {
            let when = term.paint(Style::Dim, &format!("{:>8}", clock(moment.at - from)));
            push_line(&mut page, &format!("{when}  {}", moment.say));
        }
        page.push('\n');
        self.shell.print(&page)?;
        self.end()
    }

    /// The whole rollout at one glance, what it came to, and what to try next.
    fn end(self) -> Result<(), Failure> {
        let term = self.shell.term;
        let (outcome, limits) = (self.outcome, self.limits);
        let room = term.width.map(|wide| wide.min(frame::WIDE));
        let mut page = page::timeline(&outcome.timeline, limits, term, LINES);
        page.push('\n');
        let good = if outcome.is_broken() { Style::Red } else { Style::Green };
        for (n, line) in verdict(outcome, limits, self.took).iter().enumerate() {
            for line in wrap(line, room) {
                push_line(&mut page, &term.paint(if n == 0 { good } else { Style::Plain }, &line));
            }
        }
        page.push('\n');
        push_line(&mut page, &term.paint(Style::Bold, "Try next, in a clone of the repository"));
        for (command, why) in NEXT {
            push_line(&mut page, &format!("  {}", term.paint(Style::Dim, &format!("# {why}"))));
            push_line(&mut page, &format!("  {command}"));
        }
        self.shell.print(&page)
    }
}

const NEXT: [(&str, &str); 4] = [
    ("poolkeeper simulate config/pools/web.yaml --faults storm", "a pool file, on a bad day"),
    ("poolkeeper simulate config/pools/web.yaml --svg web.svg", "the picture, in a file"),
    ("poolkeeper plan --snapshot tests/cli/inputs/rolling.json", "what to do now, and why"),
    ("poolkeeper validate config/pools", "whether pool files are sound"),
];

fn verdict(outcome: &Outcome, limits: Limits, took: Option<Span>) -> Vec<String> {
    let Limits { desired, floor, ceiling } = limits;
    let (low, high) = (outcome.lowest_available, outcome.highest_live);
    if let Some(breach) = outcome.breaches.first() {
        return vec![format!("A law was broken, which is a fault of poolkeeper: {}", breach.say)];
    }
    let took = took.map_or_else(|| "no end".to_owned(), short);
    let lost = match never_served(&outcome.timeline).count() {
        0 => String::new(),
        1 => "; 1 that never became ready was replaced on the way".to_owned(),
        lost => format!("; {lost} that never became ready were replaced on the way"),
    };
    vec![
        format!(
            "The promise held: never fewer than {low} in service (floor {floor}), never more than {high} alive (ceiling {ceiling})."
        ),
        format!(
            "{desired} machines replaced in {took}{lost}. {} turns, {} calls.",
            outcome.turns,
            outcome.calls_made()
        ),
        "After every turn all was judged by laws that share nothing with the planner: none was broken.".to_owned(),
    ]
}
