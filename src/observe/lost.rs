//! Whether a pool lost so much at once that others may suspect their own view instead.

use crate::model::machine::{Condition, Lifecycle, Machine};
use crate::model::time::{Span, Time};

/// Machines lost within this time are lost together.
const TOGETHER: Span = Span::minutes(1);

/// If more than half of the machines that served turned unready within a minute: when the last of them did.
pub fn lost_together(machines: &[Machine]) -> Option<Time> {
    let served = |m: &&Machine| m.ever_available && m.lifecycle == Lifecycle::InService;
    let many = machines.iter().filter(served).count() / 2 + 1;
    let unready = machines.iter().filter(served).filter(|m| m.condition == Condition::Unready);
    let mut turned: Vec<Time> = unready.map(|m| m.since).collect();
    turned.sort_unstable();
    let mut bursts = turned.windows(many).filter_map(|together| {
        let (first, last) = (*together.first()?, *together.last()?);
        (last.since(first) <= TOGETHER).then_some(last)
    });
    bursts.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::InstanceId;

    fn turned(since: &[i64], serving: usize) -> Option<i64> {
        let at = |seconds: i64| Time::from_millis(seconds * 1_000);
        let machine = |n: usize, condition| {
            Machine::new(InstanceId::new(n.to_string()), None, at(0), condition)
        };
        let ill = since
            .iter()
            .enumerate()
            .map(|(n, since)| Machine { since: at(*since), ..machine(n, Condition::Unready) });
        let well = (0..serving).map(|n| machine(100 + n, Condition::Ready));
        let machines: Vec<Machine> = ill.chain(well).collect();
        lost_together(&machines).map(|at| at.millis() / 1_000)
    }

    #[test]
    fn more_than_half_within_a_minute_is_a_loss() {
        assert_eq!(turned(&[10, 20, 30], 2), Some(30));
        assert_eq!(turned(&[10, 20, 30], 3), None, "half is not more than half");
        assert_eq!(turned(&[10, 40, 71], 2), None, "too far apart");
        assert_eq!(turned(&[10, 500, 520, 540], 1), Some(540));
        assert_eq!(turned(&[], 5), None);
        assert_eq!(turned(&[10], 0), Some(10));
        assert_eq!(turned(&[], 0), None);
    }
}
