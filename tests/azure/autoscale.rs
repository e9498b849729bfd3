//! The autoscaler of a set: who it is, what it keeps now, and what is known of it while it cannot be read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::ambient::Dice;
use poolkeeper::model::autoscaler::{Autoscaler, AutoscalerBounds};
use poolkeeper::model::inventory::PlatformFeature;
use poolkeeper::model::time::Span;
use poolkeeper::world::{AutoscaleProfile, AutoscaleSetting, ProfileTime, WeeklyTime, moment};
use serde_json::{Value, json};

use crate::azure::examples::fixture;
use crate::azure::kit::{SET, START, kit, usual};
use crate::azure::server::Says;
use crate::support::long::long_or;

#[tokio::test]
async fn the_autoscaler_of_a_set_is_told_with_the_sizes_that_hold_now() {
    let of = |enabled: bool| async move {
        let profile =
            json!({"name": "all", "capacity": {"minimum": "2", "maximum": "8", "default": "2"}});
        let setting = json!({"id": "/settings/web-scale", "properties": {"enabled": enabled,
            "targetResourceUri": SET.to_uppercase(), "profiles": [profile]}});
        let kit = kit(move |heard| match heard.target.contains("autoscale") {
            true => Says::json(&json!({"value": [setting]})),
            false => usual(heard),
        });
        kit.await.look().await.unwrap().set.autoscaler
    };
    for enabled in [true, false] {
        let bounds = AutoscalerBounds { profile: "all".into(), minimum: 2, maximum: 8 };
        let setting = "/settings/web-scale".into();
        let mut shown = of(enabled).await.unwrap();
        assert!(shown.document.take().unwrap().text().contains("web-scale"));
        let found = Autoscaler { setting, enabled, bounds: Some(bounds), document: None };
        assert_eq!(shown, found);
    }
}

/// What is seen at `now` of an autoscaler with this document.
async fn bounds_of(document: Value, after: Span) -> Option<AutoscalerBounds> {
    let kit = kit(move |heard| match heard.target.contains("autoscale") {
        true => Says::json(&json!({"value": [document]})),
        false => usual(heard),
    })
    .await;
    kit.clock.pass(after);
    kit.look().await.unwrap().set.autoscaler.unwrap().bounds
}

#[tokio::test]
async fn the_official_example_is_read() {
    let text = fixture("autoscale_get");
    let target = "/subscriptions/b67f7fec-69fc-4974-9099-a26bd6ffeda3/resourceGroups/TestingMetricsScaleSet/providers/Microsoft.Compute/virtualMachineScaleSets/testingsc";
    let document = serde_json::from_str(&text.replace(target, SET)).unwrap();
    // Its date is over since 2015; what recurs on Mondays at 05:15 has no end.
    let bounds = AutoscalerBounds { profile: "saludos".into(), minimum: 1, maximum: 10 };
    assert_eq!(bounds_of(document, Span::ZERO).await, Some(bounds));
}

/// The profile of a drawn setting, as the document has it and as the simulated service understands it: that one is
/// written from Azure's documents, and knows nothing of this adapter.
fn drawn(dice: &mut Dice, n: usize) -> (Value, AutoscaleProfile) {
    const ZONES: [&str; 4] =
        ["UTC", "W. Europe Standard Time", "Pacific Standard Time", "India Standard Time"];
    const DAYS: [&str; 7] =
        ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    let name = format!("p{n}");
    let mut document = json!({"name": name, "rules": [],
        "capacity": {"minimum": "1", "maximum": (n + 1).to_string(), "default": "1"}});
    let zone = ZONES[dice.below(4) as usize];
    let when = match dice.below(4) {
        0 => ProfileTime::Always,
        1 => {
            let day = 1 + dice.below(20);
            let (start, end) =
                (format!("2026-03-{day:02}T07:30:00"), format!("2026-03-{:02}T18:00:00", day + 2));
            document["fixedDate"] = json!({"timeZone": zone, "start": start, "end": end});
            ProfileTime::Date {
                from: moment(&start, zone).unwrap(),
                until: moment(&end, zone).unwrap(),
            }
        }
        // No clock changes between 4 and 23: what happens in an hour that is skipped or doubled is not documented.
        _ => {
            let mut some = |least: u64, below: u64| -> Vec<u8> {
                (0..=dice.below(2)).map(|_| (least + dice.below(below - least)) as u8).collect()
            };
            let (days, hours, minutes) = (some(0, 7), some(4, 24), some(0, 60));
            let names: Vec<&str> = days.iter().map(|day| DAYS[usize::from(*day)]).collect();
            document["recurrence"] = json!({"frequency": "Week", "schedule":
                {"timeZone": zone, "days": names, "hours": hours, "minutes": minutes}});
            ProfileTime::Weekly(WeeklyTime { zone: zone.into(), days, hours, minutes })
        }
    };
    let (minimum, maximum) = (1, n as u32 + 1);
    (document, AutoscaleProfile { name, minimum, maximum, default: 1, rules: Vec::new(), when })
}

