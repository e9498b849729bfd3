//! Tokens, and the hosts a client asks for them.

use serde_json::{Value, json};

use super::support::*;

const TENANT: &str = "11111111-1111-1111-1111-111111111111";

fn token(client: &Client, tenant: &str, form: &str) -> Reply {
    let target = format!("/{tenant}/oauth2/v2.0/token");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    client.try_send(Client::request("POST", &target, &headers, form)).unwrap()
}

const FORM: &str = "client_id=app&client_secret=s%2B1&grant_type=client_credentials&scope=https%3A%2F%2Fmanagement.azure.com%2F.default";

fn with_token(client: &Client, token: &str, path: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let request =
        Client::request("GET", &format!("{path}?{VERSION}"), &[("authorization", &bearer)], "");
    client.try_send(request).unwrap()
}

#[test]
fn a_token_is_given_used_and_grows_old() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }], "strictTokens": true }));
    let given = token(&client, TENANT, FORM).expect(200).json();
    assert_eq!(
        (given["token_type"].as_str(), given["expires_in"].as_u64()),
        (Some("Bearer"), Some(3_599))
    );
    let token = given["access_token"].as_str().unwrap();
    with_token(&client, token, SET).expect(200);
    let mut altered = token.to_owned();
    altered.truncate(altered.len() - 2);
    assert_eq!(with_token(&client, &altered, SET).expect(401).code(), "InvalidAuthenticationToken");
    assert_eq!(with_token(&client, "x", SET).expect(401).code(), "InvalidAuthenticationToken");
    client.wait(60);
    let old = with_token(&client, token, SET).expect(401);
    assert_eq!(old.code(), "ExpiredAuthenticationToken");
    let told = old.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(told.contains(" PM'") || told.contains(" AM'"), "{told}");
}

#[test]
fn wrong_tenants_apps_and_secrets_have_their_own_words() {
    let client = Client::new(&json!({ "identities": [{ "clientId": "app", "secret": "s+1" }] }));
    token(&client, TENANT, FORM).expect(200);
    let cases = [
        ("22222222-2222-2222-2222-222222222222", FORM.to_owned(), 90_002),
        (TENANT, FORM.replace("app", "nobody"), 700_016),
        (TENANT, FORM.replace("s%2B1", "wrong"), 7_000_215),
        (TENANT, "client_id=app&grant_type=client_credentials".to_owned(), 7_000_218),
    ];
    for (tenant, form, code) in cases {
        let refused = token(&client, tenant, &form);
        assert!(refused.status == 400 || refused.status == 401);
        assert_eq!(refused.json()["error_codes"], json!([code]));
        let told = refused.json()["error_description"].as_str().unwrap().to_owned();
        assert!(told.starts_with(&format!("AADSTS{code}: ")) && !told.contains("wrong"), "{told}");
    }
}

#[test]
fn an_identity_may_lack_a_right() {
    let seed = json!({ "scaleSets": [{ "name": "web" }, { "name": "other" }], "identities":
        [{ "clientId": "app", "denied": ["/virtualMachineScaleSets/other"], "deniedActions": ["start/action"] }] });
    let client = Client::new(&seed);
    let given = token(&client, TENANT, FORM).expect(200).json();
    let bearer = given["access_token"].as_str().unwrap();
    with_token(&client, bearer, SET).expect(200);
    let refused = with_token(&client, bearer, &SET.replace("/web", "/other")).expect(403);
    assert_eq!(refused.code(), "AuthorizationFailed");
    let told = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        told.contains("'Microsoft.Compute/virtualMachineScaleSets/read' over scope '/sub"),
        "{told}"
    );
    let permissions = with_token(
        &client,
        bearer,
        &format!("{SET}/providers/Microsoft.Authorization/permissions"),
    );
    assert_eq!(permissions.expect(200).json()["value"][0]["notActions"], json!(["*/start/action"]));
    let header = format!("Bearer {bearer}");
    let start = Client::request(
        "POST",
        &format!("{SET}/start?{VERSION}"),
        &[("authorization", &header)],
        "",
    );
    assert_eq!(client.try_send(start).unwrap().expect(403).code(), "AuthorizationFailed");
}

#[test]
fn a_managed_identity_asks_with_a_header_and_is_answered_in_texts() {
    let client = Client::web();
    let target = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com";
    let bare = client.try_send(Client::request("GET", target, &[], "")).unwrap().expect(400);
    assert_eq!(bare.json()["error"], "bad_request_102");
    for header in ["metadata", "x-identity-header"] {
        let given =
            client.try_send(Client::request("GET", target, &[(header, "true")], "")).unwrap();
        let given = given.expect(200).json();
        assert!(given["expires_in"].is_string() && given["expires_on"].is_string(), "{given}");
        let token = given["access_token"].as_str().unwrap();
        assert_eq!(token.split('.').count(), 3);
        with_token(&client, token, SET).expect(200);
    }
    let strange = Client::new(&json!({ "identities": [{ "clientId": "app" }] }));
    let target = format!("{target}&client_id=nobody");
    let refused =
        strange.try_send(Client::request("GET", &target, &[("metadata", "true")], "")).unwrap();
    assert_eq!(refused.expect(400).json()["error_description"], "Identity not found");
}

#[test]
fn clients_find_their_way() {
    let client = Client::web();
    let open = |target: &str| -> Value {
        client.try_send(Client::request("GET", target, &[], "")).unwrap().expect(200).json()
    };
    let openid = open(&format!("/{TENANT}/v2.0/.well-known/openid-configuration"));
    assert_eq!(openid["token_endpoint"], format!("http://localhost:1/{TENANT}/oauth2/v2.0/token"));
    assert!(openid["issuer"].as_str().unwrap().starts_with("http://localhost:1/"));
    assert!(open("/common/discovery/instance?api-version=1.1")["metadata"].is_array());
    let cloud = open("/metadata/endpoints?api-version=2022-09-01");
    assert_eq!(cloud["authentication"]["loginEndpoint"], "http://localhost:1");
}
