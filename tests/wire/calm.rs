//! Good days: everything that is asked for comes about, no limit of the cloud is ever met, and what the plans rested on is
//! what was there.

use poolkeeper::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::{Draft, Method, Owner, UnconfirmedFall};
use poolkeeper::model::size::{GrayPolicy, GrayState};
use poolkeeper::model::time::Span;
use poolkeeper::sim::{End, Scenario, TimelineState, UserAction};
use poolkeeper::world::{ExternalEvent, HOUR, InstanceProtection, MINUTE, ModelPatch, Which};
use serde_json::json;

use crate::wire::kit::{Played, There, image, limits, play, policy, reference, scenario, upgraded};

fn both(machines: u32) -> [There; 2] {
    [There::uniform(machines), There::flexible(machines)]
}

/// No law broken, ended so, not a single call too many, and no machine asked to go twice.
fn well(scenario: &Scenario, there: &There, phase: RolloutPhase) -> Played {
    let played = play(scenario, there);
    let story = || played.story(30);
    assert_eq!(played.outcome.breaches, [], "{}", story());
    assert_eq!(played.outcome.end, End::Ended(phase), "{}", story());
    assert_eq!((played.outcome.failed, played.throttled), (0, 0), "{:?}", played.outcome);
    assert_eq!(played.deleted_twice(), [] as [String; 0]);
    played
}

/// Machines that are there at the end.
fn left(played: &Played) -> usize {
    played.outcome.timeline.rows.iter().filter(|row| row.gone.is_none()).count()
}

fn all_new(played: &Played, count: usize) {
    let timeline = &played.outcome.timeline;
    let there = timeline.rows.iter().filter(|row| row.gone.is_none());
    let last: Vec<_> = there.filter_map(|row| row.segments.last()).collect();
    assert_eq!(last.len(), count);
    for segment in last {
        assert_eq!((segment.doing, segment.model), (TimelineState::Serving, timeline.target));
    }
}

fn web(there: &There, how: impl FnOnce(&mut Draft)) -> Scenario {
    scenario(&policy("web", there.machines, how), there, 1)
}

#[test]
fn ten_machines_are_upgraded() {
    for there in both(10) {
        let scenario = web(&there, |draft| {
            limits(draft, "2", "0");
            upgraded(draft);
        });
        let played = well(&scenario, &there, RolloutPhase::Succeeded);
        all_new(&played, 10);
        assert!(played.outcome.lowest_available >= 10, "{}", played.outcome.lowest_available);
        assert!(played.outcome.highest_live <= 12, "{}", played.outcome.highest_live);
    }
}

#[test]
fn others_change_the_model_and_nodes_are_not_asked() {
    for there in both(10) {
        let mut scenario = web(&there, |draft| limits(draft, "0", "3"));
        let patch = ModelPatch::image(&reference("2.0.0"));
        scenario.deeds = vec![(Span::minutes(1), ExternalEvent::PatchModel(patch))];
        let played = well(&scenario, &there, RolloutPhase::Succeeded);
        all_new(&played, 10);
        assert!(played.outcome.lowest_available >= 7, "{}", played.outcome.lowest_available);
    }
}

/// From ten to four, and to eight while six are off or on their way there; then to three, for good.
#[test]
fn surplus_is_deallocated_and_started_again() {
    for there in both(10) {
        let mut scenario = web(&there, |draft| {
            draft.unconfirmed = UnconfirmedFall::Allow;
            let (state, observation) = (GrayState::Standby, Span::minutes(20));
            draft.gray = Some(GrayPolicy { state, observation, ..GrayPolicy::default() });
        });
        scenario.wishes = vec![
            (Span::minutes(1), UserAction::Count(4)),
            (Span::minutes(10), UserAction::Count(8)),
            (Span::minutes(20), UserAction::Count(3)),
        ];
        let played = well(&scenario, &there, RolloutPhase::None);
        assert_eq!((left(&played), played.outcome.timeline.rows.len()), (3, 10), "none is made");
        for action in ["/deallocate", "/start"] {
            assert!(
                played.asked(|kind| kind.ends_with(action)) > 0,
                "{action}: {:?}",
                played.calls()
            );
        }
    }
}

