"""Kubelets and a cloud controller, played: there is a Node for each machine that runs, its pods start and end, and once
the machine is gone the Node falls silent and is deleted."""

import concurrent.futures
import heapq
import itertools
import threading
import time

from client import Refused

# Seconds: from the scheduler's word to a running pod, the longest end of a pod, and from a machine's end to its Node's.
STARTS, ENDS, FORGETS = 1.0, 2.0, 4.0
LOOK = 0.5
SET = "suite/set"
# The cluster gives up the pods of a node with this taint.
OUT = "node.kubernetes.io/out-of-service"
DONE = "suite/done"
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110"}
# What a Node must say, and what is not read here.
UNSAID = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
                        "kubeletVersion", "kubeProxyVersion"), "") | {"operatingSystem": "linux", "architecture": "amd64"}


def moment():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def condition(kind, status, reason):
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastHeartbeatTime": moment(),
            "lastTransitionTime": moment()}


def node_name(scale_set, instance):
    """As Azure names the computers of a Uniform set: its number to base 36, six digits of it."""
    digits, number = "", int(instance)
    while number or len(digits) < 6:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{scale_set}{digits}"


def provider_id(set_id, instance):
    """The cloud provider spells the resource group in lower case, and all else as Azure does."""
    parts = set_id.split("/")
    parts[4] = parts[4].lower()
    return f"azure://{'/'.join(parts)}/virtualMachines/{instance}"


def scale_set(key):
    return key[0].rsplit("/", 1)[1]


def conditions():
    """Of a kubelet that is well."""
    return [condition(kind, "False", "KubeletHasEnough") for kind in PRESSURES] + [condition("Ready", "True", "KubeletReady")]


def node_of(key):
    of, name = scale_set(key), node_name(scale_set(key), key[1])
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", SET: of}},
        "spec": {"providerID": provider_id(*key)},
        "status": {"capacity": ROOM, "allocatable": ROOM, "nodeInfo": UNSAID, "conditions": conditions()},
    }


def ready_since(node):
    """How its Ready condition stands, and since when."""
    [ready] = [one for one in node["status"]["conditions"] if one["type"] == "Ready"]
    return ready["status"], ready["lastTransitionTime"]


def is_ready(node):
    return ready_since(node)[0] == "True"


def is_out(node):
    return any(taint["key"] == OUT for taint in node["spec"].get("taints", []))


class Imagined:
    """Machines that are only told of: for what needs no Azure."""

    def __init__(self, set_id):
        self.set_id, self.there, self.next = set_id, [], 0

    def add(self, count):
        for _ in range(count):
            self.there.append(str(self.next))
            self.next += 1

    def remove(self, instance):
        self.there.remove(instance)

    def machines(self):
        return {(self.set_id, instance): True for instance in list(self.there)}


