"""Draws mutants by a seed, lets cargo-mutants build and test them, and says what share is killed."""

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
# The first that kills a mutant ends it; what these suites leave alive is shown to the unit tests too.
STAGES = [[f"--test={suite}" for suite in SUITES], ["--lib"]]
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
    """Only the rooms that matter here, as a package of their own, in which cargo-mutants may write."""
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "src").mkdir(parents=True)
    (tree / "Cargo.toml").write_text(manifest((clone / "Cargo.toml").read_text()))
    shutil.copy(clone / "Cargo.lock", tree)
    shutil.copytree(clone / ".cargo", tree / ".cargo")
    for room in sorted(MUTATED + BESIDE):
        if (clone / "src" / room).is_dir():
            shutil.copytree(clone / "src" / room, tree / "src" / room)
        else:
            shutil.copy(clone / "src" / f"{room}.rs", tree / "src")
    (tree / "src/lib.rs").write_text("".join(f"pub mod {room};\n" for room in sorted(MUTATED + BESIDE)))
    for folder in [*SUITES, "support", "golden/incidents"]:
        shutil.copytree(clone / "tests" / folder, tree / "tests" / folder)


def files():
    return [f"--file=src/{room}/**" for room in MUTATED]


def listed(tool, tree):
    """Every mutant there is, by name, in one order everywhere."""
    command = [tool, "mutants", "--dir", str(tree), "--list", "--json", *files()]
    mutants = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return sorted({mutant["name"] for mutant in mutants})


def print_of(tree):
    """What a verdict holds for: the mutated text and its tests."""
    digest = hashlib.sha256(json.dumps([STAGES, SIZES]).encode())
    for path in sorted(tree.rglob("*")):
        if path.is_file() and path.name != "Cargo.lock":
            digest.update(str(path.relative_to(tree)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def verdicts(place):
    """What earlier runs of a stage found out, cut or not."""
    found = {}
    for verdict in VERDICTS:
        for path in sorted(place.glob(f"*/mutants.out/{verdict}.txt")):
            found.update((name, verdict) for name in path.read_text().splitlines())
    return found


def exactly(name):
    """As a regular expression of Rust, which knows fewer escapes than Python's."""
    return "^" + re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", name) + "$"


def play(tool, tree, place, suites, names, target, deadline):
    """One run of cargo-mutants over these. False where time was up."""
    place.mkdir(parents=True, exist_ok=True)
    output = place / str(len(list(place.iterdir())))
    output.mkdir()
    # The unchanged tree has to pass once for each stage.
    baseline = "skip" if (place / "passed").exists() else "run"
    command = [tool, "mutants", "--dir", str(tree), "--in-place", "--output", str(output), "--no-shuffle", "--colors=never",
               "--no-times", f"--baseline={baseline}", f"--timeout={TEST_TIMEOUT}", f"--build-timeout={BUILD_TIMEOUT}"]
    command += files() + [f"--re={exactly(name)}" for name in names]
    command += ["--", *suites]
    environment = {**os.environ, **SIZES, **BUILD, "CARGO_TARGET_DIR": str(target)}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        status = process.wait(timeout=None if deadline is None else max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        status = None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
    # 0: all caught; 2: some missed; 3: some timed out. All else is no verdict.
    if status not in (None, 0, 2, 3):
        sys.exit(f"mutants: cargo-mutants ended with {status}; see {output}")
    if status is not None:
        (place / "passed").touch()
    return status is not None


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
    names = listed(asked.tool, tree)
    drawn = random.Random(asked.seed).sample(names, min(asked.count, len(names)))
    print(f"mutants: {len(drawn)} of {len(names)}, seed {asked.seed}", flush=True)
    place = cache / print_of(tree)
    found = {}
    for number, suites in enumerate(STAGES):
        stage = place / f"stage-{number}"
        known = verdicts(stage)
        left = [name for name in drawn if found.get(name, "missed") == "missed" and name not in known]
        whole = not left or play(asked.tool, tree, stage, suites, left, cache / "target", deadline)
        known = verdicts(stage)
        found.update((name, known[name]) for name in drawn if name in known and found.get(name, "missed") == "missed")
        if not whole:
            print("mutants: time is up; the next run goes on, and shows what survived so far to the suites that are left")
            break
    report(drawn, found, len(names), asked.seed)


if __name__ == "__main__":
    main()
