"""Tokens of people, secrets of the daemon, and what a log or a crash may tell of them."""

import pathlib
import shutil
import stat
import tempfile
import time

from target import RELOAD, Case, drain, must, wait


class Guarded(Case):
    """A case with a tokens file of its own."""

    def guarded(self, *roles):
        made = {role: self.house.make_token(role) for role in roles}
        self.token = {role: token for role, (token, _) in made.items()}
        self.lines = {role: line for role, (_, line) in made.items()}
        self.file = self.house.scratch / f"{self.name}.tokens"
        self.put("".join(self.lines.values()))
        return self.target(["--set", f"api.tokens={self.file}"]).begin()

    def put(self, text):
        self.file.write_text(text)
        self.file.chmod(0o600)

    def status(self, one, role, source="127.0.0.1"):
        return one.ask("/api/v1/pools", token=self.token[role], source=source).status


class Doors(Guarded):
    """Wrong tokens open nothing; a file that is being written takes no token away; one that was taken away opens nothing."""

    name, finds = "doors", ("held",)

    def run(self):
        one = self.guarded("viewer", "admin")
        good = self.token["admin"]
        wrong = [None, "", good[:-1], good + "x", good.upper(), good.replace("pk_", ""), "x" * 5000]
        for n, token in enumerate(wrong):
            answer = one.ask("/api/v1/pools", token=token, source=f"127.4.0.{n + 1}")
            must(answer.status in (400, 401, 431), f"doors: {token!r} was answered {answer.status}")
        pool = self.pools[0].name
        viewer = one.ask(f"/api/v1/pools/{pool}/pause", "POST", {"why": "mine"}, self.token["viewer"])
        must(viewer.status == 403, f"doors: a viewer's pause was answered {viewer.status}")
        whole = "".join(self.lines.values())
        for text in (whole[: len(whole) - self.dice.randrange(5, 40)], "nonsense\n" + whole, "\0" * 50):
            self.put(text)
            one.hang_up()
            time.sleep(RELOAD * 1.5)
            must(self.status(one, "admin", "127.4.1.1") == 200, f"doors: {text[-30:]!r} took a token away")
        self.put(self.lines["viewer"])
        one.hang_up()
        taken = lambda: self.status(one, "admin", "127.4.1.2") == 401
        wait("doors: a token that was taken away opens nothing", taken, RELOAD * 6, 0.5)
        must(self.status(one, "viewer") == 200, "doors: the other token opens nothing any more")
        one.must_stop()
        self.left_alone()


class Streams(Guarded):
    """A stream of events ends with the token that opened it."""

    name, finds = "streams", ("S10",)
    # Three heartbeats.
    ENDS = 40

    def run(self):
        one = self.guarded("viewer", "admin")
        line = one.open_line(timeout=self.ENDS)
        head = f"GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1:{one.port()}\r\nauthorization: Bearer {self.token['admin']}\r\n\r\n"
        line.sendall(head.encode())
        must(b" 200 " in drain(line, 1)[0], "streams: no stream was opened")
        self.put(self.lines["viewer"])
        one.hang_up()
        _, ended = drain(line, self.ENDS)
        must(ended, f"streams: {self.ENDS} s after its token was taken away a stream goes on")
        one.must_stop()
        self.left_alone()


class Traces(Guarded):
    """Who guesses tokens from many addresses leaves a trace: in the log, and in a number by its reason."""

    name, finds = "traces", ("S9",)

    def run(self):
        one = self.guarded("viewer")
        for n in range(60):
            one.ask("/api/v1/pools", token="pk_" + "0" * 40, source=f"127.5.0.{n + 1}")
        wait("traces: the log names an address of a guesser", lambda: "127.5.0." in one.said(), 70)
        one.must_stop()
        self.left_alone()


class Flood(Guarded):
    """A viewer who tries what is forbidden, over and over, pushes no line of the audit out of sight."""

    name, finds = "flood", ("S3",)

    def run(self):
        one = self.guarded("viewer", "admin")
        pool = f"/api/v1/pools/{self.pools[0].name}"
        line = "the incriminating line"
        one.ask(f"{pool}/pause", "POST", {"why": line}, self.token["admin"])
        one.ask(f"{pool}/resume", "POST", {"why": line}, self.token["admin"])
        for n in range(400):
            one.ask(f"{pool}/pause", "POST", {"why": "x"}, self.token["viewer"], source=f"127.6.{n % 20}.1")
        audit = one.ask("/api/v1/audit?limit=100", token=self.token["admin"]).text()
        must(line in audit, "flood: 400 refused tries hide what an admin did")
        one.must_stop()
        self.left_alone()


class Secret(Case):
    """The secret of the daemon comes from a file, is in no core dump, and a file that hangs holds nothing up."""

    name, finds = "secret", ("secrets", "S17")

    def run(self):
        # Outside of what is searched for secrets at the end.
        folder = pathlib.Path(tempfile.mkdtemp(prefix="poolkeeper-attack-"))
        try:
            self.in_folder(folder)
        finally:
            shutil.rmtree(folder)

    def in_folder(self, folder):
        one = self.target()
        secret = self.house.secrets[one.client]
        file = folder / "secret"
        one.variables = {"AZURE_CLIENT_SECRET": secret, "AZURE_CLIENT_SECRET_FILE": str(file)}
        said = one.refuses_to_begin("remove AZURE_CLIENT_SECRET")
        must(secret not in said, "secret: it is printed")
        one.variables["AZURE_CLIENT_SECRET"] = None
        file.write_text(f"\n  {secret}\r\n")
        one.begin()
        limits = pathlib.Path(f"/proc/{one.process.pid}/limits").read_text()
        core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
        must(core.split()[4:6] == ["0", "0"], f"secret: a crash may write it to a disk: {core}")
        memory = pathlib.Path(f"/proc/{one.process.pid}/environ").stat()
        must(memory.st_uid == 0, "secret: others of this user may read its memory")
        must(not stat.S_IMODE(memory.st_mode) & 0o077, "secret: others may read its environment")
        one.must_act(self.name)
        one.must_stop()
        address = "http://kim:hunter2@collector.example:4318"
        one.more += ["--set", f"telemetry.otlp={address}"]
        said = one.refuses_to_begin("telemetry.otlp", "collector.example")
        must("hunter2" not in said, f"secret: a password is printed: {said}")
        self.left_alone()


CASES = [Doors, Secret, Flood, Streams, Traces]