/// The autoscaler leaves no room for surge, so it is switched off meanwhile; afterwards it is what it was.
#[test]
fn an_autoscaler_is_switched_off_for_a_rollout_and_put_back() {
    for mut there in both(10) {
        let rule = |operator: &str, threshold: u32, direction: &str| {
            json!({
                "metricTrigger": {"metricName": "Percentage CPU", "timeGrain": "PT1M", "statistic": "Average",
                    "timeWindow": "PT5M", "timeAggregation": "Average", "operator": operator, "threshold": threshold},
                "scaleAction": {"direction": direction, "type": "ChangeCount", "value": 1, "cooldown": "PT5M"},
            })
        };
        let rules = [rule("GreaterThan", 70, "Increase"), rule("LessThan", 20, "Decrease")];
        let capacity = json!({"minimum": 10, "maximum": 10, "default": 10});
        let profile = json!({"name": "all", "capacity": capacity, "rules": rules});
        there.set =
            json!({"autoscale": {"enabled": true, "profiles": [profile]}, "load": {"level": 50.0}});
        let scenario = web(&there, |draft| {
            draft.owner = Owner::ScaleSet;
            let during = DuringRollout::Suspend;
            draft.autoscaler = Some(AutoscalerPolicy { during, setting: None });
            limits(draft, "3", "0");
            upgraded(draft);
        });
        let played = well(&scenario, &there, RolloutPhase::Succeeded);
        all_new(&played, 10);
        assert!(played.outcome.lowest_available >= 10, "{}", played.outcome.lowest_available);
        assert_eq!(played.outcome.highest_live, 13, "the whole surge");
        let [off, back] = &played.puts[..] else { panic!("{:?}", played.puts) };
        assert_eq!(off.replace("\"enabled\":false", "\"enabled\":true"), *back);
        let was: serde_json::Value = serde_json::from_str(back).unwrap();
        assert_eq!(was["properties"]["enabled"], true);
        assert_eq!(was["properties"]["profiles"][0]["rules"].as_array().unwrap().len(), 2);
        assert!(played.asked(|kind| kind.starts_with("GET") && kind.contains("autoscale")) > 3);
    }
}

#[test]
fn a_pool_grows() {
    for there in both(10) {
        let mut scenario = web(&there, |_| ());
        scenario.wishes = vec![(Span::minutes(1), UserAction::Count(25))];
        assert_eq!(left(&well(&scenario, &there, RolloutPhase::None)), 25);
    }
}

#[test]
fn a_pool_shrinks_as_far_as_it_may() {
    for there in both(10) {
        for (unconfirmed, stay) in [(UnconfirmedFall::Allow, 4), (UnconfirmedFall::Hold, 10)] {
            let mut scenario = web(&there, |draft| draft.unconfirmed = unconfirmed);
            scenario.wishes = vec![(Span::minutes(1), UserAction::Count(4))];
            let played = well(&scenario, &there, RolloutPhase::None);
            assert_eq!(left(&played), stay, "{unconfirmed:?}");
        }
    }
}

#[test]
fn failed_machines_are_replaced() {
    for there in both(10) {
        let mut scenario = web(&there, |_| ());
        let deed = |minutes, deed| (Span::minutes(minutes), deed);
        scenario.deeds = vec![
            deed(1, ExternalEvent::Sicken(Which::Oldest, None)),
            deed(2, ExternalEvent::StopInstance(Which::Newest)),
            deed(3, ExternalEvent::Vanish(Which::Any)),
        ];
        let played = well(&scenario, &there, RolloutPhase::None);
        assert_eq!(left(&played), 10);
        assert_eq!(played.outcome.timeline.rows.len(), 13, "three came for three");
    }
}