#[tokio::test]
async fn the_profile_that_applies_is_the_one_that_the_simulated_service_follows() {
    let mut applied = [0; 3];
    for seed in 0..long_or(200, 60) {
        let mut dice = Dice::from_seed(seed);
        let many = 1 + dice.below(5) as usize;
        let (documents, profiles): (Vec<_>, Vec<_>) =
            (0..many).map(|n| drawn(&mut dice, n)).unzip();
        let after = Span::minutes(dice.below(30 * 24 * 60) as i64);
        let service = AutoscaleSetting { profiles, ..AutoscaleSetting::between(1, 1) };
        let follows = service.profile_at(START.plus(after).millis());
        let document = json!({"id": "/settings/web-scale", "properties": {"enabled": true,
            "targetResourceUri": SET, "profiles": documents}});
        let seen = bounds_of(document.clone(), after).await;
        let told = seen.as_ref().map(|bounds| (&*bounds.profile, bounds.maximum));
        let wanted = follows.map(|profile| (profile.name.as_str(), profile.maximum));
        assert_eq!(told, wanted, "{seed}, {after} later: {document:#}");
        if let Some(profile) = follows {
            applied[match profile.when {
                ProfileTime::Always => 0,
                ProfileTime::Date { .. } => 1,
                ProfileTime::Weekly(_) => 2,
            }] += 1;
        }
    }
    assert!(applied.iter().all(|many| *many > long_or(10, 3)), "{applied:?}");
}

#[tokio::test]
async fn who_was_known_to_scale_still_does_while_nobody_can_be_asked() {
    let fails = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&fails);
    let kit = kit(move |heard| match () {
        () if !heard.target.contains("autoscale") => usual(heard),
        () if now.load(Ordering::SeqCst) => Says::fault(403, "AuthorizationFailed", "no"),
        () => Says::json(
            &json!({"value": [{"properties": {"enabled": true, "targetResourceUri": SET}}]}),
        ),
    })
    .await;
    assert_eq!(kit.look().await.unwrap().set.platform_features, [PlatformFeature::Autoscale]);
    fails.store(true, Ordering::SeqCst);
    kit.clock.pass(Span::minutes(11));
    let seen = kit.look().await.unwrap();
    assert_eq!(seen.set.platform_features, [PlatformFeature::Autoscale]);
    assert_eq!(&*seen.gaps[0].what, "autoscale settings");
    assert!(seen.set.complete, "the machines were all seen");
}

/// What answers in turn make of an autoscale that this set does not have.
async fn autoscale_after(answers: &[Says]) -> (Vec<PlatformFeature>, usize) {
    let answers = Arc::new(Mutex::new(answers.to_vec()));
    let (next, count) = (Arc::clone(&answers), answers.lock().unwrap().len());
    let kit = kit(move |heard| match heard.target.contains("autoscale") {
        true => next.lock().unwrap().remove(0),
        false => usual(heard),
    })
    .await;
    let mut seen = kit.look().await.unwrap();
    for _ in 1..count {
        kit.clock.pass(Span::minutes(11));
        seen = kit.look().await.unwrap();
    }
    assert_eq!(seen.set.platform_features, []);
    (seen.set.platform_features_unknown, seen.gaps.len())
}

#[tokio::test]
async fn an_autoscale_that_cannot_be_read_is_not_none() {
    let denied = || Says::fault(403, "AuthorizationFailed", "no");
    let late = || Says::fault(503, "ServiceUnavailable", "later");
    let none = || Says::json(&json!({"value": []}));
    let missing = "The subscription is not registered to use namespace 'microsoft.insights'.";
    let missing = || Says::fault(409, "MissingSubscriptionRegistration", missing);
    let unknown = (vec![PlatformFeature::Autoscale], 1);
    assert_eq!(autoscale_after(&[denied()]).await, unknown);
    assert_eq!(autoscale_after(&[late()]).await, unknown);
    assert_eq!(autoscale_after(&[none(), denied()]).await, unknown, "the right was taken away");
    assert_eq!(autoscale_after(&[denied(), late()]).await, unknown);
    assert_eq!(autoscale_after(&[none(), late()]).await, (vec![], 1), "as it was known to be");
    assert_eq!(autoscale_after(&[denied(), none()]).await, (vec![], 0));
    // Where the provider is not registered there can be no setting, and no permission would show one.
    assert_eq!(autoscale_after(&[missing()]).await, (vec![], 0));
}
