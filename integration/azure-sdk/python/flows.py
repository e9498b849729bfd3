"""azure-mgmt-compute and azure-identity, as Microsoft ships them, against the emulator.

The clients are the judge: nothing of theirs is replaced, and only the addresses and the certificate authority point
at the emulator.
"""

import json
import os
import sys
import urllib.request

from azure.core import MatchConditions
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.core.rest import HttpRequest
from azure.identity import ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute.models import (
    VirtualMachineScaleSetVMInstanceIDs,
    VirtualMachineScaleSetVMInstanceRequiredIDs,
)

TOLD = json.loads(os.environ["EMULATOR"])
URL, TENANT, SUBSCRIPTION, GROUP = TOLD["url"], TOLD["tenant"], TOLD["subscription"], "rg"
OPENER = urllib.request.build_opener(
    urllib.request.HTTPSHandler(context=__import__("ssl").create_default_context(cafile=TOLD["caFile"]))
)
FLOWS = []


def flow(run):
    FLOWS.append(run)
    return run


def order(what, **body):
    request = urllib.request.Request(f"{URL}/_control/{what}", json.dumps(body).encode(), method="POST")
    return json.load(OPENER.open(request))


def credential(secret="secret"):
    return ClientSecretCredential(TENANT, "app", secret, authority=URL, disable_instance_discovery=True)


def client(token=None, **options):
    options = {"polling_interval": 1, **options}
    return ComputeManagementClient(token or credential(), SUBSCRIPTION, base_url=URL, **options)


def scale_set(capacity, version="1.0.0", **properties):
    return {
        "location": "eastus2",
        "tags": {"made": "by-python"},
        "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": capacity},
        "properties": {
            "overprovision": False,
            "singlePlacementGroup": False,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "py", "adminUsername": "me", "adminPassword": "not-kept-1A"},
                "storageProfile": {
                    "imageReference": {"publisher": "p", "offer": "o", "sku": "s", "version": version},
                    "osDisk": {"createOption": "FromImage", "caching": "ReadWrite"},
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {"name": "nic", "properties": {"primary": True, "ipConfigurations": [{"name": "ip"}]}}
                    ]
                },
            },
            **properties,
        },
    }


def fails(kind, status, code, call):
    try:
        call()
    except kind as error:
        assert error.status_code == status, (error.status_code, str(error))
        assert error.error is not None and error.error.code == code, error
        return error
    raise AssertionError(f"no {kind.__name__} with {code}")


@flow
def create_and_read():
    compute = client()
    made = compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "py", scale_set(7)).result()
    assert made.properties.provisioning_state == "Succeeded" and made.sku.capacity == 7, made
    assert made.properties.unique_id and made.etag and made.properties.time_created
    read = compute.virtual_machine_scale_sets.get(GROUP, "py")
    assert read.tags == {"made": "by-python"}
    assert read.properties.virtual_machine_profile.os_profile.admin_password is None
    assert any(s.name == "py" for s in compute.virtual_machine_scale_sets.list(GROUP))
    assert any(s.name == "py" for s in compute.virtual_machine_scale_sets.list_all())
    assert any(s.name == "py" for s in compute.virtual_machine_scale_sets.list_by_location("eastus2"))
    view = compute.virtual_machine_scale_sets.get_instance_view(GROUP, "py")
    counts = {s.code: s.count for s in view.virtual_machine.statuses_summary}
    assert counts["ProvisioningState/succeeded"] == 7, counts


@flow
def list_in_pages_with_the_view():
    vms = client().virtual_machine_scale_set_vms
    pages = [list(page) for page in vms.list(GROUP, "py", expand="instanceView").by_page()]
    assert [len(page) for page in pages] == [3, 3, 1], pages
    every = [vm for page in pages for vm in page]
    for vm in every:
        codes = [status.code for status in vm.properties.instance_view.statuses]
        assert codes == ["ProvisioningState/succeeded", "PowerState/running"], codes
        assert vm.properties.vm_id and vm.properties.latest_model_applied is True and vm.etag
        assert vm.properties.storage_profile.image_reference.exact_version == "1.0.0"
    assert all(vm.properties.instance_view is None for vm in vms.list(GROUP, "py"))
    latest = list(vms.list(GROUP, "py", filter="properties/latestModelApplied eq false"))
    assert latest == []
    one = vms.get(GROUP, "py", "0", expand="instanceView")
    assert one.properties.instance_view.vm_agent.statuses and one.name == "py_0"
    assert vms.get_instance_view(GROUP, "py", "0").statuses[1].code == "PowerState/running"


