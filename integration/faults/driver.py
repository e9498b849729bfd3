"""Fills, breaks and damages the daemon's disk and turns its clock while its pools roll; judges it by the emulator's record."""

import argparse
import errno
import pathlib
import signal
import sqlite3
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from driver import STOPS, beside, changes, wait
from house import LEASE, Failed, House
from judge import Pool, deleted_by, is_change, judge, set_of
from sick import READ_ONLY, Sick, may_mount, own

# Count, surge, unavailable: a pool under way is looked at four times a minute, so all of it rolls at once.
SHAPES = [(2, 2, 0), (3, 2, 1)]
# A change is answered so late.
SLOW_MS = 200
# Seconds until a rollout has ended, once nothing is wrong any more.
SETTLES = 100
# After its disk fails a daemon may finish what it is sending, and knows it by then: it keeps its lease three times in each.
NOTICES = LEASE
MINUTE = 60_000


def pools_of(name):
    return [Pool(f"{name}-{n}", *shape) for n, shape in enumerate(SHAPES)]


class Case:
    """One trouble: a daemon of its own, or two on one store."""

    name = ""

    def __init__(self, house, mounts):
        self.house, self.pools = house, pools_of(self.name)
        house.write_pools(self.name, self.pools)
        self.make(mounts)

    def make(self, mounts):
        self.one = Sick(self.house, self.name, self.pools)

    def begin(self):
        self.one.start()
        self.one.leads(LEASE * 2)
        wait("it is ready", lambda: self.one.ready()[0], 10)

    def roll(self):
        mark = self.house.mark()
        self.house.roll(self.one, all_of_them=True)
        wait(f"{self.name}: it acts", lambda: changes(self.house, self.one.client, mark), 20)

    def goes_on(self):
        mark = self.house.mark()
        if self.house.unfinished([self.one]):
            wait(f"{self.name}: it goes on", lambda: changes(self.house, self.one.client, mark), 40)

    def finish(self):
        wait(f"{self.name}: the rollouts finish", lambda: not self.house.unfinished([self.one]), SETTLES, 0.2)
        # What nothing waits for any more is looked at every five minutes.
        wait(f"{self.name}: it is at rest", lambda: not open_entries(self.one), 330, 0.2)
        self.one.journal = self.one.entries()

    def end(self):
        self.one.stop(STOPS)

    def must_say(self, *says):
        """It is not ready, and its readiness and its log say why."""

        def told():
            ready, say = self.one.ready()
            return not ready and all(one in say for one in says) and say

        wait(f"{self.name}: readiness says {says}: {self.one.ready()}", told, NOTICES)
        if not all(one in self.one.said() for one in says):
            raise Failed(f"{self.name}: the log does not say {says}")

    def nothing_is_sent(self, seconds):
        mark = self.house.mark()
        time.sleep(seconds)
        sent = changes(self.house, self.one.client, mark)
        if sent:
            raise Failed(f"{self.name}: it changed something that its store does not know of: {sent[0]}")
        self.one.must_run()


def open_entries(instance):
    try:
        return [entry for _, entry in instance.entries() if "ended" not in entry["phase"]]
    except sqlite3.Error:
        # Copied while it was written to.
        return ["unknown"]


class Full(Case):
    """The disk fills up in mid-rollout, and later has room again."""

    name = "full"

    def make(self, mounts):
        self.one = Sick(self.house, self.name, self.pools, mounted=mounts)

    def run(self):
        self.begin()
        self.roll()
        for _ in range(2):
            self.one.fill()
            self.must_say("the disk is full; make room and it goes on")
            self.nothing_is_sent(LEASE * 1.5)
            self.one.make_room()
            wait("full: ready again", lambda: self.one.ready()[0], NOTICES * 2)
            self.goes_on()
        self.finish()
        # It began nothing anew: the process is the first one.
        if self.one.starts != 1:
            raise Failed("full: it was begun again")
        self.end()


class Unwritable(Case):
    """The disk writes no more in mid-rollout, as one that the system set to read-only; a start on such a disk is refused."""

    name = "readonly"

    def make(self, mounts):
        super().make(mounts)
        self.mounts = mounts

    def run(self):
        self.begin()
        self.roll()
        for failure in (errno.EROFS, errno.EIO):
            self.one.order(write_fails=failure)
            self.must_say("the disk does not read or write; the system log says why")
            self.nothing_is_sent(LEASE * 1.5)
            self.one.order()
            wait("readonly: ready again", lambda: self.one.ready()[0], NOTICES * 2)
            self.goes_on()
        self.finish()
        self.end()
        if self.mounts:
            wrap = own(READ_ONLY, self.one.disk)
            self.one.must_refuse(str(self.one.store), "mount its disk for writing", wrap=wrap)
            self.one.must_refuse(str(self.one.disk / "new.db"), "mount its disk for writing", wrap=wrap, store="new.db")
            self.begin()
            self.finish()
            self.end()


