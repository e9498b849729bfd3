//! The size of a pool over days: what was desired, what served and what was out of service, with the load below.

use std::fmt::Write as _;

use super::axis::{self, AxisTime, marks};
use super::canvas::{Anchor, Canvas, Heading, LEFT, WIDE};
use super::look::DrawStyle;
use super::page::PageFrame;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::sim::{LoadCurve, SizeHistory, SizeStep};

/// Columns of a page at most.
const PAGE: usize = 80;
/// Columns before the picture: two, the label, two.
const GUTTER: usize = 17;
/// The fewest columns of time.
const FEWEST: usize = 20;
/// Lines of the machines, and of the load.
const TALL: u32 = 10;
const LOAD_TALL: usize = 3;

/// What a level of the chart was, with words for the legend.
const LEGEND: [(DrawStyle, &str); 4] = [
    (DrawStyle::New, "available"),
    (DrawStyle::Failed, "desired, not available"),
    (DrawStyle::Old, "available above the desired number"),
    (DrawStyle::OutOfService, "out of service and watched"),
];

#[derive(Debug, Clone, Copy)]
pub struct SizePicture<'a> {
    pub history: &'a SizeHistory,
    pub load: Option<&'a LoadCurve>,
}

/// The look of the n-th machine.
fn look(step: &SizeStep, level: u32) -> Option<DrawStyle> {
    match level {
        _ if level <= step.available.min(step.desired) => Some(DrawStyle::New),
        _ if level <= step.available => Some(DrawStyle::Old),
        _ if level <= step.desired => Some(DrawStyle::Failed),
        _ => (level <= height(step)).then_some(DrawStyle::OutOfService),
    }
}

fn height(step: &SizeStep) -> u32 {
    step.available.max(step.desired) + step.gray
}

impl SizePicture<'_> {
    fn span(&self) -> AxisTime {
        (self.history.to - self.history.from).max(1)
    }

    fn top(&self) -> u32 {
        self.history.steps.iter().map(height).max().unwrap_or(0).max(1)
    }

    /// Start and end of a column.
    fn column(&self, n: usize, of: usize) -> (AxisTime, AxisTime) {
        let edge =
            |n: usize| self.history.from + self.span() * n as AxisTime / of.max(1) as AxisTime;
        (edge(n), edge(n + 1))
    }

    /// The highest load in each column.
    fn loads(&self, columns: usize) -> Option<Vec<f64>> {
        let load = self.load?;
        let highest = |n| {
            let (from, to) = self.column(n, columns);
            let lines = load.lines(from, to.max(from + 1));
            lines.iter().map(|line| line.begins.max(line.ends)).fold(0.0, f64::max)
        };
        Some((0..columns).map(highest).collect())
    }

    /// For each column how long each look of a level lasted; the heaviest look is drawn, as of machines.
    fn cells(&self, level: u32, columns: usize) -> Vec<Option<DrawStyle>> {
        let mut intervals = self.history.intervals().peekable();
        let cell = |n| {
            let (from, to) = self.column(n, columns);
            let mut lasts = LEGEND.map(|(look, _)| (look, 0));
            let mut absent = 0;
            while let Some((step, end)) = intervals.peek() {
                let within = (*end).min(to) - step.at.max(from);
                match look(step, level) {
                    Some(look) => {
                        lasts.iter_mut().filter(|l| l.0 == look).for_each(|l| l.1 += within);
                    }
                    None => absent += within,
                }
                if *end > to {
                    break;
                }
                intervals.next();
            }
            let heavy = |(look, lasts): &(DrawStyle, AxisTime)| lasts * look.weight();
            let best = lasts.into_iter().max_by_key(heavy).filter(|best| best.1 > 0)?;
            (heavy(&best) >= absent).then_some(best.0)
        };
        (0..columns).map(cell).collect()
    }

    /// For a terminal, or plain.
    pub fn page(&self, term: Term) -> String {
        let wide = term.width.map_or(PAGE, |wide| wide.min(PAGE));
        let columns = wide.saturating_sub(GUTTER + 1).max(FEWEST);
        let frame = PageFrame { term, gutter: GUTTER, columns };
        let mut page = String::new();
        let line = |page: &mut String, label: &str, cells: &str| {
            let label = term.paint(Style::Dim, &format!("{label:>width$}", width = GUTTER - 4));
            push_line(page, format!("  {label}  {cells}").trim_end());
        };
        let step = self.top().div_ceil(TALL);
        let lines = self.top().div_ceil(step);
        for level in (1..=lines).rev().map(|n| n * step) {
            let label = if level == lines * step {
                format!("machines {level:>4}")
            } else {
                level.to_string()
            };
            // A line of several machines is drawn when more than half of them are there.
            line(&mut page, &label, &frame.cells(&self.cells(level - step / 2, columns)));
        }
        frame.axis(self.span(), &mut page);
        if let Some(loads) = self.loads(columns) {
            let highest = loads.iter().copied().fold(0.0, f64::max);
            for n in (0..LOAD_TALL).rev() {
                let label = match n {
                    0 => "0".to_owned(),
                    _ if n == LOAD_TALL - 1 => format!("load {:>8}", number(highest)),
                    _ => String::new(),
                };
                let cells: String = loads.iter().map(|load| block(*load, highest, n)).collect();
                line(&mut page, &label, &cells);
            }
        }
        page.push('\n');
        for half in LEGEND.chunks(if wide < PAGE { 1 } else { 2 }) {
            let entry = |(look, words): &(DrawStyle, &str)| {
                format!("{} {words}", term.paint(look.style(), &look.glyph().to_string().repeat(2)))
            };
            let entries: Vec<String> = half.iter().map(entry).collect();
            push_line(&mut page, &format!("  {}", entries.join("  ")));
        }
        page
    }
}

