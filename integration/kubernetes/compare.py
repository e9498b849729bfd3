"""The same workloads moved by hand, with `kubectl drain` node by node, and what the daemon needs where there is no room."""

import time

import cases
from control import wait
from kubelets import node_name
from workloads import Workloads


def compare(stage, table):
    """A machine more, `kubectl drain` of an old one, and it goes; twelve times."""
    table["kubectl moves"] = by_hand(stage, "imagined", stage.imagined, cases.SETS["main"], cases.many, cases.MAIN_PODS, 1)


def crowded(stage, table):
    """No surge and no room: a node goes before its successor comes, and its pods wait."""
    name, count, began = "crowded", cases.FULL_SETS["crowded"], time.monotonic()
    stage.write_pool(name, "2.0.0", surge=0, unavailable=1)
    stage.wait_rolled(name, 1200)
    stage.no_marks(name)
    table["without surge"] = told(stage, name, cases.CROWD, began)
    table["kubectl, crowded"] = by_hand(stage, "packed", stage.packed, count, cases.crowd, cases.CROWD, 0)


def by_hand(stage, name, machines, count, fill, pods, surge):
    began = time.monotonic()
    machines.add(count)
    old = list(machines.there)
    work = stage.workloads[name] = Workloads(stage.client, name)
    fill(work)
    stage.begin_witness(name)
    for instance in old:
        machines.add(surge)
        wait("a new node comes", lambda: len(stage.nodes_of(name)) == count + surge, 60)
        stage.control.kubectl("drain", node_name(name, instance), "--ignore-daemonsets", "--force", "--delete-emptydir-data")
        machines.remove(instance)
        machines.add(1 - surge)
        wait("its node goes", lambda: node_name(name, instance) not in stage.nodes_of(name), 60)
        stage.wait_none("the workloads run", work.not_whole, 60)
    return told(stage, name, pods, began)


def told(stage, name, pods, began):
    mean, most = stage.witness.moved(name, pods)
    return f"{mean:.2f} of a pod on average, {most} at most, in {time.monotonic() - began:.0f} s"
