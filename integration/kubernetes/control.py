"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a process of ours."""

import base64
import json
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scale"))

from house import Failed, Process, wait

from client import Client, Refused

# Who the daemons are in the cluster: so they wait in the queues of service accounts, as in a pod.
ACCOUNT, GROUP = "system:serviceaccount:poolkeeper:", "system:serviceaccounts:poolkeeper"
DAEMONS = ("main", "own", "killed", "size")
# What a daemon may do in a cluster: the role of the manual, without the right to delete pods, which doctor must miss.
RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"]},
    {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
# Of everybody what ends pods and changes nodes, with the bodies; of the daemons every call.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "omitManagedFields": True,
    "rules": [
        {"level": "Request", "resources": [{"group": "", "resources": ["pods/eviction"]}]},
        {"level": "Request", "verbs": ["delete", "deletecollection"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "Request", "verbs": ["create", "patch", "update", "delete"],
         "resources": [{"group": "", "resources": ["nodes"]}]},
        {"level": "Metadata", "userGroups": [GROUP]},
        {"level": "None"},
    ],
}
# A day: no node goes stale because this machine is busy. Those whose machine is gone are marked by the played kubelet.
NODE_GRACE = "24h"


def free_ports(count):
    """All at once, so that they differ."""
    taken = [socket.socket() for _ in range(count)]
    try:
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]
    finally:
        for one in taken:
            one.close()


class Control:
    def __init__(self, components, home):
        self.bin, self.home = pathlib.Path(components), home
        home.mkdir()
        self.running = {}
        self.port, self.etcd_port, self.peer_port = free_ports(3)
        self.server = f"https://127.0.0.1:{self.port}"
        self.audit_log = home / "audit.log"
        self.keys()
        self.tokens()
        (home / "audit.json").write_text(json.dumps(AUDIT))

    def openssl(self, *words):
        done = subprocess.run(["openssl", *map(str, words)], cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"openssl {words[0]}: {done.stderr}")

    def keys(self):
        """One authority signs for the apiserver, which clients know by it, and for the admin, whom the apiserver does."""
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        self.openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.crt", "-days", 2, "-subj", "/CN=suite")
        (self.home / "apiserver.ext").write_text("subjectAltName=IP:127.0.0.1\n")
        (self.home / "admin.ext").write_text("extendedKeyUsage=clientAuth\n")
        for name, subject in (("apiserver", "/CN=apiserver"), ("admin", "/O=system:masters/CN=admin")):
            self.openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                         "-out", f"{name}.crt", "-days", 2, "-extfile", f"{name}.ext")
        self.openssl("genrsa", "-out", "accounts.key", 2048)

    def tokens(self):
        tokens = {name: secrets.token_hex(16) for name in DAEMONS}
        table = self.home / "tokens.csv"
        table.touch(0o600)
        table.write_text("".join(f'{token},{ACCOUNT}{name},{name},"system:serviceaccounts,{GROUP}"\n'
                                 for name, token in tokens.items()))
        self.kubeconfigs = {name: self.write_kubeconfig(name, {"token": token}) for name, token in tokens.items()}
        files = {"client-certificate": str(self.home / "admin.crt"), "client-key": str(self.home / "admin.key")}
        self.admin_kubeconfig = self.write_kubeconfig("admin", files)

    def write_kubeconfig(self, name, user):
        authority = base64.b64encode((self.home / "ca.crt").read_bytes()).decode()
        path = self.home / f"{name}.kubeconfig"
        path.touch(0o600)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "suite",
            "clusters": [{"name": "suite", "cluster": {"server": self.server, "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "suite", "context": {"cluster": "suite", "user": name}}],
        }))
        return path

    def client(self):
        return Client(self.port, self.home / "ca.crt", self.home / "admin.crt", self.home / "admin.key")

    def start_store(self):
        """Objects and rights, and nobody who acts on them."""
        self.start_etcd()
        self.start_apiserver()
        self.give_rights()

    def start(self):
        self.start_store()
        common = ["--kubeconfig", self.admin_kubeconfig, "--leader-elect=false", "--secure-port", "0"]
        self.begin("kube-controller-manager", *common, "--service-account-private-key-file", "accounts.key",
                   "--root-ca-file", "ca.crt", "--node-monitor-grace-period", NODE_GRACE, "--node-startup-grace-period",
                   NODE_GRACE, "--node-monitor-period", "1s", "--flex-volume-plugin-dir", self.home / "flex",
                   "--kube-api-qps", "200", "--kube-api-burst", "400")
        self.begin("kube-scheduler", *common, "--kube-api-qps", "200", "--kube-api-burst", "400")

    def begin(self, name, *flags):
        command = [self.bin / name, *map(str, flags)]
        # A folder of its own, and the logs of all its lives in one file.
        self.running[name] = Process(command, self.home / f"{name}.log", self.home / f"{name}.log", cwd=self.home)

    def start_etcd(self):
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        # What a test holds need not outlive the machine.
        self.begin("etcd", "--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "warn",
                   "--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers,
                   "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}")

        def answers():
            self.running["etcd"].must_run()
            try:
                return urllib.request.urlopen(f"{clients}/health", timeout=5).status == 200
            except (urllib.error.URLError, OSError):
                return False

        wait("etcd answers", answers, 60)

    def start_apiserver(self):
        # No endpoints: they may not be loopback addresses. No admission of service accounts: pods need none here.
        self.begin("kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}", "--bind-address", "127.0.0.1",
                   "--advertise-address", "127.0.0.1", "--secure-port", self.port, "--endpoint-reconciler-type", "none",
                   "--tls-cert-file", "apiserver.crt", "--tls-private-key-file", "apiserver.key",
                   "--client-ca-file", "ca.crt", "--token-auth-file", "tokens.csv",
                   "--service-account-key-file", "accounts.key", "--service-account-signing-key-file", "accounts.key",
                   "--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range",
                   "10.96.0.0/16", "--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount",
                   "--audit-policy-file", "audit.json", "--audit-log-path", self.audit_log)
        client = self.client()

        def answers():
            self.running["kube-apiserver"].must_run()
            try:
                return client.request("GET", "/readyz", raw=True) == "ok"
            except (OSError, Refused):
                return False

        wait("the apiserver answers", answers, 120)

    def kill_apiserver(self):
        self.running["kube-apiserver"].kill()

    def give_rights(self):
        client = self.client()
        group = {"apiGroup": "rbac.authorization.k8s.io"}
        client.create("clusterroles", {"metadata": {"name": "poolkeeper"}, "rules": RULES})
        client.create("clusterrolebindings", {
            "metadata": {"name": "poolkeeper"}, "roleRef": {**group, "kind": "ClusterRole", "name": "poolkeeper"},
            "subjects": [{**group, "kind": "Group", "name": GROUP}],
        })

    def let_delete_pods(self, namespace):
        """In this namespace alone, so doctor misses the right."""
        client, group = self.client(), "rbac.authorization.k8s.io"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
        client.create("roles", {"metadata": {"name": "poolkeeper"}, "rules": rules}, namespace)
        client.create("rolebindings", {
            "metadata": {"name": "poolkeeper"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "poolkeeper"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": GROUP}],
        }, namespace)

    def kubectl(self, *words, seconds=600):
        command = [self.bin / "kubectl", "--kubeconfig", self.admin_kubeconfig, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed(f"kubectl {' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout

    def end(self):
        """The apiserver's own end takes seconds, and nothing of it is kept."""
        for process in reversed(self.running.values()):
            process.kill()
