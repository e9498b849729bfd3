"""One emulator and one daemon of a size, begun, asked and measured as processes are."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

GROUP = "resourceGroups/rg/providers/Microsoft.Compute"
# A subscription's own limits allow about fifty sets of a thousand machines to be looked at every five minutes.
SETS_EACH = 20
# A machine is made and boots within a run.
QUICKER = 60
TICK = os.sysconf("SC_CLK_TCK")
# The emulator takes any secret.
ENV = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "AZURE_CLIENT_SECRET": "any"}


class Failed(Exception):
    pass


def wait(what, until, seconds, every=0.2):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = until()
        if found:
            return found
        time.sleep(every)
    raise Failed(f"waited {seconds} s in vain: {what}")


def subscription(n):
    return f"00000000-0000-0000-0000-{n // SETS_EACH:012}"


def name_of(n):
    return f"pool-{n:04}"


def image(version):
    return f"/subscriptions/{subscription(0)}/{GROUP}/galleries/house/images/base/versions/{version}"


def pool_text(n, machines, version="1.0.0"):
    return (
        f"apiVersion: poolkeeper/v1\nkind: Pool\nname: {name_of(n)}\n"
        f"scaleSet: /subscriptions/{subscription(n)}/{GROUP}/virtualMachineScaleSets/{name_of(n)}\n"
        f"replicas: {{owner: pool, count: {machines}}}\nmodel: {{image: {image(version)}}}\n"
        f"rollout: {{maxSurge: 0, maxUnavailable: 5, minReady: 1s, ramp: off}}\n"
    )


class Process:
    def __init__(self, command, out, log, data=None, cwd=None):
        self.log = pathlib.Path(log)
        with open(out, "ab") as out, open(log, "ab") as log:
            pipe = subprocess.PIPE if data else subprocess.DEVNULL
            self.process = subprocess.Popen(command, stdin=pipe, stdout=out, stderr=log, env=ENV, cwd=cwd)
        if data:
            self.process.stdin.write(data)
            self.process.stdin.close()

    def must_run(self):
        if self.process.poll() is not None:
            raise Failed(f"ended by itself with {self.process.returncode}: {self.log.read_text()[-2000:]}")

    def memory(self):
        """Resident now and at most, in MiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return [int(re.search(rf"{key}:\s+(\d+) kB", text)[1]) / 1024 for key in ("VmRSS", "VmHWM")]

    def worked(self):
        """Seconds of a core, since its start."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def get(url, data=None, method=None, headers=None):
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


class Emulator(Process):
    def __init__(self, program, home, pools, machines):
        self.home = home
        sets = [
            {"name": name_of(n), "subscription": subscription(n), "capacity": machines, "image": image("1.0.0")}
            for n in range(pools)
        ]
        # It would count the calls for all subscriptions as those for one; the daemon keeps to each one's limits anyway.
        settings = {"record": True, "quicker": QUICKER, "throttling": False}
        seed = {"scaleSets": sets, "settings": settings}
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--seed-file", "-"]
        super().__init__(command, home / "emulator.out", home / "emulator.log", json.dumps(seed).encode())
        told = json.loads(wait("the emulator starts", self.told, 600))
        self.url, self.tenant = told["url"], told["tenant"]

    def told(self):
        self.must_run()
        line = (self.home / "emulator.out").read_text()
        return line.endswith("\n") and line

    def requests(self, since):
        return json.loads(get(f"{self.url}/_control/record?from={since}"))["requests"]

    def mark(self):
        return json.loads(get(f"{self.url}/_control/record?from={2**40}"))["count"]

    def changes(self, since):
        """The owner's tag, written once a pool, changes no machine."""
        changed = [one for one in self.requests(since) if one["method"] not in ("GET", "HEAD")]
        return [one for one in changed if "/tags/default" not in one["path"]]


class Daemon(Process):
    def __init__(self, program, home, emulator, *more):
        self.home, self.log_from = home, 0
        log = home / "daemon.log"
        if log.exists():
            self.log_from = log.stat().st_size
        command = [
            program, "serve", "--store", home / "store.db", "--pools", home / "pools", "--listen", "127.0.0.1:0",
            "--arm", emulator.url, "--authority", emulator.url, "--auth", "client-secret", "--tenant", emulator.tenant,
            "--client-id", "scale", "--set", "log.format=json", *more,
        ]
        self.began = time.time()
        os.environ["AZURE_CLIENT_SECRET"] = "any"
        super().__init__(command, log, log)

    def said(self):
        with open(self.log, "rb") as log:
            log.seek(self.log_from)
            lines = log.read().decode(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def told(self, message):
        self.must_run()
        return next((line for line in self.said() if message in json.dumps(line)), None)

    def api(self):
        line = json.dumps(wait("the API listens", lambda: self.told("the API listens"), 120))
        return "http://" + re.search(r"127\.0\.0\.1:\d+", line)[0]

    def errors(self):
        return [line for line in self.said() if line.get("level") == "ERROR"]

    def metrics(self):
        """Each family's lines: labels and numbers."""
        found = {}
        for line in get(self.url + "/metrics").splitlines():
            if line and not line.startswith("#"):
                name, labels, number = re.fullmatch(r"([a-z_]+)(\{.*\})? (\S+)", line).groups()
                found.setdefault(name, {})[labels or ""] = float(number)
        return found

    def open(self):
        self.url = self.api()

    def stop(self):
        self.must_run()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(30) != 0:
            raise Failed(f"ended with {self.process.returncode} after SIGTERM")
