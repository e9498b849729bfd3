//! The autoscaler of a set: who it is, what it keeps now, and what is known of it while it cannot be read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::model::autoscaler::{Autoscaler, AutoscalerBounds};
use poolkeeper::model::inventory::PlatformFeature;
use poolkeeper::model::time::Span;
use serde_json::json;

use crate::azure::kit::{SET, kit, usual};
use crate::azure::server::Says;

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
        let found = Autoscaler { setting, enabled, bounds: Some(bounds) };
        assert_eq!(of(enabled).await, Some(found));
    }
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
