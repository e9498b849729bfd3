//! How calls are turned away, and what every answer tells.

use serde_json::{Value, json};

use super::support::*;

#[test]
fn a_call_needs_a_token_and_a_version() {
    let client = Client::web();
    let bare = Client::request("GET", &format!("{SET}?{VERSION}"), &[], "");
    let bare = client.try_send(bare).unwrap().expect(401);
    assert_eq!(bare.code(), "AuthenticationFailed");
    assert!(bare.header("www-authenticate").unwrap().starts_with("Bearer authorization_uri="));
    let none = client.ask("GET", SET, &[], &Value::Null).expect(400);
    assert_eq!(none.code(), "MissingApiVersionParameter");
    for version in ["latest", "2024-7-1", "2024-07-01-beta", "2024-13-45"] {
        let odd = client.ask("GET", &format!("{SET}?api-version={version}"), &[], &Value::Null);
        assert_eq!(odd.expect(400).code(), "InvalidApiVersionParameter", "{version}");
    }
    for version in ["1999-01-01", "2099-01-01", "2031-01-01-preview"] {
        let odd = client.ask("GET", &format!("{SET}?api-version={version}"), &[], &Value::Null);
        let odd = odd.expect(400);
        assert_eq!(odd.code(), "NoRegisteredProviderFound", "{version}");
        let text = odd.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(text.contains("for type 'virtualMachineScaleSets'"), "{text}");
    }
    for version in ["2017-03-30", "2026-04-01", "2026-10-01-preview"] {
        client.ask("GET", &format!("{SET}?api-version={version}"), &[], &Value::Null).expect(200);
    }
}

#[test]
fn words_of_a_path_count_in_any_case_and_names_keep_theirs() {
    let client = Client::web();
    let shouted = client.get(&SET.to_uppercase()).expect(200).json();
    assert_eq!((shouted["name"].as_str(), shouted["id"].as_str()), (Some("web"), Some(SET)));
    client.get(&format!("{}/VIRTUALMACHINES/0", SET.to_lowercase())).expect(200);
}

#[test]
fn what_is_not_there_is_said_to_be_not_there() {
    let client = Client::web();
    let cases = [
        (SET.replace("/web", "/none"), "ResourceNotFound"),
        (SET.replace("/rg/", "/none/"), "ResourceGroupNotFound"),
        (SET.replace("00000000-", "00000009-"), "SubscriptionNotFound"),
    ];
    for (path, code) in cases {
        assert_eq!(client.get(&path).expect(404).code(), code);
        assert_eq!(
            client
                .post(&format!("{path}/delete"), &json!({ "instanceIds": ["0"] }))
                .expect(404)
                .code(),
            code
        );
    }
    let strange =
        client.get(&format!("{SUB}/providers/Microsoft.Network/virtualNetworks")).expect(400);
    assert_eq!(strange.code(), "NotEmulated");
}

#[test]
fn each_answer_tells_what_is_left() {
    let client = Client::web();
    let answer = client.get(&format!("{SET}/virtualMachines")).expect(200);
    assert_eq!(answer.header("x-ms-ratelimit-remaining-subscription-reads"), Some("249"));
    assert_eq!(answer.header("x-ms-ratelimit-remaining-subscription-global-reads"), Some("3749"));
    let left = answer.header("x-ms-ratelimit-remaining-resource").unwrap();
    assert!(left.contains("Microsoft.Compute/HighCostGetVMScaleSetResource;29,"), "{left}");
    assert!(
        left.contains("Microsoft.Compute/VMScaleSetVMViewsSubscriptionMaximum;29997"),
        "{left}"
    );
    assert_eq!(answer.header("x-ms-request-charge"), Some("3"));
    for name in ["x-ms-request-id", "x-ms-correlation-request-id", "x-ms-routing-request-id"] {
        assert!(answer.header(name).is_some(), "{name}");
    }
    let target = format!("{SET}?{VERSION}");
    let mine = [
        ("x-ms-correlation-request-id", "c-1"),
        ("x-ms-client-request-id", "r-1"),
        ("x-ms-return-client-request-id", "true"),
    ];
    let told = client.ask("GET", &target, &mine, &Value::Null);
    assert_eq!(told.header("x-ms-correlation-request-id"), Some("c-1"));
    assert_eq!(told.header("x-ms-client-request-id"), Some("r-1"));
}

