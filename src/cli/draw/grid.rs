//! A timeline as a grid of cells: machines as lines, time as columns.

use super::axis::AxisTime;
use super::look::DrawStyle;
use super::steps::bucket;
use crate::sim::{Timeline, TimelineRow};

/// A line for one machine, or for several that share it.
#[derive(Debug)]
pub struct GridLine {
    pub label: String,
    pub cells: Vec<Option<DrawStyle>>,
}

#[derive(Debug)]
pub struct Grid {
    pub lines: Vec<GridLine>,
    /// Machines per line; the last line may have fewer.
    pub each: usize,
}

/// Machines that existed at the start, by deletion time, then new machines, by creation time: a rollout looks like a
/// staircase.
pub fn ordered(timeline: &Timeline) -> Vec<&TimelineRow> {
    let mut rows: Vec<&TimelineRow> = timeline.rows.iter().collect();
    rows.sort_by_key(|row| {
        let came = row.created >= timeline.from;
        let key = if came { row.created } else { row.gone.unwrap_or(AxisTime::MAX) };
        (came, key)
    });
    rows
}

/// A grid of at most `most` lines.
pub fn grid(timeline: &Timeline, columns: usize, most: usize) -> Grid {
    let rows = ordered(timeline);
    let each = rows.len().div_ceil(most.max(1)).max(1);
    let line = |group: &[&TimelineRow]| GridLine {
        label: label(group),
        cells: cells(group, timeline, columns.max(1)),
    };
    Grid { lines: rows.chunks(each).map(line).collect(), each }
}

/// The label of a machine in a picture: `m7` for a numeric id, or else the name that the cloud assigned.
pub fn name(id: &str) -> String {
    let number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    if number { format!("m{id}") } else { id.to_owned() }
}

fn label(group: &[&TimelineRow]) -> String {
    match group {
        [] => String::new(),
        [one] => name(&one.id),
        [first, more @ ..] => format!("{} +{}", name(&first.id), more.len()),
    }
}

/// How long each look lasted, per column.
type Shares = Vec<[AxisTime; DrawStyle::ALL.len()]>;

fn cells(group: &[&TimelineRow], timeline: &Timeline, columns: usize) -> Vec<Option<DrawStyle>> {
    let mut shares: Shares = vec![[0; DrawStyle::ALL.len()]; columns];
    for row in group {
        for segment in row.segments.iter().filter(|s| s.to > timeline.from) {
            let look = DrawStyle::of(segment, timeline);
            share(&mut shares, timeline, look, segment.from.max(timeline.from), segment.to);
        }
    }
    let cell = |(n, share): (usize, &[AxisTime; DrawStyle::ALL.len()])| {
        let (from, to) = bucket(timeline, columns, n);
        let present: AxisTime = share.iter().sum();
        let absent = (to - from) * group.len() as AxisTime - present;
        let heavy = |(look, long): &(DrawStyle, AxisTime)| (long * look.weight(), *look);
        let looks = DrawStyle::ALL.into_iter().zip(share.iter().copied());
        let best = looks.filter(|(_, long)| *long > 0).max_by_key(heavy)?;
        let mostly_absent = group.len() > 1 && absent > heavy(&best).0.max(present);
        (!mostly_absent).then_some(best.0)
    };
    shares.iter().enumerate().map(cell).collect()
}

fn share(shares: &mut Shares, timeline: &Timeline, look: DrawStyle, from: AxisTime, to: AxisTime) {
    let span = (timeline.to - timeline.from).max(1);
    let columns = shares.len();
    let first = ((from - timeline.from) * columns as AxisTime / span).max(1) as usize - 1;
    let at = DrawStyle::ALL.iter().position(|known| *known == look).unwrap_or(0);
    for (n, share) in shares.iter_mut().enumerate().skip(first) {
        let (begins, ends) = bucket(timeline, columns, n);
        if begins >= to {
            break;
        }
        if let Some(long) = share.get_mut(at) {
            *long += (ends.min(to) - begins.max(from)).max(0);
        }
    }
}
