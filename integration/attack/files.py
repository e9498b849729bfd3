"""What is laid into the folder of pool files, and what happens to those that are there."""

import os
import socket
import time

from target import RELOAD, Case, document, must, set_id, wait


class Fifo(Case):
    """A pipe beside the pool files, at the start and later: no look waits for its writer."""

    name, finds = "fifo", ("S2",)

    def run(self):
        one = self.target()
        os.mkfifo(one.folder / "at-start.yaml")
        one.begin()
        os.mkfifo(one.folder / "later.yaml")
        one.must_act(self.name)
        faults = one.ask("/api/v1/pools").json()["faults"]
        for name in ("at-start.yaml", "later.yaml"):
            must(any(name in fault for fault in faults), f"fifo: nothing names {name}: {faults}")
        one.must_stop()
        self.left_alone()


class Odd(Case):
    """Links in a loop, devices, sockets, giants and bombs beside a good file: each is left out, and the good one is taken."""

    name, finds = "odd", ("held", "S15")

    def run(self):
        one = self.target(["--set", "log.format=text"])
        folder = one.folder
        (folder / "loop.yaml").symlink_to("loop.yaml")
        (folder / "round").symlink_to(".")
        (folder / "zero.yaml").symlink_to("/dev/zero")
        (folder / "nothing.yaml").symlink_to("/nothing/there")
        (folder / "folder.yaml").mkdir()
        with open(folder / "giant.yaml", "wb") as giant:
            giant.truncate(60 << 20)
        (folder / "deep.json").write_text("[" * 500_000)
        anchors = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
        anchors += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
        (folder / "anchors.yaml").write_text("\n".join(anchors))
        (folder / "bytes.yaml").write_bytes(self.dice.randbytes(5000))
        forged = "x\n2026-01-01T00:00:00Z  INFO forged: the API listens\x1b[2K.yaml"
        (folder / forged).write_text("nothing of a pool\n")
        line = socket.socket(socket.AF_UNIX)
        here = os.open(folder, os.O_RDONLY)
        line.bind(f"/proc/self/fd/{here}/socket.yaml")
        os.close(here)
        one.begin()
        one.must_act(self.name)
        said = one.said()
        must("\n2026-01-01T00:00:00Z" not in said and "\x1b" not in said, "odd: a name of a file made a line of the log")
        for name in ("giant.yaml", "deep.json", "anchors.yaml", "zero.yaml", "socket.yaml"):
            must(f"pools/{name}" in said, f"odd: the log does not name {name}")
        line.close()
        one.must_stop()
        self.left_alone()


class Empty(Case):
    """A pool file that is empty, or half written, releases nothing, however long it stays so."""

    name, finds = "empty", ("S4",)

    def run(self):
        one = self.target().begin()
        pool = self.pools[0]
        whole = document(pool.name, pool.count).encode()
        for text in (b"", b"\n", whole[: self.dice.randrange(1, len(whole) - 40)]):
            (one.folder / f"{pool.name}.yaml").write_bytes(text)
            time.sleep(RELOAD * 4)
            must(one.pool(pool).status == 200, f"empty: {text!r} released the pool")
        must('"released' not in one.said(), "empty: the pool was released for a while")
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()


class Slash(Case):
    """A second pool with the scale set of the first, written in another way, is refused and owns nothing."""

    name, finds = "slash", ("S1", "S14")

    def run(self):
        one = self.target().begin()
        pool, known = self.pools[0], set_id(self.pools[0].name)
        ways = [f"{known}/", known.upper(), known.replace("resourceGroups", "RESOURCEGROUPS") + "//"]
        ways += [known.replace("/rg/", "/x/../rg/"), known.replace("slash", "%73lash"), f"{known}?x=1", f"/{known}"]
        for n, way in enumerate(ways):
            text = document(f"other-{n}", 1, way, "scaleDown: {unconfirmed: allow}\n")
            head = {"content-type": "application/yaml"}
            path = f"/api/v1/pools/other-{n}"
            put = one.ask(f"{path}?why=mine", "PUT", text.encode(), headers=head)
            must(400 <= put.status < 500, f"slash: {way} was answered {put.status}: {put.text()}")
            gone = one.ask(f"{path}?why=mine", "DELETE")
            must(gone.status in (200, 202, 204, 404), f"slash: {way} cannot be removed: {gone.status}")
        one.must_stop()
        one.begin()
        must(one.pool(pool).status == 200, "slash: after a restart the pool has lost its scale set")
        time.sleep(3)
        must(self.capacity_is(one, pool), "slash: after a restart the scale set is of another size")
        one.must_stop()
        self.left_alone()

    @staticmethod
    def capacity_is(one, pool):
        return one.capacity(pool) == pool.count


class Saves(Case):
    """Files are saved by delete and write while SIGHUP asks for look after look: no pool is released for a moment."""

    name, finds = "saves", ("S13",)

    def run(self):
        one = self.target().begin()
        pool = self.pools[0]
        path = one.folder / f"{pool.name}.yaml"
        with one.storm_of_hang_ups():
            for _ in range(20):
                path.unlink()
                time.sleep(self.dice.uniform(0.002, 0.3))
                one.write(pool)
                time.sleep(self.dice.uniform(0.05, 0.3))
        must('"released' not in one.said(), "saves: a file that was being saved released its pool")
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()


class Vanish(Case):
    """All pool files are gone at once, as where a mount is not there: every pool goes on, and a person is asked."""

    name, finds, sizes = "vanish", ("S18",), (2, 1, 1)

    def run(self):
        one = self.target().begin()
        aside = one.home / "aside"
        one.folder.rename(aside)
        one.folder.mkdir()
        time.sleep(RELOAD * 6)
        for pool in self.pools:
            must(one.pool(pool).status == 200, f"vanish: {pool.name} was released")
        must(one.ask("/health").json()["troubles"], "vanish: /health says nothing")
        one.folder.rmdir()
        aside.rename(one.folder)
        one.must_act(self.name)
        wait("vanish: the trouble is over", lambda: not one.ask("/health").json()["troubles"], RELOAD * 10)
        one.must_stop()
        self.left_alone()


CASES = [Fifo, Odd, Empty, Slash, Saves, Vanish]