@flow
def scale():
    sets = client().virtual_machine_scale_sets
    grown = sets.begin_update(GROUP, "py", {"sku": {"capacity": 8}}).result()
    assert grown.sku.capacity == 8 and grown.properties.provisioning_state == "Succeeded"
    sparse = {"location": "eastus2", "sku": {"name": "Standard_D2s_v5", "capacity": 7}}
    shrunk = sets.begin_create_or_update(GROUP, "py", sparse).result()
    assert shrunk.sku.capacity == 7 and shrunk.tags == {"made": "by-python"}


@flow
def update_the_model_with_if_match():
    sets = client().virtual_machine_scale_sets
    before = sets.get(GROUP, "py")
    def to(image):
        return {"properties": {"virtualMachineProfile": {"storageProfile": {"imageReference": image}}}}

    gallery = before.id.split("/virtualMachineScaleSets/")[0] + "/galleries/shared/images/web"
    fails(ResourceExistsError, 409, "OperationNotAllowed", lambda: sets.begin_update(GROUP, "py", to({"id": gallery})))
    fails(ResourceExistsError, 409, "PropertyChangeNotAllowed",
          lambda: sets.begin_update(GROUP, "py", to({"publisher": "p", "offer": "other", "sku": "s", "version": "1"})))
    patch = to({"publisher": "p", "offer": "o", "sku": "s", "version": "2.0.0"})
    condition = {"etag": before.etag, "match_condition": MatchConditions.IfNotModified}
    after = sets.begin_update(GROUP, "py", patch, **condition).result()
    assert after.etag != before.etag
    assert after.properties.virtual_machine_profile.storage_profile.image_reference.version == "2.0.0"
    vms = client().virtual_machine_scale_set_vms
    assert not any(vm.properties.latest_model_applied for vm in vms.list(GROUP, "py"))
    error = fails(HttpResponseError, 412, "PreconditionFailed",
                  lambda: sets.begin_update(GROUP, "py", patch, **condition).result())
    assert "does not match etag" in error.message


@flow
def upgrade_reimage_and_power():
    compute = client()
    sets, vms = compute.virtual_machine_scale_sets, compute.virtual_machine_scale_set_vms
    before = vms.get(GROUP, "py", "0").properties.vm_id
    ids = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=["0", "1"])
    assert sets.begin_update_instances(GROUP, "py", ids).result() is None
    sets.begin_reimage(GROUP, "py", {"instanceIds": ["0"]}).result()
    vms.begin_reimage(GROUP, "py", "1").result()
    vm = vms.get(GROUP, "py", "0")
    assert vm.properties.latest_model_applied and vm.properties.vm_id == before
    assert vm.properties.storage_profile.image_reference.exact_version == "2.0.0"
    some = VirtualMachineScaleSetVMInstanceIDs(instance_ids=["0"])
    for begin, state in (
        (sets.begin_deallocate, "deallocated"),
        (sets.begin_start, "running"),
        (sets.begin_power_off, "stopped"),
        (sets.begin_restart, "stopped"),
    ):
        if begin == sets.begin_restart:
            sets.begin_start(GROUP, "py", some).result()
            state = "running"
        begin(GROUP, "py", some).result()
        shown = vms.get_instance_view(GROUP, "py", "0").statuses[1].code
        assert shown == f"PowerState/{state}", (begin, shown)


