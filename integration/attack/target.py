"""A daemon that is attacked, what it is asked and shown, and what every case shares."""

import contextlib
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from driver import wait
from house import LEASE, SUBSCRIPTION, Failed, Instance
from judge import Pool, deleted_by, is_change

# The daemon looks at pool files and tokens so often.
RELOAD = 1.0
# A change of a pool file leads to a call within this time, however it is attacked.
TAKEN_IN = 20
# A fault of its own, as the log has it.
FAULT = "a fault of ours"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode(errors="replace")


class Target(Instance):
    """A daemon with a pool file a pool, on a port of its own; `more` are further arguments, `files` those of ulimit."""

    def __init__(self, house, name, pools, more=(), shared=False, folder=None, files=None):
        super().__init__(house, folder or name, name, pools, shared)
        self.more, self.files, self.variables = [str(one) for one in more], files, {}
        self.folder = self.home / "pools"
        self.folder.mkdir(parents=True, exist_ok=True)

    def command(self):
        command = super().command() + self.more
        return ["sh", "-c", f'ulimit {self.files}; exec "$0" "$@"', *command] if self.files else command

    def environment(self):
        together = super().environment() | self.variables
        return {name: value for name, value in together.items() if value is not None}

    def must_run(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended by itself with {self.process.returncode}: {self.said()[-2000:]}")
        if FAULT in self.said():
            raise Failed(f"{self.name} met a fault of its own: {self.said()[-3000:]}")

    def begin(self):
        """It runs, leads and is ready."""
        self.start()
        wait(f"{self.name} is ready", self.is_ready, LEASE * 4)
        return self

    def descriptors(self):
        """How many files it may open: its soft limit, and the hard one."""
        limits = pathlib.Path(f"/proc/{self.process.pid}/limits").read_text()
        return tuple(int(number) for number in re.search(r"Max open files\s+(\d+)\s+(\d+)", limits).groups())

    def address(self):
        found = re.search(r"the API listens.*?127\.0\.0\.1:(\d+)", self.said())
        return int(found.group(1)) if found else None

    def port(self):
        return wait(f"{self.name} listens", self.address, 20)

    def ask(self, path, method="GET", body=None, token=None, source="127.0.0.1", timeout=10.0, headers=None):
        """One request on a connection of its own. Each source is another client to the daemon."""
        line = http.client.HTTPConnection("127.0.0.1", self.port(), timeout=timeout, source_address=(source, 0))
        head = {"content-type": "application/json"} if isinstance(body, dict) else {}
        head |= headers or {}
        if token:
            head["authorization"] = f"Bearer {token}"
        try:
            body = json.dumps(body) if isinstance(body, dict) else body
            line.request(method, path, body, head)
            answer = line.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            line.close()

    def readiness(self, source="127.0.0.1", timeout=10.0):
        answer = self.ask("/ready", source=source, timeout=timeout)
        return answer.status == 200, answer.json().get("message", "")

    def is_ready(self):
        self.must_run()
        try:
            return self.address() is not None and self.readiness()[0]
        except OSError:
            return False

    def pool(self, pool, token=None):
        return self.ask(f"/api/v1/pools/{pool.name}/status", token=token)

    def open_line(self, source="127.0.0.1", timeout=10.0):
        line = socket.create_connection(("127.0.0.1", self.port()), timeout, (source, 0))
        line.settimeout(timeout)
        return line

    def write(self, pool, count=None, name=None):
        """The pool file, with another size if one is given."""
        if count is not None:
            pool.count = count
        aside = self.folder / ".aside"
        aside.write_text(document(pool.name, pool.count))
        aside.rename(self.folder / (name or f"{pool.name}.yaml"))

    def must_act(self, what, pool=None):
        """The loop lives: a pool that is written with one machine more is raised."""
        pool = pool or self.pools[0]
        began = time.monotonic()
        self.write(pool, pool.count + 1)
        wait(f"{what}: a changed pool file leads to a call", lambda: self.capacity(pool) == pool.count, TAKEN_IN)
        self.must_run()
        return time.monotonic() - began

    def capacity(self, pool):
        sets = self.house.state()["scaleSets"]
        return next(one["capacity"] for one in sets if one["id"].endswith(f"/{pool.name}"))

    def must_stop(self):
        took = self.stop(12)
        if took > 10.5:
            raise Failed(f"{self.name} took {took:.1f} s to end")

    def hang_up(self):
        self.signal(signal.SIGHUP)

    @contextlib.contextmanager
    def storm_of_hang_ups(self):
        over = threading.Event()

        def storm():
            while self.process.poll() is None and not over.wait(0.005):
                self.hang_up()

        storms = threading.Thread(target=storm)
        storms.start()
        try:
            yield
        finally:
            over.set()
            storms.join()

    def refuses_to_begin(self, *says):
        """It ends at once with words that help."""
        told = subprocess.run(
            self.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment(), timeout=30
        )
        if told.returncode == 0 or not all(say in told.stderr for say in says):
            raise Failed(f"{self.name} ended with {told.returncode} and did not say {says}: {told.stderr[-2000:]}")
        return told.stderr


class Case:
    """One way in. `finds` are the findings whose mending it holds."""

    name, finds = "", ()
    sizes = (2,)
    # Further daemons beside the first: each asks the emulator under a name of its own.
    others = ()

    def __init__(self, house, dice):
        self.house, self.dice = house, dice
        self.pools = self.all_pools()

    @classmethod
    def all_pools(cls):
        return [Pool(f"{cls.name}-{n}", size, 1, 0) for n, size in enumerate(cls.sizes)]

    @classmethod
    def clients(cls):
        return [cls.name, *(f"{cls.name}-{other}" for other in cls.others)]

    def target(self, more=(), other=None, **options):
        name = f"{self.name}-{other}" if other else self.name
        target = Target(self.house, name, self.pools, more, **options)
        for pool in self.pools:
            target.write(pool)
        return target

    def run(self):
        raise NotImplementedError

    def left_alone(self):
        """No machine of its pools was deleted, whatever was tried."""
        names = {pool.name for pool in self.pools}
        for one in self.house.requests():
            if is_change(one) and deleted_by(one) and any(f"/{name}/" in one["path"] for name in names):
                raise Failed(f"{self.name}: machines were deleted: {one['method']} {one['path']} {one['body']}")


def set_id(name):
    return f"{SUBSCRIPTION}/virtualMachineScaleSets/{name}"


def document(name, count, scale_set=None, more=""):
    return (
        f"apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: {scale_set or set_id(name)}\n"
        f"replicas: {{owner: pool, count: {count}}}\nadopt: roll\n"
        f"rollout: {{maxSurge: 1, maxUnavailable: 0, minReady: 1s, ramp: off, coalesce: 1s}}\n{more}"
    )


def drain(line, seconds):
    """What comes on a connection until it ends or the time is over, and whether it ended."""
    end, got = time.monotonic() + seconds, b""
    while time.monotonic() < end:
        line.settimeout(max(0.05, end - time.monotonic()))
        try:
            part = line.recv(65536)
        except (TimeoutError, socket.timeout):
            return got, False
        except OSError:
            return got, True
        if not part:
            return got, True
        got += part
    return got, False


def must(condition, what):
    if not condition:
        raise Failed(what)


def answers(data):
    return data.count(b"HTTP/1.1 ")
