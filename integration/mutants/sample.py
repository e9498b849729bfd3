"""Draws by a seed from the mutants that cargo-mutants lists, plays each, and says what share is killed.

Most are built into one program, which reads at its start which of them it is to be: a function with mutants has a body for
each. What such a program cannot hold (a mutant that does not compile, a function that must be const) is built alone."""

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
MUTATED = ["plan", "size", "judge", "model", "pace"]
# Those that their suites need besides: no store, no network, and a third of the code to build.
BESIDE = ["act", "ambient", "memory", "observe", "reconcile", "sim", "wake", "world"]
# Of the room `api`, which needs a network, only how a state is written.
FORMATS = ["api", "v1", "state"]
CRATES = ["croner", "governor", "jiff", "proptest", "serde", "serde_json", "strsim", "thiserror", "tokio"]
SUITES = ["exhaustive", "flow", "incidents", "mutation", "pace", "rulings", "storm"]
# Of tests/support, what they share; the rest needs the store or the program.
SHARED = ["bound", "clock", "golden", "pool"]
# What a stage leaves alive is shown to the next. The first are the quickest, and kill most.
QUICK = ["rulings", "--lib", "incidents", "mutation"]
STAGES = [*([stage] for stage in QUICK), [suite for suite in SUITES if suite not in QUICK]]
# Smaller than in `cargo test`: these are played for every mutant.
SIZES = {"POOLKEEPER_EXHAUSTIVE": "3", "STORMS": "300", "PROPTEST_MAX_SHRINK_ITERS": "0"}
# Played for every mutant, so optimised.
PLAIN = {"CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_PROFILE_DEV_OPT_LEVEL": "2"}
# One mutant alone is built quickly rather than run quickly: building is most of it.
ALONE = {**PLAIN, "CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_INCREMENTAL": "1"}
# In seconds. A mutant that makes a stage take five times as long as on the unchanged tree, and a minute, runs in circles.
MANY_TIMES, AT_LEAST, BUILD_TIMEOUT = 5, 60, 1800
VERDICTS = ["caught", "timeout", "missed", "unviable"]
# What the program with all mutants asks at each function that has some.
SWITCH = """
pub fn mutant() -> usize {
    static CHOSEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX))
}
"""


def manifest(text):
    """The clone's own, less what the rooms here do not need."""
    sections = re.split(r"(?m)^(?=\[)", text)
    crates = [line for section in sections if "dependencies]" in section.split("\n")[0] for line in section.splitlines()
              if line.startswith("[") or line.split(" ")[0] in CRATES]
    edition = re.search(r'(?m)^edition = .*$', text).group()
    profile = [section for section in sections if section.startswith("[profile.dev")]
    head = f'[package]\nname = "poolkeeper"\nversion = "0.1.0"\n{edition}\npublish = false\nautotests = false\n\n'
    test = '[[test]]\nname = "mutants"\npath = "tests/mutants.rs"\n\n'
    return head + "\n".join(crates) + "\n\n" + test + "".join(profile)


def declared(names, how="mod"):
    return "".join(f"{how} {name};\n" for name in sorted(names))


def lay_out_tests(clone, tests):
    """One program of all suites, which allows what theirs do in the clone."""
    for folder in [*SUITES, "golden/incidents"]:
        shutil.copytree(clone / "tests" / folder, tests / folder, copy_function=shutil.copy)
    (tests / "support").mkdir()
    for name in SHARED:
        shutil.copy(clone / "tests/support" / f"{name}.rs", tests / "support")
    (tests / "support/mod.rs").write_text("#![allow(dead_code)]\n\n" + declared(SHARED, "pub mod"))
    allowed = re.search(r"(?ms)^#!\[allow\(.*?^\)\]\n", (clone / "tests/decisions.rs").read_text()).group()
    (tests / "mutants.rs").write_text(allowed + "\n" + declared([*SUITES, "support"]))


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
    shutil.copytree(clone / "src" / "/".join(FORMATS), tree / "src" / "/".join(FORMATS), copy_function=shutil.copy)
    for depth in range(1, len(FORMATS)):
        (tree / "src" / "/".join(FORMATS[:depth]) / "mod.rs").write_text(declared([FORMATS[depth]], "pub mod"))
    (tree / "src/lib.rs").write_text(declared([*MUTATED, *BESIDE, FORMATS[0]], "pub mod"))
    lay_out_tests(clone, tree / "tests")


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


class Function:
    """A function of the clone that has mutants; `arms` are their numbers."""

    def __init__(self, text, mutant):
        self.start, self.end = (place_of(text, mutant["function"]["span"][side]) for side in ("start", "end"))
        name = re.search(r"(\w+)$", mutant["function"]["function_name"]).group()
        named = re.search(rf"\bfn\s+{name}\b", text[self.start : self.end])
        self.name = name
        self.body = text.index("{", self.start + named.end())
        self.arms = []

    def written(self, text, drawn, number):
        """Its body once for each mutant, and as it is. Marks tell where an error of the compiler is."""
        head, body = text[self.start : self.body], text[self.body : self.end]
        head = re.sub(r"\bconst fn\b", "fn", head)
        arms = ""
        for arm in self.arms:
            changed = mutated(text, drawn[arm])
            arms += f"{arm} => /*arm {arm}*/{changed[self.body : self.end + len(changed) - len(text)]}/*same {number}*/\n"
        return f"/*same {number}*/{head}{{ match crate::mutant() {{ {arms} _ => {body} }} }}/*out*/"


