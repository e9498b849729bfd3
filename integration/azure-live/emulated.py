"""An emulator as a process: what it is given at the start, and what it says of itself."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

WAIT = 60
SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
GROUP = "rg"
OTHERS = ("web", "poolkeeper-live-lookalike")
# What a run may write: things with its own name.
OWN = re.compile(r"/poolkeeper-live-[0-9a-f]{8}\b")


class Wrong(Exception):
    """What this suite fails with; the text is for people."""


def wait(what: str, until: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if found := until():
            return found
        time.sleep(0.02)
    raise Wrong(f"waited {WAIT} s in vain: {what}")


class Emulator:
    """Its time stands still. Two sets and a lock are there that look like those of the probe, and are not."""

    def __init__(self, program: str, scratch: pathlib.Path, switches: Json, rules: list[Json]) -> None:
        group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
        scope = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{OTHERS[0]}"
        seed = {
            "scaleSets": [
                {"name": OTHERS[0], "capacity": 2, "tags": {"poolkeeper-live": "poolkeeper-live-other"}},
                {"name": OTHERS[1], "capacity": 1, "tags": {"made": "by hand"}},
            ],
            "locks": [{"scope": scope, "name": "poolkeeper-live-keep", "level": "CanNotDelete"}],
            "settings": {"record": True, "throttling": False, "pollRetryAfter": 0, "switches": switches},
            "faults": {"rules": rules},
        }
        file, self.log, out = (scratch / name for name in ("seed.json", "emulator.log", "emulator.out"))
        file.write_text(json.dumps(seed))
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--speed", "0"]
        command += ["--seed-file", str(file)]
        with out.open("wb") as stdout, self.log.open("wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        self.about: Json = wait("the emulator starts", lambda: self.first_words(out))
        self.url: str = self.about["url"]
        self.before = self.others()

    def first_words(self, out: pathlib.Path) -> Json:
        ended, text = self.process.poll() is not None, out.read_text()
        said: Json = json.loads(text) if text.endswith("\n") else {}
        if ended or (said and said["kind"] != "Emulator"):
            self.end()
            raise Wrong(f"the emulator does not start: {text}{self.log.read_text()}")
        return said

    def get(self, what: str) -> Json:
        with urllib.request.urlopen(f"{self.url}/_control/{what}", timeout=WAIT) as answer:
            found: Json = json.load(answer)
            return found

    def sets(self) -> dict[str, Json]:
        return {one["id"].rsplit("/", 1)[1]: one for one in self.get("state")["scaleSets"]}

    def others(self) -> dict[str, Json]:
        return {name: one for name, one in self.sets().items() if name in OTHERS}

    def made(self) -> list[str]:
        return [name for name in self.sets() if name not in OTHERS]

    def writes(self) -> list[Json]:
        return [one for one in self.get("record")["requests"] if one["method"] not in ("GET", "HEAD")]

    def must_be_as_before(self) -> None:
        if made := self.made():
            raise Wrong(f"not removed: {made}")
        if self.others() != self.before:
            raise Wrong(f"sets changed that the probe did not make: {self.others()}")
        if strange := [one["path"] for one in self.writes() if not OWN.search(one["path"])]:
            raise Wrong(f"writes to what the probe did not make: {strange}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def known_switches(program: str, scratch: pathlib.Path) -> set[str]:
    """Those of the seed, from the refusal of one that is none."""
    try:
        Emulator(program, scratch, {"no such switch": True}, []).end()
    except Wrong as wrong:
        expected = str(wrong).partition("expected one of")[2]
        if names := set(re.findall(r"`(\w+)`", expected)):
            return names
        raise
    raise Wrong("the emulator takes a switch that is none")
