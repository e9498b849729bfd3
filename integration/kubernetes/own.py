"""The pod of the daemon runs on a node of a pool that it rolls."""

import time

from control import Failed, wait
from stage import PATIENCE
from witness import Audit, code, is_eviction, puts_mark

SET, APP = "own", "poolkeeper"


def here(stage):
    """The pod that is the daemon: neither ending nor waiting for a node."""
    for pod in stage.pods_of(SET, APP):
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
        if ready and "deletionTimestamp" not in pod["metadata"]:
            return pod
    return None


def own(stage, table):
    """Its node's machine goes last. The daemon ends when its pod is evicted, begins on another node, and finishes."""
    home, old, nodes = stage.homes[SET], sorted(stage.nodes_of(SET)), []
    pod = wait("our pod runs", lambda: here(stage), 60)
    stage.write_pool(SET, "2.0.0", surge=2)
    start(stage, pod, nodes)
    end = time.monotonic() + PATIENCE
    while not stage.is_rolled(SET):
        if time.monotonic() > end:
            raise Failed(f"{SET} is not on 2.0.0\n{stage.explain(SET)}")
        now = stage.pods.objects.get(pod["metadata"]["uid"])
        if now is None or "deletionTimestamp" in now["metadata"]:
            home.daemon.stop()
            pod = wait("our pod runs elsewhere", lambda: here(stage), 60)
            start(stage, pod, nodes)
        time.sleep(0.1)
    stage.wait_rolled(SET)
    stage.no_marks(SET)
    judge(stage, old, nodes)
    table["own"] = f"the daemon moved once, from the last of {len(old)} machines to {nodes[-1]}"


def start(stage, pod, nodes):
    nodes.append(pod["spec"]["nodeName"])
    stage.start_daemon(SET, "--set", f"node={nodes[-1]}")


def judge(stage, old, nodes):
    calls = Audit(stage.control.audit_log).ours(SET)
    drained = [one["objectRef"]["name"] for one in calls if puts_mark(one) and one["objectRef"]["name"] in old]
    order = list(dict.fromkeys(drained))
    if sorted(order) != old or order[-1] != nodes[0]:
        raise Failed(f"the nodes were drained in the order {order}, and the daemon ran on {nodes[0]}")
    granted = [one["objectRef"]["name"] for one in calls if is_eviction(one) and code(one) == 201]
    moved = [name for name in granted if name.startswith(f"{APP}-")]
    if len(nodes) != 2 or len(moved) != 1:
        raise Failed(f"the daemon ran on {nodes}, and its pods {moved} were evicted")
