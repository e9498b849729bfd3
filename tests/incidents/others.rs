//! Somebody else who changes the pool in the middle of it.

use poolkeeper::ambient::Dice;
use poolkeeper::model::policy::Owner;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, End};
use poolkeeper::world::{ExternalEvent, Which};

use crate::incidents::told::{
    born, gone, new_image_after, no_law_broken, policy, pool, raises, same_story,
};

#[test]
fn surge_ends_beside_another_writer() {
    let theirs = |draft: &mut poolkeeper::model::policy::Draft| draft.owner = Owner::ScaleSet;
    let mut scenario = pool(policy(10, 1, 0, theirs));
    scenario.deeds = vec![new_image_after(1)];
    let mut dice = Dice::from_seed(22);
    // A size between 8 and 14, again and again, for an hour and a half.
    scenario.deeds.extend((1..=45).map(|n| {
        let size = 8 + dice.below(7) as u32;
        (Span::minutes(2 * n), ExternalEvent::SetCapacity(size))
    }));
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert!(outcome.highest_live <= 14 + 1, "{}", outcome.highest_live);
    assert!(raises(&outcome).iter().all(|(from, to)| *to == from + 1), "{:?}", raises(&outcome));
    same_story(
        "other-writer-and-surge",
        "An autoscaler owns the size of a pool and writes a random one every two minutes, while machines get a new image.\n\
         Elsewhere the surge was written and never taken back, so it was read as the new size, and surged upon: without\n\
         end. Here what we added is known as ours, one at a time, and the rollout ends.",
        &outcome,
    );
}

#[test]
fn progress_survives_who_deletes_the_new_machines() {
    let mut scenario = pool(policy(5, 2, 0, |_| {}));
    scenario.deeds = vec![new_image_after(1)];
    // New machines are empty, so the autoscaler takes them first.
    for minutes in [6, 9, 12, 15] {
        scenario.deeds.push((Span::minutes(minutes), ExternalEvent::DeleteInstance(Which::Newest)));
    }
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert!(outcome.highest_live <= 7, "{}", outcome.highest_live);
    // Each old machine is replaced once, and each one they took is made once more.
    assert_eq!((born(&outcome).len(), gone(&outcome).len()), (9, 9));
    assert!(outcome.lowest_available >= 5 - 1, "{}", outcome.lowest_available);
    same_story(
        "autoscaler-takes-new-ones",
        "An autoscaler takes the newest machine of a rollout four times, since it is empty. Elsewhere each of them was\n\
         counted as progress (\"7/5 nodes completed\") and old nodes went in its place. Here progress is what serves now:\n\
         each loss is made up for before the next old machine goes.",
        &outcome,
    );
}

#[test]
fn a_rollout_goes_on_beside_the_cluster_autoscaler() {
    let theirs = |draft: &mut poolkeeper::model::policy::Draft| draft.owner = Owner::ScaleSet;
    let mut scenario = pool(policy(6, 1, 0, theirs));
    // It begins to remove the emptiest node every few minutes, and ends with the trouble.
    scenario.cluster = Some(ClusterSpec { autoscaler: 0.1, ..ClusterSpec::default() });
    scenario.calm_after = Span::hours(1);
    let size = |minutes, to| (Span::minutes(minutes), ExternalEvent::SetCapacity(to));
    // Two more for its pods, and later a number that it knew a minute ago.
    scenario.deeds = vec![new_image_after(1), size(5, 8), size(20, 6)];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    same_story(
        "cluster-autoscaler-beside-a-rollout",
        "The cluster-autoscaler owns the size of a pool: it drains the emptiest nodes, deletes their machines by id, and\n\
         writes the capacity, once by an old number. Elsewhere it took the new machine of a rollout, empty as it was, over\n\
         and over. Here that one is kept from it until its predecessor is gone, its own deletions are the new size, and\n\
         the rollout ends.",
        &outcome,
    );
}
