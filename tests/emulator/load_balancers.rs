//! Load balancers as clients read and write them, and the network interfaces of machines.

use serde_json::{Value, json};

use super::support::*;

fn group() -> String {
    format!("{SUB}/resourceGroups/rg/providers")
}

fn front() -> String {
    format!("{}/Microsoft.Network/loadBalancers/front", group())
}

fn pool() -> String {
    format!("{}/backendAddressPools/web", front())
}

fn seed() -> Value {
    json!({ "scaleSets": [{ "name": "web", "pools": ["front/web"] }],
        "loadBalancers": [{ "name": "front", "pools": ["web", "spare"] }] })
}

fn elements(pool: &Value) -> &Vec<Value> {
    pool["properties"]["loadBalancerBackendAddresses"].as_array().expect("a list")
}

/// The pool as it was read, with one state changed.
fn with_admin(client: &Client, n: usize, state: &str) -> Value {
    let mut read = client.get(&pool()).expect(200).json();
    read["properties"]["loadBalancerBackendAddresses"][n]["properties"]["adminState"] =
        json!(state);
    read
}

fn order(client: &Client, what: &str, body: &Value) {
    client.ask("POST", &format!("/_control/{what}"), &[], body).expect(200);
}

/// Without etags, which every write changes.
fn without_etags(value: &Value) -> Value {
    let mut plain = value.clone();
    strip(&mut plain);
    plain
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("etag");
            map.values_mut().for_each(strip);
        }
        Value::Array(all) => all.iter_mut().for_each(strip),
        _ => {}
    }
}

const NIC_POOL: &str = "ModificationOfNICIpConfigBackendPoolNotSupported";

#[test]
fn a_pool_names_the_interfaces_of_its_machines() {
    let client = Client::new(&seed());
    let read = client.get(&pool()).expect(200);
    let etag = read.header("etag").unwrap().to_owned();
    let read = read.json();
    assert!(etag.starts_with("W/\"") && read["etag"] == json!(etag), "{etag}");
    assert_eq!(read["type"], "Microsoft.Network/loadBalancers/backendAddressPools");
    assert_eq!(read["properties"]["provisioningState"], "Succeeded");
    let want =
        |n: usize| format!("{SET}/virtualMachines/{n}/networkInterfaces/nic/ipConfigurations/ip");
    for (n, element) in elements(&read).iter().enumerate() {
        let id = &element["properties"]["networkInterfaceIPConfiguration"]["id"];
        assert_eq!(id, &json!(want(n)));
        assert_eq!(read["properties"]["backendIPConfigurations"][n]["id"], json!(want(n)));
        assert!(element["properties"]["adminState"].is_null());
    }
    assert_eq!(elements(&read).len(), 3);
    let whole = client.get(&front()).expect(200).json();
    assert_eq!(whole["properties"]["backendAddressPools"][0], read);
    assert_eq!(whole["sku"]["name"], "Standard");
    let rule = format!("{}/loadBalancingRules/web", front());
    for part in [&read, &whole["properties"]["probes"][0]] {
        let rules = &part["properties"]["loadBalancingRules"];
        assert_eq!(rules[0]["id"], json!(rule), "{part}");
    }
    let all = client.get(&format!("{}/Microsoft.Network/loadBalancers", group())).expect(200);
    assert_eq!(all.json()["value"], json!([whole]));
    let all = client.get(&format!("{SUB}/providers/Microsoft.Network/loadBalancers")).expect(200);
    assert_eq!(all.json()["value"], json!([whole]));
    let pools = client.get(&format!("{}/backendAddressPools", front())).expect(200).json();
    assert_eq!(pools["value"], whole["properties"]["backendAddressPools"]);
    client.get(&format!("{}/backendAddressPools/no", front())).expect(404);
    let no = format!("{}/Microsoft.Network/loadBalancers/no", group());
    assert_eq!(client.get(&no).expect(404).code(), "ResourceNotFound");
    client.get(&format!("{no}/backendAddressPools/web")).expect(404);
}

#[test]
fn one_state_is_written_and_nothing_else_changes() {
    let client = Client::new(&seed());
    let before = client.get(&front()).expect(200).json();
    let accepted = client.put(&pool(), &with_admin(&client, 1, "Down")).expect(200);
    assert!(accepted.header("retry-after").is_some());
    let address = accepted.header("azure-asyncoperation").unwrap();
    assert!(address.contains("/providers/Microsoft.Network/locations/eastus2/operations/"));
    assert_eq!(accepted.json()["properties"]["provisioningState"], "Updating");
    assert_eq!(client.follow(address).expect(200).json()["status"], "InProgress");
    assert_eq!(client.ended(&accepted)["status"], "Succeeded");
    let after = client.get(&front()).expect(200).json();
    let mut want = without_etags(&before);
    want["properties"]["backendAddressPools"][0]["properties"]["loadBalancerBackendAddresses"][1]
        ["properties"]["adminState"] = json!("Down");
    assert_eq!(without_etags(&after).to_string(), want.to_string());
    client.ended(&client.put(&pool(), &with_admin(&client, 1, "None")).expect(200));
    let read = client.get(&pool()).expect(200).json();
    assert_eq!(elements(&read)[1]["properties"]["adminState"], "None");
    assert!(elements(&read)[0]["properties"]["adminState"].is_null());
}

