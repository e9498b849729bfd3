"""What happens to the file in which pools are remembered, and to a process that holds it."""

import contextlib
import signal
import sqlite3
import time

from target import LEASE, Case, must, wait

# The daemon looks at its store every two seconds.
NOTICED = 15


def files_of(one):
    return [path for path in one.home.iterdir() if path.name.startswith("store.db")]


class Taken(Case):
    """The store is removed, replaced, cut or overwritten in use: the daemon stops leading, and a second one does not begin."""

    name, finds = "taken", ("S5",)

    def run(self):
        for how in (self.removed, self.replaced, self.cut, self.overwritten):
            one = self.target().begin()
            one.must_act(how.__name__)
            kept = {path.name: path.read_bytes() for path in files_of(one)}
            how(one)
            wait(f"taken: {how.__name__} and it is ready still: {one.readiness()}", lambda: not one.is_ready(), NOTICED)
            says = lambda: "store" in one.readiness()[1]
            wait(f"taken: {how.__name__}: /ready says {one.readiness()[1]}", says, NOTICED)
            must(one.ask("/health").json()["troubles"], f"taken: {how.__name__}: /health says nothing")
            mark = self.house.mark()
            one.write(self.pools[0], self.pools[0].count + 1)
            time.sleep(LEASE)
            sent = [r for r in self.house.requests(mark) if r["client"] == one.client and r["method"] == "PATCH"]
            must(not sent, f"taken: {how.__name__}: it went on without its store: {sent[:1]}")
            self.end(one)
            if how == self.removed:
                one.refuses_to_begin("store.create=allow")
            for path in files_of(one):
                path.unlink()
            for name, data in kept.items():
                (one.home / name).write_bytes(data)
        self.left_alone()

    @staticmethod
    def end(one):
        one.signal(signal.SIGTERM)
        one.process.wait(12)

    @staticmethod
    def removed(one):
        for path in files_of(one):
            if not path.name.endswith((".lock", ".created")):
                path.unlink()

    @staticmethod
    def replaced(one):
        other = one.home / "other.db"
        other.write_bytes(one.store.read_bytes())
        other.rename(one.store)

    def cut(self, one):
        with open(one.store, "r+b") as store:
            store.truncate(self.dice.randrange(1, 4096))

    def overwritten(self, one):
        # Nothing that it keeps in memory hides what is on the disk.
        for path in (one.store, one.store.with_name("store.db-wal")):
            with open(path, "r+b") as store:
                store.write(self.dice.randbytes(min(path.stat().st_size, 1 << 20)))


class Emptied(Case):
    """A store that is empty or missing where one was before is not begun anew without a word."""

    name, finds = "emptied", ("S5",)

    def run(self):
        one = self.target().begin()
        one.ask(f"/api/v1/pools/{self.pools[0].name}/pause", "POST", {"why": "the database is being moved"})
        one.must_stop()
        # A file that is damaged would be mended from its log.
        with contextlib.closing(sqlite3.connect(one.store)) as store:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = one.store.read_bytes()
        for lost in (lambda: one.store.write_bytes(b""), one.store.unlink):
            lost()
            one.refuses_to_begin("store.create=allow")
            one.store.write_bytes(whole)
        for text in (self.dice.randbytes(9000), whole[: len(whole) // 2], b"\0" * 100 + whole[100:]):
            one.store.write_bytes(text)
            one.refuses_to_begin(str(one.store))
            must(one.store.read_bytes() == text, "emptied: a file that is no store was written to")
        one.store.write_bytes(whole)
        one.begin()
        one.must_stop()
        self.left_alone()


class Frozen(Case):
    """The leader freezes in the middle of a write: the one that stands by says which lock it waits for, and both recover."""

    name, finds, others = "frozen", ("S6",), ("b",)
    # Moments that are tried. A write takes a few milliseconds.
    TRIES = 300

    def run(self):
        one, other = (self.target(other=name, shared=True, folder="frozen") for name in (None, "b"))
        one.begin()
        other.start()
        wait("frozen: the other stands by", lambda: "another process leads" in self.say(other), 20)
        if self.freeze(one):
            wait(f"frozen: the other says why it waits: {self.say(other)}", lambda: self.names_lock(other), LEASE * 6)
            must(not other.is_ready(), "frozen: the other is ready without the lock")
        one.signal(signal.SIGCONT)
        wait("frozen: one of them leads again", lambda: one.is_ready() or other.is_ready(), LEASE * 6)
        (one if one.is_ready() else other).must_act(self.name)
        for each in (one, other):
            each.must_stop()
        self.left_alone()

    @staticmethod
    def say(one):
        return one.readiness()[1] if one.address() else ""

    def names_lock(self, other):
        say = self.say(other)
        must("the store has ended" not in say, f"frozen: the other says {say}")
        return "stopped, frozen or paused" in say

    def freeze(self, one):
        """True: it holds the lock of the store and does not move."""
        pool = self.pools[0].name
        for n in range(self.TRIES):
            one.ask(f"/api/v1/pools/{pool}/refresh?n={n}", "POST", {"why": "a write"}, source=f"127.9.{n % 250}.1")
            time.sleep(self.dice.uniform(0, 0.01))
            one.signal(signal.SIGSTOP)
            if not one.store_is_free():
                return True
            one.signal(signal.SIGCONT)
        return False


CASES = [Taken, Emptied, Frozen]
