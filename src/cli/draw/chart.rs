//! The size of a pool over time: all machines and available machines, with numbers, ceiling and floor.

use std::fmt::Write as _;

use super::DrawLimits;
use super::axis::{self, AxisTime, clock, marks};
use super::canvas::{Anchor, Canvas, LEFT, WIDE};
use super::steps::{DrawStep, steps};
use crate::sim::Timeline;

pub const TALL: i64 = 120;
/// Space between the zero line and the first number, where the axis is broken.
const BREAK: i64 = 20;
/// Up to this many machines the chart begins at zero: each is thick enough to see.
const UNBROKEN: i64 = 20;
/// Height of a line of text: labels that are nearer than this would overlap.
const LABEL: i64 = 14;
/// Distances between numbers on the axis.
const STEPS: [i64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];
/// The most distances between numbers.
const MOST: i64 = 5;

pub const COLOURS: [(&str, &str); 3] = [
    ("#2f9e62", "available"),
    ("#dbe3ea", "existing, not available"),
    ("#d6293e", "missing below the floor"),
];

/// The numbers that a chart covers, and its time axis.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// Length of the time axis.
    pub span: AxisTime,
    /// The lowest number above the break; 0: the axis is not broken.
    base: i64,
    highest: i64,
}

impl Chart {
    /// One axis for all of these runs.
    pub fn of<'a>(runs: impl Iterator<Item = (&'a Timeline, DrawLimits)>) -> Self {
        let (mut span, mut lowest, mut highest) = (1, i64::MAX, 0);
        for (timeline, limits) in runs {
            let reached = timeline.heights();
            span = span.max(timeline.to - timeline.from);
            lowest = lowest.min(i64::from(limits.floor.min(reached.lowest_available)));
            highest = highest.max(i64::from(limits.ceiling.max(reached.highest_live)) + 1);
        }
        // A large chart without a break would hide what happens between the limits.
        let lowest = lowest.min(highest);
        let base = (lowest - 1 - (highest - lowest) / 3).max(0);
        Self { span, base: if highest > UNBROKEN { base } else { 0 }, highest }
    }

    pub fn x(&self, after: AxisTime) -> i64 {
        LEFT + (after.clamp(0, self.span) * WIDE + self.span / 2) / self.span
    }

    fn y(&self, bottom: i64, number: i64) -> i64 {
        let gap = if self.base > 0 { BREAK } else { 0 };
        if number <= 0 {
            return bottom;
        }
        let room = (self.highest - self.base).max(1);
        bottom - gap - (number - self.base).max(0) * (TALL - gap) / room
    }

    /// Vertical lines at the marks of the time axis, and their names below.
    pub fn axis(&self, top: i64, bottom: i64, canvas: &mut Canvas) {
        for mark in marks(self.span, 9) {
            let x = self.x(mark);
            canvas.add(format_args!("<path class=\"g\" d=\"M{x} {top}V{bottom}\"/>"));
            canvas.text("d", (x, bottom + 18), Anchor::Middle, &axis::name(mark));
        }
        canvas.text("d", (LEFT + WIDE / 2, bottom + 38), Anchor::Middle, "virtual time");
    }

    /// Draws a run above the zero line at `bottom`.
    pub fn draw(&self, timeline: &Timeline, limits: DrawLimits, bottom: i64, canvas: &mut Canvas) {
        let steps = steps(timeline);
        let end = self.x(timeline.to - timeline.from);
        for (class, live, what) in
            [("live", true, "all machines"), ("avail", false, "available machines")]
        {
            let mut path = format!("M{LEFT} {bottom}");
            for step in &steps {
                let number = if live { step.live } else { step.available };
                let (x, y) = (self.x(step.at - timeline.from), self.y(bottom, i64::from(number)));
                let _ = write!(path, "H{x}V{y}");
            }
            canvas.add(format_args!(
                "<path class=\"{class}\" d=\"{path}H{end}V{bottom}Z\"><title>{what}</title></path>"
            ));
        }
        self.shortage(&steps, timeline, limits.floor, bottom, canvas);
        self.numbers(bottom, canvas);
        self.limits(limits, bottom, canvas);
    }

    /// What is missing below the floor, and when.
    fn shortage(
        &self,
        steps: &[DrawStep],
        timeline: &Timeline,
        floor: u32,
        bottom: i64,
        canvas: &mut Canvas,
    ) {
        let ends = steps.iter().skip(1).map(|step| step.at).chain([timeline.to]);
        for (step, end) in steps.iter().zip(ends).filter(|(step, _)| step.available < floor) {
            let (from, to) = (step.at - timeline.from, end - timeline.from);
            let (x, y) = (self.x(from), self.y(bottom, i64::from(floor)));
            let wide = (self.x(to) - x).max(1);
            let tall = (self.y(bottom, i64::from(step.available)) - y).max(1);
            let (number, from, to) = (step.available, clock(from), clock(to));
            canvas.add(format_args!(
                "<rect class=\"short\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{tall}\"><title>{number} available, {from} to {to}</title></rect>"
            ));
        }
    }

    /// The zero line, the break above it, and the numbers at the left.
    fn numbers(&self, bottom: i64, canvas: &mut Canvas) {
        let right = LEFT + WIDE;
        canvas.add(format_args!("<path class=\"z\" d=\"M{LEFT} {bottom}H{right}\"/>"));
        canvas.text("d", (LEFT - 8, bottom + 4), Anchor::End, "0");
        if self.base > 0 {
            let (y, zigzag) = (bottom - BREAK / 2, "l8 4l8 -4".repeat((WIDE / 16) as usize));
            canvas.add(format_args!("<path class=\"w\" d=\"M{LEFT} {y}{zigzag}\"/>"));
        }
        let room = self.highest - self.base;
        let step = STEPS.into_iter().find(|step| room <= MOST * step).unwrap_or(room.max(1));
        let first = (self.base / step + 1) * step;
        for number in (0..=MOST).map(|n| first + n * step).filter(|n| *n <= self.highest) {
            let y = self.y(bottom, number);
            canvas.add(format_args!("<path class=\"g\" d=\"M{} {y}H{LEFT}\"/>", LEFT - 5));
            canvas.text("d", (LEFT - 8, y + 4), Anchor::End, &number.to_string());
        }
    }

    /// The lines of ceiling and floor, with their names at the right.
    fn limits(&self, limits: DrawLimits, bottom: i64, canvas: &mut Canvas) {
        let right = LEFT + WIDE;
        let lines = [limits.ceiling, limits.floor].map(|n| self.y(bottom, i64::from(n)));
        let labels = apart(lines, bottom);
        let named = [("ceiling", limits.ceiling), ("floor", limits.floor)];
        for (((name, limit), y), label) in named.into_iter().zip(lines).zip(labels) {
            canvas.add(format_args!("<path class=\"l\" d=\"M{LEFT} {y}H{right}\"/>"));
            if label != y {
                let ends = right + 8;
                canvas.add(format_args!("<path class=\"z\" d=\"M{right} {y}L{ends} {label}\"/>"));
            }
            let text = format!("{name} {limit}");
            canvas.text("d", (right + 10, label + 4), Anchor::Start, &text);
        }
    }
}

