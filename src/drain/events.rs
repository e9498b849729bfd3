//! Which event a drain writes about its node, and when. Pure.

use std::collections::BTreeSet;

use crate::model::ids::PoolName;
use crate::model::node_event::NodeEvent;
use crate::model::time::{Span, Time};

/// A drain waits for the same pods for so long before it tells: a budget that is merely busy is no news.
// 1 min: a pod that a budget refuses is asked again every 20 s, and another one in its place starts meanwhile.
const BLOCKED_FOR: Span = Span::minutes(1);

/// The least time between two events of one blocked drain.
const APART: Span = Span::minutes(5);

/// Pods, by their uids.
type Uids = BTreeSet<Box<str>>;

/// The events of one drain so far, and the pods that the next one would name.
#[derive(Debug, Clone, Default)]
pub(super) struct DrainEvents {
    /// The pods that do not go, and since when it is exactly these.
    blocked: Option<(Uids, Time)>,
    told: Option<(Uids, Time)>,
    gave_up: bool,
}

impl DrainEvents {
    /// The event that this look is worth. `blocked`: the pods that do not go; `say` names one of them.
    pub fn of_look(
        &mut self,
        pool: &PoolName,
        blocked: Uids,
        say: &str,
        now: Time,
    ) -> Option<NodeEvent> {
        let same = self.blocked.take().filter(|(known, _)| *known == blocked);
        let since = same.map_or(now, |(_, since)| since);
        let is_new = self
            .told
            .as_ref()
            .is_none_or(|(known, at)| *known != blocked && now.since(*at) >= APART);
        let is_due = is_new && !blocked.is_empty() && now.since(since) >= BLOCKED_FOR;
        if is_due {
            self.told = Some((blocked.clone(), now));
        }
        self.blocked = Some((blocked, since));
        is_due.then(|| NodeEvent::DrainBlocked { pool: pool.clone(), say: say.into() })
    }

    /// The last step is over. Told once.
    pub fn of_end(&mut self, pool: &PoolName, say: &str) -> Option<NodeEvent> {
        let is_first = !std::mem::replace(&mut self.gave_up, true);
        is_first.then(|| NodeEvent::DrainGivenUp { pool: pool.clone(), say: say.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::samples::at;

    #[test]
    fn only_what_is_new_and_lasts_is_told() {
        let looks: &[(i64, &[&str], bool)] = &[
            (0, &["a", "b"], false),
            (55, &["a", "b"], false),
            // The budget let one of them go: it is busy, and no more.
            (59, &["b"], false),
            (115, &["b"], false),
            (120, &["b"], true),
            (125, &["b"], false),
            (3_600, &["b"], false),
            (3_605, &[], false),
            (3_700, &[], false),
            (3_705, &["b"], false),
            (3_770, &["b"], false),
            // Others are blocked by now.
            (3_775, &["c"], false),
            (3_835, &["c"], true),
            (3_840, &["d"], false),
            (3_905, &["d"], false),
            (4_130, &["d"], false),
            (4_135, &["d"], true),
        ];
        let (mut events, pool) = (DrainEvents::default(), PoolName::new("web"));
        for (second, pods, is_told) in looks {
            let pods = pods.iter().map(|uid| (*uid).into()).collect();
            let event = events.of_look(&pool, pods, "it", at(*second));
            assert_eq!(event.is_some(), *is_told, "after {second} s: {event:?}");
        }
        assert!(events.of_end(&pool, "it").is_some());
        assert!(events.of_end(&pool, "it").is_none());
    }
}