#[test]
fn a_set_is_listed_thirty_times_and_then_throttled() {
    let client = Client::web();
    for _ in 0..30 {
        client.get(&format!("{SET}/virtualMachines")).expect(200);
    }
    let refused = client.get(&format!("{SET}/virtualMachines")).expect(429);
    assert_eq!(refused.header("retry-after"), Some("6"));
    assert_eq!(
        refused.header("x-ms-ratelimit-remaining-resource"),
        Some("Microsoft.Compute/HighCostGetVMScaleSetResource;0")
    );
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "OperationNotAllowed", "the code that quota has too");
    assert_eq!(error["details"][0]["code"], "TooManyRequests");
    assert_eq!(error["innererror"]["internalErrorCode"], "TooManyRequestsReceived");
    client.get(&format!("{SET}/instanceView")).expect(429);
    client.clock.pass(Span::seconds(6));
    client.get(&format!("{SET}/virtualMachines")).expect(200);
}

#[test]
fn the_front_door_has_limits_of_its_own() {
    let client = Client::web();
    let groups = format!("{SUB}/resourceGroups");
    for _ in 0..250 {
        client.get(&groups).expect(200);
    }
    let refused = client.get(&groups).expect(429);
    assert_eq!(refused.code(), "SubscriptionRequestsThrottled");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("00000000-0000") && message.contains("'1' seconds"), "{message}");
}

#[test]
fn quota_refuses_a_raise_with_numbers() {
    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "web" }], "settings": { "quotaCores": 16 } }));
    client.patch(SET, &json!({ "sku": { "capacity": 4 } })).expect(200);
    let refused = client.patch(SET, &json!({ "sku": { "capacity": 6 } })).expect(409);
    assert_eq!(refused.code(), "OperationNotAllowed");
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("Current Limit: 16, Current Usage: 16, Additional Required: 8"),
        "{message}"
    );
}

/// A member of another type than the model has: refused as it is read, and nothing is written.
#[test]
fn a_member_of_another_type_changes_nothing() {
    let client = Client::web();
    let patch = |body: &Value| client.ask("PATCH", &format!("{SET}?{VERSION}"), &[], body);
    patch(&json!({ "tags": { "team": "a", "none": null } })).expect(200);
    client.wait(60);
    let before = client.get(SET).expect(200).json();
    let cases = [
        (json!({ "tags": [1] }), "StartArray. Path 'tags'"),
        (json!({ "tags": "all" }), "String. Path 'tags'"),
        (json!({ "tags": { "a": 1 } }), "Integer. Path 'tags.a'"),
        (json!({ "tags": { "a": { "b": "c" } } }), "StartObject. Path 'tags.a'"),
        (json!({ "zones": "1" }), "String. Path 'zones'"),
        (json!({ "zones": ["1", 2] }), "Integer. Path 'zones'"),
        (json!({ "identity": "x" }), "String. Path 'identity'"),
        (
            json!({ "properties": { "overprovision": "maybe" } }),
            "String. Path 'properties.overprovision'",
        ),
        (
            json!({ "properties": { "upgradePolicy": { "mode": {} } } }),
            "StartObject. Path 'properties.upgradePolicy.mode'",
        ),
        (
            json!({ "properties": { "virtualMachineProfile": { "storageProfile": { "dataDisks": "x" } } } }),
            "String. Path 'properties.virtualMachineProfile.storageProfile.dataDisks'",
        ),
    ];
    for (body, says) in cases {
        let refused = patch(&body).expect(400);
        assert_eq!(refused.code(), "InvalidRequestContent", "{body}");
        let text = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(text.contains(&format!("Unexpected token: {says}, line 1")), "{body}: {text}");
        assert_eq!(client.get(SET).expect(200).json(), before, "{body}");
    }
    let vm = format!("{SET}/virtualMachines/0");
    for policy in [
        json!("all"),
        json!([]),
        json!({ "protectFromScaleIn": "true" }),
        json!({ "protectFromScaleSetActions": 1 }),
    ] {
        let body = json!({ "location": "eastus2", "properties": { "protectionPolicy": policy } });
        assert_eq!(client.put(&vm, &body).expect(400).code(), "InvalidRequestContent", "{body}");
        let shown = client.get(&vm).expect(200).json();
        assert!(shown["properties"].get("protectionPolicy").is_none(), "{body}: {shown}");
    }
}

