//! The load that a whole pool carries, over time, and what a metric reads of it.

use crate::model::size::{MetricMode, is_news};
use crate::model::time::{Span, Time};
use crate::world::Millis;

const DAY: Millis = Span::days(1).millis();

/// Points, and straight lines between them.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCurve {
    points: Vec<(Millis, f64)>,
    repeats: bool,
}

/// A straight line from one moment until another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLine {
    pub from: Millis,
    pub to: Millis,
    pub begins: f64,
    pub ends: f64,
}

impl LoadLine {
    /// The load at a moment within the line.
    fn at(&self, at: Millis) -> f64 {
        let part = (at - self.from) as f64 / (self.to - self.from).max(1) as f64;
        self.begins + (self.ends - self.begins) * part
    }

    /// The part between these moments.
    pub(super) fn within(&self, from: Millis, to: Millis) -> Option<LoadLine> {
        let (from, to) = (self.from.max(from), self.to.min(to));
        let line = LoadLine { from, to, begins: self.at(from), ends: self.at(to) };
        (from < to).then_some(line)
    }

    /// When the load is above `limit`, if it ever is.
    pub fn above(&self, limit: f64) -> Option<(Millis, Millis)> {
        // What binary fractions lose.
        let limit = limit + 1e-9;
        let crosses = || {
            let part = (limit - self.begins) / (self.ends - self.begins);
            self.from + (part * (self.to - self.from) as f64) as Millis
        };
        match (self.begins > limit, self.ends > limit) {
            (false, false) => None,
            (true, true) => Some((self.from, self.to)),
            (true, false) => Some((self.from, crosses())),
            (false, true) => Some((crosses(), self.to)),
        }
    }
}

impl LoadCurve {
    /// `None`: there is no point, or the times do not ascend.
    pub fn new(points: &[(Time, f64)]) -> Option<Self> {
        let points: Vec<(Millis, f64)> = points.iter().map(|(at, l)| (at.millis(), *l)).collect();
        let ((first, _), (last, _)) = (points.first()?, points.last()?);
        let repeats = last - first == DAY;
        points.is_sorted_by(|a, b| a.0 < b.0).then_some(Self { points, repeats })
    }

    /// It covers one day exactly, so every day is like that one.
    pub const fn repeats(&self) -> bool {
        self.repeats
    }

    pub const fn rows(&self) -> usize {
        self.points.len()
    }

    /// The first and the last point.
    pub fn ends(&self) -> (Time, Time) {
        let at = |point: Option<&(Millis, f64)>| Time::from_millis(point.map_or(0, |(at, _)| *at));
        (at(self.points.first()), at(self.points.last()))
    }

    pub fn at(&self, at: Time) -> f64 {
        let at = at.millis();
        self.lines(at, at + 1).first().map_or(0.0, |line| line.begins)
    }

    /// The curve between these moments. Before its first point it is level, and after its last one if it does not repeat.
    pub fn lines(&self, from: Millis, to: Millis) -> Vec<LoadLine> {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        if self.repeats {
            let day = |at: Millis| (at - first.0).div_euclid(DAY);
            for n in day(from)..=day(to - 1) {
                self.between(from, to, n * DAY, &mut lines);
            }
            return lines;
        }
        let level = |from: Millis, to: Millis, load: f64| {
            (from < to).then_some(LoadLine { from, to, begins: load, ends: load })
        };
        lines.extend(level(from, to.min(first.0), first.1));
        self.between(from, to, 0, &mut lines);
        lines.extend(level(from.max(last.0), to, last.1));
        lines
    }

    /// The lines between its points, this much later.
    fn between(&self, from: Millis, to: Millis, later: Millis, lines: &mut Vec<LoadLine>) {
        let before = self.points.partition_point(|(at, _)| at + later <= from).saturating_sub(1);
        let begun = self.points.get(before..).unwrap_or_default();
        for pair in begun.windows(2) {
            let [(begin, begins), (end, ends)] = pair else { continue };
            if begin + later >= to {
                break;
            }
            let (begins, ends) = (*begins, *ends);
            let line = LoadLine { from: begin + later, to: end + later, begins, ends };
            lines.extend(line.within(from, to));
        }
    }
}

/// What a metric server knows of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadReading {
    pub load: f64,
    /// The machines that carry it.
    pub serving: u32,
}

