"""What a watch of pods and budgets shows, and what the apiserver's audit log says: nothing that a daemon tells."""

import collections
import datetime
import json
import re
import threading

from control import ACCOUNT
from kubelets import OUT, is_out, is_ready as is_well

MARK = "poolkeeper/drain"
EXCLUDE = "node.kubernetes.io/exclude-from-external-load-balancers"
WAITING = "poolkeeper/waiting"
# The taints of a daemon, with their effects.
TAINTS = {WAITING: "PreferNoSchedule", OUT: "NoExecute"}
# The annotation that the cluster-autoscaler reads, and ours beside it, with the pool.
SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SHIELD = "poolkeeper/scale-down-disabled"
# All that a change of a node by a daemon may name.
OURS = {"spec.unschedulable", f"metadata.labels.{EXCLUDE}", f"metadata.annotations.{MARK}"}
UNTOUCHED = {"metadata.resourceVersion", "metadata.uid"}
SHIELD_PATH, SCALE_DOWN_PATH = (f"metadata.annotations.{one}" for one in (SHIELD, SCALE_DOWN))
CHANGES = ("create", "patch", "update", "delete")


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def controller(pod):
    return next((one for one in pod["metadata"].get("ownerReferences", []) if one.get("controller")), None)


class Witness:
    """Lowest count of healthy pods of each budget, counted anew at each event, and how often pods moved."""

    def __init__(self):
        self.lock, self.pods, self.budgets, self.lowest = threading.Lock(), {}, {}, {}
        self.moves, self.gone, self.generation = collections.Counter(), collections.defaultdict(list), {}
        # Where a pod was, which pods ever had a name, and which names a budget counted when they began to end.
        self.node_of, self.uids, self.counted = {}, collections.defaultdict(set), set()
        self.watched = set()

    def begin(self, namespace):
        """From here on: all of its pods are ready."""
        with self.lock:
            self.watched.add(namespace)
            self.lowest = {key: low for key, low in self.lowest.items() if key[0] != namespace}
            for uid, pod in self.pods.items():
                if pod["metadata"]["namespace"] == namespace:
                    self.generation[uid] = 0
            self.moves[namespace] = 0
            self.count(namespace)

    def leave(self, namespace):
        """What comes breaks its budgets by itself."""
        with self.lock:
            self.watched.discard(namespace)

    def heard_pod(self, uid, before, now):
        with self.lock:
            self.follow(uid, before, now)
            if now is None:
                self.pods.pop(uid, None)
            else:
                self.pods[uid] = now
            self.count((now or before)["metadata"]["namespace"])

    def heard_budget(self, uid, before, now):
        with self.lock:
            if now is None:
                self.budgets.pop(uid, None)
            else:
                self.budgets[uid] = now
            self.count((now or before)["metadata"]["namespace"])

    def follow(self, uid, before, now):
        """The pod that comes next takes the place of the one of its controller that went first."""
        pod = now or before
        meta, owner = pod["metadata"], controller(pod)
        if now is not None:
            self.uids[meta["namespace"], meta["name"]].add(uid)
            if pod["spec"].get("nodeName"):
                self.node_of[uid] = pod["spec"]["nodeName"]
        went = now is None or "deletionTimestamp" in now["metadata"]
        had_gone = before is not None and "deletionTimestamp" in before["metadata"]
        if went and not had_gone and self.has_budget(pod):
            self.counted.add((meta["namespace"], meta["name"]))
        if owner is None or owner["kind"] == "DaemonSet":
            return
        if before is None:
            places = self.gone[owner["uid"]]
            self.generation[uid] = places.pop(0) if places else 0
        if went and not had_gone:
            self.gone[owner["uid"]].append(self.generation.get(uid, 0) + 1)
            self.moves[meta["namespace"]] += 1

    def count(self, namespace):
        if namespace not in self.watched:
            return
        for budget in self.budgets.values():
            meta, wanted = budget["metadata"], budget["spec"]["selector"]["matchLabels"].items()
            desired = budget.get("status", {}).get("desiredHealthy")
            if meta["namespace"] != namespace or desired is None:
                continue
            healthy = sum(1 for pod in self.pods.values() if pod["metadata"]["namespace"] == namespace and is_ready(pod)
                          and wanted <= pod["metadata"].get("labels", {}).items())
            key = namespace, meta["name"]
            lowest = self.lowest.get(key)
            if lowest is None or healthy - desired < lowest[0] - lowest[1]:
                self.lowest[key] = healthy, desired

    def broken(self, namespace):
        with self.lock:
            return [f"budget {key[0]}/{key[1]} had {healthy} healthy pods and needs {desired}"
                    for key, (healthy, desired) in self.lowest.items() if key[0] == namespace and healthy < desired]

    def left(self, namespace):
        with self.lock:
            return {key[1]: numbers for key, numbers in self.lowest.items() if key[0] == namespace}

    def moved(self, namespace, pods):
        """Moves for each pod, and of the pod that moved most."""
        with self.lock:
            most = max((self.generation.get(uid, 0) for uid, pod in self.pods.items()
                        if pod["metadata"]["namespace"] == namespace), default=0)
            return self.moves[namespace] / pods, most

    def has_budget(self, pod):
        meta = pod["metadata"]
        return any(budget["metadata"]["namespace"] == meta["namespace"] and
                   budget["spec"]["selector"]["matchLabels"].items() <= meta.get("labels", {}).items()
                   for budget in self.budgets.values())

    def covered(self, namespace, name):
        """A pod of this name is one of a budget, or was when it began to end."""
        with self.lock:
            pods = [one for one in self.pods.values() if one["metadata"]["namespace"] == namespace
                    and one["metadata"]["name"] == name]
            return (namespace, name) in self.counted or any(map(self.has_budget, pods))


