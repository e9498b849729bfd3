"""One control plane, one emulator, daemons, and who watches them."""

import json
import pathlib
import re
import subprocess
import threading

from client import Follower, MERGE
from control import Control, Failed, Process, wait
from kubelets import Imagined, Kubelets
from witness import Audit, MARK, Witness

import house

MACHINES = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute"
# A machine boots in seconds.
QUICKER = 30
FIRST = "1.0.0"
# Whatever happens takes at most this long.
PATIENCE = 420


def image(version):
    return f"{MACHINES}/galleries/house/images/nodes/versions/{version}"


def set_id(name):
    return f"{MACHINES}/virtualMachineScaleSets/{name}"


class Emulator(house.Emulator):
    """Sets by name, each of so many machines."""

    def __init__(self, program, home, sets):
        self.home = home
        seed = {
            "scaleSets": [{"name": name, "capacity": count, "image": image(FIRST)} for name, count in sets.items()],
            "settings": {"record": True, "quicker": QUICKER, "throttling": False},
        }
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--seed-file", "-"]
        Process.__init__(self, command, home / "emulator.out", home / "emulator.log", json.dumps(seed).encode())
        told = json.loads(wait("the emulator starts", self.told, 60))
        self.url, self.tenant = told["url"], told["tenant"]

    def sets(self):
        return json.loads(house.get(f"{self.url}/_control/state"))["scaleSets"]

    def machines(self):
        return {(one["id"], vm["id"]): vm["power"] == "running" and vm["provisioning"] == "Succeeded"
                for one in self.sets() for vm in one["instances"]}

    def set(self, name):
        return next(one for one in self.sets() if one["id"].endswith(f"/{name}"))

    def happen(self, name, instance, deed):
        order = {"set": name, "instance": instance, "deed": deed}
        house.get(f"{self.url}/_control/deeds", json.dumps(order).encode())


class Home:
    """The folder of a daemon: its pools, its store, and how it comes to the cluster as its own account."""

    def __init__(self, program, folder, kubeconfig):
        self.program, self.folder, self.kubeconfig, self.daemon = program, folder, kubeconfig, None
        (folder / "pools").mkdir(parents=True)

    def start(self, emulator, *more, cluster=True, lease="5s"):
        """With a short lease the next daemon leads soon after the last was killed."""
        named = ["--set", f"clusters.main.kubeconfig={self.kubeconfig}"] if cluster else []
        self.daemon = house.Daemon(self.program, self.folder, emulator, *named, "--set", f"lease.ttl={lease}", "--set", "reload=1s",
                                   *more)
        self.daemon.open()

    def write_pool(self, name, pool):
        """The daemon reads it within a second."""
        aside = self.folder / f"aside-{name}"
        aside.write_text(json.dumps(pool))
        aside.rename(self.folder / "pools" / f"{name}.yaml")

    def ask(self, *words):
        command = [self.program, *words, "--server", self.daemon.url]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, env=house.ENV, stdin=subprocess.DEVNULL)
        return said.stdout + said.stderr


def pool_of(name, count, version, surge=2, unavailable=0, **sections):
    return {
        "apiVersion": "poolkeeper/v1", "kind": "Pool", "name": name, "scaleSet": set_id(name), "adopt": "roll",
        "replicas": {"owner": "pool", "count": count}, "model": {"image": image(version)},
        "rollout": {"maxSurge": surge, "maxUnavailable": unavailable, "minReady": "1s", "ramp": "off", "coalesce": "1s"},
        **sections,
    }


