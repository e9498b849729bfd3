"""Rolls pools whose gates ask a real Prometheus, an endpoint or a command, in all their ways to pass, fail and say nothing."""

import json
import pathlib
import sys
import time

from driver import SUBSCRIPTION, Case, Daemon, Emulator, drive, image
from house import ENV, Failed, get, wait
from metrics import Quiet, Server

INTERVAL, UNKNOWN = 5, 12
# A new machine is looked for after a minute.
SOON = 120
SECRET = "password-of-the-daemon"


class Shop(Server):
    """An endpoint; its path is its mood."""

    def __init__(self):
        self.elsewhere = 0
        outer = self

        class Handler(Quiet):
            def do_GET(self):
                mood = self.path.strip("/")
                if mood == "moved":
                    self.answer(302, b"", headers=[("Location", f"http://127.0.0.1:{outer.port}/elsewhere")])
                elif mood == "hangs":
                    time.sleep(20)
                elif mood == "elsewhere":
                    outer.elsewhere += 1
                    self.answer(200, b"ok")
                else:
                    self.answer(int(mood), f"the shop of {self.headers['Poolkeeper-Pool']}\n".encode(), "text/plain")

        super().__init__(Handler)


def number(query, server="main", **more):
    return {"prometheus": {"server": server, "query": query, "pass": "<= 50", **more}}


def http(mood, **expect):
    return {"http": {"endpoint": f"shop-{mood}", "expect": {f"{status[1:]}": says for status, says in expect.items()}}}


def command(run):
    return {"command": {"run": run}}


# The rollout goes through.
PASS = {
    "value": number("sum(load)"),
    "scalar": number("scalar(sum(load))"),
    "all": number("two", each="all"),
    "any": number("two * 40", each="any"),
    "accepted": number("sum(load)", "warned", partial="accept"),
    "workspace": number("sum(load)", "workspace"),
    "ok": http("200"),
    "no-content": http("204", _204="pass"),
    "true": command("true"),
    "chatty": command("flood"),
}
# The gate fails before anything is replaced, and a person skips it.
BEFORE = {"before": number("sum(two) * 40"), "bad-gateway": http("502", _5xx="fail"), "false": command("false")}
# The gate says nothing: the rollout begins all the same, and pauses at its checkpoint. The text says why.
SILENT = {
    "empty": (number("sum(no_such_metric)"), "the query has no series now"),
    "filtered": (number("load > 1000"), "the query has no series now"),
    "nan": (number("not_a_number"), "the value is NaN"),
    "many": (number("two"), "2 series"),
    "between": (number("sum(load)", **{"pass": "<= 1", "fail": "> 100"}), ""),
    "series": (number("load[1m]"), "values over time"),
    "syntax": (number("sum(load"), "it rejects the query"),
    "denied": (number("sum(load)", "denied"), "it answers 401"),
    "warned": (number("sum(load)", "warned"), "store eu is away"),
    "html": (number("sum(load)", "html"), "it answers 502 (HTML)"),
    "moved": (number("sum(load)", "moved"), "307"),
    "slow": (number("sum(load)", "slow"), "it does not answer within"),
    "not-found": (http("404"), "404"),
    "redirect": (http("moved"), "302"),
    "hangs": (http("hangs"), "it does not answer within"),
    "exit-3": (command("three"), "exit 3"),
    "stubborn": (command("stubborn"), "2s"),
    "forks": (command("forks"), "exit 75"),
}
# It passes before, and fails once a new machine serves.
WORSE = "worse"
# One of two machines is too many: it leaves once the gate passes, and stays in service if the gate fails.
FALLS, STAYS = "falls", "stays"


