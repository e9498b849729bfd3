"""azure-mgmt-network, as Microsoft ships it, against the load balancer of the emulator.

It reads a backend pool, takes one machine out of it and puts it back. Traffic goes through the balancer meanwhile. Then
it edits the balancer while the daemon rolls the machines behind it: neither loses what the other wrote.
"""

import http.client
import json
import os
import pathlib
import re
import ssl
import sys
import urllib.request

import daemon
from azure.core.exceptions import HttpResponseError
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

TOLD = json.loads(os.environ["EMULATOR"])
URL, TENANT, SUBSCRIPTION, GROUP = TOLD["url"], TOLD["tenant"], TOLD["subscription"], "rg"
BALANCER = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Network/loadBalancers/front"
FRONT = TOLD["fronts"][0]["address"]
OPENER = urllib.request.build_opener(
    urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=TOLD["caFile"]))
)
CREDENTIAL = ClientSecretCredential(TENANT, "app", "secret", authority=URL, disable_instance_discovery=True)
NETWORK = NetworkManagementClient(CREDENTIAL, SUBSCRIPTION, base_url=URL, polling_interval=1, retry_total=0)
COMPUTE = ComputeManagementClient(CREDENTIAL, SUBSCRIPTION, base_url=URL, polling_interval=1)
POOLS = NETWORK.load_balancer_backend_address_pools
NIC_POOL = "ModificationOfNICIpConfigBackendPoolNotSupported"


def text(path):
    """The bytes of an answer, without etags: each write changes them all."""
    token = CREDENTIAL.get_token("https://management.azure.com/.default").token
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{URL}{path}?api-version=2024-05-01", headers=headers)
    return re.sub(rb'"etag":"(\\"|[^"])*",?', b"", OPENER.open(request).read())


def order(what, **body):
    request = urllib.request.Request(f"{URL}/_control/{what}", json.dumps(body).encode(), method="POST")
    return json.load(OPENER.open(request))


def counts():
    state = json.load(OPENER.open(f"{URL}/_control/state"))
    return state["loadBalancers"][0]["rules"][0]["requests"]


def machine():
    """The name of the machine that answers a new connection; None: no machine takes it."""
    host, port = FRONT.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode().strip()
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def interface(element):
    return element.properties.network_interface_ip_configuration.id


def write(name, states, **options):
    """Reads the pool, changes only administrative states, and writes all of it back."""
    pool = POOLS.get(GROUP, "front", name)
    for element in pool.properties.load_balancer_backend_addresses:
        for part, state in states.items():
            if part in interface(element):
                element.properties.admin_state = state
    return POOLS.begin_create_or_update(GROUP, "front", name, pool, **options).result()


def fails(status, code, call):
    try:
        call()
    except HttpResponseError as error:
        assert (error.status_code, error.error.code) == (status, code), error
        return str(error)
    raise AssertionError(f"it must fail with {status} {code}")


def one_machine_leaves_and_returns():
    before = text(BALANCER)
    assert {machine() for _ in range(6)} == {"web/0", "web/1", "web/2"}
    write("web", {"/virtualMachines/1/": "Down"})
    states = [e.properties.admin_state for e in POOLS.get(GROUP, "front", "web").properties.load_balancer_backend_addresses]
    assert states == [None, "Down", None], states
    assert {machine() for _ in range(6)} == {"web/0", "web/2"}
    during = text(BALANCER)
    assert during != before
    assert during.replace(b',"adminState":"Down"', b"").replace(b'"adminState":"Down",', b"") == before, (before, during)
    write("web", {"/virtualMachines/1/": "None"})
    after = text(BALANCER)
    assert after.replace(b',"adminState":"None"', b"").replace(b'"adminState":"None",', b"") == before, (before, after)
    assert {machine() for _ in range(6)} == {"web/0", "web/1", "web/2"}


