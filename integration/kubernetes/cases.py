"""What the daemon has to show. Each case has a set of machines of its own; those that take nothing from each other run
beside each other."""

import collections
import time

from annotations import SHIELDED
from control import Failed, wait
from stage import PATIENCE
from witness import Audit, puts_mark
from workloads import Workloads

# The machines of each case's set.
SETS = {"main": 12, "blocked": 3, "twice": 3, "blind": 3, "gone": 3, "unreachable": 4, "dying": 4, "away": 3,
        "undisrupted": 4, **dict.fromkeys(SHIELDED, 1), "scaled": 2, "own": 3, "killed": 6}
# Of the full form alone.
FULL_SETS = {"crowded": 6}
# Those whose daemon is killed or ended.
ALONE = ("own", "killed")
# Pods that a controller replaces elsewhere, of the workloads below.
MAIN_PODS = 12 + 10 + 3
# Four on each node.
CROWD = 4 * FULL_SETS["crowded"]


def many(work):
    """All kinds of workloads, and budgets of all kinds."""
    work.deployment("web", 12)
    work.budget("web", "web", minAvailable=10)
    work.deployment("api", 10)
    work.budget("api", "api", maxUnavailable="20%")
    work.stateful("db", 3)
    work.budget("db", "db", maxUnavailable=1)
    work.daemon_set("agent")
    work.bare("alone")
    work.finished("done")


def crowd(work):
    """No node has room for a pod more."""
    work.deployment("web", CROWD, cpu="2")
    work.budget("web", "web", maxUnavailable=4)


def prepare(stage):
    """Workloads run on all sets before any pool is managed, each on all nodes of its set."""
    client = stage.client
    # A node that has just joined takes no pods yet, and one that does would get all of them.
    takes_pods = lambda node: not node["spec"].get("taints")
    joined = lambda: all(sum(map(takes_pods, stage.nodes_of(name).values())) == count for name, count in stage.sets.items())
    wait("all machines are nodes that take pods", joined, 60)
    for name in stage.sets:
        stage.workloads[name] = Workloads(client, name)
    many(stage.workloads["main"])
    for name, app in (("blocked", "still"), ("twice", "both")):
        stage.workloads[name].deployment(app, 2)
    stage.workloads["blocked"].budget("allows-nothing", "still", minAvailable=2)
    stage.workloads["twice"].budget("first", "both", minAvailable=1)
    stage.workloads["own"].deployment("poolkeeper", 1)
    stage.workloads["own"].deployment("web", 3)
    stage.workloads["own"].budget("web", "web", minAvailable=2)
    stage.workloads["unreachable"].deployment("web", 8, grace=60)
    stage.workloads["unreachable"].budget("web", "web", minAvailable=7)
    stage.workloads["gone"].deployment("web", 3)
    stage.workloads["dying"].deployment("web", 8)
    stage.workloads["dying"].budget("web", "web", minAvailable=8)
    stage.workloads["undisrupted"].deployment("web", 8)
    stage.workloads["undisrupted"].budget("web", "web", minAvailable=6)
    stage.control.let_delete_pods("undisrupted")
    for name in SHIELDED:
        stage.workloads[name].deployment("web", 2)
        stage.workloads[name].budget("web", "web", minAvailable=2)
    stage.workloads["scaled"].deployment("web", 6)
    stage.workloads["scaled"].budget("web", "web", minAvailable=5)
    stage.workloads["away"].deployment("still", 2)
    stage.workloads["away"].budget("allows-nothing", "still", minAvailable=2)
    stage.workloads["blind"].deployment("web", 3)
    stage.workloads["blind"].budget("web", "web", minAvailable=3)
    stage.workloads["killed"].deployment("web", 6)
    stage.workloads["killed"].budget("web", "web", minAvailable=5)
    stage.workloads["killed"].stateful("db", 2)
    stage.workloads["killed"].budget("db", "db", maxUnavailable="50%")
    if "crowded" in stage.sets:
        crowd(stage.workloads["crowded"])
    for name in stage.sets:
        stage.begin_witness(name)
    # Of two budgets of a pod the disruption controller counts one anew when the pod changes: this one is born with its
    # count.
    stage.workloads["twice"].budget("second", "both", minAvailable=1)


def rolls(stage, table):
    """Twelve nodes get a new image. Somebody else cordons one that goes, and one that has come."""
    name, began = "main", time.monotonic()
    old = stage.nodes_of(name)
    stage.cordon(sorted(old)[-1])
    stage.write_pool(name, "2.0.0", surge=6)
    come = wait("a new node comes", lambda: sorted(set(stage.nodes_of(name)) - set(old)), PATIENCE)[0]
    stage.cordon(come)
    stage.wait_rolled(name)
    stage.no_marks(name)
    now = stage.nodes_of(name)
    if set(old) & set(now):
        raise Failed(f"nodes of machines that went are still there: {sorted(set(old) & set(now))}")
    if not now[come]["spec"].get("unschedulable"):
        raise Failed(f"node {come} lost the cordon that somebody else had put")
    began_at = {node: [one["reason"] for one in stage.events_of(node)].count("DrainBegan") for node in old}
    if set(began_at.values()) != {1}:
        raise Failed(f"each drained node is to have one event of the begin of its drain: {began_at}")
    others = collections.Counter(one["reason"] for node in [*old, *now] for one in stage.events_of(node))
    table["events"] = ", ".join(f"{count} {reason}" for reason, count in others.most_common())
    mean, most = stage.witness.moved(name, MAIN_PODS)
    table["moves"] = f"{mean:.2f} of a pod on average, {most} at most, in {time.monotonic() - began:.0f} s"


