//! VMs with a configuration of their own, attached to a Flexible set and detached from it.

use serde_json::{Value, json};

use super::support::*;

const VMS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines";

fn client(switches: &Value) -> Client {
    Client::new(&json!({ "scaleSets": [{ "name": "web", "flexible": true, "capacity": 2 }],
        "settings": { "quotaCores": 20, "switches": switches } }))
}

/// As a client asks for one.
fn own(set: &str) -> Value {
    let image = json!({ "publisher": "p", "offer": "o", "sku": "s", "version": "7.0.0" });
    json!({ "location": "eastus2", "tags": { "made": "by hand" }, "properties": {
        "hardwareProfile": { "vmSize": "Standard_D8s_v5" },
        "storageProfile": { "imageReference": image,
            "osDisk": { "createOption": "FromImage", "osType": "Linux" } },
        "osProfile": { "computerName": "odd", "adminUsername": "me", "adminPassword": "secret-1A",
            "customData": "c2VjcmV0" },
        "networkProfile": { "networkInterfaces": [{ "id": "/nics/odd" }] },
        "virtualMachineScaleSet": { "id": set } } })
}

fn of_set(client: &Client) -> Vec<Value> {
    let filter = SET.replace('/', "%2F");
    client.items(&format!(
        "{VMS}?{VERSION}&$filter='virtualMachineScaleSet/id'%20eq%20'{filter}'&$expand=instanceView"
    ))
}

fn capacity(client: &Client) -> Value {
    client.get(SET).expect(200).json()["sku"]["capacity"].clone()
}

fn points_to(set: &Value) -> Value {
    json!({ "properties": { "virtualMachineScaleSet": set } })
}

#[test]
fn a_new_vm_is_attached_with_a_configuration_of_its_own() {
    let client = client(&json!({}));
    let made = client.put(&format!("{VMS}/odd"), &own(SET)).expect(201);
    assert_eq!(made.json()["properties"]["provisioningState"], "Creating");
    assert!(made.header("azure-asyncoperation").is_some() && made.header("location").is_none());
    assert!(!made.text.contains("ecret"));
    assert_eq!(client.ended(&made)["status"], "Succeeded");
    let all = of_set(&client);
    assert_eq!(all.len(), 3);
    let odd = all.iter().find(|vm| vm["name"] == "odd").unwrap();
    let properties = &odd["properties"];
    assert_eq!(properties["provisioningState"], "Succeeded");
    assert_eq!(properties["hardwareProfile"]["vmSize"], "Standard_D8s_v5");
    assert_eq!(properties["storageProfile"]["imageReference"]["exactVersion"], "7.0.0");
    assert_eq!(properties["osProfile"]["computerName"], "odd");
    assert_eq!(properties["networkProfile"]["networkInterfaces"], json!([{ "id": "/nics/odd" }]));
    assert!(properties["virtualMachineScaleSet"]["id"].as_str().unwrap().eq_ignore_ascii_case(SET));
    assert_eq!(odd["tags"], json!({ "made": "by hand" }));
    assert!(properties["instanceView"].get("vmHealth").is_none(), "it has no health extension");
    let ids = client.items(&format!("{SET}/virtualMachines?{VERSION}"));
    assert!(ids.iter().any(|vm| vm["name"] == "odd"));
    assert_eq!(capacity(&client), 3);
    let full = client.put(&format!("{VMS}/more"), &own(SET)).expect(409);
    assert_eq!(full.code(), "OperationNotAllowed");
    let text = full.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("Current Usage: 16, Additional Required: 8"), "{text}");
    client.post(&format!("{SET}/delete"), &json!({ "instanceIds": ["odd"] })).expect(202);
    client.wait(60);
    assert_eq!((of_set(&client).len(), capacity(&client)), (2, json!(2)));
}

#[test]
fn whether_an_attached_vm_raises_the_capacity_is_a_switch() {
    for leaves in [false, true] {
        let client = client(&json!({ "attachLeavesCapacity": leaves }));
        let made = client.put(&format!("{VMS}/odd"), &own(SET)).expect(201);
        client.ended(&made);
        let etag = client.get(SET).expect(200).json()["etag"].clone();
        assert_eq!(
            (capacity(&client), of_set(&client).len()),
            (json!(if leaves { 2 } else { 3 }), 3)
        );
        let off = client.patch(&format!("{VMS}/odd"), &points_to(&Value::Null)).expect(200);
        client.ended(&off);
        assert_eq!((capacity(&client), of_set(&client).len()), (json!(2), 2));
        let after = client.get(SET).expect(200).json()["etag"].clone();
        assert_eq!(after == etag, leaves, "the etag moves with the capacity");
    }
}

