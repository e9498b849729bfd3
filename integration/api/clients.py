"""Generates a TypeScript and a Python client from the description, checks the types of a story written for each, plays
the stories, and holds every answer to the description. A description with planted faults shows that each check can fail."""

import argparse
import concurrent.futures
import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import jsonschema_rs
from house import Failed, House, ask, plain, play, set_id, tokens, until

HERE = pathlib.Path(__file__).parent
DOCUMENT = HERE.parent.parent / "config" / "openapi.json"
GUIDE = HERE.parent.parent / "src" / "docs" / "api.md"
# Each story applies the pool of its name; the other one has a file.
FILE, SIZE = "shop", 3
STORIES = ("typescript", "python")
STEP_ENDS = 240
JSON = ("application/json", "application/problem+json")


class TypeScript:
    GENERATE = "openapi-typescript config/openapi.json --default-non-nullable false --output poolkeeper.ts"
    CHECK = "tsc --project ."
    STORY = "node out/story.js"
    # What the compiler says of each fault that `planted` makes.
    FAULTS = ("Property 'lifecycle' does not exist", '"keyReused"', "'string | undefined' and 'number' have no overlap")

    def __init__(self, args):
        self.modules, self.folders, self.settings = args.modules, (args.modules / ".bin", args.node), {}

    def prepare(self, home):
        for name in ("story.ts", "tsconfig.json", "package.json"):
            shutil.copy(HERE / "typescript" / name, home)
        (home / "node_modules").symlink_to(self.modules)

    def promises(self):
        """What the guide says, as it is done here."""
        of = json.loads((HERE / "typescript" / "package.json").read_text())
        pins = {**of["dependencies"], **of["devDependencies"]}
        names = ("openapi-fetch", "openapi-typescript", "typescript")
        return ["npm install " + " ".join(f"{name}@{pins[name]}" for name in names), f"npx {self.GENERATE}"]

    def left_out(self, _):
        return []


class Python:
    GENERATE = (
        "openapi-python-client generate --path config/openapi.json --output-path poolkeeper_client "
        "--meta none --config integration/api/python/config.yaml"
    )
    CHECK = "mypy --strict story.py poolkeeper_client"
    STORY = "python -B story.py"
    FAULTS = ('"MachineStatus" has no attribute "lifecycle"', 'has no attribute "KEYREUSED"', "Non-overlapping equality check")

    def __init__(self, args):
        self.folders, self.settings = (args.python,), {"MYPY_CACHE_DIR": str(args.python.parent / "mypy")}

    def prepare(self, home):
        shutil.copy(HERE / "python" / "story.py", home)

    def promises(self):
        pins = (HERE / "python" / "requirements.txt").read_text().split()
        return ["pip install " + next(pin for pin in pins if pin.startswith("openapi-python-client==")), self.GENERATE]

    def left_out(self, said):
        """What the generator says that it cannot make, beside the YAML of a pool document: it takes the JSON."""
        signs = ("Unable", "Unsupported", "Cannot", "Could not", "Invalid", "Failure", "Attempted")
        told = [line for line in said.splitlines() if line.startswith(signs)]
        return [line for line in told if not re.fullmatch("Unsupported content type (application|text)/(x-)?yaml", line)]


