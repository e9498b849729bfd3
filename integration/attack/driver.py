"""Attacks the daemon by every way in that is known, each with dice of its own, and judges it by the emulator's record."""

import argparse
import pathlib
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback

import cloud
import files
import sockets
import store
import tokens
from target import FAULT, Failed, deleted_by, is_change

import signals
from house import House

GROUPS = [files.CASES, store.CASES, signals.CASES, sockets.CASES, tokens.CASES, cloud.CASES]
CASES = [case for group in GROUPS for case in group]
# Silent connections of one case, and what all others need.
FILES = 4096


class Attacked(House):
    """The emulator, and tokens for the APIs before it."""

    def make_token(self, role):
        """A token, and its line for a tokens file."""
        made = subprocess.run(
            [self.program, "create-token", role, role], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        token, line = made.stdout.splitlines()
        self.secrets[f"token-{len(self.secrets)}"] = token
        return token, line + "\n"


def chosen(words):
    """Cases by name or by finding."""
    if not words:
        return CASES
    known = {case.name for case in CASES} | {find for case in CASES for find in case.finds}
    unknown = set(words) - known
    if unknown:
        raise SystemExit(f"attack: there is no {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    return [case for case in CASES if case.name in words or set(case.finds) & set(words)]


def attack(program, scratch, cases, seed):
    """One round: groups beside each other, the cases of each in order. What went wrong, in words."""
    scratch.mkdir()
    pools = [pool for case in cases for pool in case.all_pools()]
    clients = [client for case in cases for client in case.clients()]
    house = Attacked(program, scratch, clients, pools, 0)
    wrong, took, lock = [], {}, threading.Lock()

    def play(case):
        began = time.monotonic()
        try:
            case(house, random.Random(f"{seed}/{case.name}")).run()
            said = None
        except Failed as failed:
            said = str(failed)
        except Exception:
            said = f"{case.name}: {traceback.format_exc()}"
        with lock:
            took[case.name] = time.monotonic() - began
            if said:
                wrong.append(f"[{', '.join(case.finds)}] {said}")

    def play_all(group):
        for case in group:
            if case in cases:
                play(case)

    threads = [threading.Thread(target=play_all, args=(group,)) for group in GROUPS]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        record = house.record()
        wrong += twice(record["requests"])
        for one in house.began:
            if one.log.exists() and FAULT in one.log.read_text(errors="replace"):
                wrong.append(f"{one.name} met a fault of its own; its log says which")
    finally:
        house.end()
    wrong += house.leaks()
    return wrong, took


def twice(requests):
    """Machines that were asked to be deleted more than once."""
    gone = [(one["path"], machine) for one in requests if is_change(one) for machine in deleted_by(one)]
    for one in sorted({one for one in gone if gone.count(one) > 1}):
        yield f"{one[0]}: machine {one[1]} was deleted twice"


def main():
    parser = argparse.ArgumentParser(prog="integration/attack/run", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help="a name or a finding; all without any")
    parser.add_argument("--program", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--seeds", type=int, default=1, help="rounds, each with dice of its own")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    options = parser.parse_args()
    if options.list:
        for case in CASES:
            print(f"{case.name:<10} {', '.join(case.finds):<12} {case.__doc__}")
        return 0
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    cases, status = chosen(options.cases), 0
    for seed in range(options.seed, options.seed + options.seeds):
        began = time.monotonic()
        wrong, took = attack(options.program, pathlib.Path(options.scratch) / str(seed), cases, seed)
        slowest = ", ".join(f"{name} {took[name]:.0f} s" for name in sorted(took, key=took.get)[-3:])
        held = len(cases) - len(wrong)
        print(f"attack: seed {seed}: {held} of {len(cases)} held, {time.monotonic() - began:.0f} s ({slowest})", flush=True)
        for one in wrong:
            print(f"attack: {one}", file=sys.stderr)
        if wrong:
            print(f"attack: again with --seed {seed}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
