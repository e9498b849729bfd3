//! Numbers of machines that were read wrongly, and written back.

use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, Wish};
use poolkeeper::world::{Call, Deed, Faults};

use crate::told::{
    born, calls, gone, new_image_after, no_law_broken, policy, pool, raises, same_story,
};

#[test]
fn a_throttled_read_is_no_size() {
    let mut scenario = pool(policy(200, 1, 0, |_| {}));
    let throttled = Faults { throttled: 1.0, ..Faults::default() };
    scenario.deeds = vec![
        (Span::minutes(1), Deed::SetFaults(Box::new(throttled))),
        (Span::minutes(10), Deed::SetFaults(Box::default())),
    ];
    scenario.wishes = vec![(Span::minutes(2), Wish::Count(204))];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert_eq!(raises(&outcome), [(200, 204)]);
    assert_eq!((outcome.lowest_available, outcome.highest_live), (200, 204));
    assert!(gone(&outcome).is_empty());
    assert_eq!(calls(&outcome, Call::DeleteInstances), 0);
    same_story(
        "throttled-read",
        "A pool of 200 machines is asked to grow by 4 while every call is throttled. Elsewhere the failed read counted\n\
         as a size of -1: -1 + 4 = 3 was written, and 197 machines were deleted. Here nothing is written until the size\n\
         has been read, and a size is never written that is lower than the one that was read.",
        &outcome,
    );
}

#[test]
fn a_size_from_a_cache_is_refused() {
    let mut scenario = pool(policy(53, 5, 0, |_| {}));
    scenario.set.capacity = 48;
    scenario.set.instances = Vec::new();
    let old_reads = Faults { stale_set: 1.0, ..Faults::default() };
    // The size of 48 is read and kept; it is 86 before anything is written on it.
    scenario.policy = policy(48, 5, 0, |_| {});
    scenario.deeds = vec![
        (Span::minutes(5), Deed::SetFaults(Box::new(old_reads))),
        (Span::minutes(5), Deed::SetCapacity(86)),
        (Span::minutes(9), Deed::SetFaults(Box::default())),
        new_image_after(20),
    ];
    scenario.wishes =
        vec![(Span::seconds(301), Wish::Count(53)), (Span::minutes(9), Wish::Count(91))];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    assert!(raises(&outcome).iter().all(|(from, to)| to > from), "{:?}", raises(&outcome));
    // Nobody leaves before the new image is there.
    let image_at = outcome.timeline.from + Span::minutes(20).millis();
    let early = gone(&outcome).into_iter().filter(|row| row.gone < Some(image_at)).count();
    assert_eq!(early, 0);
    assert!(outcome.lowest_available >= 48, "{}", outcome.lowest_available);
    assert!(outcome.highest_live <= 91 + 5, "{}", outcome.highest_live);
    same_story(
        "cached-size",
        "Somebody grows a pool from 48 to 86 while reads of the set are minutes old, and the pool file asks for 5 more.\n\
         Elsewhere 48 + 5 = 53 was written over the real 86, and 33 machines were lost. Here the write carries the\n\
         version of the set that was read, is refused, and is decided anew.",
        &outcome,
    );
}

#[test]
fn growth_in_a_paused_rollout_is_not_on_the_new_model() {
    let mut scenario = pool(policy(10, 2, 0, crate::told::owns_image));
    scenario.wishes = vec![
        (Span::minutes(1), Wish::Image(sim::NEW_IMAGE.into())),
        (Span::minutes(12), Wish::Ask(poolkeeper::model::plan::AskVerb::Pause)),
        (Span::minutes(40), Wish::Count(20)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    let since = outcome.timeline.from + Span::minutes(40).millis();
    let late: Vec<_> = born(&outcome).into_iter().filter(|row| row.created >= since).collect();
    for row in &late {
        assert_eq!(
            crate::told::image_of(&outcome, row),
            sim::OLD_IMAGE,
            "{}",
            outcome.story.join("\n")
        );
    }
    same_story(
        "paused-and-grows",
        "A rollout is paused, and then the pool is asked to grow by 10. A scale set has one model, so elsewhere all 10\n\
         came up on the new and unproven one.",
        &outcome,
    );
}

#[test]
fn growth_waits_where_the_model_is_not_ours() {
    let mut scenario = pool(policy(10, 2, 0, |_| {}));
    scenario.deeds = vec![new_image_after(1)];
    scenario.wishes = vec![
        (Span::minutes(12), Wish::Ask(poolkeeper::model::plan::AskVerb::Pause)),
        (Span::minutes(40), Wish::Count(20)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    let since = outcome.timeline.from + Span::minutes(40).millis();
    assert_eq!(born(&outcome).iter().filter(|row| row.created >= since).count(), 0);
    assert!(matches!(outcome.end, End::Waits { .. }), "{:?}", outcome.end);
    same_story(
        "paused-and-grows-model-of-others",
        "The same, where others own the model, so that it cannot be put back: nothing is created, and the hold says\n\
         who has to do what.",
        &outcome,
    );
}
