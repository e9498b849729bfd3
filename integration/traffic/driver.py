"""Holds requests on the machines of a pool while the daemon replaces and removes them, and counts those that break."""

import argparse
import asyncio
import json
import pathlib
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scale"))

import house
from house import GROUP, Failed, Process, get, wait

SUBSCRIPTION = f"/subscriptions/00000000-0000-0000-0000-000000000000/{GROUP}"
SET = f"{SUBSCRIPTION}/virtualMachineScaleSets/web"
# What is open all the time, for how long each, and how many short ones begin in a second.
LONG, HELD_MS, SHORT = 60, 8_000, 20
# A probe notices a machine after two intervals of five seconds: until then it counts as not available.
PROBE, MIN_READY = 5, "12s"
# Longer than a request.
GRACE = "10s"
# A machine boots in seconds, and a write of the load balancer takes one.
QUICKER = 20
# Whatever happens takes at most this long.
PATIENCE = 420
# What the load balancer counts of requests that broke, and what the machines behind it have to do with it.
BROKEN = {
    "cut": "held by a machine that went",
    "reset": "reset by the load balancer",
    "unanswered": "sent to a machine that was gone",
    "refused": "begun when no machine took any",
}


def image(version):
    return f"{SUBSCRIPTION}/galleries/house/images/base/versions/{version}"


class Emulator(Process):
    def __init__(self, program, home, machines):
        self.home = home
        seed = {
            "scaleSets": [{"name": "web", "capacity": machines, "image": image("1.0.0"), "pools": ["front/web"]}],
            "loadBalancers": [
                {"name": "front", "pools": ["web"], "probeInterval": PROBE, "listen": {"web": "127.0.0.1:0"}},
            ],
            "settings": {"quicker": QUICKER, "throttling": False, "record": True},
        }
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--seed-file", "-"]
        super().__init__(command, home / "emulator.out", home / "emulator.log", json.dumps(seed).encode())
        told = json.loads(wait("the emulator starts", self.told, 60))
        self.url, self.tenant = told["url"], told["tenant"]
        self.front = told["fronts"][0]["address"]

    told = house.Emulator.told

    def state(self):
        self.must_run()
        return json.loads(get(f"{self.url}/_control/state"))

    def rule(self):
        return self.state()["loadBalancers"][0]["rules"][0]

    def serving(self):
        """Machines that take new connections."""
        return sum(1 for one in self.rule()["backends"] if one["takesNew"])

    def machines(self):
        return {one["vmId"] for one in self.state()["scaleSets"][0]["instances"]}

    def writes(self):
        """How often the backend pool was written."""
        asked = json.loads(get(f"{self.url}/_control/record?from=0"))["requests"]
        return sum(1 for one in asked if one["method"] == "PUT" and "/backendaddresspools/" in one["path"].lower())


