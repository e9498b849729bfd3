"""An emulator and daemons against it, each a process on the loopback, and one request to any of them."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import traceback
import urllib.parse

SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute"
SECRET = "hush-hush-hush"
# A machine is made and boots while it is fuzzed.
QUICKER = 60


class Failed(Exception):
    pass


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def kind(self):
        return (self.headers.get("content-type") or "").split(";")[0]


def ask(url, method="GET", body=None, token=None, headers=None, source="127.0.0.1"):
    """One request; an answer of any status is an answer. Each source is a client of its own, with its own rate."""
    parts = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10, source_address=(source, 0))
    headers = dict(headers or {})
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        line.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
        answer = line.getresponse()
        # What streams never ends: its beginning is enough.
        is_stream = (answer.headers.get("content-type") or "").startswith("text/event-stream")
        return Answer(answer.status, answer.headers, answer.read1(64) if is_stream else answer.read())
    finally:
        line.close()


def plain(**more):
    return {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), **more}


class House:
    def __init__(self, program, scratch, pools):
        self.program, self.scratch, self.began = program, pathlib.Path(scratch), []
        seed = {
            "scaleSets": [{"name": name, "capacity": count} for name, count in pools.items()],
            "identities": [{"clientId": "api", "secret": SECRET}],
            "settings": {"record": True, "throttling": False, "quicker": QUICKER},
        }
        home = self.scratch / "emulator"
        home.mkdir()
        (home / "seed.json").write_text(json.dumps(seed))
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--seed-file", home / "seed.json"]
        with open(home / "out", "wb") as out, open(home / "log", "wb") as log:
            self.emulator = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=plain())
        told = until("the emulator starts", lambda: lines(home / "out"), 20)
        self.url, self.tenant = json.loads(told[0])["url"], json.loads(told[0])["tenant"]

    def serve(self, name, pools, *more):
        daemon = Daemon(self, name, pools, more)
        self.began.append(daemon)
        return daemon

    def control(self, what):
        return ask(f"{self.url}/_control/{what}").json()

    def changes(self, sets):
        """What was asked of these scale sets that changes something; that their owner's tag is written changes no machine."""
        wanted = re.compile("/virtualMachineScaleSets/(" + "|".join(sets) + ")(/|$|\\?)", re.IGNORECASE)
        asked = self.control("record")["requests"]
        changed = [one for one in asked if one["method"] not in ("GET", "HEAD") and wanted.search(one["path"])]
        return [one for one in changed if "/tags/default" not in one["path"]]

    def end(self):
        for process in [one.process for one in self.began] + [self.emulator]:
            if process.poll() is None:
                process.kill()
                process.wait()


class Daemon:
    def __init__(self, house, name, pools, more):
        self.name, self.home = name, house.scratch / name
        folder = self.home / "pools"
        folder.mkdir(parents=True)
        for pool, count in pools.items():
            (folder / f"{pool}.yaml").write_text(document(pool, count))
        command = [
            house.program, "serve", "--store", self.home / "store.db", "--pools", folder, "--listen", "127.0.0.1:0",
            "--arm", house.url, "--authority", house.url, "--auth", "client-secret", "--tenant", house.tenant,
            "--client-id", "api", "--set", "lease.ttl=5s", "--set", "reload=1s", "--set", "log.format=json", *more,
        ]
        self.log = self.home / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=plain(AZURE_CLIENT_SECRET=SECRET)
            )
        self.url = until(f"{name} listens", self.address, 30)
        until(f"{name} is ready", lambda: ask(f"{self.url}/ready").status == 200, 30)

    def address(self):
        self.must_run()
        for line in self.log.read_text().splitlines():
            found = "the API listens" in line and re.search(r"127\.0\.0\.1:\d+", line)
            if found:
                return f"http://{found.group()}"
        return None

    def must_run(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended by itself with {self.process.returncode}: {self.tail()}")

    def tail(self):
        return self.log.read_text(errors="replace")[-3000:]

    def stop(self):
        self.must_run()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(15)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} did not end within 15 s of SIGTERM") from None
        if code != 0:
            raise Failed(f"{self.name} ended with {code} after SIGTERM: {self.tail()}")

    def faults(self):
        """Lines of the log that speak of a fault of its own."""
        told = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in told if line.get("level") == "ERROR" or "panic" in json.dumps(line)]


def tokens(house):
    """A file with a token for each role; the tokens themselves are in no file."""
    house.tokens, lines = {}, []
    for role in ("viewer", "operator", "admin"):
        command = [house.program, "create-token", role, role]
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        house.tokens[role], line = told.stdout.splitlines()
        lines.append(line)
    path = house.scratch / "tokens"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


def set_id(name):
    return f"{SUBSCRIPTION}/virtualMachineScaleSets/{name}"


def document(name, count):
    return (
        f"apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: {set_id(name)}\n"
        f"replicas: {{owner: pool, count: {count}}}\nrollout: {{maxSurge: 1, minReady: 1s, ramp: off}}\nadopt: roll\n"
    )


def lines(path):
    text = path.read_text()
    return text.splitlines() if text.endswith("\n") else None


def until(what, found, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise Failed(f"waited {seconds} s in vain: {what}")


def play(suite, said):
    """The exit code of a suite. `said`: what it says where all is well."""
    # What it started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        suite()
    except Failed as failed:
        print(f"api: {failed}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    print(f"api: {said}, {time.monotonic() - began:.0f} s", flush=True)
    return 0
