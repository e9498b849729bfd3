"""Two daemons as the pods of their releases: of one each right is missing in turn that the drain of a machine needs, and
the other may not watch."""

import json
import subprocess
import threading
import traceback

import rights
from chart import CHART
from control import Failed, free_ports, wait
from pod import Pod
from suite import UNWATCHED, MAIN, RELEASE

import house

# Where the pods are that are evicted.
WORK = "work"
# The code of a command that was answered, and there was nothing to do.
NOTHING_TO_DO = 11


class Unwatched(threading.Thread):
    """A second release beside the first, whose API has a certificate and tokens. It may not watch nodes: it takes long
    until its daemon can miss that."""

    def __init__(self, suite):
        super().__init__(daemon=True, name=UNWATCHED)
        self.suite, self.watched, self.wrong = suite, rights.Watched(suite.table), []
        self.port, = free_ports(1)

    def secrets(self):
        suite, control = self.suite, self.suite.control
        (control.home / "api.ext").write_text("subjectAltName=DNS:localhost\n")
        control.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        "api.key", "-out", "api.csr", "-subj", "/CN=localhost")
        control.openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                        "api.crt", "-days", 30, "-extfile", "api.ext")
        command = [suite.program, "create-token", "ann", "viewer", "--output", "json"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=30, env=house.ENV, check=True)
        made, read = json.loads(made.stdout), lambda name: (control.home / name).read_text()
        suite.secret(UNWATCHED, "tls", {"tls.crt": read("api.crt"), "tls.key": read("api.key")})
        suite.secret(UNWATCHED, "tokens", {"tokens": made["line"] + "\n", "viewer": made["token"] + "\n",
                                       "ca.crt": read("ca.crt")})

    def begin(self):
        suite = self.suite
        self.secrets()
        env = {
            # Another port than the first, and only here: the environment outranks the file.
            "POOLKEEPER_API_LISTEN": f"127.0.0.1:{self.port}", "POOLKEEPER_SERVER": f"https://localhost:{self.port}",
            "POOLKEEPER_CA_FILE": "/etc/poolkeeper/tokens/ca.crt",
            "POOLKEEPER_TOKEN_FILE": "/etc/poolkeeper/tokens/viewer",
        }
        values = suite.values(UNWATCHED, 1, api={"tlsSecret": "tls", "tokensSecret": "tokens"},
                              env=[{"name": name, "value": value} for name, value in env.items()])
        suite.release("install", UNWATCHED, CHART, "--values", values)
        rights.Role(suite.client, f"{UNWATCHED}-{RELEASE}", (UNWATCHED, RELEASE)).lack([rights.WATCH])
        node, = suite.stage.nodes_of(UNWATCHED)
        self.pod = Pod(suite.stage, UNWATCHED, suite.deployment(UNWATCHED), suite.home / UNWATCHED, node)
        suite.pods.append(self.pod)
        self.pod.start()
        for name in ("startup", "liveness", "readiness"):
            self.pod.wait_probe(name, 30, self.port)
        self.start()

    def run(self):
        try:
            self.watched.ask(rights.WATCH, lambda: rights.said(self.pod, UNWATCHED, []), rights.WATCH_BOUND)
        except Exception:
            self.wrong.append(traceback.format_exc())

    def judge(self):
        self.join(rights.WATCH_BOUND)
        return self.wrong + self.watched.judge({rights.WATCH})


def occupy(suite):
    """A pod on each node of the pool, none of which its budget allows to be evicted."""
    client, nodes = suite.client, sorted(suite.stage.nodes_of(MAIN))
    client.create("namespaces", {"metadata": {"name": WORK}})
    for node in nodes:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        client.create("pods", {"metadata": {"name": f"on-{node}", "labels": {"app": "still"}}, "spec": spec}, WORK)
    client.create("poddisruptionbudgets", {"metadata": {"name": "still"}, "spec": {
        "minAvailable": len(nodes), "selector": {"matchLabels": {"app": "still"}}}}, WORK)
    healthy = lambda: client.get("poddisruptionbudgets", "still", WORK).get("status", {}).get("currentHealthy")
    wait("the budget counts its pods", lambda: healthy() == len(nodes), 60)
    return nodes


def told(suite, nodes):
    """What the daemon could not tell of these."""
    return [one for one in suite.client.list("events", "default")["items"] if one["source"].get("component") == "poolkeeper"
            and one["involvedObject"]["name"] in nodes]


