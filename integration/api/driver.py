"""Fuzzes the served description, tries its doors, and judges what became of machines that no request named."""

import argparse
import pathlib
import subprocess
import sys
import time

from doors import try_doors
from house import Failed, House, ask, document, play, tokens, until

# Knows the laws of machines by the same record.
sys.path.append(str(pathlib.Path(__file__).parent.parent / "crash"))
from judge import Pool, deleted_by, is_change, laws, set_of

# Fuzzed: the fuzzer learns the names from the answers. The doors of the second daemon are tried with the name of one of
# its pools, and never with that of the other.
WEB, BATCH, GATE, CALM = "web", "batch", "gate", "calm"
POOLS = {WEB: 4, BATCH: 3, GATE: 3, CALM: 3}
STREAMS = "/events$"
# A client may make fifty a second: beyond that every answer would be the same refusal.
RATE = "48/s"
# What an answer is held to, beside that the fuzzer knows how to ask.
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "unsupported_method",
]
# A run of the fuzzer ends in a minute; this is for one that does not.
FUZZER_ENDS = 240


def fuzz(house, daemon, name, fuzzer, seed, examples, settings):
    """One run of the fuzzer; `settings` says which names it uses where it would make some up."""
    home = house.scratch / f"fuzz-{name}"
    home.mkdir()
    (home / "schemathesis.toml").write_text(settings)
    command = [
        fuzzer, "--config-file", home / "schemathesis.toml", "run", f"{daemon.url}/api/v1/openapi.json", "--url", daemon.url,
        "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--mode", "all",
        "--max-examples", str(examples), "--seed", str(seed), "--generation-database", "none",
        "--exclude-path-regex", STREAMS, "--rate-limit", RATE, "--request-timeout", "10", "--continue-on-failure",
        "--no-shrink", "--suppress-health-check", "all", "--warnings", "off", "--no-color",
    ]
    began = time.monotonic()
    with open(home / "out", "wb") as out:
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=home, timeout=FUZZER_ENDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"the fuzzer did not end within {FUZZER_ENDS} s") from None
    said = (home / "out").read_text(errors="replace")
    if ended.returncode != 0:
        raise Failed(f"the fuzzer with {name} found something:\n{said[-8000:]}")
    daemon.must_run()
    told = [line.strip() for line in said.splitlines() if "generated" in line or "tested" in line.lower()]
    print(f"api: fuzzed with {name}, {time.monotonic() - began:.0f} s: {'; '.join(told)}", flush=True)


def streams(daemon):
    """Those that do not end are asked here: what they are, and that what happens is told."""
    for path in ("/api/v1/events", f"/api/v1/pools/{WEB}/events"):
        answer = ask(f"{daemon.url}{path}?after=0", source="127.0.2.1")
        if (answer.status, answer.kind) != (200, "text/event-stream") or not answer.body.startswith(b"retry: "):
            raise Failed(f"{path} answered {answer.status} {answer.kind}: {answer.body!r}")
        bad = ask(f"{daemon.url}{path}", headers={"last-event-id": "x"}, source="127.0.2.1")
        if (bad.status, bad.json()["code"]) != (400, "badLastEventId"):
            raise Failed(f"{path} took a Last-Event-ID that is none: {bad.status}")


def post(daemon, path, body=b'{"why": "a test"}', token=None):
    return ask(f"{daemon.url}/api/v1/{path}", "POST", body, token, {"content-type": "application/json"}, "127.0.2.3")


def accepted(daemon):
    """What the fuzzer asked was not all refused: each verb of the description was taken at least once."""
    described = ask(f"{daemon.url}/api/v1/openapi.json", source="127.0.2.4").json()["paths"]
    verbs = {path.rsplit("/", 1)[1] for path, methods in described.items() if "post" in methods}
    lines, before = [], None
    while before != 0:
        place = f"&before={before}" if before else ""
        page = ask(f"{daemon.url}/api/v1/audit?limit=500{place}", source="127.0.2.4").json()
        lines += page["items"]
        before = page["earlier"] if page["items"] else 0
    # A verb about all pools names none; a verb stands before its options.
    of_web = [line for line in lines if (line["pool"] or WEB) == WEB]
    taken = {line["verb"].split()[0] for line in of_web if line["came"] == "asked"}
    # The machine that the fuzzer names may be deleted, as it asked, before it asks for all else.
    of_machines = {path.rsplit("/", 1)[1] for path, methods in described.items() if "post" in methods and "{machine}" in path}
    for verb in sorted((verbs - taken) & of_machines):
        machine = ask(f"{daemon.url}/api/v1/pools/{WEB}/machines", source="127.0.2.4").json()["items"][0]["id"]
        if post(daemon, f"pools/{WEB}/machines/{machine}/{verb}").status == 202:
            taken.add(verb)
    if "scale" in verbs - taken:
        # Of the numbers that the fuzzer thinks of, few fit the pool and the machines that it names.
        if post(daemon, f"pools/{WEB}/scale", b'{"why": "a test", "end": true}').status == 202:
            taken.add("scale")
    if verbs - taken:
        raise Failed(f"of {WEB} the fuzzer never got taken: {sorted(verbs - taken)}; the audit has {sorted(taken)}")
    resume_all(daemon)
    return f"{len(lines)} lines in the audit, all {len(verbs)} verbs taken"


