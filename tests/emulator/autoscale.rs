//! Autoscale settings as clients write and read them, what they do to a set, and the activity log.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::*;

const NEWEST: &str = "api-version=2022-10-01";

fn path(name: &str) -> String {
    format!("{SUB}/resourcegroups/rg/providers/Microsoft.Insights/autoscalesettings/{name}")
}

fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Reply {
    client.ask(method, &format!("{path}?{NEWEST}"), &[], body)
}

fn profile(minimum: u32, maximum: u32) -> Value {
    json!({ "name": "all", "rules": [], "capacity": { "minimum": minimum.to_string(),
        "maximum": maximum.to_string(), "default": minimum.to_string() } })
}

fn setting(enabled: &Value, profiles: &[Value]) -> Value {
    json!({ "location": "eastus2", "tags": { "team": "a" }, "properties": { "enabled": enabled,
        "targetResourceUri": SET, "profiles": profiles } })
}

fn rule(direction: &str, operator: &str, threshold: &Value, value: &Value) -> Value {
    json!({ "metricTrigger": { "metricName": "Percentage CPU", "metricResourceUri": SET, "timeGrain": "PT1M",
            "statistic": "Average", "timeWindow": "PT0S", "timeAggregation": "Average", "operator": operator,
            "threshold": threshold },
        "scaleAction": { "direction": direction, "type": "ChangeCount", "value": value, "cooldown": "PT5M" } })
}

fn order(client: &Client, what: &str, body: &Value) -> Reply {
    client.ask("POST", &format!("/_control/{what}"), &[], body)
}

fn capacity(client: &Client) -> Value {
    client.get(SET).expect(200).json()["sku"]["capacity"].clone()
}

