"""Rolls the nodes of a real control plane, and judges by its audit log and by a watch of its pods and budgets."""

import argparse
import random
import signal
import sys
import threading
import time
import traceback

import annotations
import autoscaler
import cases
import compare
import kills
import own
import silent
from control import Failed
from size import Size
from stage import Stage
from witness import Calls, judge_nodes, judge_pods

# What runs beside each other first, beside kills and size, and what then has the cluster for itself.
BESIDE = (cases.rolls, cases.blocked, cases.twice, cases.blind, silent.gone, silent.unreachable, silent.dying,
          annotations.undisrupted, annotations.shielded, autoscaler.scaled, own.own)
AFTER = (cases.doctor, cases.apiserver)
# What only the full form plays.
FULL = (compare.compare, compare.crowded)
KILLS, FULL_KILLS = 6, 60
# Nodes of the large cluster, and seconds of its rest.
SIZE, FULL_SIZE = (100, 45), (1000, 600)


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
    if options.only != ["size"]:
        cases.prepare(stage)
    if set(options.only) - {"compare", "size"}:
        for name in stage.sets:
            stage.write_pool(name, "1.0.0", clustered=name != "blind")
        stage.start_daemon()
    chosen = lambda cases: [case for case in cases if case.__name__ in options.only]
    tasks = {case.__name__: lambda case=case: case(stage, table) for case in chosen(BESIDE)}
    if "kills" in options.only:
        tasks["kills"] = lambda: kills.kills(stage, table, dice, options.kills)
    if "size" in options.only:
        size = Size(options.program, options.components, options.scratch, *(FULL_SIZE if options.full else SIZE))
        tasks["size"] = lambda: size.run(table)
    if "apiserver" in options.only:
        tasks["drains"] = lambda: cases.drains(stage, table)
    wrong = beside(tasks)
    if "rolls" in options.only and not wrong:
        wrong += judge_calls(stage, table)
    if wrong:
        return wrong
    for case in chosen(AFTER) + chosen(FULL):
        case(stage, table)
    return []


def judge_calls(stage, table):
    calls = Calls(stage.audit.ours("main"))
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
        said = ", ".join(f"{budget} {healthy} of {desired}" for budget, (healthy, desired) in left)
        table[f"{name}, lowest"] = said or "no budget"
    table["evictions asked"] = sum(1 for one in ours if one.get("objectRef", {}).get("subresource") == "eviction")
    daemons = [(name, home.daemon) for name, home in stage.homes.items() if home.daemon]
    return wrong + [f"the daemon of {name} says {line}" for name, daemon in daemons for line in daemon.errors()[:3]]


def choose():
    short = [*(case.__name__ for case in BESIDE + AFTER), "kills", "size"]
    full = [case.__name__ for case in FULL]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--components", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", action="append", choices=short + full)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    options.only = options.only or (short + full if options.full else short)
    # Each of them may be asked for alone, in its short form.
    options.sets = cases.SETS | (cases.FULL_SETS if "crowded" in options.only else {})
    options.kills = options.kills or (FULL_KILLS if options.full else KILLS)
    return options


def main():
    options, began, table, wrong = choose(), time.monotonic(), {}, []
    print(f"kubernetes: seed {options.seed}", flush=True)
    stage = Stage(options.program, options.components, options.scratch, options.sets, cases.ALONE)
    stage.full = options.full
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