#[test]
fn a_write_of_the_whole_pool_is_refused_as_azure_refuses_it() {
    let client = Client::new(&seed());
    let mut removed = with_admin(&client, 0, "Down");
    removed["properties"]["loadBalancerBackendAddresses"].as_array_mut().unwrap().remove(2);
    let refused = client.put(&pool(), &removed).expect(400);
    assert_eq!(refused.code(), NIC_POOL);
    let text = "adds/modifies/deletes backend address pool members that are specified with a network \
                interface IP configuration";
    assert!(refused.text.contains(text), "{}", refused.text);
    let new = format!("{}/backendAddressPools/new", front());
    let created = with_admin(&client, 0, "Down");
    assert_eq!(client.put(&new, &created).expect(400).code(), NIC_POOL);
    let etag = client.get(&pool()).header("etag").unwrap().to_owned();
    let match_it = [("if-match", &*etag)];
    let target = format!("{}?{VERSION}", pool());
    let down = with_admin(&client, 0, "Down");
    client.ended(&client.ask("PUT", &target, &match_it, &down).expect(200));
    let stale = client.ask("PUT", &target, &match_it, &down).expect(412);
    assert_eq!(stale.code(), "PreconditionFailed");
    client.put(&pool(), &with_admin(&client, 1, "Drain")).expect(400);
    client.put(&pool(), &with_admin(&client, 1, "Down")).expect(200);
    let busy = client.put(&pool(), &with_admin(&client, 2, "Down")).expect(409);
    assert_eq!(busy.code(), "AnotherOperationInProgress");
    client.wait(5);
    order(&client, "deeds", &json!({ "instance": "0", "deed": { "failInterface": true } }));
    let blocked = client.put(&pool(), &with_admin(&client, 2, "Down")).expect(429);
    assert_eq!(blocked.code(), "RetryableError");
    let interface = format!("resource {SET}/virtualMachines/0/networkInterfaces/nic is not in");
    assert!(blocked.text.contains(&interface), "{}", blocked.text);
    assert!(
        blocked.text.contains("ReferencedResourceNotProvisioned")
            && !blocked.text.contains("TooMany")
    );
    client.patch(&pool(), &json!({})).expect(400);
}

#[test]
fn a_balancer_is_created_as_a_whole_and_holds_addresses() {
    let client = Client::new(&json!({ "scaleSets": [{ "name": "web" }] }));
    let interfaces = client.get(&format!("{SET}/networkInterfaces")).expect(200).json();
    let address = &interfaces["value"][0]["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    let element = |name: &str, address: &Value| {
        json!({ "name": name, "properties": { "ipAddress": address, "adminState": "Up",
            "virtualNetwork": { "id": "/v" } } })
    };
    let rule = |pool: &str| {
        json!({ "name": "web", "properties": { "backendAddressPool":
            { "id": format!("{}/backendAddressPools/{pool}", front()) }, "protocol": "Tcp" } })
    };
    let mut body = json!({ "location": "eastus2", "sku": { "name": "Standard" }, "tags": { "a": "b" },
        "properties": { "loadBalancingRules": [rule("no")], "backendAddressPools": [{ "name": "web",
            "properties": { "loadBalancerBackendAddresses": [element("a", address)] } }] } });
    assert_eq!(client.put(&front(), &body).expect(400).code(), "InvalidResourceReference");
    body["properties"]["loadBalancingRules"] = json!([rule("web")]);
    client.ended(&client.put(&front(), &body).expect(201));
    let read = client.get(&pool()).expect(200).json();
    assert_eq!(elements(&read), &vec![element("a", address)]);
    let mut two = read.clone();
    let list = two["properties"]["loadBalancerBackendAddresses"].as_array_mut().unwrap();
    list.push(element("b", &json!("10.8.0.9")));
    client.ended(&client.put(&pool(), &two).expect(200));
    assert_eq!(elements(&client.get(&pool()).json()).len(), 2);
    client.ended(&client.put(&pool(), &read).expect(200));
    assert_eq!(elements(&client.get(&pool()).json()).len(), 1, "what is not sent is dropped");
    let read = client.get(&front()).expect(200).json();
    client.ended(&client.put(&front(), &read).expect(200));
    let again = client.get(&front()).expect(200).json();
    assert_eq!(without_etags(&read), without_etags(&again));
    client.delete(&format!("{SUB}/resourceGroups/rg")).expect(202);
    client.get(&front()).expect(404);
}

