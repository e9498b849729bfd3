//! Numbers of machines that were read wrongly, and written back.

use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::{Draft, UnconfirmedFall};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::size::{
    Decimal, GrayPolicy, GrayState, MetricMode, MetricSize, SizePolicy, SizeProfile, SizeSource,
};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, Scenario, UserAction};
use poolkeeper::world::{Bad, ExternalEvent, FrontDoorCall, WorldFaults};

use crate::incidents::told::{
    born, calls, gone, image_of, new_image_after, no_law_broken, owns_image, policy, pool, raises,
    same_story,
};

#[test]
fn a_throttled_read_is_no_size() {
    let mut scenario = pool(policy(200, 1, 0, |_| {}));
    let throttled = WorldFaults { throttled: 1.0, ..WorldFaults::default() };
    scenario.deeds = vec![
        (Span::minutes(1), ExternalEvent::SetFaults(Box::new(throttled))),
        (Span::minutes(10), ExternalEvent::SetFaults(Box::default())),
    ];
    scenario.wishes = vec![(Span::minutes(2), UserAction::Count(204))];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert_eq!(raises(&outcome), [(200, 204)]);
    assert_eq!((outcome.lowest_available, outcome.highest_live), (200, 204));
    assert!(gone(&outcome).is_empty());
    assert_eq!(calls(&outcome, FrontDoorCall::DeleteInstances), 0);
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
    let mut scenario = pool(policy(48, 5, 0, |_| {}));
    let old_reads = WorldFaults { stale_set: 1.0, ..WorldFaults::default() };
    // The size of 48 is still read when it is 86.
    scenario.deeds = vec![
        (Span::minutes(5), ExternalEvent::SetFaults(Box::new(old_reads))),
        (Span::minutes(5), ExternalEvent::SetCapacity(86)),
        (Span::minutes(9), ExternalEvent::SetFaults(Box::default())),
    ];
    scenario.wishes = vec![
        (Span::seconds(301), UserAction::Count(53)),
        (Span::minutes(9), UserAction::Count(91)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    assert!(raises(&outcome).iter().all(|(from, to)| to > from), "{:?}", raises(&outcome));
    assert!(gone(&outcome).is_empty());
    assert_eq!((outcome.lowest_available, outcome.highest_live), (48, 91));
    same_story(
        "cached-size",
        "Somebody grows a pool from 48 to 86 while reads of the set are minutes old, and the pool file asks for 5 more.\n\
         Elsewhere 48 + 5 = 53 was written over the real 86, and 33 machines were lost. Here the write carries the\n\
         version of the set that was read, is refused, and is decided anew.",
        &outcome,
    );
}

/// The new image never serves; the rollout is paused before that is known, and the pool grows by 10 half an hour later.
fn paused_and_grows(owned: bool) -> Scenario {
    let owner = |draft: &mut Draft| {
        if owned {
            owns_image(draft);
        } else {
            // Below the floor growth would be made on any model.
            draft.rollout.max_unavailable = Quantity::percent(55);
        }
    };
    let mut scenario = pool(policy(10, 2, 0, owner));
    let bad =
        ExternalEvent::MarkModelBad { image: sim::NEW_IMAGE.into(), bad: Some(Bad::NeverReady) };
    scenario.deeds = vec![(Span::ZERO, bad)];
    scenario.wishes = vec![
        (Span::minutes(6), UserAction::Ask(CommandVerb::Pause)),
        (Span::minutes(40), UserAction::Count(20)),
    ];
    if owned {
        scenario.wishes.push((Span::minutes(1), UserAction::Image(sim::NEW_IMAGE.into())));
    } else {
        scenario.deeds.push(new_image_after(1));
    }
    scenario
}

#[test]
fn growth_in_a_paused_rollout_is_not_on_the_bad_model() {
    let outcome = sim::run(&paused_and_grows(true));
    no_law_broken(&outcome);
    let since = outcome.timeline.from + Span::minutes(40).millis();
    let late: Vec<_> = born(&outcome).into_iter().filter(|row| row.created >= since).collect();
    assert!(late.len() >= 10, "{}", outcome.story.join("\n"));
    for row in &late {
        assert_eq!(image_of(&outcome, row), sim::OLD_IMAGE, "{}", outcome.story.join("\n"));
    }
    assert_eq!(outcome.lowest_available, 10);
    same_story(
        "paused-and-grows",
        "A rollout to an image that never serves is paused, and then the pool is asked to grow by 10. A scale set has one\n\
         model, so elsewhere all 10 came up on the bad one. Here the last good model is put back first.",
        &outcome,
    );
}

#[test]
fn growth_waits_where_the_model_is_not_ours() {
    let outcome = sim::run(&paused_and_grows(false));
    no_law_broken(&outcome);
    let since = outcome.timeline.from + Span::minutes(40).millis();
    let late = born(&outcome).into_iter().filter(|row| row.created >= since).count();
    assert_eq!(late, 0, "{}", outcome.story.join("\n"));
    assert!(matches!(outcome.end, End::Waits { .. }), "{:?}", outcome.end);
    same_story(
        "paused-and-grows-model-of-others",
        "The same, where others own the model, so that it cannot be put back: nothing is created, and a hold says who has\n\
         to do what.",
        &outcome,
    );
}

/// Five machines whose surplus is watched before it goes.
fn watched(gray: GrayPolicy) -> Scenario {
    pool(policy(5, 1, 0, |draft| {
        (draft.unconfirmed, draft.gray) = (UnconfirmedFall::Allow, Some(gray));
    }))
}

#[test]
fn surplus_is_switched_off_and_a_start_that_is_refused_delays_nothing() {
    let (state, observation) = (GrayState::Standby, Span::minutes(10));
    let mut scenario = watched(GrayPolicy { state, observation, ..GrayPolicy::default() });
    let full = WorldFaults { start_fails: 1.0, ..WorldFaults::default() };
    scenario.deeds = vec![
        (Span::minutes(3), ExternalEvent::SetFaults(Box::new(full))),
        (Span::minutes(15), ExternalEvent::SetFaults(Box::default())),
    ];
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Count(2)),
        (Span::minutes(8), UserAction::Count(3)),
        (Span::minutes(20), UserAction::Count(5)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    same_story(
        "switched-off",
        "The size falls from 5 to 2, and three machines are switched off. It rises to 3 while the cloud has no room for a\n\
         start, and to 5 when it has room again. Elsewhere such a start is waited for, and the pool stays short. Here the\n\
         one that did not start goes once it was watched, and a machine is made in its place.",
        &outcome,
    );
}

#[test]
fn a_fall_is_watched_and_what_is_needed_comes_back() {
    let mut scenario = watched(GrayPolicy::default());
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Count(1)),
        // 20 s later it rises, and two minutes later it falls again: now to the end.
        (Span::seconds(80), UserAction::Count(4)),
        (Span::seconds(200), UserAction::Count(1)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(outcome.is_settled(), "{:?}", outcome.end);
    assert!(born(&outcome).is_empty(), "one out of service comes back before any is made");
    assert_eq!(gone(&outcome).len(), 4);
    same_story(
        "watched-fall",
        "The size falls from 5 to 1, rises to 4 after 20 s, and falls to 1 again two minutes later. Elsewhere such a rise\n\
         deleted the machines that had just left service and made others, and a step that moved none stopped the clock.\n\
         Here half of the change leaves service at a time, comes back first, and is deleted a minute after the last step.",
        &outcome,
    );
}

/// Four machines that each show the same value of a metric however many there are, and a rollout with as many beside them.
fn counted_twice(value: u32) -> Scenario {
    let metric = MetricSize {
        server: "main".into(),
        query: "memory".into(),
        mode: MetricMode::Average,
        target: Decimal::new(54.0).unwrap(),
        tolerance_percent: 10,
        stabilise: Span::minutes(5),
    };
    let load = SizeProfile { name: "load".into(), priority: 1, source: SizeSource::Metric(metric) };
    let mut scenario = pool(policy(4, 4, 0, |draft| {
        draft.rollout.ramp = None;
        draft.size = SizePolicy { min: 4, max: 10, preview: false, profiles: vec![load] };
    }));
    scenario.deeds = vec![new_image_after(1)];
    scenario.wishes = vec![(Span::ZERO, UserAction::Metric(Some(value)))];
    scenario
}

#[test]
fn a_surge_of_the_whole_pool_is_no_load() {
    let outcome = sim::run(&counted_twice(28));
    no_law_broken(&outcome);
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (4, 8));
    assert!(outcome.sizes.iter().all(|size| size.desired == 4), "{:?}", outcome.sizes);
    assert_eq!(born(&outcome).len(), 4, "one for each, and none for those beside them");
    same_story(
        "surge-is-no-load",
        "Four machines use 28 of a metric whose target is 54, and a rollout puts four new ones beside them. Elsewhere\n\
         28/54 of all eight is 5, then 6, and so on to the maximum of 10, where it stays. Here only machines that count\n\
         for the size are multiplied, and it stays 4.",
        &outcome,
    );
    // Where the value does ask for more, it is by what four of them need: not ⌈1.2 · 8⌉ = 10.
    let outcome = sim::run(&counted_twice(65));
    no_law_broken(&outcome);
    let first = outcome.sizes.iter().map(|size| size.desired).find(|desired| *desired != 4);
    assert_eq!(first, Some(5), "{:?}", outcome.sizes);
}
