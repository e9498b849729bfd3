"""Loads one daemon in every way for hours, samples what it holds, and judges that none of it grows."""

import argparse
import http.client
import itertools
import json
import pathlib
import re
import signal
import sqlite3
import statistics
import sys
import time
import traceback
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scale"))

from house import Daemon, Emulator, Failed, get, name_of, pool_text

POOLS, MACHINES = 6, 20
# Seconds from one deed to the next, and from one sample to the next.
PACE, SAMPLE = 2, 15
# Of the whole time, what is left out: caches and allocators fill first.
WARM = 1 / 3
# What is no growth: a part of what there was, and so much more.
PART = 0.1
SLACK = {"memory": 8 << 20, "descriptors": 6, "threads": 2, "bytes a row": 200}
# Rows of these are kept for days, whatever happens; those of the others are as many as there are pools and machines.
KEPT_FOR_DAYS = {"history", "audits", "claims", "entries", "asks"}
# Azure's bad moments: the first calls to a scale set after each.
FAULTS = [
    {"method": "GET", "path": "/virtualMachines?", "times": 3, "status": 500},
    {"method": "GET", "path": "/virtualMachineScaleSets/", "times": 2, "status": 429},
    {"method": "POST", "path": "/virtualMachineScaleSets/", "times": 1, "status": 503},
]


class Soak:
    def __init__(self, program, scratch):
        self.home, self.versions, self.counts = scratch, [0] * POOLS, [MACHINES] * POOLS
        (scratch / "pools").mkdir(parents=True)
        for n in range(POOLS):
            self.write(n)
        self.samples, self.done, self.daemon = [], 0, None
        self.emulator = Emulator(program, scratch, POOLS, MACHINES)
        self.program = program

    def write(self, n):
        aside = self.home / "pools" / ".aside"
        aside.write_text(pool_text(n, self.counts[n], f"1.0.{self.versions[n]}"))
        aside.rename(self.home / "pools" / f"{name_of(n)}.yaml")

    def run(self, seconds):
        self.daemon = Daemon(self.program, self.home, self.emulator)
        self.daemon.open()
        began, next_sample = time.monotonic(), 0
        for turn in itertools.count():
            # Each deed meets each pool: the round shifts by one after each.
            n, deed = turn % POOLS, turn + turn // POOLS
            passed = time.monotonic() - began
            if passed >= seconds:
                break
            if passed >= next_sample:
                self.sample(passed)
                next_sample += SAMPLE
            self.daemon.must_run()
            self.deeds()[deed % len(self.deeds())](n)
            self.done += 1
            time.sleep(PACE)
        self.sample(seconds)
        self.daemon.stop()

    def deeds(self):
        return [self.roll, self.look, self.resize, self.ask, self.mark, self.follow, self.trouble, self.err]

    def roll(self, n):
        self.versions[n] += 1
        self.write(n)

    def resize(self, n):
        self.counts[n] = MACHINES + (self.counts[n] - MACHINES + 1) % 4
        self.write(n)

    def look(self, n):
        for path in ("", "/status", "/machines", "/plan", "/explain", "/rollout", "/revisions", "/history"):
            self.api(f"/api/v1/pools/{name_of(n)}{path}")
        self.api("/metrics")

    def ask(self, n):
        for verb in ("pause", "resume", "refresh", "retry"):
            self.post(f"{name_of(n)}/{verb}")

    def mark(self, n):
        answer = self.api(f"/api/v1/pools/{name_of(n)}/machines")
        ids = re.findall(r'"id":"([^"]+)"', answer)[:1]
        for one, verb in itertools.product(ids, ("hold", "release", "delete-machine", "undelete")):
            self.post(f"{name_of(n)}/machines/{one}/{verb}")

    def follow(self, _):
        """Streams of events that end because their reader went away."""
        host = self.daemon.url.removeprefix("http://")
        for _ in range(3):
            line = http.client.HTTPConnection(host, timeout=10)
            line.request("GET", "/api/v1/events")
            line.getresponse().read1(64)
            line.close()

    def trouble(self, n):
        get(f"{self.emulator.url}/_control/faults", json.dumps({"rules": [FAULTS[n % len(FAULTS)]]}).encode())

    def err(self, n):
        self.api("/api/v1/pools/none")
        self.post(f"{name_of(n)}/machines/none/hold")
        (self.home / "pools" / "bad.yaml").write_text("kind: Pool\nname: [\n")
        time.sleep(PACE * 2)
        (self.home / "pools" / "bad.yaml").unlink()

    def post(self, path):
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"soak-{time.time_ns()}"}
        return self.api(f"/api/v1/pools/{path}", b'{"why":"soak"}', "POST", headers)

    def api(self, path, *more):
        """A refusal is an answer; a fault of ours is not."""
        try:
            return get(self.daemon.url + path, *more)
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise Failed(f"{path}: {error.code} {error.read()[:500]}") from error
            return ""

    def sample(self, passed):
        process = pathlib.Path(f"/proc/{self.daemon.process.pid}")
        files = [self.home / f"store.db{end}" for end in ("", "-wal")]
        size, rows = sum(file.stat().st_size for file in files if file.exists()), self.rows()
        self.samples.append({
            "at": passed, "memory": int(self.daemon.memory()[0] * (1 << 20)), "rows": rows, "store": size,
            "descriptors": len(list((process / "fd").iterdir())), "threads": len(list((process / "task").iterdir())),
            "bytes a row": size / max(sum(rows.values()), 1),
        })
        (self.home / "samples.json").write_text(json.dumps(self.samples))

    def rows(self):
        store = sqlite3.connect(f"file:{self.home / 'store.db'}?mode=ro", uri=True, timeout=30)
        try:
            names = [name for (name,) in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {name: store.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
        finally:
            store.close()

    def judge(self):
        """The middle third and the last one, each by its median: a sample in the middle of a turn counts little."""
        warm = self.samples[int(len(self.samples) * WARM):]
        before, after = warm[:len(warm) // 2], warm[len(warm) // 2:]
        wrong = []
        for what, slack in SLACK.items():
            old, new = (statistics.median(one[what] for one in some) for some in (before, after))
            print(f"  {what:<14} {old:>14,.0f} and then {new:>14,.0f}", flush=True)
            if new > old * (1 + PART) + slack:
                wrong.append(f"{what} grew from {old:,.0f} to {new:,.0f}")
        last = self.samples[-1]["rows"]
        print(f"  {self.done} deeds, {sum(self.versions)} models, {self.samples[-1]['store']:,} bytes of store, {last}", flush=True)
        # A machine that went is remembered for a while.
        most = {"machines": POOLS * MACHINES * 4, "documents": 0, "marks": POOLS * 8}
        for table in set(last) - KEPT_FOR_DAYS:
            if last[table] > most.get(table, POOLS * 2):
                wrong.append(f"{last[table]} rows of {table}")
        wrong += [f"the daemon says: {json.dumps(line)}" for line in self.daemon.errors()[:3]]
        if not any(self.versions) or last["history"] < POOLS:
            wrong.append("it did next to nothing")
        return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--scratch", required=True, type=pathlib.Path)
    options.add_argument("--hours", required=True, type=float)
    options = options.parse_args()
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    soak, wrong = Soak(options.program, options.scratch), []
    try:
        soak.run(options.hours * 3600)
        wrong = soak.judge()
    except Failed as error:
        wrong = [str(error)]
    except Exception:
        wrong = [traceback.format_exc()]
    finally:
        if soak.daemon:
            soak.daemon.kill()
        soak.emulator.kill()
    for one in wrong:
        print(f"soak: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
