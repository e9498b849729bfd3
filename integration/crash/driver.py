"""Kills, deposes and stops the daemon while its pools roll, and judges it by the emulator's record."""

import argparse
import random
import signal
import sys
import threading
import time
import traceback

from house import LEASE, Failed, House, Instance
from judge import Pool, is_change, judge

# Each has a daemon and a store of its own, so that while one waits for the lease of the killed to end another acts.
CELLS = 8
# Count, surge, unavailable.
SHAPES = [(3, 1, 0), (4, 2, 1), (3, 0, 1)]
# Of all kills, those that may fall anywhere from the start of the process on; the others follow its first deed.
EARLY = 0.1
# A killed process has acted for this long, at most.
ACTS = 2.0
# A change is answered so late: half of all kills would find one under way if changes followed each other.
SLOW_MS = 400
# Of all kills, more than this part must: with fewer the suite shows too little.
IN_DOUBT = 0.05
# From this part of all kills on.
LATE = 0.85
# Seconds after the last kill, at most: a doubt stops a pool for three minutes, and each machine of it takes up to a minute
# and a half, because a pool is looked at once a minute.
SETTLES = 600
STOPS = 10.0


def pools_of(prefix):
    return [Pool(f"{prefix}-{n}", *shape) for n, shape in enumerate(SHAPES)]