def a_flexible_machine_is_found_by_its_interface():
    pool = POOLS.get(GROUP, "front", "vms")
    ids = [configuration.id for configuration in pool.properties.backend_ip_configurations]
    assert ids == [interface(element) for element in pool.properties.load_balancer_backend_addresses]
    name = ids[0].split("/networkInterfaces/")[1].split("/")[0]
    found = NETWORK.network_interfaces.get(GROUP, name)
    vm = COMPUTE.virtual_machines.get(GROUP, found.properties.virtual_machine.id.split("/")[-1])
    assert vm.network_profile.network_interfaces[0].id == found.id
    assert found.properties.ip_configurations[0].properties.load_balancer_backend_address_pools[0].id == pool.id
    write("vms", {name: "Down"})
    write("vms", {name: "None"})


def interfaces_of_a_uniform_set():
    path = f"virtualMachineScaleSets/web/virtualMachines/2/networkInterfaces/nic"
    nics = NETWORK.network_interfaces
    every = list(nics.list_virtual_machine_scale_set_network_interfaces(GROUP, "web"))
    assert len(every) == 3 and every[2].id.endswith(path), [nic.id for nic in every]
    own = list(nics.list_virtual_machine_scale_set_vm_network_interfaces(GROUP, "web", "2"))
    assert [nic.id for nic in own] == [every[2].id]
    one = nics.get_virtual_machine_scale_set_network_interface(GROUP, "web", "2", "nic")
    assert one.properties.ip_configurations[0].properties.private_ip_address.startswith("10.")


def what_azure_refuses():
    pool = POOLS.get(GROUP, "front", "web")
    stale = {"If-Match": pool.etag}
    write("web", {"/virtualMachines/0/": "Down"}, headers=stale)
    fails(412, "PreconditionFailed", lambda: write("web", {"/virtualMachines/0/": "None"}, headers=stale))
    write("web", {"/virtualMachines/0/": "None"})
    pool.properties.load_balancer_backend_addresses.pop()
    said = fails(400, NIC_POOL, lambda: POOLS.begin_create_or_update(GROUP, "front", "web", pool))
    assert "adds/modifies/deletes backend address pool members" in said, said
    fails(400, NIC_POOL, lambda: POOLS.begin_create_or_update(GROUP, "front", "new", pool))
    running = POOLS.begin_create_or_update(GROUP, "front", "web", POOLS.get(GROUP, "front", "web"))
    fails(409, "AnotherOperationInProgress", lambda: write("web", {"/virtualMachines/0/": "Down"}))
    running.result()
    order("deeds", set="web", instance="0", deed={"failInterface": True})
    said = fails(429, "RetryableError", lambda: write("web", {"/virtualMachines/2/": "Down"}))
    assert "is not in Succeeded state" in said, said
    order("deeds", set="web", instance="0", deed={"failInterface": False})
    fails(404, "ResourceNotFound", lambda: NETWORK.load_balancers.get(GROUP, "no"))


def a_balancer_of_addresses():
    address = {"name": "a", "properties": {"ipAddress": "10.7.0.9", "adminState": "Up"}}
    pool = {"name": "ips", "properties": {"loadBalancerBackendAddresses": [address]}}
    body = {"location": "eastus2", "sku": {"name": "Standard"}, "properties": {"backendAddressPools": [pool]}}
    made = NETWORK.load_balancers.begin_create_or_update(GROUP, "other", body).result()
    assert made.properties.provisioning_state == "Succeeded", made
    assert {one.name for one in NETWORK.load_balancers.list(GROUP)} == {"front", "other"}
    assert len(list(NETWORK.load_balancers.list_all())) == 2
    assert [one.name for one in POOLS.list(GROUP, "other")] == ["ips"]
    read = POOLS.get(GROUP, "other", "ips")
    assert read.properties.load_balancer_backend_addresses[0].properties.ip_address == "10.7.0.9"


def a_delete_cuts_what_the_machine_holds():
    host, port = FRONT.split(":")
    held = {}
    while "web/0" not in held:
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.request("GET", "/")
        held[connection.getresponse().read().decode().strip()] = connection
    held["web/0"].request("GET", "/hold/60000")
    before = counts()
    COMPUTE.virtual_machine_scale_sets.begin_delete_instances(GROUP, "web", {"instanceIds": ["0"]}).result()
    try:
        held["web/0"].getresponse()
        raise AssertionError("a deleted machine answered")
    except (ConnectionError, http.client.HTTPException):
        pass
    assert counts()["cut"] == before["cut"] + 1, (before, counts())
    assert {machine() for _ in range(6)} == {"web/1", "web/2"}
    assert len(POOLS.get(GROUP, "front", "web").properties.load_balancer_backend_addresses) == 2


