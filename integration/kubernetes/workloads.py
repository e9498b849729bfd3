"""What runs on the nodes of one set, in a namespace of the set's name."""

from client import MERGE, Refused, path
from kubelets import DONE, SET

APPS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}


class Workloads:
    def __init__(self, client, scale_set):
        self.client, self.namespace = client, scale_set
        # Kind, name and how many pods it has; a DaemonSet has one a node.
        self.apps = []
        client.create("namespaces", {"metadata": {"name": scale_set}})

    def pod(self, labels, cpu="100m", grace=30):
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        return {"metadata": {"labels": labels}, "spec": {"containers": [container], "nodeSelector": {SET: self.namespace},
                                                         "terminationGracePeriodSeconds": grace}}

    def app(self, kind, name, count=None, of_pod=None, **more):
        template = self.pod({"app": name, "kind": kind}, **of_pod or {})
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
        if count is not None:
            spec["replicas"] = count
        self.client.create(kind, {"kind": APPS[kind], "metadata": {"name": name}, "spec": spec}, self.namespace)
        self.apps.append((kind, name, count))

    def deployment(self, name, count, **of_pod):
        self.app("deployments", name, count, of_pod)

    def stateful(self, name, count):
        """With a volume for each pod, so that a pod has its own again wherever it runs."""
        claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
        for n in range(count):
            self.client.create("persistentvolumes", {
                "metadata": {"name": f"{self.namespace}-{name}-{n}"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                         "hostPath": {"path": "/none"}, "claimRef": {"namespace": self.namespace, "name": f"data-{name}-{n}"}},
            })
        self.app("statefulsets", name, count, serviceName=name,
                 volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}])

    def daemon_set(self, name):
        self.app("daemonsets", name)

    def bare(self, name, node=None, **labels):
        """The scheduler chooses the node, if none is named."""
        pod = self.pod({"app": name, **labels})
        pod["metadata"]["name"] = name
        pod["spec"] |= {"restartPolicy": "Never"} | ({"nodeName": node} if node else {})
        self.client.create("pods", pod, self.namespace)

    def finished(self, name):
        self.bare(name, **{DONE: "yes"})

    def budget(self, name, app, **spec):
        budget = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
        self.client.create("poddisruptionbudgets", budget, self.namespace)

    def change_budget(self, name, **spec):
        self.client.patch("poddisruptionbudgets", name, {"spec": spec}, self.namespace, how=MERGE)

    def drop_budget(self, name):
        self.client.delete("poddisruptionbudgets", name, self.namespace)

    def not_whole(self):
        """The workloads that lack ready pods, and how many."""
        short = []
        for kind, name, count in self.apps:
            status = self.client.get(kind, name, self.namespace).get("status", {})
            ready, wanted = status.get("readyReplicas", 0), count
            if kind == "daemonsets":
                ready, wanted = status.get("numberReady", 0), max(1, status.get("desiredNumberScheduled", 0))
            if ready != wanted:
                short.append(f"{kind} {name}: {ready} of {wanted}")
        return short

    def uncounted(self):
        """Budgets that have not yet counted all their pods as healthy."""
        short = []
        for one in self.client.list("poddisruptionbudgets", self.namespace)["items"]:
            status = one.get("status", {})
            healthy, pods = status.get("currentHealthy", 0), status.get("expectedPods", 0)
            if status.get("observedGeneration") != one["metadata"]["generation"] or healthy != pods or not pods:
                short.append(f"budget {one['metadata']['name']}: {healthy} of {pods}")
        return short

    def unsettled(self):
        return self.not_whole() + self.uncounted()

    def drop(self):
        try:
            self.client.request("DELETE", path("namespaces", None, self.namespace))
        except Refused as refused:
            if refused.code != 404:
                raise