/// Moves the labels of an upper and a lower line so far apart that they do not overlap, and not below `bottom`.
fn apart([upper, lower]: [i64; 2], bottom: i64) -> [i64; 2] {
    if lower - upper >= LABEL {
        return [upper, lower];
    }
    let below = (i64::midpoint(upper, lower) + LABEL / 2).min(bottom);
    [below - LABEL, below]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(base: i64, highest: i64) -> Chart {
        Chart { span: 1, base, highest }
    }

    #[test]
    fn labels_keep_their_place_or_move_apart() {
        assert_eq!(apart([20, 60], 120), [20, 60]);
        assert_eq!(apart([50, 54], 120), [45, 59]);
        assert_eq!(apart([120, 120], 120), [106, 120]);
        for upper in 0..=120 {
            for lower in upper..=120 {
                let [above, below] = apart([upper, lower], 120);
                assert!(below - above >= LABEL && below <= 120, "{upper} {lower}");
            }
        }
    }

    #[test]
    fn the_axis_begins_at_zero_and_is_broken_only_for_large_pools() {
        let small = chart(0, 20);
        assert_eq!([0, 10, 20].map(|n| small.y(200, n)), [200, 140, 80]);
        let large = chart(28, 32);
        assert_eq!([0, 28, 30, 32].map(|n| large.y(200, n)), [200, 180, 130, 80]);
    }
}
