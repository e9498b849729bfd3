//! Which machines are outdated, and what a bad model is put back to.

use poolkeeper::model::plan::{CommandVerb, RolloutPhase};
use poolkeeper::model::policy::OnFailure;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, UserAction};
use poolkeeper::world::{Bad, ExternalEvent, FrontDoorCall, WorldFaults};

use crate::incidents::told::{
    born, calls, gone, image_of, new_image_after, no_law_broken, owns_image, policy, pool,
    same_story,
};

#[test]
fn a_flapping_flag_replaces_nothing() {
    let mut scenario = pool(policy(6, 1, 1, |_| {}));
    scenario.adapter.shows_models = false;
    scenario.faults = WorldFaults { flag_flaps: 0.5, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(2);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    assert!(outcome.turns > 20, "{}", outcome.turns);
    assert_eq!((gone(&outcome).len(), born(&outcome).len()), (0, 0));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (6, 6));
    let writes = outcome.calls.iter().filter(|(call, _)| !call.is_read());
    assert_eq!(writes.count(), 0);
    same_story(
        "flag-flaps",
        "For two hours about every other listing says of all machines that they are not on the latest model, though nobody\n\
         changed it. Elsewhere that flag alone started a rollout, stopped it half-way, and started it again. Here the\n\
         flag decides nothing by itself.",
        &outcome,
    );
}

#[test]
fn a_flag_that_is_wrong_from_the_first_look_on_replaces_nothing() {
    let mut scenario = pool(policy(6, 1, 1, |_| {}));
    scenario.adapter.shows_models = false;
    scenario.faults = WorldFaults { flag_flaps: 1.0, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(2);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    let told = outcome.story.join("\n");
    assert!(told.contains("adoption"), "the flag is seen, and only held: {told}");
    assert_eq!((gone(&outcome).len(), born(&outcome).len()), (0, 0), "{told}");
}

#[test]
fn a_bad_version_is_left_once() {
    let rolls_back = |draft: &mut poolkeeper::model::policy::Draft| {
        owns_image(draft);
        draft.rollout.on_failure = OnFailure::Rollback;
    };
    let mut scenario = pool(policy(6, 1, 1, rolls_back));
    let bad =
        ExternalEvent::MarkModelBad { image: sim::NEW_IMAGE.into(), bad: Some(Bad::NeverReady) };
    scenario.deeds = vec![(Span::ZERO, bad)];
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Image(sim::NEW_IMAGE.into())),
        (Span::hours(8), UserAction::Ask(CommandVerb::Rollback)),
    ];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(outcome.end, End::Ended(RolloutPhase::RolledBack), "{}", outcome.story.join("\n"));
    // Written forwards once, and back once.
    assert_eq!(calls(&outcome, FrontDoorCall::PatchModel), 2);
    let staying = outcome.timeline.rows.iter().filter(|row| row.gone.is_none());
    assert!(staying.clone().all(|row| image_of(&outcome, row) == sim::OLD_IMAGE));
    assert_eq!(staying.count(), 6);
    let on_new = born(&outcome).into_iter().filter(|r| image_of(&outcome, r) == sim::NEW_IMAGE);
    assert!(on_new.count() <= 2);
    assert!(outcome.lowest_available >= 5, "{}", outcome.lowest_available);
    same_story(
        "rollback-loop",
        "A new image never becomes ready, and the pool is to roll back by itself. Elsewhere the version to go back to was\n\
         read from the same place as the new one: it was the bad one, it failed, and was rolled back to, for ever. Here\n\
         the last version that completed is remembered when the rollout opens; a roll back is made once, opens no other,\n\
         and is refused where there is nothing else to go back to.",
        &outcome,
    );
}

#[test]
fn another_way_of_fingerprints_is_no_drift() {
    let mut scenario = pool(policy(10, 1, 1, |_| {}));
    scenario.wishes = vec![(Span::minutes(10), UserAction::Upgrade)];
    scenario.deeds = vec![new_image_after(120)];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(matches!(outcome.end, End::Ended(_)), "{:?}", outcome.end);
    let image_at = outcome.timeline.from + Span::minutes(120).millis();
    assert!(born(&outcome).iter().all(|row| row.created >= image_at));
    assert!(gone(&outcome).iter().all(|row| row.gone >= Some(image_at)));
    assert_eq!((born(&outcome).len(), gone(&outcome).len()), (10, 10));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (9, 11));
    same_story(
        "upgrade-drift",
        "A newer version of the program computes fingerprints of models another way. Elsewhere every machine of the fleet\n\
         was outdated the next moment, and was replaced. Here fingerprints of two ways are never compared: nothing moves\n\
         until, at 14:00, people write another image.",
        &outcome,
    );
}

#[test]
fn an_open_rollout_goes_on_after_an_upgrade() {
    let mut scenario = pool(policy(10, 1, 1, |_| {}));
    scenario.deeds = vec![new_image_after(1)];
    scenario.wishes = vec![(Span::minutes(9), UserAction::Upgrade)];
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(
        matches!(outcome.end, End::Ended(_)),
        "{:?}\n{}",
        outcome.end,
        outcome.story.join("\n")
    );
    let staying = outcome.timeline.rows.iter().filter(|row| row.gone.is_none());
    assert!(staying.clone().all(|row| image_of(&outcome, row) == sim::NEW_IMAGE));
    assert_eq!((born(&outcome).len(), gone(&outcome).len()), (10, 10));
}
