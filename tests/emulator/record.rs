//! What is kept for those who judge a client by what it asked.

use serde_json::{Value, json};

use super::support::*;

fn recorded(seed: &Value) -> Client {
    let mut seed = seed.clone();
    seed["settings"] = json!({ "record": true, "quicker": 10.0 });
    seed["scaleSets"] = json!([{ "name": "web" }]);
    Client::new(&seed)
}

fn record(client: &Client, from: &str) -> Value {
    client.ask("GET", &format!("/_control/record{from}"), &[], &Value::Null).expect(200).json()
}

#[test]
fn calls_are_kept_with_what_they_asked_and_how_they_ended() {
    let client = recorded(&json!({}));
    client.get(SET).expect(200);
    let ids = json!({ "instanceIds": ["0"] });
    client.post(&format!("{SET}/delete"), &ids).expect(202);
    client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["99"] }));
    let record = record(&client, "");
    let asked = record["requests"].as_array().unwrap();
    assert_eq!(asked.len(), 3, "orders are not among them: {asked:?}");
    assert_eq!((&asked[0]["method"], &asked[0]["body"]), (&json!("GET"), &Value::Null));
    assert_eq!((&asked[1]["status"], &asked[1]["body"]), (&json!(202), &ids));
    assert!(asked[1]["path"].as_str().unwrap().ends_with("/web/delete"));
    assert!(asked[2]["status"].as_u64().unwrap() >= 400, "{asked:?}");
    assert!(asked.iter().all(|one| one["end"] == "answered"), "{asked:?}");
}

#[test]
fn a_caller_that_does_not_wait_for_its_answer_is_gone_and_the_effect_stands() {
    let client =
        recorded(&json!({ "faults": { "rules": [{ "method": "PATCH", "delayMs": 60_000 }] } }));
    let body = json!({ "sku": { "capacity": 4 } }).to_string();
    let headers = [("authorization", "Bearer x")];
    let request = Client::request("PATCH", &format!("{SET}?{VERSION}"), &headers, &body);
    {
        // One poll serves the call, and nobody waits any longer.
        let answer = std::pin::pin!(client.emulator.answer(request, false));
        assert!(client.poll_once(answer).is_none());
    }
    let record = record(&client, "");
    let asked = &record["requests"][0];
    assert_eq!((&asked["end"], &asked["status"]), (&json!("gone"), &json!(200)), "{record}");
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 4);
}

#[test]
fn callers_are_told_apart_and_no_token_or_secret_is_kept() {
    let client = recorded(&json!({ "identities": [{ "clientId": "app", "secret": "hush" }] }));
    let form = "grant_type=client_credentials&client_id=app&client_secret=hush&scope=https%3A%2F%2Fmanagement.azure.com%2F.default";
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let target = "/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token";
    let told = client.try_send(Client::request("POST", target, &kind, form)).unwrap().expect(200);
    let token = told.json()["access_token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let request = Client::request("GET", &format!("{SET}?{VERSION}"), &headers, "");
    client.try_send(request).unwrap().expect(200);
    let record = record(&client, "");
    assert_eq!(record["requests"].as_array().unwrap().len(), 1);
    assert_eq!(record["requests"][0]["client"], "app");
    let text = record.to_string();
    assert!(!text.contains(&token) && !text.contains("hush"), "{text}");
}

#[test]
fn no_change_of_numbers_passes_unseen() {
    let client = recorded(&json!({}));
    client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    // Nobody looks until all is over.
    client.clock.pass(Span::seconds(600));
    let whole = record(&client, "");
    let of = |key: &str| -> Vec<u64> {
        let lines = whole["numbers"].as_array().unwrap().iter();
        lines.map(|line| line[key].as_u64().unwrap()).collect()
    };
    let (ready, there) = (of("ready"), of("there"));
    assert_eq!((ready[0], there[0]), (3, 3));
    assert!(ready.contains(&4), "one came after the other: {ready:?}");
    assert_eq!((ready.last(), there.last()), (Some(&5), Some(&5)));
    let rest = record(&client, "?from=1");
    assert_eq!((&rest["count"], &rest["requests"]), (&json!(1), &json!([])));
    assert!(rest["numbers"].is_null(), "the calls alone");
}

#[test]
fn nothing_is_kept_where_nobody_asked_for_it() {
    let client = Client::web();
    client.get(SET).expect(200);
    let why = client.ask("GET", "/_control/record", &[], &Value::Null).expect(400).json();
    assert!(why["error"]["message"].as_str().unwrap().contains("record: true"), "{why}");
}

#[test]
fn answers_are_kept_where_the_seed_asks_for_them() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }],
        "settings": { "recordAnswers": true } }));
    let set = client.get(SET).expect(200).json();
    let refused = client.get(&format!("{SET}none")).expect(404).json();
    client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["0"] })).expect(202);
    let record = record(&client, "");
    let answers: Vec<&Value> =
        record["requests"].as_array().unwrap().iter().map(|one| &one["answer"]).collect();
    assert_eq!(answers, [&set, &refused, &Value::Null], "an answer without a body has none");
}
