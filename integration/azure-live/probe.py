"""Settles what no document of Azure decides: makes three scale sets, tries each fact on them, removes them."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import sys
from dataclasses import asdict
from types import FrameType

import experiments
from arm import PUBLIC_ARM, PUBLIC_LOGIN, Arm, Clock, EmulatedClock, Failed, az_login, client_secret
from beliefs import NONE, NOT_EMULATED, Finding
from stage import MACHINES, MOST_MACHINES, PREFIX, SIZE, TAG, Place, Stage

# After so long a run stops and removes what it made; a usual one takes about an hour.
HOURS = 2
REMOVAL_HOURS = 1
# A column of the report, in letters.
WIDEST = 60
# Rough: US dollars for a machine of SIZE with its disks, an hour, by the list prices of East US.
PRICE = 0.08


class Stopped(BaseException):
    """A signal. It passes each handler of errors on its way to the removal."""


class Signals:
    """Raises `Stopped` once, and never while things are removed."""

    def __init__(self) -> None:
        self.raises, self.heard = True, ""
        for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(one, self.hear)

    def hear(self, number: int, _: FrameType | None) -> None:
        self.heard = signal.Signals(number).name
        if self.raises:
            self.raises = False
            raise Stopped(self.heard)

    def raise_again(self) -> None:
        self.raises = True
        if self.heard:
            raise Stopped(self.heard)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="integration/azure-live/run")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--live", action="store_true", help="on the subscription that the environment names")
    place.add_argument("--emulator", metavar="URL", help="on an emulator whose time stands still")
    parser.add_argument("--yes", action="store_true", help="do not ask before something is made that costs money")
    parser.add_argument("--as-live", action="store_true", help="with --emulator: all that a real run does")
    parser.add_argument("--report", metavar="FILE", type=pathlib.Path, help="write the findings as JSON too")
    parser.add_argument("--title", default="", help="what the report is about")
    parser.add_argument("--only-changes", action="store_true", help="print no fact that is as believed")
    options = parser.parse_args()
    if options.live and not options.yes and not sys.stdin.isatty():
        parser.error("this costs money: say --yes, or start it at a terminal and answer")
    return options


def place_of_environment() -> Place:
    names = ("AZURE_LIVE_SUBSCRIPTION", "AZURE_LIVE_RESOURCE_GROUP", "AZURE_LIVE_LOCATION")
    subscription, group, location = (os.environ.get(name, "") for name in names)
    if not subscription or not group:
        raise Failed(f"{names[0]} and {names[1]} name the subscription and the resource group to use")
    for name, value in zip(names, (subscription, group, location), strict=True):
        if not re.fullmatch(r"[\w.()-]*", value):
            raise Failed(f"{name} holds a character that no such name has")
    return Place(subscription, group, location)


def open_stage(options: argparse.Namespace) -> Stage:
    place = place_of_environment()
    if options.emulator:
        clock: Clock = EmulatedClock(options.emulator)
        arm = Arm(options.emulator, client_secret(options.emulator, PUBLIC_ARM), clock)
    else:
        clock = Clock()
        if os.environ.get("AZURE_CLIENT_SECRET"):
            token = client_secret(PUBLIC_LOGIN, PUBLIC_ARM)
        elif shutil.which("az"):
            token = az_login(place.subscription)
        else:
            raise Failed("set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or install az and log in")
        arm = Arm(PUBLIC_ARM, token, clock)
    group = arm.get(place.path, "2021-04-01")
    place = Place(place.subscription, place.group, place.location or group["location"])
    return Stage(arm, place, bool(options.emulator) and not options.as_live)


def announce(stage: Stage, left: list[str]) -> None:
    place = stage.place
    counts = ", ".join(f"{kind} {number}" for kind, number in MACHINES.items())
    print(f"resource group  {place.group} in subscription {place.subscription}, location {place.location}")
    print(f"makes           {stage.run}: three scale sets of {SIZE} ({counts} machines), all tagged {TAG}")
    if not stage.emulated:
        cost = MOST_MACHINES * HOURS * PRICE
        print("                and a virtual network without a public address")
        print(f"costs           at most {MOST_MACHINES} machines for {HOURS} hours: roughly {cost:.2f} US dollars by")
        print(f"                list prices of East US ({PRICE:.2f} for a machine and hour, disks included)")
    print("locks           puts CanNotDelete locks on these sets and machines, and takes them off")
    print("removes         all of it at the end, also after a failure or a signal, and what an earlier run left:")
    for path in left or ["nothing is left of an earlier run"]:
        print(f"                {path}")
    print("                Do not start two runs in one resource group: each removes what the other made.", flush=True)


def agreed(options: argparse.Namespace) -> bool:
    if options.emulator or options.yes:
        return True
    return input("Type yes to begin: ").strip() == "yes"


def remove(stage: Stage) -> bool:
    """Removes what this suite made here."""
    stage.arm.clock.limit(REMOVAL_HOURS * 3_600)
    try:
        wrong = stage.remove()
    except Failed as failed:
        wrong = [str(failed)]
    for line in wrong:
        print(f"NOT REMOVED {line}", flush=True)
    if wrong:
        print(f"Remove what begins with {PREFIX} in {stage.place.group} by hand, or start this again.", flush=True)
    return not wrong


def settle(stage: Stage, signals: Signals) -> list[Finding]:
    findings: list[Finding] = []
    stage.arm.clock.limit(HOURS * 3_600)
    try:
        stage.build()
        for one in experiments.run(stage):
            findings.append(one)
            if not stage.emulated:
                print(f"  {one.fact}: {one.seen}", flush=True)
    finally:
        signals.raises = False
    return findings


def report(options: argparse.Namespace, findings: list[Finding]) -> None:
    shown = [one for one in findings if one.setting != NONE or not options.only_changes]
    rows = [("fact", "believed", "seen", "setting to change")]
    rows += [(one.fact, one.believed, one.seen, one.setting) for one in shown]
    if options.title:
        print(options.title)
    widths = [min(WIDEST, max(len(row[column]) for row in rows)) for column in range(4)]
    for row in rows if shown else ():
        cells = (text[:width].ljust(width) for text, width in zip(row, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())
    settled = sum(one.is_settled for one in findings)
    other = sum(one.setting != NONE for one in findings)
    print(f"  {settled} of {len(findings)} facts settled, {other} not as believed", flush=True)
    if options.report:
        options.report.write_text(json.dumps({one.fact: asdict(one) for one in findings}))


def run(options: argparse.Namespace, signals: Signals) -> int:
    stage = open_stage(options)
    left = stage.found()
    if not stage.emulated or left:
        announce(stage, left)
    if not agreed(options):
        print("nothing was made")
        return 2
    if left:
        signals.raises = False
        if not remove(stage):
            return 1
        signals.raise_again()
    try:
        findings = settle(stage, signals)
    finally:
        removed = remove(stage)
    report(options, findings)
    signals.raise_again()
    fits = all(one.is_settled or (stage.emulated and one.seen == NOT_EMULATED) for one in findings)
    return 0 if fits and removed else 1


def main() -> int:
    signals = Signals()
    try:
        return run(arguments(), signals)
    except Failed as failed:
        print(f"azure-live: {failed}", file=sys.stderr)
        return 1
    except Stopped as stopped:
        print(f"azure-live: stopped by {stopped}", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