def changed(patch):
    """What a patch names, with its new value; None: it is taken away."""
    if isinstance(patch, list):
        found = {}
        for one in patch:
            if one["op"] == "test":
                continue
            where = ".".join(part.replace("~1", "/").replace("~0", "~") for part in one["path"].strip("/").split("/"))
            found.update(flat(where, None if one["op"] == "remove" else one.get("value")))
        return found
    return flat("", patch)


def flat(where, value):
    if not isinstance(value, dict):
        return {where: value}
    found = {}
    for key, inner in value.items():
        found.update(flat(f"{where}.{key}" if where else key, inner))
    return found


class Audit:
    def __init__(self, log):
        self.log, self.at, self.all, self.rest = log, 0, [], b""

    def read(self):
        with open(self.log, "rb") as log:
            log.seek(self.at)
            data = log.read()
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        # A watch is there twice: when it begins and when it ends.
        new = [json.loads(line) for line in lines if line]
        self.all += [one for one in new if one["verb"] != "watch" or one["stage"] == "ResponseStarted"]
        return self.all

    def ours(self, name=""):
        """What all daemons asked for, or the one of that name."""
        return [one for one in self.read() if is_ours(one) and one["user"]["username"].endswith(name)]


def is_ours(one):
    return one["user"]["username"].startswith(ACCOUNT)


def subject(one):
    of = one.get("objectRef", {})
    return "/".join(part for part in (of.get("resource"), of.get("subresource")) if part) or one["requestURI"]


def puts_mark(one):
    """With it the drain of a node begins."""
    is_change = one["verb"] == "patch" and subject(one) == "nodes" and code(one) < 300
    return is_change and bool(changed(one.get("requestObject") or {}).get(f"metadata.annotations.{MARK}"))


def puts_taint(one, key):
    patch = one.get("requestObject")
    is_change = one["verb"] == "patch" and subject(one) == "nodes" and code(one) < 300 and isinstance(patch, list)
    return is_change and patch[-1]["op"] == "add" and key in json.dumps(patch[-1]["value"])


def code(one):
    return one.get("responseStatus", {}).get("code", 0)


def evicted_uid(one):
    """The pod that an eviction names."""
    asked = one.get("requestObject") or {}
    return ((asked.get("deleteOptions") or {}).get("preconditions") or {}).get("uid")


def is_eviction(one):
    return one["verb"] == "create" and subject(one) == "pods/eviction" and not is_dry(one)


def is_dry(one):
    """Asked without effect, by the address and by the body."""
    options = (one.get("requestObject") or {}).get("deleteOptions") or {}
    return "dryRun=All" in one["requestURI"] and options.get("dryRun") == ["All"]


