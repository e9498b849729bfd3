"""A daemon beside a large cluster: what memory it takes, and how often it asks for anything while nothing happens."""

import collections
import concurrent.futures
import itertools
import pathlib
import threading
import time

from client import MERGE, Refused
from control import Control, Failed, wait
from kubelets import PRESSURES, moment, node_of
from stage import Emulator, FIRST, Home, PATIENCE, pool_of, set_id
from witness import NODE_IN_LIST, Audit, code, is_eviction, subject

NAME = "size"
PODS_EACH = 30
# MiB more than a daemon without pools and clusters, and calls an hour beside the watch.
MEMORY, CALLS = 150, 100
# What a node and a pod are in use: some ten kilobytes, and four.
IMAGES = [{"names": [f"registry.example/team/image-{n}@sha256:{n:064}", f"registry.example/team/image-{n}:v1.{n}"],
           "sizeBytes": 10**8 + n} for n in range(50)]
SETTINGS = [{"name": f"SETTING_{n}", "value": f"the value of the setting {n} of this container, as long as most are"}
            for n in range(30)]
HANDS = 6
# Seconds between two reports of a kubelet that has no news.
REPORTS = 300
# Seconds in which no kubelet writes its node: whether the server says so by bookmarks or not, the nodes stay seen.
STILL = 160
# Seconds for which the daemon believes what it heard of the nodes last.
TRUSTED = 90
# Machines that go at the end, so that the daemon reads pods too.
DRAINED = 2