fn message(answer: &Reply) -> String {
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

/// Without what Azure adds, and with one spelling of what it spells otherwise.
fn normalised(document: &Value) -> Value {
    let mut plain = document.clone();
    for key in ["id", "name", "type"] {
        plain.as_object_mut().unwrap().remove(key);
    }
    let location = plain["location"].as_str().unwrap().replace(' ', "").to_lowercase();
    plain["location"] = json!(location);
    if let Some(tags) = plain["tags"].as_object_mut() {
        tags.remove("$type");
    }
    let properties = plain["properties"].as_object_mut().unwrap();
    properties.remove("name");
    if let Some(policy) = properties.get_mut("predictiveAutoscalePolicy") {
        policy.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    texts(&mut plain);
    plain
}

fn texts(value: &mut Value) {
    match value {
        Value::Number(number) => *value = json!(number.as_f64().unwrap().to_string()),
        Value::Array(all) => all.iter_mut().for_each(texts),
        Value::Object(all) => all.values_mut().for_each(texts),
        _ => {}
    }
}

#[test]
fn settings_are_synchronous_and_act_while_enabled() {
    let client = Client::web();
    let path = path("mine");
    let body = |enabled: Value| {
        let mut body = setting(&enabled, &[profile(6, 8)]);
        body["properties"]["targetResourceUri"] = json!(SET.to_uppercase());
        body
    };
    assert_eq!(ask(&client, "GET", &path, &Value::Null).expect(404).code(), "ResourceNotFound");
    ask(&client, "PUT", &path, &body(Value::Null)).expect(201);
    let read = ask(&client, "GET", &path, &Value::Null).expect(200);
    assert_eq!(read.json()["properties"]["enabled"], false, "off unless asked for");
    assert!(read.header("etag").is_none());
    client.wait(60);
    assert_eq!(client.ids().len(), 3);
    let etag = client.get(SET).json()["etag"].clone();
    ask(&client, "PATCH", &path, &body(json!(true))).expect(200);
    assert_eq!(client.get(SET).json()["etag"], etag, "the set itself was not written");
    client.wait(60);
    assert_eq!(client.ids().len(), 6);
    ask(&client, "DELETE", &path, &Value::Null).expect(200);
    ask(&client, "DELETE", &path, &Value::Null).expect(204);
    client.patch(SET, &json!({ "sku": { "capacity": 2 } })).expect(200);
    client.wait(60);
    assert_eq!(client.ids().len(), 2);
    let on = json!({ "scaleSets": [{ "name": "web" }], "settings": { "switches": { "autoscaleOnUnlessSaid": true } } });
    let client = Client::new(&on);
    let read = ask(&client, "PUT", &path, &body(Value::Null)).expect(201);
    assert_eq!(read.json()["properties"]["enabled"], true);
}

#[test]
fn an_answer_spells_what_was_written_as_azure_does() {
    let client = Client::web();
    let mut body = setting(&json!(true), &[profile(1, 9)]);
    body["properties"]["profiles"][0]["capacity"]["maximum"] = json!(9);
    body["properties"]["profiles"][0]["rules"] =
        json!([rule("Increase", "GreaterThan", &json!(60), &json!(2))]);
    body["properties"]["predictiveAutoscalePolicy"] = json!({ "scaleMode": "Enabled" });
    body["properties"]["notifications"] = json!([{ "operation": "Scale", "webhooks": [{ "serviceUri": "https://x", "properties": {} }] }]);
    body["properties"]["strange"] = json!({ "of": [1, null, { "later": "years" }] });
    let put = ask(&client, "PUT", &path("mine"), &body).expect(201).json();
    let got = ask(&client, "GET", &path("mine"), &Value::Null).expect(200).json();
    assert_eq!(put, got);
    assert_eq!(
        (&got["location"], &got["properties"]["name"]),
        (&json!("East US 2"), &json!("mine"))
    );
    assert_eq!(got["type"], "Microsoft.Insights/autoscaleSettings");
    assert!(got["id"].as_str().unwrap().contains("/microsoft.insights/autoscalesettings/mine"));
    assert!(got["tags"]["$type"].is_string() && got["tags"]["team"] == "a", "{got}");
    let policy = &got["properties"]["predictiveAutoscalePolicy"];
    assert_eq!(policy, &json!({ "scaleMode": "Enabled", "scaleLookAheadTime": null }));
    let shown = &got["properties"]["profiles"][0];
    assert_eq!(shown["capacity"], json!({ "minimum": "1", "maximum": "9", "default": "1" }));
    assert_eq!(shown["rules"][0]["scaleAction"]["value"], "2");
    assert_eq!(shown["rules"][0]["metricTrigger"]["threshold"].to_string(), "60.0");
    assert_eq!(got["properties"]["strange"], body["properties"]["strange"]);
    assert_eq!(normalised(&got), normalised(&body));
    // What was read is written back: nothing changes.
    let again = ask(&client, "PUT", &path("mine"), &got).expect(200).json();
    assert_eq!(again, got);
    order(&client, "switches", &json!({ "autoscaleAnswersPlain": true })).expect(200);
    let plain = ask(&client, "PUT", &path("mine"), &body).expect(200).json();
    assert_eq!((&plain["location"], plain["tags"].get("$type")), (&json!("eastus2"), None));
}

#[test]
fn a_patch_keeps_or_drops_what_it_omits() {
    for replaces in [false, true] {
        let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }],
            "settings": { "switches": { "autoscalePatchReplaces": replaces } } }));
        let mut body = setting(&json!(true), &[profile(1, 9)]);
        body["properties"]["notifications"] = json!([{ "operation": "Scale" }]);
        ask(&client, "PUT", &path("mine"), &body).expect(201);
        let off = json!({ "properties": { "enabled": false } });
        ask(&client, "PATCH", &path("mine"), &off).expect(400);
        let off = json!({ "properties": { "enabled": false, "profiles": [profile(1, 9)], "targetResourceUri": SET } });
        let shown = ask(&client, "PATCH", &path("mine"), &off).expect(200).json();
        assert_eq!(shown["properties"]["enabled"], false);
        assert_eq!(shown["properties"].get("notifications").is_none(), replaces, "{shown}");
        assert_eq!(shown["tags"]["team"], "a");
        let tags = json!({ "tags": { "team": "b" } });
        let shown = ask(&client, "PATCH", &path("mine"), &tags).expect(200).json();
        assert_eq!(
            (&shown["tags"]["team"], &shown["properties"]["enabled"]),
            (&json!("b"), &json!(false))
        );
        ask(&client, "PATCH", &path("other"), &off).expect(404);
    }
}

#[test]
fn what_azure_refuses_is_refused() {
    let client = Client::web();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = setting(&json!(true), &[profile(1, 9)]);
        change(&mut body);
        body
    };
    let profiles = |all: &Value| with(&|body| body["properties"]["profiles"] = all.clone());
    let part = |key: &str, value: &Value| {
        with(&|body| body["properties"]["profiles"][0][key] = value.clone())
    };
    let limits = |minimum: &str, maximum: &str, default: &str| {
        part("capacity", &json!({ "minimum": minimum, "maximum": maximum, "default": default }))
    };
    let weekly =
        |schedule: Value| part("recurrence", &json!({ "frequency": "Week", "schedule": schedule }));
    let one = rule("Increase", "GreaterThan", &json!(60), &json!("1"));
    let up = rule("Up", "GreaterThan", &json!(60), &json!("1"));
    let above = rule("Increase", "Above", &json!(60), &json!("1"));
    let cases = [
        (
            limits("6", "9", "1"),
            "The minimum capacity value '6' that you specified in the autoscale setting is greater than the default capacity of '1'.",
        ),
        (limits("1", "2", "3"), "The maximum capacity value '2'"),
        (limits("one", "2", "2"), "capacity.minimum"),
        (profiles(&json!(vec![profile(1, 2); 21])), "21 profiles"),
        (profiles(&json!([])), "0 profiles"),
        (profiles(&Value::Null), "profiles is required"),
        (part("rules", &json!(vec![one; 11])), "11 rules"),
        (part("rules", &json!([up])), "direction"),
        (part("rules", &json!([above])), "operator"),
        (
            weekly(
                json!({ "timeZone": "Europe/Berlin", "days": ["Monday"], "hours": [5], "minutes": [0] }),
            ),
            "Europe/Berlin",
        ),
        (
            weekly(json!({ "timeZone": "UTC", "days": ["Someday"], "hours": [5], "minutes": [0] })),
            "days",
        ),
        (
            weekly(json!({ "timeZone": "UTC", "days": ["Monday"], "hours": [24], "minutes": [0] })),
            "hours",
        ),
    ];
    for (body, says) in cases {
        let refused = ask(&client, "PUT", &path("mine"), &body).expect(400);
        assert_eq!(refused.code(), "BadRequest");
        assert!(message(&refused).contains(says), "{}", message(&refused));
    }
    ask(&client, "GET", &path("mine"), &Value::Null).expect(404);
}

