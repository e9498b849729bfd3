"""Sets a value that a real Prometheus scrapes, breaks what is between it and the daemon, and looks at the pools' sizes."""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scale"))

import house
from house import ENV, GROUP, Failed, Process, get, wait
from metrics import PASSWORD, TOKEN, USER, Exporter, Proxy, ask, free_port

SUBSCRIPTION = f"/subscriptions/00000000-0000-0000-0000-000000000000/{GROUP}"
# What one machine carries, and how long a smaller load must last.
TARGET, STABILISE = 10, 20
# A query is asked each second; machines of the emulator are there seconds after that.
SOON = 30
EXPIRES = 120

# Pools without an opinion: their server, their query, and what the log says of it.
SILENT = {
    "empty": ("main", "sum(no_such_metric)", "noData", "the query has no series now"),
    "nan": ("main", "not_a_number", "notFinite", "the value is NaN"),
    "many": ("main", "two", "severalSeries", "the query has 2 series"),
    "series": ("main", "load[1m]", "notNumber", "the value is values over time"),
    "syntax": ("main", "sum(load", "badQuery", "it rejects the query: "),
    "denied": ("denied", "sum(load)", "denied", "it answers 401 and does not accept our credentials"),
    "stranger": ("stranger", "sum(load)", "denied", "it answers 401 and does not accept our credentials"),
    "warned": ("warned", "sum(load)", "partial", "the answer is partial: store eu is away"),
    "html": ("html", "sum(load)", "unavailable", "it answers 502 (HTML)"),
    "moved": ("moved", "sum(load)", "notPrometheus", "it answers 307, with a redirect"),
    "slow": ("slow", "sum(load)", "timeout", "it does not answer within 2s"),
}
# Pools that speak: directly, and through the proxy with the right credentials.
SPEAK = {"web": "main", "bearer": "bearer", "basic": "basic", "workspace": "workspace"}


def image(version):
    return f"{SUBSCRIPTION}/galleries/house/images/base/versions/{version}"


