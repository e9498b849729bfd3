"""Annotations by which owners keep pods and nodes, and those that keep the cluster-autoscaler from new nodes."""

import time

from client import MERGE
from control import Failed, wait
from stage import PATIENCE
from witness import (Audit, SCALE_DOWN, SHIELD, SHIELD_PATH, changed, code, evicted_uid, is_eviction, is_ready, moment,
                     puts_mark, subject)

KEEPS = "karpenter.sh/do-not-disrupt"
SHIELDED = ("shielded", "foreign", "over")
# Seconds: a drain looks at its pods so often, and a pod is kept so long at least.
LOOK, KEPT = 5, 25
# Evictions take at least so long, before pods are deleted.
EVICTS = 60
DELETES = {"ladder": {"evict": f"{EVICTS}s", "shorterGrace": "off", "delete": "5m"}}
# A mark says when the daemon made it, and the audit log when it came.
ON_ITS_WAY = 2
# The turn that asks for the delete of the old machine takes it from the new node just before.
SAME_TURN = 2


def undisrupted(stage, table):
    """The owners of a node and of a pod keep them: neither node is touched, and the others go. A drain waits for a pod
    that is kept once it began. If pods are deleted in the end, a drain of the kept pod begins, and it stays until then."""
    name, began = "undisrupted", time.monotonic()
    node, of_job, of_late, free = sorted(stage.nodes_of(name))
    job, late = guests(stage, name, {"job": of_job, "late": of_late})
    keep(stage, "nodes", node)
    keep(stage, "pods", "job", name)
    stage.write_pool(name, "2.0.0", surge=4, drain={"rules": [{"match": {"labels": {"app": "late"}}, "do": "wait"}]})
    calls = lambda: Audit(stage.control.audit_log).ours("main")
    wait("a drain waits for a pod", lambda: of_late in stage.marked(name), PATIENCE, 1)
    keep(stage, "pods", "late", name)
    stage.write_pool(name, "2.0.0", surge=4)
    kept = time.time()
    wait("the other node goes", lambda: free not in stage.nodes_of(name), PATIENCE)
    for one in (node, of_job):
        wait(f"{one} says that it is kept", lambda: KEEPS in stage.home_of(name).ask("explain", name, one), PATIENCE, 1)
    time.sleep(max(0, kept + KEPT - time.time()))
    freed = {late: time.time()}
    keep(stage, "pods", "late", name, None)
    wait("the node of the pod goes that was kept in its drain", lambda: of_late not in stage.nodes_of(name), PATIENCE)
    freed[of_job] = time.time()
    stage.write_pool(name, "2.0.0", surge=4, drain=DELETES)
    let_go(stage, name, of_job)
    wait("the node of the kept pod goes", lambda: of_job not in stage.nodes_of(name), PATIENCE)
    freed[node] = time.time()
    keep(stage, "nodes", node, value=None)
    let_go(stage, name, node)
    stage.wait_rolled(name)
    stage.no_marks(name)
    for one in (node, of_job):
        judge_untouched(stage, calls(), one, freed[one])
    judge_kept(calls(), late, kept, freed[late])
    waited = judge_deletion(calls(), job, of_job)
    table["undisrupted"] = (f"2 nodes untouched for {freed[of_job] - kept:.0f} s, a pod kept in its drain for "
                            f"{freed[late] - kept:.0f} s, one deleted {waited:.0f} s after the begin of its drain, in "
                            f"{time.monotonic() - began:.0f} s")


def guests(stage, name, nodes):
    """Pods that no controller makes again, each on its node."""
    work = stage.workloads[name]
    for pod, node in nodes.items():
        work.bare(pod, node=node)
    ready = lambda: {pod: one["metadata"]["uid"] for pod in nodes for one in stage.pods_of(name, pod) if is_ready(one)}
    uids = wait("they run", lambda: len(ready()) == len(nodes) and ready(), 60)
    return [uids[pod] for pod in nodes]


def keep(stage, kind, name, namespace=None, value="true"):
    """None: no longer."""
    stage.client.patch(kind, name, {"metadata": {"annotations": {KEEPS: value}}}, namespace, how=MERGE)


def let_go(stage, name, node):
    """The next try of its drain would come half an hour after the last."""

    def begins():
        stage.retry(name)
        return node in stage.marked(name) or node not in stage.nodes_of(name)

    wait(f"the drain of {node} begins", begins, PATIENCE, LOOK)


def ended_uid(one):
    """The pod that is asked to end, in whichever way."""
    if is_eviction(one):
        return evicted_uid(one)
    if one["verb"] == "delete" and subject(one) == "pods":
        return ((one.get("requestObject") or {}).get("preconditions") or {}).get("uid")
    return None


def judge_untouched(stage, ours, node, until):
    """Its drain began no sooner than its owner let it go, and none of its pods was asked to end before."""
    early = [one for one in ours if moment(one) < until]
    marks = [one for one in early if puts_mark(one) and one["objectRef"]["name"] == node]
    ended = [one["objectRef"]["name"] for one in early if stage.witness.node_of.get(ended_uid(one)) == node]
    if marks or ended:
        raise Failed(f"an owner keeps node {node}: its drain began {len(marks)} times, and {ended} were asked to end")
    later = [one for one in ours if moment(one) >= until and stage.witness.node_of.get(ended_uid(one)) == node]
    if not later:
        raise Failed(f"no pod of node {node} was asked to end once it might go: this proves nothing")


