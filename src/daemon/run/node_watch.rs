//! Notifies the loop when the nodes of a cluster become unknown, or known again: a pool at rest would learn it at its
//! next look, minutes later.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ambient::Sleep;
use crate::daemon::clock::MonotonicClock;
use crate::daemon::handle::Handle;
use crate::model::journal::Refused;
use crate::model::time::Span;

/// How often the leader looks whether the nodes of each cluster are known. This makes no call.
const LOOKS: Span = Span::seconds(2);

/// Ends with the loop.
pub(super) async fn watch_nodes<S, C: MonotonicClock>(handle: Arc<Handle<S, C>>) {
    let Handle { clock, production, pools, turns, .. } = &*handle;
    let clusters = || production.clusters().nodes_known().collect();
    let news = |cluster: &str| {
        let specs = Arc::clone(&pools.borrow().specs);
        for policy in specs.iter().map(|spec| &spec.policy) {
            if policy.cluster.as_ref().is_some_and(|of| of.as_str() == cluster) {
                turns.news(&policy.name);
            }
        }
    };
    notice(clock, clusters, news).await;
}

/// Whether the nodes of each cluster that was asked are known, or why not.
type NodesKnown<'a> = Vec<(&'a str, Result<(), Refused>)>;

async fn notice<'a>(
    clock: &impl Sleep,
    clusters: impl Fn() -> NodesKnown<'a>,
    news: impl Fn(&str),
) {
    let mut before: BTreeMap<&str, bool> = BTreeMap::new();
    loop {
        for (cluster, known) in clusters() {
            // The turn that asked a cluster first has its answer.
            let changed =
                before.insert(cluster, known.is_ok()).is_some_and(|was| was != known.is_ok());
            if !changed {
                continue;
            }
            match known {
                Ok(()) => tracing::info!(cluster, "its nodes are known again"),
                Err(refused) => {
                    let why = refused.message.unwrap_or_else(|| refused.refusal.name().into());
                    tracing::warn!(cluster, "its nodes are not known: {why}");
                }
            }
            news(cluster);
        }
        clock.sleep_until(clock.now().plus(LOOKS)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::test_clock::{TestClock, settle};
    use super::*;
    use crate::ambient::Clock;
    use crate::model::journal::Refusal;

    #[tokio::test]
    async fn each_change_is_news_once_and_the_first_look_is_none() {
        let clock = TestClock::new();
        let asked: Mutex<Vec<(&str, bool)>> = Mutex::default();
        let told: Mutex<Vec<String>> = Mutex::default();
        let clusters = || {
            let asked = asked.lock().unwrap();
            let known = |known| if known { Ok(()) } else { Err(Refused::plain(Refusal::Unclear)) };
            asked.iter().map(|(cluster, is)| (*cluster, known(*is))).collect()
        };
        let news = |cluster: &str| told.lock().unwrap().push(cluster.to_owned());
        let mut task = std::pin::pin!(notice(&clock, clusters, news));
        for (now, changed) in [
            (vec![], vec![]),
            (vec![("prod", true), ("trial", false)], vec![]),
            (vec![("prod", true), ("trial", false)], vec![]),
            (vec![("prod", false), ("trial", true)], vec!["prod", "trial"]),
            (vec![("prod", false), ("trial", true), ("late", true)], vec![]),
            (vec![("prod", true), ("trial", true), ("late", true)], vec!["prod"]),
        ] {
            asked.lock().unwrap().clone_from(&now);
            tokio::select! {
                biased;
                () = &mut task => unreachable!("it never ends"),
                () = clock.pass(LOOKS) => {}
            }
            tokio::select! {
                biased;
                () = &mut task => unreachable!("it never ends"),
                () = settle() => {}
            }
            assert_eq!(*told.lock().unwrap(), changed, "{now:?} at {}", clock.now());
            told.lock().unwrap().clear();
        }
    }
}
