"""Starts the fuzzer on each target and says what came of it. See `run`."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
CI_SECONDS = 20
# Nothing new in so long: the rest of the time would bring little.
QUIET_SECONDS = 30 * 60
# All times are those of the processor, so that other work on the machine takes nothing from them. By the clock a target
# ends after so many times as much.
CLOCK_FACTOR = 20
# A look at 128 KB takes 0.2 s at most. Other work on the machine may make that twenty seconds; sixty are a hang. The long
# form may wait for its turn behind builds, so it has more by the clock.
INPUT_SECONDS = 60
MEMORY_MB = 2048
# What the repository keeps of each target.
MOST_FILES = 28
MOST_BYTES = 70_000
WORDS = 400
STATUS = re.compile(r"cov: (\d+).* corp: (\d+)/")


def words(target, path):
    """The words of the corpus, for the fuzzer to put in."""
    count = collections.Counter()
    for file in (CORPUS / target).iterdir():
        count.update(re.findall(rb"[A-Za-z][A-Za-z0-9_.-]{2,40}", file.read_bytes()))
    lines = [f'"{word.decode()}"\n' for word, _ in count.most_common(WORDS)]
    path.write_text("".join(lines))


def spent(process):
    """Seconds of the processor that it had; the last ones known where it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fuzzing:
    """One target, from its start to its end."""

    def __init__(self, options, target):
        self.options, self.target = options, target
        self.kept = options.cache / "kept" / target
        self.crashes = options.cache / "crashes" / target
        for folder in (self.kept, self.crashes):
            folder.mkdir(parents=True, exist_ok=True)
        self.lines, self.edges, self.inputs, self.runs, self.status = [], 0, 0, 0, None
        self.seconds, self.risen, self.why = 0.0, 0.0, "by the clock"

    def start(self, seconds):
        with tempfile.TemporaryDirectory() as scratch:
            dictionary, found = pathlib.Path(scratch) / "words", pathlib.Path(scratch) / "found"
            words(self.target, dictionary)
            found.mkdir()
            # What an earlier run found would make the short form longer with each.
            each = INPUT_SECONDS
            if self.options.minutes is not None:
                found, each = self.kept, INPUT_SECONDS * CLOCK_FACTOR
            process = subprocess.Popen(
                [self.options.program, f"-max_total_time={seconds * CLOCK_FACTOR}", f"-timeout={each}",
                 f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={self.crashes}/", f"-dict={dictionary}",
                 "-print_final_stats=1", found, CORPUS / self.target],
                env={**os.environ, "POOLKEEPER_FUZZ": self.target},
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
            watch = threading.Thread(target=self.end_in_time, args=(process, seconds), daemon=True)
            watch.start()
            for line in process.stderr:
                self.heard(line.rstrip())
            self.status = process.wait()
            watch.join()
        return self

    def heard(self, line):
        self.lines = [*self.lines[-60:], line]
        if found := STATUS.search(line):
            edges, self.inputs = int(found[1]), int(found[2])
            if edges > self.edges:
                self.edges, self.risen = edges, self.seconds
        elif line.startswith("stat::number_of_executed_units:"):
            self.runs = int(line.split()[1])

    def end_in_time(self, process, seconds):
        while process.poll() is None:
            self.seconds = max(self.seconds, spent(process))
            for enough, why in ((self.seconds >= seconds, "its time"), (self.seconds - self.risen > QUIET_SECONDS, "quiet")):
                if enough:
                    self.why = why
                    # It ends well, with its numbers.
                    process.send_signal(signal.SIGUSR1)
                    return
            time.sleep(0.5)

    def row(self):
        crashed = "no crash" if self.status == 0 else f"CRASHED ({self.status})"
        rate = self.runs / max(self.seconds, 1)
        return (f"{self.target:<10} {self.runs:>10} inputs {rate:>8.0f}/s {self.inputs:>6} in the corpus "
                f"{self.edges:>7} edges, the last after {self.risen:>5.0f} s, of {self.seconds:>5.0f} s  ({self.why})  {crashed}")

    def explain(self):
        """What a crash said, without the numbers of the fuzzer, and how to see it again."""
        said = [line for line in self.lines if not line.startswith(("#", "stat::", "MS: ", "0x"))]
        print("\n".join(said[-40:]))
        written = [line.split("written to ")[1] for line in self.lines if "Test unit written to " in line]
        for path in written:
            print(f"fuzz: play it again: integration/fuzz/run --again {self.target} {path}")


def fuzz(options):
    seconds = CI_SECONDS if options.minutes is None else int(options.minutes * 60)
    beside = min(os.cpu_count() or 1, len(options.targets))
    with concurrent.futures.ThreadPoolExecutor(beside) as pool:
        all_of_them = [pool.submit(Fuzzing(options, target).start, seconds) for target in options.targets]
        ended = []
        for one in concurrent.futures.as_completed(all_of_them):
            ended.append(one.result())
            print(one.result().row(), flush=True)
    failed = [one for one in ended if one.status != 0]
    for one in failed:
        one.explain()
    if failed:
        sys.exit("fuzz: FAILED: " + ", ".join(sorted(one.target for one in failed)))


def features(options, target, scratch):
    """What each known input reaches, by its file."""
    control, empty = scratch / "control", scratch / "empty"
    empty.mkdir()
    kept = options.cache / "kept" / target
    kept.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [options.program, "-merge=1", f"-merge_control_file={control}", f"-timeout={INPUT_SECONDS}", empty,
         CORPUS / target, kept],
        env={**os.environ, "POOLKEEPER_FUZZ": target}, stderr=subprocess.DEVNULL, check=True)
    lines = control.read_text().splitlines()
    count = int(lines[0])
    files = [pathlib.Path(line) for line in lines[2:2 + count]]
    reached = {}
    for line in lines[2 + count:]:
        kind, number, *found = line.split()
        if kind == "FT":
            reached[files[int(number)]] = frozenset(found)
    return reached


