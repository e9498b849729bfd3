"""An autoscale setting that azure-mgmt-monitor and az write and read, before, during and after a rollout that suspends it.

The daemon writes to the emulator; what it did is seen by the official clients, and by the emulator's record of requests.
"""

import json
import os
import pathlib
import ssl
import subprocess
import sys
import time
import urllib.request

import daemon
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.rest import HttpRequest
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.monitor import MonitorManagementClient

TOLD = json.loads(os.environ["EMULATOR"])
URL, TENANT, SUBSCRIPTION, GROUP = TOLD["url"], TOLD["tenant"], TOLD["subscription"], "rg"
SET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/web"
PROGRAM, AZ, HOME = sys.argv[1], sys.argv[2], pathlib.Path(os.environ["SCRATCH"])
SECRET, MACHINES = "not-for-logs-7f3a", 4
OPENER = urllib.request.build_opener(
    urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=TOLD["caFile"]))
)
CREDENTIAL = ClientSecretCredential(TENANT, "app", "secret", authority=URL, disable_instance_discovery=True)
MONITOR = MonitorManagementClient(CREDENTIAL, SUBSCRIPTION, base_url=URL)
COMPUTE = ComputeManagementClient(CREDENTIAL, SUBSCRIPTION, base_url=URL, polling_interval=1)


def profile(name, minimum, maximum, **when):
    trigger = {
        "metricName": "Percentage CPU", "metricResourceUri": SET, "timeGrain": "PT1M", "statistic": "Average",
        "timeWindow": "PT5M", "timeAggregation": "Average", "operator": "GreaterThan", "threshold": 80.0,
        "dividePerInstance": False,
    }
    action = {"direction": "Increase", "type": "ChangeCount", "value": "1", "cooldown": "PT5M"}
    capacity = {"minimum": str(minimum), "maximum": str(maximum), "default": str(minimum)}
    return {"name": name, "capacity": capacity, "rules": [{"metricTrigger": trigger, "scaleAction": action}], **when}


WRITTEN = {
    "location": "eastus2",
    "tags": {"team": "web"},
    "properties": {
        "enabled": True,
        "targetResourceUri": SET,
        "profiles": [
            profile("all", 3, MACHINES),
            profile("old campaign", 1, 9, fixedDate={
                "timeZone": "Pacific Standard Time", "start": "2020-11-27T00:00:00.000Z", "end": "2020-11-28T00:00:00.000Z"}),
        ],
        "notifications": [{
            "operation": "Scale",
            "email": {"customEmails": ["ops@example.org"]},
            "webhooks": [{"serviceUri": f"https://hook.example.org/x?token={SECRET}", "properties": {"to": "ops"}}],
        }],
        "predictiveAutoscalePolicy": {"scaleMode": "Disabled"},
    },
}


