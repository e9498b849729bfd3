//! The size of a pool over time, from the record of a run: what was desired, what served, what existed.

use super::load::LoadCurve;
use super::outcome::RunOutcome;
use super::timeline::{Timeline, TimelineState};
use crate::model::time::Span;
use crate::world::Millis;

/// The numbers from `at` until the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeStep {
    pub at: Millis,
    pub desired: u32,
    pub available: u32,
    /// Out of service and watched.
    pub gray: u32,
    pub existing: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeHistory {
    pub from: Millis,
    pub to: Millis,
    /// The first is at `from`.
    pub steps: Vec<SizeStep>,
    /// What waited for a person, and from when until when.
    pub waits: Vec<(&'static str, Millis, Millis)>,
}

/// The longest time without a break that something was so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestTime {
    pub from: Millis,
    pub lasts: Span,
}

impl LongestTime {
    /// Of times in order; those that touch are one.
    fn of(times: impl Iterator<Item = (Millis, Millis)>) -> Option<LongestTime> {
        let mut longest: Option<LongestTime> = None;
        let mut open: Option<(Millis, Millis)> = None;
        for (from, to) in times.filter(|(from, to)| from < to) {
            let from = open.filter(|(_, ended)| *ended == from).map_or(from, |(from, _)| from);
            open = Some((from, to));
            let lasts = Span::from_millis(to - from);
            if longest.is_none_or(|known| known.lasts < lasts) {
                longest = Some(LongestTime { from, lasts });
            }
        }
        longest
    }
}

#[derive(Debug, Clone, Copy)]
enum SizeChange {
    Desired(u32),
    Available(i32),
    Gray(i32),
    Existing(i32),
}

impl SizeHistory {
    /// Until `to` at the latest.
    pub fn of(outcome: &RunOutcome, to: Millis) -> Self {
        let timeline = &outcome.timeline;
        let (from, to) = (timeline.from, timeline.to.min(to));
        let mut changes = machines(timeline);
        for (n, sample) in outcome.sizes.iter().enumerate() {
            // Until the first turn, the size is what that turn finds.
            let at = if n == 0 { from } else { sample.at.millis() };
            changes.push((at, SizeChange::Desired(sample.desired)));
        }
        changes.sort_by_key(|(at, _)| *at);
        let mut now = SizeStep { at: from, desired: 0, available: 0, gray: 0, existing: 0 };
        let mut steps = vec![now];
        for (at, change) in changes.into_iter().filter(|(at, _)| *at < to) {
            let add = |number: u32, n: i32| number.saturating_add_signed(n);
            match change {
                SizeChange::Desired(desired) => now.desired = desired,
                SizeChange::Available(n) => now.available = add(now.available, n),
                SizeChange::Gray(n) => now.gray = add(now.gray, n),
                SizeChange::Existing(n) => now.existing = add(now.existing, n),
            }
            now.at = at.max(from);
            match steps.last_mut().filter(|last| last.at == now.at) {
                Some(last) => *last = now,
                None => steps.push(now),
            }
        }
        let same = |a: &SizeStep, b: &SizeStep| SizeStep { at: b.at, ..*a } == *b;
        steps.dedup_by(|later, earlier| same(earlier, later));
        let ends = outcome.sizes.iter().skip(1).map(|next| next.at.millis()).chain([to]);
        let waits = outcome.sizes.iter().zip(ends);
        let waits = waits.filter_map(|(of, end)| Some((of.waits?, of.at.millis(), end.min(to))));
        Self { from, to, waits: waits.collect(), steps }
    }

    /// The steps, each with its end.
    pub fn intervals(&self) -> impl Iterator<Item = (&SizeStep, Millis)> {
        let ends = self.steps.iter().skip(1).map(|step| step.at).chain([self.to]);
        self.steps.iter().zip(ends)
    }

    /// The fewest and the most desired.
    pub fn bounds(&self) -> (u32, u32) {
        let all = || self.steps.iter().map(|step| step.desired);
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }

    /// How often the desired number rose, and fell.
    pub fn moves(&self) -> (u32, u32) {
        let count = |moved: fn(u32, u32) -> bool| {
            let pairs = self.steps.iter().zip(self.steps.iter().skip(1));
            pairs.filter(|(before, after)| moved(before.desired, after.desired)).count() as u32
        };
        (count(|before, after| after > before), count(|before, after| after < before))
    }

    /// The hours of all machines together.
    pub fn machine_hours(&self, number: fn(&SizeStep) -> u32) -> f64 {
        let each = self.intervals().map(|(step, end)| i64::from(number(step)) * (end - step.at));
        each.sum::<Millis>() as f64 / Span::hours(1).millis() as f64
    }

    /// The longest time that fewer served than desired.
    pub fn below_desired(&self) -> Option<LongestTime> {
        self.longest(|step| step.available < step.desired)
    }

    /// The longest time that a machine was out of service and watched.
    pub fn watched(&self) -> Option<LongestTime> {
        self.longest(|step| step.gray > 0)
    }

    fn longest(&self, holds: fn(&SizeStep) -> bool) -> Option<LongestTime> {
        let times = self.intervals().filter(|(step, _)| holds(step));
        LongestTime::of(times.map(|(step, end)| (step.at, end)))
    }

    /// The longest time that each serving machine carried more than `limit`.
    pub fn overloaded(&self, load: &LoadCurve, limit: f64) -> Option<LongestTime> {
        let lines = load.lines(self.from, self.to);
        let mut lines = lines.iter().peekable();
        let mut over = Vec::new();
        for (step, end) in self.intervals() {
            let most = limit * f64::from(step.available);
            while let Some(line) = lines.peek() {
                over.extend(line.within(step.at, end).and_then(|line| line.above(most)));
                if line.to > end {
                    break;
                }
                lines.next();
            }
        }
        LongestTime::of(over.into_iter())
    }