def distil(options, target):
    """Greedy: again and again the input that adds most."""
    with tempfile.TemporaryDirectory() as scratch:
        reached = features(options, target, pathlib.Path(scratch))
        covered, chosen, size = set(), [], 0
        while reached and len(chosen) < MOST_FILES:
            best = max(reached, key=lambda file: (len(reached[file] - covered), -file.stat().st_size))
            new = reached.pop(best) - covered
            if not new:
                break
            if size + best.stat().st_size <= MOST_BYTES:
                covered |= new
                size += best.stat().st_size
                chosen.append(best)
        folder = pathlib.Path(scratch) / "chosen"
        folder.mkdir()
        for file in chosen:
            in_repository = file.parent == CORPUS / target
            shutil.copy(file, folder / (file.name if in_repository else file.name[:12]))
        shutil.rmtree(CORPUS / target)
        shutil.copytree(folder, CORPUS / target)
    print(f"{target:<10} {len(chosen):>3} inputs, {size:>6} bytes, {len(covered):>6} features", flush=True)


def main():
    known = sorted(folder.name for folder in CORPUS.iterdir())
    parser = argparse.ArgumentParser(prog="integration/fuzz/run")
    parser.add_argument("--program", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--cache", required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, help="how long each target is fuzzed (20 seconds)")
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "FILE"), help="runs one input")
    parser.add_argument("--distil", action="store_true", help="chooses the corpus anew")
    parser.add_argument("targets", nargs="*", help=", ".join(known))
    options = parser.parse_args()
    options.targets = options.targets or known
    if strange := set(options.targets) - set(known):
        sys.exit(f"fuzz: no target {', '.join(sorted(strange))}; there are {', '.join(known)}")
    if options.again:
        target, file = options.again
        os.execve(options.program, [options.program, f"-timeout={INPUT_SECONDS}", file],
                  {**os.environ, "POOLKEEPER_FUZZ": target, "RUST_BACKTRACE": "1"})
    if options.distil:
        for target in options.targets:
            distil(options, target)
    else:
        fuzz(options)


if __name__ == "__main__":
    main()
