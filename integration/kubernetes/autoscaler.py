"""The cluster-autoscaler beside a rollout, as it acts on Azure itself: it writes the capacity of the set, and takes a node
out of the cluster before it deletes its machine."""

import time

from client import Refused, path
from control import Failed, wait
from stage import PATIENCE
from witness import Audit, code, evicted_uid, is_eviction, moment, puts_mark

REMOVES = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
# Machines that it adds, and one of all goes.
MORE = 1
# Seconds for which it drains its node at least: our next turn may be a minute away.
DRAINS = 90


def scaled(stage, table):
    """It decides the size. It adds a machine; while all are replaced it drains the node of an old one and deletes its
    machine. The rollout leaves that node alone, goes on with the others, and ends with one machine less."""
    name, began, first = "scaled", time.monotonic(), stage.sets["scaled"]
    roll = lambda version: stage.write_pool(name, version, surge=1, replicas={"owner": "scaleSet"})
    roll("1.0.0")
    stage.emulator.happen(name, None, {"setCapacity": first + MORE})
    wait("the machines of the autoscaler come", lambda: stage.emulator.set(name)["ready"] == first + MORE, 60, 0.5)
    old = wait("they are nodes", lambda: len(stage.nodes_of(name)) == first + MORE and set(stage.nodes_of(name)), 60, 0.5)
    mark = stage.emulator.mark()
    # A pool file that changes is followed at once, by a turn that reads the capacity.
    roll("2.0.0")
    wait("a new node comes", lambda: set(stage.nodes_of(name)) - old, PATIENCE, 0.5)
    size = stage.home_of(name).daemon.metrics()["poolkeeper_pool_desired_machines"].get(f'{{pool="{name}"}}')
    if size != first + MORE:
        raise Failed(f"the autoscaler wants {first + MORE} machines, and the size is {size}")
    node = take(stage, name, old)
    since, instance = time.time(), stage.nodes_of(name)[node]["spec"]["providerID"].rsplit("/", 1)[-1]
    left = len(old & set(stage.nodes_of(name)))
    drained = lambda: not any(pod["spec"].get("nodeName") == node and evict(stage, pod) for pod in stage.pods_of(name, "web"))
    wait(f"the autoscaler drains {node}", drained, PATIENCE, 1)
    time.sleep(max(0, since + DRAINS - time.time()))
    if node not in stage.nodes_of(name) or node in stage.marked(name):
        raise Failed(f"{node}, which the autoscaler removes, was not left alone")
    stage.emulator.happen(name, instance, {"delete": None})
    until = time.time()
    wait("its node goes", lambda: node not in stage.nodes_of(name), 60, 0.5)
    stage.sets[name] = first + MORE - 1
    stage.wait_rolled(name)
    stage.no_marks(name)
    judge_left_alone(stage, node, instance, since, mark)
    table["autoscaler"] = (f"{MORE} machine added; 1 of {left} old ones drained by it for {until - since:.0f} s and deleted, "
                           f"untouched by us; the others rolled, in {time.monotonic() - began:.0f} s")


def take(stage, name, old):
    """Its taint, on the node that we would drain next. A drain of ours that has begun goes on."""
    for node in sorted(old):
        if node in stage.nodes_of(name) and node not in stage.marked(name):
            stage.client.patch("nodes", node, {"spec": {"taints": [{**REMOVES, "value": str(int(time.time()))}]}})
            time.sleep(2)
            if node not in stage.marked(name):
                return node
            stage.client.patch("nodes", node, {"spec": {"taints": [{"key": REMOVES["key"], "$patch": "delete"}]}})
    raise Failed("a drain of ours has begun on each old node")


def evict(stage, pod):
    """As the autoscaler does. Whether the pod is still there."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    try:
        stage.client.request("POST", path("pods", namespace, name, "eviction"), asked)
    except Refused as refused:
        return refused.code != 404
    return True


def judge_left_alone(stage, node, instance, since, mark):
    """We began no drain of it, ended no pod there, and asked for no delete of its machine."""
    calls = [one for one in Audit(stage.control.audit_log).ours("main") if moment(one) > since and code(one) < 300]
    marks = [one for one in calls if puts_mark(one) and one["objectRef"]["name"] == node]
    evicted = [one for one in calls if is_eviction(one) and stage.witness.node_of.get(evicted_uid(one)) == node]
    deletes = [one for one in stage.emulator.requests(mark) if one["path"].split("?")[0].endswith("/scaled/delete")
               and instance in (one.get("body") or {}).get("instanceIds", [])]
    if marks or evicted or deletes:
        raise Failed(f"of the node that the autoscaler removes: {len(marks)} marks, {len(evicted)} evictions, "
                     f"{len(deletes)} deletes of its machine")
