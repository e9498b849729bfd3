//! Both ways to follow an operation, from acceptance to every possible end.

use super::*;
use crate::model::journal::Refusal;
use crate::model::time::{Span, Time};

const AT: Time = Time::from_millis(5_000);
const OP: &str = "https://management.azure.com/subscriptions/s/providers/Microsoft.Compute/locations/l/operations/o?p=1&s=SIGNATURE";

fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> ArmReply {
    ArmReply::made_up(status, headers, body, AT)
}

fn ours(url: &Url) -> bool {
    url.host_str() == Some("management.azure.com")
}

fn address(kind: Kind) -> Address {
    Address { kind, url: Url::parse(OP).unwrap() }
}

fn poll(kind: Kind, status: u16, headers: &[(&str, &str)], body: &str) -> Poll {
    polled(&address(kind), Ok(reply(status, headers, body)), |_| None).0
}

#[test]
fn the_status_document_is_preferred_and_comes_back_from_the_journal() {
    let both =
        [("Location", "https://management.azure.com/l?monitor=true"), ("Azure-AsyncOperation", OP)];
    let CallOutcome::Accepted(Some(operation)) = accepted(&reply(202, &both, ""), ours) else {
        panic!()
    };
    let back = Address::of_operation(&operation).unwrap();
    assert_eq!(back, address(Kind::Async));
    assert_eq!(back.url().as_str(), OP);
    let CallOutcome::Accepted(Some(operation)) = accepted(&reply(202, &both[..1], ""), ours) else {
        panic!()
    };
    assert_eq!(Address::of_operation(&operation).unwrap().kind, Kind::Location);
    assert!(Address::of_operation(&OperationUrl::new(OP)).is_none());
}

#[test]
fn acceptance_without_an_address() {
    let answer = |status, body| accepted(&reply(status, &[], body), ours);
    assert_eq!(answer(202, ""), CallOutcome::Accepted(None));
    assert_eq!(answer(204, ""), CallOutcome::Done);
    assert_eq!(answer(200, ""), CallOutcome::Done);
    assert_eq!(
        answer(200, r#"{"properties":{"provisioningState":"Succeeded"}}"#),
        CallOutcome::Done
    );
    assert_eq!(
        answer(200, r#"{"properties":{"provisioningState":"Updating"}}"#),
        CallOutcome::Accepted(None)
    );
    assert_eq!(
        answer(201, r#"{"properties":{"provisioningState":"Creating"}}"#),
        CallOutcome::Accepted(None)
    );
    assert_eq!(answer(200, "<html>sign in here</html>"), CallOutcome::Lost);
    let foreign = [("Azure-AsyncOperation", "https://evil.example/op")];
    assert_eq!(accepted(&reply(202, &foreign, ""), ours), CallOutcome::Accepted(None));
    let long = "https://management.azure.com/?".to_owned() + &"x".repeat(20_000);
    assert_eq!(
        accepted(&reply(202, &[("Location", &long)], ""), ours),
        CallOutcome::Accepted(None)
    );
}

#[test]
fn status_documents() {
    let document = |body: &str| poll(Kind::Async, 200, &[("Retry-After", "10")], body);
    let later = Poll::Running { retry_at: Some(AT.plus(Span::seconds(10))) };
    for going in ["InProgress", "Accepted", "Running", "Updating", "Anything"] {
        assert_eq!(
            document(&format!(r#"{{"startTime":"…","status":"{going}","name":"x"}}"#)),
            later
        );
    }
    for strange in ["", "{}", "null", "<html>", r#"{"status":null}"#, r#"{"status":7}"#] {
        assert_eq!(document(strange), later, "{strange}");
    }
    assert_eq!(document(r#"{"status":"succeeded"}"#), Poll::Done);
    for ended in ["Failed", "Canceled", "Cancelled"] {
        let body = format!(
            r#"{{"status":"{ended}","error":{{"code":"OperationPreempted","message":"m"}}}}"#
        );
        let Poll::Failed(refused) = document(&body) else { panic!("{ended}") };
        assert_eq!(
            (refused.refusal, refused.code.as_deref()),
            (Refusal::Preempted, Some("OperationPreempted"))
        );
    }
    let Poll::Failed(refused) = document(r#"{"status":"Failed"}"#) else { panic!() };
    assert_eq!(refused.refusal, Refusal::Unclear);
    let bad = r#"{"status":"Failed","error":{"code":"OSProvisioningTimedOut","message":"m"}}"#;
    assert_eq!(
        document(bad),
        Poll::Done,
        "the request was carried out; the listing shows the machine"
    );
}

#[test]
fn locations() {
    assert_eq!(poll(Kind::Location, 202, &[], ""), Poll::Running { retry_at: None });
    assert_eq!(poll(Kind::Location, 200, &[], ""), Poll::Done);
    assert_eq!(poll(Kind::Location, 204, &[], ""), Poll::Done);
}

#[test]
fn what_is_not_known_any_more_is_lost_and_what_failed_on_its_way_goes_on() {
    for kind in [Kind::Async, Kind::Location] {
        let known = [("x-ms-request-id", "r")];
        assert_eq!(poll(kind, 404, &known, ""), Poll::Lost);
        assert_eq!(poll(kind, 410, &[], r#"{"error":{"code":"x"}}"#), Poll::Lost);
        assert_eq!(poll(kind, 400, &known, ""), Poll::Lost);
        assert_eq!(poll(kind, 404, &[], "<html>proxy</html>"), Poll::Running { retry_at: None });
        for status in [401, 403, 500, 503, 302] {
            assert_eq!(poll(kind, status, &[], ""), Poll::Running { retry_at: None }, "{status}");
        }
        let wait = Some(AT.plus(Span::seconds(7)));
        assert_eq!(poll(kind, 429, &[("Retry-After", "7")], ""), Poll::Running { retry_at: wait });
        let minute = Some(AT.plus(Span::minutes(1)));
        assert_eq!(poll(kind, 429, &[], ""), Poll::Running { retry_at: minute });
        let of = |why| polled(&address(kind), Err(why), |_| None).0;
        assert_eq!(of(NoResponse::Lost("cut".into())), Poll::Running { retry_at: None });
        assert_eq!(of(NoResponse::NotSent("no route".into())), Poll::Running { retry_at: None });
        assert_eq!(of(NoResponse::Foreign), Poll::Lost);
    }
}

#[test]
fn nothing_shows_an_address() {
    let headers = [("Azure-AsyncOperation", OP), ("Location", OP)];
    let reply = reply(202, &headers, OP);
    let answer = accepted(&reply, ours);
    let shown = format!("{reply:?} {answer:?} {:?}", address(Kind::Async));
    assert!(!shown.contains("SIGNATURE") && !shown.contains("operations"), "{shown}");
}