#[test]
fn a_target_has_one_setting_and_a_setting_keeps_its_target() {
    let client = Client::web();
    ask(&client, "PUT", &path("mine"), &setting(&json!(true), &[profile(1, 9)])).expect(201);
    let second = ask(&client, "PUT", &path("two"), &setting(&json!(true), &[profile(1, 9)]));
    assert_eq!(second.expect(409).code(), "Conflict");
    let mut moved = setting(&json!(true), &[profile(1, 9)]);
    moved["properties"]["targetResourceUri"] = json!(SET.replace("/web", "/new"));
    let moved = ask(&client, "PUT", &path("mine"), &moved).expect(400);
    assert_eq!(moved.code(), "TargetResourceIdIsImmutable");
    // Versions of old have no envelope.
    let old =
        client.ask("GET", &format!("{}?api-version=2015-04-01", path("none")), &[], &Value::Null);
    assert_eq!(old.expect(404).json()["code"], "ResourceNotFound");
}

#[test]
fn settings_are_listed_in_pages_by_group_and_by_subscription() {
    let client = Client::web();
    client.put(&format!("{SUB}/resourceGroups/rg2"), &json!({ "location": "eastus2" })).expect(201);
    for n in 0..60 {
        let mut body = setting(&json!(false), &[profile(1, 9)]);
        body["properties"]["targetResourceUri"] = json!(SET.replace("/web", &format!("/web{n}")));
        let path = if n < 55 {
            path(&n.to_string())
        } else {
            path(&n.to_string()).replace("/rg/", "/rg2/")
        };
        ask(&client, "PUT", &path, &body).expect(201);
    }
    let all = |scope: &str| {
        let list = format!("{scope}/providers/Microsoft.Insights/autoscalesettings?{NEWEST}");
        client.items(&list).len()
    };
    assert_eq!(all(SUB), 60);
    assert_eq!(all(&format!("{SUB}/resourceGroups/rg")), 55);
    assert_eq!(all(&format!("{SUB}/resourceGroups/RG2")), 5);
}

#[test]
fn a_lost_answer_is_no_lost_write() {
    let client = Client::web();
    order(&client, "faults", &json!({ "chances": { "doubt": 1.0 } })).expect(200);
    let target = format!("{}?{NEWEST}", path("mine"));
    let body = setting(&json!(true), &[profile(5, 9)]).to_string();
    let headers = [("authorization", "Bearer x")];
    let answer = client.try_send(Client::request("PUT", &target, &headers, &body));
    assert!(answer.is_none_or(|answer| answer.status == 504));
    order(&client, "faults", &json!({})).expect(200);
    ask(&client, "GET", &path("mine"), &Value::Null).expect(200);
    client.wait(2);
    assert_eq!(capacity(&client), 5);
}

#[test]
fn rules_follow_the_load_that_was_ordered() {
    let rules = [
        rule("Increase", "GreaterThan", &json!(70), &json!("2")),
        rule("Decrease", "LessThan", &json!(20), &json!("1")),
    ];
    let mut profile = profile(2, 8);
    profile["rules"] = json!(rules);
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web", "load": { "level": 50.0 },
        "autoscale": { "enabled": true, "profiles": [profile] } }] }));
    let read = ask(&client, "GET", &path("web"), &Value::Null).expect(200).json();
    assert_eq!(read["properties"]["targetResourceUri"], SET);
    client.wait(10);
    assert_eq!(capacity(&client), 3);
    for (load, want) in
        [(json!({ "level": 90.0 }), 5), (json!({ "shared": 10.0 }), 4), (json!("unreadable"), 4)]
    {
        order(&client, "deeds", &json!({ "deed": { "setLoad": load } })).expect(200);
        client.wait(4);
        assert_eq!(capacity(&client), want, "{load}");
        // Until the cooldown is over.
        order(&client, "deeds", &json!({ "deed": { "setLoad": { "level": 50.0 } } })).expect(200);
        client.wait(6);
    }
    order(&client, "deeds", &json!({ "deed": { "setLoad": "high" } })).expect(400);
    let bad = json!({ "scaleSets": [{ "name": "web", "autoscale": { "profiles": [] } }] });
    let bad = serde_json::from_value(bad).unwrap();
    let refused =
        poolkeeper::emulator::Emulator::new(&bad, 1.0, std::sync::Arc::new(ManualClock::at(START)));
    assert!(refused.unwrap_err().to_string().contains("0 profiles"));
}