def judge_pods(ours, witness):
    """Every eviction names the pod that is meant, none is asked again once it is granted, and no pod of a budget is ended
    past its budget."""
    wrong, granted = [], set()
    trials = [one for one in ours if subject(one) == "pods/eviction" and is_dry(one)]
    wrong += [f"a trial of {one['objectRef']['name']} names no uid" for one in trials if evicted_uid(one) is None]
    for one in ours:
        of = one.get("objectRef", {})
        where = f"{of.get('namespace')}/{of.get('name')}"
        if is_eviction(one):
            uid = evicted_uid(one)
            if uid in granted:
                wrong.append(f"{where} was evicted again")
            if code(one) == 201:
                granted.add(uid)
            if uid is None:
                wrong.append(f"the eviction of {where} names no uid")
            elif uid not in witness.uids[of["namespace"], of["name"]]:
                wrong.append(f"the eviction of {where} names the uid {uid}, which no pod of the name had")
        elif one["verb"] in ("delete", "deletecollection") and subject(one) == "pods":
            if of.get("name") is None or witness.covered(of["namespace"], of["name"]):
                wrong.append(f"{where} was deleted past its budget")
    return wrong


def judge_nodes(audit, there):
    """Each change of a node by a daemon puts its mark, its taint or its shield or takes it back, and what others
    cordoned or told the autoscaler stays so. `there`: the nodes at the end."""
    wrong, cordoned_by, marked, tainted, shields = [], {}, set(), set(), Shields()
    for one in audit:
        if subject(one) != "nodes" or one["verb"] not in CHANGES or code(one) >= 300:
            continue
        node, ours = one["objectRef"]["name"], is_ours(one)
        if one["verb"] == "delete":
            cordoned_by.pop(node, None)
            marked.discard(node)
            tainted -= {(node, key) for key in TAINTS}
            shields.forget(node)
            if ours and not names_object(one):
                wrong.append(f"node {node} was deleted whatever object it is by now")
            continue
        if ours and isinstance(one.get("requestObject"), list):
            wrong += judge_taint(node, one["requestObject"], tainted)
            continue
        names = changed(one.get("requestObject") or {})
        if ours and SHIELD_PATH in names:
            wrong += shields.judge(node, names)
            continue
        shields.write(node, names)
        cordons = names.get("spec.unschedulable", "not named")
        if ours:
            wrong += judge_change(node, names, node in marked, cordoned_by.get(node))
            (marked.discard if names.get(f"metadata.annotations.{MARK}") is None else marked.add)(node)
        if cordons in (None, False):
            cordoned_by.pop(node, None)
        elif cordons is True:
            cordoned_by.setdefault(node, "ours" if ours else "others")
    for node in there:
        wrong += judge_left(node, cordoned_by.get(node["metadata"]["name"])) + shields.judge_left(node)
    return wrong


def names_object(one):
    names = (one.get("requestObject") or {}).get("preconditions") or {}
    return names.get("uid") and names.get("resourceVersion")


def judge_change(node, names, was_marked, cordoned_by):
    wrong, mark = [], names.get(f"metadata.annotations.{MARK}", "not named")
    strange = sorted(set(names) - OURS - UNTOUCHED)
    if strange:
        wrong.append(f"a change of node {node} names {', '.join(strange)}")
    if mark == "not named":
        wrong.append(f"a change of node {node} neither puts the mark nor takes it back: {names}")
    if mark is None and not was_marked:
        wrong.append(f"a mark was taken from node {node} that was not on it")
    if names.get("spec.unschedulable", True) in (None, False) and cordoned_by == "others":
        wrong.append(f"the cordon of node {node} was lifted, and somebody else had put it")
    return wrong


def judge_taint(node, patch, tainted):
    """A taint of ours comes to the end of the list or leaves its own place in it, on the version of the node that was
    read."""
    version, *tests, change = patch
    adds = change["op"] == "add" and not tests
    added = {"/spec/taints": change.get("value"), "/spec/taints/-": [change.get("value")]}.get(change["path"])
    tested = {one["path"].removeprefix(f"{change['path']}/"): one["value"] for one in tests if one["op"] == "test"}
    taint = added[0] if adds and added and len(added) == 1 else tested
    key = taint.get("key")
    is_ours = key in TAINTS and taint.get("effect") == TAINTS[key]
    puts = adds and is_ours and (node, key) not in tainted
    back = change["op"] == "remove" and is_ours and (node, key) in tainted
    (tainted.discard if change["op"] == "remove" else tainted.add)((node, key))
    if version["op"] == "replace" and version["path"] == "/metadata/resourceVersion" and (puts or back):
        return []
    return [f"a change of node {node} neither puts the taint nor takes it back: {patch}"]


