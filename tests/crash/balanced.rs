//! The power goes before and after every write of a rollout behind load balancers, and of a fall of the size that is
//! taken back: whatever was cut, load balancers send connections to every machine in the end, and hooks are taken back.

use poolkeeper::model::policy::UnconfirmedFall;
use poolkeeper::model::size::GrayPolicy;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, BalancerSetup, HookSetup, Scenario, UserAction};
use poolkeeper::world::WorldFaults;

use crate::support::long::long_or;

use super::{both, nothing_is_lost, policy, what_is_left, writes_of};

const TWO_POOLS: BalancerSetup = BalancerSetup { pools: 2, balancers: 1, probe: 5_000 };

fn rolls() -> Scenario {
    // None may be left behind because its hook refuses.
    let policy = policy(3, 1, 1, |draft| draft.drain.max_blocked = 0);
    let mut scenario = Scenario::from_policy(&policy, None, 5, WorldFaults::default());
    scenario.balance(TWO_POOLS);
    scenario
}

/// From five to two, and back to five while three are out of service.
fn falls_and_rises() -> Scenario {
    let policy = policy(5, 1, 0, |draft| {
        draft.unconfirmed = UnconfirmedFall::Allow;
        let observation = Span::minutes(30);
        draft.gray = Some(GrayPolicy { observation, ..GrayPolicy::default() });
    });
    let mut scenario = Scenario::from_policy(&policy, None, 11, WorldFaults::default());
    scenario.deeds = Vec::new();
    scenario.balance(TWO_POOLS);
    scenario.wishes =
        vec![(Span::minutes(1), UserAction::Count(2)), (Span::minutes(10), UserAction::Count(5))];
    scenario
}

#[test]
fn what_was_watched_for_longer_than_its_deadline_goes_by_its_hooks() {
    let mut scenario = falls_and_rises();
    scenario.wishes.truncate(1);
    scenario.hook(HookSetup { before: true, after: true, trouble: 0.0 });
    let whole = sim::run(&scenario);
    assert_eq!(whole.breaches, [], "{:#?}", whole.story);
    assert!(whole.is_settled(), "{:#?}", whole.story);
    let gave_up = whole.story.iter().any(|line| line.contains("Hook"));
    let deleted = whole.story.iter().filter(|line| line.contains("delete m")).count();
    assert!(!gave_up && deleted > 0, "{:#?}", whole.story);
}

fn cut_everywhere(name: &str, scenario: &Scenario, least: u32) {
    let whole = sim::run(scenario);
    assert_eq!(whole.breaches, [], "{:#?}", whole.story);
    assert!(whole.is_settled() && whole.switched_off == 0, "{:#?}", whole.story);
    let (_, _, models) = what_is_left(&whole);
    let mut cuts = 0;
    for number in writes_of(&whole, 1) {
        for cut in both(number) {
            let outcome = sim::run(&Scenario { cuts: vec![cut], ..scenario.clone() });
            let said = || format!("{name}, {cut:?}: {:#?}", outcome.story);
            nothing_is_lost(&outcome, &said);
            assert!(outcome.is_settled(), "{}", said());
            assert_eq!(outcome.switched_off, 0, "{}", said());
            assert_eq!(what_is_left(&outcome).2, models, "{}", said());
            cuts += outcome.crashes;
        }
    }
    println!("{name}: {} writes, {cuts} cuts, all put back", whole.writes);
    assert!(cuts >= long_or(least, least / 8), "{name}: {cuts} cuts");
}

#[test]
fn a_rollout_leaves_no_machine_switched_off() {
    cut_everywhere("a rollout", &rolls(), 60);
}

#[test]
fn a_rollout_whose_hooks_make_trouble_leaves_none_of_them_done() {
    let mut scenario = rolls();
    scenario.hook(HookSetup { before: true, after: true, trouble: 0.4 });
    scenario.calm_after = Span::hours(1);
    cut_everywhere("a rollout with hooks", &scenario, 60);
}

#[test]
fn a_fall_that_is_taken_back_takes_its_hooks_back() {
    let mut scenario = falls_and_rises();
    scenario.balanced = None;
    scenario.set.model.interfaces = Vec::new();
    scenario.hook(HookSetup { before: true, after: true, trouble: 0.4 });
    scenario.calm_after = Span::hours(1);
    cut_everywhere("a fall and a rise with hooks", &scenario, 30);
}

#[test]
fn a_fall_that_is_taken_back_leaves_no_machine_switched_off() {
    cut_everywhere("a fall and a rise", &falls_and_rises(), 30);
}
