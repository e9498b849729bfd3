//! The same picture as a standalone SVG.

use super::DrawLimits;
use super::axis::clock;
use super::canvas::{Anchor, Canvas, Heading, LEFT, escape};
use super::chart::{self, Chart};
use super::grid::{name, ordered};
use super::look::{DrawStyle, seen};
use crate::sim::{Timeline, TimelineRow};

/// Space above the machines, for the title and the legend.
const TOP: i64 = 92;
/// Maximum height of all machines together, unless their lines would be thinner than `THINNEST`.
const TALL: i64 = 1_500;
/// Limits of the thickness of a machine's line.
const THICKEST: i64 = 14;
const THINNEST: i64 = 2;
/// Thinner lines have no names.
const NAMED: i64 = 9;
/// The gap above the size chart.
const GAP: i64 = 44;

pub fn svg(timeline: &Timeline, limits: DrawLimits, heading: Heading) -> String {
    let rows = ordered(timeline);
    let thick = (TALL / (rows.len() as i64).max(1)).clamp(THINNEST, THICKEST);
    let top = TOP + thick * rows.len() as i64 + GAP;
    let bottom = top + chart::TALL;
    let chart = Chart::of(std::iter::once((timeline, limits)));
    let mut canvas = Canvas::new(bottom + 52, heading, heading.line);
    canvas.legend(seen(timeline).into_iter().map(|look| (look.colour(), look.words())));
    chart.axis(TOP - 4, bottom, &mut canvas);
    for (n, row) in rows.into_iter().enumerate() {
        machine(row, timeline, &chart, (TOP + thick * n as i64, thick), &mut canvas);
    }
    let say = "available (green) and all machines (grey), between floor and ceiling";
    canvas.text("d", (LEFT, top - 10), Anchor::Start, say);
    chart.draw(timeline, limits, bottom, &mut canvas);
    canvas.finish()
}

fn machine(
    row: &TimelineRow,
    timeline: &Timeline,
    chart: &Chart,
    (y, thick): (i64, i64),
    canvas: &mut Canvas,
) {
    let from = timeline.from;
    let tall = if thick > 3 { thick - 2 } else { thick };
    let id = name(&row.id);
    canvas.add(format_args!("<g>"));
    if thick >= NAMED {
        canvas.text("n", (LEFT - 8, y + tall - 2), Anchor::End, &id);
    }
    let id = escape(&id);
    for segment in row.segments.iter().filter(|segment| segment.to > from) {
        let look = DrawStyle::of(segment, timeline);
        let (begins, ends) = (segment.from.max(from) - from, segment.to - from);
        let x = chart.x(begins);
        let wide = (chart.x(ends) - x).max(1);
        canvas.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\" fill=\"{}\"><title>{id} {}, {} to {}</title></rect>",
            look.colour(),
            look.words(),
            clock(begins),
            clock(ends)
        ));
    }
    canvas.add(format_args!("</g>"));
}
