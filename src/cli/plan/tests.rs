//! The headline against the planner's numbers, and against a rollout that is played to its end.

use serde_json::{Value, json};

use super::forecast::tests::idle;
use super::forecast::{NextModel, forecast, scenario};
use super::headline::Headline;
use crate::api::v1::snapshot::{SnapshotInput, Snapshots};
use crate::cli::decide::decide;
use crate::cli::page::{PoolFacts, TimeStyle};
use crate::model::ids::Revision;
use crate::model::policy::{Adopt, Draft, Image, Method, OwnedModel, UnconfirmedFall};
use crate::model::quantity::Quantity;
use crate::model::time::{Span, Time};
use crate::sim::{self, End, Timeline, TimelineState};

/// The headline without a rehearsal.
fn headline(snapshot: &SnapshotInput) -> Headline {
    let decision = decide(snapshot).unwrap();
    let forecast = forecast(snapshot, &decision, false);
    Headline::of(&PoolFacts::of(snapshot, &decision), &forecast, Some(&snapshot.policy))
}

fn words(headline: &Headline) -> String {
    headline.words(TimeStyle::Absolute, Time::from_millis(0))
}

/// The most machines that were updated in place at one time.
fn updated_together(timeline: &Timeline) -> u32 {
    let segments = || timeline.rows.iter().flat_map(|row| &row.segments);
    let updates = || segments().filter(|of| of.doing == TimelineState::Updating);
    let at = |now| updates().filter(|of| (of.from..of.to).contains(&now)).count() as u32;
    updates().map(|of| at(of.from)).max().unwrap_or(0)
}

#[test]
fn a_rollout_keeps_what_the_headline_promises() {
    for (method, surge, unavailable) in [
        (Method::Replace, 1, 0),
        (Method::Replace, 2, 0),
        (Method::Replace, 0, 1),
        (Method::Replace, 1, 1),
        (Method::Reimage, 1, 0),
        (Method::Reimage, 2, 0),
        (Method::Reimage, 0, 2),
    ] {
        let snapshot = idle(6, |draft: &mut Draft| {
            draft.model.image = Some(Image::Exact("a:b:c:2.0.0".into()));
            draft.rollout.method = method;
            draft.rollout.max_surge = Quantity::of(surge);
            draft.rollout.max_unavailable = Quantity::of(unavailable);
        });
        let decision = decide(&snapshot).unwrap();
        let (says, next) = (headline(&snapshot), NextModel::of(&snapshot, &decision));
        let outcome = sim::run(&scenario(&snapshot, &decision, next.as_ref()).unwrap());
        let case = format!("{method:?} {surge} {unavailable}: {}", words(&says));
        assert!(matches!(outcome.end, End::Ended(_)) && !outcome.is_broken(), "{case}");
        assert_eq!(says.replace, 6, "{case}");
        let (lowest, highest) = (outcome.lowest_available, outcome.highest_live);
        assert!(lowest >= says.floor, "{case}: {lowest} served");
        assert!(highest <= says.most, "{case}: {highest} existed");
        if method == Method::Reimage {
            let together = updated_together(&outcome.timeline);
            assert!((1..=says.slots).contains(&together), "{case}: {together} together");
        } else {
            let gone = outcome.timeline.rows.iter().filter(|row| row.gone.is_some()).count();
            assert_eq!(gone as u32, says.replace, "{case}");
        }
    }
}

#[test]
fn machines_that_wait_for_a_person_are_promised_nothing() {
    let mut snapshot = idle(6, |draft| {
        draft.model = OwnedModel::default();
        draft.adopt = Adopt::Hold;
    });
    snapshot.machines[0].revision = Some(Revision::new("r1"));
    let says = headline(&snapshot);
    assert_eq!((says.replace, says.lasts, says.calls), (1, None, None));
    let words = words(&says);
    assert!(words.contains("; it waits: ") && words.contains("adopted"), "{words}");
}

#[test]
fn a_large_fall_waits_for_a_person() {
    let fall = |from: u32, to: u32, change: fn(&mut Draft)| {
        let snapshot = idle(to as usize, change);
        words(&headline(&snapshot).with_fall(&snapshot.policy, Some(from)))
    };
    let says = fall(30, 10, |_| {});
    let waits = "it waits: the size would drop from 30 to 10 at once; approve it to continue";
    assert!(says.ends_with(waits), "{says}");
    let allows = |draft: &mut Draft| draft.unconfirmed = UnconfirmedFall::Allow;
    for says in [fall(12, 10, |_| {}), fall(30, 10, allows), fall(0, 10, |_| {})] {
        assert!(!says.contains("it waits"), "{says}");
    }
}

#[test]
fn the_minutes_count_soaks_and_the_bake() {
    let text = include_str!("../../../tests/cli/inputs/rolling.json");
    let plain: Value = serde_json::from_str(text).unwrap();
    let says = |pool: &Value| {
        let snapshot = Snapshots::default().read(pool.to_string().as_bytes()).unwrap();
        headline(&snapshot)
    };
    let mut waits = plain.clone();
    waits["pool"]["rollout"]["bake"] = json!("1h");
    waits["pool"]["rollout"]["checkpoints"] =
        json!([{"at": "50%", "soak": "10m"}, {"at": "100%", "soak": "5m"}]);
    let (without, with) = (says(&plain).lasts.unwrap(), says(&waits).lasts.unwrap());
    assert_eq!(with.millis() - without.millis(), Span::minutes(75).millis());
    waits["pool"]["rollout"]["checkpoints"][1]["approval"] = json!(true);
    let says = words(&says(&waits));
    assert!(says.contains(" without the approval at 1 checkpoint;"), "{says}");
}

#[test]
fn requested_machines_are_not_created_again() {
    let text = include_str!("../../../tests/cli/inputs/rolling.json");
    let mut snapshot: Value = serde_json::from_str(text).unwrap();
    let machine = |n: u32| {
        json!({
            "id": n.to_string(), "vmId": format!("vm-{n}"), "zone": "1", "revision": "r2",
            "condition": "Ready", "createdAt": "2026-02-20T08:00:00Z", "since": "2026-02-20T08:00:00Z",
        })
    };
    snapshot["machines"] = (0..4).map(machine).collect();
    snapshot["pool"]["replicas"]["count"] = json!(7);
    snapshot["scaleSet"]["capacity"] = json!(6);
    snapshot["facts"] = Value::Null;
    snapshot["open"] = json!([
        {"id": "e1", "do": "raise", "since": "2026-03-01T11:58:00Z", "from": 4, "to": 6},
    ]);
    let snapshot = Snapshots::default().read(snapshot.to_string().as_bytes()).unwrap();
    let numbers = decide(&snapshot).unwrap().planned.report.numbers;
    assert_eq!((numbers.total, numbers.requested), (6, 2));
    assert_eq!(headline(&snapshot).create, 1);
}