def run(client, command, home, told=""):
    """How it ended, and what it said."""
    path = ":".join([*map(str, client.folders), plain()["PATH"]])
    try:
        ended = subprocess.run(
            command, input=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home, timeout=STEP_ENDS,
            check=False, env=plain(PATH=path, NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1", **client.settings),
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} did not end within {STEP_ENDS} s") from None
    return ended.returncode, ended.stdout


def step(client, command, home, told=""):
    code, said = run(client, command, home, told)
    if code != 0:
        raise Failed(f"{' '.join(map(str, command))} in {home} ended with {code}:\n{said[-8000:]}")
    return said


def generate(client, document, home):
    home.mkdir(parents=True)
    client.prepare(home)
    files = {"config/openapi.json": document, "integration/api/python/config.yaml": HERE / "python" / "config.yaml"}
    command = [files.get(word, word) for word in client.GENERATE.split()]
    said = step(client, command, home)
    if client.left_out(said):
        raise Failed(f"{command[0]} left something out:\n{said}")


def planted(document):
    """The same description with three faults: a number is a text, a field and a word are missing."""
    wrong = copy.deepcopy(document)
    schemas = wrong["components"]["schemas"]
    schemas["PoolNumbers"]["properties"]["available"] = {"type": "string"}
    schemas["MachineStatus"]["properties"].pop("lifecycle")
    schemas["MachineStatus"]["required"].remove("lifecycle")
    schemas["ProblemCode"]["enum"].remove("keyReused")
    return wrong


def closed(schema):
    """The schema with no field beside those that it names: an answer that has more is not what the server describes."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    same = {key: closed(value) for key, value in schema.items()}
    if same.get("type") == "object" and isinstance(same.get("properties"), dict):
        same.setdefault("additionalProperties", False)
    return same


class Judge:
    def __init__(self, document):
        self.document, self.components, self.operations = document, closed(document["components"]), []
        for path, methods in document["paths"].items():
            pattern = re.compile("/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in path.split("/")))
            self.operations += [(method.upper(), pattern, told) for method, told in methods.items()]

    def operation(self, answer):
        for method, pattern, told in self.operations:
            if method == answer["method"] and pattern.fullmatch(answer["path"]):
                return told
        raise Failed(f"{answer['method']} {answer['path']} is not described")

    def faults(self, answer):
        """What of an answer is not as described."""
        responses, status = self.operation(answer)["responses"], str(answer["status"])
        told = responses.get(status) or responses["default"]
        if "$ref" in told:
            told = self.document["components"]["responses"][told["$ref"].rsplit("/", 1)[1]]
        what = f"{answer['method']} {answer['path']} {status}"
        kind, content = answer["type"].split(";")[0], told.get("content", {})
        if kind not in content:
            return [] if not content and not answer["body"] else [f"{what} has the type {kind}"]
        if kind not in JSON:
            return []
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": self.components}
        validator = jsonschema_rs.Draft202012Validator({**schema, **content[kind]["schema"]}, validate_formats=True)
        found = validator.iter_errors(json.loads(answer["body"]))
        return [f"{what} {'/'.join(map(str, error.instance_path))}: {error.message}" for error in found]


def judge(name, document, answers):
    """Every answer is as described, and would not be as the planted description has it."""
    right, wrong = Judge(document), Judge(planted(document))
    faults = [fault for answer in answers for fault in right.faults(answer)]
    if faults:
        raise Failed(f"{len(faults)} times an answer to {name} is not as described, first: {faults[0][:2000]}")
    found = "\n".join(fault for answer in answers for fault in wrong.faults(answer))
    for sign in ("'lifecycle' was unexpected", '"keyReused" is not one of', "numbers: {"):
        if sign not in found:
            raise Failed(f"the judge of answers overlooks a planted fault ({sign}); it finds:\n{found[:4000]}")
    return sorted({right.operation(answer)["operationId"] for answer in answers})


def written(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def promised(client):
    guide = GUIDE.read_text().replace(" \\\n ", "").splitlines()
    for line in client.promises():
        if line not in guide:
            raise Failed(f"{GUIDE} no longer holds the line: {line}")


def try_client(name, client, document, setting, home):
    """The operations that the story used."""
    began = time.monotonic()
    promised(client)
    homes = {kind: home / name / kind for kind in ("right", "wrong")}
    for kind, of in (("right", document), ("wrong", planted(document))):
        generate(client, written(home / name / f"{kind}.json", of), homes[kind])
    code, said = run(client, client.CHECK.split(), homes["right"])
    if code != 0:
        raise Failed(f"the {name} story does not fit the generated client:\n{said[-8000:]}")
    code, said = run(client, client.CHECK.split(), homes["wrong"])
    missing = [sign for sign in client.FAULTS if sign not in said]
    if code == 0 or missing:
        raise Failed(f"the types of {name} overlook a planted fault {missing}:\n{said[-8000:]}")
    generated = time.monotonic()
    answers = home / name / "answers.json"
    # Not in a file: it has the tokens.
    step(client, [*client.STORY.split(), answers], homes["right"], json.dumps(setting))
    answers = json.loads(answers.read_text())
    used = judge(name, document, answers)
    print(
        f"api: the {name} client is generated and checked in {generated - began:.0f} s; its story has {len(answers)} answers "
        f"of {len(used)} operations in {time.monotonic() - generated:.0f} s, each as described", flush=True,
    )
    return used


def try_clients(args):
    home = args.scratch / "clients"
    home.mkdir()
    house = House(args.program, home, {FILE: SIZE, **{name: SIZE for name in STORIES}})
    try:
        known = tokens(house)
        daemon = house.serve("served", {FILE: SIZE}, "--set", f"api.tokens={known}")
        document = ask(f"{daemon.url}/api/v1/openapi.json", token=house.tokens["viewer"]).json()
        if document != json.loads(DOCUMENT.read_text()):
            raise Failed(f"{DOCUMENT} is not what the daemon serves")
        shop = lambda: ask(f"{daemon.url}/api/v1/pools/{FILE}/plan", token=house.tokens["viewer"]).status == 200
        until(f"{FILE} has a plan", shop, 60)
        setting = {"url": daemon.url, "tokens": house.tokens, "size": SIZE}
        with concurrent.futures.ThreadPoolExecutor() as both:
            used = [
                both.submit(try_client, name, client, document, {**setting, "pool": name, "scaleSet": set_id(name)}, home)
                for name, client in zip(STORIES, (TypeScript(args), Python(args)))
            ]
        used = [one.result() for one in used]
        if used[0] != used[1]:
            raise Failed(f"only one of the stories uses {sorted(set(used[0]) ^ set(used[1]))}")
        if daemon.faults():
            raise Failed(f"the daemon says: {daemon.faults()[0]}")
        daemon.stop()
        changes = house.changes([FILE, *STORIES])
        if changes:
            raise Failed(f"the stories change no machine, and this was asked of Azure: {changes[:3]}")
    finally:
        house.end()


def main():
    parser = argparse.ArgumentParser(prog="integration/api/run --clients")
    for name in ("program", "scratch", "python", "node", "modules"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    args = parser.parse_args()
    return play(lambda: try_clients(args), "both clients")


if __name__ == "__main__":
    sys.exit(main())