class Damaged(Case):
    """The file is damaged while nobody has it open: a start is refused, and a backup goes on."""

    name = "damaged"

    def run(self):
        self.begin()
        self.roll()
        self.one.stop(STOPS)
        self.one.back_up()
        whole = self.one.store.read_bytes()
        if len(whole) < 5 * 4096:
            raise Failed("damaged: too small a file to be damaged in its middle")
        damages = {
            "in its middle": whole[:8192] + b"\xff" * 4096 + whole[12288:],
            "cut short": whole[: len(whole) // 2 + 100],
            "its head overwritten": b"\0" * 100 + whole[100:],
        }
        for how, data in damages.items():
            self.one.store.write_bytes(data)
            says = ("is not a database", "move this one away") if "head" in how else ("is damaged", "restore it")
            took = self.one.must_refuse(str(self.one.store), *says)
            if took > 5:
                raise Failed(f"damaged {how}: it took {took:.1f} s to say so")
            if self.one.store.read_bytes() != data:
                raise Failed(f"damaged {how}: the file was written to")
        self.one.restore()
        self.begin()
        self.finish()
        self.end()


class Clock(Case):
    """The wall's clock jumps forth and back, farther each time, and stays behind at the end.

    Never so far ahead that a machine that was just made seems to be older than its readiness deadline of 20 minutes: then
    it counts as failed, and the rollout stops and asks for a person.
    """

    name = "clock"

    def run(self):
        self.begin()
        self.roll()
        for off in (5, 0, 9, -30, 12, -120):
            self.one.order(clock_off_ms=off * MINUTE)
            time.sleep(LEASE * 0.7)
            wait("clock: it is ready", lambda: self.one.ready()[0], LEASE * 3)
        said = self.one.said()
        if "this machine's clock was set back by" not in said or said.count("this machine's clock") > 4:
            raise Failed("clock: it did not say that the clock was set back, or said it again and again")
        self.end()
        # What it remembers lies in the future of this clock, and what was begun is finished all the same.
        self.begin()
        if "by what is remembered it is" not in self.one.said():
            raise Failed("clock: it does not say that what it remembers is later than the clock")
        self.finish()
        self.one.order()
        wait("clock: it is ready at the right time", lambda: self.one.ready()[0], LEASE * 3)
        self.end()


class Standby(Case):
    """What people ask of a process that waits is done by the one that leads, soon, though its next turn is not."""

    name = "standby"

    def make(self, _):
        one, other = (Sick(self.house, f"standby-{n}", self.pools, shared=True, folder="standby") for n in "ab")
        self.one, self.other = one, other

    def run(self):
        self.begin()
        self.roll()
        self.finish()
        self.other.start()
        wait("standby: the other waits", lambda: "another process leads" in self.other.ready()[1], 20)
        # At rest a pool is looked at now and then only.
        time.sleep(3)
        mark, pool = self.house.mark(), self.pools[0].name
        began = time.monotonic()
        self.other.post(f"/api/v1/pools/{pool}/refresh", {"why": "a test"})
        wait("standby: the leader acts", lambda: changes(self.house, self.one.client, mark), 10)
        self.took = time.monotonic() - began
        if self.took > 6:
            raise Failed(f"standby: the leader heard of it after {self.took:.1f} s")
        if changes(self.house, self.other.client, mark):
            raise Failed("standby: the one that waits acted")
        self.finish()
        self.other.stop(STOPS)
        self.end()


CASES = {case.name: case for case in (Full, Unwritable, Damaged, Clock, Standby)}


def undurable(record, case):
    """Changes in the emulator's record that no entry stands for; each entry stands for one."""
    left = list(case.one.journal)
    clients = {case.one.client}
    for one in record["requests"]:
        if one["client"] not in clients or not is_change(one) or not one["status"] or one["status"] >= 300:
            continue
        found = next((entry for entry in left if stands_for(entry, one, case.name == "clock")), None)
        if found is None:
            yield f"{case.name}: no entry stands for {one['method']} {one['path']} at {one['at']}: {one['body']}"
        else:
            left.remove(found)


def stands_for(named, one, any_time):
    pool, entry = named
    if pool != set_of(one["path"]) or entry["phase"] == "intended":
        return False
    if not any_time and not entry["written"] <= one["at"]:
        return False
    (verb, action), = entry["action"].items()
    if "/tags/default" in one["path"]:
        return verb == "tagOwner"
    machines = deleted_by(one)
    if machines:
        return verb == "delete" and {target["id"] for target in action["targets"]} == set(machines)
    capacity = ((one["body"] or {}).get("sku") or {}).get("capacity")
    if verb == "raise":
        return capacity == action["to"]
    return verb == "updateModel" and capacity is None


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}; all without any")
    options.add_argument("--program", required=True)
    options.add_argument("--scratch", required=True)
    options = options.parse_args()
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    unknown = set(options.cases) - set(CASES)
    if unknown:
        raise SystemExit(f"faults: no case {', '.join(sorted(unknown))}; there are: {', '.join(CASES)}")
    began, table, wrong = time.monotonic(), {}, []
    chosen = [CASES[name] for name in options.cases] or list(CASES.values())
    clients = [case.name for case in chosen if case is not Standby] + ["standby-a", "standby-b"]
    pools = [pool for case in chosen for pool in pools_of(case.name)]
    mounts = may_mount(pathlib.Path(options.scratch))
    table["own disk"] = "mounted" if mounts else "made up"
    house = House(options.program, options.scratch, clients, pools, SLOW_MS)
    cases = []
    try:
        cases += [case(house, mounts) for case in chosen]
        beside(*[case.run for case in cases])
    except Failed as error:
        wrong.append(str(error))
    except Exception:
        wrong.append(traceback.format_exc())
    finally:
        try:
            record = house.record()
            found = judge(record, house.state(), pools, house.versions, [])
            table.update(found.table)
            wrong += found.wrong
            without = [say for case in cases if hasattr(case.one, "journal") for say in undurable(record, case)]
            table["no intent"] = len(without)
            wrong += without
        except Exception:
            wrong.append(traceback.format_exc())
        house.end()
    wrong += house.leaks()
    for case in cases:
        if hasattr(case, "took"):
            table["heard after, s"] = f"{case.took:.1f}"
    table["seconds"] = round(time.monotonic() - began)
    for name, value in table.items():
        print(f"{name:<18} {value:>8}")
    for one in wrong:
        print(f"faults: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