class Kubelets(threading.Thread):
    """`source.machines()` tells which machines there are, by set and instance, and whether each runs. A case may order
    otherwise: sets whose nodes the cloud controller leaves, machines whose kubelets are mute, and kubelets that speak
    although their machine is gone."""

    def __init__(self, client, source, pods):
        super().__init__(daemon=True, name="kubelets")
        self.client, self.source, self.pods = client, source, pods
        self.kept, self.mute, self.speaking, self.stops = set(), set(), set(), False
        # What another client tells of the next node of a set.
        self.annotations = {}
        # By machine: the name of its Node, and since when the machine does not run.
        self.nodes, self.silent, self.wrong = {}, {}, []
        self.timers, self.order, self.changed = [], itertools.count(), threading.Condition()
        self.waiting, self.hands = {}, concurrent.futures.ThreadPoolExecutor(4)
        threading.Thread(target=self.keep_time, daemon=True, name="kubelets' clock").start()

    def run(self):
        while not self.stops:
            try:
                self.look()
            except OSError:
                # The apiserver is away, or the emulator has ended.
                pass
            time.sleep(LOOK)

    def look(self):
        machines = self.source.machines()
        for key, runs in machines.items():
            if runs and key not in self.nodes:
                self.register(key)
        for key in list(self.nodes):
            if key in self.mute or not machines.get(key) and key not in self.speaking:
                self.fall_silent(key)
        now = time.monotonic()
        for key, since in list(self.silent.items()):
            if key not in machines and scale_set(key) not in self.kept and now - since > FORGETS:
                self.forget(key)

    def register(self, key):
        node = node_of(key)
        node["metadata"]["annotations"] = self.annotations.pop(scale_set(key), {})
        try:
            self.client.create("nodes", node)
        except Refused as refused:
            if refused.code != 409:
                raise
        self.nodes[key] = node["metadata"]["name"]

    def key_of(self, name):
        return next(key for key, node in self.nodes.items() if node == name)

    def silent_nodes(self):
        return {self.nodes[key] for key in list(self.silent) if key in self.nodes}

    def speak_again(self, name):
        """The kubelet was only away: its machine is gone, and yet it speaks."""
        key = self.key_of(name)
        self.speaking.add(key)
        self.change("nodes", name, {"status": {"conditions": conditions()}})
        del self.silent[key]

    def register_again(self, name):
        """Another object of the name."""
        key = self.key_of(name)
        self.speaking.add(key)
        self.client.delete("nodes", name)
        self.register(key)
        del self.silent[key]

    def fall_silent(self, key):
        """What the node lifecycle controller says of a kubelet that is silent for 40 s; here it says so at once."""
        if key in self.silent:
            return
        name = self.nodes[key]
        silent = [condition(kind, "Unknown", "NodeStatusUnknown") for kind in ("Ready", *PRESSURES)]
        self.change("nodes", name, {"status": {"conditions": silent}})
        for pod in self.pods.all():
            if pod["spec"].get("nodeName") == name:
                not_ready = condition("Ready", "False", "NodeNotReady")
                not_ready.pop("lastHeartbeatTime")
                self.change("pods", pod["metadata"]["name"], {"status": {"conditions": [not_ready]}},
                            pod["metadata"]["namespace"])
        self.silent[key] = time.monotonic()

    def change(self, kind, name, change, namespace=None):
        try:
            self.client.patch(kind, name, change, namespace, "status")
        except Refused as refused:
            if refused.code != 404:
                raise

    def forget(self, key):
        name = self.nodes[key]
        try:
            self.client.delete("nodes", name)
        except Refused as refused:
            if refused.code != 404:
                raise
        del self.nodes[key], self.silent[key]

    def live(self):
        return {name for key, name in self.nodes.items() if key not in self.silent}

    def heard_node(self, uid, before, now):
        if now and is_ready(now) and is_out(now) and not (before and is_out(before)):
            self.wrong.append(f"node {now['metadata']['name']} was put out of service while its kubelet spoke")
        if now is None and before and is_ready(before):
            self.wrong.append(f"node {before['metadata']['name']} was deleted while its kubelet spoke")

    def heard_pod(self, uid, before, now):
        if now is None or not now["spec"].get("nodeName"):
            return
        meta, phase = now["metadata"], now.get("status", {}).get("phase")
        if "deletionTimestamp" in meta:
            self.later(uid, "ends", min(meta.get("deletionGracePeriodSeconds", ENDS), ENDS))
        elif phase == "Pending":
            self.later(uid, "starts", STARTS)

    def later(self, uid, what, seconds):
        """Each of the two once."""
        with self.changed:
            if (uid, what) not in self.waiting:
                self.waiting[uid, what] = True
                heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.order), uid, what))
                self.changed.notify()

    def keep_time(self):
        while True:
            with self.changed:
                while not self.timers or self.timers[0][0] > time.monotonic():
                    self.changed.wait(self.timers[0][0] - time.monotonic() if self.timers else None)
                _, _, uid, what = heapq.heappop(self.timers)
            self.hands.submit(self.act, uid, what)

    def act(self, uid, what):
        try:
            pod = self.pods.objects.get(uid)
            if pod and pod["spec"]["nodeName"] in self.live():
                (self.end if what == "ends" else self.start_pod)(pod)
        except (OSError, Refused) as error:
            # 409: it was written at the same time, or it is another pod of this name.
            if not isinstance(error, Refused) or error.code != 404:
                del self.waiting[uid, what]
                self.later(uid, what, 1)
        except Exception as error:
            self.wrong.append(f"the played kubelet failed: {error!r}")

    def start_pod(self, pod):
        done = DONE in pod["metadata"].get("labels", {})
        ready = "False" if done else "True"
        conditions = [{"type": kind, "status": ready, "lastTransitionTime": moment()} for kind in ("Ready", "ContainersReady")]
        status = {"phase": "Succeeded" if done else "Running", "startTime": moment(), "conditions": conditions}
        self.client.patch("pods", pod["metadata"]["name"], {"status": status}, pod["metadata"]["namespace"], "status")

    def end(self, pod):
        meta = pod["metadata"]
        self.client.delete("pods", meta["name"], meta["namespace"], gracePeriodSeconds=0, preconditions={"uid": meta["uid"]})
