//! Drawing in a terminal: the machines, the height of the pool, the axis and the legend.

use super::Limits;
use super::axis::{self, marks};
use super::grid::{Grid, grid};
use super::look::{Look, seen};
use super::steps::columns;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{count, cut, plain, width};
use crate::sim::Timeline;

/// Columns of time where a line may be as long as it likes.
const USUAL: usize = 72;
/// Fewer would show nothing.
const FEWEST: usize = 20;
/// Longer names are cut.
const LABEL: usize = 20;
/// Columns that one mark of the axis needs.
const MARK: usize = 9;
/// Lines of the height: most pools move within fewer.
const TALL: u32 = 9;

/// Where a picture begins, and how wide it is.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub term: Term,
    /// Columns before the picture, for labels.
    pub gutter: usize,
    pub columns: usize,
}

impl Frame {
    pub fn new(term: Term, labels: impl Iterator<Item = usize>) -> Frame {
        let gutter = labels.max().unwrap_or(0).min(LABEL) + 4;
        let fits = |wide: usize| wide.saturating_sub(gutter + 1).max(FEWEST);
        let columns = term.width.map_or(USUAL, fits);
        Frame { term, gutter, columns }
    }

    fn label(&self, text: &str) -> String {
        let text = &cut(&plain(text), self.gutter.saturating_sub(4));
        let pad = self.gutter.saturating_sub(2 + width(text));
        format!("  {}{}", self.term.paint(Style::Dim, text), " ".repeat(pad))
    }

    /// A line of cells, painted in runs.
    pub fn cells(&self, cells: &[Option<Look>]) -> String {
        let mut line = String::new();
        for run in cells.chunk_by(|a, b| a == b) {
            let Some(first) = run.first() else { continue };
            let glyph = first.map_or(' ', Look::glyph).to_string().repeat(run.len());
            line.push_str(&self.term.paint(first.map_or(Style::Plain, Look::style), &glyph));
        }
        line
    }

    /// The line of marks under, or over, a picture.
    pub fn axis(&self, span: axis::Ms, page: &mut String) {
        let mut line = String::new();
        for mark in marks(span, self.columns / MARK) {
            let at = (mark * self.columns as axis::Ms / span.max(1)) as usize;
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

/// Machines as lines, then the height of the pool, with one axis and a legend.
pub fn timeline(timeline: &Timeline, limits: Limits, term: Term, lines: usize) -> String {
    let labels = grid(timeline, 1, lines);
    let names = ["ceiling", "floor"].map(|word| width(word) + 6);
    let frame = Frame::new(term, labels.lines.iter().map(|line| width(&line.label)).chain(names));
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
    legend(timeline, term, &mut page);
    page
}

fn machines(grid: &Grid, frame: Frame, page: &mut String) {
    for line in &grid.lines {
        push_line(page, &format!("{}{}", frame.label(&line.label), frame.cells(&line.cells)));
    }
}

/// How many serve (full) and how many live (light), level by level from the ceiling down to the floor.
pub fn height(
    timeline: &Timeline,
    limits: Limits,
    frame: Frame,
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
                Some(Look::New)
            } else {
                (*live >= level).then_some(Look::Old)
            }
        };
        let cells: Vec<Option<Look>> = columns.iter().map(cell).collect();
        push_line(page, &format!("{}{}", frame.label(&word), frame.cells(&cells)));
        if level <= bottom {
            break;
        }
        level = level.saturating_sub(step).max(bottom);
    }
}

fn legend(timeline: &Timeline, term: Term, page: &mut String) {
    let entry = |look: Look| {
        let glyph = look.glyph().to_string().repeat(2);
        format!("{} {}", term.paint(look.style(), &glyph), look.words())
    };
    let entries: Vec<String> = seen(timeline).into_iter().map(entry).collect();
    push_line(page, &format!("  machines  {}", entries.join("  ")));
    let full = term.paint(Look::New.style(), "██");
    let light = term.paint(Look::Old.style(), "░░");
    push_line(page, &format!("  height    {full} available  {light} live, not available"));
}
