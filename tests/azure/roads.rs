//! The road: tokens that are refused, origins that are foreign, answers that never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use poolkeeper::act::{CallOutcome, ChangeCloud, Poll};
use poolkeeper::adapters::azure::auth::{AuthError, AuthFailureReason, CredentialAttempt, Way};
use poolkeeper::model::journal::{OperationUrl, Refusal};
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadCloud;
use poolkeeper::pace::{CallCost, PacedOperation, ResponseHints};
use serde_json::json;

use crate::azure::kit::{
    Changes, Purse, SECRET, SET, START, Sheet, adapter, kit, kit_of, machine, paced_kit, set_id,
    target, usual,
};
use crate::azure::server::{Heard, Says, Server};

/// Refuses the first token wherever it comes.
fn old_token_refused(heard: &Heard) -> Option<Says> {
    let first = format!("Bearer {SECRET}-0");
    let expired = Says::fault(401, "ExpiredAuthenticationToken", "The access token expiry …");
    (heard.header("authorization") == Some(&first)).then_some(expired)
}

#[tokio::test]
async fn a_refused_token_is_dropped_and_the_request_sent_once_more() {
    let kit = kit(|heard| old_token_refused(heard).unwrap_or_else(|| usual(heard))).await;
    kit.look().await.unwrap();
    assert_eq!(kit.purse.refused.lock().unwrap().len(), 1);
    assert_eq!(kit.server.count("GET", "userData"), 2);
    assert_eq!(kit.server.heard().len(), 5, "only the first was sent twice");
}

#[tokio::test]
async fn also_a_write_since_it_never_got_in() {
    let kit = kit(|heard| old_token_refused(heard).unwrap_or(Says::status(202, ""))).await;
    let sheet = Sheet::new();
    let answer = kit.azure.delete(&sheet.order(), &[target("3")], false).await;
    assert_eq!(answer, CallOutcome::Accepted(None));
    assert_eq!(kit.server.count("POST", "/delete"), 2);
}

#[tokio::test]
async fn it_is_sent_twice_at_most_and_never_again_with_the_same_token() {
    let refuse =
        |_: &Heard| Says::fault(401, "InvalidAuthenticationToken", "The access token is invalid.");
    for (only_one, sent) in [(true, 1), (false, 2)] {
        let purse = Purse { only_one, ..Purse::default() };
        let kit = kit_of(purse, Duration::from_secs(5), refuse).await;
        assert_eq!(kit.look().await.unwrap_err().refusal, Refusal::Forbidden);
        assert_eq!(kit.server.heard().len(), sent);
    }
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    for (why, refusal, answer) in [
        (
            AuthFailureReason::Refused { status: 401, number: Some(7_000_215), code: None },
            Refusal::Forbidden,
            "refused",
        ),
        (AuthFailureReason::Late(10), Refusal::Unclear, "not sent"),
    ] {
        let failed = AuthError {
            tried: vec![CredentialAttempt { way: Way::ClientSecret, why, wait: None }],
        };
        let purse = Purse { empty: Some(failed), ..Purse::default() };
        let kit = kit_of(purse, Duration::from_secs(5), usual).await;
        let failed = kit.look().await.unwrap_err();
        assert_eq!(failed.refusal, refusal);
        assert!(failed.say.contains("no token"), "{failed}");
        let said = kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await;
        match answer {
            "refused" => {
                assert!(
                    matches!(said, CallOutcome::Refused(no) if no.refusal == Refusal::Forbidden)
                );
            }
            _ => assert_eq!(said, CallOutcome::NotSent),
        }
        assert!(kit.server.heard().is_empty());
    }
}

#[tokio::test]
async fn no_token_goes_to_another_origin() {
    let stranger =
        Server::start(|_| Says::json(&json!({"value": [], "status": "Succeeded"}))).await;
    let next = format!("{}/next?x=1", stranger.base);
    let link = next.clone();
    let kit = kit(move |heard| match heard.is("GET", "/virtualMachines?") {
        true => Says::json(&json!({"value": [machine(0)], "nextLink": link})),
        false => usual(heard),
    })
    .await;
    let seen = kit.look().await.unwrap();
    assert!(
        !seen.set.complete && seen.gaps[0].why.contains("not of this cloud"),
        "{:?}",
        seen.gaps
    );
    let operation = OperationUrl::new(format!("async {next}"));
    assert_eq!(kit.azure.poll(&set_id(), &operation).await, Poll::Lost);
    assert!(stranger.heard().is_empty());
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let stranger = Server::start(usual).await;
    let to = format!("{}{SET}", stranger.base);
    let kit = kit(move |_| Says::status(307, "").with("location", &to)).await;
    assert_eq!(kit.look().await.unwrap_err().refusal, Refusal::Unclear);
    assert!(stranger.heard().is_empty());
}

