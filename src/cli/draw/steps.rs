//! The number of available machines and of all machines over time.

use super::axis::AxisTime;
use crate::sim::{Timeline, TimelineState};

/// The numbers from `at` until the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawStep {
    pub at: AxisTime,
    pub available: u32,
    pub live: u32,
}

/// The steps in order of time; the first is at the start of the timeline.
pub fn steps(timeline: &Timeline) -> Vec<DrawStep> {
    let mut changes: Vec<(AxisTime, i64, i64)> = vec![(timeline.from, 0, 0)];
    for row in &timeline.rows {
        changes.push((row.created.max(timeline.from), 0, 1));
        changes.extend(row.gone.map(|gone| (gone, 0, -1)));
        for segment in row.segments.iter().filter(|s| s.doing == TimelineState::Serving) {
            changes.push((segment.from.max(timeline.from), 1, 0));
            if segment.to < timeline.to {
                changes.push((segment.to, -1, 0));
            }
        }
    }
    changes.sort_by_key(|(at, ..)| *at);
    let (mut available, mut live) = (0, 0);
    let mut steps: Vec<DrawStep> = Vec::new();
    for (at, serves, lives) in changes {
        available += serves;
        live += lives;
        let step = DrawStep { at, available: available.max(0) as u32, live: live.max(0) as u32 };
        match steps.last_mut().filter(|last| last.at == at) {
            Some(last) => *last = step,
            None => steps.push(step),
        }
    }
    steps
}

/// The lowest available count and the highest total count in each column.
pub fn columns(timeline: &Timeline, columns: usize) -> Vec<(u32, u32)> {
    let steps = steps(timeline);
    let column = |n: usize| {
        let (from, to) = bucket(timeline, columns, n);
        let before = steps.partition_point(|step| step.at <= from).saturating_sub(1);
        let inside = steps.iter().skip(before).take_while(|step| step.at < to || step.at <= from);
        inside.fold((u32::MAX, 0), |(low, high), s| (low.min(s.available), high.max(s.live)))
    };
    (0..columns).map(column).collect()
}

/// The start and the end of a column.
pub fn bucket(timeline: &Timeline, columns: usize, n: usize) -> (AxisTime, AxisTime) {
    let (span, columns) = (timeline.to - timeline.from, columns.max(1) as AxisTime);
    let edge = |n: usize| timeline.from + span * n as AxisTime / columns;
    (edge(n), edge(n + 1))
}