def what_doctor_says(pod, table):
    """What doctor says of the rights that are missing and hold up no drain."""
    files = ["--pool-file", f"/etc/poolkeeper/pools/{MAIN}.yaml", "--settings", "/etc/poolkeeper/settings/poolkeeper.yaml"]
    _, said = pod.execute("poolkeeper", "doctor", *files, "--output", "json")
    cluster, = json.JSONDecoder().raw_decode(said[said.index("{"):])[0]["clusters"]
    found = [(one["outcome"], one["message"]) for one in cluster["checks"] if one["check"] == "permissions"]
    notes = [message for outcome, message in found if outcome == "note" and message.startswith("create events is not held")]
    table[f"without {rights.shown(rights.EVENTS)}"] = f"doctor: {notes[0]}" if notes else "nothing"
    lacks = [message for outcome, message in found if outcome not in ("ok", "note")]
    is_it = len(lacks) == 1 and lacks[0].startswith("delete nodes is not held")
    return [] if notes and is_it else [f"without the rights to tell events and to delete nodes doctor says {found}"]


def look(pod, nodes):
    """What the daemon says after a turn: a pool at rest has one every five minutes, and one for each request."""
    retry(pod, "the suite looks", (0, NOTHING_TO_DO))
    return rights.said(pod, MAIN, nodes)


def retry(pod, why, codes):
    code, answer = pod.execute("poolkeeper", "retry", MAIN, "--why", why)
    if code not in codes:
        raise Failed(f"retry ends with {code}: {answer}")


def drain(suite):
    """One machine of two goes; the one on which the daemon runs is the last to be tried. Each right that this needs is
    missing until the daemon has said so, or should have."""
    stage, watched, nodes = suite.stage, rights.Watched(suite.table), occupy(suite)
    suite.release("install", MAIN, CHART, "--values", suite.values(MAIN, 2))
    pod = Pod(stage, MAIN, suite.deployment(MAIN), suite.home / MAIN, nodes[0])
    suite.pods.append(pod)
    # The pod learns of it later: from here on the role is written by hand.
    suite.release("upgrade", MAIN, CHART, "--values", suite.values(MAIN, 1))
    role = rights.Role(suite.client, f"{MAIN}-{RELEASE}", (MAIN, RELEASE))
    unknown = role.all ^ {*rights.ORDER, rights.WATCH, rights.BUDGETS, rights.DELETE_NODES, rights.EVENTS}
    if unknown:
        return [f"there is no case for the right {rights.shown(right)}" for right in sorted(unknown)]
    # No cloud controller deletes the node of the machine that goes.
    stage.kubelets.kept.add(MAIN)
    for at, right in enumerate(rights.ORDER):
        # The first drain that is tried is without the right to know budgets.
        budgets = [rights.BUDGETS] if at <= 1 else []
        role.lack([*rights.ORDER[at:], *budgets, rights.EVENTS, rights.DELETE_NODES])
        if at == 0:
            pod.start()
            for name in ("startup", "liveness"):
                pod.wait_probe(name, 30)
        elif at == 1:
            # No machine is to go before its node is known, and the new list is news to the pool at rest.
            pod.sync()
            watched.miss(rights.BUDGETS)
        elif rights.ORDER[at - 1] == rights.PATCH:
            # A machine whose node may not be changed is set aside for half an hour.
            retry(pod, "the right to patch nodes was added", (0,))
        bound = {"patch": rights.PATCH_BOUND, "delete": rights.DELETE_BOUND}.get(right[2], rights.BOUND)
        for one in [right, *([rights.BUDGETS] if at == 1 else [])]:
            watched.ask(one, lambda: rights.said(pod, MAIN, nodes), bound)
    role.lack([rights.EVENTS, rights.DELETE_NODES])
    wrong = what_doctor_says(pod, suite.table)
    gone = lambda: len(stage.emulator.set(MAIN)["instances"]) == 1
    wait("the machine goes once no right is missing that a drain needs", gone, 90, 0.5)
    left = [one["metadata"]["name"] for one in suite.client.list("pods", WORK)["items"]]
    suite.table["drained"] = f"one machine of two; {', '.join(left)} is left"
    watched.ask(rights.DELETE_NODES, lambda: look(pod, nodes), rights.DELETE_BOUND)
    wrong += [f"it told the event {one['reason']}" for one in told(suite, nodes)]
    wrong += watched.judge({*rights.ORDER, rights.BUDGETS, rights.DELETE_NODES})
    wrong += [] if len(left) == 1 else [f"after one drain there are the pods {left}"]
    decided = (json.loads(line) for line in pod.log.read_text().splitlines() if '"verb":"drain"' in line)
    first = next(one["machine"] for one in decided if one["message"].startswith("decided"))
    return wrong + (["the machine of the daemon was to go first"] if nodes[0].endswith(first.zfill(6)) else [])
