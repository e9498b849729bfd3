//! Several runs side by side as one SVG: a size chart for each, with the same axes.

use std::fmt::Write as _;

use super::DrawLimits;
use super::canvas::{Anchor, Canvas, Heading, LEFT, WIDE};
use super::chart::{self, Chart};
use crate::cli::text::{cut, plain};
use crate::sim::Timeline;

/// Space above the first panel, for the title and the legend.
const TOP: i64 = 92;
/// Space above each chart, for its name.
const ABOVE: i64 = 40;
/// The most characters of a name, and of what stands beside it.
const NAME: usize = 56;
const RESULT: usize = 64;

/// A run, with its name and its result in words.
#[derive(Debug, Clone, Copy)]
pub struct Panel<'a> {
    pub name: &'a str,
    pub result: &'a str,
    pub timeline: &'a Timeline,
    pub limits: DrawLimits,
}

pub fn panels(heading: Heading, panels: &[Panel]) -> String {
    let each = ABOVE + chart::TALL;
    let bottom = TOP + each * panels.len() as i64;
    let chart = Chart::of(panels.iter().map(|panel| (panel.timeline, panel.limits)));
    let mut said = heading.line.to_owned();
    for panel in panels {
        // Writing to a string cannot fail.
        let _ = write!(said, " {}: {}.", panel.name, panel.result);
    }
    let mut canvas = Canvas::new(bottom + 52, heading, &said);
    canvas.legend(chart::COLOURS.into_iter());
    chart.axis(TOP + ABOVE - 4, bottom, &mut canvas);
    for (n, panel) in panels.iter().enumerate() {
        let top = TOP + each * n as i64;
        let (name, result) = (cut(&plain(panel.name), NAME), cut(&plain(panel.result), RESULT));
        canvas.add(format_args!("<g>"));
        canvas.text("b", (LEFT, top + ABOVE - 12), Anchor::Start, &name);
        canvas.text("d", (LEFT + WIDE, top + ABOVE - 12), Anchor::End, &result);
        chart.draw(panel.timeline, panel.limits, top + each, &mut canvas);
        canvas.add(format_args!("</g>"));
    }
    canvas.finish()
}
