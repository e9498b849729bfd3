"""A daemon whose disk and clock fail as they are told to, and what its store says of what it did."""

import errno
import json
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import time
import urllib.error
import urllib.request

from house import Failed, Instance, plain

# Enough for a store of some pools, and filled within moments.
DISK = "4m"
MOUNTED = f'mount -t tmpfs -o size={DISK},mode=700 store "$1" && shift && exec "$@"'
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


def may_mount(scratch):
    """Whether a user may have a disk of his own here."""
    folder = scratch / "try"
    folder.mkdir()
    try:
        tried = subprocess.run(own(MOUNTED, folder) + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return tried.returncode == 0


def own(script, folder):
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(folder)]


class Sick(Instance):
    def __init__(self, house, name, pools, shared=False, folder=None, mounted=False):
        super().__init__(house, folder or name, name, pools, shared)
        self.home.mkdir(exist_ok=True)
        self.disk = self.home / "disk"
        self.disk.mkdir(exist_ok=True)
        self.store, self.mounted = self.disk / "store.db", mounted
        self.orders = self.home / f"{name}.orders"
        self.order()
        # Errors that it logs are what is looked for here.
        self.stopped_at = True

    def order(self, clock_off_ms=0, write_fails=0):
        data = struct.pack("=qq", clock_off_ms, write_fails)
        if not self.orders.exists():
            self.orders.write_bytes(data)
        with open(self.orders, "r+b") as orders:
            orders.write(data)

    def command(self):
        command = super().command()
        return own(MOUNTED, self.disk) + command if self.mounted else command

    def environment(self):
        shim = {"LD_PRELOAD": str(self.house.scratch / "faults.so"), "FAULTS_TOLD_BY": str(self.orders)}
        return super().environment() | shim

    def path(self, of):
        """As it is seen from outside its mounts."""
        return pathlib.Path(f"/proc/{self.process.pid}/root{of}") if self.mounted else of

    def fill(self):
        """No byte is left to it."""
        if not self.mounted:
            self.order(write_fails=errno.ENOSPC)
            return
        with open(self.path(self.disk / "filler"), "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def make_room(self):
        if self.mounted:
            self.path(self.disk / "filler").unlink()
        else:
            self.order()

    def url(self):
        for line in self.said().splitlines():
            if '"the API listens"' in line:
                return "http://" + json.loads(line)["address"]
        return None

    def ready(self):
        """Whether it says that it is, and what it says."""
        self.must_run()
        url = self.url()
        if url is None:
            return False, "it does not listen yet"
        try:
            with urllib.request.urlopen(url + "/ready", timeout=10) as answer:
                return True, json.load(answer)["message"]
        except urllib.error.HTTPError as error:
            return False, json.load(error)["message"]

    def post(self, path, body):
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url() + path, data=json.dumps(body).encode(), headers=head)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status

    def must_refuse(self, *says, wrap=(), store=None):
        """It does not begin, with exit code 1 and words that help."""
        command = list(wrap) + Instance.command(self)
        if store:
            command[command.index(self.store)] = self.disk / store
        began = time.monotonic()
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=super().environment(), timeout=20
        )
        last = [line for line in told.stderr.splitlines() if line and not line.startswith("{")]
        text = "\n".join(last)
        if told.returncode != 1 or not all(say in text for say in says):
            raise Failed(f"{self.name}: ended with {told.returncode}, not 1, or did not say {says}: {told.stderr}")
        return time.monotonic() - began

    def entries(self):
        """The journal: for each entry what it does, and when it was asked for at the latest."""
        if self.mounted:
            # Names of files in there mean something else to the database: it gets a copy.
            for end in ("", "-wal"):
                shutil.copy(self.path(self.store.with_name(self.store.name + end)), self.home / f"copy.db{end}")
        path = self.home / "copy.db" if self.mounted else self.store
        store = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5)
        try:
            rows = store.execute("SELECT p.name, e.record FROM entries e JOIN pools p ON p.id = e.pool").fetchall()
        finally:
            store.close()
        return [(name, json.loads(record)) for name, record in rows]

    def back_up(self):
        """As an operator would, and with the log folded in."""
        store, backup = sqlite3.connect(self.store), sqlite3.connect(self.home / "backup.db")
        store.backup(backup)
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        backup.close()
        store.close()

    def restore(self):
        for end in ("", "-wal", "-shm"):
            self.store.with_name(self.store.name + end).unlink(missing_ok=True)
        shutil.copy(self.home / "backup.db", self.store)
