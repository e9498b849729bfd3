//! A timeline as cells: lines of machines, columns of time.

use super::axis::Ms;
use super::look::Look;
use super::steps::bucket;
use crate::sim::{Row, Timeline};

/// One machine, or several that share a line.
#[derive(Debug)]
pub struct Line {
    pub label: String,
    pub cells: Vec<Option<Look>>,
}

#[derive(Debug)]
pub struct Grid {
    pub lines: Vec<Line>,
    /// Machines on a line; the last line may have fewer.
    pub each: usize,
}

/// First those that were there, by their end; then those that came, by their birth: rollouts become stairs.
pub fn ordered(timeline: &Timeline) -> Vec<&Row> {
    let mut rows: Vec<&Row> = timeline.rows.iter().collect();
    rows.sort_by_key(|row| {
        let came = row.created >= timeline.from;
        let key = if came { row.created } else { row.gone.unwrap_or(Ms::MAX) };
        (came, key)
    });
    rows
}

/// At most so many lines.
pub fn grid(timeline: &Timeline, columns: usize, most: usize) -> Grid {
    let rows = ordered(timeline);
    let each = rows.len().div_ceil(most.max(1)).max(1);
    let line = |group: &[&Row]| Line {
        label: label(group),
        cells: cells(group, timeline, columns.max(1)),
    };
    Grid { lines: rows.chunks(each).map(line).collect(), each }
}

/// What a machine is called in a picture: `m7`, or its own name where the cloud gives names.
pub fn name(id: &str) -> String {
    let number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    if number { format!("m{id}") } else { id.to_owned() }
}

fn label(group: &[&Row]) -> String {
    match group {
        [] => String::new(),
        [one] => name(&one.id),
        [first, more @ ..] => format!("{} +{}", name(&first.id), more.len()),
    }
}

/// How long each look was on, in each column.
type Shares = Vec<[Ms; Look::ALL.len()]>;

fn cells(group: &[&Row], timeline: &Timeline, columns: usize) -> Vec<Option<Look>> {
    let mut shares: Shares = vec![[0; Look::ALL.len()]; columns];
    for row in group {
        for segment in row.segments.iter().filter(|s| s.to > timeline.from) {
            let look = Look::of(segment, timeline);
            share(&mut shares, timeline, look, segment.from.max(timeline.from), segment.to);
        }
    }
    let cell = |(n, share): (usize, &[Ms; Look::ALL.len()])| {
        let (from, to) = bucket(timeline, columns, n);
        let present: Ms = share.iter().sum();
        let absent = (to - from) * group.len() as Ms - present;
        let heavy = |(look, long): &(Look, Ms)| (long * look.weight(), *look);
        let looks = Look::ALL.into_iter().zip(share.iter().copied());
        let best = looks.filter(|(_, long)| *long > 0).max_by_key(heavy)?;
        let mostly_absent = group.len() > 1 && absent > heavy(&best).0.max(present);
        (!mostly_absent).then_some(best.0)
    };
    shares.iter().enumerate().map(cell).collect()
}

fn share(shares: &mut Shares, timeline: &Timeline, look: Look, from: Ms, to: Ms) {
    let span = (timeline.to - timeline.from).max(1);
    let columns = shares.len();
    let first = ((from - timeline.from) * columns as Ms / span).max(1) as usize - 1;
    let at = Look::ALL.iter().position(|known| *known == look).unwrap_or(0);
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
