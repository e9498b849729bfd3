//! Rollouts that deleted, cordoned or left to die what they were to keep.

use poolkeeper::model::policy::RemovalOrder;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, End, Scenario};
use poolkeeper::world::{ExternalEvent, InstanceId, SECOND, Spread, Which};

use crate::incidents::told::{
    born, gone, image_of, most_out, new_image_after, no_law_broken, policy, pool, same_story,
};

#[test]
fn a_fresh_replacement_is_not_surplus() {
    let newest = |draft: &mut poolkeeper::model::policy::Draft| {
        draft.rollout.order = Some(RemovalOrder::Newest);
    };
    let mut scenario = pool(policy(5, 1, 0, newest));
    scenario.deeds = vec![new_image_after(1)];
    // Replacements are long on their way: eight minutes of boot, and ready for a minute.
    scenario.settings.durations.boot = Spread::new(480.0, 0.1, 300.0, 900.0);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    let new_gone =
        gone(&outcome).into_iter().filter(|row| image_of(&outcome, row) == sim::NEW_IMAGE).count();
    assert_eq!((new_gone, born(&outcome).len(), gone(&outcome).len()), (0, 5, 5));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (5, 6));
    same_story(
        "self-deleting-rollout",
        "Five machines get a new image, newest to be removed first, and replacements take long to serve. Elsewhere the\n\
         replacement that was not ready yet looked like one too many, was the newest, and was deleted; the next one was\n\
         made, and deleted, for ever. Here no replacement is ever taken while an old machine stays.",
        &outcome,
    );
}

/// Twelve of twenty are called Failed by the cloud, of which eleven serve on; nine fall ill for so long.
fn many_failed(minutes: i64) -> Scenario {
    let mut scenario = pool(policy(20, 1, 0, |_| {}));
    let at = Span::minutes(5);
    let ids: Vec<InstanceId> = (0..20).map(|id| InstanceId::from(&*id.to_string())).collect();
    let ill = ids.iter().skip(11).map(|id| {
        (at, ExternalEvent::Sicken(Which::Id(id.clone()), Some(Span::minutes(minutes).millis())))
    });
    let failed =
        ids.iter().take(12).map(|id| (at, ExternalEvent::FailInstance(Which::Id(id.clone()))));
    scenario.deeds = ill.chain(failed).collect();
    scenario
}

#[test]
fn many_failed_at_once_are_not_deleted() {
    let outcome = sim::run(&many_failed(8));
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    let (lost, made) = (gone(&outcome).len(), born(&outcome).len());
    assert_eq!((lost, made), (0, 0), "{}", outcome.story.join("\n"));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (11, 20));
    same_story(
        "mass-failed",
        "In a pool of 20 machines the cloud calls 12 Failed, of which 11 serve on, and 9 fall ill for eight minutes.\n\
         Elsewhere every machine that the cloud called Failed was deleted in one pass, before any budget was looked at.\n\
         Here who serves is left alone, and who is ill is given time: all of them come back.",
        &outcome,
    );
}

#[test]
fn who_serves_is_never_repaired() {
    let outcome = sim::run(&many_failed(45));
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    let lost: Vec<&str> = gone(&outcome).iter().map(|row| &*row.id).collect();
    let serve: Vec<String> = (0..11).map(|id: u32| id.to_string()).collect();
    assert!(!lost.iter().any(|id| serve.iter().any(|serves| serves == id)), "{lost:?}");
    assert_eq!((outcome.lowest_available, outcome.highest_live), (11, 21));
    // The breaker stops repair until a machine that was made since serves: the cloud makes good ones, so they are ill.
    let told = outcome.timeline.from + Span::minutes(17).millis();
    let early = gone(&outcome).iter().filter(|row| row.gone < Some(told)).count();
    assert!(early <= 1, "{early}\n{}", outcome.story.join("\n"));
}

#[test]
fn no_more_are_cordoned_than_are_replaced() {
    let mut scenario = pool(policy(10, 2, 1, |draft| draft.rollout.ramp = None));
    let blocked = ClusterSpec { drain_seconds: 120.0, blocked: 0.2, ..ClusterSpec::default() };
    scenario.cluster = Some(ClusterSpec { blocked_for: 600 * SECOND, ..blocked });
    scenario.deeds = vec![new_image_after(1)];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert!(most_out(&outcome) <= 3, "{} cordoned at once", most_out(&outcome));
    assert!(most_out(&outcome) > 0);
    assert!(outcome.lowest_available >= 9, "{}", outcome.lowest_available);
    assert!(outcome.highest_live <= 12, "{}", outcome.highest_live);
    assert!(outcome.most_evictions <= 4, "a pod was moved {} times", outcome.most_evictions);
    same_story(
        "all-cordoned",
        "Ten nodes get a new image, at most 2 more and 1 fewer, and some drains are held up for ten minutes. Elsewhere all\n\
         old nodes were cordoned at the start; the load balancer took them all out at once. Here a node is cordoned when\n\
         its own drain begins, so at most 3 are, and a drain that comes to nothing is put back.",
        &outcome,
    );
}
