"""One function for each experiment: it writes, reads, and answers what it saw of the facts that it settles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arm import LOCKS, Answer, Failed, Json, Refused
from beliefs import NOT_EMULATED, NOT_SETTLED, Finding, finding
from stage import NOTES, OTHER_SIZE, POLL, SIZE, Machine, ScaleSet, Stage, image

Facts = dict[str, str]
Experiment = Callable[[Stage], Facts]

# Reads after a write may lag.
SETTLES = 10
# What a PATCH of an OS disk may carry, of what a read shows.
PATCHABLE = ("caching", "diffDiskSettings", "diskSizeGB", "managedDisk")
# A lock is in force, and no longer so, within a few minutes.
LOCK_PAUSE = 15
LOCK_LOOKS = 20

EXPERIMENTS: list[tuple[tuple[str, ...], Experiment]] = []


def settles(*facts: str) -> Callable[[Experiment], Experiment]:
    """An experiment, in the order of the run; no other one settles these facts."""

    def note(experiment: Experiment) -> Experiment:
        EXPERIMENTS.append((facts, experiment))
        return experiment

    return note


def run(stage: Stage) -> Iterator[Finding]:
    for facts, experiment in EXPERIMENTS:
        try:
            seen = experiment(stage)
        except Refused as refused:
            hollow = NOT_EMULATED if stage.emulated and refused.code == "NotEmulated" else f"{NOT_SETTLED}: {refused}"
            seen = dict.fromkeys(facts, hollow)
        except Failed as failed:
            seen = dict.fromkeys(facts, f"{NOT_SETTLED}: {failed}")
        except (LookupError, TypeError) as error:
            seen = dict.fromkeys(facts, f"{NOT_SETTLED}: an answer has another shape, {error!r}")
        yield from (finding(fact, seen[fact]) for fact in facts)


def moved(before: str, after: str) -> str:
    if not before or not after:
        return "absent"
    return "stays" if before == after else "moves"


def accepted(answer: Answer) -> str:
    """`accepted`, or a refusal with its code; one for other reasons settles nothing."""
    if answer.code in ("NotEmulated", "AuthorizationFailed") or answer.status == 429 or answer.status >= 500:
        answer.must()
    return "accepted" if answer.ok else f"refused ({answer.code})"


def flag(it: ScaleSet, before: list[Machine]) -> str:
    """What became of latestModelApplied of these machines, which all had it."""
    it.arm.clock.wait(SETTLES)
    ids = {machine.id for machine in before}
    return "stays" if all(one.latest for one in it.quiet() if one.id in ids) else "falls"


def capacity_of(it: ScaleSet, number: int) -> Json:
    return {"sku": {"name": SIZE, "tier": "Standard", "capacity": number}}


@settles("etag.equalPut", "latest.equalPut")
def equal_put(stage: Stage) -> Facts:
    it = stage.uniform
    machines, before = it.on_the_model(), it.etag()
    body = it.body(stage.versions[0])
    it.arm.finish(it.arm.call("PUT", it.path, body))
    return {"etag.equalPut": moved(before, it.etag()), "latest.equalPut": flag(it, machines)}


@settles("etag.sameNumber", "capacity.sameNumber")
def same_number(stage: Stage) -> Facts:
    it = stage.uniform
    machines, before = it.quiet(), it.etag()
    it.arm.finish(it.patch(capacity_of(it, it.capacity())))
    etag = it.etag()
    same = [one.id for one in machines] == [one.id for one in it.quiet()]
    return {"etag.sameNumber": moved(before, etag), "capacity.sameNumber": "no" if same else "yes"}


@settles("etag.tags", "latest.tags")
def tags(stage: Stage) -> Facts:
    it = stage.uniform
    machines, before = it.on_the_model(), it.etag()
    it.arm.finish(it.patch({"tags": {**it.tags, "tried": "once"}}))
    return {"etag.tags": moved(before, it.etag()), "latest.tags": flag(it, machines)}


@settles("etag.extension")
def extension(stage: Stage) -> Facts:
    it = stage.uniform
    it.quiet()
    before, path = it.etag(), f"{it.path}/extensions/nothing"
    kind = {"publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.1"}
    it.arm.finish(it.arm.call("PUT", path, {"properties": {**kind, "settings": {"commandToExecute": "true"}}}))
    after = it.etag()
    # No machine made later is to have it.
    it.arm.finish(it.arm.call("DELETE", path))
    return {"etag.extension": moved(before, after)}


@settles("write.busy")
def busy(stage: Stage) -> Facts:
    it = stage.ephemeral
    it.quiet()
    first = it.patch({"tags": {**it.tags, "tried": "first"}}).must()
    second = it.patch({"tags": {**it.tags, "tried": "second"}})
    seen = accepted(second)
    it.arm.finish(first)
    if second.ok:
        it.arm.finish(second)
    return {"write.busy": seen}


@settles("latest.equalDisk")
def equal_disk(stage: Stage) -> Facts:
    it = stage.ephemeral
    machines = it.on_the_model()
    disk = {key: value for key, value in it.storage()["osDisk"].items() if key in PATCHABLE}
    it.arm.finish(it.patch(storage({"osDisk": disk})))
    return {"latest.equalDisk": flag(it, machines)}


def storage(profile: Json) -> Json:
    return {"properties": {"virtualMachineProfile": {"storageProfile": profile}}}


def protect(it: ScaleSet, machine: Machine, scale_in: bool, set_actions: bool) -> str:
    policy = {"protectFromScaleIn": scale_in, "protectFromScaleSetActions": set_actions}
    body = {"location": it.place.location, "properties": {"protectionPolicy": policy}}
    path = f"{it.path}/virtualMachines/{machine.id}"
    it.arm.finish(it.arm.call("PUT", path, body))
    paths = {path: "under the set"} if not it.flexible else {path: "under the set", machine.path: "at the machine"}
    shown = {place for at, place in paths.items() if it.arm.get(at)["properties"].get("protectionPolicy")}
    return " and ".join(sorted(shown)) or "nowhere"


@settles("protection.uniform", "latest.protection", "protection.setActions", "protection.scaleIn")
def protection(stage: Stage) -> Facts:
    it = stage.uniform
    machine = it.on_the_model()[0]
    seen = {"protection.uniform": protect(it, machine, True, True), "latest.protection": flag(it, [machine])}
    answer = it.delete([machine])
    seen["protection.setActions"] = accepted(answer)
    if answer.ok:
        it.arm.finish(answer)
        machine = it.some(1)[0]
    protect(it, machine, True, False)
    answer = it.delete([machine])
    seen["protection.scaleIn"] = accepted(answer)
    if answer.ok:
        it.arm.finish(answer)
    else:
        protect(it, machine, False, False)
    return seen


@settles("capacity.alone.uniform", "etag.raise.uniform")
def raise_uniform(stage: Stage) -> Facts:
    return raised(stage.uniform)


@settles("capacity.alone.flexible", "etag.raise.flexible")
def raise_flexible(stage: Stage) -> Facts:
    return raised(stage.flexible)


def raised(it: ScaleSet) -> Facts:
    it.quiet()
    before, goal = it.etag(), it.capacity() + 1
    answer = it.patch({"sku": {"capacity": goal}})
    alone = accepted(answer)
    if not answer.ok:
        answer = it.patch(capacity_of(it, goal)).must()
    after = it.read()
    if after["sku"].get("capacity") != goal or after["sku"].get("name") != SIZE:
        alone = f"{alone}, and sku is {after['sku']}"
    it.arm.finish(answer)
    return {f"capacity.alone.{it.kind}": alone, f"etag.raise.{it.kind}": moved(before, after.get("etag", ""))}


@settles("capacity.size")
def size_alone(stage: Stage) -> Facts:
    it = stage.uniform
    it.quiet()
    before = it.capacity()
    answer = it.patch({"sku": {"name": OTHER_SIZE}})
    seen = accepted(answer)
    if answer.ok:
        it.arm.finish(answer)
        after = it.capacity()
        seen = f"{seen}, capacity " + ("stays" if after == before else f"{before} becomes {after}")
        it.arm.finish(it.patch(capacity_of(it, before)))
    return {"capacity.size": seen}


@settles("etag.delete.uniform", "capacity.falls.uniform", "list.deleting.uniform")
def delete_uniform(stage: Stage) -> Facts:
    return deleted(stage.uniform)


@settles("etag.delete.flexible", "capacity.falls.flexible", "list.deleting.flexible")
def delete_flexible(stage: Stage) -> Facts:
    return deleted(stage.flexible)


def deleted(it: ScaleSet) -> Facts:
    machine = it.some(1)[0]
    before, goal = it.etag(), it.capacity()
    answer = it.delete([machine]).must()
    after, listed = it.read(), is_listed(it, machine)
    falls = "at accept" if after["sku"]["capacity"] < goal else fall_later(it, machine, goal)
    it.arm.finish(answer)
    it.quiet()
    if not falls:
        # The goal that was written while the number still stood was either new (one machine is made) or the old one.
        falls = "at accept, shown late" if it.capacity() == goal else "at the end"
    return {
        f"etag.delete.{it.kind}": moved(before, after.get("etag", "")),
        f"capacity.falls.{it.kind}": falls,
        f"list.deleting.{it.kind}": "shown" if listed else "not shown",
    }


def fall_later(it: ScaleSet, machine: Machine, goal: int) -> str:
    """Where the first read shows the old number; empty: the end of the delete tells."""
    it.arm.clock.wait(POLL)
    if it.capacity() < goal:
        return "at accept, shown late" if is_listed(it, machine) else "before the second read"
    again = it.patch(capacity_of(it, goal))
    if not again.ok:
        return f"later than accept; {again.code} hides when"
    it.arm.finish(again)
    return ""


def is_listed(it: ScaleSet, machine: Machine) -> bool:
    return any(one.id == machine.id for one in it.machines())


@settles("delete.gone")
def delete_gone(stage: Stage) -> Facts:
    it = stage.uniform
    gone = sorted(it.ever_listed - {one.id for one in it.quiet()})
    if not gone:
        raise Failed("no machine is gone")
    answer = it.arm.call("DELETE", f"{it.path}/virtualMachines/{gone[0]}")
    accepted(answer)
    return {"delete.gone": str(answer.status)}


@contextmanager
def locked(stage: Stage, path: str) -> Iterator[None]:
    lock = f"{path}/providers/Microsoft.Authorization/locks/{stage.run}"
    body = {"properties": {"level": "CanNotDelete", "notes": NOTES}}
    stage.arm.call("PUT", lock, body, LOCKS).must()
    try:
        in_force(stage, path, True)
        yield
    finally:
        answer = stage.arm.call("DELETE", lock, version=LOCKS)
        # A lock ends with what it is on.
        if answer.status != 404:
            answer.must()
            in_force(stage, path, False)


def in_force(stage: Stage, path: str, wanted: bool) -> None:
    """Waits until ARM refuses, or no longer refuses, a DELETE of something below that is not there."""
    for _ in range(LOCK_LOOKS):
        answer = stage.arm.call("DELETE", f"{path}/extensions/{stage.run}")
        if (answer.code == "ScopeLocked") == wanted:
            return
        stage.arm.clock.wait(LOCK_PAUSE)
    raise Failed("the lock is " + ("not in force" if wanted else "still in force after its end"))


@settles("lock.set", "lock.below", "lock.above")
def lock_on_the_set(stage: Stage) -> Facts:
    it = stage.uniform
    machine = it.some(1)[0]
    with locked(stage, it.path):
        below = [one["name"] for one in stage.locks()]
        at = f"{machine.path}/providers/Microsoft.Authorization/locks"
        above = [one["name"] for one in it.arm.list(at, LOCKS)]
        answer = it.delete([machine])
        seen = accepted(answer)
        if answer.ok:
            it.arm.finish(answer)
    shown = {True: "shown", False: "not shown"}
    return {"lock.set": seen, "lock.below": shown[stage.run in below], "lock.above": shown[stage.run in above]}


@settles("lock.machine")
def lock_on_a_machine(stage: Stage) -> Facts:
    it = stage.uniform
    machine = it.some(1)[0]
    with locked(stage, machine.path):
        answer = it.delete([machine])
        seen = accepted(answer)
        if answer.ok:
            it.arm.finish(answer)
    return {"lock.machine": seen}


@settles("protection.flexible")
def protection_flexible(stage: Stage) -> Facts:
    it = stage.flexible
    machine = it.some(1)[0]
    seen = protect(it, machine, True, False)
    protect(it, machine, False, False)
    return {"protection.flexible": seen}


@settles("lock.flexible")
def lock_in_a_batch(stage: Stage) -> Facts:
    it = stage.flexible
    first, second = it.some(2)
    with locked(stage, first.path):
        answer = it.delete([first, second])
        seen = accepted(answer)
        if not answer.ok:
            return {"lock.flexible": seen}
        it.arm.finish(answer)
        left = {one.id for one in it.quiet()} & {first.id, second.id}
    ends = {0: "both go", 1: "the locked one stays" if first.id in left else "the other one stays", 2: "both stay"}
    return {"lock.flexible": ends[len(left)]}


@settles("image.ephemeral")
def image_ephemeral(stage: Stage) -> Facts:
    before, after = image_alone(stage, stage.ephemeral)
    return {"image.ephemeral": kept(before["osDisk"], after["osDisk"], "stays")}


@settles("etag.image", "image.osDisk", "image.dataDisks", "image.newMachine", "id.reused")
def image_then_raise(stage: Stage) -> Facts:
    it = stage.uniform
    it.quiet()
    etag = it.etag()
    before, after = image_alone(stage, it)
    seen = {
        "etag.image": moved(etag, it.etag()),
        "image.osDisk": kept(before["osDisk"], after["osDisk"], "stays"),
        "image.dataDisks": kept({"all": before["dataDisks"]}, {"all": after.get("dataDisks")}, "stay"),
    }
    there, ever = {one.id for one in it.quiet()}, set(it.ever_listed)
    it.arm.finish(it.patch(capacity_of(it, it.capacity() + 1)))
    new = next((one for one in it.quiet() if one.id not in there), None)
    if new is None:
        raise Failed("the raise made no machine")
    asked = {key: before["osDisk"][key] for key in ("diskSizeGB", "managedDisk")}
    kind = {"storageAccountType": new.os_disk["managedDisk"].get("storageAccountType")}
    given = {"diskSizeGB": new.os_disk.get("diskSizeGB"), "managedDisk": kind}
    return {
        **seen,
        "image.newMachine": kept(asked, given, "as the model was"),
        "id.reused": "yes" if new.id in ever else "no",
    }


def image_alone(stage: Stage, it: ScaleSet) -> tuple[Json, Json]:
    it.quiet()
    before = it.storage()
    it.arm.finish(it.patch(storage({"imageReference": image(stage.versions[1])})))
    after = it.storage()
    if after["imageReference"]["version"] != stage.versions[1]:
        raise Failed("the model does not show the new image")
    return before, after


def kept(before: Json, after: Json, word: str) -> str:
    """`word`, or what changed."""
    keys = sorted({*before, *after})
    changes = [f"{key} {before.get(key)} becomes {after.get(key)}" for key in keys if before.get(key) != after.get(key)]
    return f"changes ({'; '.join(changes)})" if changes else word
