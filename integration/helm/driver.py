"""Puts the chart on a real control plane, judges what is there, and runs the daemon as its pod would."""

import argparse
import pathlib
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "kubernetes"))

from control import Failed

from drains import Unwatched, drain
from installs import installs, plant, render
from suite import Suite


class Beside(threading.Thread):
    """A case beside the others, which ends with the driver."""

    def __init__(self, case, suite):
        super().__init__(daemon=True, name=case.__name__)
        self.case, self.suite, self.wrong = case, suite, []
        self.start()

    def run(self):
        try:
            self.wrong = self.case(self.suite)
        except Failed as error:
            self.wrong = [str(error)]
        except Exception:
            self.wrong = [traceback.format_exc()]

    def result(self):
        self.join()
        return self.wrong


def play(suite):
    """Returns what is wrong."""
    suite.start()
    unwatched = Unwatched(suite)
    unwatched.begin()
    # It mostly waits.
    drained = Beside(drain, suite)
    wrong = installs(suite) + plant(suite) + render(suite) + drained.result() + unwatched.judge()
    took = [pod.stop() for pod in suite.pods]
    suite.table["stops"] = f"the daemons end {max(took):.1f} s after the signal"
    for pod in suite.pods:
        wrong += [f"the daemon says {line}" for line in pod.log.read_text().splitlines() if '"level":"ERROR"' in line][:3]
    return wrong + suite.stage.kubelets.wrong + suite.stage.broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "components", "helm", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    options, began, table, wrong = parser.parse_args(), time.monotonic(), {}, []
    suite = Suite(options, table)
    try:
        wrong += play(suite)
    except Failed as error:
        wrong.append(str(error))
    except Exception:
        wrong.append(traceback.format_exc())
    finally:
        suite.end()
    for name, value in table.items():
        print(f"{name:<36} {value}")
    for one in wrong:
        print(f"helm: {one}", file=sys.stderr)
    if wrong:
        return 1
    print(f"helm: ok, {suite.helm.calls} calls of Helm, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
