"""Signals at every moment."""

import signal
import time

from target import LEASE, Case, wait


class HangUps(Case):
    """SIGHUP after SIGHUP, and SIGTERM in the middle of them: files are taken in meanwhile, and it ends in time."""

    name, finds = "hangups", ("held",)

    def run(self):
        one = self.target().begin()
        with one.storm_of_hang_ups():
            one.must_act(self.name)
            one.must_stop()
        self.left_alone()


class EarlyHangUp(Case):
    """SIGHUP in the first moments of a start ends nothing."""

    name, finds = "early", ("hangup",)

    def run(self):
        one = self.target()
        for _ in range(8):
            one.start()
            # The program itself has to be there, which no program can change.
            time.sleep(self.dice.uniform(0.02, 0.2))
            one.hang_up()
            wait(f"early: it begins: {one.process.poll()}", one.is_ready, 20)
            one.must_stop()
        self.left_alone()


class Stopped(Case):
    """Stopped for longer than its lease, and let go: it changes nothing by the old lease, and leads again."""

    name, finds = "stopped", ("held",)

    def run(self):
        one = self.target().begin()
        for _ in range(2):
            one.signal(signal.SIGSTOP)
            one.write(self.pools[0], self.pools[0].count + 1)
            time.sleep(LEASE * self.dice.uniform(1.1, 1.5))
            one.signal(signal.SIGCONT)
            wait("stopped: it leads again", one.is_ready, LEASE * 4)
            one.must_act(self.name)
        one.signal(signal.SIGTERM)
        one.signal(signal.SIGTERM)
        one.process.wait(5)
        self.left_alone()


CASES = [HangUps, EarlyHangUp, Stopped]