@flow
def protect():
    compute = client()
    vms = compute.virtual_machine_scale_set_vms
    policy = {"protectFromScaleIn": True, "protectFromScaleSetActions": True}
    done = vms.begin_update(GROUP, "py", "1", {"location": "eastus2", "properties": {"protectionPolicy": policy}})
    assert done.result().properties.protection_policy.protect_from_scale_in
    ids = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=["1", "2"])
    delete = compute.virtual_machine_scale_sets.begin_delete_instances
    fails(ResourceExistsError, 409, "OperationNotAllowed", lambda: delete(GROUP, "py", ids))
    free = {"protectFromScaleIn": False, "protectFromScaleSetActions": False}
    vms.begin_update(GROUP, "py", "1", {"location": "eastus2", "properties": {"protectionPolicy": free}}).result()


@flow
def delete_instances():
    compute = client()
    sets, vms = compute.virtual_machine_scale_sets, compute.virtual_machine_scale_set_vms
    ids = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=["2", "3"])
    poller = sets.begin_delete_instances(GROUP, "py", ids)
    assert poller.result() is None and poller.status() == "Succeeded"
    left = {vm.instance_id for vm in vms.list(GROUP, "py")}
    assert "2" not in left and "3" not in left and len(left) == 5, left
    assert sets.get(GROUP, "py").sku.capacity == 5
    vms.begin_delete(GROUP, "py", "4").result()
    vms.begin_delete(GROUP, "py", "4").result()
    stale = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=["0", "4"])
    error = fails(HttpResponseError, 400, "InvalidParameter", lambda: sets.begin_delete_instances(GROUP, "py", stale))
    assert error.error.target == "instanceIds"


@flow
def a_failed_operation_raises_with_its_code():
    sets = client().virtual_machine_scale_sets
    order("faults", chances={"bootFails": 1.0})
    try:
        poller = sets.begin_update(GROUP, "py", {"sku": {"capacity": 5}})
        error = None
        try:
            poller.result()
        except HttpResponseError as raised:
            error = raised
        assert error is not None and error.error.code == "OSProvisioningInternalError", error
    finally:
        order("faults")
    assert sets.get(GROUP, "py").properties.provisioning_state == "Failed"


@flow
def documented_exceptions():
    compute = client(retry_total=0)
    sets = compute.virtual_machine_scale_sets
    fails(ResourceNotFoundError, 404, "ResourceNotFound", lambda: sets.get(GROUP, "none"))
    fails(ResourceNotFoundError, 404, "ResourceGroupNotFound", lambda: sets.get("none", "none"))
    fails(ResourceNotFoundError, 404, "NotFound", lambda: compute.virtual_machine_scale_set_vms.get(GROUP, "py", "999"))
    order("deeds", set="py", deed={"quota": 1})
    fails(ResourceExistsError, 409, "OperationNotAllowed",
          lambda: sets.begin_update(GROUP, "py", {"sku": {"capacity": 50}}))
    order("deeds", set="py", deed={"quota": None})
    rule = {"path": "/py/virtualmachines", "status": 429, "code": "OperationNotAllowed", "retryAfter": 1}
    order("faults", rules=[{**rule, "times": 1}])
    listed = compute.virtual_machine_scale_set_vms.list
    fails(HttpResponseError, 429, "OperationNotAllowed", lambda: list(listed(GROUP, "py")))
    order("faults", rules=[{**rule, "times": 2}])
    assert list(client().virtual_machine_scale_set_vms.list(GROUP, "py")), "the client waits and asks again"
    order("faults")


@flow
def real_throttling_has_a_body_and_a_retry_after():
    compute = client(retry_total=0)
    seen = None
    for _ in range(40):
        try:
            compute.virtual_machine_scale_sets.get_instance_view(GROUP, "throttled")
        except HttpResponseError as error:
            seen = error
            break
    assert seen is not None and seen.status_code == 429, seen
    assert int(seen.response.headers["Retry-After"]) >= 1
    assert seen.error.details[0].target == "HighCostGetVMScaleSetResource"


