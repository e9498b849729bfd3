"""Rolls the nodes of a real control plane, and judges by its audit log and by a watch of its pods and budgets."""

import argparse
import random
import signal
import sys
import threading
import time
import traceback

import cases
from control import Failed
from stage import Stage
from witness import Calls, judge_nodes, judge_pods

# What runs beside each other first, and what then has the daemon for itself.
BESIDE = {"rolls": "main", "blocked": "blocked", "twice": "twice", "blind": "blind"}
AFTER = {"doctor": "main", "apiserver": "blocked", "kills": "killed"}
KILLS, FULL_KILLS = 6, 60


def beside(tasks):
    """All of them at once; what failed is told once all have ended."""
    failed = []

    def guarded(name, task):
        try:
            task()
        except Failed as error:
            failed.append(f"{name}: {error}")
        except Exception:
            failed.append(f"{name}: {traceback.format_exc()}")

    threads = [threading.Thread(target=guarded, args=item, daemon=True) for item in tasks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def play(stage, options, dice, table):
    """Returns what is wrong."""
    cases.prepare(stage)
    with_daemon = [name for name in options.only if name != "compare"]
    if with_daemon:
        for name in {**BESIDE, **AFTER}.values():
            stage.write_pool(name, "1.0.0", clustered=name != "blind")
        stage.start_daemon()
    tasks = {name: lambda name=name: getattr(cases, name)(stage, table) for name in BESIDE if name in options.only}
    if "compare" in options.only and not options.full:
        tasks["compare"] = lambda: cases.compare(stage, table)
    wrong = beside(tasks)
    if "rolls" in options.only and not wrong:
        wrong += judge_calls(stage, table)
    if wrong:
        return wrong
    if "doctor" in options.only:
        cases.doctor(stage, table)
    if "apiserver" in options.only:
        cases.apiserver(stage, table)
    if "kills" in options.only:
        cases.kills(stage, table, dice, options.kills)
    if "compare" in options.only and options.full:
        cases.compare(stage, table)
    return []


def judge_calls(stage, table):
    calls = Calls(stage.audit.ours())
    budgets = {}
    for budget in stage.budgets.all():
        namespace = budget["metadata"]["namespace"]
        budgets[namespace] = budgets.get(namespace, 0) + 1
    set_of = {name: budgets.get(one, 0) for one in stage.sets for name in calls.drained if name.startswith(one)}
    most = calls.most(lambda node: set_of.get(node, 0))
    parts = ", ".join(f"{count} {part}" for part, count in calls.parts.most_common())
    table["drains"] = f"{len(calls.drained)} in {calls.all()} calls beside the watch, at most {most:.0f}: {parts}"
    if len(calls.drained) < cases.SETS["main"]:
        return [f"only {len(calls.drained)} nodes were marked"]
    return [f"the drains took {calls.all()} calls: {parts}"] if calls.all() > most else []


def judge(stage, options, table):
    """What holds all the time, whichever cases ran."""
    # A killed process has no more to say, but the audit of its last call may be late.
    time.sleep(1)
    ours = stage.audit.ours()
    wrong = judge_pods(ours, stage.witness) + judge_nodes(stage.audit.all, stage.nodes.all())
    drained = [name for name in stage.workloads if name != "blind"]
    wrong += [say for name in drained for say in stage.witness.broken(name)]
    wrong += stage.kubelets.wrong + stage.broken
    for name in sorted(drained):
        left = stage.witness.left(name).items()
        table[f"{name}, lowest"] = ", ".join(f"{budget} {healthy} of {desired}" for budget, (healthy, desired) in left)
    if stage.daemon:
        evicted = sum(1 for one in ours if one.get("objectRef", {}).get("subresource") == "eviction")
        table["evictions asked"] = evicted
        wrong += [f"the daemon says {line}" for line in stage.daemon.errors()[:3]]
    return wrong


def choose():
    every = [*BESIDE, *AFTER, "compare"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--components", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", action="append", choices=every)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    options.only = options.only or (every if options.full else [name for name in every if name != "compare"])
    options.kills = options.kills or (FULL_KILLS if options.full else KILLS)
    return options


def main():
    options, began, table, wrong = choose(), time.monotonic(), {}, []
    print(f"kubernetes: seed {options.seed}", flush=True)
    stage = Stage(options.program, options.components, options.scratch, cases.SETS)
    try:
        stage.start()
        table["control plane"] = f"up in {time.monotonic() - began:.0f} s"
        wrong += play(stage, options, random.Random(options.seed), table)
    except Failed as error:
        wrong.append(str(error))
    except Exception:
        wrong.append(traceback.format_exc())
    finally:
        try:
            wrong += judge(stage, options, table)
            stage.keep_state()
        except Exception:
            wrong.append(traceback.format_exc())
        stage.end()
    for name, value in table.items():
        print(f"{name:<18} {value}")
    for one in wrong:
        print(f"kubernetes: {one}", file=sys.stderr)
    if wrong:
        print(f"kubernetes: again with --seed {options.seed}", file=sys.stderr)
        return 1
    print(f"kubernetes: {', '.join(options.only)}: ok, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