def wait(what, until, seconds, every=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = until()
        if found:
            return found
        time.sleep(every)
    raise Failed(f"waited {seconds} s in vain: {what}")


class Kills:
    """Every cell is killed and begun again until all of them together have had enough."""

    def __init__(self, house, cells, wanted, seed):
        self.house, self.cells, self.wanted, self.seed = house, cells, wanted, seed
        self.done, self.lock, self.failed = 0, threading.Lock(), False

    def run(self):
        beside(*[lambda cell=cell: self.guarded(cell) for cell in self.cells])

    def guarded(self, cell):
        try:
            self.cell(cell)
        except BaseException:
            self.failed = True
            raise

    def cell(self, cell):
        dice = random.Random(f"{self.seed}/{cell.name}")
        while not self.failed:
            with self.lock:
                if self.done >= self.wanted:
                    return
                self.done += 1
            # Towards the end only so that something rolls: what the last kills cut off has to end in time.
            late = self.done > self.wanted * LATE
            if not (late and self.house.unfinished_now(cell)):
                self.house.roll(cell)
            cell.start()
            if dice.random() < EARLY:
                time.sleep(dice.uniform(0, LEASE))
            else:
                cell.leads(LEASE * 3)
                time.sleep(dice.uniform(0, ACTS))
            cell.kill()


def settle(house, cells):
    """What was cut off is finished; nobody had to help."""
    for cell in cells:
        cell.start()
    wait("the rollouts finish", lambda: not house.unfinished(cells), SETTLES, 0.5)
    # An answer that was late would show itself now.
    time.sleep(2)
    unfinished = house.unfinished(cells)
    if unfinished:
        raise Failed(f"after the end: {unfinished}")
    for cell in cells:
        cell.stop(STOPS)


def changes(house, client, since):
    return [one for one in house.requests(since) if one["client"] == client and is_change(one)]


def depose(house, pools, dice, rounds):
    """The leader sleeps past its lease and wakes: it changes nothing more, and the other waited for the lease's end."""
    both = [Instance(house, "shared", f"shared-{n}", pools, shared=True) for n in "ab"]
    for one in both:
        one.start()
    for _ in range(rounds):
        mark = house.mark()
        house.roll(both[0], all_of_them=True)
        leader = wait("somebody leads and acts", lambda: acting(house, both, mark), 60)
        other = next(one for one in both if one is not leader)
        not_after = stop_between_writes(leader, dice)
        mark = house.mark()
        # Something for each of them to do at once, whoever thinks that it leads.
        house.roll(both[0], all_of_them=True)
        first = wait("the other acts", lambda: changes(house, other.client, mark), LEASE * 6)[0]
        if first["at"] < not_after:
            raise Failed(f"{other.name} acted {not_after - first['at']} ms before the lease of {leader.name} ended")
        time.sleep(dice.uniform(0, 1))
        woken = house.mark()
        leader.signal(signal.SIGCONT)
        time.sleep(LEASE * 0.8)
        after = changes(house, leader.client, woken)
        if after:
            raise Failed(f"{leader.name} changed something after it was deposed: {after[0]}")
        for one in both:
            one.must_run()
    wait("the rollouts of two on one store finish", lambda: not house.unfinished(both[:1]), SETTLES, 0.5)
    for one in both:
        one.stop(STOPS)


def acting(house, both, mark):
    for one in both:
        one.must_run()
    for one in both:
        if one.is_holder() and changes(house, one.client, mark):
            return one
    return None


def stop_between_writes(leader, dice):
    """Stopped in the middle of a write to the store it would keep the other from the store, not only from the lease."""
    for _ in range(50):
        time.sleep(dice.uniform(0, 1))
        leader.stopped_at = time.time() * 1000
        leader.signal(signal.SIGSTOP)
        if leader.store_is_free() and leader.is_holder():
            return leader.lease()[1]
        leader.signal(signal.SIGCONT)
    raise Failed("the leader was never found between two writes")


def graceful(house, pools, dice, rounds):
    """Told to stop it ends in time; whoever is next does not wait for its lease, unless a turn had to be cut off."""
    one = Instance(house, "graceful", "graceful", pools)
    slowest = 0.0
    one.start()
    one.leads(LEASE)
    for last in [False] * (rounds - 1) + [True]:
        mark = house.mark()
        house.slow(SLOW_MS, "graceful", 20_000 if last else SLOW_MS)
        house.roll(one, all_of_them=True)
        wait("it acts", lambda: changes(house, one.client, mark), 60)
        time.sleep(0 if last else dice.uniform(0, 0.5))
        slowest = max(slowest, one.stop(STOPS))
        house.slow(SLOW_MS)
        mark = house.mark()
        one.start()
        took = one.leads(LEASE * 3)
        if not last and took > LEASE * 0.6:
            raise Failed(f"after a graceful end the next start waited {took:.1f} s to lead")
        wait("it goes on", lambda: changes(house, one.client, mark), 60)
    wait("the rollouts of the one that was told to stop finish", lambda: not house.unfinished([one]), SETTLES, 0.5)
    return max(slowest, one.stop(STOPS))


def beside(*tasks):
    """All of them at once; the first failure is told once all have ended."""
    failed = []

    def guarded(task):
        try:
            task()
        except Exception as error:
            failed.append(str(error) if isinstance(error, Failed) else traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise Failed("; ".join(failed))


def prove(options, house, table):
    cells = []
    for n in range(CELLS):
        pools = pools_of(f"cell{n}")
        house.write_pools(f"cell{n}", pools)
        cells.append(Instance(house, f"cell{n}", f"cell{n}", pools))
    for name in ("shared", "graceful"):
        house.write_pools(name, pools_of(name))
    kills = Kills(house, cells, options.kills, options.seed)
    kills.run()
    table["kills"] = kills.done

    def stops():
        dice = random.Random(f"{options.seed}/graceful")
        table["slowest stop, s"] = f"{graceful(house, pools_of('graceful'), dice, options.rounds):.1f}"

    def deposes():
        depose(house, pools_of("shared"), random.Random(f"{options.seed}/shared"), options.rounds)
        table["deposed"] = options.rounds

    beside(lambda: settle(house, cells), deposes, stops)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", required=True)
    options.add_argument("--scratch", required=True)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    print(f"crash: seed {options.seed}", flush=True)
    began, table, wrong = time.monotonic(), {}, []
    killed = [f"cell{n}" for n in range(CELLS)]
    clients = killed + ["shared-a", "shared-b", "graceful"]
    names = killed + ["shared", "graceful"]
    pools = [pool for name in names for pool in pools_of(name)]
    house = House(options.program, options.scratch, clients, pools, SLOW_MS)
    try:
        prove(options, house, table)
    except Failed as error:
        wrong.append(str(error))
    except Exception:
        wrong.append(traceback.format_exc())
    finally:
        try:
            found = judge(house.record(), house.state(), pools, house.versions, killed)
            table.update(found.table)
            wrong += found.wrong
            doubted = found.table["in doubt"]
            if doubted <= options.kills * IN_DOUBT:
                wrong.append(f"only {doubted} kills fell between a change and its answer")
        except Exception:
            wrong.append(traceback.format_exc())
        house.end()
    wrong += house.leaks()
    table["seconds"] = round(time.monotonic() - began)
    for name, value in table.items():
        print(f"{name:<18} {value:>8}")
    for one in wrong:
        print(f"crash: {one}", file=sys.stderr)
    if wrong:
        print(f"crash: again with --seed {options.seed}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
