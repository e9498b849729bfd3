//! The rights in a cluster that its pools need, and whether we have them.

use super::check::Check;
use crate::adapters::kubernetes::{AccessReview, ClusterRight, Clusters};
use crate::model::ids::ClusterName;
use crate::model::journal::{Refusal, Refused};
use crate::model::policy::Policy;

const NAME: &str = "permissions";

const ROLE: &str = "bind this identity to the ClusterRole that `poolkeeper guide operations` shows";

const fn right(verb: &'static str, group: &'static str, resource: &'static str) -> ClusterRight {
    ClusterRight { verb, group, resource, namespace: "" }
}

/// What each pool needs, and for what.
const OF_EACH: &[(ClusterRight, &str)] = &[
    (right("list", "", "nodes"), "to see which nodes its machines are"),
    (right("watch", "", "nodes"), "to see changes of nodes when they happen"),
    (right("patch", "", "nodes"), "to cordon nodes and to mark them"),
    (right("list", "", "pods"), "to see which pods are on a node"),
    (right("create", "", "pods/eviction"), "to evict pods"),
    (right("list", "storage.k8s.io", "volumeattachments"), "to see when volumes are detached"),
];
const DELETE: (ClusterRight, &str) = (
    right("delete", "", "pods"),
    "to end pods that outlast `drain.ladder.evict` (not if `shorterGrace` and `delete` are off)",
);

const DELETE_NODES: (ClusterRight, &str) = (
    right("delete", "", "nodes"),
    "to delete nodes that outlast their machines (not if `drain.nodeDeletion` is off)",
);

/// Doctor reads all budgets, a turn too before nodes leave, and a drain those that count one pod together, to name them.
/// All go on without.
pub(super) const BUDGETS: ClusterRight = right("list", "policy", "poddisruptionbudgets");

/// A drain tells of itself where people look at its node, and goes on without.
const EVENTS: ClusterRight = ClusterRight { namespace: "default", ..right("create", "", "events") };

/// All rights of a daemon whose pools use every feature, and of doctor.
pub fn cluster_role() -> impl Iterator<Item = ClusterRight> {
    OF_EACH.iter().chain([&DELETE, &DELETE_NODES]).map(|(right, _)| *right).chain([BUDGETS, EVENTS])
}

/// What these pools need.
fn needed(pools: &[&Policy]) -> Vec<(ClusterRight, &'static str)> {
    let ends = pools.iter().any(|pool| {
        let ladder = &pool.drain.nodes.ladder;
        ladder.shorter_grace.is_some() || ladder.delete.is_some()
    });
    let deletes = pools.iter().any(|pool| pool.drain.nodes.deletion.is_some());
    let some = [ends.then_some(&DELETE), deletes.then_some(&DELETE_NODES)];
    OF_EACH.iter().chain(some.into_iter().flatten()).copied().collect()
}

/// Asks the cluster, for each right, whether it would let us.
pub(super) async fn checks(
    clusters: &Clusters,
    cluster: &ClusterName,
    pools: &[&Policy],
) -> Vec<Check> {
    let (mut reviews, mut unasked) = (Vec::new(), None);
    let needed = needed(pools);
    for (right, what) in &needed {
        match clusters.may(cluster, right).await {
            Ok(review) => reviews.push((*right, *what, review)),
            Err(refused) => {
                unasked = Some(refused);
                break;
            }
        }
    }
    let mut checks = report(&reviews, needed.len(), unasked.as_ref());
    if unasked.is_none()
        && let Ok(review) = clusters.may(cluster, &EVENTS).await
    {
        checks.extend(without_events(&review));
    }
    checks
}

/// Nothing waits for it.
fn without_events(review: &AccessReview) -> Option<Check> {
    let fault = fault(review);
    let say = format!(
        "{EVENTS} is not held in namespace {}: drains go on, and `kubectl describe node` does not show them{fault}",
        EVENTS.namespace
    );
    (!review.allowed).then(|| Check::note(NAME, say).next(ROLE))
}

fn fault(review: &AccessReview) -> String {
    review.fault.as_ref().map(|fault| format!(" ({fault})")).unwrap_or_default()
}

/// What a refusal says for itself.
pub(super) fn said(refused: &Refused) -> &str {
    refused.message.as_deref().unwrap_or("the cluster takes no requests of ours just now")
}

/// Why the budgets of a cluster are not known, and what helps.
pub(in crate::daemon) fn budgets_unread(refused: &Refused) -> Box<str> {
    let said = said(refused);
    match refused.refusal {
        Refusal::Forbidden => format!("{said}; allow {BUDGETS} to have them named").into(),
        _ => said.into(),
    }
}

