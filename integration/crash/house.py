"""One emulator, and daemons against it, each begun, killed and watched as processes are."""

import json
import os
import pathlib
import re
import secrets
import signal
import sqlite3
import subprocess
import time
import urllib.request

SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute"
# Seconds; no setting allows fewer.
LEASE = 5
# A machine is made and boots while a daemon lives.
QUICKER = 60
FIRST = "1.0.0"


class Failed(Exception):
    pass


def image(version):
    return f"{SUBSCRIPTION}/galleries/house/images/base/versions/{version}"


class House:
    def __init__(self, program, scratch, clients, pools, slow_ms):
        self.program, self.scratch = program, pathlib.Path(scratch)
        self.secrets = {client: "hush-" + secrets.token_hex(16) for client in clients}
        self.versions = {pool.name: FIRST for pool in pools}
        self.began = []
        seed = {
            "scaleSets": [
                {"name": pool.name, "capacity": pool.count, "image": image(FIRST)} for pool in pools
            ],
            "strictTokens": True,
            "identities": [{"clientId": name, "secret": word} for name, word in self.secrets.items()],
            "settings": {"record": True, "throttling": False, "quicker": QUICKER},
        }
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json"]
        with open(self.scratch / "emulator.out", "wb") as out, open(self.scratch / "emulator.log", "wb") as log:
            self.emulator = subprocess.Popen(
                command + ["--seed-file", "-"], stdin=subprocess.PIPE, stdout=out, stderr=log, env=plain()
            )
        # No file holds it: the secrets are in it.
        self.emulator.stdin.write(json.dumps(seed).encode())
        self.emulator.stdin.close()
        told = self.told()
        self.url, self.tenant = told["url"], told["tenant"]
        self.slow(slow_ms)

    def told(self):
        for _ in range(200):
            line = (self.scratch / "emulator.out").read_text()
            if line.endswith("\n"):
                return json.loads(line)
            if self.emulator.poll() is not None:
                break
            time.sleep(0.05)
        raise Failed("the emulator did not start: " + (self.scratch / "emulator.log").read_text())

    def control(self, what, order=None):
        body = None if order is None else json.dumps(order).encode()
        request = urllib.request.Request(f"{self.url}/_control/{what}", data=body)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def slow(self, ms, only="", only_ms=0):
        """Changes are made at once, and answered late; those of some sets still later."""
        late = [(f"/virtualMachineScaleSets/{only}", only_ms)] if only else []
        late.append(("/virtualMachineScaleSets/", ms))
        rules = [
            {"method": method, "path": path, "times": 2**32 - 1, "delayMs": delay}
            for path, delay in late
            for method in ("PATCH", "POST", "PUT", "DELETE")
        ]
        self.control("faults", {})
        self.control("faults", {"rules": rules})

    def state(self):
        return self.control("state")

    def record(self):
        record = self.control("record")
        (self.scratch / "record.json").write_text(json.dumps(record))
        return record

    def requests(self, since=0):
        return self.control(f"record?from={since}")["requests"]

    def mark(self):
        return self.control(f"record?from={2**40}")["count"]

    def write_pools(self, folder, pools):
        for pool in pools:
            self.write_pool(folder, pool)

    def write_pool(self, folder, pool):
        home = self.scratch / folder / "pools"
        home.mkdir(parents=True, exist_ok=True)
        text = (
            f"apiVersion: poolkeeper/v1\nkind: Pool\nname: {pool.name}\n"
            f"scaleSet: {SUBSCRIPTION}/virtualMachineScaleSets/{pool.name}\n"
            f"replicas: {{owner: pool, count: {pool.count}}}\n"
            f"model: {{image: {image(self.versions[pool.name])}}}\n"
            f"rollout: {{maxSurge: {pool.surge}, maxUnavailable: {pool.unavailable}, minReady: 1s, ramp: off, "
            "coalesce: 1s}\nadopt: roll\n"
        )
        aside = home / ".aside"
        aside.write_text(text)
        aside.rename(home / f"{pool.name}.yaml")

    def sets(self, pools):
        wanted = {pool.name: pool for pool in pools}
        for one in self.state()["scaleSets"]:
            name = one["id"].rsplit("/", 1)[1]
            if name in wanted:
                yield wanted[name], one

    def is_done(self, pool, one):
        on_it = self.versions[pool.name] in one["image"] and not one["outdated"]
        return on_it and one["capacity"] == len(one["instances"]) == one["ready"] == pool.count

    def unfinished(self, instances):
        for instance in instances:
            instance.must_run()
        return [name for instance in instances for name in self.unfinished_now(instance)]

    def unfinished_now(self, instance):
        return [pool.name for pool, one in self.sets(instance.pools) if not self.is_done(pool, one)]

    def roll(self, instance, all_of_them=False):
        """Pools that are where they should be get a new version, so that there is always a rollout."""
        for pool, one in self.sets(instance.pools):
            if all_of_them or self.is_done(pool, one):
                last = int(self.versions[pool.name].rsplit(".", 1)[1])
                self.versions[pool.name] = f"1.0.{last + 1}"
                self.write_pool(instance.home.name, pool)

    def end(self):
        for process in [one.process for one in self.began if one.process] + [self.emulator]:
            if process.poll() is None:
                process.kill()
                process.wait()

    def leaks(self):
        """No log, store or record holds a secret or a token."""
        known = [word.encode() for word in self.secrets.values()]
        token = re.compile(rb"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+")
        found = []
        for path in self.scratch.rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            if token.search(data) or any(word in data for word in known):
                found.append(f"a secret or a token is in {path}")
        return found


