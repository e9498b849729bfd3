"""What the emulator's record says of whoever asked. Knows nothing of the daemon's logs or its store."""

import re
from dataclasses import dataclass, field

SET = re.compile(r"/virtualMachineScaleSets/([^/?]+)", re.IGNORECASE)
VM = re.compile(r"/virtualMachineScaleSets/[^/]+/virtualMachines/([^/?]+)$", re.IGNORECASE)


@dataclass
class Pool:
    name: str
    count: int
    surge: int
    unavailable: int


@dataclass
class Verdict:
    table: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)


def is_change(one):
    return one["method"] not in ("GET", "HEAD")


def set_of(path):
    found = SET.search(path)
    return found.group(1).lower() if found else None


def deleted_by(one):
    """The machines that a call asks to delete."""
    vm = VM.search(one["path"])
    if one["method"] == "DELETE" and vm:
        return [vm.group(1)]
    if one["method"] == "POST" and one["path"].lower().endswith("/delete"):
        return (one["body"] or {}).get("instanceIds", [])
    return []


def judge(record, state, pools, versions, killed):
    verdict = Verdict()
    asked, by_name = record["requests"], {pool.name: pool for pool in pools}
    accepted = [one for one in asked if is_change(one) and one["status"] and one["status"] < 300]
    # The world has no weather here: a delete that was accepted takes its machine, and ids are not given twice.
    first, duplicates = {}, []
    for one in accepted:
        for machine in deleted_by(one):
            key = (set_of(one["path"]), machine)
            if key in first:
                duplicates.append(f"{key[0]} {key[1]}: deleted at {first[key]} and again at {one['at']}")
            first.setdefault(key, one["at"])
    broken = [say for one in record["numbers"] for say in laws(one, by_name[one["set"]])]
    orphans, unsettled = ends(state, by_name, versions)
    verdict.wrong += duplicates + broken + orphans + unsettled
    gone = [one for one in asked if is_change(one) and one["end"] == "gone" and one["client"] in killed]
    verdict.table = {
        "requests": len(asked),
        "changes": len(accepted),
        "machines deleted": len(first),
        "in doubt": len(gone),
        "duplicates": len(duplicates),
        "orphans": len(orphans),
        "laws broken": len(broken),
        "unsettled": len(unsettled),
    }
    return verdict


def laws(numbers, pool):
    most, least = pool.count + pool.surge, pool.count - pool.unavailable
    where = f"{pool.name} at {numbers['at']}"
    if numbers["there"] > most:
        yield f"{where}: {numbers['there']} machines are there, {most} may be"
    if numbers["capacity"] > most:
        yield f"{where}: capacity {numbers['capacity']}, {most} may be"
    if numbers["ready"] < least:
        yield f"{where}: {numbers['ready']} machines serve, {least} must"


def ends(state, by_name, versions):
    left = set(by_name) - {set_of(one["id"]) for one in state["scaleSets"]}
    orphans, unsettled = [], [f"{name}: the scale set is gone" for name in sorted(left)]
    for one in state["scaleSets"]:
        name = set_of(one["id"])
        pool, machines = by_name[name], one["instances"]
        if len(machines) > pool.count:
            orphans.append(f"{name}: {len(machines) - pool.count} machines too many at the end")
        if len(machines) < pool.count or one["ready"] != pool.count:
            unsettled.append(f"{name}: {one['ready']} of {pool.count} machines serve at the end")
        if one["capacity"] != pool.count:
            unsettled.append(f"{name}: capacity {one['capacity']} at the end, not {pool.count}")
        old = [vm["id"] for vm in machines if not vm["image"].rstrip('"}').endswith(f"/{versions[name]}")]
        if old or one["outdated"]:
            unsettled.append(f"{name}: {old} are not on {versions[name]} at the end")
    return orphans, unsettled
