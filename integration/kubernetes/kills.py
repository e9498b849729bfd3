"""A daemon is killed right after each kind of write, and at any other moment."""

import json
import time

from control import Failed, wait
from stage import PATIENCE
from witness import Audit, is_eviction, puts_mark, subject

import house

SET = "killed"
# What a daemon writes in a rollout.
WRITES = ("size or model", "taint", "mark", "eviction", "delete")
# Longer than between two writes of a kind, mostly.
AIMS = 12


class Writes:
    """What the daemon wrote since the last look, by the audit log of the cluster and the record of Azure."""

    def __init__(self, stage):
        self.emulator, self.audit = stage.emulator, Audit(stage.control.audit_log)
        self.seen, self.at = len(self.audit.ours(SET)), stage.emulator.mark()

    def new(self):
        calls = self.audit.ours(SET)
        asked = json.loads(house.get(f"{self.emulator.url}/_control/record?from={self.at}"))
        kinds = [kind_of(one) for one in calls[self.seen:]] + [in_azure(one) for one in asked["requests"]]
        self.seen, self.at = len(calls), asked["count"]
        return [kind for kind in kinds if kind]


def kind_of(call):
    if is_eviction(call):
        return "eviction"
    if call["verb"] == "patch" and subject(call) == "nodes" and isinstance(call.get("requestObject"), list):
        return "taint"
    return "mark" if puts_mark(call) else None


def in_azure(request):
    method, path = request["method"], request["path"].split("?")[0]
    if f"/virtualMachineScaleSets/{SET}" not in path or "/tags/" in path or method in ("GET", "HEAD"):
        return None
    if path.endswith("/delete") or method == "DELETE":
        return "delete"
    return "size or model" if method in ("PATCH", "PUT") else None


def kills(stage, table, dice, count):
    """The daemon is killed so often in its rollouts; the next one goes on."""
    home, round_, done, drains, after = stage.homes[SET], 1, 0, 0, dict.fromkeys(WRITES, 0)
    writes = Writes(stage)
    stage.start_daemon(SET)
    while done < count:
        round_ += 1
        old = stage.nodes_of(SET)
        stage.cordon(dice.choice(sorted(old)))
        stage.write_pool(SET, f"{round_}.0.0", surge=3)
        come = None
        while done < count and not stage.is_rolled(SET):
            aim = dice.choice([kind for kind in WRITES if after[kind] == min(after.values())])
            hit = hits(stage, writes, aim, dice.uniform(0, 4) if dice.random() < 0.2 else AIMS)
            drains += bool(stage.marked(SET))
            home.daemon.kill()
            # It may write as soon as it runs again.
            writes = Writes(stage)
            done += 1
            if hit:
                after[hit] += 1
            stage.start_daemon(SET)
            wait("it leads again", lambda: home.daemon.told('"leading"') or home.daemon.told("leading"), 60)
            come = come or cordon_new(stage, old)
        come or wait("a new node comes", lambda: cordon_new(stage, old), PATIENCE)
        stage.wait_rolled(SET)
        stage.no_marks(SET)
    said = ", ".join(f"{number} right after a {kind}" for kind, number in after.items())
    table["kills"] = f"{done}, {drains} of them while a node had a mark, in {round_ - 1} rollouts: {said}"
    missed = [kind for kind, number in after.items() if not number]
    if not drains or (stage.full and missed):
        raise Failed(f"no kill fell into a drain, or right after a {' or a '.join(missed)}: this proves too little")


def cordon_new(stage, old):
    """Somebody else cordons one that has come."""
    come = sorted(set(stage.nodes_of(SET)) - set(old))
    if come:
        stage.cordon(come[0])
    return come


def hits(stage, writes, aim, seconds):
    """The kind of the last write, once one of that kind was made, or the time is over, or there is nothing left to do."""
    last, end = None, time.monotonic() + seconds
    while time.monotonic() < end and not stage.is_rolled(SET):
        for _ in range(10):
            new = writes.new()
            if aim in new:
                return aim
            last = new[-1] if new else None
            time.sleep(0.05)
    return last
