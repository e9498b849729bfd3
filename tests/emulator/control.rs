//! Orders to the emulator itself: faults, fate, the clock, and what is true.

use serde_json::{Value, json};

use super::support::*;

fn order(client: &Client, what: &str, body: &Value) -> Reply {
    client.ask("POST", &format!("/_control/{what}"), &[], body)
}

#[test]
fn the_clock_is_sent_ahead() {
    let client = Client::web();
    client.patch(SET, &json!({ "sku": { "capacity": 5 } })).expect(200);
    let before = order(&client, "clock", &json!({})).expect(200).json();
    assert!(before["nextEvent"].is_string());
    order(&client, "clock", &json!({ "advance": "30m" })).expect(200);
    let state = client.ask("GET", "/_control/state", &[], &Value::Null).expect(200).json();
    assert_eq!(state["scaleSets"][0]["ready"], 5);
    assert_eq!(state["calls"]["patchCapacity"]["made"], 1);
    assert!(
        state["requests"].as_object().unwrap().keys().any(|key| key.starts_with("PATCH ")),
        "{state}"
    );
    for bad in [json!({ "advance": "soon" }), json!({ "speed": -1.0 }), json!({ "spede": 1.0 })] {
        order(&client, "clock", &bad).expect(400);
    }
}

#[test]
fn single_calls_are_spoiled_by_rule() {
    let client = Client::web();
    let rule = json!({ "rules": [{ "method": "POST", "path": "/delete", "status": 429, "code": "OperationNotAllowed",
        "message": "too many", "retryAfter": 7, "headers": { "x-odd": "1" } }] });
    order(&client, "faults", &rule).expect(200);
    let ids = json!({ "instanceIds": ["0"] });
    let refused = client.post(&format!("{SET}/delete"), &ids).expect(429);
    assert_eq!((refused.header("retry-after"), refused.header("x-odd")), (Some("7"), Some("1")));
    assert_eq!(client.ids().len(), 3, "without effect");
    client.post(&format!("{SET}/delete"), &ids).expect(202);
}

#[test]
fn answers_are_lost_cut_and_disguised() {
    let client = Client::web();
    let send = |method: &str, path: &str, body: &str| {
        let headers = [("authorization", "Bearer x")];
        client.try_send(Client::request(method, &format!("{path}?{VERSION}"), &headers, body))
    };
    let raise = |to: u32| json!({ "sku": { "capacity": to } }).to_string();
    order(&client, "faults", &json!({ "rules": [{ "method": "PATCH", "cut": "before" }] }))
        .expect(200);
    assert!(send("PATCH", SET, &raise(9)).is_none());
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 3);
    order(&client, "faults", &json!({ "rules": [{ "method": "PATCH", "cut": "after" }] }))
        .expect(200);
    assert!(send("PATCH", SET, &raise(4)).is_none());
    assert_eq!(client.get(SET).json()["sku"]["capacity"], 4);
    order(&client, "faults", &json!({ "rules": [{ "path": "/web?", "cut": "body" }] })).expect(200);
    assert!(send("GET", SET, "").is_none(), "half of a body is no answer");
    let rule = json!({ "rules": [{ "path": "/web?", "contentType": "text/html", "slowMs": 1, "delayMs": 1 }] });
    order(&client, "faults", &rule).expect(200);
    let odd = send("GET", SET, "").unwrap();
    assert_eq!(odd.header("content-type"), Some("text/html"));
    assert_eq!(odd.json()["name"], "web", "slow, and whole in the end");
    let page =
        json!({ "rules": [{ "path": "/web?", "status": 502, "body": "<html>oops</html>" }] });
    order(&client, "faults", &page).expect(200);
    assert_eq!(send("GET", SET, "").unwrap().expect(502).text, "<html>oops</html>");
}

#[test]
fn a_set_whose_making_was_not_answered_is_there_all_the_same() {
    let client = Client::web();
    order(&client, "faults", &json!({ "chances": { "doubt": 1.0 } })).expect(200);
    let new = SET.replace("/web", "/new");
    let headers = [("authorization", "Bearer x")];
    let request =
        Client::request("PUT", &format!("{new}?{VERSION}"), &headers, &wanted(1).to_string());
    let answer = client.try_send(request);
    assert!(answer.is_none_or(|answer| answer.status == 504));
    order(&client, "faults", &json!({})).expect(200);
    assert_eq!(client.get(&new).expect(200).json()["sku"]["capacity"], 1);
}

