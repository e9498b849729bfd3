"""Draws by a seed from the mutants that cargo-mutants lists, builds and plays each, and says what share is killed."""

import argparse
import hashlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

# The rooms that decide and judge.
MUTATED = ["plan", "judge", "model", "pace"]
# Those that their suites need besides: no store, no network, and a third of the code to build.
BESIDE = ["act", "ambient", "memory", "observe", "reconcile", "sim", "wake", "world"]
CRATES = ["jiff", "proptest", "serde", "serde_json", "thiserror", "tokio"]
SUITES = ["rulings", "incidents", "mutation", "exhaustive", "flow", "pace", "storm"]
# What a stage leaves alive is shown to the next. The first is the quickest to build and to run, and kills most.
STAGES = [["--test=rulings"], ["--lib"], [f"--test={suite}" for suite in SUITES if suite != "rulings"]]
# Smaller than in `cargo test`: these are played for every mutant.
SIZES = {"POOLKEEPER_EXHAUSTIVE": "3", "STORMS": "300"}
# Quick to build rather than quick to run: building is most of it.
BUILD = {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_INCREMENTAL": "1"}
# In seconds. The suites take a minute on an idle machine; a mutant that makes them take ten runs in circles.
TEST_TIMEOUT, BUILD_TIMEOUT = 600, 1800
VERDICTS = ["caught", "timeout", "missed", "unviable"]


def manifest(text):
    """The clone's own, less what the rooms here do not need."""
    sections = re.split(r"(?m)^(?=\[)", text)
    crates = [line for section in sections if "dependencies]" in section.split("\n")[0] for line in section.splitlines()
              if line.startswith("[") or line.split(" ")[0] in CRATES]
    tests = [section for section in sections if section.startswith("[[test]]") and any(f'name = "{suite}"' in section for suite in SUITES)]
    edition = re.search(r'(?m)^edition = .*$', text).group()
    profile = [section for section in sections if section.startswith("[profile.dev")]
    head = f'[package]\nname = "poolkeeper"\nversion = "0.1.0"\n{edition}\npublish = false\nautotests = false\n\n'
    return head + "\n".join(crates) + "\n\n" + "".join(tests + profile)


def lay_out(clone, tree):
    """Only the rooms that matter here, as a package of their own, to be written in. All is new to cargo: a run that was
    killed may have left a mutant built from what looks no older than the clone."""
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "src").mkdir(parents=True)
    (tree / "Cargo.toml").write_text(manifest((clone / "Cargo.toml").read_text()))
    shutil.copy(clone / "Cargo.lock", tree)
    shutil.copytree(clone / ".cargo", tree / ".cargo", copy_function=shutil.copy)
    for room in sorted(MUTATED + BESIDE):
        if (clone / "src" / room).is_dir():
            shutil.copytree(clone / "src" / room, tree / "src" / room, copy_function=shutil.copy)
        else:
            shutil.copy(clone / "src" / f"{room}.rs", tree / "src")
    (tree / "src/lib.rs").write_text("".join(f"pub mod {room};\n" for room in sorted(MUTATED + BESIDE)))
    for folder in [*SUITES, "support", "golden/incidents"]:
        shutil.copytree(clone / "tests" / folder, tree / "tests" / folder, copy_function=shutil.copy)


def files():
    return [f"--file=src/{room}/**" for room in MUTATED]


def listed(tool, tree):
    """Every mutant there is, by name, in one order everywhere."""
    command = [tool, "mutants", "--dir", str(tree), "--list", "--json", *files()]
    mutants = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {mutant["name"]: mutant for mutant in sorted(mutants, key=lambda mutant: mutant["name"])}


def print_of(tree):
    """What a verdict holds for: the mutated text and its tests."""
    digest = hashlib.sha256(json.dumps([STAGES, SIZES]).encode())
    for path in sorted(tree.rglob("*")):
        if path.is_file() and path.name != "Cargo.lock":
            digest.update(str(path.relative_to(tree)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def place_of(text, point):
    """Lines and columns begin at 1, and columns count characters."""
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: point["line"] - 1])) + point["column"] - 1


