"""The chart as Helm renders it, and what must be true of it whatever the values are."""

import json
import pathlib
import re
import subprocess

from control import Failed

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
CHART, SETTINGS = REPOSITORY / "config" / "helm", REPOSITORY / "config" / "poolkeeper.yaml"
VALUES = pathlib.Path(__file__).resolve().parent / "values"
# What the chart may make, and how many at most.
KINDS = ("ConfigMap", "PersistentVolumeClaim", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment",
         "Service", "ServiceMonitor", "NetworkPolicy")
# The daemon exits within ten seconds of a signal.
ENDS = 10
RULE = re.compile(r"^- \{apiGroups: \[(.*?)\], resources: \[(.*?)\], verbs: \[(.*?)\]\}", re.MULTILINE)


class Helm:
    def __init__(self, program, home, kubeconfig):
        self.program, self.home, self.seconds, self.calls = program, home, 120, 0
        # Nothing of the user's own Helm is read or written.
        self.env = {"PATH": "", "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def run(self, *words):
        self.calls += 1
        command = [self.program, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=self.seconds, env=self.env, cwd=self.home,
                              stdin=subprocess.DEVNULL)

    def ask(self, *words):
        done = self.run(*words)
        if done.returncode:
            raise Failed(f"helm {' '.join(map(str, words))}: {done.stderr[-2000:]}")
        return done.stdout

    def refuses(self, *words):
        """What it says."""
        done = self.run(*words)
        if not done.returncode:
            raise Failed(f"helm {' '.join(map(str, words))}: is not refused")
        return done.stderr


def objects(text):
    """Those that kubectl printed as JSON, one after another or in lists."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        one, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        found += one["items"] if one["kind"] == "List" else [one]
    return found


def rights(rules):
    return {(group, resource, verb) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]}


def documented_rights():
    """Those of the role in the manual."""
    text = (REPOSITORY / "src" / "docs" / "operations.md").read_text()
    text = text[text.index("kind: ClusterRole"):]
    text = text[:text.index("```")]
    words = lambda listed: [word.strip().strip('"') for word in listed.split(",")]
    rules = [dict(zip(("apiGroups", "resources", "verbs"), map(words, found))) for found in RULE.findall(text)]
    if not rules:
        raise Failed("the manual names no rights")
    return rights(rules)


def of_kind(made, kind):
    return [one for one in made if one["kind"] == kind]


def judge(made, in_cluster=True, identity=False, own_claim=True):
    """What is wrong with the objects of a release."""
    strange = [one for one in made if one["kind"] not in KINDS]
    wrong = [f"{one['kind']} {one['metadata']['name']} has no place in the chart" for one in strange]
    wrong += [f"{len(of_kind(made, kind))} objects are a {kind}" for kind in KINDS[1:] if len(of_kind(made, kind)) > 1]
    if bool(of_kind(made, "PersistentVolumeClaim")) != own_claim:
        wrong.append("there is a claim beside the given one, or none at all")
    for claim in of_kind(made, "PersistentVolumeClaim"):
        if claim["metadata"].get("annotations", {}).get("helm.sh/resource-policy") != "keep":
            wrong.append("the store would go with its release")
    deployments = of_kind(made, "Deployment")
    if len(deployments) != 1:
        return wrong + [f"there are {len(deployments)} Deployments"]
    return wrong + judge_deployment(deployments[0], in_cluster, identity) + judge_role(made, in_cluster)


def judge_deployment(deployment, in_cluster, identity):
    spec = deployment["spec"]
    template, pod = spec["template"]["metadata"], spec["template"]["spec"]
    container = pod["containers"][0]
    user = re.search(r"^USER (\d+):(\d+)$", (REPOSITORY / "config/container/Containerfile").read_text(), re.MULTILINE)
    of_pod, of_container = pod.get("securityContext", {}), container.get("securityContext", {})
    probes = [container.get(f"{name}Probe") for name in ("startup", "liveness")]
    holds = {
        "one replica": spec["replicas"] == 1,
        "the strategy Recreate": spec["strategy"]["type"] == "Recreate",
        "one container": len(pod["containers"]) == 1 and not pod.get("initContainers"),
        "time to end": pod["terminationGracePeriodSeconds"] > ENDS,
        "the user of the image": of_pod.get("runAsNonRoot") is True
        and [str(of_pod.get(key)) for key in ("runAsUser", "runAsGroup")] == list(user.groups())
        and str(of_pod.get("fsGroup")) == user[2],
        "the seccomp profile": of_pod.get("seccompProfile") == {"type": "RuntimeDefault"},
        "a read-only root": of_container.get("readOnlyRootFilesystem") is True,
        "no more privileges": of_container.get("allowPrivilegeEscalation") is False
        and not of_container.get("privileged"),
        "no capability": of_container.get("capabilities") == {"drop": ["ALL"]},
        "probes": all(probes),
        "a limit of memory": "memory" in container["resources"].get("limits", {}),
        "the sum of its settings": len(template["annotations"].get("checksum/settings", "")) == 64,
        "a token only where it is used": pod.get("automountServiceAccountToken") is in_cluster,
        "the label of its identity": (template["labels"].get("azure.workload.identity/use") == "true") == identity,
        "labels that its selector finds": spec["selector"]["matchLabels"].items() <= template["labels"].items(),
        "no port of the node": not pod.get("hostNetwork")
        and not any("hostPort" in port for port in container.get("ports", [])),
    }
    return [f"the Deployment lacks {what}" for what, is_so in holds.items() if not is_so]


def judge_role(made, in_cluster):
    roles, bindings = of_kind(made, "ClusterRole"), of_kind(made, "ClusterRoleBinding")
    if not in_cluster:
        return ["it gets rights in a cluster that it does not use"] if roles or bindings else []
    if not roles or not bindings:
        return ["it gets no rights"]
    has, wants = rights(roles[0]["rules"]), documented_rights()
    wrong = [f"the role has {verb} of {resource}, which the manual lacks" for _, resource, verb in sorted(has - wants)]
    wrong += [f"the role lacks {verb} of {resource}" for _, resource, verb in sorted(wants - has)]
    account = of_kind(made, "Deployment")[0]["spec"]["template"]["spec"]["serviceAccountName"]
    subjects = [(one["kind"], one["name"]) for one in bindings[0]["subjects"]]
    if subjects != [("ServiceAccount", account)] or bindings[0]["roleRef"]["name"] != roles[0]["metadata"]["name"]:
        wrong.append(f"the role is given to {subjects}")
    return wrong


def judge_files():
    """What stands in two places is the same in both. (`cargo test` compares the versions.)"""
    schema, wrong = json.loads((CHART / "values.schema.json").read_text()), []
    top = lambda path: set(re.findall(r"^(\w+):", path.read_text(), re.MULTILINE))
    for name, has, wants in (
        ("the schema's values", set(schema["properties"]) - {"global"}, top(CHART / "values.yaml")),
        ("the values of values/all.yaml", top(VALUES / "all.yaml"), top(CHART / "values.yaml")),
        ("the schema's settings", set(schema["properties"]["settings"]["properties"]), top(SETTINGS)),
        ("the settings that are true or false", switches("settings"),
         set(re.findall(r"^[ #]*(\w+): (?:true|false)\b", SETTINGS.read_text(), re.MULTILINE))),
        ("the keys of pools that are true or false", switches("pools."),
         set(booleans(json.loads((REPOSITORY / "config/pool.schema.json").read_text())))),
    ):
        if has != wants:
            wrong.append(f"{name}: {', '.join(sorted(has ^ wants))} is in one place alone")
    return wrong


def switches(where):
    text = (CHART / "templates" / "_helpers.tpl").read_text()
    lines = [line for line in text.splitlines() if '"switches" (list' in line and f'"{where}' in line]
    return set(re.findall(r'"(\w+)"', lines[0].split("(list", 1)[1]))


def booleans(schema, name=None):
    if isinstance(schema, list):
        for one in schema:
            yield from booleans(one, name)
    elif isinstance(schema, dict):
        if schema.get("type") == "boolean":
            yield name
        for key, one in schema.items():
            is_named = key == "properties" and isinstance(one, dict)
            for inner, value in one.items() if is_named else [(name, one)]:
                yield from booleans(value, inner)