#[test]
fn the_activity_log_names_who_wrote_a_capacity() {
    let client = Client::web();
    ask(&client, "PUT", &path("mine"), &setting(&json!(true), &[profile(1, 4)])).expect(201);
    client.wait(5);
    order(&client, "deeds", &json!({ "deed": { "setCapacity": 6 } })).expect(200);
    client.wait(5);
    let log = |filter: &str| {
        let target = format!(
            "{SUB}/providers/Microsoft.Insights/eventtypes/management/values?api-version=2015-04-01"
        );
        client.items(&format!("{target}&$filter={}", filter.replace(' ', "%20")))
    };
    let since = "eventTimestamp ge '2026-01-01T00:00:00Z'";
    let all = log(&format!("{since} and resourceGroupName eq 'RG'"));
    let entries: Vec<(&str, &str)> = all
        .iter()
        .map(|entry| {
            let operation = entry["operationName"]["value"].as_str().unwrap();
            (operation.split_once('/').unwrap().1, entry["status"]["value"].as_str().unwrap())
        })
        .collect();
    let want = [
        ("AutoscaleSettings/ScaledownResult/Action", "Succeeded"),
        ("AutoscaleSettings/Scaledown/Action", "Started"),
        ("virtualMachineScaleSets/write", "Succeeded"),
        ("AutoscaleSettings/Write", "Succeeded"),
    ];
    assert_eq!(entries, want);
    assert_eq!(all[1]["category"]["value"], "Autoscale");
    assert_eq!(all[1]["properties"]["OldInstancesCount"], "6");
    assert_eq!(
        (&all[2]["caller"], &all[2]["resourceId"]),
        (&json!("admin@contoso.com"), &json!(SET))
    );
    assert_eq!(log(&format!("{since} and resourceUri eq '{SET}'")).len(), 1);
    assert_eq!(log(&format!("{since} and resourceProvider eq 'Microsoft.Insights'")).len(), 3);
    assert_eq!(log("eventTimestamp ge '2099-01-01T00:00:00Z'").len(), 0);
    client
        .get(&format!("{SUB}/providers/Microsoft.Insights/eventtypes/management/values?$filter=caller%20eq%20'me'"))
        .expect(400);
    let seen = client.ask("GET", "/_control/activity", &[], &Value::Null).expect(200).json();
    assert_eq!(seen["entries"].as_array().unwrap().len(), 4);
    assert_eq!(
        seen["entries"][2],
        json!({ "at": seen["entries"][2]["at"], "by": "autoscale",
        "what": "Microsoft.Insights/AutoscaleSettings/Scaledown/Action", "status": "Started",
        "sizes": { "from": 6, "to": 4 } })
    );
}

/// A document with any unknown members, of any kind and depth.
fn strange() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("x[a-z]{1,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the switches are, a write read back is the write, and what was read can be written.
    #[test]
    fn what_is_put_is_read_back(
        odd in strange(),
        limits in (0_u32..9, 0_u32..9, any::<bool>()),
        switches in any::<[bool; 3]>(),
        enabled in any::<bool>(),
    ) {
        let [plain, replaces, on] = switches;
        let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }], "settings": { "switches": {
            "autoscaleAnswersPlain": plain, "autoscalePatchReplaces": replaces, "autoscaleOnUnlessSaid": on } } }));
        let (least, more, numbers) = limits;
        let mut body = setting(&json!(enabled), &[profile(least, least + more)]);
        if numbers {
            body["properties"]["profiles"][0]["capacity"]["maximum"] = json!(least + more);
        }
        body["properties"]["xodd"] = odd.clone();
        body["properties"]["profiles"][0]["xodd"] = odd;
        ask(&client, "PUT", &path("mine"), &body).expect(201);
        let got = ask(&client, "GET", &path("mine"), &Value::Null).expect(200).json();
        prop_assert_eq!(normalised(&got), normalised(&body));
        for method in ["PUT", "PATCH"] {
            let again = ask(&client, method, &path("mine"), &got).expect(200).json();
            prop_assert_eq!(&again, &got);
        }
    }
}