class Shields:
    """The autoscaler's annotation of each node, and ours beside it. What others wrote into it is theirs."""

    def __init__(self):
        # What others wrote last, by node; and the nodes that have ours, with whether the autoscaler's is ours too.
        self.theirs, self.ours = {}, {}

    def forget(self, node):
        self.theirs.pop(node, None)
        self.ours.pop(node, None)

    def write(self, node, names):
        """By another client."""
        if SCALE_DOWN_PATH in names:
            self.theirs[node] = names[SCALE_DOWN_PATH]
            if node in self.ours:
                self.ours[node] = False

    def judge(self, node, names):
        """It is put on a node where no client wrote the autoscaler's, and that is taken back with it, but where another
        client has written over it."""
        what = {path: value for path, value in names.items() if path not in UNTOUCHED}
        puts = names[SHIELD_PATH] is not None
        if puts:
            right = self.theirs.get(node) is None and node not in self.ours and what.get(SCALE_DOWN_PATH) == "true"
            self.ours[node] = True
        else:
            stands = self.ours.pop(node, None)
            right = stands is not None and what.get(SCALE_DOWN_PATH, "not named") == (None if stands else "not named")
        if right and set(what) <= {SHIELD_PATH, SCALE_DOWN_PATH} and names.get("metadata.resourceVersion"):
            return []
        return [f"a change of node {node} neither puts the shield nor takes it back as it stood: {names}"]

    def judge_left(self, node):
        meta = node["metadata"]
        annotations, theirs = meta.get("annotations", {}), self.theirs.get(meta["name"])
        if SHIELD in annotations:
            return [f"node {meta['name']} is still kept from the autoscaler"]
        if annotations.get(SCALE_DOWN) != theirs:
            return [f"others wrote {theirs} for the autoscaler on node {meta['name']}, and there is "
                    f"{annotations.get(SCALE_DOWN)}"]
        return []


def judge_left(node, cordoned_by):
    meta, wrong = node["metadata"], []
    cordoned = node["spec"].get("unschedulable", False)
    if MARK in meta.get("annotations", {}) or EXCLUDE in meta.get("labels", {}):
        wrong.append(f"node {meta['name']} still has a mark of a drain")
    if any(taint["key"] == WAITING for taint in node["spec"].get("taints", [])):
        wrong.append(f"node {meta['name']} still has the taint of those that wait")
    if is_out(node) and is_well(node):
        wrong.append(f"node {meta['name']} is well and still out of service")
    if cordoned and cordoned_by != "others":
        wrong.append(f"node {meta['name']} was left cordoned")
    if not cordoned and cordoned_by == "others":
        wrong.append(f"node {meta['name']} lost the cordon that somebody else had put")
    return wrong


NODE_IN_LIST = re.compile(r"spec\.nodeName(?:%3D|=)([a-z0-9.-]+)", re.IGNORECASE)


class Calls:
    """What a daemon asked of the cluster for its drains, in parts."""

    def __init__(self, ours):
        self.parts, self.drained, self.refused = collections.Counter(), set(), 0
        self.evicted = 0
        for one in ours:
            # A watch runs all the time, and a check-up asks what it may do.
            if one["verb"] == "watch" or subject(one) == "selfsubjectaccessreviews":
                continue
            taints = " (taint)" if isinstance(one.get("requestObject"), list) else ""
            self.parts[f"{one['verb']} {subject(one)}{taints}"] += 1
            if subject(one) == "pods/eviction" and is_dry(one):
                # Before each of them the pods and the budgets were read.
                self.refused += 3 * (code(one) in (429, 500))
            elif subject(one) == "pods/eviction":
                self.refused += code(one) in (429, 500)
                self.evicted += code(one) == 201
            if puts_mark(one):
                self.drained.add(one["objectRef"]["name"])
        self.waits = self.looks(ours)

    @staticmethod
    def looks(ours):
        """From the first to the last look at the pods of each node: one for each five seconds is waiting."""
        seen = collections.defaultdict(list)
        for one in ours:
            found = NODE_IN_LIST.search(one["requestURI"]) if subject(one) == "pods" else None
            if found:
                seen[found[1]].append(moment(one))
        return sum((max(times) - min(times)) / 5 for times in seen.values())

    def most(self, budgets_of):
        """Pods, budgets and six for each drain, one for each five seconds of waiting, and one for each refusal."""
        return self.evicted + sum(budgets_of(node) + 6 for node in self.drained) + self.waits + self.refused

    def all(self):
        return sum(self.parts.values())


def moment(one):
    return time_of(one["requestReceivedTimestamp"])


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