def edits(number):
    """What a client has on its mind meanwhile: a field of the pool, and a tag. Returns false if Azure was busy."""
    try:
        pool = POOLS.get(GROUP, "front", "web")
        kept = pool.properties.drain_period_in_seconds
        assert kept in (None, number - 1), f"the client wrote {number - 1} and reads {kept}"
        pool.properties.drain_period_in_seconds = number
        POOLS.begin_create_or_update(GROUP, "front", "web", pool, headers={"If-Match": pool.etag}).result()
        balancer = NETWORK.load_balancers.get(GROUP, "front")
        balancer.tags = {"edit": str(number)}
        NETWORK.load_balancers.begin_create_or_update(GROUP, "front", balancer, headers={"If-Match": balancer.etag}).result()
        return True
    except HttpResponseError as error:
        assert error.status_code in (409, 412, 429), error
        return False


def puts():
    asked = json.load(OPENER.open(f"{URL}/_control/record"))["requests"]
    return [one for one in asked if one["method"] == "PUT" and one["client"] == "poolkeeper"
            and "/backendaddresspools/" in one["path"].lower()]


def a_rollout_and_a_client_write_it_side_by_side():
    other = POOLS.get(GROUP, "front", "vms").properties.load_balancer_backend_addresses
    image = {"virtualMachineProfile": {"storageProfile": {"imageReference": {"version": "2.0.0"}}}}
    COMPUTE.virtual_machine_scale_sets.begin_update(GROUP, "web", {"properties": image}).result()
    home, done, busy = pathlib.Path(os.environ["SCRATCH"]) / "balancer", 0, 0
    home.mkdir()
    pool = {
        "replicas": {"owner": "scaleSet"}, "adopt": "roll", "drain": {"grace": "2s"},
        "rollout": {"maxSurge": 2, "maxUnavailable": 0, "ramp": "off", "minReady": "1s"},
    }
    running = daemon.serve(sys.argv[1], home, pool, daemon.free_port())
    try:
        def edit():
            nonlocal done, busy
            if edits(done + 1):
                done += 1
            else:
                busy += 1

        def is_new():
            vms = list(COMPUTE.virtual_machine_scale_set_vms.list(GROUP, "web"))
            return len(vms) == 2 and all(vm.properties.latest_model_applied for vm in vms)

        daemon.wait(home, "the rollout ends", is_new, 240, edit)
    finally:
        running.terminate()
        running.wait(30)
    wrote = len([one for one in puts() if one["status"] < 300])
    assert wrote >= 1 and done >= 5, (wrote, done)
    read = POOLS.get(GROUP, "front", "web").properties
    assert read.drain_period_in_seconds == done, (read, done)
    assert NETWORK.load_balancers.get(GROUP, "front").tags == {"edit": str(done)}
    states = [one.properties.admin_state for one in read.load_balancer_backend_addresses]
    assert len(states) == 2 and "Down" not in states, states
    assert POOLS.get(GROUP, "front", "vms").properties.load_balancer_backend_addresses == other
    assert len({machine() for _ in range(6)}) == 2
    print(f"balancer: {done} edits of a client beside {wrote} writes of the daemon, {busy} met the other and were tried again")


def main():
    flows = [one_machine_leaves_and_returns, a_flexible_machine_is_found_by_its_interface, interfaces_of_a_uniform_set,
             what_azure_refuses, a_balancer_of_addresses, a_delete_cuts_what_the_machine_holds,
             a_rollout_and_a_client_write_it_side_by_side]
    for flow in flows:
        flow()
        print(f"balancer: {flow.__name__}: ok")
    print(f"balancer: {len(flows)} flows, all accepted; {counts()}")


if __name__ == "__main__":
    sys.exit(main())
