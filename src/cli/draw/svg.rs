//! The same picture as a standalone SVG: no scripts, no embedded fonts, all text escaped.

use std::fmt::Write as _;

use super::DrawLimits;
use super::axis::{self, AxisTime, clock, marks};
use super::grid::{name, ordered};
use super::look::{DrawStyle, seen};
use super::steps::steps;
use crate::sim::{Timeline, TimelineRow};

/// Width of the picture without its margins.
const WIDE: i64 = 960;
/// Left margin, for machine names and numbers.
const LEFT: i64 = 92;
const RIGHT: i64 = 28;
/// Space above the machines, for the title and the legend.
const TOP: i64 = 92;
/// Maximum height of all machines together, unless their lines would be thinner than `THINNEST`.
const TALL: i64 = 1_500;
/// Limits of the thickness of a machine's line.
const THICKEST: i64 = 14;
const THINNEST: i64 = 2;
/// Thinner lines have no names.
const NAMED: i64 = 9;
/// Height of the size chart, and the gap above it.
const CHART: i64 = 120;
const GAP: i64 = 44;

const STYLE: &str = "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#334155}\
.h{font-size:18px;font-weight:600;fill:#0f172a}.d{fill:#64748b}.n{font-size:9px;fill:#64748b}\
.g{stroke:#e2e8f0}.l{stroke:#b91c1c;stroke-dasharray:5 4;fill:none}\
.live{fill:#dbe3ea}.avail{fill:#2f9e62;fill-opacity:.75}";

/// The text above the picture.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    pub title: &'a str,
    pub line: &'a str,
}

struct Picture<'a> {
    timeline: &'a Timeline,
    svg: String,
    /// Thickness of a machine's line.
    thick: i64,
    rows: Vec<&'a TimelineRow>,
}

pub fn svg(timeline: &Timeline, limits: DrawLimits, heading: Heading) -> String {
    let rows = ordered(timeline);
    let thick = (TALL / (rows.len() as i64).max(1)).clamp(THINNEST, THICKEST);
    let mut picture = Picture { timeline, svg: String::new(), thick, rows };
    picture.head(heading);
    picture.grid();
    picture.machines();
    picture.heights(limits);
    picture.svg.push_str("</svg>\n");
    picture.svg
}

/// Escapes `&`, `<`, `>` and quotes for XML; replaces characters that XML cannot represent with U+FFFD.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

impl Picture<'_> {
    fn add(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = self.svg.write_fmt(text);
        self.svg.push('\n');
    }

    fn x(&self, at: AxisTime) -> i64 {
        let span = (self.timeline.to - self.timeline.from).max(1);
        let at = at.clamp(self.timeline.from, self.timeline.to) - self.timeline.from;
        LEFT + (at * WIDE + span / 2) / span
    }

    /// The y coordinate below the last machine.
    fn bottom(&self) -> i64 {
        TOP + self.thick * self.rows.len() as i64
    }

    fn head(&mut self, heading: Heading) {
        let (wide, tall) = (LEFT + WIDE + RIGHT, self.bottom() + GAP + CHART + 52);
        let (title, line) = (escape(heading.title), escape(heading.line));
        self.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\">"
        ));
        self.add(format_args!(
            "<title>{title}</title>\n<desc>{line}</desc>\n<style>{STYLE}</style>"
        ));
        self.add(format_args!("<rect width=\"{wide}\" height=\"{tall}\" fill=\"#fff\"/>"));
        self.add(format_args!("<text class=\"h\" x=\"20\" y=\"32\">{title}</text>"));
        self.add(format_args!("<text class=\"d\" x=\"20\" y=\"52\">{line}</text>"));
        let mut x = 20;
        for look in seen(self.timeline) {
            let (colour, words) = (look.colour(), look.words());
            self.add(format_args!(
                "<rect x=\"{x}\" y=\"66\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"76\">{words}</text>",
                x + 17
            ));
            x += 34 + 7 * words.chars().count() as i64;
        }
    }

    /// Vertical lines at the marks, through both charts.
    fn grid(&mut self) {
        let bottom = self.bottom() + GAP + CHART;
        for mark in marks(self.timeline.to - self.timeline.from, 9) {
            let x = self.x(self.timeline.from + mark);
            let mark = axis::name(mark);
            self.add(format_args!("<path class=\"g\" d=\"M{x} {}V{bottom}\"/>", TOP - 4));
            self.add(format_args!(
                "<text class=\"d\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>",
                bottom + 18
            ));
        }
        let middle = LEFT + WIDE / 2;
        self.add(format_args!(
            "<text class=\"d\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">virtual time</text>",
            bottom + 38
        ));
    }

    fn machines(&mut self) {
        let (thick, from) = (self.thick, self.timeline.from);
        let tall = if thick > 3 { thick - 2 } else { thick };
        for (n, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            let y = TOP + thick * n as i64;
            let id = escape(&name(&row.id));
            self.svg.push_str("<g>");
            if thick >= NAMED {
                self.add(format_args!(
                    "<text class=\"n\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{id}</text>",
                    LEFT - 8,
                    y + tall - 2
                ));
            }
            for segment in row.segments.iter().filter(|segment| segment.to > from) {
                let look = DrawStyle::of(segment, self.timeline);
                let x = self.x(segment.from);
                let wide = (self.x(segment.to) - x).max(1);
                let (begins, ends) = (segment.from.max(from) - from, segment.to - from);
                self.add(format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\" fill=\"{}\"><title>{id} {}, {} to {}</title></rect>",
                    look.colour(),
                    look.words(),
                    clock(begins),
                    clock(ends)
                ));
            }
            self.svg.push_str("</g>\n");
            self.rows.push(row);
        }
    }

    /// The size chart: all machines and available machines, with the ceiling and the floor.
    fn heights(&mut self, limits: DrawLimits) {
        let reached = self.timeline.heights();
        let highest = i64::from(limits.ceiling.max(reached.highest_live)) + 1;
        // A chart that starts at zero would hide what happens between the limits.
        let lowest = i64::from(limits.floor.min(reached.lowest_available));
        let lowest = (lowest - 1 - (highest - lowest) / 3).max(0);
        let (top, bottom) = (self.bottom() + GAP, self.bottom() + GAP + CHART);
        let y =
            |n: u32| bottom - (i64::from(n) - lowest).max(0) * CHART / (highest - lowest).max(1);
        let steps = steps(self.timeline);
        for (class, live) in [("live", true), ("avail", false)] {
            let mut path = format!("M{LEFT} {bottom}");
            for step in &steps {
                let (x, y) = (self.x(step.at), y(if live { step.live } else { step.available }));
                let _ = write!(path, "H{x}V{y}");
            }
            let what = if live { "all machines" } else { "available machines" };
            self.add(format_args!(
                "<path class=\"{class}\" d=\"{path}H{}V{bottom}Z\"><title>{what}</title></path>",
                LEFT + WIDE
            ));
        }
        for (name, limit) in [("ceiling", limits.ceiling), ("floor", limits.floor)] {
            let y = y(limit);
            self.add(format_args!("<path class=\"l\" d=\"M{LEFT} {y}H{}\"/>", LEFT + WIDE));
            self.add(format_args!(
                "<text class=\"d\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{name} {limit}</text>",
                LEFT - 8,
                y + 4
            ));
        }
        self.add(format_args!(
            "<text class=\"d\" x=\"{LEFT}\" y=\"{}\">available (green) and all machines (grey), between floor and ceiling</text>",
            top - 10
        ));
    }
}
