//! The power goes before and after every write of a fall of the size that is watched, and of the rise after it.

use poolkeeper::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use poolkeeper::model::policy::{Owner, UnconfirmedFall};
use poolkeeper::model::size::{GrayPolicy, GrayState};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, ClusterSpec, Scenario, UserAction};
use poolkeeper::world::{AutoscaleSetting, ExternalEvent, MINUTE, MetricLoad, WorldFaults};

use crate::support::long::long_or;

use super::{both, nothing_is_lost, policy, what_is_left, writes_of};

/// From five to two, to four while three are out of service, and to one.
fn falls(state: GrayState) -> Scenario {
    let policy = policy(5, 1, 0, |draft| {
        draft.unconfirmed = UnconfirmedFall::Allow;
        let observation = Span::minutes(5);
        draft.gray = Some(GrayPolicy { state, observation, ..GrayPolicy::default() });
    });
    let mut scenario = Scenario::from_policy(&policy, None, 11, WorldFaults::default());
    scenario.cluster = Some(ClusterSpec::default());
    scenario.deeds = Vec::new();
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Count(2)),
        (Span::minutes(4), UserAction::Count(4)),
        (Span::minutes(12), UserAction::Count(1)),
    ];
    scenario
}

fn cut_everywhere(state: GrayState) {
    let scenario = falls(state);
    let whole = sim::run(&scenario);
    assert_eq!(whole.breaches, [], "{:#?}", whole.story);
    assert!(whole.is_settled(), "{:#?}", whole.story);
    let (_, _, models) = what_is_left(&whole);
    assert_eq!(models.len(), 1);
    let mut cuts = 0;
    for number in writes_of(&whole, 1) {
        for cut in both(number) {
            let outcome = sim::run(&Scenario { cuts: vec![cut], ..scenario.clone() });
            let said = || format!("{state:?}, {cut:?}: {:#?}", outcome.story);
            assert_eq!(outcome.crashes, whole.crashes + 1, "{}", said());
            nothing_is_lost(&outcome, &said);
            assert!(outcome.is_settled(), "{}", said());
            assert_eq!(what_is_left(&outcome).2, models, "one serves: {}", said());
            assert!(outcome.lowest_available >= 1, "{}", said());
            cuts += outcome.crashes;
        }
    }
    println!("{state:?}: {} writes, {cuts} cuts, all settled", whole.writes);
    assert!(cuts > long_or(40, 4), "a fall of several machines makes more writes than that");
}

/// A rollout that switches the autoscaler off and puts it back, beside one that scales.
fn rolls_beside(load: MetricLoad) -> Scenario {
    let policy = policy(3, 2, 0, |draft| {
        draft.owner = Owner::ScaleSet;
        let during = DuringRollout::Suspend;
        draft.autoscaler = Some(AutoscalerPolicy { during, setting: None });
    });
    let mut scenario = Scenario::from_policy(&policy, None, 11, WorldFaults::default());
    let setting = AutoscaleSetting::between(2, 4).by_load(5 * MINUTE);
    scenario.set.native.autoscale = Some(setting);
    scenario.deeds.push((Span::ZERO, ExternalEvent::SetLoad(load)));
    scenario
}

#[test]
fn an_autoscaler_that_is_switched_off() {
    let scenario = rolls_beside(MetricLoad::Level(50.0));
    let whole = sim::run(&scenario);
    assert_eq!(whole.breaches, [], "{:#?}", whole.story);
    assert!(whole.is_settled(), "{:#?}", whole.story);
    let told = |outcome: &sim::RunOutcome, what: &str| {
        outcome.story.iter().filter(|line| line.contains(what)).count()
    };
    assert_eq!(
        (told(&whole, "switch autoscaler off"), told(&whole, "put autoscaler back")),
        (1, 1)
    );
    let (_, _, models) = what_is_left(&whole);
    assert_eq!(models.len(), 3);
    let mut cuts = 0;
    for number in writes_of(&whole, 1) {
        for cut in both(number) {
            let outcome = sim::run(&Scenario { cuts: vec![cut], ..scenario.clone() });
            let said = || format!("{cut:?}: {:#?}", outcome.story);
            nothing_is_lost(&outcome, &said);
            assert!(outcome.is_settled(), "{}", said());
            assert_eq!(what_is_left(&outcome).2, models, "{}", said());
            cuts += outcome.crashes;
        }
    }
    println!("autoscaler: {} writes, {cuts} cuts, all settled", whole.writes);
    assert!(cuts > long_or(40, 4));
}

#[test]
fn surplus_that_is_cut_off() {
    cut_everywhere(GrayState::Cutoff);
}

#[test]
fn surplus_that_is_switched_off() {
    cut_everywhere(GrayState::Standby);
}

/// Others set the size: whatever is lost of a raise or a delete, the pool keeps the size that they set.
#[test]
fn a_size_that_others_set() {
    for (surge, down) in [(1, 0), (1, 1), (0, 2)] {
        let policy = policy(3, surge, down, |draft| draft.owner = Owner::ScaleSet);
        let scenario = Scenario::from_policy(&policy, None, 11, WorldFaults::default());
        for number in writes_of(&sim::run(&scenario), 1) {
            for cut in both(number) {
                let outcome = sim::run(&Scenario { cuts: vec![cut], ..scenario.clone() });
                let said = || format!("{surge}, {down}, {cut:?}: {:#?}", outcome.story);
                nothing_is_lost(&outcome, &said);
                assert_eq!(what_is_left(&outcome).2, [1, 1, 1], "{}", said());
            }
        }
    }
}
