//! What the terminal can do: how wide it is, whether there is one, colour, and a line of progress.

use std::env;
use std::io::{self, IsTerminal, Write};

/// Lines no longer than this are comfortable to read, however wide the window is.
const WIDEST: usize = 160;
/// Below this, columns would be all ellipses: the terminal may wrap instead.
const NARROWEST: usize = 40;
/// Where a terminal does not say.
const USUAL: usize = 100;

/// How something is shown, where there is colour.
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

/// Where output goes to, and how it may look there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Columns; `None`: lines are not wrapped, so that each stays one line for the next program.
    pub width: Option<usize>,
    pub colour: bool,
    /// Standard error is a terminal: somebody watches.
    pub watched: bool,
}

impl Term {
    /// Neither width nor colour: what a file or another program gets.
    pub const PLAIN: Term = Term { width: None, colour: false, watched: false };

    pub fn of_this_process() -> Term {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let terminal = io::stdout().is_terminal();
        let columns = env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Term {
            width: columns
                .filter(|columns| *columns > 0)
                .or(terminal.then_some(USUAL))
                .map(|columns| columns.clamp(NARROWEST, WIDEST)),
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

/// A line of progress on standard error, rewritten in place; nothing where nobody watches.
#[derive(Debug)]
pub struct Progress {
    watched: bool,
    shown: Option<u64>,
}

/// Cells of the bar.
const BAR: u64 = 24;

impl Progress {
    pub fn new(term: Term) -> Self {
        Self { watched: term.watched, shown: None }
    }

    /// Shows `done` of `all`; redraws only when the picture changes, so it may be told of every step.
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
        // Who cannot be shown progress does without it.
        self.watched = err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_ok();
    }
}

impl Drop for Progress {
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
    fn the_bar_is_never_longer_or_shorter() {
        for (done, all) in [(0, 0), (0, 7), (3, 7), (7, 7), (9, 7), (u64::MAX, u64::MAX)] {
            assert_eq!(bar(done, all).chars().count(), BAR as usize, "{done} of {all}");
        }
    }
}
