"""One control plane, one emulator, and the chart with the values of this suite."""

import base64
import itertools
import json
import pathlib
import shutil

from chart import CHART, Helm, objects
from control import wait
from kubelets import SET
from stage import Stage, image, set_id

# The release, and its namespaces: where it comes and goes, where its daemon drains a machine, where its daemon may not
# watch, and where it never is.
RELEASE, INSTALLS, MAIN, UNWATCHED, EMPTY = "poolkeeper", "installs", "main", "unwatched", "empty"
# The machines of the sets, whose names are those of namespaces too.
SETS = {MAIN: 2, UNWATCHED: 1}
# In place of the Prometheus operator's own.
MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com", "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}


class Suite:
    def __init__(self, options, table):
        self.table, self.home = table, pathlib.Path(options.scratch)
        self.stage = Stage(options.program, options.components, options.scratch, SETS)
        self.control, self.program = self.stage.control, self.stage.program
        self.helm = Helm(options.helm, self.home, self.control.admin_kubeconfig)
        self.pods, self.files = [], itertools.count()
        # The most pods of the release that there were at once.
        self.most = 0

    def start(self):
        stage = self.stage
        # The node of our own pods.
        stage.imagined.add(1)
        stage.start()
        self.client = stage.client
        stage.pods.heard += (self.count,)
        # The chart alone gives rights.
        for kind in ("clusterrolebindings", "clusterroles"):
            self.client.delete(kind, "poolkeeper")
        self.client.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", MONITORS)
        self.client.create("namespaces", {"metadata": {"name": EMPTY}})
        for name in (INSTALLS, MAIN, UNWATCHED):
            self.client.create("namespaces", {"metadata": {"name": name}})
            self.client.create("persistentvolumes", {"metadata": {"name": name}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                "hostPath": {"path": "/none"}, "claimRef": {"namespace": name, "name": RELEASE}}})
            self.secret(name, "azure", {"AZURE_CLIENT_SECRET": "any"})
        wait("the kind ServiceMonitor is served", lambda: "servicemonitors" in self.control.kubectl("api-resources"), 30)
        counts = {**SETS, "imagined": 1}
        wait("the nodes of all machines are there",
             lambda: all(len(stage.nodes_of(name)) == count for name, count in counts.items()), 60)

    def count(self, uid, before, now):
        ours = [pod for pod in self.stage.pods.all() if pod["metadata"]["namespace"] == INSTALLS
                and pod["metadata"].get("labels", {}).get("app.kubernetes.io/name") == RELEASE]
        self.most = max(self.most, len(ours))

    def secret(self, namespace, name, files):
        data = {key: base64.b64encode(value.encode()).decode() for key, value in files.items()}
        where = f"/api/v1/namespaces/{namespace}/secrets"
        self.client.request("POST", where, {"metadata": {"name": name}, "data": data})

    def file(self, text):
        path = self.home / f"{next(self.files)}.yaml"
        path.write_text(text)
        return str(path)

    def values(self, name, count, **more):
        """Of a release whose pool is this set."""
        emulator, pool = self.stage.emulator, {
            "scaleSet": set_id(name), "adopt": "roll", "replicas": {"owner": "pool", "count": count}, "cluster": "home",
            "model": {"image": image("1.0.0")}, "scaleDown": {"unconfirmed": "allow"},
            "rollout": {"maxSurge": 1, "maxUnavailable": 0, "minReady": "1s", "coalesce": "1s"},
            "drain": {"ladder": {"evict": "1m", "shorterGrace": "off", "delete": "10m"}, "nodeDeletion": "10s"},
        }
        azure = {"resourceManager": emulator.url, "authority": emulator.url, "auth": "client-secret",
                 "tenant": emulator.tenant, "clientId": "suite"}
        return self.file(json.dumps({
            "settings": {"reload": "1s", "lease": {"ttl": "5s"}, "azure": azure, "clusters": {"home": {}}},
            "pools": {name: pool}, "envFrom": [{"secretRef": {"name": "azure"}}], "nodeSelector": {SET: "imagined"},
            **more,
        }))

    def template(self, *words, where=CHART):
        return self.helm.ask("template", RELEASE, where, "--namespace", EMPTY, *words)

    def parsed(self, text):
        """What the objects are, and no apiserver has seen them."""
        words = ["create", "--dry-run=client", "--validate=ignore", "--output", "json", "--filename", self.file(text)]
        return objects(self.control.kubectl(*words))

    def taken(self, text):
        """What the apiserver would keep. It refuses keys that it does not know."""
        words = ["create", "--dry-run=server", "--validate=strict"]
        return objects(self.control.kubectl(*words, "--output", "json", "--filename", self.file(text)))

    def copy(self):
        """A chart to plant faults in."""
        home = self.home / "planted"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(CHART, home)
        return home

    def release(self, verb, namespace, *words):
        return self.helm.ask(verb, RELEASE, *words, "--namespace", namespace, "--wait", "--timeout", "60s")

    def deployment(self, namespace):
        return self.client.get("deployments", RELEASE, namespace)

    def end(self):
        for pod in self.pods:
            pod.kill()
        self.stage.end()