def functions_of(clone, drawn, alone):
    """By file, in order; one that lies within another is left out."""
    by_file = {}
    for number, mutant in enumerate(drawn):
        if number in alone or not mutant.get("function"):
            continue
        text = (clone / mutant["file"]).read_text()
        function = Function(text, mutant)
        if place_of(text, mutant["span"]["start"]) < function.body:
            continue
        known = by_file.setdefault(mutant["file"], {})
        known.setdefault(function.start, function).arms.append(number)
    for file, known in by_file.items():
        outer = [f for f in known.values() if not any(o.start < f.start < o.end for o in known.values())]
        by_file[file] = sorted(outer, key=lambda function: function.start)
    return by_file


def write_joint(clone, tree, drawn, alone):
    """The rooms with all mutants but those that are built alone; the functions that hold them, by number."""
    lay_out(clone, tree)
    lib = tree / "src/lib.rs"
    lib.write_text(lib.read_text() + SWITCH)
    numbered = []
    for file, functions in sorted(functions_of(clone, drawn, alone).items()):
        text = (clone / file).read_text()
        pieces, done = [], 0
        for function in functions:
            pieces += [text[done : function.start], function.written(text, drawn, len(numbered))]
            numbered.append(function)
            done = function.end
        (tree / file).write_text("".join(pieces) + text[done:])
    return numbered


def not_held(tree, target, numbered):
    """The mutants because of which the program with all of them does not compile."""
    command = ["cargo", "check", "--lib", "--message-format=json", "--manifest-path", str(tree / "Cargo.toml")]
    environment = {**os.environ, **PLAIN, "CARGO_TARGET_DIR": str(target)}
    lines = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines()
    messages = [json.loads(line).get("message") for line in lines if line.startswith(b"{")]
    errors = [message for message in messages if isinstance(message, dict) and message.get("level") == "error" and message["spans"]]
    found = set()
    for error in errors:
        for span in error["spans"]:
            if not span["is_primary"]:
                continue
            before = (tree / span["file_name"]).read_bytes()[: span["byte_start"]].decode()
            mark = re.findall(r"/\*(arm|same|out) ?(\d*)\*/", before)
            kind, number = mark[-1] if mark else ("out", "")
            if kind == "arm":
                found.add(int(number))
            elif kind == "same":
                found.update(numbered[int(number)].arms)
            # A function that is const no more, asked for where only those may be.
            for name in re.findall(r"(\w+)(?:::<[^`]*>)?`", error["message"]):
                found.update(arm for function in numbered if function.name == name for arm in function.arms)
    if errors and not found:
        sys.exit(f"mutants: the program with all mutants does not compile: {errors[0]['rendered']}")
    return found


def asks(stage):
    """What `cargo test` is asked: the unit tests, or these suites of the one program."""
    return stage if stage == ["--lib"] else ["--test=mutants", "--", *(f"{suite}::" for suite in stage)]


def cargo(tree, target, arguments, within, environment):
    """How it ended; None where it took longer."""
    environment = {**os.environ, **SIZES, **environment, "CARGO_TARGET_DIR": str(target)}
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


def took(tree, target, environment):
    """How long each stage takes on the unchanged tree."""
    seconds = []
    for suites in map(asks, STAGES):
        built = cargo(tree, target, ["--no-run", *suites], BUILD_TIMEOUT, environment)
        begun = time.monotonic()
        if built != 0 or cargo(tree, target, suites, BUILD_TIMEOUT, environment) != 0:
            sys.exit(f"mutants: {' '.join(suites)} fails on the unchanged tree; see cargo test --manifest-path {tree / 'Cargo.toml'}")
        seconds.append(time.monotonic() - begun)
    return seconds


def verdict(tree, target, environment, usual):
    """What the suites say of the tree as it stands; `usual`: how long each stage takes where nothing is wrong."""
    for suites, seconds in zip(map(asks, STAGES), usual):
        built = cargo(tree, target, ["--no-run", *suites], BUILD_TIMEOUT, environment)
        if built != 0:
            return "unviable"
        played = cargo(tree, target, suites, max(AT_LEAST, MANY_TIMES * seconds), environment)
        if played != 0:
            return "timeout" if played is None else "caught"
    return "missed"


def play_alone(tree, target, mutant, usual):
    path = tree / mutant["file"]
    text = path.read_text()
    path.write_text(mutated(text, mutant))
    try:
        return verdict(tree, target, ALONE, usual)
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
    # A run that was killed in the middle of a build left one that passes for fresh: every mutant would look caught.
    joint, together, one_by_one = cache / "joint", cache / "target-joint", cache / "target"
    for target in (together, one_by_one):
        for built in [target / "debug/incremental", *target.glob("debug/.fingerprint/poolkeeper-*")]:
            shutil.rmtree(built, ignore_errors=True)
    of = [mutants[name] for name in drawn]
    alone, more = set(), {None}
    while more:
        numbered = write_joint(clone, joint, of, alone)
        more = not_held(joint, together, numbered)
        alone |= more
    held = {arm for function in numbered for arm in function.arms}
    print(f"mutants: {len(held)} in one program, {len(of) - len(held)} built alone", flush=True)
    usual = took(joint, together, {**PLAIN, "MUTANT": "none"})
    for number, name in sorted(enumerate(drawn), key=lambda pair: pair[0] not in held):
        if name in found:
            continue
        if deadline is not None and time.monotonic() > deadline:
            print("mutants: time is up; the next run goes on")
            break
        if number in held:
            found[name] = verdict(joint, together, {**PLAIN, "MUTANT": str(number)}, usual)
        else:
            found[name] = play_alone(tree, one_by_one, mutants[name], usual)
        ledger.write_text(json.dumps(found, indent=1))
        print(f"{found[name]}: {name}", flush=True)
    report(drawn, found, len(names), asked.seed)


if __name__ == "__main__":
    main()
