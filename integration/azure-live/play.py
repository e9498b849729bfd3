"""Plays the probe against the emulator: with each switch in each position, with trouble on the way, stopped, killed and
started again. The probe must call each position right, and leave behind only what it did not make."""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from beliefs import BELIEFS, NOT_EMULATED, NOT_SETTLED
from emulated import GROUP, Emulator, Json, Wrong, known_switches, wait
from neighbours import Neighbours

Changes = dict[str, str]

HERE = pathlib.Path(__file__).parent


def for_both(fact: str, seen: str) -> Changes:
    return {f"{fact}.{kind}": seen for kind in ("uniform", "flexible")}


# Each position of each switch that is not the default, and the facts that it changes.
SWITCHES: dict[str, dict[Any, Changes]] = {
    "etagStaysOnCapacity": {True: for_both("etag.raise", "stays")},
    "etagStaysOnDelete": {True: for_both("etag.delete", "stays")},
    "etagMovesOnSameWrite": {True: {"etag.equalPut": "moves", "etag.sameNumber": "moves"}},
    "capacityFalls": {
        "shownLate": for_both("capacity.falls", "at accept, shown late"),
        "whenDone": for_both("capacity.falls", "at the end"),
    },
    "idsReused": {True: {"id.reused": "yes"}},
    "busyRefused": {True: {"write.busy": "refused (Conflict)"}},
    "tagsFlipFlag": {True: {"latest.tags": "falls"}},
    "sameModelFlipsFlag": {True: {"latest.equalPut": "falls", "latest.equalDisk": "falls"}},
    "protectionWriteFlipsFlag": {True: {"latest.protection": "falls"}},
    "goneDeleteFails": {True: {"delete.gone": "404"}},
    "lockedVmStopsBatch": {True: {"lock.flexible": "refused (ScopeLocked)"}},
    "imagePatchResetsDisks": {True: dict.fromkeys(("image.osDisk", "image.newMachine", "image.ephemeral"), "changes")},
    "imagePatchDropsDataDisks": {True: {"image.dataDisks": "changes"}},
}
# They decide no fact of the probe: a reimage, when throttled calls are served again, an attached machine.
BESIDE = {
    # No load balancer stands on the stage.
    "adminDownResets", "busyBalancer", "deletingInterfaceBlocks", "uniformAdminRefused", "uniformElementsHideInterface",
    "reimageTakesNewest", "tokensByMinute", "attachLeavesCapacity",
    # The probe neither stops a machine nor writes an autoscale setting.
    "startRefusedAtOnce", "failedStartLeavesVm", "deallocatedKeepsFlag", "stoppedHidesHealth", "powerBusyRefused",
    "autoscaleForgetsCooldown", "autoscaleOnUnlessSaid", "autoscalePatchReplaces", "autoscaleAnswersPlain",
}
# One that refuses a write during an operation hides when the capacity falls.
ALONE = {"busyRefused", "capacityFalls"}
# What an emulator may not serve; a run on Azure must settle it.
MAY_BE_MISSING = "etag.extension"


class Play:
    """The probe on an emulator of its own."""

    def __init__(self, options: argparse.Namespace, switches: Json, rules: list[Json] | None = None) -> None:
        self.scratch: pathlib.Path = options.scratch
        self.emulator = Emulator(options.program, self.scratch, switches, rules or [])
        self.probes: list[subprocess.Popen[str]] = []
        words = [f"{name}: {json.dumps(value)}" for name, value in switches.items()]
        self.title = f"emulator set to {', '.join(words) or 'its defaults'}"

    def begin(self, *more: str, url: str = "") -> subprocess.Popen[str]:
        (self.scratch / "report.json").unlink(missing_ok=True)
        about = self.emulator.about
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "AZURE_LIVE_SUBSCRIPTION": about["subscription"],
            "AZURE_LIVE_RESOURCE_GROUP": GROUP,
            "AZURE_TENANT_ID": about["tenant"],
            "AZURE_CLIENT_ID": "probe",
            "AZURE_CLIENT_SECRET": "any",
        }
        command = [sys.executable, "-B", str(HERE / "probe.py"), "--emulator", url or self.emulator.url]
        command += ["--title", self.title, "--report", str(self.scratch / "report.json"), *more]
        with (self.scratch / "probe.out").open("w") as out:
            probe = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True
            )
        self.probes.append(probe)
        return probe

    def end(self) -> None:
        for probe in self.probes:
            probe.kill()
            probe.wait()
        self.emulator.end()

    def ends(self, probe: subprocess.Popen[str], *wanted: int) -> str:
        try:
            code = probe.wait(120)
        except subprocess.TimeoutExpired:
            raise Wrong(f"the probe does not end: {self.said()}") from None
        if code not in wanted:
            raise Wrong(f"the probe ended with {code} in place of {wanted[0]}: {self.said()}")
        return self.said()

    def wrote(self, method: str, part: str) -> bool:
        return any(one["method"] == method and part in one["path"] for one in self.emulator.writes())

    def said(self) -> str:
        return (self.scratch / "probe.out").read_text()

    def seen(self) -> dict[str, str]:
        report = json.loads((self.scratch / "report.json").read_text())
        return {fact: one["seen"] for fact, one in report.items()}

    def must_see(self, changes: Changes) -> None:
        wanted = {fact: changes.get(fact, belief.believed) for fact, belief in BELIEFS.items()}
        for fact, seen in self.seen().items():
            word = seen.partition(" (")[0] if " (" not in wanted[fact] else seen
            if word != wanted[fact] and not (fact == MAY_BE_MISSING and seen == NOT_EMULATED):
                raise Wrong(f"{fact} is called {seen!r} and is {wanted[fact]!r}\n{self.said()}")
        if missing := set(wanted) - set(self.seen()):
            raise Wrong(f"nothing was said of {missing}")