    /// What waited longest for a person.
    pub fn waited(&self) -> Option<(&'static str, LongestTime)> {
        let of = |hold: &'static str| {
            let times = self.waits.iter().filter(|(what, ..)| *what == hold);
            Some((hold, LongestTime::of(times.map(|(_, from, to)| (*from, *to)))?))
        };
        self.waits.iter().filter_map(|(hold, ..)| of(hold)).max_by_key(|(_, time)| time.lasts)
    }
}

fn machines(timeline: &Timeline) -> Vec<(Millis, SizeChange)> {
    let mut changes = Vec::new();
    for row in &timeline.rows {
        changes.push((row.created, SizeChange::Existing(1)));
        changes.extend(row.gone.map(|gone| (gone, SizeChange::Existing(-1))));
        for segment in &row.segments {
            let change = match segment.doing {
                TimelineState::Serving => SizeChange::Available,
                TimelineState::OutOfService => SizeChange::Gray,
                _ => continue,
            };
            changes.push((segment.from, change(1)));
            changes.push((segment.to, change(-1)));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Time;

    const HOUR: Millis = Span::hours(1).millis();

    /// From each hour on: desired, available, gray, existing. Ten hours.
    fn history(steps: &[(Millis, [u32; 4])]) -> SizeHistory {
        let step = |(hour, [desired, available, gray, existing]): &(Millis, [u32; 4])| SizeStep {
            at: hour * HOUR,
            desired: *desired,
            available: *available,
            gray: *gray,
            existing: *existing,
        };
        let steps = steps.iter().map(step).collect();
        SizeHistory { from: 0, to: 10 * HOUR, steps, waits: Vec::new() }
    }

    fn longest(time: Option<LongestTime>) -> Option<(f64, f64)> {
        let hours = |millis: Millis| millis as f64 / HOUR as f64;
        time.map(|time| (hours(time.from), hours(time.lasts.millis())))
    }

    fn rising() -> SizeHistory {
        history(&[
            (0, [2, 2, 0, 2]),
            (3, [5, 2, 0, 2]),
            (4, [5, 4, 0, 5]),
            (5, [5, 5, 0, 5]),
            (7, [2, 3, 2, 5]),
            (8, [2, 2, 3, 5]),
            (9, [3, 3, 0, 3]),
        ])
    }

    #[test]
    fn numbers_are_those_of_the_steps() {
        let rising = rising();
        assert_eq!(rising.bounds(), (2, 5));
        assert_eq!(rising.moves(), (2, 1));
        let hours = [rising.machine_hours(|s| s.desired), rising.machine_hours(|s| s.existing)];
        assert_eq!(hours.map(|hours| hours.round() as i64), [6 + 20 + 4 + 3, 6 + 2 + 25 + 3]);
        assert_eq!(longest(rising.below_desired()), Some((3.0, 2.0)), "two steps, one time");
        assert_eq!(longest(rising.watched()), Some((7.0, 2.0)));
        let level = history(&[(0, [2, 2, 0, 2])]);
        assert_eq!((level.moves(), level.below_desired()), ((0, 0), None));
    }

    #[test]
    fn a_load_above_what_serves_is_timed_to_the_crossing() {
        let curve = |points: &[(Millis, f64)]| {
            let points: Vec<(Time, f64)> =
                points.iter().map(|(hour, l)| (Time::from_millis(hour * HOUR), *l)).collect();
            LoadCurve::new(&points).unwrap_or_else(|| panic!("{points:?}"))
        };
        for (points, limit, said) in [
            // Two machines carry 200 until 1:00, and 4:00 ends it with four.
            (&[(0, 100.0), (2, 300.0), (10, 300.0)][..], 100.0, Some((1.0, 3.0))),
            // The last of three hours of two machines, and the first hour of the rise.
            (&[(0, 0.0), (3, 300.0)], 100.0, Some((2.0, 2.0))),
            (&[(0, 199.0)], 100.0, None),
            (&[(0, 200.0)], 100.0, None),
            (&[(0, 201.0)], 100.0, Some((0.0, 4.0))),
            // A peak between two points of the same step.
            (&[(5, 0.0), (6, 1000.0), (7, 0.0)], 100.0, Some((5.5, 1.0))),
            (&[(0, 1.0)], 1.0, None),
        ] {
            let is = longest(rising().overloaded(&curve(points), limit));
            let near = |(a, b): (f64, f64), (c, d): (f64, f64)| {
                (a - c).abs() < 1e-3 && (b - d).abs() < 1e-3
            };
            assert!(is.is_none() == said.is_none(), "{points:?}: {is:?}");
            assert!(is.zip(said).is_none_or(|(is, said)| near(is, said)), "{points:?}: {is:?}");
        }
        let none = history(&[(0, [1, 0, 0, 1]), (1, [1, 1, 0, 1])]);
        let is = longest(none.overloaded(&curve(&[(0, 5.0)]), 10.0));
        assert_eq!(is, Some((0.0, 1.0)), "no machine carries anything");
    }

    #[test]
    fn what_waits_longest_is_named() {
        let hold = |what, from, to| (what, from * HOUR, to * HOUR);
        let waits = vec![hold("a", 0, 3), hold("b", 3, 5), hold("b", 5, 7), hold("a", 8, 10)];
        let history = SizeHistory { waits, ..rising() };
        let (what, time) = history.waited().map_or(("", None), |(what, time)| (what, Some(time)));
        assert_eq!((what, longest(time)), ("b", Some((3.0, 4.0))));
    }
}
