"""Nodes whose kubelets say nothing: those of machines that are gone, and those of machines that must be replaced."""

import collections
import itertools
import re
import time

from control import Failed, wait
from kubelets import OUT, ready_since
from stage import PATIENCE
from witness import Audit, code, evicted_uid, is_eviction, moment, puts_taint, subject, time_of

# Seconds that the node of a machine which is gone may stay. After a minute of them it is out of service.
STAYS = 75
# A failed machine waits so long for pods that a budget holds.
FAILED_AFTER = "20s"
# Longer than listings must show that a machine is off before its node is out of service.
STOPPED_AFTER = "150s"


def gone(stage, table):
    """The cloud controller deletes no node of three machines that went. The daemon deletes the one whose kubelet stays
    silent, and the one whose kubelet speaks again once it is silent too. Before that it puts both out of service.
    Another object that has the name of one may be the node of another machine: it is the cloud controller's to delete."""
    name, kubelets = "gone", stage.kubelets
    kubelets.kept.add(name)
    uids = {node: one["metadata"]["uid"] for node, one in stage.nodes_of(name).items()}
    silent, back, anew = sorted(uids)
    stage.write_pool(name, "2.0.0", surge=3, drain=deletes())
    wait("the machines of gone go", lambda: kubelets.silent_nodes() >= set(uids), PATIENCE)
    kubelets.speak_again(back)
    kubelets.register_again(anew)
    look_until(stage, lambda: silent not in stage.nodes_of(name), f"node {silent} is deleted")
    # The others have been gone for as long.
    enough = time.monotonic() + 10
    look_until(stage, lambda: time.monotonic() > enough, "time passes")
    there = stage.nodes_of(name)
    if back not in there or anew not in there or uids[anew] == there[anew]["metadata"]["uid"]:
        raise Failed(f"of {back}, whose kubelet speaks again, and {anew}, which registered again, there is {sorted(there)}")
    kubelets.speaking.clear()
    wait("they are silent again", lambda: kubelets.silent_nodes() >= {back, anew}, 60)
    since = {back: ready_since(stage.client.get("nodes", back))[1]}
    look_until(stage, lambda: back not in stage.nodes_of(name), f"node {back} is deleted")
    enough = time.monotonic() + 10
    look_until(stage, lambda: time.monotonic() > enough, "time passes")
    if anew not in stage.nodes_of(name):
        raise Failed(f"node {anew}, which registered after its machine was deleted, is gone")
    del uids[anew]
    judge_deletions(stage, uids, since)
    judge_outs(stage, set(uids), anew)
    kubelets.kept.discard(name)
    stage.wait_rolled(name)
    stage.no_marks(name)
    table["gone"] = f"2 nodes out of service and deleted, one of them {STAYS} s after its kubelet was silent again; one left alone"


def deletes():
    return {"nodeDeletion": f"{STAYS}s"}


def look_until(stage, until, what):
    """A pool at rest is looked at every five minutes; at once, when its file changes."""
    surges, end = itertools.cycle((2, 3)), time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > end:
            raise Failed(f"waited {PATIENCE} s in vain: {what}\n{stage.explain('gone')}")
        stage.write_pool("gone", "2.0.0", surge=next(surges), drain=deletes())
        time.sleep(4)


def judge_deletions(stage, uids, since):
    """Each once, by its uid and version, and not before its time."""
    asked = [one for one in Audit(stage.control.audit_log).ours("main")
             if one["verb"] == "delete" and subject(one) == "nodes" and one["objectRef"]["name"] in uids]
    done = {one["objectRef"]["name"]: one for one in asked if code(one) < 300}
    if set(done) != set(uids) or len(asked) != len(uids):
        raise Failed(f"the daemon asked {len(asked)} times to delete the nodes {sorted(done)}, and {sorted(uids)} are gone")
    for node, one in done.items():
        names = (one.get("requestObject") or {}).get("preconditions") or {}
        if names.get("uid") != uids[node] or not names.get("resourceVersion"):
            raise Failed(f"the deletion of node {node} names {names}, and its uid is {uids[node]}")
        early = STAYS - (moment(one) - time_of(since[node])) if node in since else 0
        if early > 1:
            raise Failed(f"node {node} was deleted {early:.0f} s before its time")


def judge_outs(stage, deleted, anew):
    """Each is out of service once, and that of another machine never."""
    outs = [one["objectRef"]["name"] for one in Audit(stage.control.audit_log).ours("main") if puts_taint(one, OUT)]
    outs = [node for node in outs if node in deleted or node == anew]
    if sorted(outs) != sorted(deleted):
        raise Failed(f"the daemon put {sorted(outs)} out of service, and the machines of {sorted(deleted)} are gone")