#[test]
fn a_resource_has_fifty_tags_and_a_name_of_sixty_four_at_most() {
    let client = Client::web();
    let tags = |many: usize| {
        let all: serde_json::Map<String, Value> =
            (0..many).map(|n| (format!("t{n}"), json!("x"))).collect();
        let target = format!("{SET}?{VERSION}");
        client.ask("PATCH", &target, &[], &json!({ "tags": all }))
    };
    assert_eq!(tags(51).expect(400).code(), "InvalidTags");
    assert_eq!(tags(50).expect(200).json()["tags"].as_object().unwrap().len(), 50);
    let put = |letters: usize| {
        client.put(&SET.replace("/web", &format!("/{}", "n".repeat(letters))), &wanted(1))
    };
    for long in [65, 300] {
        assert_eq!(put(long).expect(400).code(), "InvalidParameter", "{long}");
    }
    put(64).expect(201);
}

#[test]
fn the_kind_of_an_image_and_its_offer_are_decided_when_the_set_is_made() {
    let gallery = |version: &str| {
        format!(
            "{SUB}/resourceGroups/rg/providers/Microsoft.Compute/galleries/g/images/i/versions/{version}"
        )
    };
    let body = |image: Value| {
        json!({ "properties": { "virtualMachineProfile": { "storageProfile":
            { "imageReference": image } } } })
    };
    let urn = |publisher: &str, offer: &str, version: &str| {
        body(json!({ "publisher": publisher, "offer": offer, "sku": "server", "version": version }))
    };
    let client = Client::web();
    let refused = client.patch(SET, &body(json!({ "id": gallery("1.0.0") }))).expect(409);
    assert_eq!(refused.code(), "OperationNotAllowed");
    assert_eq!(
        refused.json()["error"]["message"],
        "The Image type for a Virtual Machine Scale Set may not be changed."
    );
    let other = client.patch(SET, &urn("Canonical", "other", "1")).expect(409);
    assert_eq!(other.code(), "PropertyChangeNotAllowed");
    assert_eq!(other.json()["error"]["target"], "imageReference.offer");
    client.patch(SET, &urn("p", "ubuntu-24_04-lts", "1")).expect(409);
    client.patch(SET, &urn("canonical", "ubuntu-24_04-lts", "7.0.0")).expect(200);
    client.patch(SET, &body(json!({ "version": "8.0.0" }))).expect(200);

    let client =
        Client::new(&json!({ "scaleSets": [{ "name": "web", "image": gallery("1.0.0") }] }));
    client.patch(SET, &urn("p", "o", "1")).expect(409);
    client.patch(SET, &body(json!({ "id": gallery("2.0.0") }))).expect(200);
    client.wait(60);
    let shared = "/SharedGalleries/u/Images/i/Versions/3.0.0";
    client.patch(SET, &body(json!({ "sharedGalleryImageId": shared }))).expect(200);
    let image = "/properties/virtualMachineProfile/storageProfile/imageReference";
    let shown = client.get(SET).expect(200).json();
    assert_eq!(shown.pointer(image), Some(&json!({ "sharedGalleryImageId": shared })));
}
