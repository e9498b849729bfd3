//! One frame of the show: the fleet, the numbers, the height of the pool, and what was told last.

use std::fmt::Write as _;

use super::moments::Moment;
use crate::cli::draw::Limits;
use crate::cli::draw::axis::{Ms, clock};
use crate::cli::draw::look::{Look, seen};
use crate::cli::draw::page::{Frame, height};
use crate::cli::draw::steps::{bucket, columns};
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{cut, width};
use crate::sim::{Outcome, Row, Segment, Timeline};

/// Terminals are at least this large; a larger frame could not be drawn over itself.
pub const WIDE: usize = 78;
pub const TALL: usize = 23;

/// Machines on a line of the fleet, each 7 columns wide.
const ABREAST: usize = 11;
/// Of the chart.
const COLUMNS: usize = 58;
/// What was told last.
const LINES: usize = 5;

/// What does not change from frame to frame.
#[derive(Debug)]
pub struct Film<'a> {
    timeline: &'a Timeline,
    limits: Limits,
    moments: &'a [Moment],
    /// Places of the fleet, and who was in them, one after the other.
    berths: Vec<Vec<&'a Row>>,
    columns: Vec<(u32, u32)>,
    term: Term,
}

impl<'a> Film<'a> {
    pub fn new(outcome: &'a Outcome, limits: Limits, moments: &'a [Moment], term: Term) -> Self {
        let timeline = &outcome.timeline;
        let term = Term { width: Some(WIDE), ..term };
        let columns = columns(timeline, COLUMNS);
        Self { timeline, limits, moments, berths: berths(timeline), columns, term }
    }

    pub fn at(&self, at: Ms) -> String {
        let mut page = String::new();
        self.title(at, &mut page);
        self.fleet(at, &mut page);
        self.legend(&mut page);
        page.push('\n');
        self.numbers(at, &mut page);
        page.push('\n');
        self.heights(at, &mut page);
        page.push('\n');
        self.told(at, &mut page);
        page
    }

    fn title(&self, at: Ms, page: &mut String) {
        let title = "  A pool gets a new image, and keeps serving";
        let clock = format!("virtual time {:>7}", clock(at - self.timeline.from));
        let pad = " ".repeat(WIDE.saturating_sub(width(title) + width(&clock)));
        let title = self.term.paint(Style::Bold, title);
        push_line(page, &format!("{title}{pad}{}", self.term.paint(Style::Dim, &clock)));
        page.push('\n');
    }

    fn fleet(&self, at: Ms, page: &mut String) {
        for berths in self.berths.chunks(ABREAST) {
            let mut line = String::from(" ");
            for berth in berths {
                let here = berth.iter().find_map(|row| Some((row, now(row, at)?)));
                let Some((row, segment)) = here else {
                    line.push_str(&self.term.paint(Style::Dim, "     --"));
                    continue;
                };
                let look = Look::of(segment, self.timeline);
                let id = cut(&format!("m{}", row.id), 3);
                let glyphs = look.glyph().to_string().repeat(2);
                let painted = self.term.paint(look.style(), &glyphs);
                // Writing to a string cannot fail.
                let _ = write!(line, " {id:>3} {painted}");
            }
            push_line(page, &line);
        }
    }

    fn legend(&self, page: &mut String) {
        let entry = |look: Look| {
            format!("{} {}", self.term.paint(look.style(), &look.glyph().to_string()), look.words())
        };
        let entries: Vec<String> = seen(self.timeline).into_iter().map(entry).collect();
        push_line(page, &format!("  {}", entries.join("   ")));
    }

    fn numbers(&self, at: Ms, page: &mut String) {
        let looks = |wanted: Look| {
            let here = self.timeline.rows.iter().filter_map(|row| now(row, at));
            here.filter(|segment| Look::of(segment, self.timeline) == wanted).count()
        };
        let (old, new) = (looks(Look::Old), looks(Look::New));
        let live = self.timeline.rows.iter().filter(|row| now(row, at).is_some()).count();
        let Limits { floor, ceiling, .. } = self.limits;
        let good = |text: String| self.term.paint(Style::Green, &text);
        push_line(
            page,
            &format!(
                "  old {old:>3}   new {new:>3}      in service {} at least {floor}      alive {} at most {ceiling}",
                good(format!("{:>3}", old + new)),
                good(format!("{live:>3}")),
            ),
        );
    }

    fn heights(&self, at: Ms, page: &mut String) {
        let past = |(n, column): (usize, &(u32, u32))| {
            let (from, _) = bucket(self.timeline, COLUMNS, n);
            if from < at { *column } else { (0, 0) }
        };
        let columns: Vec<(u32, u32)> = self.columns.iter().enumerate().map(past).collect();
        let frame = Frame { term: self.term, gutter: 17, columns: COLUMNS };
        height(self.timeline, self.limits, frame, &columns, page);
        frame.axis(self.timeline.to - self.timeline.from, page);
    }

    fn told(&self, at: Ms, page: &mut String) {
        let told = self.moments.partition_point(|moment| moment.at <= at);
        let first = told.saturating_sub(LINES);
        let shown = self.moments.get(first..told).unwrap_or_default();
        for (n, moment) in shown.iter().enumerate() {
            let when = format!("{:>7}", clock(moment.at - self.timeline.from));
            let say = cut(&moment.say, WIDE - 11);
            let style = if n + 1 == shown.len() { Style::Plain } else { Style::Dim };
            push_line(
                page,
                &format!(
                    "  {}  {}",
                    self.term.paint(Style::Dim, &when),
                    self.term.paint(style, &say)
                ),
            );
        }
        for _ in shown.len()..LINES {
            page.push('\n');
        }
    }
}

/// What goes on with it at a moment.
fn now(row: &Row, at: Ms) -> Option<&Segment> {
    row.segments.iter().find(|segment| segment.from <= at && at < segment.to).or_else(|| {
        let last = row.segments.last()?;
        (row.gone.is_none() && at >= last.to).then_some(last)
    })
}

/// Who comes takes the first place that is free.
fn berths(timeline: &Timeline) -> Vec<Vec<&Row>> {
    let mut berths: Vec<Vec<&Row>> = Vec::new();
    let mut rows: Vec<&Row> = timeline.rows.iter().collect();
    rows.sort_by_key(|row| row.created.max(timeline.from));
    for row in rows {
        let free = |berth: &&mut Vec<&Row>| {
            berth.last().is_none_or(|last| last.gone.is_some_and(|gone| gone <= row.created))
        };
        match berths.iter_mut().find(free) {
            Some(berth) => berth.push(row),
            None => berths.push(vec![row]),
        }
    }
    berths
}

#[cfg(test)]
mod tests {
    use super::super::moments::moments;
    use super::super::pacer::FRAMES;
    use super::*;
    use crate::sim::{run, showpiece};

    #[test]
    fn every_frame_has_the_same_height_and_fits_a_small_terminal() {
        let scenario = showpiece().unwrap();
        let (outcome, limits) = (run(&scenario), Limits::of(&scenario));
        let told = moments(&scenario, &outcome, limits);
        let film = Film::new(&outcome, limits, &told, Term::PLAIN);
        let (from, to) = (outcome.timeline.from, outcome.timeline.to);
        let mut heights = Vec::new();
        for n in 0..=FRAMES {
            let frame = film.at(from + (to - from) * n / FRAMES);
            assert!(frame.lines().all(|line| width(line) <= WIDE), "{frame}");
            heights.push(frame.lines().count());
        }
        assert!(heights.iter().all(|tall| *tall == heights[0] && *tall <= TALL), "{heights:?}");
    }
}