def blocked(stage, table):
    """A budget that allows nothing: no drain of a node with its pods begins, and it is said why. Once the budget allows
    something, they go."""
    name, began = "blocked", time.monotonic()
    stage.write_pool(name, "2.0.0", surge=3)
    table["blocked says"] = stage.wait_told(name, [r"refused drain.*blocked/still-\w+-\w+", "allows-nothing", r"\b2\b"])
    held = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in stage.pods_of(name, "still")}
    time.sleep(10)
    now = {pod["metadata"]["uid"] for pod in stage.pods_of(name, "still")}
    lost = [node for uid, node in held.items() if uid not in now or node not in stage.nodes_of(name)]
    touched = {one["objectRef"]["name"] for one in Audit(stage.control.audit_log).ours("main") if puts_mark(one)}
    if lost or touched & set(held.values()):
        raise Failed(f"{lost} or a pod of it went, or {touched} was cordoned, although a budget allowed no eviction")
    stage.workloads[name].change_budget("allows-nothing", minAvailable=1)
    stage.retry(name)
    stage.wait_rolled(name)
    stage.no_marks(name)
    table["blocked"] = f"ended {time.monotonic() - began:.0f} s after its begin"


def twice(stage, table):
    """Two budgets of one pod: the cluster refuses every eviction of it."""
    name = "twice"
    stage.write_pool(name, "2.0.0", surge=3)
    table["two budgets say"] = stage.wait_told(name, [r"twice/both-\w+-\w+", "budgets first and second count it"])
    stage.workloads[name].drop_budget("second")
    stage.retry(name)
    stage.wait_rolled(name)
    stage.no_marks(name)


def blind(stage, table):
    """A pool that does not name the cluster of its nodes stands still and says so. Drains that skip all its pods must
    break a budget, else the witness sees nothing."""
    name = "blind"
    machines = {vm["id"] for vm in stage.emulator.set(name)["instances"]}
    stage.write_pool(name, "2.0.0", clustered=False, surge=3)
    table["without `cluster`"] = stage.wait_told(name, ["nodes of the cluster main", "write `cluster: main`"])
    [pool] = [one for one in stage.doctor()[1]["pools"] if one["pool"] == name]
    said = [one["message"] for one in pool["checks"] if one["check"] == "nodes" and one["outcome"] == "finding"]
    if not any("write `cluster: main`" in message for message in said):
        raise Failed(f"doctor says of a pool without `cluster`: {pool}")
    time.sleep(10)
    if machines - {vm["id"] for vm in stage.emulator.set(name)["instances"]}:
        raise Failed("machines that are nodes went without a drain")
    stage.write_pool(name, "2.0.0", surge=3, drain={"rules": [{"match": {"namespace": name}, "do": "skip"}]})
    stage.wait_rolled(name)
    broken = stage.witness.broken(name)
    if not broken:
        raise Failed("no budget broke without drains: this proves nothing")
    table["without drains"] = broken[0]


def doctor(stage, table):
    """It names the one right that the role lacks and the budget that allows nothing, and knows each pool's nodes."""
    code, said = stage.doctor()
    [cluster] = said["clusters"]
    findings = [one["message"] for one in cluster["checks"] if one["outcome"] == "finding"]
    if code != 7 or len(findings) != 1 or not findings[0].startswith("delete pods is not held"):
        raise Failed(f"doctor ends with {code} and finds {findings}: {cluster}")
    notes = [one["message"] for one in cluster["checks"] if one["outcome"] == "note" and one["check"] == "budgets"]
    if not any("blind/web (3 healthy of 3)" in note for note in notes) or any("main/" in note for note in notes):
        raise Failed(f"doctor says of the budgets {notes}: {cluster}")
    # What the file of blind says depends on whether its case ran, and how many nodes away has.
    for pool in (one for one in said["pools"] if one["pool"] not in ("blind", "away")):
        name = pool["pool"]
        nodes = [(one["outcome"], one["message"].split(" ")[0]) for one in pool["checks"] if one["check"] == "nodes"]
        known = [("ok", str(stage.sets[name]))]
        if nodes != known:
            raise Failed(f"doctor says of the nodes of {name} {nodes}, and {known} is right")
    table["doctor finds"] = findings[0]


def drains(stage, table):
    """A drain begins that waits."""
    waits = {"rules": [{"match": {"labels": {"app": "still"}}, "do": "wait"}]}
    stage.write_pool("away", "2.0.0", surge=3, drain=waits)
    stage.wait_told("away", [r"away/still-\w+-\w+"])
    holds = {pod["spec"].get("nodeName") for pod in stage.pods_of("away", "still")}
    wait("a drain of away waits", lambda: holds & set(stage.marked("away")), PATIENCE)


def apiserver(stage, table):
    """The apiserver is killed while a drain waits. Nothing goes meanwhile, and the drain ends after its return."""
    name = "away"
    work = stage.workloads[name]
    stage.control.kill_apiserver()
    # A machine whose drain ended before may be on its way: the rule holds the others.
    held = {pod["spec"].get("nodeName") for pod in stage.pods_of(name, "still")}
    held = {one["spec"]["providerID"].rsplit("/", 1)[-1] for node, one in stage.nodes_of(name).items() if node in held}
    time.sleep(15)
    gone = held - {vm["id"] for vm in stage.emulator.set(name)["instances"]}
    if gone or not held:
        raise Failed(f"of the machines {sorted(held)} whose pods are waited for went while the cluster was away: {sorted(gone)}")
    stage.homes["main"].daemon.must_run()
    began = time.monotonic()
    stage.control.start_apiserver()
    work.change_budget("allows-nothing", minAvailable=1)
    stage.write_pool(name, "2.0.0", surge=3)
    stage.retry(name)
    stage.wait_rolled(name)
    stage.no_marks(name)
    table["apiserver killed"] = f"the rollout ended {time.monotonic() - began:.0f} s after its return"