class Clients(threading.Thread):
    """Requests on connections of their own. Each one that does not end with 200 is broken."""

    def __init__(self, address):
        super().__init__(daemon=True)
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        self.stops, self.done, self.broken, self.first = False, 0, 0, []

    def run(self):
        asyncio.run(self.all())

    async def all(self):
        short, pause = set(), 1 / SHORT
        long = [asyncio.create_task(self.held(n)) for n in range(LONG)]
        due = time.monotonic()
        while not self.stops:
            short.add(asyncio.create_task(self.ask("/")))
            short = {task for task in short if not task.done()}
            due += pause
            await asyncio.sleep(max(0, due - time.monotonic()))
        await asyncio.gather(*long, *short)

    async def held(self, n):
        # They do not all end at once.
        await asyncio.sleep(n * HELD_MS / 1000 / LONG)
        while not self.stops:
            if not await self.ask(f"/hold/{HELD_MS}"):
                await asyncio.sleep(0.1)

    async def ask(self, path):
        began, said, writer = time.monotonic(), "", None
        try:
            reader, writer = await asyncio.open_connection(*self.address)
            writer.write(f"GET {path} HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(), HELD_MS / 1000 + 30)
            said = answer.split(b"\r\n", 1)[0].decode(errors="replace")
        except (OSError, asyncio.TimeoutError) as error:
            said = repr(error)
        finally:
            if writer:
                writer.close()
        self.done += 1
        if said == "HTTP/1.1 200 OK":
            return True
        self.broken += 1
        if len(self.first) < 5:
            self.first.append(f"{path} after {time.monotonic() - began:.1f} s: {said or 'closed without an answer'}")
        return False

    def end(self):
        self.stops = True
        self.join(HELD_MS / 1000 + 60)
        if self.is_alive():
            raise Failed("some requests do not end")


class Case(threading.Thread):
    """One emulator, one daemon and their clients."""

    def __init__(self, options, drain):
        super().__init__(daemon=True)
        self.drain, self.program, self.count = drain, options.program, options.machines
        self.home = pathlib.Path(options.scratch) / f"drain-{drain}"
        (self.home / "pools").mkdir(parents=True)
        self.processes, self.clients, self.failed = [], None, None
        self.steps, self.counts, self.writes = [], {}, 0

    def write(self, count, version):
        pool = {
            "apiVersion": "poolkeeper/v1", "kind": "Pool", "name": "web", "scaleSet": SET,
            "replicas": {"owner": "pool", "count": count},
            "model": {"image": image(version)},
            "rollout": {
                "maxSurge": "50%", "maxUnavailable": 0, "minReady": MIN_READY, "ramp": "off", "coalesce": "1s",
            },
            "scaleDown": {"unconfirmed": "allow", "gray": {"changeInterval": "5s", "observation": "10s"}},
            "drain": {"loadBalancer": self.drain, "grace": GRACE},
        }
        aside = self.home / "aside"
        aside.write_text(json.dumps(pool))
        aside.rename(self.home / "pools" / "web.yaml")

    def run(self):
        try:
            self.play()
        except Exception as error:
            self.failed = f"drain {self.drain}: {error}"
        finally:
            if self.clients:
                self.clients.stops = True
            for process in reversed(self.processes):
                process.kill()

    def play(self):
        self.write(self.count, "1.0.0")
        emulator = Emulator(self.program, self.home, self.count)
        self.processes.append(emulator)
        daemon = house.Daemon(self.program, self.home, emulator)
        self.processes.append(daemon)
        daemon.open()
        old = emulator.machines()
        wait("the load balancer sends to all machines", lambda: emulator.serving() == self.count, 60)
        self.clients = Clients(emulator.front)
        self.clients.start()
        wait("the first long requests end", lambda: self.clients.done > LONG + SHORT * HELD_MS / 1000, 60)
        try:
            self.step("rollout", self.count, emulator, lambda now: not old & now)
            self.step("scale-down", self.count * 2 // 3, emulator, lambda now: True)
            self.clients.end()
        finally:
            state = emulator.state()
            (self.home / "state.json").write_text(json.dumps(state, indent=1))
        self.counts, self.writes = emulator.rule()["requests"], emulator.writes()
        daemon.stop()
        if daemon.errors():
            raise Failed(f"the daemon says {daemon.errors()[0]}")

    def step(self, name, count, emulator, is_done):
        """The pool file changes; until its machines are as many as it says, and all of them serve."""
        began = time.monotonic()
        self.write(count, "2.0.0")

        def is_over():
            now = emulator.machines()
            return len(now) == count and is_done(now) and emulator.serving() == count

        wait(f"{name}: {count} machines serve", is_over, PATIENCE, 1)
        self.steps.append(f"{name} {time.monotonic() - began:.0f} s")

    def broken(self):
        return sum(self.counts.get(key, 0) for key in BROKEN)

    def row(self):
        cells = [f"{self.counts.get(key, 0):>10}" for key in BROKEN]
        asked = f"{self.clients.done:>9}{self.clients.broken:>8}"
        return f"{self.drain:<6}{asked}{''.join(cells)}{self.writes:>8}  {', '.join(self.steps)}"


def judge(cases):
    failed = [case.failed for case in cases if case.failed]
    if failed:
        raise Failed("; ".join(failed))
    print(f"{'drain':<6}{'requests':>9}{'broken':>8}{''.join(f'{key:>10}' for key in BROKEN)}{'writes':>8}")
    for case in cases:
        print(case.row())
    drained, plain = cases
    if drained.broken() or drained.clients.broken:
        told = [f"{drained.counts[key]} {what}" for key, what in BROKEN.items() if drained.counts[key]]
        told += drained.clients.first
        raise Failed(f"requests broke although machines left the load balancer first: {'; '.join(told)}")
    if not drained.writes:
        raise Failed("no backend pool was written: the load balancer did not hear of it")
    if not plain.counts["cut"] or not plain.clients.broken:
        raise Failed("no request was cut without the drain: this proves nothing")
    if plain.writes:
        raise Failed(f"`loadBalancer: off` wrote a backend pool {plain.writes} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--machines", type=int, default=30)
    options = parser.parse_args()
    cases = [Case(options, drain) for drain in ("auto", "off")]
    began = time.monotonic()
    try:
        for case in cases:
            case.start()
        for case in cases:
            case.join()
        judge(cases)
    except (Failed, KeyboardInterrupt) as error:
        print(f"traffic: {error or 'interrupted'}", file=sys.stderr)
        return 1
    finally:
        for case in cases:
            for process in case.processes:
                process.kill()
    print(f"traffic: no request broke, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    sys.exit(main())