@flow
def flexible_sets():
    compute = client()
    made = compute.virtual_machine_scale_sets.begin_create_or_update(
        GROUP, "flexpy", scale_set(4, orchestrationMode="Flexible")).result()
    wanted = f"'virtualMachineScaleSet/id' eq '{made.id}'"
    vms = list(compute.virtual_machines.list(GROUP, filter=wanted, expand="instanceView"))
    assert len(vms) == 4 and all(vm.properties.instance_view.statuses for vm in vms), vms
    name = vms[0].name
    assert compute.virtual_machines.get(GROUP, name).properties.virtual_machine_scale_set.id.endswith("flexpy")
    members = compute.virtual_machine_scale_set_vms
    members.begin_update(GROUP, "flexpy", name, {
        "location": "eastus2", "properties": {"protectionPolicy": {"protectFromScaleIn": True}}}).result()
    assert members.get(GROUP, "flexpy", name).properties.protection_policy.protect_from_scale_in
    vm = compute.virtual_machines.get(GROUP, name).as_dict()
    assert "protectionPolicy" not in vm["properties"], "a VM resource has no such property"
    compute.virtual_machines.begin_delete(GROUP, name).result()
    fails(ResourceNotFoundError, 404, "ResourceNotFound", lambda: compute.virtual_machines.get(GROUP, name))
    compute.virtual_machine_scale_sets.begin_delete(GROUP, "flexpy").result()


def send(compute, method, scope, lock="", **body):
    """By the client's own pipeline, with its token and its address."""
    path = f"{scope}/providers/Microsoft.Authorization/locks{lock}?api-version=2020-05-01"
    answer = compute.send_request(HttpRequest(method, f"{URL}{path}", json=body or None))
    answer.raise_for_status()
    return answer.json() if answer.content else None


@flow
def locks():
    compute = client()
    sets, vms = compute.virtual_machine_scale_sets, compute.virtual_machine_scale_set_vms
    sets.begin_create_or_update(GROUP, "lockpy", scale_set(3)).result()
    made = sets.get(GROUP, "lockpy").id
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
    lock = send(compute, "PUT", made, "/keep", properties={"level": "CanNotDelete", "notes": "ask"})
    assert lock["id"] == f"{made}/providers/Microsoft.Authorization/locks/keep", lock
    assert [one["name"] for one in send(compute, "GET", group)["value"]] == ["keep"]
    first = next(iter(vms.list(GROUP, "lockpy"))).instance_id
    fails(ResourceExistsError, 409, "ScopeLocked", lambda: sets.begin_delete(GROUP, "lockpy"))
    fails(ResourceExistsError, 409, "ScopeLocked", lambda: vms.begin_delete(GROUP, "lockpy", first))
    ids = VirtualMachineScaleSetVMInstanceRequiredIDs(instance_ids=[first])
    sets.begin_delete_instances(GROUP, "lockpy", ids).result()
    send(compute, "PUT", group, "/still", properties={"level": "ReadOnly"})
    raised = {"sku": {"capacity": 4}}
    fails(ResourceExistsError, 409, "ScopeLocked", lambda: sets.begin_update(GROUP, "lockpy", raised))
    send(compute, "DELETE", group, "/still")
    send(compute, "DELETE", made, "/keep")
    sets.begin_delete(GROUP, "lockpy").result()


@flow
def bodies_of_another_type():
    compute = client()
    sets = compute.virtual_machine_scale_sets
    sets.begin_create_or_update(GROUP, "oddpy", scale_set(1)).result()
    before = sets.get(GROUP, "oddpy")
    storage = {"imageReference": "x"}
    wrong = [
        {"sku": "x"}, {"sku": {"capacity": "many"}}, {"tags": "all"}, {"identity": "x"}, {"zones": "1"},
        *({"properties": {key: "x"}} for key in (
            "upgradePolicy", "automaticRepairsPolicy", "virtualMachineProfile", "overprovision", "singlePlacementGroup",
            "scaleInPolicy", "priorityMixPolicy", "spotRestorePolicy", "skuProfile")),
        *({"properties": {"virtualMachineProfile": {key: "x"}}} for key in (
            "osProfile", "storageProfile", "networkProfile", "extensionProfile", "securityProfile", "hardwareProfile")),
        {"properties": {"virtualMachineProfile": {"storageProfile": storage}}},
        {"properties": {"virtualMachineProfile": {"userData": {}}}},
    ]
    for body in wrong:
        request = HttpRequest("PATCH", f"{URL}{before.id}?api-version=2024-07-01", json=body)
        assert compute.send_request(request).status_code == 400, body
    assert sets.get(GROUP, "oddpy").etag == before.etag
    sets.begin_delete(GROUP, "oddpy").result()