def az(*command):
    done = subprocess.run([AZ, *command, "--output", "json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (command, done.stderr)
    return json.loads(done.stdout) if done.stdout.strip() else None


def az_login():
    os.environ.update(AZURE_CONFIG_DIR=str(HOME / "az-monitor"), AZURE_CORE_INSTANCE_DISCOVERY="false",
                      AZURE_CORE_COLLECT_TELEMETRY="false", AZURE_CORE_ONLY_SHOW_ERRORS="true")
    az("cloud", "register", "-n", "Emulator", "--endpoint-resource-manager", URL)
    az("cloud", "set", "-n", "Emulator")
    az("login", "--service-principal", "-u", "app", "-p", "secret", "--tenant", TENANT)


def normal(value, key=""):
    """What Azure itself changes in an answer is no difference."""
    if isinstance(value, dict):
        kept = {k: normal(v, k) for k, v in value.items() if v is not None and k not in ("$type", "systemData")}
        return {k: v for k, v in kept.items() if v not in ({}, [])}
    if isinstance(value, list):
        return [normal(one) for one in value]
    if key in ("location", "timeZone"):
        return value.lower().replace(" ", "")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def contains(wanted, found, path="setting"):
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in found, f"{path}.{key} is gone"
            contains(value, found[key], f"{path}.{key}")
    elif isinstance(wanted, list):
        assert len(wanted) == len(found), (path, wanted, found)
        for n, (a, b) in enumerate(zip(wanted, found)):
            contains(a, b, f"{path}[{n}]")
    else:
        assert wanted == found, (path, wanted, found)


def raw():
    """The text of the setting, by the client's own pipeline."""
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Insights/autoscaleSettings/web-scale"
    answer = COMPUTE.send_request(HttpRequest("GET", f"{URL}{path}?api-version=2022-10-01"))
    answer.raise_for_status()
    return answer.text()


def read():
    return MONITOR.autoscale_settings.get(GROUP, "web-scale")


def without_enabled(document):
    return {**document, "properties": {k: v for k, v in document["properties"].items() if k != "enabled"}}


def wait(*what):
    return daemon.wait(HOME, *what)


def clients_agree_before():
    settings = MONITOR.autoscale_settings
    made = settings.create_or_update(GROUP, "web-scale", WRITTEN)
    assert made.enabled is True and made.profiles[0].capacity.maximum == str(MACHINES), made
    contains(normal(WRITTEN), normal(json.loads(raw())))
    assert [one.name for one in settings.list_by_resource_group(GROUP)] == ["web-scale"]
    assert [one.name for one in settings.list_by_subscription()] == ["web-scale"]
    # What a client read is what it may write again.
    settings.create_or_update(GROUP, "web-scale", read())
    contains(normal(WRITTEN), normal(json.loads(raw())))
    az("monitor", "autoscale", "create", "-g", GROUP, "-n", "cli-scale", "--resource",
       SET.replace("/web", "/cli"), "--min-count", "2", "--max-count", "2", "--count", "2")
    az("monitor", "autoscale", "update", "-g", GROUP, "-n", "cli-scale", "--enabled", "false")
    shown = {one["name"]: one["enabled"] for one in az("monitor", "autoscale", "list", "-g", GROUP)}
    assert shown == {"web-scale": True, "cli-scale": False}, shown
    az("monitor", "autoscale", "delete", "-g", GROUP, "-n", "cli-scale")
    try:
        settings.get(GROUP, "cli-scale")
        raise AssertionError("a deleted setting is still there")
    except ResourceNotFoundError:
        pass
    wrong = json.loads(json.dumps(WRITTEN))
    wrong["properties"]["profiles"][0]["capacity"].update(minimum="6", maximum="7", default="1")
    try:
        settings.create_or_update(GROUP, "web-scale", wrong)
        raise AssertionError("a minimum above the default was accepted")
    except HttpResponseError as error:
        assert error.status_code == 400, error
    print("autoscale: azure-mgmt-monitor and az write and read a setting: ok")


def off_since(port):
    """When the daemon's metrics say that the setting was switched off."""
    page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    wanted = 'poolkeeper_pool_autoscaler_off_timestamp_seconds{pool="web"} '
    found = [line for line in page.splitlines() if line.startswith(wanted)]
    return float(found[0].rsplit(" ", 1)[1]) if found else None


POOL = {
    "replicas": {"owner": "scaleSet"}, "adopt": "roll", "autoscaler": {"during": "suspend"},
    "rollout": {"maxSurge": 2, "maxUnavailable": 0, "ramp": "off", "minReady": "1s"},
}


def a_rollout_suspends_it():
    before = raw()
    image = {"virtualMachineProfile": {"storageProfile": {"imageReference": {"version": "2.0.0"}}}}
    COMPUTE.virtual_machine_scale_sets.begin_update(GROUP, "web", {"properties": image}).result()
    port, sizes, began = daemon.free_port(), set(), time.time()
    running = daemon.serve(PROGRAM, HOME, POOL, port)
    try:
        def size():
            sizes.add(len(list(COMPUTE.virtual_machine_scale_set_vms.list(GROUP, "web"))))

        def is_new():
            vms = list(COMPUTE.virtual_machine_scale_set_vms.list(GROUP, "web"))
            return len(vms) == MACHINES and all(vm.properties.latest_model_applied for vm in vms)

        wait("the setting is switched off", lambda: not read().enabled, 60, size)
        during = json.loads(raw())
        assert without_enabled(normal(during)) == without_enabled(normal(json.loads(before)))
        shown = az("monitor", "autoscale", "show", "-g", GROUP, "-n", "web-scale")
        assert shown["enabled"] is False and shown["profiles"][0]["capacity"]["maximum"] == str(MACHINES), shown
        since = wait("metrics say so", lambda: off_since(port), 60, size)
        assert began <= since <= time.time(), since
        print("autoscale: switched off for the rollout, and nothing else of it changed: ok")
        wait("a rollout goes above the maximum of the setting", lambda: max(sizes) > MACHINES, 180, size)
        wait("the setting is put back", lambda: read().enabled, 300, size)
        wait("metrics say so", lambda: off_since(port) is None, 60, size)
        assert is_new(), "put back before the rollout was done"
        assert min(sizes) >= MACHINES, sizes
    finally:
        running.terminate()
        running.wait(30)
    assert raw() == before, "what is read is not, byte for byte, what was read before"
    shown = az("monitor", "autoscale", "show", "-g", GROUP, "-n", "web-scale")
    assert shown["enabled"] is True and shown["predictiveAutoscalePolicy"]["scaleMode"] == "Disabled", shown
    record = json.load(OPENER.open(f"{URL}/_control/record"))
    puts = [one for one in record["requests"]
            if one["method"] == "PUT" and one["client"] == "poolkeeper" and "autoscalesettings" in one["path"].lower()]
    off, back = [json.dumps(one["body"]) for one in puts]
    assert back == json.dumps(json.loads(before)), "what was put back is not what was read"
    assert off == back.replace('"enabled": true', '"enabled": false'), "it was changed in more than one place"
    assert SECRET not in (HOME / "daemon.log").read_text(), "the log holds the secret of a webhook"
    print(f"autoscale: {min(sizes)} to {max(sizes)} machines of {MACHINES}; put back as it was, byte for byte: ok")


az_login()
clients_agree_before()
a_rollout_suspends_it()