class Prometheus:
    def __init__(self, program, home, target):
        self.program, self.home, self.port, self.process = program, home, free_port(), None
        scrape = {"job_name": "load", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [scrape]}
        (home / "prometheus.yml").write_text(json.dumps(config))

    def start(self):
        command = [
            self.program, f"--config.file={self.home / 'prometheus.yml'}", f"--storage.tsdb.path={self.home / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        log = self.home / "prometheus.log"
        self.process = Process(command, log, log)

    def value(self):
        self.process.must_run()
        status, answer = ask(f"http://127.0.0.1:{self.port}/api/v1/query", b"query=sum(load)")
        found = answer.get("data", {}).get("result", [])
        return float(found[0]["value"][1]) if status == 200 and found else None

    def kill(self):
        if self.process:
            self.process.kill()


class Emulator(Process):
    def __init__(self, program, home, sets):
        self.home = home
        sets = [{"name": name, "capacity": count, "image": image("1.0.0")} for name, count in sets.items()]
        seed = {"scaleSets": sets, "settings": {"quicker": 60, "throttling": False}}
        command = [program, "emulate", "--listen", "127.0.0.1:0", "--output", "json", "--seed-file", "-"]
        super().__init__(command, home / "emulator.out", home / "emulator.log", json.dumps(seed).encode())
        told = json.loads(wait("the emulator starts", self.told, 60))
        self.url, self.tenant = told["url"], told["tenant"]

    told = house.Emulator.told

    def machines(self, name):
        sets = json.loads(get(f"{self.url}/_control/state"))["scaleSets"]
        found = [one for one in sets if one["id"].lower().endswith(f"/{name}")]
        return found[0]["instances"]

    def size(self, name):
        return len(self.machines(name))


class Daemon(house.Daemon):
    def __init__(self, program, home, emulator):
        self.home, self.log_from = home, 0
        log = home / "daemon.log"
        command = [
            program, "serve", "--settings", home / "poolkeeper.yaml", "--store", "memory", "--pools", home / "pools",
            "--listen", "127.0.0.1:0", "--arm", emulator.url, "--authority", emulator.url, "--auth", "client-secret",
            "--tenant", emulator.tenant, "--client-id", "metrics", "--set", "log.format=json",
        ]
        Process.__init__(self, command, log, log)
        self.open()

    def number(self, family, *labels):
        found = self.metrics().get(f"poolkeeper_{family}", {})
        return next((value for key, value in found.items() if all(label in key for label in labels)), None)

    def is_held(self, pool):
        return self.number("pool_held", f'pool="{pool}"', 'reason="sizeUnknown"') == 1

    def desired(self, pool):
        return self.number("pool_desired_machines", f'pool="{pool}"')

    def hold(self, pool):
        plan = json.loads(get(f"{self.url}/api/v1/pools/{pool}/plan"))
        return json.dumps(plan)


class Case:
    def __init__(self, options):
        self.program, self.home = options.program, pathlib.Path(options.scratch)
        (self.home / "pools").mkdir()
        self.exporter = Exporter()
        self.prometheus = Prometheus(options.prometheus, self.home, self.exporter.port)
        self.proxy = Proxy(self.prometheus.port)
        self.emulator = self.daemon = None

    def settings(self):
        base = f"http://127.0.0.1:{self.proxy.port}"
        files = {"token": TOKEN, "wrong-token": "wrong", "password": PASSWORD, "wrong-password": "wrong"}
        for name, text in files.items():
            (self.home / name).write_text(text + "\n")
        basic = lambda file: {"username": USER, "passwordFile": str(self.home / file)}
        servers = {
            "main": {"url": f"http://127.0.0.1:{self.prometheus.port}"},
            "bearer": {"url": f"{base}/bearer", "bearerTokenFile": str(self.home / "token")},
            "denied": {"url": f"{base}/bearer", "bearerTokenFile": str(self.home / "wrong-token")},
            "basic": {"url": f"{base}/basic/", "basicAuth": basic("password")},
            "stranger": {"url": f"{base}/basic", "basicAuth": basic("wrong-password")},
            # A token of the daemon's own identity, from the emulated Entra ID.
            "workspace": {"url": f"{base}/workspace", "azureIdentity": True},
            **{mood: {"url": f"{base}/{mood}"} for mood in ("warned", "html", "moved", "slow")},
        }
        for server in servers.values():
            server.update(interval="1s", timeout="2s")
        (self.home / "poolkeeper.yaml").write_text(json.dumps({"metrics": servers}))

    def write(self, name, replicas, version="1.0.0", surge=1):
        pool = {
            "apiVersion": "poolkeeper/v1", "kind": "Pool", "name": name,
            "scaleSet": f"{SUBSCRIPTION}/virtualMachineScaleSets/{name}", "replicas": replicas,
            "model": {"image": image(version)},
            "rollout": {
                "maxSurge": surge, "maxUnavailable": 2 - surge, "minReady": "1s", "ramp": "off", "coalesce": "1s",
            },
        }
        aside = self.home / "aside"
        aside.write_text(json.dumps(pool))
        aside.rename(self.home / "pools" / f"{name}.yaml")

    def write_metric(self, name, server, query="sum(load)"):
        metric = {"server": server, "query": query, "mode": "total", "target": TARGET, "stabilise": f"{STABILISE}s"}
        profiles = [{"name": "load", "metric": metric}]
        self.write(name, {"owner": "pool", "min": 1, "max": 10, "profiles": profiles})

    def write_other(self, count, version):
        """A pool without profiles, whose machines roll all at once."""
        self.write("other", {"owner": "pool", "count": count}, version, surge=0)

    def begin(self):
        self.exporter.load = 30
        self.prometheus.start()
        wait("Prometheus has the load", lambda: self.prometheus.value() == 30, 30)
        self.settings()
        for name, server in SPEAK.items():
            self.write_metric(name, server)
        for name, (server, query, _, _) in SILENT.items():
            self.write_metric(name, server, query)
        self.write_other(2, "1.0.0")
        sets = {name: 1 for name in (*SPEAK, *SILENT)} | {"other": 2}
        self.emulator = Emulator(self.program, self.home, sets)
        self.daemon = Daemon(self.program, self.home, self.emulator)

    def has(self, name, size):
        return self.emulator.size(name) == size and self.daemon.desired(name) == size

    def says(self, text):
        return wait(f"the log says {text!r}", lambda: self.daemon.told(text), SOON)

    def silent_pools_keep_their_size(self):
        for name, (server, _, reason, sentence) in SILENT.items():
            wait(f"{name} says that its size is unknown", lambda: self.daemon.is_held(name), SOON)
            self.says(sentence)
            failed = self.daemon.number("metric_query_failures_total", f'server="{server}"', f'reason="{reason}"')
            if not failed or self.emulator.size(name) != 1:
                raise Failed(f"{name}: {failed} queries failed, and it has {self.emulator.size(name)} machines")
        if self.proxy.elsewhere:
            raise Failed("a redirect was followed")
        if "its metric has no value" not in self.daemon.hold("empty"):
            raise Failed("the hold does not say why")

    def load_moves_sizes(self):
        # Meanwhile another pool rolls, although a metric server hangs.
        self.write_other(2, "2.0.0")
        for name in SPEAK:
            wait(f"{name} has 3 machines", lambda: self.has(name, 3), SOON)
        self.silent_pools_keep_their_size()
        self.exporter.load = 60
        for name in SPEAK:
            wait(f"{name} grows to 6 machines", lambda: self.has(name, 6), SOON)
        wait("the load is high for a while", lambda: self.prometheus.value() == 60, 5)
        self.exporter.load, fell = 50, time.monotonic()
        while time.monotonic() - fell < STABILISE - 5:
            if not self.has("web", 6):
                raise Failed(f"web fell {time.monotonic() - fell:.0f} s after its load")
            time.sleep(1)
        wait("other is on its new image", self.is_rolled, SOON)
        wait("web falls to 5 machines", lambda: self.has("web", 5), STABILISE + SOON)

    def is_rolled(self):
        machines = self.emulator.machines("other")
        return len(machines) == 2 and all("versions/2.0.0" in json.dumps(one["image"]) for one in machines)

    def prometheus_dies(self, to_expiry):
        self.prometheus.kill()
        self.says("it does not answer: ")
        killed = time.monotonic()
        # The last value is used for a while; a query that was never answered has none.
        self.write_metric("bearer", "main", "sum(load) + 0")
        wait("bearer says that its size is unknown", lambda: self.daemon.is_held("bearer"), SOON)
        self.write_other(3, "2.0.0")
        wait("other's turns go on", lambda: self.has("other", 3), SOON)
        if to_expiry:
            left = EXPIRES + STABILISE + SOON - (time.monotonic() - killed)
            wait("web says that its size is unknown", lambda: self.daemon.is_held("web"), left, 1)
            if "the last value of its metric is from" not in self.daemon.hold("web"):
                raise Failed("the hold does not say why")
        elif self.daemon.is_held("web"):
            raise Failed("a value of seconds ago is not used any more")
        if not (self.has("web", 5) and self.has("bearer", 5)):
            raise Failed("without a value, a size did not stay")
        said = [line for line in self.daemon.said() if "it does not answer: " in json.dumps(line)]
        if len(said) != 1:
            raise Failed(f"it is said {len(said)} times that the server is away")
        self.exporter.load = 70
        self.prometheus.start()
        self.says("the metric server answers again")
        for name in ("web", "bearer"):
            wait(f"{name} grows to 7 machines", lambda: self.has(name, 7), SOON)
            if self.daemon.is_held(name):
                raise Failed(f"{name} is still held")

    def a_token_is_renewed(self):
        (self.home / "wrong-token").write_text(TOKEN)
        wait("denied speaks with the new token", lambda: self.has("denied", 7), SOON)

    def run(self, *args, code):
        command = [self.program, *map(str, args)]
        ended = subprocess.run(command, env=ENV, capture_output=True, text=True, timeout=60)
        if ended.returncode != code:
            raise Failed(f"{args} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        return ended.stdout + ended.stderr

    def commands_name_it(self):
        said = self.run("doctor", "--server", self.daemon.url, code=7)
        if "empty/load" not in said:
            raise Failed(f"the doctor does not name the metric:\n{said}")
        settings = ("--settings", self.home / "poolkeeper.yaml")
        self.run("validate", self.home / "pools", *settings, code=0)
        self.write_metric("web", "mian")
        said = self.run("validate", self.home / "pools" / "web.yaml", *settings, code=2)
        if "no metric server mian" not in said or "main" not in said:
            raise Failed(f"validate does not name the servers:\n{said}")
        self.run("validate", self.home / "pools" / "web.yaml", code=0)
        self.says("no metric server mian")

    def end(self):
        if self.daemon.errors():
            raise Failed(f"the log has errors: {self.daemon.errors()[:3]}")
        shown = self.daemon.log.read_text() + get(self.daemon.url + "/metrics")
        self.daemon.stop()
        for secret in (TOKEN, PASSWORD):
            if secret in shown:
                raise Failed("a secret is in the log or in the metrics")

    def play(self, options):
        self.begin()
        self.load_moves_sizes()
        self.prometheus_dies(options.expiry)
        self.a_token_is_renewed()
        self.commands_name_it()
        self.end()


def drive(case_of, said):
    parser = argparse.ArgumentParser()
    for name in ("program", "prometheus", "scratch"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--expiry", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    began, case = time.monotonic(), case_of(options)
    try:
        case.play(options)
    except Failed as failed:
        print(f"prometheus: {failed}", file=sys.stderr)
        return 1
    finally:
        for one in (case.daemon, case.emulator, case.prometheus):
            if one:
                one.kill()
    print(f"prometheus: {said}, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(drive(Case, "sizes followed their metrics"))
