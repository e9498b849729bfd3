//! Autoscalers that were switched off and not put back, put back over what a person had written, or fought.

use poolkeeper::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::Owner;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, RunOutcome, Scenario};
use poolkeeper::world::{AutoscaleSetting, Bad, ExternalEvent, MINUTE, MetricLoad, Which};

use crate::incidents::told::{
    born, gone, new_image_after, no_law_broken, policy, pool, raises, same_story,
};

/// Machines whose number an autoscaler sets, and which a rollout may switch off meanwhile.
fn beside_an_autoscaler(count: u32, (minimum, maximum): (u32, u32)) -> Scenario {
    let mut scenario = pool(policy(count, 3, 0, |draft| {
        draft.owner = Owner::ScaleSet;
        let during = DuringRollout::Suspend;
        draft.autoscaler = Some(AutoscalerPolicy { during, setting: None });
    }));
    let setting = AutoscaleSetting::between(minimum, maximum).by_load(5 * MINUTE);
    scenario.set.native.autoscale = Some(setting);
    scenario.deeds = vec![(Span::ZERO, load(50.0))];
    scenario
}

/// Percent of what a machine can do. The autoscaler adds one above 66, and takes one below 33.
fn load(level: f64) -> ExternalEvent {
    ExternalEvent::SetLoad(MetricLoad::Level(level))
}

fn high(minutes: i64) -> (Span, ExternalEvent) {
    (Span::minutes(minutes), load(90.0))
}

/// Neither high nor low: it changes nothing.
fn even(minutes: i64) -> (Span, ExternalEvent) {
    (Span::minutes(minutes), load(50.0))
}

fn rolls() -> Scenario {
    let mut scenario = beside_an_autoscaler(10, (8, 10));
    scenario.deeds.push(new_image_after(1));
    scenario
}

/// The line of the story that says so.
fn line(outcome: &RunOutcome, what: &str) -> Option<usize> {
    outcome.story.iter().position(|line| line.contains(what))
}

#[test]
fn an_autoscaler_takes_no_surge_for_load() {
    let outcome = sim::run(&rolls());
    no_law_broken(&outcome);
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded));
    assert_eq!((outcome.lowest_available, outcome.highest_live), (10, 13));
    assert_eq!(born(&outcome).len(), 10, "one for each, and none for its own surge");
    same_story(
        "autoscaler-suspended",
        "An autoscaler keeps a set between 8 and 10 machines, and a rollout needs 3 more for a while. Elsewhere the new\n\
         ones above 10 were removed as fast as they came, or counted as load and made the set grow. Here it is switched\n\
         off for the rollout, the size stays 10, and its setting is written back afterwards.",
        &outcome,
    );
}

#[test]
fn a_rollout_that_fails_gives_the_autoscaler_back() {
    let mut scenario = rolls();
    let bad =
        ExternalEvent::MarkModelBad { image: sim::NEW_IMAGE.into(), bad: Some(Bad::NeverReady) };
    scenario.deeds.push((Span::ZERO, bad));
    scenario.operator = false;
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    let [off, back] =
        ["switch autoscaler off", "put autoscaler back"].map(|what| line(&outcome, what));
    assert!(off.is_some() && off < back, "{:#?}", outcome.story);
    assert_eq!(outcome.lowest_available, 10);
    same_story(
        "autoscaler-after-a-failure",
        "The rollout for which the autoscaler is switched off fails. Elsewhere nothing put it back, and the set stayed\n\
         without one until a person looked. Here a failed rollout gives it back at once; a retry takes it again.",
        &outcome,
    );
}

#[test]
fn a_setting_that_a_person_edits_meanwhile_stays_as_they_wrote_it() {
    let mut scenario = rolls();
    let mut edited = AutoscaleSetting::between(8, 20).by_load(5 * MINUTE);
    edited.enabled = false;
    let edit = ExternalEvent::SetAutoscale(Some(Box::new(edited.clone())));
    edited.enabled = true;
    let on = ExternalEvent::SetAutoscale(Some(Box::new(edited)));
    scenario.deeds.extend([(Span::minutes(6), edit), (Span::minutes(50), on)]);
    scenario.operator = false;
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert!(line(&outcome, "autoscaleChanged").is_some(), "{:#?}", outcome.story);
    assert_eq!(line(&outcome, "put autoscaler back"), None, "{:#?}", outcome.story);
    assert_eq!(outcome.lowest_available, 10);
    same_story(
        "autoscaler-edited",
        "While the autoscaler is off for a rollout, a person raises its maximum from 10 to 20. Elsewhere the setting of\n\
         before was written over theirs, and the load of the next morning met the old maximum. Here theirs stays, and a\n\
         hold asks them to switch it on.",
        &outcome,
    );
}

#[test]
fn the_autoscaler_works_again_once_the_rollout_is_done() {
    let mut scenario = beside_an_autoscaler(4, (2, 8));
    scenario.deeds.extend([new_image_after(1), high(60), even(90)]);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(outcome.end, End::Ended(RolloutPhase::Succeeded));
    assert_eq!(outcome.sizes.last().map(|size| size.desired), Some(8), "{:?}", outcome.sizes);
    same_story(
        "autoscaler-after-a-rollout",
        "Some time after a rollout the load of four machines doubles. Elsewhere a revision that was released kept the\n\
         fixed size of its rollout. Here the autoscaler is back with its whole range, and grows the set to its maximum.",
        &outcome,
    );
}

#[test]
fn no_size_is_written_while_no_rollout_goes() {
    let mut scenario = beside_an_autoscaler(3, (1, 8));
    scenario.deeds.extend([(Span::minutes(5), ExternalEvent::SetCapacity(5)), even(15)]);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(raises(&outcome), []);
    assert!(gone(&outcome).is_empty());
    assert_eq!(
        outcome.sizes.last().map(|size| size.desired),
        Some(5),
        "{:?}\n{:#?}",
        outcome.sizes,
        outcome.story
    );
    assert_eq!(line(&outcome, "switch autoscaler off"), None, "{:#?}", outcome.story);
    same_story(
        "size-of-others",
        "A person sets 5 on a set of 3 machines beside its autoscaler; no rollout goes. Elsewhere the number of the last\n\
         rollout, 3, was written over the 5. Here no size is written, and the autoscaler stays on.",
        &outcome,
    );
}

#[test]
fn a_minimum_of_none_takes_no_machine_of_a_rollout() {
    let mut scenario = beside_an_autoscaler(2, (0, 8));
    let sick = |which| (Span::ZERO, ExternalEvent::Sicken(which, None));
    scenario.deeds.extend([sick(Which::Oldest), sick(Which::Newest)]);
    scenario.deeds.extend([new_image_after(1), high(90), even(150)]);
    let outcome = sim::run(&scenario);
    no_law_broken(&outcome);
    assert_eq!(outcome.lowest_available, 0);
    assert!(outcome.sizes.iter().all(|size| size.desired >= 2), "{:?}", outcome.sizes);
    assert_eq!(outcome.sizes.last().map(|size| size.desired), Some(8), "{:?}", outcome.sizes);
    same_story(
        "autoscaler-from-none",
        "Two workers serve nothing, their autoscaler may go down to none, and a rollout begins. Elsewhere the size became\n\
         1, or stayed 2 for good because the autoscaler did not come back. Here it stays 2 during the rollout, and the\n\
         autoscaler grows the set afterwards.",
        &outcome,
    );
}