class GateCase(Case):
    def __init__(self, options):
        super().__init__(options)
        self.shop = Shop()

    def settings(self):
        super().settings()
        path = self.home / "poolkeeper.yaml"
        settings = json.loads(path.read_text())
        moods = ("200", "204", "404", "502", "moved", "hangs")
        settings["endpoints"] = {f"shop-{mood}": {"url": f"http://127.0.0.1:{self.shop.port}/{mood}"} for mood in moods}
        script = lambda text: {"argv": ["/bin/sh", "-c", text]}
        pids = self.home / "pids"
        settings["commands"] = {
            "true": {"argv": ["/bin/true"]},
            "false": {"argv": ["/bin/false"]},
            "three": script("env; exit 3"),
            "flood": script("yes a line that is too much | head -c 20000000"),
            "stubborn": script(f"trap '' TERM; echo $$ >> {pids}; while :; do sleep 1; done"),
            "forks": script(f"(trap '' TERM HUP; sleep 300) & echo $! >> {pids}; exit 75"),
        }
        path.write_text(json.dumps(settings))

    def write(self, name, gate, version="1.0.0", count=1):
        gate = {
            "name": "gate", "interval": f"{INTERVAL}s", "initialDelay": "0s", "timeout": "2s", "need": 2, "failures": 0,
            "unknownFor": f"{UNKNOWN}s", **gate,
        }
        pool = {
            "apiVersion": "poolkeeper/v1", "kind": "Pool", "name": name,
            "scaleSet": f"{SUBSCRIPTION}/virtualMachineScaleSets/{name}", "replicas": {"owner": "pool", "count": count},
            "model": {"image": image(version)}, "gates": [gate],
            "rollout": {
                "maxSurge": 1, "maxUnavailable": 0, "minReady": "1s", "ramp": "off", "coalesce": "1s",
                "checkpoints": [{"at": 1, "soak": "10s" if name == WORSE else "0s", "gates": ["gate"]}],
            },
        }
        if name in (FALLS, STAYS):
            gray = {"gates": ["gate"], "changePercent": "100%", "changeInterval": "5s", "observation": "5s"}
            pool["scaleDown"] = {"unconfirmed": "allow", "gray": gray}
        aside = self.home / "aside"
        aside.write_text(json.dumps(pool))
        aside.rename(self.home / "pools" / f"{name}.yaml")

    def pools(self):
        silent = {name: gate for name, (gate, _) in SILENT.items()}
        return {**PASS, **BEFORE, **silent, WORSE: number("sum(load) * 1.5")}

    def begin(self):
        self.exporter.load = 30
        self.prometheus.start()
        wait("Prometheus has the load", lambda: self.prometheus.value() == 30, 30)
        self.settings()
        for name, gate in self.pools().items():
            self.write(name, gate)
        falls = {FALLS: number("sum(load)"), STAYS: number("sum(two) * 40")}
        for name, gate in falls.items():
            self.write(name, gate, count=2)
        sets = {name: 1 for name in self.pools()} | {name: 2 for name in falls}
        self.emulator = Emulator(self.program, self.home, sets)
        # The daemon has a secret that no command may see.
        ENV["AZURE_CLIENT_SECRET"] = SECRET
        self.daemon = Daemon(self.program, self.home, self.emulator)
        for name in self.pools():
            wait(f"{name} is managed", lambda: self.daemon.desired(name) == 1, SOON)
        for name, gate in self.pools().items():
            self.write(name, gate, "2.0.0")
        for name, gate in falls.items():
            wait(f"{name} is managed", lambda: self.daemon.desired(name) == 2, SOON)
            self.write(name, gate)

    def new(self, name):
        machines = self.emulator.machines(name)
        return sum("versions/2.0.0" in json.dumps(one["image"]) for one in machines), len(machines)

    def rollout(self, name):
        return json.loads(get(f"{self.daemon.url}/api/v1/pools/{name}/rollout"))

    def holds(self, name):
        return {hold["reason"]: hold for hold in json.loads(get(f"{self.daemon.url}/api/v1/pools/{name}/plan"))["holds"]}

    def gates_that_fail_before(self):
        for name in BEFORE:
            hold = wait(f"{name} says that its gate fails before", lambda: self.holds(name).get("gateFailedBefore"), SOON)
            if self.new(name) != (0, 1):
                raise Failed(f"{name} begins all the same: {self.new(name)}")
            if f"poolkeeper approve {name} --skip-gate gate" not in hold["message"]:
                raise Failed(f"the hold does not say what to do: {hold}")
            self.run("approve", name, "--skip-gate", "gate", "--why", "known", "--server", self.daemon.url, code=0)

    def silent_gates_pause(self):
        for name, (_, say) in SILENT.items():
            paused = lambda: (self.rollout(name).get("open") or {}).get("stage") == "paused"
            wait(f"{name} pauses at its checkpoint", paused, SOON)
            found = self.rollout(name)["open"]
            if found["by"] != "gate gate" or say not in found["why"]:
                raise Failed(f"{name} does not say why: {found}")
            if self.new(name)[0] != 1 or found["checkpointsPassed"]:
                raise Failed(f"{name} went on: {self.new(name)}, {found}")

    def a_gate_fails_at_the_checkpoint(self):
        soaks = lambda: (self.rollout(WORSE).get("open") or {}).get("soaking")
        wait(f"{WORSE} is at its checkpoint", soaks, SOON)
        # 45 before, and 75 from now on; the others pass up to 50.
        self.exporter.load = 50
        failing = lambda: (self.rollout(WORSE).get("open") or {}).get("stage") == "failing"
        wait(f"{WORSE} fails", failing, SOON)
        why = self.rollout(WORSE)["open"]["why"]
        if "failed at checkpoint" not in why or "75" not in why:
            raise Failed(why)

    def a_gate_stops_a_scale_down(self):
        wait(f"{FALLS} falls to one machine", lambda: self.emulator.size(FALLS) == 1, SOON)
        hold = wait(f"{STAYS} says that its gate failed", lambda: self.holds(STAYS).get("gateFailed"), SOON)
        machines = json.loads(get(f"{self.daemon.url}/api/v1/pools/{STAYS}/machines"))
        lifecycles = [machine["lifecycle"] for machine in machines["items"]]
        if f"poolkeeper retry {STAYS}" not in hold["message"] or lifecycles != ["InService"] * 2:
            raise Failed(f"{STAYS} did not stay: {hold}, {lifecycles}")

    def nothing_is_left_of_commands(self):
        pids = {int(line) for line in (self.home / "pids").read_text().split()}
        alive = lambda: [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
        wait("no process of a command is left", lambda: not alive(), 10)
        if len(pids) < 4:
            raise Failed(f"only {len(pids)} commands ran")
        if self.shop.elsewhere or self.proxy.elsewhere:
            raise Failed("a redirect was followed")

    def play(self, _options):
        self.begin()
        self.gates_that_fail_before()
        self.a_gate_fails_at_the_checkpoint()
        for name in (*PASS, *BEFORE):
            wait(f"{name} is rolled", lambda: (self.rollout(name).get("last") or {}).get("how") == "succeeded", SOON)
            if self.new(name) != (1, 1):
                raise Failed(f"{name} ended with {self.new(name)}")
        self.silent_gates_pause()
        self.a_gate_stops_a_scale_down()
        self.nothing_is_left_of_commands()
        counted = self.daemon.number("gate_measurements_total", 'pool="true"', 'verdict="pass"')
        if not counted or counted < 2:
            raise Failed(f"{counted} passes are counted")
        if SECRET in self.daemon.log.read_text():
            raise Failed("a command had a secret of the daemon")
        self.end()


if __name__ == "__main__":
    sys.exit(drive(GateCase, "each gate passed, failed or said nothing as it should"))