/// No cores for a spare machine until somebody grants them; nothing is taken away meanwhile.
#[test]
fn a_quota_is_refused_until_it_is_granted() {
    for there in both(10) {
        let mut scenario = web(&there, |draft| {
            limits(draft, "2", "0");
            upgraded(draft);
        });
        scenario.deeds = vec![
            (Span::ZERO, ExternalEvent::SetQuota(Some(40))),
            (Span::from_millis(2 * HOUR), ExternalEvent::SetQuota(Some(80))),
        ];
        scenario.calm_after = Span::from_millis(2 * HOUR);
        let played = well(&scenario, &there, RolloutPhase::Succeeded);
        all_new(&played, 10);
        assert!(played.outcome.lowest_available >= 10);
        assert!(played.outcome.makespan.unwrap().millis() > 2 * HOUR);
    }
}

#[test]
fn machines_are_updated_in_place() {
    let there = There::uniform(10);
    let scenario = web(&there, |draft| {
        limits(draft, "0", "3");
        draft.rollout.method = Method::Reimage;
        upgraded(draft);
    });
    let played = well(&scenario, &there, RolloutPhase::Succeeded);
    all_new(&played, 10);
    assert_eq!(played.outcome.timeline.rows.len(), 10, "nobody came or went");
}

/// Deletes that hang for half an hour hold their slot and nothing else.
#[test]
fn a_delete_that_hangs_is_waited_for() {
    for there in both(10) {
        let there = There { seed: json!({"faults": {"chances": {"deleteHangs": 0.4}}}), ..there };
        let mut scenario = web(&there, |draft| {
            limits(draft, "2", "1");
            upgraded(draft);
        });
        scenario.faults.delete_hangs = 0.4;
        scenario.calm_after = Span::from_millis(30 * MINUTE);
        scenario.operator = true;
        let played = play(&scenario, &there);
        assert_eq!(played.outcome.breaches, [], "{}", played.story(30));
        let end = End::Ended(RolloutPhase::Succeeded);
        assert_eq!(played.outcome.end, end, "{}", played.story(30));
        all_new(&played, 10);
        let deletes = |row: &&poolkeeper::sim::TimelineRow| {
            let deleting = row.segments.iter().filter(|s| s.doing == TimelineState::Deleting);
            deleting.map(|s| s.to - s.from).max() > Some(20 * MINUTE)
        };
        assert!(played.outcome.timeline.rows.iter().any(|row| deletes(&row)), "none hung");
    }
}

/// The other end holds what the pool file named, to the letter.
#[test]
fn the_image_is_written_as_it_is_named() {
    let there = There::uniform(3);
    let played = well(&web(&there, upgraded), &there, RolloutPhase::Succeeded);
    assert_eq!(played.state["scaleSets"][0]["image"], json!({"id": image("2.0.0")}).to_string());
}

/// Azure stops no delete of a VM that is protected from scale-in alone: the pool keeps off it in both kinds of set.
#[test]
fn protected_machines_outlive_an_upgrade() {
    for there in both(6) {
        let mut scenario = web(&there, |draft| {
            limits(draft, "2", "1");
            upgraded(draft);
        });
        let scale_in = InstanceProtection { scale_in: true, set_actions: false };
        let all = InstanceProtection { scale_in: true, set_actions: true };
        scenario.deeds = vec![
            (Span::ZERO, ExternalEvent::Protect(Which::Oldest, scale_in)),
            (Span::ZERO, ExternalEvent::Protect(Which::Newest, all)),
        ];
        let played = play(&scenario, &there);
        assert_eq!(played.outcome.breaches, [], "{}", played.story(30));
        let rows = &played.outcome.timeline.rows;
        let stay: Vec<usize> = (0..6).filter(|at| rows[*at].gone.is_none()).collect();
        assert_eq!(stay, [0, 5], "{}", played.story(30));
    }
}