def metric(text, name):
    """The values of a family."""
    return [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith((name + "{", name + " "))]


def sound(daemon):
    daemon.must_run()
    ready = ask(f"{daemon.url}/ready", source="127.0.2.2")
    if ready.status != 200:
        raise Failed(f"{daemon.name} is not ready: {ready.body!r}")


def judge(daemon, token=None):
    """After all that was asked of it."""
    sound(daemon)
    text = ask(f"{daemon.url}/metrics", token=token, source="127.0.2.2").body.decode()
    laws = metric(text, "poolkeeper_invariant_violations_total")
    if not laws or any(laws):
        raise Failed(f"{daemon.name} counts laws broken: {laws}")
    turns = [line for line in text.splitlines() if line.startswith("poolkeeper_turns_total")]
    if any('"panicked"' in line and not line.endswith(" 0") for line in turns):
        raise Failed(f"turns of {daemon.name} panicked: {turns}")
    if daemon.faults():
        raise Failed(f"{daemon.name} says: {daemon.faults()[0]}")


def machines(house):
    """By the emulator's record: no law of machines was broken, however wildly it was asked."""
    record = house.control("record")
    # One machine above its size, and none below; where the loss is accepted by who asks, the floor does not hold.
    pools = {name: Pool(name, count, 1, count if name in (WEB, BATCH) else 0) for name, count in POOLS.items()}
    broken = [say for one in record["numbers"] for say in laws(one, pools[one["set"]])]
    if broken:
        raise Failed(f"laws of machines were broken: {broken[:3]}")
    accepted = [one for one in record["requests"] if is_change(one) and one["status"] and one["status"] < 300]
    gone = [(set_of(one["path"]), machine) for one in accepted for machine in deleted_by(one)]
    if len(gone) != len(set(gone)):
        raise Failed(f"machines were deleted twice: {sorted(one for one in gone if gone.count(one) > 1)}")
    if not any(name in (WEB, BATCH) for name, _ in gone):
        raise Failed("nothing that the fuzzer asked for was done: no machine was replaced")
    return f"{len(accepted)} changes, {len(gone)} machines deleted, no law broken"


def resume_all(daemon, token=None):
    """The last word about all pools may be a stop, under which nothing is deleted."""
    answer = post(daemon, "resume-all", token=token)
    if answer.status != 202:
        raise Failed(f"the stop of all pools is not lifted: {answer.status} {answer.body!r}")


def asked_for(house, daemon, token):
    """Who named nothing changed nothing; who names a machine has it replaced."""
    pool = f"{daemon.url}/api/v1/pools/{CALM}"
    if house.changes([CALM]):
        raise Failed(f"no request named {CALM}, and this was asked of it: {house.changes([CALM])[:3]}")
    resume_all(daemon, token)
    machine = ask(f"{pool}/machines", token=token, source="127.0.2.3").json()["items"][0]["id"]
    answer = post(daemon, f"pools/{CALM}/machines/{machine}/delete-machine", token=token)
    if answer.status != 202:
        raise Failed(f"a delete that is asked for was answered {answer.status}: {answer.body!r}")
    is_deleted = lambda: any(machine in deleted_by(one) for one in house.changes([CALM]))
    until(f"machine {machine} of {CALM} is deleted", is_deleted, 90)
    others = {one for change in house.changes([CALM]) for one in deleted_by(change)} - {machine}
    if others:
        raise Failed(f"only {machine} was named, and {others} were deleted too")
    return f"{CALM} was left alone until its machine {machine} was named, and then only that went"


def run(args):
    house = House(args.program, args.scratch, POOLS)
    try:
        daemon = house.serve("open", {name: POOLS[name] for name in (WEB, BATCH)})
        planned = lambda name: ask(f"{daemon.url}/api/v1/pools/{name}/plan").status == 200
        until("every pool has a plan", lambda: planned(WEB) and planned(BATCH), 60)
        doors = house.serve("guarded", {name: POOLS[name] for name in (GATE, CALM)}, "--set", f"api.tokens={tokens(house)}")
        machine = ask(f"{daemon.url}/api/v1/pools/{WEB}/machines").json()["items"][0]["id"]
        fuzz(house, daemon, "any names", args.fuzzer, args.seed, args.examples // 3 or 1, "")
        names = f'[parameters]\n"path.pool" = "{WEB}"\n"path.machine" = "{machine}"\n'
        fuzz(house, daemon, "real names", args.fuzzer, args.seed, args.examples, names)
        print(f"api: {accepted(daemon)}", flush=True)
        streams(daemon)
        tried = try_doors(doors, house.tokens, GATE, document("made", 1))
        print(f"api: {tried}", flush=True)
        print(f"api: {asked_for(house, doors, house.tokens['operator'])}", flush=True)
        judge(daemon)
        judge(doors, house.tokens["viewer"])
        for one in (daemon, doors):
            one.stop()
        print(f"api: {machines(house)}", flush=True)
    finally:
        house.end()


def main():
    parser = argparse.ArgumentParser(prog="integration/api/run")
    parser.add_argument("--program", required=True)
    parser.add_argument("--fuzzer", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--examples", type=int, default=20)
    args = parser.parse_args()
    return play(lambda: run(args), f"as described with seed {args.seed}")


if __name__ == "__main__":
    sys.exit(main())
