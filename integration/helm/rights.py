"""What the daemon says when a right of its role is missing."""

import re
import time

from client import MERGE
from control import wait

# Seconds within which the daemon names a missing right: a drain that begins in one turn is looked at in the next. A list of
# nodes is believed for 90 s without its watch, and pods are evicted for a minute before they are deleted. A list that was
# refused is asked for again within 30 s, and its nodes have to be known before a drain can begin.
BOUND, PATCH_BOUND, WATCH_BOUND, DELETE_BOUND = 45, 90, 110, 90
PATCH = ("", "nodes", "patch")
# The order in which the drain of one machine needs them, after the watch of nodes.
ORDER = [("", "nodes", "list"), PATCH, ("", "pods", "list"), ("", "pods/eviction", "create"),
         ("", "pods", "delete"), ("storage.k8s.io", "volumeattachments", "list")]
WATCH = ("", "nodes", "watch")
# Only names budgets: drains go on without it, and a notice has it.
BUDGETS = ("policy", "poddisruptionbudgets", "list")
# Only tells of drains: they go on without it, and doctor has a note.
EVENTS = ("", "events", "create")
# For a node that outlasts its machine.
DELETE_NODES = ("", "nodes", "delete")


def shown(right):
    return f"{right[2]} {right[1]}"


class Role:
    """The role of a release, which is written anew at each step."""

    def __init__(self, client, name, account):
        self.client, self.name, self.account = client, name, account
        self.rules = client.get("clusterroles", name)["rules"]
        self.all = {(group, resource, verb) for rule in self.rules for group in rule["apiGroups"]
                    for resource in rule["resources"] for verb in rule["verbs"]}

    def lack(self, missing):
        has = sorted(self.all - set(missing))
        rules = [{"apiGroups": [group], "resources": [resource], "verbs": [verb]} for group, resource, verb in has]
        self.client.patch("clusterroles", self.name, {"rules": rules}, how=MERGE)
        for right in sorted(self.all):
            wait(f"the apiserver goes by the role: {shown(right)}", lambda: self.has(right) == (right in has), 20)

    def has(self, right):
        group, resource, verb = right
        resource, _, sub = resource.partition("/")
        namespace, name = self.account
        asked = {"user": f"system:serviceaccount:{namespace}:{name}", "groups": ["system:serviceaccounts"],
                 "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "subresource": sub}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        where = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return self.client.request("POST", where, review)["status"]["allowed"]


def said(pod, pool, nodes):
    """What a person reads who asks why the pool waits, also for the machine of each of its nodes."""
    words = [("explain", pool), ("get", pool, "status"), *(("explain", pool, node) for node in nodes)]
    return "".join(pod.execute("poolkeeper", *one)[1] for one in words)


def names(text, right):
    """The sentence that names it."""
    found = re.search(rf'\S+ is forbidden[^\n]* cannot {right[2]} resource "{re.escape(right[1])}"[^,\n]*', text)
    return found and found[0]


class Watched:
    """Waits for the daemon's word, and keeps what it was."""

    def __init__(self, table):
        self.table, self.named, self.missed = table, set(), {}

    def ask(self, right, listen, bound=BOUND):
        """Waits until the daemon names it. What it names later counts too, and is shown as that."""
        began = self.miss(right)
        while right not in self.named and time.monotonic() - began < bound:
            self.hear(listen())
            time.sleep(0.5)
        if right in self.named:
            return
        first = listen().split("\n")[0]
        self.table[f"without {shown(right)}"] = f"nothing for {bound} s; explain: {first}"

    def miss(self, right):
        """From now on the daemon lacks it. When that began."""
        return self.missed.setdefault(right, time.monotonic())

    def hear(self, text):
        for right, since in self.missed.items():
            sentence = names(text, right)
            if sentence and right not in self.named:
                self.named.add(right)
                self.table[f"without {shown(right)}"] = f"{time.monotonic() - since:.0f} s: {sentence}"

    def judge(self, wants):
        silent = sorted(wants - self.named)
        return [f"the daemon does not name a missing right: {shown(right)}" for right in silent]
