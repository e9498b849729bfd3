"""The three scale sets that a run makes, the network they stand in, and their removal.

All of it has a name that begins with PREFIX and the tag TAG; what lacks either is never written or deleted.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass

from arm import COMPUTE, LOCKS, NETWORK, RESOURCES, Answer, Arm, Failed, Json, Refused

PREFIX = "poolkeeper-live-"
TAG = "poolkeeper-live"
# Of each lock, which can have no tag.
NOTES = "Poolkeeper tries what a lock stops."
# Small, and with a cache that holds the ephemeral disk of a 30 GiB image.
SIZE = "Standard_DS1_v2"
OTHER_SIZE = "Standard_DS2_v2"
USER = "poolkeeper"
PUBLISHER, OFFER, SKU = "Canonical", "ubuntu-24_04-lts", "server"
# Two versions for an emulator, which knows no list of the marketplace.
EMULATED_VERSIONS = ("24.04.202407160", "24.04.202408010")
# Neither this nor the kind of the disk is what the image itself would give.
OS_DISK_GIB = 64
MACHINES = {"uniform": 3, "ephemeral": 1, "flexible": 2}
# Each of the two larger sets is raised by one.
MOST_MACHINES = sum(MACHINES.values()) + 2
POLL = 5
# How often the removal begins anew, and seconds between.
ROUNDS = 5
ROUND_PAUSE = 30


@dataclass(frozen=True)
class Place:
    """Where a run takes place."""

    subscription: str
    group: str
    location: str

    @property
    def path(self) -> str:
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"


@dataclass(frozen=True)
class Machine:
    id: str
    path: str
    state: str
    latest: bool | None
    os_disk: Json


def image(version: str) -> Json:
    return {"publisher": PUBLISHER, "offer": OFFER, "sku": SKU, "version": version}


def disk_kind(name: str) -> Json:
    return {"storageAccountType": name}


def public_key() -> str:
    """The public half of a key that has no private half: no login can succeed."""
    modulus = secrets.randbits(2048) | 1 << 2047 | 1
    parts = (b"ssh-rsa", (65537).to_bytes(3, "big"), b"\0" + modulus.to_bytes(256, "big"))
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return f"ssh-rsa {base64.b64encode(blob).decode()}"


class ScaleSet:
    def __init__(self, arm: Arm, place: Place, run: str, kind: str, subnet: str) -> None:
        self.arm, self.place, self.kind = arm, place, kind
        self.name = f"{run}-{kind}"
        self.flexible = kind == "flexible"
        self.path = f"{place.path}/providers/Microsoft.Compute/virtualMachineScaleSets/{self.name}"
        self.tags = {TAG: run}
        self.subnet = subnet
        self.key = public_key()
        self.ever_listed: set[str] = set()

    def body(self, version: str) -> Json:
        if self.kind == "ephemeral":
            disk: Json = {"caching": "ReadOnly", "diffDiskSettings": {"option": "Local", "placement": "CacheDisk"}}
        else:
            disk = {"caching": "ReadWrite", "diskSizeGB": OS_DISK_GIB, "managedDisk": disk_kind("StandardSSD_LRS")}
        data = {"lun": 0, "createOption": "Empty", "diskSizeGB": 4, "managedDisk": disk_kind("Standard_LRS")}
        address = {"name": "ip", "properties": {"primary": True, "subnet": {"id": self.subnet}}}
        card: Json = {"primary": True, "ipConfigurations": [address]}
        network: Json = {"networkInterfaceConfigurations": [{"name": f"{self.name}-nic", "properties": card}]}
        properties: Json = {"orchestrationMode": "Uniform", "overprovision": False, "upgradePolicy": {"mode": "Manual"}}
        if self.flexible:
            properties = {"orchestrationMode": "Flexible", "platformFaultDomainCount": 1}
            card["deleteOption"] = disk["deleteOption"] = "Delete"
            network["networkApiVersion"] = "2020-11-01"
        keys = "/".join(("", "home", USER, ".ssh", "authorized_keys"))
        linux = {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [{"path": keys, "keyData": self.key}]}}
        properties["virtualMachineProfile"] = {
            "osProfile": {"computerNamePrefix": "pklive", "adminUsername": USER, "linuxConfiguration": linux},
            "storageProfile": {
                "imageReference": image(version),
                "osDisk": {"osType": "Linux", "createOption": "FromImage", **disk},
                "dataDisks": [data] if self.kind == "uniform" else [],
            },
            "networkProfile": network,
        }
        sku = {"name": SIZE, "tier": "Standard", "capacity": MACHINES[self.kind]}
        return {"location": self.place.location, "tags": self.tags, "sku": sku, "properties": properties}

    def read(self) -> Json:
        return self.arm.get(self.path)

    def etag(self) -> str:
        return self.read().get("etag", "")

    def capacity(self) -> int:
        return self.read()["sku"]["capacity"]

    def storage(self) -> Json:
        return self.read()["properties"]["virtualMachineProfile"]["storageProfile"]

    def patch(self, body: Json) -> Answer:
        return self.arm.call("PATCH", self.path, body)

    def delete(self, machines: list[Machine]) -> Answer:
        return self.arm.call("POST", f"{self.path}/delete", {"instanceIds": [machine.id for machine in machines]})

    def machines(self) -> list[Machine]:
        """As the lists show them: those being deleted too."""
        if self.flexible:
            path = f"{self.place.path}/providers/Microsoft.Compute/virtualMachines"
            rows = self.arm.list(path, query={"$filter": f"'virtualMachineScaleSet/id' eq '{self.path}'"})
        else:
            rows = self.arm.list(f"{self.path}/virtualMachines")
        found = [self.machine(row) for row in rows]
        self.ever_listed |= {machine.id for machine in found}
        return found

    def machine(self, row: Json) -> Machine:
        name = row["name"] if self.flexible else row["instanceId"]
        path = f"{self.place.path}/providers/Microsoft.Compute/virtualMachines/{name}"
        of_set = f"{self.path}/virtualMachines/{name}"
        rest = row["properties"]
        return Machine(
            name,
            path if self.flexible else of_set,
            rest.get("provisioningState", ""),
            rest.get("latestModelApplied"),
            rest.get("storageProfile", {}).get("osDisk", {}),
        )

    def quiet(self) -> list[Machine]:
        """The machines, once nothing of the set is under way."""
        while True:
            state = self.read()["properties"].get("provisioningState")
            machines = self.machines()
            if state in ("Succeeded", "Failed") and all(one.state in ("Succeeded", "Failed") for one in machines):
                return machines
            self.arm.clock.wait(POLL)

    def some(self, wanted: int) -> list[Machine]:
        machines = self.quiet()
        if len(machines) < wanted:
            raise Failed(f"{len(machines)} machines are left in {self.name}, and this needs {wanted}")
        return machines[:wanted]

    def on_the_model(self) -> list[Machine]:
        """All machines, each with latestModelApplied."""
        if outdated := [one.id for one in self.quiet() if one.latest is False]:
            end = self.arm.finish(self.arm.call("POST", f"{self.path}/manualupgrade", {"instanceIds": outdated}))
            if end != "Succeeded":
                raise Failed(f"a manual upgrade ended with {end}")
        machines = self.quiet()
        if not machines or not all(one.latest for one in machines):
            raise Failed("the machines do not show latestModelApplied before the write")
        return machines


class Stage:
    """What one run makes."""

    def __init__(self, arm: Arm, place: Place, emulated: bool) -> None:
        self.arm, self.place, self.emulated = arm, place, emulated
        self.run = f"{PREFIX}{secrets.token_hex(4)}"
        # This one, and those of which something was found.
        self.runs = {self.run}
        self.network = f"{place.path}/providers/Microsoft.Network/virtualNetworks/{self.run}"
        subnet = f"{self.network}/subnets/machines"
        sets = (ScaleSet(arm, place, self.run, kind, subnet) for kind in MACHINES)
        self.uniform, self.ephemeral, self.flexible = sets
        self.versions = EMULATED_VERSIONS

    def build(self) -> None:
        if not self.emulated:
            self.versions = self.published()
            self.make_network()
        begun = [(one, self.arm.call("PUT", one.path, one.body(self.versions[0]))) for one in self.sets()]
        for one, answer in begun:
            end = self.arm.finish(answer)
            if end != "Succeeded":
                raise Failed(f"the making of {one.name} ended with {end}")
            one.some(MACHINES[one.kind])

    def sets(self) -> tuple[ScaleSet, ScaleSet, ScaleSet]:
        return self.uniform, self.ephemeral, self.flexible

    def published(self) -> tuple[str, str]:
        """The two newest versions of the image."""
        path = f"/subscriptions/{self.place.subscription}/providers/Microsoft.Compute/locations/{self.place.location}"
        path += f"/publishers/{PUBLISHER}/artifacttypes/vmimage/offers/{OFFER}/skus/{SKU}/versions"
        answer = self.arm.call("GET", path, query={"$top": "2", "$orderby": "name desc"}).must()
        names = sorted(one["name"] for one in answer.body["value"])
        if len(names) < 2:
            raise Failed(f"{PUBLISHER} {OFFER} {SKU} has fewer than two versions in {self.place.location}")
        return names[-2], names[-1]

    def make_network(self) -> None:
        space = {"addressSpace": {"addressPrefixes": ["10.77.0.0/24"]}}
        subnet = {"name": "machines", "properties": {"addressPrefix": "10.77.0.0/24"}}
        body = {"location": self.place.location, "tags": {TAG: self.run}, "properties": {**space, "subnets": [subnet]}}
        end = self.arm.finish(self.arm.call("PUT", self.network, body, NETWORK))
        if end != "Succeeded":
            raise Failed(f"the making of the network ended with {end}")

    def found(self) -> list[str]:
        """The ids of all that this suite made in the group, locks first and networks last."""
        group = f"{self.place.path}/providers"
        resources = self.arm.list(f"{group}/Microsoft.Compute/virtualMachineScaleSets")
        if not self.emulated:
            resources += self.arm.list(f"{group}/Microsoft.Network/virtualNetworks", NETWORK)
        resources = [one for one in resources if is_ours(one)]
        self.runs |= {one["tags"][TAG] for one in resources}
        locks = [one for one in self.locks() if one["name"].startswith(PREFIX)]
        locks = [one for one in locks if one["properties"].get("notes") == NOTES]
        return [one["id"] for one in locks + resources]

    def locks(self) -> list[Json]:
        try:
            return self.arm.list(f"{self.place.path}/providers/Microsoft.Authorization/locks", LOCKS)
        except Refused as refused:
            # An identity that may not read locks has made none.
            if refused.code == "AuthorizationFailed":
                return []
            raise

    def remove(self) -> list[str]:
        """Removes all that this suite made here, and says what it cannot remove."""
        wrong: list[str] = []
        for _ in range(ROUNDS):
            wrong = [f"{path}: {end}" for path in self.found() if (end := self.remove_one(path)) != "Succeeded"]
            wrong = wrong or [f"{path}: still there" for path in self.remains()]
            if not wrong:
                break
            # A lock may be in force for a while after its end, and a list may show what is gone.
            self.arm.clock.wait(ROUND_PAUSE)
        return wrong

    def remove_one(self, path: str) -> str:
        try:
            return self.arm.finish(self.arm.call("DELETE", path, version=version_of(path), query=force(path)))
        except Refused as refused:
            return str(refused)

    def remains(self) -> list[str]:
        """What is there after the removal: also disks and network interfaces that a set left behind."""
        if self.emulated:
            return self.found()
        everything = self.arm.list(f"{self.place.path}/resources", RESOURCES)
        return [one["id"] for one in everything if one["name"].lower().startswith(tuple(self.runs))]


def is_ours(resource: Json) -> bool:
    """The tag says which run made it, and the name begins with that."""
    run = (resource.get("tags") or {}).get(TAG, "")
    return run.startswith(PREFIX) and resource["name"].startswith(run)


def version_of(path: str) -> str:
    if "/Microsoft.Authorization/" in path:
        return LOCKS
    return NETWORK if "/Microsoft.Network/" in path else COMPUTE


def force(path: str) -> dict[str, str]:
    return {"forceDeletion": "true"} if version_of(path) == COMPUTE else {}