#[tokio::test]
async fn a_write_is_sent_once_whatever_becomes_of_it() {
    let patience = Duration::from_millis(150);
    for says in [Says::Nothing, Says::Stall("{".into()), Says::Half("{}".into())] {
        let said = says.clone();
        let kit = kit_of(Purse::default(), patience, move |_| said.clone()).await;
        let answer = kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await;
        assert_eq!(answer, CallOutcome::Lost, "{says:?}");
        // On a busy machine the server hears it only after the client has given up.
        for _ in 0..500 {
            if !kit.server.heard().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(kit.server.heard().len(), 1, "{says:?}");
    }
    for status in [408, 500, 502, 503, 504] {
        let kit = kit(move |_| Says::fault(status, "ServerTimeout", "m")).await;
        let answer = kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await;
        assert!(matches!(answer, CallOutcome::Refused(no) if no.refusal == Refusal::Unclear));
        assert_eq!(kit.server.heard().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn what_could_not_be_connected_was_not_sent() {
    let kit = kit(usual).await;
    let silent = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let azure = adapter(&silent, Duration::from_secs(5), &kit.purse, None, &kit.clock);
    let answer = azure.delete(&Sheet::new().order(), &[target("1")], false).await;
    assert_eq!(answer, CallOutcome::NotSent);
    let failed = azure.list(&set_id()).await.unwrap_err();
    assert!(failed.say.contains("no connection"), "{failed}");
}

#[tokio::test]
async fn nothing_leaves_too_late_or_unadmitted() {
    let late = kit(usual).await;
    late.clock.pass(Span::seconds(61));
    let sheet = Sheet::new();
    assert_eq!(
        late.azure.delete(&sheet.order(), &[target("1")], false).await,
        CallOutcome::NotSent
    );
    let shut = paced_kit(usual).await;
    let set = set_id();
    let operation = PacedOperation::Delete;
    let call = CallCost { set: &set, operation, machines: 1, before: None };
    let told = ResponseHints {
        throttled: true,
        retry_after: Some(Span::minutes(3)),
        ..ResponseHints::default()
    };
    shut.pacer().permit(call).await.unwrap().heard(&told);
    assert_eq!(
        shut.azure.delete(&sheet.order(), &[target("1")], false).await,
        CallOutcome::NotSent
    );
    assert!(late.server.heard().is_empty() && shut.server.heard().is_empty());
}

#[tokio::test]
async fn what_is_told_of_throttling_reaches_whoever_paces() {
    let n = Arc::new(AtomicUsize::new(0));
    let kit = paced_kit(move |_| match n.fetch_add(1, Ordering::SeqCst) {
        0 => Says::status(202, "")
            .with(
                "x-ms-ratelimit-remaining-resource",
                "Microsoft.Compute/A;5,Microsoft.Compute/B;7",
            )
            .with("x-ms-ratelimit-remaining-resource", "Microsoft.Compute/C;9")
            .with("x-ms-ratelimit-remaining-subscription-writes", "199")
            .with("x-ms-request-charge", "2"),
        _ => Says::status(429, "").with("retry-after", "3"),
    })
    .await;
    let sheet = Sheet::new();
    let two = [target("1"), target("2")];
    let _ = kit.azure.delete(&sheet.order(), &two, false).await;
    assert_eq!(kit.charged(), [("delete", 1)]);
    let limits = kit.pacer().limits();
    let limit = |name: &str| limits.iter().find(|limit| &*limit.name == name).unwrap();
    // Less than was told, by what comes back in one step.
    for (name, left) in [("A", 4), ("B", 5), ("C", 6), ("subscription-writes", 189)] {
        assert_eq!(limit(name).left, left, "{name}");
    }
    let batched = limit("VMScaleSetBatchedVMRequestsSubscriptionMaximum");
    assert_eq!(batched.most - batched.left, 2, "machines are counted");
    assert_eq!(kit.shut_until(), []);
    let _ = kit.azure.delete(&sheet.order(), &two, false).await;
    assert_eq!(kit.pacer().counts().of(PacedOperation::Delete).throttled, 1);
    assert_eq!(kit.shut_until(), [START.plus(Span::seconds(3))]);
}

#[tokio::test]
async fn not_every_429_is_about_the_rate() {
    let busy = Says::fault(429, "RetryableErrorDueToAnotherOperation", "… is updating resource …");
    let quota =
        Says::fault(429, "OperationNotAllowed", "… exceeding approved Total Regional Cores quota.");
    let words =
        Says::fault(429, "SubscriptionRequestsThrottled", "Please try again after '6' seconds.");
    let inner = json!({"error": {"code": "OperationNotAllowed", "message": "m",
        "details": [{"code": "TooManyRequests", "target": "HighCostGet", "message": "m"}]}});
    let date = Says::status(429, "")
        .with("Date", "Sun, 01 Mar 2026 11:59:00 GMT")
        .with("Retry-After", "Sun, 01 Mar 2026 11:59:40 GMT");
    for (says, refusal, closes, wait) in [
        (busy, Refusal::Conflict, false, None),
        (quota, Refusal::Quota, false, None),
        (words, Refusal::Throttled, true, Some(6)),
        (Says::status(409, &inner.to_string()), Refusal::Throttled, true, None),
        (date, Refusal::Throttled, true, Some(40)),
        (Says::status(429, "<html>"), Refusal::Throttled, true, None),
    ] {
        let shown = format!("{says:?}");
        let kit = paced_kit(move |_| says.clone()).await;
        let answer = kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await;
        assert!(matches!(answer, CallOutcome::Refused(no) if no.refusal == refusal), "{shown}");
        let until = START.plus(Span::seconds(wait.unwrap_or(60)));
        assert_eq!(kit.shut_until(), if closes { vec![until] } else { vec![] }, "{shown}");
    }
}

#[tokio::test]
async fn what_did_not_leave_by_its_time_never_leaves() {
    let kit = kit(|_| Says::Stall("{".into())).await;
    kit.clock.pass(Span::from_millis(59_800));
    let (sheet, one) = (Sheet::new(), [target("1")]);
    let order = sheet.order();
    let sent = kit.azure.delete(&order, &one, false);
    let answer = tokio::time::timeout(Duration::from_secs(4), sent).await;
    assert_eq!(answer, Ok(CallOutcome::Lost), "it was heard, so it may have happened");
    assert_eq!(kit.server.heard().len(), 1);
}
