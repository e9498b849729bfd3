//! Draws in a terminal: the machines, the size of the pool, the axis and the legend.

use super::DrawLimits;
use super::axis::{self, marks};
use super::grid::{Grid, LABEL, grid};
use super::look::{DrawStyle, seen};
use super::steps::columns;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, cut, plain, width};
use crate::sim::Timeline;

/// Columns of time if the width is unlimited.
const USUAL: usize = 72;
/// The fewest columns of time; fewer would show nothing.
const FEWEST: usize = 20;
/// Columns that a mark on the axis needs.
const MARK: usize = 9;
/// Lines of the size chart: most pools vary within fewer.
const TALL: u32 = 9;

/// The position and the width of a picture.
#[derive(Debug, Clone, Copy)]
pub struct PageFrame {
    pub term: Term,
    /// Columns before the picture, for labels.
    pub gutter: usize,
    pub columns: usize,
}

impl PageFrame {
    pub fn new(term: Term, labels: impl Iterator<Item = usize>) -> PageFrame {
        let gutter = labels.max().unwrap_or(0).min(LABEL) + 4;
        let fits = |wide: usize| wide.saturating_sub(gutter + 1).max(FEWEST);
        let columns = term.width.map_or(USUAL, fits);
        PageFrame { term, gutter, columns }
    }

    fn label(&self, text: &str) -> String {
        let text = &cut(&plain(text), self.gutter.saturating_sub(4));
        let pad = self.gutter.saturating_sub(2 + width(text));
        format!("  {}{}", self.term.paint(Style::Dim, text), " ".repeat(pad))
    }

    /// A line of cells; each run of equal cells is painted once.
    pub fn cells(&self, cells: &[Option<DrawStyle>]) -> String {
        let mut line = String::new();
        for run in cells.chunk_by(|a, b| a == b) {
            let Some(first) = run.first() else { continue };
            let glyph = first.map_or(' ', DrawStyle::glyph).to_string().repeat(run.len());
            line.push_str(&self.term.paint(first.map_or(Style::Plain, DrawStyle::style), &glyph));
        }
        line
    }

    /// The line of marks below or above a picture.
    pub fn axis(&self, span: axis::AxisTime, page: &mut String) {
        let mut line = String::new();
        for mark in marks(span, self.columns / MARK) {
            let at = (mark * self.columns as axis::AxisTime / span.max(1)) as usize;
            let name = axis::name(mark);
            if at >= width(&line) && at + width(&name) <= self.columns + 2 {
                line.push_str(&" ".repeat(at - width(&line)));
                line.push_str(&name);
                line.push(' ');
            }
        }
        push_line(
            page,
            &format!("{}{}", self.label(""), self.term.paint(Style::Dim, line.trim_end())),
        );
    }
}

/// Machines as lines, then the size of the pool, with one axis and a legend.
pub fn timeline(timeline: &Timeline, limits: DrawLimits, term: Term, lines: usize) -> String {
    let labels = grid(timeline, 1, lines);
    let names = ["ceiling", "floor"].map(|word| width(word) + 6);
    let frame =
        PageFrame::new(term, labels.lines.iter().map(|line| width(&line.label)).chain(names));
    let grid = grid(timeline, frame.columns, lines);
    let mut page = String::new();
    if grid.each > 1 {
        let machines = count(timeline.rows.len(), "machine");
        let say = format!("{machines} on {} lines, {} a line", grid.lines.len(), grid.each);
        push_line(&mut page, &format!("  {}", term.paint(Style::Dim, &say)));
    }
    machines(&grid, frame, &mut page);
    frame.axis(timeline.to - timeline.from, &mut page);
    page.push('\n');
    height(timeline, limits, frame, &columns(timeline, frame.columns), &mut page);
    page.push('\n');
    legend(timeline, &grid, term, &mut page);
    page
}

fn machines(grid: &Grid, frame: PageFrame, page: &mut String) {
    for line in &grid.lines {
        push_line(page, &format!("{}{}", frame.label(&line.label), frame.cells(&line.cells)));
    }
}

/// The number of available (full) and of all (light) machines, level by level from the ceiling down to the floor.
pub fn height(
    timeline: &Timeline,
    limits: DrawLimits,
    frame: PageFrame,
    columns: &[(u32, u32)],
    page: &mut String,
) {
    let heights = timeline.heights();
    let top = limits.ceiling.max(heights.highest_live).max(1);
    let bottom = limits.floor.min(heights.lowest_available).max(1);
    let step = (top - bottom + 1).div_ceil(TALL).max(1);
    let mut level = top;
    loop {
        let reaches = |limit: u32| level >= limit && level.saturating_sub(step) < limit;
        let word = match () {
            () if reaches(limits.ceiling) => format!("ceiling {:>4}", limits.ceiling),
            () if reaches(limits.floor) => format!("floor   {:>4}", limits.floor),
            () => format!("        {level:>4}"),
        };
        let cell = |(available, live): &(u32, u32)| {
            if *available >= level {
                Some(DrawStyle::New)
            } else {
                (*live >= level).then_some(DrawStyle::Old)
            }
        };
        let cells: Vec<Option<DrawStyle>> = columns.iter().map(cell).collect();
        push_line(page, &format!("{}{}", frame.label(&word), frame.cells(&cells)));
        if level <= bottom {
            break;
        }
        level = level.saturating_sub(step).max(bottom);
    }
}

fn legend(timeline: &Timeline, grid: &Grid, term: Term, page: &mut String) {
    let entry = |look: DrawStyle| {
        let glyph = look.glyph().to_string().repeat(2);
        format!("{} {}", term.paint(look.style(), &glyph), look.words())
    };
    let entries: Vec<String> = seen(timeline).into_iter().map(entry).collect();
    push_line(page, &format!("  machines  {}", entries.join("  ")));
    if let Some(line) = grid.lines.first().filter(|_| grid.each > 1) {
        let label = cut(&line.label, LABEL);
        push_line(page, &format!("  labels    {label} share a line; trouble shows first"));
    }
    let full = term.paint(DrawStyle::New.style(), "██");
    let light = term.paint(DrawStyle::Old.style(), "░░");
    push_line(page, &format!("  height    {full} available  {light} existing, not available"));
}
