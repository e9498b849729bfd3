//! Long operations on the wire.

use serde_json::json;

use super::support::*;

#[test]
fn both_addresses_tell_how_it_goes() {
    let client = Client::web();
    let gone = client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["0"] })).expect(202);
    let status = gone.header("azure-asyncoperation").unwrap().to_owned();
    let location = gone.header("location").unwrap().to_owned();
    assert!(status.len() > 2_600 && location.contains("monitor=true"), "as long as the real ones");
    assert!(status.contains(gone.header("x-ms-request-id").unwrap()), "named after its request");
    let running = client.follow(&status).expect(200);
    assert_eq!(running.json()["status"], "InProgress");
    assert_eq!(running.header("retry-after"), Some("10"));
    assert!(
        running
            .header("x-ms-ratelimit-remaining-resource")
            .unwrap()
            .contains("GetOperationResource;44")
    );
    let waits = client.follow(&location).expect(202);
    assert!(waits.text.is_empty() && waits.header("location") == Some(&location));
    client.wait(60);
    let done = client.follow(&status).expect(200);
    assert_eq!(done.json()["status"], "Succeeded");
    assert!(done.json()["endTime"].is_string() && done.header("retry-after").is_none());
    assert!(client.follow(&location).expect(200).text.is_empty());
}

#[test]
fn an_address_that_was_altered_or_forgotten_is_not_found() {
    let client = Client::web();
    let gone = client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["0"] })).expect(202);
    let status = gone.header("azure-asyncoperation").unwrap().to_owned();
    let other = status.replace("&s=", "&s=0");
    assert_eq!(client.follow(&other).expect(404).code(), "NotFound");
    client.wait(48 * 60);
    client.follow(&status).expect(404);
}

#[test]
fn a_newer_write_ends_the_older_one() {
    let client = Client::web();
    let first = client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    let end = client.follow(first.header("azure-asyncoperation").unwrap()).expect(200).json();
    assert_eq!(
        (end["status"].as_str(), end["error"]["code"].as_str()),
        (Some("Failed"), Some("OperationPreempted"))
    );
    client.wait(60);
    assert_eq!(client.ids().len(), 5);
}

#[test]
fn speed_shortens_waits_and_never_to_nothing() {
    let client = Client::web();
    let order = json!({ "speed": 4.0 });
    client.ask("POST", "/_control/clock", &[], &order).expect(200);
    let raise = client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    assert_eq!(raise.header("retry-after"), Some("3"));
    client.ask("POST", "/_control/clock", &[], &json!({ "speed": 600.0 })).expect(200);
    let raise = client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    assert_eq!(raise.header("retry-after"), Some("1"), "a client takes zero for no advice");
    client.clock.pass(Span::seconds(1));
    client.follow(raise.header("azure-asyncoperation").unwrap()).expect(200);
    assert_eq!(client.ids().len(), 5, "ten minutes in a second");
}

#[test]
fn the_polls_of_one_operation_have_their_own_limit() {
    let client = Client::web();
    let raise = client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    let address = raise.header("azure-asyncoperation").unwrap();
    for _ in 0..45 {
        client.follow(address).expect(200);
    }
    let tired = client.follow(address).expect(429);
    assert_eq!(tired.json()["error"]["details"][0]["target"], "GetOperationResource");
    assert!(tired.header("retry-after").is_some());
    let other = client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    client.follow(other.header("azure-asyncoperation").unwrap()).expect(200);
}
