"""Measures a daemon of one size after another, and judges its memory and what it did; times are only told."""

import argparse
import json
import re
import signal
import statistics
import sys
import time
import traceback

import house
from house import Daemon, Emulator, Failed, get, image, name_of, pool_text, subscription, wait

# MiB, whatever the size: a million machines have to fit.
MEMORY = 512
# Pools that change while others roll, one after another.
CHANGES = 5
# Of all pools, those that roll meanwhile, and how many at least and at most.
BUSY = (0.1, 2, 50)
SET = re.compile(r"/virtualMachineScaleSets/(pool-\d+)", re.IGNORECASE)


class Size:
    def __init__(self, program, scratch, pools, machines, options):
        self.pools, self.machines, self.idle = pools, machines, options.idle
        self.home = scratch / f"{pools}x{machines}"
        (self.home / "pools").mkdir(parents=True)
        self.program, self.table, self.wrong = program, {}, []
        self.rolled, self.daemon = set(), None
        # The last comes over the API.
        for n in range(pools - 1):
            self.write(n)

    def write(self, n, version="1.0.0"):
        aside = self.home / "pools" / ".aside"
        aside.write_text(pool_text(n, self.machines, version))
        aside.rename(self.home / "pools" / f"{name_of(n)}.yaml")

    def apply(self, n, version="1.0.0"):
        url = f"{self.daemon.url}/api/v1/pools/{name_of(n)}?why=scale"
        headers = {"Content-Type": "application/yaml", "Idempotency-Key": f"scale-{time.time_ns()}"}
        get(url, pool_text(n, self.machines, version).encode(), "PUT", headers)

    def run(self):
        self.emulator = Emulator(self.program, self.home, self.pools, self.machines)
        try:
            self.start("first start")
            self.apply(self.pools - 1)
            self.looked("first look at all")
            self.daemon.stop()
            self.start("restart")
            self.looked("look at all again")
            self.quiet()
            self.change()
            self.judge()
            self.daemon.stop()
        finally:
            if self.daemon:
                self.daemon.kill()
            self.emulator.kill()

    def start(self, what):
        mark = self.emulator.mark()
        self.daemon = Daemon(self.program, self.home, self.emulator)
        first = wait("a first turn", lambda: self.emulator.requests(mark), 120, 0.05)[0]
        self.table[f"{what}, to the first turn"] = (f"{first['at'] / 1000 - self.daemon.began:.2f} s", "2 s")
        self.daemon.open()

    def looked(self, what):
        """Every pool had a turn of this process."""
        turns = "poolkeeper_pool_last_turn_timestamp_seconds"

        def all_of_them():
            self.daemon.must_run()
            return len(self.daemon.metrics().get(turns, {})) == self.pools

        wait("every pool has a turn", all_of_them, 60 + self.pools * self.machines / 1000)
        rows = self.pools * self.machines
        took, worked = time.time() - self.daemon.began, self.daemon.worked()
        self.table[f"{what}, took"] = (f"{took:.1f} s", "")
        self.table[f"{what}, work a machine"] = (f"{worked / rows * 1e6:.1f} µs", "")
        self.per_row = worked / rows
        self.weigh(f"{what}, memory now and at most")

    def weigh(self, what):
        now, most = self.daemon.memory()
        self.table[what] = (f"{now:.0f} {most:.0f} MiB", f"{MEMORY} MiB")
        if most >= MEMORY:
            self.wrong.append(f"{what}: {most:.0f} MiB")

    def calls(self):
        calls = self.daemon.metrics().get("poolkeeper_arm_calls_total", {})
        return sum(calls.values())

    def quiet(self):
        """Nothing is to be done: what the daemon works beside looking at pools, which each is every five minutes."""
        time.sleep(2)
        calls, worked, began = self.calls(), self.daemon.worked(), time.monotonic()
        time.sleep(self.idle)
        took, worked = time.monotonic() - began, self.daemon.worked() - worked
        self.table["idle, calls"] = (f"{self.calls() - calls:.0f}", "")
        self.table["idle, work"] = (f"{100 * worked / took:.1f} %", "5 % and the looks")
        looks = self.per_row * self.pools * self.machines / 300
        self.table["looks at all, each five minutes"] = (f"{100 * looks:.1f} %", "")

    def change(self):
        """While some pools roll, others change."""
        share, least, most = BUSY
        # One of each subscription before the second of any: a pool that rolls is looked at often, within its limits.
        files = sorted(range(self.pools - 1), key=lambda n: (n % house.SETS_EACH, n))
        count = min(max(int(self.pools * share), least), most)
        busy, ones = files[:count], files[count:][:CHANGES]
        mark = self.emulator.mark()
        for n in busy:
            self.roll(n, self.write)
        wait("the busy pools roll", lambda: len(self.asked_for(mark)) == len(busy), 300)
        self.soon("a file changes", ones, self.write, "7 s")
        self.soon("applied over the API", [self.pools - 1], self.apply, "5 s")
        self.weigh("while some roll, memory now and at most")

    def roll(self, n, how):
        self.rolled.add(n)
        how(n, "1.0.1")

    def asked_for(self, mark):
        return {SET.search(one["path"])[1] for one in self.emulator.changes(mark) if SET.search(one["path"])}

    def soon(self, what, ones, how, limit):
        took = []
        for n in ones:
            mark, began = self.emulator.mark(), time.time()
            self.roll(n, how)

            def first():
                of = [one for one in self.emulator.changes(mark) if f"/{name_of(n)}" in one["path"]]
                return of and of[0]

            took.append(wait(f"{name_of(n)} is acted on", first, 120, 0.1)["at"] / 1000 - began)
        said = f"{statistics.median(took):.1f} {max(took):.1f} s"
        self.table[f"{what}, to the first call (median, most)"] = (said, limit)

    def judge(self):
        """Everything that was asked is done, and nothing else was touched."""
        self.wrong += [f"the daemon says: {json.dumps(line)}" for line in self.daemon.errors()[:3]]
        metrics = self.daemon.metrics()
        for family in ("invariant_violations_total", "pool_frozen", "pool_gaps", "arm_throttled_total"):
            bad = {k: v for k, v in metrics.get("poolkeeper_" + family, {}).items() if v}
            if bad:
                self.wrong.append(f"{family}: {bad}")
        # A pool that rolls is looked at as often as its subscription's limits allow, and waits where they do not.
        failed = [line for line in self.daemon.said() if line.get("message", "").startswith("failed:")]
        failed = [json.dumps(line) for line in failed if "could not leave in time" not in line["message"]]
        self.wrong += [f"a turn failed: {line}" for line in failed[:3]]
        others = self.asked_for(0) - {name_of(n) for n in self.rolled}
        if others:
            self.wrong.append(f"changed without being asked: {sorted(others)[:5]}")
        for n in self.rolled:
            wanted = image("1.0.1")
            if wanted not in self.shown(n):
                self.wrong.append(f"{name_of(n)} has another model")

    def shown(self, n):
        path = f"/subscriptions/{subscription(n)}/{house.GROUP}/virtualMachineScaleSets/{name_of(n)}"
        headers = {"Authorization": "Bearer any"}
        return get(f"{self.emulator.url}{path}?api-version=2024-11-01", headers=headers)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--scratch", required=True, type=house.pathlib.Path)
    options.add_argument("--sizes", default="10x100,100x100")
    options.add_argument("--idle", type=float, default=15)
    options = options.parse_args()
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    failed = False
    for size in options.sizes.split(","):
        pools, machines = map(int, size.split("x"))
        size = Size(options.program, options.scratch, pools, machines, options)
        try:
            size.run()
        except Failed as error:
            size.wrong.append(str(error))
        except Exception:
            size.wrong.append(traceback.format_exc())
        print(f"{pools} pools of {machines} machines", flush=True)
        for name, (value, limit) in size.table.items():
            print(f"  {name:<48} {value:>16}  {limit and 'of ' + limit}", flush=True)
        for one in size.wrong:
            print(f"scale: {one}", file=sys.stderr)
        failed |= bool(size.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