class Stage:
    """`alone`: the sets that have a daemon of their own, which their case starts."""

    def __init__(self, program, components, scratch, sets, alone=()):
        self.program, self.home, self.sets = program, pathlib.Path(scratch), sets
        self.broken, self.versions, self.workloads = [], dict.fromkeys(sets, FIRST), {}
        self.imagined, self.packed = Imagined(set_id("imagined")), Imagined(set_id("packed"))
        self.control = Control(components, self.home / "control")
        self.homes = {name: Home(program, self.home / name, self.control.kubeconfigs[name]) for name in ("main", *alone)}
        self.emulator = None

    def start(self):
        threading.excepthook = lambda failed: self.broken.append(f"{failed.thread.name}: {failed.exc_value!r}")
        self.emulator = Emulator(self.program, self.home, self.sets)
        self.control.start()
        self.client, self.witness = self.control.client(), Witness()
        self.audit = Audit(self.control.audit_log)
        self.pods, self.nodes = Follower(self.client, "pods"), Follower(self.client, "nodes")
        self.kubelets = Kubelets(self.client, self, self.pods)
        self.pods.heard = (self.witness.heard_pod, self.kubelets.heard_pod)
        self.nodes.heard = (self.kubelets.heard_node,)
        self.budgets = Follower(self.client, "poddisruptionbudgets", self.witness.heard_budget)
        for thread in (self.pods, self.nodes, self.budgets):
            thread.start()
        for thread in (self.pods, self.nodes, self.budgets):
            thread.complete.wait(60)
        self.kubelets.start()

    def machines(self):
        return self.emulator.machines() | self.imagined.machines() | self.packed.machines()

    def nodes_of(self, name):
        return {node["metadata"]["name"]: node for node in self.nodes.all() if node["metadata"]["labels"].get("suite/set") == name}

    def pods_of(self, namespace, app):
        return [pod for pod in self.pods.all() if pod["metadata"]["namespace"] == namespace
                and pod["metadata"].get("labels", {}).get("app") == app]

    def wait_none(self, what, left, seconds):
        try:
            wait(what, lambda: not left(), seconds, 0.5)
        except Failed as failed:
            raise Failed(f"{failed}: {'; '.join(left())}") from None

    def begin_witness(self, name):
        work = self.workloads[name]
        self.wait_none(f"the workloads of {name} run", work.unsettled, 120)
        self.witness.begin(name)

    def home_of(self, name):
        return self.homes.get(name, self.homes["main"])

    def write_pool(self, name, version, clustered=True, **more):
        self.versions[name] = version
        cluster = {"cluster": "main"} if clustered else {}
        self.home_of(name).write_pool(name, pool_of(name, self.sets[name], version, **cluster, **more))

    def retry(self, name):
        """What did not begin is tried at once."""
        self.home_of(name).ask("retry", name, "--why", "its owners let it go")

    def start_daemon(self, name="main", *more):
        self.home_of(name).start(self.emulator, *more)

    def explain(self, name):
        """What a person reads who asks why a pool waits, and then for each of its nodes that a drain holds."""
        asked = [(), *((node,) for node in self.marked(name))]
        return "".join(self.home_of(name).ask("explain", name, *node) for node in asked)

    def wait_told(self, name, words, seconds=120):
        """`explain` names all of it. The first line that does."""
        said = ""

        def told():
            nonlocal said
            said = self.explain(name)
            return all(re.search(word, said) for word in words)

        try:
            wait(f"{name} says what it waits for", told, seconds, 1)
        except Failed as failed:
            raise Failed(f"{failed}, {words}; it says: {said}") from None
        return next((line.strip() for line in said.splitlines() if re.search(words[0], line)), said.splitlines()[0])

    def doctor(self):
        """Its exit code and its document, of all pools, with the daemon's own way to the cluster."""
        settings = self.home / "doctor.yaml"
        home = self.homes["main"]
        settings.write_text(json.dumps({"clusters": {"main": {"kubeconfig": str(home.kubeconfig)}}}))
        files = [word for file in sorted((home.folder / "pools").glob("*.yaml")) for word in ("--pool-file", file)]
        command = [
            self.program, "doctor", *files, "--settings", settings, "--output", "json", "--arm", self.emulator.url,
            "--authority", self.emulator.url, "--auth", "client-secret", "--tenant", self.emulator.tenant,
            "--client-id", "scale",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=house.ENV, stdin=subprocess.DEVNULL)
        if not done.stdout:
            raise Failed(f"doctor says nothing and ends with {done.returncode}: {done.stderr}")
        return done.returncode, json.loads(done.stdout)

    def cordon(self, node):
        self.client.patch("nodes", node, {"spec": {"unschedulable": True}}, how=MERGE)

    def marked(self, name):
        return [node for node, one in self.nodes_of(name).items() if MARK in one["metadata"].get("annotations", {})]

    def is_rolled(self, name):
        """Its machines are as many as they should be and on the image, and the cluster has a node for each of them."""
        self.home_of(name).daemon.must_run()
        one, count = self.emulator.set(name), self.sets[name]
        new = all(vm["image"].rstrip('"}').endswith(f"/{self.versions[name]}") for vm in one["instances"])
        return new and len(one["instances"]) == one["ready"] == len(self.nodes_of(name)) == count

    def wait_rolled(self, name, seconds=PATIENCE):
        try:
            wait(f"{name} is on {self.versions[name]}", lambda: self.is_rolled(name), seconds, 0.5)
            self.wait_none(f"the workloads of {name} run", self.workloads[name].not_whole, 120)
        except Failed as failed:
            raise Failed(f"{failed}\n{self.explain(name)}") from None

    def events_of(self, node):
        """What Poolkeeper told of it, of whatever machine that was."""
        about = f"involvedObject.kind=Node,involvedObject.name={node},source=poolkeeper"
        return self.client.list("events", "default", fieldSelector=about)["items"]

    def no_marks(self, name):
        """A mark is taken back soon after the last machine went."""
        wait(f"no node of {name} has a mark", lambda: not self.marked(name), 60, 0.5)

    def keep_state(self):
        if self.emulator:
            for what in ("state", "record"):
                (self.home / f"{what}.json").write_text(house.get(f"{self.emulator.url}/_control/{what}"))

    def end(self):
        if hasattr(self, "kubelets"):
            self.kubelets.stops = True
        for process in (*(home.daemon for home in self.homes.values()), self.emulator):
            if process:
                process.kill()
        self.control.end()