impl LoadReading {
    /// `None`: no machine serves, and there is no average.
    pub fn value(self, mode: MetricMode) -> Option<f64> {
        match mode {
            MetricMode::Total => Some(self.load),
            MetricMode::Average if self.serving == 0 => None,
            MetricMode::Average => Some(self.load / f64::from(self.serving)),
        }
    }

    /// A turn that read `before` would read something else now.
    pub fn is_news(self, before: Self, mode: MetricMode) -> bool {
        let Some(now) = self.value(mode) else { return false };
        before.value(mode).is_none_or(|read| is_news(now, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = Span::hours(1).millis();

    fn curve(points: &[(Millis, f64)]) -> LoadCurve {
        let points: Vec<(Time, f64)> =
            points.iter().map(|(hour, load)| (Time::from_millis(hour * HOUR), *load)).collect();
        LoadCurve::new(&points).unwrap_or_else(|| panic!("{points:?}"))
    }

    fn at(curve: &LoadCurve, minutes: Millis) -> f64 {
        curve.at(Time::from_millis(minutes * 60_000))
    }

    #[test]
    fn between_points_the_load_is_a_straight_line() {
        let curve = curve(&[(1, 100.0), (3, 200.0), (4, 0.0)]);
        assert!(!curve.repeats());
        for (minutes, load) in
            [(-600, 100.0), (0, 100.0), (60, 100.0), (90, 125.0), (180, 200.0), (210, 100.0)]
        {
            assert!(
                (at(&curve, minutes) - load).abs() < 1e-6,
                "{minutes}: {}",
                at(&curve, minutes)
            );
        }
        for minutes in [240, 241, 60_000] {
            assert!(at(&curve, minutes).abs() < 1e-6, "the last value stays at {minutes}");
        }
    }

    #[test]
    fn a_curve_of_one_day_exactly_is_every_day() {
        let daily = curve(&[(0, 10.0), (12, 50.0), (24, 20.0)]);
        assert!(daily.repeats());
        for day in [-2, 0, 1, 30] {
            let minutes = |hour: Millis| (day * 24 + hour) * 60;
            let loads = [0, 6, 12, 18].map(|hour| at(&daily, minutes(hour)).to_string());
            assert_eq!(loads, ["10", "30", "50", "35"], "day {day}");
        }
        for ends in [23, 25, 48] {
            let other = curve(&[(0, 10.0), (ends, 20.0)]);
            assert!(!other.repeats() && (at(&other, 60 * 99) - 20.0).abs() < 1e-6, "{ends}");
        }
    }

    #[test]
    fn lines_cover_the_time_without_a_gap() {
        for curve in [
            curve(&[(0, 10.0), (12, 50.0), (24, 20.0)]),
            curve(&[(5, 10.0), (7, 50.0)]),
            curve(&[(200, 1.0)]),
        ] {
            let lines = curve.lines(HOUR, 77 * HOUR);
            assert_eq!(lines.first().map(|line| line.from), Some(HOUR));
            assert_eq!(lines.last().map(|line| line.to), Some(77 * HOUR));
            assert!(lines.windows(2).all(|pair| pair[0].to == pair[1].from), "{lines:?}");
        }
    }

    #[test]
    fn points_that_do_not_ascend_are_no_curve() {
        let time = Time::from_millis;
        assert_eq!(LoadCurve::new(&[]), None);
        assert_eq!(LoadCurve::new(&[(time(5), 1.0), (time(5), 2.0)]), None);
        assert_eq!(LoadCurve::new(&[(time(5), 1.0), (time(4), 2.0)]), None);
    }

    #[test]
    fn an_average_needs_a_machine_that_serves() {
        let reading = |load, serving| LoadReading { load, serving };
        assert_eq!(reading(90.0, 3).value(MetricMode::Average), Some(30.0));
        assert_eq!(reading(90.0, 0).value(MetricMode::Average), None);
        assert_eq!(reading(90.0, 0).value(MetricMode::Total), Some(90.0));
        let news = |now, mode| reading(now, 2).is_news(reading(100.0, 2), mode);
        assert!(!news(105.0, MetricMode::Total) && news(106.0, MetricMode::Average));
        assert!(reading(100.0, 3).is_news(reading(100.0, 2), MetricMode::Average));
        assert!(!reading(100.0, 3).is_news(reading(100.0, 2), MetricMode::Total));
    }
}