/// One check for each right that is missing, and one for all that we have.
fn report(
    reviews: &[(ClusterRight, &'static str, AccessReview)],
    all: usize,
    unasked: Option<&Refused>,
) -> Vec<Check> {
    let missing: Vec<_> = reviews.iter().filter(|(_, _, review)| !review.allowed).collect();
    let held = reviews.len() - missing.len();
    let mut checks = Vec::new();
    if unasked.is_none() {
        checks.push(Check::fine(NAME, format!("{held} of {all} that are needed are held")));
    }
    for (n, (right, what, review)) in missing.iter().enumerate() {
        let fault = fault(review);
        let say = format!("{right} is not held in all namespaces, which is needed {what}{fault}");
        let mut check = Check::finding(NAME, say);
        // One role grants them together.
        if n + 1 == missing.len() {
            check = check.next(ROLE);
        }
        checks.push(check);
    }
    if let Some(refused) = unasked {
        let rest = all - reviews.len();
        let say = format!("whether {rest} of {all} are held could not be asked: {}", said(refused));
        checks.push(Check::unknown(NAME, say));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::{Finding, Fine, Note, Unknown};
    use super::*;
    use crate::model::drain::DrainLadder;
    use crate::model::ids::{PoolName, ScaleSetId};
    use crate::model::journal::Refusal;
    use crate::model::policy::Draft;
    use crate::model::time::Span;

    fn pool(ladder: DrainLadder) -> Policy {
        let set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
        let mut draft = Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(set));
        draft.cluster = Some(ClusterName::new("prod"));
        draft.drain.nodes.ladder = ladder;
        Policy::build(draft).unwrap()
    }

    #[test]
    fn pods_are_deleted_only_by_some_steps_of_the_ladder() {
        let deletes = |shorter_grace, delete| {
            let one = pool(DrainLadder { shorter_grace, delete, ..DrainLadder::default() });
            let needed = needed(&[&one]);
            assert!(needed.iter().all(|(right, _)| cluster_role().any(|of| of == *right)));
            needed.contains(&DELETE)
        };
        let some = Some(Span::minutes(5));
        assert_eq!(
            (deletes(None, None), deletes(some, None), deletes(None, some)),
            (false, true, true)
        );
        let plain = pool(DrainLadder { shorter_grace: None, ..DrainLadder::default() });
        let other = pool(DrainLadder::default());
        assert!(needed(&[&plain, &other]).contains(&DELETE), "one pool of them needs it");
    }

    #[test]
    fn a_right_that_is_missing_is_named_with_its_use() {
        let of = |allowed: &[bool], fault: Option<&str>| -> Vec<_> {
            let each = OF_EACH.iter().zip(allowed).map(|((right, what), allowed)| {
                let fault = fault.filter(|_| !allowed).map(Into::into);
                (*right, *what, AccessReview { allowed: *allowed, fault })
            });
            each.collect()
        };
        let fine = report(&of(&[true; 6], None), 6, None);
        assert_eq!(fine, [Check::fine(NAME, "6 of 6 that are needed are held")]);
        let missing = [true, true, false, true, false, true];
        let told = report(&of(&missing, Some("no such role")), 6, None);
        let outcomes: Vec<_> = told.iter().map(|check| check.outcome).collect();
        assert_eq!(outcomes, [Fine, Finding, Finding]);
        assert_eq!(told[0].say, "4 of 6 that are needed are held");
        let say = "patch nodes is not held in all namespaces, which is needed to cordon nodes and to mark them (no such role)";
        assert_eq!(told[1].say, say);
        assert!(told[2].say.starts_with("create pods/eviction is not held"), "{told:?}");
        assert!(told[1].next.is_none() && told[2].next.is_some(), "one role grants both: {told:?}");
        let late = Refused { message: Some("no".into()), ..Refused::plain(Refusal::Unclear) };
        let told = report(&of(&[true, false], None), 6, Some(&late));
        let outcomes: Vec<_> = told.iter().map(|check| check.outcome).collect();
        assert_eq!(outcomes, [Finding, Unknown]);
        assert_eq!(told[1].say, "whether 4 of 6 are held could not be asked: no");
        assert_eq!(right("list", "policy", "x").to_string(), "list x.policy");
    }

    #[test]
    fn a_right_that_no_drain_waits_for_is_a_note() {
        assert!(cluster_role().any(|of| of == EVENTS));
        assert!(!needed(&[&pool(DrainLadder::default())]).iter().any(|(of, _)| *of == EVENTS));
        let of = |allowed| without_events(&AccessReview { allowed, fault: None });
        assert_eq!(of(true), None);
        let note = of(false).unwrap();
        assert_eq!((note.outcome, note.next.is_some()), (Note, true));
        assert!(note.say.starts_with("create events is not held in namespace default"), "{note:?}");
    }
}
