"""The chart in the hands of Helm: what it makes of values, which it refuses, and what a release goes through."""

import subprocess
import time

import chart
from chart import CHART, VALUES, judge, objects, of_kind
from control import Failed, wait
from suite import INSTALLS, MAIN, RELEASE

import house

# Values that are refused, and what is said then.
REFUSED = [
    ("{replicas: 2}", "'replicas' not allowed"),
    ("{image: {tags: next}}", "'tags' not allowed"),
    ("{settings: {clutsers: {home: {}}}}", "'clutsers' not allowed"),
    ("{settings: {pools: 'off'}}", "settings.pools: the chart sets it"),
    ("{settings: {store: {path: /data}}}", "settings.store.path: the chart sets it"),
    ("{settings: {api: {listen: 'off'}}}", "settings.api.listen: the chart sets it"),
    ("{settings: {log: {level: off}}}", "settings.log.level: it is read as false"),
    ("{pools: {web: {rollout: {ramp: off}}}}", "pools.web.rollout.ramp: it is read as false"),
    ("{pools: {web: {rollout: {checkpoints: [{at: on}]}}}}", "pools.web.rollout.checkpoints[0].at: it is read as true"),
    ("{pools: {../web: {}}}", "../web"),
    ("{api: {tokensSecret: tokens}}", "api.tlsSecret: name one"),
    ("{api: {tlsSecret: tls}}", "api.tlsSecret: name api.tokensSecret"),
    ("{serviceMonitor: {enabled: true, tokenSecret: {name: viewer}}}", "serviceMonitor.enabled: without api.tlsSecret"),
    ("{serviceAccount: {create: false}}", "serviceAccount.name: name the service account"),
    ("{terminationGracePeriodSeconds: 10}", "terminationGracePeriodSeconds"),
]
# Faults that the judge must find in a copy of the chart: in which file what becomes what, and a word of what it says.
PLANTED = [
    ("deployment.yaml", "replicas: 1", "replicas: 2", "one replica"),
    ("deployment.yaml", "type: Recreate", "type: RollingUpdate", "the strategy"),
    ("deployment.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "read-only root"),
    ("deployment.yaml", 'ne (include "poolkeeper.inCluster" .) ""', "false", "a token"),
    ("account.yaml", "verbs: [list, watch, patch, delete]", "verbs: [list, watch, patch, delete, update]", "update of nodes"),
    ("account.yaml", "verbs: [list, delete]", "verbs: [list]", "lacks delete of pods"),
    ("store.yaml", "helm.sh/resource-policy: keep", "note: keep", "the store would go"),
]


def plant(suite):
    """The judge finds each fault."""
    values, wrong = suite.values(MAIN, 2), []
    for name, old, new, word in PLANTED:
        copy = suite.copy()
        path = copy / "templates" / name
        text = path.read_text()
        path.write_text(text.replace(old, new))
        found = judge(suite.parsed(suite.template("--values", values, where=copy)))
        if old not in text or not any(word in one for one in found):
            wrong.append(f"{name} with '{new}' in the place of '{old}' is not found to be wrong: {found}")
    suite.table["planted faults"] = f"{len(PLANTED) - len(wrong)} of {len(PLANTED)} found"
    return wrong


def render(suite):
    """Several values, through lint, the program's own validation and the apiserver."""
    wrong = chart.judge_files()
    own = suite.values(MAIN, 2)
    for name, path, more in (
        ("defaults", None, {"in_cluster": False}),
        ("all values", VALUES / "all.yaml", {"identity": True}),
        ("given objects", VALUES / "given.yaml", {"in_cluster": False, "own_claim": False}),
        ("this suite", own, {}),
    ):
        words = ["--values", path] if path else []
        suite.helm.ask("lint", "--strict", "--quiet", CHART, *words)
        made = suite.taken(suite.template(*words))
        kinds = {one["kind"] for one in made}
        found = judge(made, **more) + validate(suite, name, made)
        found += [f"no {kind} is made" for kind in chart.KINDS if name == "all values" and kind not in kinds]
        wrong += [f"{name}: {one}" for one in found]
    for text, words in REFUSED:
        said = suite.helm.refuses("template", RELEASE, CHART, "--values", suite.file(text))
        if words not in said:
            wrong.append(f"{text} is refused with: {said.strip()}")
    suite.table["values refused"] = len(REFUSED)
    return wrong


def validate(suite, name, made):
    """The program finds no fault in the files that the daemon would read."""
    home = suite.home / f"files of {name}"
    for one in of_kind(made, "ConfigMap"):
        folder = home / one["metadata"]["name"].rsplit("-", 1)[1]
        folder.mkdir(parents=True)
        for key, text in (one.get("data") or {}).items():
            (folder / key).write_text(text)
    settings, pools = ["--settings", home / "settings" / "poolkeeper.yaml"], list((home / "pools").iterdir())
    found = []
    for words in (["serve", *settings, "--print-settings"], ["validate", *settings, *pools] if pools else ["version"]):
        done = subprocess.run([suite.program, *words], capture_output=True, text=True, timeout=60, env=house.ENV,
                              stdin=subprocess.DEVNULL)
        found += [done.stdout + done.stderr] if done.returncode else []
    return found


def inventory(suite, namespace):
    """All that there is in a namespace, and what is of its release beside it; but for what the cluster itself writes."""
    ask, name = suite.control.kubectl, ["--output", "name"]
    kinds = [kind for kind in ask("api-resources", "--verbs=list", "--namespaced", *name).split()
             if not kind.startswith(("events", "endpointslices"))]
    inside = ask("get", ",".join(kinds), "--namespace", namespace, *name).split()
    wide = ask("get", "clusterroles,clusterrolebindings", "--selector", f"app.kubernetes.io/instance={RELEASE}", *name)
    return {*inside, *(one for one in wide.split() if f"/{namespace}-" in one)}


def installs(suite):
    """Install, upgrade, roll back, uninstall and install again, each of which Helm waits for."""
    began, client = time.monotonic(), suite.client
    wait("the namespace is complete", lambda: len(inventory(suite, INSTALLS)) >= 3, 30)
    before = inventory(suite, INSTALLS)
    suite.release("install", INSTALLS, CHART, "--values", suite.values(MAIN, 2))
    wrong = [f"installed: {one}" for one in judge_installed(suite)]
    first, pods = suite.deployment(INSTALLS), lambda: {pod["metadata"]["uid"] for pod in client.list("pods", INSTALLS)["items"]}
    one = pods()
    suite.release("upgrade", INSTALLS, CHART, "--values", suite.values(MAIN, 1))
    text = client.request("GET", f"/api/v1/namespaces/{INSTALLS}/configmaps/{RELEASE}-pools")["data"][f"{MAIN}.yaml"]
    if pods() != one or "count: 1" not in text:
        wrong.append("a change of a pool started another pod, or did not arrive")
    suite.release("upgrade", INSTALLS, CHART, "--values", suite.values(MAIN, 2), "--set", "settings.log.level=debug")
    two = pods()
    if two & one or len(two) != 1:
        wrong.append("a change of the settings did not start another pod")
    suite.release("rollback", INSTALLS, 1)
    if pods() & two or suite.deployment(INSTALLS)["spec"]["template"] != first["spec"]["template"]:
        wrong.append("the rollback did not come back to what was installed")
    suite.release("uninstall", INSTALLS)
    wrong += judge_left(suite, before)
    suite.release("install", INSTALLS, CHART, "--values", suite.values(MAIN, 2))
    if client.get("persistentvolumeclaims", RELEASE, INSTALLS)["status"]["phase"] != "Bound":
        wrong.append("the next release did not get the claim of the last one")
    if suite.most != 1:
        wrong.append(f"there were {suite.most} pods at once")
    steps = "installed, upgraded twice, rolled back, uninstalled, installed again"
    suite.table["installs"] = f"{steps}, {time.monotonic() - began:.0f} s"
    return wrong


def judge_installed(suite):
    kinds = "deployments,configmaps,persistentvolumeclaims,serviceaccounts,services,poddisruptionbudgets"
    of_release = ["--selector", f"app.kubernetes.io/instance={RELEASE}", "--output", "json"]
    made = objects(suite.control.kubectl("get", kinds, "--namespace", INSTALLS, *of_release))
    wide = objects(suite.control.kubectl("get", "clusterroles,clusterrolebindings", *of_release))
    made += [one for one in wide if one["metadata"]["name"].startswith(f"{INSTALLS}-")]
    wrong, sets = judge(made), suite.client.list("replicasets", INSTALLS)["items"]
    available = suite.deployment(INSTALLS)["status"].get("availableReplicas")
    if [one["spec"]["replicas"] for one in sets] != [1] or available != 1:
        wrong.append(f"there are {len(sets)} ReplicaSets, and {available} replicas are available")
    return wrong


def judge_left(suite, before):
    """What is left once the release is gone: the claim of the store."""
    stays, left = {*before, f"persistentvolumeclaim/{RELEASE}"}, set()

    def gone():
        nonlocal left
        left = inventory(suite, INSTALLS)
        return left == stays

    try:
        wait("the release is gone", gone, 30, 0.5)
    except Failed:
        return [f"this is there after uninstall, or gone, and should not: {', '.join(sorted(left ^ stays))}"]
    suite.table["uninstall leaves"] = f"persistentvolumeclaim/{RELEASE}, with the store"
    return []