#[test]
fn a_vm_is_detached_stands_alone_and_is_attached_again() {
    let client = client(&json!({}));
    client.ended(&client.put(&format!("{VMS}/odd"), &own(SET)).expect(201));
    let odd = format!("{VMS}/odd");
    let before = client.get(&odd).expect(200).json();
    let off = client.patch(&odd, &points_to(&json!({ "id": null }))).expect(200);
    assert_eq!(off.json()["properties"]["provisioningState"], "Updating");
    assert_eq!(client.ended(&off)["status"], "Succeeded");
    let alone = client.get(&odd).expect(200).json();
    assert!(alone["properties"].get("virtualMachineScaleSet").is_none(), "{alone}");
    assert_eq!(alone["properties"]["vmId"], before["properties"]["vmId"]);
    let all = client.items(&format!("{VMS}?{VERSION}"));
    assert!(all.iter().any(|vm| vm["name"] == "odd"), "a VM of the group still");
    client.post(&format!("{odd}/powerOff"), &Value::Null).expect(202);
    client.wait(10);
    let sets = client
        .items(&format!("{SUB}/providers/Microsoft.Compute/virtualMachineScaleSets?{VERSION}"));
    assert_eq!(sets.len(), 1);
    let on = client.patch(&odd, &points_to(&json!({ "id": SET }))).expect(200);
    assert_eq!(client.ended(&on)["status"], "Succeeded");
    assert_eq!((of_set(&client).len(), capacity(&client)), (3, json!(3)));
    let again = client.get(&odd).expect(200).json();
    assert_eq!(again["properties"]["vmId"], before["properties"]["vmId"]);
    // A client that updates by PUT sends the whole VM back.
    client.put(&odd, &again).expect(200);
    let mut whole = again.clone();
    whole["properties"]["virtualMachineScaleSet"] = json!({});
    client.ended(&client.put(&odd, &whole).expect(200));
    assert_eq!(of_set(&client).len(), 2);
    client.delete(&odd).expect(202);
    client.wait(60);
    client.get(&odd).expect(404);
}

#[test]
fn what_a_set_does_not_take_is_refused() {
    let seed = json!({ "scaleSets": [{ "name": "web", "flexible": true },
        { "name": "uniform" }, { "name": "zonal", "flexible": true, "zones": ["1", "2"] },
        { "name": "domains", "flexible": true, "resource": { "properties": { "platformFaultDomainCount": 5 } } },
        { "name": "other", "flexible": true }] });
    let client = Client::new(&seed);
    let set = |name: &str| SET.replace("/web", &format!("/{name}"));
    let refused = |answer: Reply, status: u16, code: &str, says: &str| {
        let answer = answer.expect(status);
        assert_eq!(answer.code(), code);
        let text = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(text.contains(says), "{text}");
    };
    let put = |name: &str| client.put(&format!("{VMS}/odd"), &own(&set(name)));
    refused(put("none"), 404, "NotFound", "referenced by the Virtual Machine does not exist");
    refused(
        put("uniform"),
        409,
        "OperationNotAllowed",
        "does not have orchestration mode set to 'Flexible'",
    );
    refused(put("zonal"), 400, "InvalidParameter", "zone");
    let mut zoned = own(&set("zonal"));
    zoned["zones"] = json!(["3"]);
    refused(client.put(&format!("{VMS}/odd"), &zoned), 400, "InvalidParameter", "zone");
    zoned["zones"] = json!(["2"]);
    client.ended(&client.put(&format!("{VMS}/zoned"), &zoned).expect(201));
    assert_eq!(client.get(&format!("{VMS}/zoned")).json()["zones"], json!(["2"]));
    client.ended(&client.put(&format!("{VMS}/five"), &own(&set("domains"))).expect(201));
    let off = client.patch(&format!("{VMS}/five"), &points_to(&Value::Null));
    refused(off, 409, "OperationNotAllowed", "more than 1 fault domains");
    client.ended(&client.put(&format!("{VMS}/odd"), &own(SET)).expect(201));
    let moved = client.patch(&format!("{VMS}/odd"), &points_to(&json!({ "id": set("other") })));
    refused(moved, 409, "PropertyChangeNotAllowed", "virtualMachineScaleSet.id");
    for odd in ["", "null"] {
        let moved = client.patch(&format!("{VMS}/odd"), &points_to(&json!({ "id": odd })));
        refused(moved, 409, "PropertyChangeNotAllowed", "virtualMachineScaleSet.id");
    }
    client.ended(&client.patch(&format!("{VMS}/odd"), &points_to(&Value::Null)).expect(200));
    let on =
        |name: &str| client.patch(&format!("{VMS}/odd"), &points_to(&json!({ "id": set(name) })));
    refused(
        on("domains"),
        409,
        "VmssDoesNotSupportAttachingExistingVMMultiFD",
        "more than 1 fault domains",
    );
    refused(on("uniform"), 409, "OperationNotAllowed", "orchestration mode set to 'Flexible'");
    refused(on("zonal"), 400, "InvalidParameter", "zone");
    client.ended(&on("other").expect(200));
    let resize = json!({ "properties": { "hardwareProfile": { "vmSize": "Standard_D2s_v5" } } });
    refused(client.patch(&format!("{VMS}/odd"), &resize), 400, "NotEmulated", "PATCH");
}
