//! The terminal: whether there is one, its size, colour, and a progress line.

use std::env;
use std::io::{self, IsTerminal, Write};

use terminal_size::terminal_size_of;

/// Longer lines are hard to read, however wide the window is.
const WIDEST: usize = 160;
/// Below this, columns would consist of ellipses only; the terminal wraps instead.
const NARROWEST: usize = 40;
/// The width to use when a terminal reports none. Every terminal has it, and a line that wraps would spoil a picture.
const CERTAIN: usize = 79;

/// The style of a text on a terminal with colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Bold => "\u{1b}[1m",
            Style::Dim => "\u{1b}[2m",
            Style::Red => "\u{1b}[31m",
            Style::Green => "\u{1b}[32m",
            Style::Yellow => "\u{1b}[33m",
            Style::Cyan => "\u{1b}[36m",
        }
    }
}

/// Properties of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Columns. `None`: do not wrap lines, so that each stays one line for the next program.
    pub width: Option<usize>,
    /// Lines, if known.
    pub height: Option<usize>,
    pub colour: bool,
    /// Standard error is a terminal: a person is watching.
    pub watched: bool,
}

impl Term {
    /// No width and no colour: for a file or another program.
    pub const PLAIN: Term = Term { width: None, height: None, colour: false, watched: false };

    pub fn of_this_process() -> Term {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stdout().is_terminal();
        let reported = terminal.then(|| terminal_size_of(io::stdout())).flatten();
        let reported = reported.map(|(wide, tall)| (usize::from(wide.0), usize::from(tall.0)));
        let (width, height) = size(|name| env::var(name).ok(), terminal, reported);
        Term {
            width,
            height,
            colour: terminal && !dumb && !set("NO_COLOR"),
            watched: io::stderr().is_terminal() && !dumb,
        }
    }

    pub fn paint(self, style: Style, text: &str) -> String {
        if !self.colour || style == Style::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("{}{text}\u{1b}[0m", style.code())
    }
}

/// Columns and lines. The environment overrides the size that the terminal reports, and is the only source if the
/// output is not a terminal.
fn size(
    set: impl Fn(&str) -> Option<String>,
    terminal: bool,
    reported: Option<(usize, usize)>,
) -> (Option<usize>, Option<usize>) {
    let set = |name| set(name).and_then(|text| text.parse().ok()).filter(|n: &usize| *n > 0);
    let wide = set("COLUMNS").or(reported.map(|(wide, _)| wide)).or(terminal.then_some(CERTAIN));
    let tall = set("LINES").or(reported.map(|(_, tall)| tall));
    (wide.map(|wide| wide.clamp(NARROWEST, WIDEST)), tall)
}

/// A progress line on standard error, rewritten in place; prints nothing if standard error is not a terminal.
#[derive(Debug)]
pub struct ProgressLine {
    watched: bool,
    shown: Option<u64>,
}

/// Width of the bar, in cells.
const BAR: u64 = 24;

impl ProgressLine {
    pub fn new(term: Term) -> Self {
        Self { watched: term.watched, shown: None }
    }

    /// Shows `done` of `all`. Redraws only when the percentage changes, so it is cheap to call for every step.
    pub fn show(&mut self, done: u64, all: u64, what: &str) {
        let percent = done.min(all).saturating_mul(100).checked_div(all).unwrap_or(100);
        if !self.watched || self.shown == Some(percent) {
            return;
        }
        self.shown = Some(percent);
        let line = format!("\r\u{1b}[K{} {percent:>3}% {what}", bar(done, all));
        self.write(&line);
    }

    fn write(&mut self, text: &str) {
        let mut err = io::stderr().lock();
        // After a failed write, stop showing progress.
        self.watched = err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_ok();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.watched && self.shown.is_some() {
            self.write("\r\u{1b}[K");
        }
    }
}

fn bar(done: u64, all: u64) -> String {
    let full = done.min(all).saturating_mul(BAR).checked_div(all).unwrap_or(BAR) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR as usize - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        assert_eq!(Term::PLAIN.paint(Style::Red, "x"), "x");
        let coloured = Term { colour: true, ..Term::PLAIN };
        assert_eq!(coloured.paint(Style::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(coloured.paint(Style::Plain, "x"), "x");
    }

    #[test]
    fn what_a_person_sets_wins_over_what_the_terminal_tells() {
        let of = |columns: &'static str, lines: &'static str, terminal, reported| {
            let set =
                move |name: &str| Some(if name == "COLUMNS" { columns } else { lines }.into());
            size(set, terminal, reported)
        };
        assert_eq!(of("", "", true, Some((120, 50))), (Some(120), Some(50)));
        assert_eq!(of("90", "30", true, Some((120, 50))), (Some(90), Some(30)));
        assert_eq!(of("wide", "-3", true, Some((120, 50))), (Some(120), Some(50)));
        assert_eq!(of("0", "0", true, None), (Some(CERTAIN), None));
        assert_eq!(of("", "", false, None), (None, None));
        assert_eq!(of("90", "", false, None), (Some(90), None));
        assert_eq!(of("9", "9", true, Some((7, 7))), (Some(NARROWEST), Some(9)));
        assert_eq!(of("", "", true, Some((900, 90))), (Some(WIDEST), Some(90)));
        assert_eq!(size(|_| None, true, None), (Some(CERTAIN), None));
    }

    #[test]
    fn the_bar_is_never_longer_or_shorter() {
        for (done, all) in [(0, 0), (0, 7), (3, 7), (7, 7), (9, 7), (u64::MAX, u64::MAX)] {
            assert_eq!(bar(done, all).chars().count(), BAR as usize, "{done} of {all}");
        }
    }
}
