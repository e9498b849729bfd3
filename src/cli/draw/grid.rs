//! A timeline as a grid of cells: machines as lines, time as columns.

use super::axis::AxisTime;
use super::look::DrawStyle;
use super::steps::bucket;
use crate::cli::text::{cut, plain, width};
use crate::sim::{Timeline, TimelineRow};

/// Longest label; longer ones are cut.
pub const LABEL: usize = 20;

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

/// `m7` for one machine, `m0-1,5` for several, or the first name and how many more.
fn label(group: &[&TimelineRow]) -> String {
    let numbers: Option<Vec<u64>> = group.iter().map(|row| row.id.parse().ok()).collect();
    match (group, numbers) {
        ([], _) => String::new(),
        ([one], _) => name(&one.id),
        (_, Some(numbers)) => format!("m{}", ranges(numbers)),
        ([first, more @ ..], None) => {
            let more = format!(", {} more", more.len());
            cut(&plain(&first.id), LABEL.saturating_sub(width(&more))) + &more
        }
    }
}

/// `0-2,5` for 0, 1, 2 and 5, in any order.
fn ranges(mut numbers: Vec<u64>) -> String {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let run = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        few => few.iter().map(u64::to_string).collect(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_every_machine_of_its_line() {
        let row = |id: &str| TimelineRow {
            id: id.into(),
            vm: id.into(),
            zone: None,
            created: 0,
            drained: None,
            gone: None,
            segments: Vec::new(),
        };
        let label = |ids: &[&str]| {
            let rows: Vec<TimelineRow> = ids.iter().map(|id| row(id)).collect();
            label(&rows.iter().collect::<Vec<_>>())
        };
        assert_eq!(label(&["7"]), "m7");
        assert_eq!(label(&["0", "1"]), "m0-1");
        assert_eq!(label(&["5", "1", "0", "2", "9"]), "m0-2,5,9");
        assert_eq!(label(&["web_1a2b3c4d", "web_2"]), "web_1a2b3c4d, 1 more");
        assert_eq!(label(&["long-name_1a2b3c4d", "x", "y"]), "long-name_1…, 2 more");
    }
}