#[test]
fn fate_befalls_vms() {
    let client = Client::web();
    let health = |id: &str| -> Value {
        let vm = client
            .get(&format!("{SET}/virtualMachines/{id}?$expand=instanceView"))
            .expect(200)
            .json();
        vm["properties"]["instanceView"]["vmHealth"]["status"]["code"].clone()
    };
    order(&client, "deeds", &json!({ "set": "web", "instance": "1", "deed": { "sicken": {} } }))
        .expect(200);
    assert_eq!(
        (health("0"), health("1")),
        (json!("HealthState/healthy"), json!("HealthState/unhealthy"))
    );
    order(&client, "deeds", &json!({ "instance": "2", "deed": "vanish" })).expect(200);
    client.get(&format!("{SET}/virtualMachines/2")).expect(404);
    order(&client, "deeds", &json!({ "deed": { "setCapacity": 5 } })).expect(200);
    order(&client, "deeds", &json!({ "deed": { "lock": true } })).expect(200);
    assert_eq!(
        client.patch(SET, &json!({ "sku": { "capacity": 6 } })).expect(409).code(),
        "ScopeLocked"
    );
    let bad = [
        json!({ "deed": "dance" }),
        json!({ "set": "none", "deed": "fail" }),
        json!({ "instance": "77", "deed": "fail" }),
    ];
    for bad in bad {
        assert_eq!(order(&client, "deeds", &bad).expect(400).code(), "BadOrder");
    }
}

#[test]
fn tokens_are_revoked() {
    let client = Client::web();
    let form = "client_id=app&client_secret=s&scope=x";
    let path = "/11111111-1111-1111-1111-111111111111/oauth2/v2.0/token";
    let given =
        client.try_send(Client::request("POST", path, &[], form)).unwrap().expect(200).json();
    let bearer = format!("Bearer {}", given["access_token"].as_str().unwrap());
    let read = || {
        let target = format!("{SET}?{VERSION}");
        client.try_send(Client::request("GET", &target, &[("authorization", &bearer)], "")).unwrap()
    };
    read().expect(200);
    order(&client, "tokens", &json!({})).expect(200);
    assert_eq!(read().expect(401).code(), "ExpiredAuthenticationToken");
}

#[test]
fn a_page_for_people_shows_what_is_there() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "instances":
        [{ "found": "sick" }, {}] }] }));
    client.get(SET).expect(200);
    let page = client.try_send(Client::request("GET", "/", &[], "")).unwrap().expect(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let text = page.text;
    assert!(
        text.contains("<h2>web</h2>") && text.contains("not ready") && !text.contains("<script"),
        "{text}"
    );
    assert!(text.contains("2 there, 1 ready"), "{text}");
}

#[test]
fn a_seed_that_cannot_be_is_refused_with_its_place() {
    let bad = |seed: Value| {
        let seed = serde_json::from_value(seed).unwrap();
        poolkeeper::emulator::Emulator::new(&seed, 1.0, std::sync::Arc::new(ManualClock::at(START)))
            .unwrap_err()
            .to_string()
    };
    let twice = bad(json!({ "scaleSets": [{ "name": "a" }, { "name": "A" }] }));
    assert!(twice.starts_with("scaleSets[1] (\"A\"): "), "{twice}");
    let mode = json!({ "properties": { "upgradePolicy": { "mode": "Odd" } } });
    let odd = bad(json!({ "scaleSets": [{ "name": "a", "resource": mode }] }));
    assert!(odd.contains("upgradePolicy.mode"), "{odd}");
    assert!(bad(json!({ "faults": { "named": "odd" } })).contains("storm"));
}

#[test]
fn a_rolling_upgrade_to_a_bad_image_ends_faulted() {
    let client = Client::web();
    let rolling = json!({ "properties": { "upgradePolicy": { "mode": "Rolling" } } });
    client.patch(SET, &rolling).expect(200);
    client.wait(60);
    let image = json!({ "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "9.9.9" });
    order(&client, "deeds", &json!({ "deed": { "badImage": { "image": image } } })).expect(200);
    let body = json!({ "properties": { "virtualMachineProfile": { "storageProfile":
        { "imageReference": image } } } });
    client.patch(SET, &body).expect(200);
    client.wait(240);
    let latest = client.get(&format!("{SET}/rollingUpgrades/latest")).expect(200).json();
    let properties = &latest["properties"];
    assert_eq!(properties["runningStatus"]["code"], "Faulted", "{latest}");
    assert_eq!(properties["progress"]["failedInstanceCount"], 1, "{latest}");
    let code = properties["error"]["code"].as_str().unwrap();
    assert!(code.starts_with("MaxUnhealthy"), "{latest}");
}
