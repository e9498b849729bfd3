//! What a rehearsal shows of the pods of nodes and of their drains.

use crate::model::time::Span;
use crate::sim::{RunOutcome, Scenario, TimelineRow, TimelineState};

/// How long nodes were drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrainTimes {
    pub longest: Span,
    /// In drains after which the machine was back in service, all together.
    pub blocked: Span,
}

impl DrainTimes {
    pub fn of(rows: &[TimelineRow]) -> Self {
        let mut times = DrainTimes::default();
        for row in rows {
            for (at, drain) in row.segments.iter().enumerate() {
                if drain.doing != TimelineState::Draining {
                    continue;
                }
                let took = Span::from_millis(drain.to - drain.from);
                times.longest = times.longest.max(took);
                let next = row.segments.get(at + 1).map(|next| next.doing);
                if matches!(next, Some(TimelineState::Serving | TimelineState::Settling)) {
                    times.blocked = times.blocked.plus(took);
                }
            }
        }
        times
    }
}

/// How often a pod was moved on average. `None`: the machines have no pods.
pub fn moves_each(scenario: &Scenario, outcome: &RunOutcome) -> Option<f64> {
    let per_node = scenario.cluster.as_ref()?.pods_per_node;
    let pods = u64::from(per_node) * u64::from(scenario.set.capacity);
    let hundredths = outcome.pod_moves.saturating_mul(100).checked_div(pods)?;
    Some(hundredths as f64 / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Segment;

    #[test]
    fn drains_that_gave_up_are_told_from_those_that_ended() {
        let row = |segments: &[(TimelineState, i64)]| {
            let mut from = 0;
            let segments = segments.iter().map(|(doing, seconds)| {
                let to = from + seconds * 1_000;
                let segment = Segment { from, to, doing: *doing, model: 0 };
                from = to;
                segment
            });
            TimelineRow {
                id: "1".into(),
                vm: "vm".into(),
                zone: None,
                created: 0,
                drained: None,
                gone: None,
                segments: segments.collect(),
            }
        };
        use TimelineState::{Deleting, Draining, Serving};
        let blocked =
            row(&[(Serving, 9), (Draining, 50), (Serving, 60), (Draining, 20), (Deleting, 5)]);
        let smooth = row(&[(Serving, 9), (Draining, 70), (Deleting, 5)]);
        let times = DrainTimes::of(&[blocked, smooth]);
        assert_eq!((times.longest, times.blocked), (Span::seconds(70), Span::seconds(50)));
        assert_eq!(DrainTimes::of(&[]), DrainTimes::default());
    }
}