@contextmanager
def play(options: argparse.Namespace, switches: Json, rules: list[Json] | None = None) -> Iterator[Play]:
    one = Play(options, switches, rules)
    try:
        yield one
        one.emulator.must_be_as_before()
    finally:
        one.end()


def called_right(options: argparse.Namespace, switches: Json, rules: list[Json] | None = None) -> None:
    changes: Changes = {}
    for name, value in switches.items():
        changes |= SWITCHES[name][value]
    with play(options, switches, rules) as one:
        print(one.ends(one.begin(*["--only-changes"] * bool(switches or rules)), 0), end="", flush=True)
        one.must_see(changes)


def positions(options: argparse.Namespace) -> None:
    known = known_switches(options.program, options.scratch)
    if strange := known - set(SWITCHES) - BESIDE:
        raise Wrong(f"say in play.py which facts these switches decide, or that they decide none: {sorted(strange)}")
    for name in sorted(set(SWITCHES) - known):
        print(f"the emulator has no switch {name}: its other positions are not played")
    called_right(options, {})
    for name in sorted(known & set(SWITCHES)):
        for value in SWITCHES[name]:
            called_right(options, {name: value})
    together = known & set(SWITCHES) - ALONE
    called_right(options, {name: next(iter(SWITCHES[name])) for name in sorted(together)})


def refusals(options: argparse.Namespace) -> None:
    """Trouble that passes changes no finding; trouble that lasts is said, and all is removed."""
    busy = {"method": "PATCH", "status": 429, "retryAfter": 7, "skip": 1, "times": 2}
    called_right(options, {}, [busy, {"method": "GET", "status": 503, "skip": 5, "times": 2}])
    forbidden = {"method": "POST", "path": "/delete", "status": 403, "code": "AuthorizationFailed", "times": 99}
    with play(options, {}, [forbidden]) as one:
        one.ends(one.begin(), 1)
        bad = {fact for fact, seen in one.seen().items() if seen.startswith(NOT_SETTLED)}
        if not {"lock.set", "capacity.falls.uniform"} <= bad or "etag.tags" in bad:
            raise Wrong(f"where no delete is allowed these are not settled: {bad}")
    full = {"method": "PUT", "path": "-flexible", "status": 409, "code": "QuotaExceeded", "times": 9}
    with play(options, {}, [full]) as one:
        if "QuotaExceeded" not in one.ends(one.begin(), 1):
            raise Wrong(f"a set that is refused is not named: {one.said()}")
    held = {"method": "DELETE", "path": "-uniform?", "status": 409, "code": "ScopeLocked", "times": 2}
    with play(options, {}, [held]) as one:
        one.ends(one.begin(), 0)
    stuck = {**held, "times": 5}
    with play(options, {}, [stuck]) as one:
        if "NOT REMOVED" not in one.ends(one.begin(), 1):
            raise Wrong(f"what cannot be removed is not named: {one.said()}")
        one.ends(one.begin(), 0)


def stops(options: argparse.Namespace) -> None:
    """Stopped in the middle, and again while it removes, it removes all; killed under a lock, the next run does."""
    slow = {"delayMs": 400, "times": 99}
    rules = [{**slow, "method": "PATCH", "skip": 4}, {**slow, "method": "DELETE", "path": "forceDeletion"}]
    with play(options, {}, rules) as one:
        probe = one.begin()
        for method, part in (("PATCH", ""), ("DELETE", "-uniform")):
            wait(f"a {method}", functools.partial(one.wrote, method, part))
            probe.send_signal(signal.SIGTERM)
        one.ends(probe, 130)
    with play(options, {}, [{**slow, "method": "DELETE", "path": "/extensions/"}]) as one:
        probe = one.begin()
        wait("a lock", functools.partial(one.wrote, "PUT", "/locks/"))
        probe.kill()
        one.ends(probe, -signal.SIGKILL)
        if len(one.emulator.made()) != 3:
            raise Wrong("the kill came too late to leave anything")
        if "/locks/" not in one.ends(one.begin(), 0):
            raise Wrong("what an earlier run left is not named before it is removed")


def as_live(options: argparse.Namespace) -> None:
    """The way of a real run, with what the emulator does not serve beside it."""
    with play(options, {}) as one, Neighbours(one.emulator.url) as beside:
        probe = one.begin("--as-live", url=beside.url)
        said, seen = one.ends(probe, 0, 1), one.seen()[MAY_BE_MISSING]
        if (probe.returncode == 1) != seen.startswith(NOT_SETTLED):
            raise Wrong(f"a fact that is {seen!r} ends a real run with {probe.returncode}")
        one.must_see({MAY_BE_MISSING: seen})
        if "US dollars" not in said:
            raise Wrong("the cost is not said before the run")
        if beside.resources or beside.made != 1:
            raise Wrong(f"networks made: {beside.made}, left: {list(beside.resources)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    options = parser.parse_args()
    # A signal ends what was started here, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    began = time.monotonic()
    try:
        for part in (positions, refusals, stops, as_live):
            part(options)
    except Wrong as wrong:
        print(f"azure-live: {wrong}", file=sys.stderr)
        return 1
    print(f"azure-live: the probe calls the emulator right in every position, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