/// The part of a load that is in the n-th line from below.
fn block(load: f64, highest: f64, n: usize) -> char {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let eighths = (load / highest.max(f64::MIN_POSITIVE) * (8 * LOAD_TALL) as f64).round() as usize;
    BLOCKS.get(eighths.saturating_sub(8 * n).min(8)).copied().unwrap_or(' ')
}

/// With one digit after the point, or none.
pub fn number(of: f64) -> String {
    ((of * 10.0).round() / 10.0).to_string()
}

/// Space above the machines, and between them and the load.
const ABOVE: i64 = 92;
const GAP: i64 = 44;
const SVG_TALL: i64 = 240;
const SVG_LOAD_TALL: i64 = 80;
const DESIRED: &str = "#1d4ed8";
const LOAD: &str = "#7c3aed";

impl SizePicture<'_> {
    pub fn svg(&self, heading: Heading) -> String {
        let machines = ABOVE + SVG_TALL;
        let bottom = machines + if self.load.is_some() { GAP + SVG_LOAD_TALL } else { 0 };
        let mut canvas = Canvas::new(bottom + 52, heading, heading.line);
        let looks = LEGEND.into_iter().map(|(look, words)| (look.colour(), words));
        let lines = [(DESIRED, "desired"), (LOAD, "load")];
        let lines = lines.into_iter().take(1 + usize::from(self.load.is_some()));
        canvas.legend(looks.chain(lines));
        for mark in marks(self.span(), 9) {
            let x = self.x(self.history.from + mark);
            canvas.add(format_args!("<path class=\"g\" d=\"M{x} {}V{bottom}\"/>", ABOVE - 4));
            canvas.text("d", (x, bottom + 18), Anchor::Middle, &axis::name(mark));
        }
        canvas.text("d", (LEFT + WIDE / 2, bottom + 38), Anchor::Middle, "virtual time");
        self.areas(machines, &mut canvas);
        if let Some(loads) = self.loads(WIDE as usize) {
            curve(&loads, bottom, &mut canvas);
        }
        canvas.finish()
    }

    fn x(&self, at: AxisTime) -> i64 {
        let after = (at - self.history.from).clamp(0, self.span());
        LEFT + (after * WIDE + self.span() / 2) / self.span()
    }

    /// The area under a number, or its line.
    fn steps(&self, bottom: i64, number: impl Fn(&SizeStep) -> u32) -> String {
        let mut path = String::new();
        for step in &self.history.steps {
            let y = bottom - i64::from(number(step)) * SVG_TALL / i64::from(self.top());
            // Writing to a string cannot fail.
            let _ = match path.is_empty() {
                true => write!(path, "M{LEFT} {y}"),
                false => write!(path, "H{}V{y}", self.x(step.at)),
            };
        }
        let _ = write!(path, "H{}", self.x(self.history.to));
        path
    }

    /// Each area covers the lower part of the one before it.
    fn areas(&self, bottom: i64, canvas: &mut Canvas) {
        type Height = fn(&SizeStep) -> u32;
        let areas: [(DrawStyle, Height); 4] = [
            (DrawStyle::OutOfService, height),
            (DrawStyle::Failed, |step| step.available.max(step.desired)),
            (DrawStyle::Old, |step| step.available),
            (DrawStyle::New, |step| step.available.min(step.desired)),
        ];
        for (look, number) in areas {
            let words =
                LEGEND.into_iter().find(|(of, _)| *of == look).map_or("", |(_, words)| words);
            canvas.add(format_args!(
                "<path fill=\"{}\" d=\"{}V{bottom}H{LEFT}Z\"><title>{words}</title></path>",
                look.colour(),
                self.steps(bottom, number)
            ));
        }
        canvas.add(format_args!(
            "<path fill=\"none\" stroke=\"{DESIRED}\" stroke-width=\"1.5\" d=\"{}\"><title>desired</title></path>",
            self.steps(bottom, |step| step.desired)
        ));
        ends(bottom, SVG_TALL, &self.top().to_string(), canvas);
    }
}

fn curve(loads: &[f64], bottom: i64, canvas: &mut Canvas) {
    let highest = loads.iter().copied().fold(0.0, f64::max);
    let mut path = String::new();
    for (n, load) in loads.iter().enumerate() {
        let tall = load / highest.max(f64::MIN_POSITIVE) * SVG_LOAD_TALL as f64;
        let sign = if n == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{sign}{} {}", LEFT + n as i64, bottom - tall.round() as i64);
    }
    canvas.add(format_args!(
        "<path fill=\"none\" stroke=\"{LOAD}\" stroke-width=\"1.5\" d=\"{path}\"><title>load</title></path>"
    ));
    ends(bottom, SVG_LOAD_TALL, &number(highest), canvas);
}

/// The zero line, and the numbers at both ends of a chart.
fn ends(bottom: i64, tall: i64, highest: &str, canvas: &mut Canvas) {
    canvas.add(format_args!("<path class=\"z\" d=\"M{LEFT} {bottom}H{}\"/>", LEFT + WIDE));
    canvas.text("d", (LEFT - 8, bottom + 4), Anchor::End, "0");
    canvas.text("d", (LEFT - 8, bottom - tall + 8), Anchor::End, highest);
}