def judge_kept(ours, pod, since, until):
    """No request for the end of the pod came while its owner kept it, and one was granted before and after."""
    asked = [one for one in ours if ended_uid(one) == pod]
    between = [moment(one) - since for one in asked if since < moment(one) < until]
    if between:
        raise Failed(f"a pod was asked to end {between[0]:.0f} s after its owner had kept it")
    if [code(one) for one in asked][-1:] != [201] or moment(asked[-1]) < until:
        raise Failed(f"a pod that its owner let go was asked to end with {[code(one) for one in asked]}")


def judge_deletion(ours, pod, node):
    """The pod was deleted once, and nothing else was tried before. Returns when, after its drain began."""
    asked = [one for one in ours if ended_uid(one) == pod]
    if [(one["verb"], code(one)) for one in asked] != [("delete", 200)]:
        raise Failed(f"a kept pod was asked to end with {[(one['verb'], code(one)) for one in asked]}")
    begin = max(moment(one) for one in ours if puts_mark(one) and one["objectRef"]["name"] == node)
    waited = moment(asked[0]) - begin
    if waited < EVICTS - ON_ITS_WAY:
        raise Failed(f"a kept pod was deleted {waited:.0f} s after its drain began, and pods are evicted for {EVICTS} s")
    return waited


def shielded(stage, table):
    """Others set the size of three pools of one machine. In each, the new node is kept from the cluster-autoscaler until
    the old machine goes. Another client does so with that of the second pool before us, and writes over ours on that
    of the third one: what is theirs stays."""
    began, mark = time.monotonic(), stage.emulator.mark()
    old = {name: stage.nodes_of(name) for name in SHIELDED}
    stage.kubelets.annotations["foreign"] = {SCALE_DOWN: "true"}
    for name in SHIELDED:
        stage.write_pool(name, "2.0.0", surge=1, replicas={"owner": "scaleSet"})
    new = lambda name: {node: one["metadata"].get("annotations", {}) for node, one in stage.nodes_of(name).items()
                        if node not in old[name]}
    ours = lambda: {name for name in SHIELDED for has in new(name).values() if SHIELD in has}
    for name in SHIELDED:
        stage.wait_told(name, [rf"refused drain.*{name}/web-\w+-\w+"])
    wait("new nodes are kept from the autoscaler", lambda: ours() == {"shielded", "over"}, 60)
    [over] = new("over")
    stage.client.patch("nodes", over, {"metadata": {"annotations": {SCALE_DOWN: "false"}}}, how=MERGE)
    time.sleep(2 * LOOK)
    for name in SHIELDED:
        stage.workloads[name].change_budget("web", minAvailable=1)
    for name in SHIELDED:
        stage.retry(name)
        stage.wait_rolled(name)
        stage.no_marks(name)
    wait("no node is kept from the autoscaler by us", lambda: not ours(), 60, 0.5)
    left = {name: has.get(SCALE_DOWN) for name in SHIELDED for has in new(name).values()}
    if left != {"shielded": None, "foreign": "true", "over": "false"}:
        raise Failed(f"others wrote true and false for the autoscaler, and there is {left}")
    calls, deletes = Audit(stage.control.audit_log).ours("main"), deletes_of(stage, mark)
    judge_shields(calls, "foreign", set(new("foreign")), [])
    times = [judge_shields(calls, name, set(new(name)), deletes[name]) for name in ("shielded", "over")]
    table["shielded"] = (f"2 new nodes for {' and '.join(f'{seconds:.0f}' for seconds in times)} s, and none that another "
                         f"client keeps, in {time.monotonic() - began:.0f} s")


def deletes_of(stage, mark):
    """When machines of each set were deleted."""
    times = {name: [] for name in SHIELDED}
    for one in stage.emulator.requests(mark):
        [*_, name, what] = one["path"].split("?")[0].split("/")
        if what == "delete" and name in times:
            times[name].append(one["at"] / 1000)
    return times


def judge_shields(calls, name, nodes, deletes):
    """The new node gets it once, and loses it once with the delete of the old machine; without deletes never. Returns
    for how long it had it."""
    changes = []
    for one in calls:
        names = changed(one.get("requestObject") or {}) if subject(one) == "nodes" and code(one) < 300 else {}
        if SHIELD_PATH in names and one["objectRef"]["name"] in nodes:
            changes.append((names[SHIELD_PATH], moment(one)))
    if [pool for pool, _ in changes] != [name, None][:2 * len(deletes)]:
        raise Failed(f"the new node of {name} is kept from the autoscaler by {changes}")
    if not deletes:
        return 0
    [(_, put), (_, back)] = changes
    early = deletes[0] - back
    if early > SAME_TURN:
        raise Failed(f"the new node of {name} is kept from the autoscaler until {early:.1f} s before the delete")
    return back - put