#[test]
fn interfaces_tell_which_machine_has_an_address() {
    let client = Client::new(&seed());
    let all = client.items(&format!("{SET}/networkInterfaces?{VERSION}"));
    let of_one = client.get(&format!("{SET}/virtualMachines/1/networkInterfaces")).expect(200);
    assert_eq!(of_one.json()["value"], json!([all[1]]));
    let id = all[1]["id"].as_str().unwrap();
    assert_eq!(client.get(id).expect(200).json(), all[1]);
    assert_eq!(
        all[1]["properties"]["virtualMachine"]["id"],
        json!(format!("{SET}/virtualMachines/1"))
    );
    let address = &all[1]["properties"]["ipConfigurations"][0]["properties"];
    assert_eq!(address["loadBalancerBackendAddressPools"], json!([{ "id": pool() }]));
    client.get(&format!("{SET}/virtualMachines/9/networkInterfaces")).expect(404);

    let mut seed = seed();
    seed["scaleSets"][0]["flexible"] = json!(true);
    let client = Client::new(&seed);
    let read = client.get(&pool()).expect(200).json();
    let id = read["properties"]["backendIPConfigurations"][0]["id"].as_str().unwrap();
    let (interface, _) = id.split_once("/ipConfigurations/").unwrap();
    assert!(interface.contains("/Microsoft.Network/networkInterfaces/nic-"), "{interface}");
    let interface = client.get(interface).expect(200).json();
    let machine = interface["properties"]["virtualMachine"]["id"].as_str().unwrap();
    let machine = client.get(machine).expect(200).json();
    let named = &machine["properties"]["networkProfile"]["networkInterfaces"][0]["id"];
    assert_eq!(named, &interface["id"]);
    client.get(&format!("{}/Microsoft.Network/networkInterfaces/no", group())).expect(404);
    let of_group = client.get(&format!("{}/Microsoft.Network/networkInterfaces", group()));
    assert_eq!(of_group.expect(200).json()["value"].as_array().unwrap().len(), 3);
    client.ended(&client.put(&pool(), &with_admin(&client, 0, "Down")).expect(200));
}

#[test]
fn what_azure_may_do_otherwise_is_a_switch() {
    let client = Client::new(&seed());
    let switch = |name: &str, value: Value| order(&client, "switches", &json!({ name: value }));
    switch("uniformElementsHideInterface", json!(true));
    let read = with_admin(&client, 0, "Down");
    assert!(elements(&read)[0]["properties"]["networkInterfaceIPConfiguration"].is_null());
    assert_eq!(read["properties"]["backendIPConfigurations"].as_array().unwrap().len(), 3);
    client.ended(&client.put(&pool(), &read).expect(200));
    switch("uniformAdminRefused", json!(true));
    let refused = client.put(&pool(), &with_admin(&client, 1, "Down")).expect(400);
    assert_eq!(refused.code(), NIC_POOL);
    switch("uniformAdminRefused", json!(false));
    switch("busyBalancer", json!("retryable"));
    client.put(&pool(), &with_admin(&client, 1, "Down")).expect(200);
    let busy = client.put(&pool(), &with_admin(&client, 2, "Down")).expect(429);
    assert_eq!(busy.code(), "RetryableError");
}

#[test]
fn a_seed_says_what_is_wrong_with_a_balancer() {
    let fails = |balancer: Value| {
        let seed = json!({ "loadBalancers": [{ "name": "a" }, balancer] });
        let seed: poolkeeper::emulator::Seed = serde_json::from_value(seed).unwrap();
        let made = poolkeeper::emulator::Emulator::by_the_clock(&seed, 1.0);
        made.unwrap_err().to_string()
    };
    let twice = fails(json!({ "name": "A" }));
    assert!(twice.starts_with("loadBalancers[1] (\"A\"): another one"), "{twice}");
    let rule = json!({ "properties": { "loadBalancingRules": [{ "name": "r" }] } });
    let lost = fails(json!({ "name": "b", "resource": rule }));
    assert!(lost.contains("was not found"), "{lost}");
}

#[test]
fn a_notice_before_a_delete_lasts_as_the_model_says_or_until_it_is_approved() {
    let notice = |timeout: &str| {
        json!({ "scaleSets": [{ "name": "web", "resource": { "properties": { "virtualMachineProfile": {
            "scheduledEventsProfile": { "terminateNotificationProfile":
                { "enable": true, "notBeforeTimeout": timeout } } } } } }] })
    };
    let client = Client::new(&notice("PT15M"));
    let delete = |ids: &[&str]| {
        let body = json!({ "instanceIds": ids });
        client.post(&format!("{SET}/delete"), &body).expect(202);
    };
    delete(&["0", "1"]);
    client.wait(10);
    assert_eq!(client.ids(), ["0", "1", "2"]);
    for (id, left) in [("0", ["0", "1", "2"].as_slice()), ("1", ["2"].as_slice())] {
        order(&client, "deeds", &json!({ "instance": id, "deed": "approveDelete" }));
        client.wait(4);
        assert_eq!(client.ids(), left);
    }
    let seed: poolkeeper::emulator::Seed = serde_json::from_value(notice("PT20M")).unwrap();
    let made = poolkeeper::emulator::Emulator::by_the_clock(&seed, 1.0).unwrap_err().to_string();
    assert!(made.contains("notBeforeTimeout"), "{made}");
}