class Size:
    """`seconds`: how long nothing happens."""

    def __init__(self, program, components, scratch, nodes, seconds):
        self.program, self.nodes, self.seconds = program, nodes, seconds
        self.folder = pathlib.Path(scratch) / NAME
        self.folder.mkdir()
        self.emulator, self.control, self.homes = None, Control(components, self.folder / "control"), []
        self.ends, self.is_still = threading.Event(), threading.Event()

    def run(self, table):
        try:
            self.emulator = Emulator(self.program, self.folder, {NAME: self.nodes})
            self.control.start_store()
            idle = self.idle()
            began = time.monotonic()
            self.fill()
            table["size"] = f"{self.nodes} nodes and {self.nodes * PODS_EACH} pods, made in {time.monotonic() - began:.0f} s"
            self.judge(idle, table)
        finally:
            self.ends.set()
            for process in (*(home.daemon for home in self.homes), self.emulator):
                if process:
                    process.kill()
            self.control.end()

    def home(self, name):
        self.homes.append(Home(self.program, self.folder / name, self.control.kubeconfigs[NAME]))
        return self.homes[-1]

    def idle(self):
        """What a daemon takes that has nothing to do."""
        home = self.home("idle")
        home.start(self.emulator, cluster=False, lease="60s")
        time.sleep(5)
        memory = home.daemon.memory()[0]
        home.daemon.kill()
        return memory

    def fill(self):
        """Nobody acts on pods here: they are bound from the start, and end at once."""
        client, created = self.control.client(), concurrent.futures.ThreadPoolExecutor(HANDS)
        client.create("namespaces", {"metadata": {"name": NAME}})
        nodes = [node_of((set_id(NAME), vm["id"])) for vm in self.emulator.set(NAME)["instances"]]
        for node in nodes:
            node["status"]["images"] = IMAGES
        names = [node["metadata"]["name"] for node in nodes]
        # The apiserver taints a new node until a controller has seen that it is ready.
        untainted = {"spec": {"taints": None}}
        with created as hands:
            for make, what in ((lambda node: client.create("nodes", node), nodes),
                               (lambda name: client.patch("nodes", name, untainted, how=MERGE), names),
                               (lambda pod: client.create("pods", pod, NAME), pods_on(names))):
                # Whatever failed is raised here.
                collections.deque(hands.map(make, what), 0)
        threading.Thread(target=self.report, args=(names,), daemon=True, name="reports of kubelets").start()

    def report(self, names):
        """Nothing happens, and yet each kubelet writes its node from time to time."""
        client = self.control.client()
        for name in itertools.cycle(names):
            if self.ends.wait(REPORTS / len(names)):
                return
            if self.is_still.is_set():
                continue
            at = [{"type": kind, "lastHeartbeatTime": moment()} for kind in ("Ready", *PRESSURES)]
            try:
                client.patch("nodes", name, {"status": {"conditions": at}}, None, "status")
            except (OSError, Refused):
                # The next report says the same.
                pass

    def judge(self, idle, table):
        home = self.home("busy")
        home.write_pool(NAME, pool_of(NAME, self.nodes, FIRST, surge=0, unavailable=5, cluster="main"))
        home.start(self.emulator, lease="60s")
        served = lambda: home.daemon.metrics().get("poolkeeper_pool_available_machines", {}).get(f'{{pool="{NAME}"}}')
        wait("all machines serve", lambda: served() == self.nodes, 120, 1)
        time.sleep(5)
        calls = self.rest(self.seconds)
        self.is_still.set()
        heard = lambda: home.daemon.metrics()["poolkeeper_cluster_heard_timestamp_seconds"]['{cluster="main"}']
        listed = self.rest(STILL, lambda: time.time() - heard() <= TRUSTED)
        self.is_still.clear()
        table["size, no change"] = f"{listed} calls beside the watch in {STILL} s without a change, and the nodes are seen"
        rest = home.daemon.memory()[0] - idle
        audit = self.drain(home)
        most = home.daemon.memory()[1] - idle
        hourly = calls * 3600 / self.seconds
        table["size, memory"] = f"{rest:.0f} MiB above the {idle:.0f} of an idle daemon at rest, {most:.0f} at most"
        table["size, calls"] = f"{calls} beside the watch in {self.seconds} s at rest: {hourly:.0f} an hour"
        wrong = [f"the daemon takes {most:.0f} MiB more than an idle one"] if most >= MEMORY else []
        wrong += [f"it makes {hourly:.0f} calls an hour at rest"] if hourly >= CALLS else []
        wide = [one["requestURI"] for one in audit if one["verb"] == "list" and subject(one) == "pods"
                and not NODE_IN_LIST.search(one["requestURI"])]
        wrong += [f"it lists the pods of more than a node: {wide[0]}"] if wide else []
        wrong += [f"the daemon says {line}" for line in home.daemon.errors()[:3]]
        if wrong:
            raise Failed("; ".join(wrong))

    def rest(self, seconds, holds=lambda: True):
        """The calls beside the watch, while this holds all the time."""
        audit = Audit(self.control.audit_log)
        before, ends = len(audit.ours(NAME)), time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(min(5, max(0.0, ends - time.monotonic())))
            if not holds():
                raise Failed("the nodes are not seen any more, although their cluster is well")
        return sum(1 for one in audit.ours(NAME)[before:] if one["verb"] != "watch")

    def drain(self, home):
        """Some machines go, with all the pods of their nodes. Returns all calls of the daemon."""
        ids = [vm["id"] for vm in self.emulator.set(NAME)["instances"]][:DRAINED]
        for one in ids:
            home.ask("delete-machine", NAME, one, "--why", "the size of a drain")
        there = lambda: {vm["id"] for vm in self.emulator.set(NAME)["instances"]}
        wait("the machines go", lambda: not there() & set(ids), PATIENCE, 0.5)
        time.sleep(1)
        calls = Audit(self.control.audit_log).ours(NAME)
        granted = sum(1 for one in calls if is_eviction(one) and code(one) == 201)
        if granted != DRAINED * PODS_EACH:
            raise Failed(f"{granted} pods were evicted, and {DRAINED} nodes had {PODS_EACH} each")
        return calls


def pods_on(nodes):
    container = {"name": "main", "image": "none", "env": SETTINGS}
    for node in nodes:
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
        for n in range(PODS_EACH):
            yield {"metadata": {"name": f"{node}-{n}", "labels": {"app": "many"}}, "spec": spec}