def mutated(text, mutant):
    start, end = (place_of(text, mutant["span"][side]) for side in ("start", "end"))
    rest = text[end:]
    # A field goes with its comma.
    if mutant["genre"] == "StructField":
        rest = rest.removeprefix(",")
    return text[:start] + mutant["replacement"] + rest


def cargo(tree, target, arguments, within):
    """How it ended; None where it took longer."""
    environment = {**os.environ, **SIZES, **BUILD, "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "test", "--quiet", "--manifest-path", str(tree / "Cargo.toml"), *arguments]
    process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def verdict(tree, target):
    """What the suites say of the tree as it stands."""
    for suites in STAGES:
        built = cargo(tree, target, [*suites, "--no-run"], BUILD_TIMEOUT)
        if built != 0:
            return "unviable"
        played = cargo(tree, target, suites, TEST_TIMEOUT)
        if played != 0:
            return "timeout" if played is None else "caught"
    return "missed"


def play(tree, target, mutant):
    path = tree / mutant["file"]
    text = path.read_text()
    path.write_text(mutated(text, mutant))
    try:
        return verdict(tree, target)
    finally:
        path.write_text(text)


def wilson(killed, of):
    """The 95 % interval of a share."""
    z = 1.959964
    share = killed / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def report(drawn, found, population, seed):
    by = {verdict: [name for name in drawn if found.get(name) == verdict] for verdict in VERDICTS}
    killed, alive = len(by["caught"]) + len(by["timeout"]), len(by["missed"])
    played = killed + alive
    print(f"mutants: {len(drawn)} of {population} drawn by seed {seed}; {sum(map(len, by.values()))} done: {killed} killed "
          f"({len(by['timeout'])} by time), {alive} survived, {len(by['unviable'])} do not compile")
    if played:
        low, high = wilson(killed, played)
        print(f"mutants: {killed / played:.1%} killed, 95 % interval {low:.1%} to {high:.1%}")
    for name in by["missed"]:
        print(f"survived: {name}")


def main():
    parser = argparse.ArgumentParser(prog="integration/mutants/sample", add_help=True)
    parser.add_argument("--tool", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--cache", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--clone", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=200, help="so many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--minutes", type=float, help="end then; the next run goes on")
    asked = parser.parse_args()
    deadline = None if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    cache, clone = pathlib.Path(asked.cache), pathlib.Path(asked.clone)
    tree = cache / "tree"
    lay_out(clone, tree)
    mutants = listed(asked.tool, tree)
    names = list(mutants)
    drawn = random.Random(asked.seed).sample(names, min(asked.count, len(names)))
    print(f"mutants: {len(drawn)} of {len(names)}, seed {asked.seed}", flush=True)
    ledger = cache / f"{print_of(tree)}.json"
    found = json.loads(ledger.read_text()) if ledger.exists() else {}
    target = cache / "target"
    # A run that was killed in the middle of a build left one that passes for fresh: every mutant would look caught.
    for built in [target / "debug/incremental", *target.glob("debug/.fingerprint/poolkeeper-*")]:
        shutil.rmtree(built, ignore_errors=True)
    if verdict(tree, target) != "missed":
        sys.exit(f"mutants: the suites do not pass on the unchanged tree; see cargo test --manifest-path {tree / 'Cargo.toml'}")
    for name in drawn:
        if name in found:
            continue
        if deadline is not None and time.monotonic() > deadline:
            print("mutants: time is up; the next run goes on")
            break
        found[name] = play(tree, target, mutants[name])
        ledger.write_text(json.dumps(found, indent=1))
        print(f"{found[name]}: {name}", flush=True)
    report(drawn, found, len(names), asked.seed)


if __name__ == "__main__":
    main()
