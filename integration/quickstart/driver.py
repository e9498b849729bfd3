"""Runs the block of the README that begins a pool, against an emulator, and looks at what it did."""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

# Seconds.
ENDS_WITHIN = 120
# The name of the set in the block.
SET = "web"


class Failed(Exception):
    pass


def block(readme):
    """The lines of the block that writes the first pool file."""
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.S)
    found = [text for text in blocks if "poolkeeper init" in text]
    if len(found) != 1:
        raise Failed(f"the README has {len(found)} blocks with `poolkeeper init`, and should have one")
    return [line for line in found[0].splitlines() if line.strip()]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Emulator:
    def __init__(self, program, scratch):
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--quicker", "60", "--seed-file", "-"]
        self.out = scratch / "emulator.out"
        with open(self.out, "wb") as out, open(scratch / "emulator.log", "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=log)
        seed = {"scaleSets": [{"name": name, "capacity": 3} for name in (SET, "batch")]}
        self.process.stdin.write(json.dumps(seed).encode())
        self.process.stdin.close()
        self.told = self.read()

    def read(self):
        for _ in range(200):
            line = self.out.read_text()
            if line.endswith("\n"):
                return json.loads(line)
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise Failed("the emulator did not start")

    def resource(self, name):
        ids = [one for one in self.told["scaleSets"] if one.endswith(f"/{name}")]
        if len(ids) != 1:
            raise Failed(f"no scale set {name} in {self.told}")
        return ids[0]

    def environment(self):
        url = self.told["url"]
        return {
            "AZURE_RESOURCE_MANAGER_URL": url,
            "AZURE_AUTHORITY_HOST": url,
            "AZURE_TENANT_ID": self.told["tenant"],
            "AZURE_CLIENT_ID": "app",
            "AZURE_CLIENT_SECRET": "secret",
        }


def run(lines, env, folder, log):
    """Each line as the shell of a person runs it, one after another, with its exit code."""
    script = "".join(f"{line}\necho \"@@ $? {number}\"\n" for number, line in enumerate(lines))
    with open(log, "wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            shell.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired as error:
            os.killpg(shell.pid, signal.SIGKILL)
            raise Failed(f"it did not end within {ENDS_WITHIN} s") from error
    text = log.read_text()
    codes = dict((int(number), int(code)) for code, number in re.findall(r"^@@ (\d+) (\d+)$", text, re.M))
    for number, line in enumerate(lines):
        # Doctor names what is missing, which is not wrong here.
        allowed = (0, 7) if " doctor " in line else (0,)
        if codes.get(number) not in allowed:
            raise Failed(f"`{line}` ended with {codes.get(number)}:\n{text}")
    return shell, text


def ask(program, env, folder, *args, code=0):
    ended = subprocess.run([program, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=ENDS_WITHIN)
    if ended.returncode != code:
        raise Failed(f"poolkeeper {' '.join(args)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def play(options, scratch, emulator):
    lines = block(pathlib.Path(options.readme).read_text())
    folder = scratch / "home"
    folder.mkdir()
    listen = f"127.0.0.1:{free_port()}"
    program = scratch / "bin" / "poolkeeper"
    program.parent.mkdir()
    program.symlink_to(options.program)
    env = emulator.environment() | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RESOURCE_ID": emulator.resource(SET),
        "POOLKEEPER_API_LISTEN": listen,
        "POOLKEEPER_SERVER": f"http://{listen}",
    }
    shell, text = run(lines, env, folder, scratch / "block.out")
    try:
        for part in ("pause web: ", "resume web: "):
            if part not in text:
                raise Failed(f"the block does not say {part!r}:\n{text}")
        second = emulator.resource("batch")
        ask(program, env, folder, "init", "--from", second, "--write", "pools/batch.yaml")
        # A second time it overwrites nothing.
        ask(program, env, folder, "init", "--from", second, "--write", "pools/batch.yaml", code=2)
        ask(program, env, folder, "validate", "pools/")
        for pool in (SET, "batch"):
            for _ in range(50):
                if pool in ask(program, env, folder, "get", "-o", "name"):
                    break
                time.sleep(0.2)
            ask(program, env, folder, "wait", pool, "--until", "healthy", "--timeout", "60s")
        print("quickstart:", ask(program, env, folder, "status").strip().splitlines()[-1])
    finally:
        os.killpg(shell.pid, signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "readme", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    scratch = pathlib.Path(options.scratch)
    emulator = Emulator(options.program, scratch)
    try:
        play(options, scratch, emulator)
    except Failed as failed:
        print(f"quickstart: {failed}", file=sys.stderr)
        return 1
    finally:
        emulator.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