@flow
def what_surrounds_sets():
    compute = client()
    usage = {one.name.value: one for one in compute.usage.list("eastus2")}
    assert usage["cores"].current_value > 0
    skus = {sku.name for sku in compute.resource_skus.list(filter="location eq 'eastus2'")}
    assert "Standard_D2s_v5" in skus
    versions = list(compute.gallery_image_versions.list_by_gallery_image(GROUP, "shared", "web"))
    assert [one.name for one in versions] == ["1.2.0"], versions
    one = compute.gallery_image_versions.get(GROUP, "shared", "web", "1.2.0", expand="ReplicationStatus")
    assert one.properties.provisioning_state == "Succeeded"


@flow
def extensions_of_a_set():
    compute = client()
    extensions = compute.virtual_machine_scale_set_extensions
    body = {"properties": {"publisher": "Microsoft.Azure.Monitor", "type": "AzureMonitorLinuxAgent",
                           "typeHandlerVersion": "1.0", "protectedSettings": {"key": "secret"}}}
    before = compute.virtual_machine_scale_sets.get(GROUP, "py").etag
    made = extensions.begin_create_or_update(GROUP, "py", "agent", body).result()
    assert made.properties.provisioning_state == "Succeeded", made
    assert compute.virtual_machine_scale_sets.get(GROUP, "py").etag != before
    vms = compute.virtual_machine_scale_set_vms
    assert not any(vm.properties.latest_model_applied for vm in vms.list(GROUP, "py"))
    newer = extensions.begin_update(GROUP, "py", "agent", {"properties": {"typeHandlerVersion": "1.1"}}).result()
    assert newer.properties.type_handler_version == "1.1" and newer.properties.protected_settings is None, newer
    assert [one.name for one in extensions.list(GROUP, "py")] == ["agent"]
    extensions.begin_delete(GROUP, "py", "agent").result()
    fails(ResourceNotFoundError, 404, "NotFound", lambda: extensions.get(GROUP, "py", "agent"))


@flow
def rolling_upgrades():
    compute = client()
    upgrades = compute.virtual_machine_scale_set_rolling_upgrades
    sets = compute.virtual_machine_scale_sets
    sets.begin_create_or_update(GROUP, "rollpy", scale_set(6, upgradePolicy={"mode": "Rolling"})).result()
    fails(ResourceExistsError, 409, "OperationNotAllowed", lambda: upgrades.begin_cancel(GROUP, "rollpy"))
    assert list(sets.get_os_upgrade_history(GROUP, "rollpy")) == []
    image = {"storageProfile": {"imageReference": {"version": "2.0.0"}}}
    sets.begin_update(GROUP, "rollpy", {"properties": {"virtualMachineProfile": image}}, polling=False)
    upgrades.begin_cancel(GROUP, "rollpy").result()
    assert upgrades.get_latest(GROUP, "rollpy").properties.running_status.code == "Cancelled"
    told = [one.properties for one in sets.get_os_upgrade_history(GROUP, "rollpy")]
    assert [(one.running_status.code, one.started_by) for one in told] == [("Cancelled", "User")], told
    assert told[0].target_image_reference.version == "2.0.0", told
    sets.begin_delete(GROUP, "rollpy").result()


@flow
def spot_vms_and_regular_ones_in_one_set():
    compute = client()
    policy = {"baseRegularPriorityCount": 2, "regularPriorityPercentageAboveBase": 50}
    body = scale_set(4, orchestrationMode="Flexible", priorityMixPolicy=policy)
    body["properties"]["virtualMachineProfile"].update({"priority": "Spot", "evictionPolicy": "Deallocate"})
    made = compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "mixpy", body).result()
    kept = made.properties.priority_mix_policy
    assert (kept.base_regular_priority_count, kept.regular_priority_percentage_above_base) == (2, 50), kept
    wanted = f"'virtualMachineScaleSet/id' eq '{made.id}'"
    vms = list(compute.virtual_machines.list(GROUP, filter=wanted))
    assert sorted(vm.properties.priority or "Regular" for vm in vms) == ["Regular", "Regular", "Regular", "Spot"], vms
    compute.virtual_machine_scale_sets.begin_delete(GROUP, "mixpy").result()