def plain():
    return {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}


class Instance:
    """A daemon: one process after another, on one store."""

    def __init__(self, house, folder, client, pools, shared=False):
        self.house, self.name, self.client, self.pools = house, client, client, pools
        self.home = house.scratch / folder
        self.store, self.log = self.home / "store.db", self.home / f"{client}.log"
        self.shared, self.process, self.starts, self.stopped_at = shared, None, 0, 0
        house.began.append(self)

    def command(self):
        return [
            self.house.program, "serve", "--store", self.store, "--pools", self.home / "pools",
            "--listen", "127.0.0.1:0", "--arm", self.house.url, "--authority", self.house.url, "--auth", "client-secret",
            "--tenant", self.house.tenant, "--client-id", self.client, "--timeout", "30s",
            "--set", f"lease.ttl={LEASE}s", "--set", "reload=1s", "--set", f"store.shared={str(self.shared).lower()}",
            "--set", "log.format=json",
        ]

    def environment(self):
        return plain() | {"AZURE_CLIENT_SECRET": self.house.secrets[self.client]}

    def start(self):
        command, env = self.command(), self.environment()
        self.from_here = self.log.stat().st_size if self.log.exists() else 0
        self.began = time.monotonic()
        self.starts += 1
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def said(self):
        with open(self.log, "rb") as log:
            log.seek(self.from_here)
            return log.read().decode(errors="replace")

    def must_run(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended by itself with {self.process.returncode}: {self.said()[-2000:]}")
        errors = [line for line in self.said().splitlines() if '"level":"ERROR"' in line]
        if errors and not self.stopped_at:
            raise Failed(f"{self.name} says: {errors[0]}")

    def leads(self, within):
        """The seconds it took from its start."""
        while time.monotonic() - self.began < within:
            self.must_run()
            if '"leading"' in self.said():
                return time.monotonic() - self.began
            time.sleep(0.02)
        raise Failed(f"{self.name} did not lead within {within} s: {self.said()[-2000:]}")

    def kill(self):
        self.must_run()
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, within):
        """The seconds it took."""
        self.must_run()
        began = time.monotonic()
        self.signal(signal.SIGTERM)
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not end within {within} s of SIGTERM") from None
        if code != 0:
            raise Failed(f"{self.name} ended with {code} after SIGTERM: {self.said()[-2000:]}")
        return time.monotonic() - began

    def ask_store(self, statement):
        # Never one that is not there yet: it would be made.
        store = sqlite3.connect(f"file:{self.store}?mode=rw", uri=True, timeout=0.5, isolation_level=None)
        try:
            return store.execute(statement).fetchone()
        finally:
            store.close()

    def lease(self):
        return self.ask_store("SELECT holder, not_after FROM lease")

    def is_holder(self):
        try:
            lease = self.lease()
        except sqlite3.OperationalError:
            # It is being made.
            return False
        return lease is not None and f"-{self.process.pid}-" in lease[0]

    def store_is_free(self):
        try:
            self.ask_store("BEGIN IMMEDIATE")
            return True
        except sqlite3.OperationalError:
            return False