def unreachable(stage, table):
    """The kubelet of a node is mute, and its machine is outdated: its pods are asked to end, once each, and count as
    ended after their grace."""
    name, work, kubelets = "unreachable", stage.workloads["unreachable"], stage.kubelets
    of_node = collections.Counter(pod["spec"]["nodeName"] for pod in stage.pods_of(name, "web"))
    dead = min(of_node, key=of_node.get)
    pods = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in stage.pods_of(name, "web")
            if pod["spec"]["nodeName"] == dead}
    # One more than those of the node may be missing.
    work.change_budget("web", minAvailable=8 - len(pods) - 1)
    stage.begin_witness(name)
    kubelets.mute.add(kubelets.key_of(dead))
    wait(f"node {dead} is silent", lambda: ready_since(stage.nodes_of(name)[dead])[0] == "Unknown", 60)
    began = time.monotonic()
    stage.write_pool(name, "2.0.0", surge=4)
    table["unreachable says"] = stage.wait_told(name, [f"{name}/(?:{'|'.join(pods.values())}).*ending"])
    wait(f"node {dead} goes", lambda: dead not in stage.nodes_of(name), PATIENCE)
    took = time.monotonic() - began
    stage.wait_rolled(name)
    stage.no_marks(name)
    judge_evictions(stage, pods)
    table["unreachable"] = f"the machine went after {took:.0f} s, with the {len(pods)} pods of its node"
    wrong = stage.witness.broken(name)
    if wrong:
        raise Failed("; ".join(wrong))


def judge_evictions(stage, pods):
    """Each pod of the node was asked once, with its own grace."""
    asked = [one for one in Audit(stage.control.audit_log).ours("main") if is_eviction(one) and evicted_uid(one) in pods]
    graces = [one["requestObject"]["deleteOptions"].get("gracePeriodSeconds") for one in asked]
    granted = sorted(evicted_uid(one) for one in asked if code(one) == 201)
    if granted != sorted(pods) or any(grace is not None for grace in graces):
        raise Failed(f"of the pods {sorted(pods)} of a mute node, {granted} were evicted, with {graces} as grace")


def dying(stage, table):
    """A budget allows no eviction. A machine that stops goes without a drain, and its node is out of service. One whose
    kubelet is mute waits for the budget; in the full form for the five minutes after which it is dead, and goes although
    its pods are there."""
    name, machine = "dying", lambda node: stage.kubelets.key_of(node)[1]
    surges = itertools.cycle((3, 2))
    stage.witness.leave(name)
    stop = lambda node: stage.emulator.happen(name, machine(node), "stop")
    dead, pods = dies(stage, table, "stopped", stop, [], surges, STOPPED_AFTER)
    audit = Audit(stage.control.audit_log)
    asked = [one for one in audit.ours("main") if is_eviction(one) and evicted_uid(one) in pods]
    if asked:
        raise Failed(f"of node {dead}, whose machine had stopped, {len(asked)} evictions were asked")
    if not any(puts_taint(one, OUT) and one["objectRef"]["name"] == dead for one in audit.ours("main")):
        raise Failed(f"node {dead}, whose machine had stopped, was not put out of service")
    told = [rf"{name}/web-\w+-\w+", "budget web needs"]
    dies(stage, table, "mute", lambda node: stage.kubelets.mute.add(stage.kubelets.key_of(node)), told, surges)


def describe(stage, node):
    """What a person sees of a drain that a budget holds for a minute."""
    blocked = lambda: [one for one in stage.events_of(node) if one["reason"] == "DrainBlocked"]
    [event] = wait(f"node {node} has a warning", blocked, 120, 1)
    words = r"the pod dying/web-\w+-\w+ .*\bbudget web\b.*\b8\b"
    if event["type"] != "Warning" or not re.search(words, event["message"]):
        raise Failed(f"the event of a drain that a budget holds: {event}")
    described = stage.control.kubectl("describe", "node", node).splitlines()
    shown = [" ".join(line.split()) for line in described if " DrainBlocked " in line or " DrainBegan " in line]
    if len(shown) != 2:
        raise Failed(f"kubectl describe shows of the drain {shown}: {described}")
    return "; ".join(shown)


def dies(stage, table, how, kill, told, surges, failed_after="5s"):
    name, work, began = "dying", stage.workloads["dying"], time.monotonic()
    wait("the budget counts its pods", lambda: not work.unsettled(), 120, 0.5)
    dead = sorted({pod["spec"]["nodeName"] for pod in stage.pods_of(name, "web")})[0]
    pods = {pod["metadata"]["uid"] for pod in stage.pods_of(name, "web") if pod["spec"]["nodeName"] == dead}
    kill(dead)
    wait(f"node {dead} is silent", lambda: ready_since(stage.nodes_of(name)[dead])[0] == "Unknown", 60)
    # Another surge each time: the daemon looks at once.
    stage.write_pool(name, "1.0.0", surge=next(surges), repair={"after": failed_after, "breaker": "100%"},
                     drain={"failedAfter": FAILED_AFTER})
    said = stage.wait_told(name, told) if told else None
    if told:
        table["kubectl describe"] = describe(stage, dead)
    if told and not stage.full:
        work.change_budget("web", minAvailable=8 - len(pods))
    wait(f"node {dead} goes", lambda: dead not in stage.nodes_of(name), PATIENCE)
    took = time.monotonic() - began
    stage.wait_rolled(name)
    stage.no_marks(name)
    table[f"{how} machine"] = f"it went after {took:.0f} s" + (f": {said}" if said else ", without a drain")
    return dead, pods
