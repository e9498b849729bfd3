//! Notifies the loop when the nodes of a cluster become unknown, or known again: a pool at rest would learn it at its
//! next look, minutes later.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::model::journal::Refused;
use crate::model::time::Span;

/// How often the leader looks whether the nodes of each cluster are known. This makes no call.
const LOOKS: Span = Span::seconds(2);

/// Ends with the loop.
pub(super) async fn watch_nodes<S, C: MonotonicClock>(handle: Arc<Handle<S, C>>) {
    let Handle { clock, production, pools, turns, .. } = &*handle;
    let mut known = KnownClusters::default();
    loop {
        for cluster in known.changes(production.clusters().nodes_known()) {
            let specs = Arc::clone(&pools.borrow().specs);
            for policy in specs.iter().map(|spec| &spec.policy) {
                let is_its = policy.cluster.as_ref().is_some_and(|of| of.as_str() == cluster);
                if is_its && !turns.news_of_nodes(policy.name.clone()).await {
                    return;
                }
            }
        }
        clock.sleep_until(clock.now().plus(LOOKS)).await;
    }
}

/// Whether the nodes of each cluster were known at the last look.
#[derive(Debug, Default)]
struct KnownClusters<'a>(BTreeMap<&'a str, bool>);

impl<'a> KnownClusters<'a> {
    /// The clusters whose nodes were known at the last look and are not now, or the other way round.
    fn changes(
        &mut self,
        now: impl Iterator<Item = (&'a str, Result<(), Refused>)>,
    ) -> Vec<&'a str> {
        let mut changed = Vec::new();
        for (cluster, known) in now {
            // The turn that asked a cluster first has its answer.
            let before = self.0.insert(cluster, known.is_ok());
            if before.is_none_or(|before| before == known.is_ok()) {
                continue;
            }
            match known {
                Ok(()) => tracing::info!(cluster, "its nodes are known again"),
                Err(refused) => {
                    let why = refused.message.unwrap_or_else(|| refused.refusal.name().into());
                    tracing::warn!(cluster, "its nodes are not known: {why}");
                }
            }
            changed.push(cluster);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::journal::Refusal;

    #[test]
    fn each_change_is_news_once_and_the_first_look_is_none() {
        let mut known = KnownClusters::default();
        for (now, changed) in [
            (vec![], vec![]),
            (vec![("prod", true), ("trial", false)], vec![]),
            (vec![("prod", true), ("trial", false)], vec![]),
            (vec![("prod", false), ("trial", true)], vec!["prod", "trial"]),
            (vec![("prod", false), ("trial", true), ("late", true)], vec![]),
            (vec![("prod", true), ("trial", true), ("late", true)], vec!["prod"]),
        ] {
            let answer = |known| if known { Ok(()) } else { Err(Refused::plain(Refusal::Unclear)) };
            let look = now.iter().map(|(cluster, known)| (*cluster, answer(*known)));
            assert_eq!(known.changes(look), changed, "{now:?}");
        }
    }
}