@flow
def versions_of_gallery_images():
    versions = client().gallery_image_versions
    body = {
        "location": "eastus2",
        "properties": {
            "publishingProfile": {"targetRegions": [{"name": "East US 2"}], "endOfLifeDate": "2030-01-01T00:00:00Z"},
            "storageProfile": {"source": {"id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/"
                                                "Microsoft.Compute/images/built"}},
        },
    }
    poller = versions.begin_create_or_update(GROUP, "shared", "web", "1.3.0", body)
    made = poller.result()
    assert made.properties.provisioning_state == "Succeeded", made
    assert made.properties.publishing_profile.target_regions[0].regional_replica_count == 1, made
    one = versions.get(GROUP, "shared", "web", "1.3.0", expand="ReplicationStatus")
    assert one.properties.replication_status.aggregated_state == "Completed", one
    body["properties"]["publishingProfile"]["excludeFromLatest"] = True
    hidden = versions.begin_create_or_update(GROUP, "shared", "web", "1.3.0", body).result()
    assert hidden.properties.publishing_profile.exclude_from_latest
    versions.begin_delete(GROUP, "shared", "web", "1.3.0").result()
    fails(ResourceNotFoundError, 404, "ResourceNotFound", lambda: versions.get(GROUP, "shared", "web", "1.3.0"))
    fails(ResourceNotFoundError, 404, "ParentResourceNotFound",
          lambda: versions.begin_create_or_update(GROUP, "shared", "none", "1.3.0", body))


@flow
def spot_cores_have_a_quota_of_their_own():
    compute = client()
    body = scale_set(2)
    body["properties"]["virtualMachineProfile"].update({"priority": "Spot", "evictionPolicy": "Delete"})

    def usage():
        return {one.name.value: one.current_value for one in compute.usage.list("eastus2")}

    before = usage()
    compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "spotpy", body).result()
    after = usage()
    assert after["lowPriorityCores"] == before["lowPriorityCores"] + 4, after
    assert (after["cores"], after["standardDSv5Family"]) == (before["cores"], before["standardDSv5Family"]), after
    compute.virtual_machine_scale_sets.begin_delete(GROUP, "spotpy").result()


@flow
def other_credentials():
    folder = os.environ["SCRATCH"]
    path = os.path.join(folder, "federated-token")
    with open(path, "w", encoding="utf-8") as file:
        file.write("a.b.c")
    workload = WorkloadIdentityCredential(tenant_id=TENANT, client_id="app", token_file_path=path, authority=URL,
                                          disable_instance_discovery=True)
    assert client(workload).virtual_machine_scale_sets.get(GROUP, "py").name == "py"
    os.environ["AZURE_POD_IDENTITY_AUTHORITY_HOST"] = URL
    managed = ManagedIdentityCredential(client_id="app")
    assert client(managed).virtual_machine_scale_sets.get(GROUP, "py").name == "py"
    try:
        credential("wrong").get_token("https://management.azure.com/.default")
        raise AssertionError("a wrong secret was taken")
    except ClientAuthenticationError as error:
        assert "AADSTS7000215" in str(error), error


@flow
def delete_the_set():
    sets = client().virtual_machine_scale_sets
    sets.begin_delete(GROUP, "py").result()
    fails(ResourceNotFoundError, 404, "ResourceNotFound", lambda: sets.get(GROUP, "py"))
    sets.begin_delete(GROUP, "py").result()


def main():
    for run in FLOWS:
        run()
        print(f"python: {run.__name__}: ok")
    print(f"python: {len(FLOWS)} flows, all accepted")


if __name__ == "__main__":
    sys.exit(main())
