"""The pod of a release, played: its container's process in a root of its own, with the mounts, the environment, the user
and the service account's token that a kubelet would give it."""

import base64
import os
import pathlib
import re
import shlex
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from chart import REPOSITORY
from control import Failed, wait

USER = 10001
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PROGRAM = "/usr/local/bin/poolkeeper"
# What the image has beside the program.
SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/etc/ssl", "/dev", "/proc")
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}
IS_ROOT = os.geteuid() == 0


class Pod:
    def __init__(self, stage, namespace, deployment, home, node):
        self.client, self.control, self.namespace, self.home = stage.client, stage.control, namespace, home
        self.node = node
        self.program, self.spec = stage.program, deployment["spec"]["template"]["spec"]
        self.container = self.spec["containers"][0]
        self.root, self.log, self.process = home / "root", home / "daemon.log", None
        self.root.mkdir(parents=True)
        for name, to in LINKS.items():
            (self.root / name).symlink_to(to)
        self.mounts = [(path, path, "ro") for path in SYSTEM if os.path.isdir(path)]
        self.volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            folder = home / "volumes" / mount["name"]
            folder.mkdir(parents=True, exist_ok=True)
            if "persistentVolumeClaim" in self.volumes[mount["name"]]:
                self.own(folder, 0o2770)
            self.mounts.append((folder, mount["mountPath"], "ro" if mount.get("readOnly") else "rw"))
        (home / "hosts").write_text("127.0.0.1 localhost\n")
        self.mounts.append((home / "hosts", "/etc/hosts", "ro"))
        if self.spec["automountServiceAccountToken"]:
            self.mounts.append((home / "account", ACCOUNT, "ro"))
            write(home / "account", self.account(), 0o644)
        self.sync()

    def own(self, path, mode):
        if IS_ROOT:
            os.chown(path, 0, USER)
        path.chmod(mode)

    def account(self):
        where = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.spec['serviceAccountName']}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.client.request("POST", where, asked)["status"]["token"]
        return {"token": token, "ca.crt": (self.control.home / "ca.crt").read_text(), "namespace": self.namespace}

    def sync(self):
        """What the kubelet does every minute: the files of each volume become those of its object."""
        for name, volume in self.volumes.items():
            folder = self.home / "volumes" / name
            if "configMap" in volume:
                write(folder, self.read("configmaps", volume["configMap"]["name"]).get("data") or {}, 0o644)
            elif "secret" in volume:
                data = self.read("secrets", volume["secret"]["secretName"])["data"]
                files = {key: base64.b64decode(value).decode() for key, value in data.items()}
                write(folder, files, volume["secret"]["defaultMode"], self.own)

    def read(self, kind, name):
        return self.client.request("GET", f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")

    def environment(self):
        file = (REPOSITORY / "config/container/Containerfile").read_text().replace("\\\n", " ")
        image = re.search(r"^ENV (.*)$", file, re.MULTILINE)[1].split()
        env = {"PATH": "/usr/local/bin:/usr/bin", "HOME": "/", "HOSTNAME": "pod"}
        env |= dict(one.split("=", 1) for one in image)
        env |= {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.control.port)}
        for source in self.container.get("envFrom", []):
            data = self.read("secrets", source["secretRef"]["name"])["data"]
            env |= {key: base64.b64decode(value).decode() for key, value in data.items()}
        fields = {"spec.nodeName": self.node}
        for one in self.container.get("env", []):
            env[one["name"]] = one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
        return env

    def script(self):
        root, lines = shlex.quote(str(self.root)), ["set -e"]
        lines.append(f"mount --bind {root} {root}")
        for source, target, mode in [*self.mounts, (self.program, PROGRAM, "ro")]:
            source, target = pathlib.Path(source), self.root / target.lstrip("/")
            (target if source.is_dir() else target.parent).mkdir(parents=True, exist_ok=True)
            if not source.is_dir():
                target.touch()
            how, quoted = "--rbind" if str(source) in SYSTEM else "--bind", shlex.quote(str(target))
            lines.append(f"mount {how} {shlex.quote(str(source))} {quoted}")
            if mode == "ro" and str(source) not in ("/dev", "/proc"):
                lines.append(f"mount -o remount,bind,ro {quoted}")
        if self.container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append(f"mount -o remount,bind,ro {root}")
        of_pod = self.spec["securityContext"]
        user = f"--userspec={of_pod['runAsUser']}:{of_pod['runAsGroup']} --groups={of_pod['fsGroup']}" if IS_ROOT else ""
        env = [f"{key}={value}" for key, value in self.environment().items()]
        command = ["/usr/bin/setpriv", "--no-new-privs", "/usr/bin/env", "-i", "-C", "/var/lib/poolkeeper", *env, PROGRAM,
                   *self.container["args"]]
        lines.append(f"exec chroot {user} {root} {shlex.join(command)}")
        return "\n".join(lines)

    def start(self):
        space = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-root-user", "--mount"]
        command = [*space, "bash", "-c", self.script()]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def must_run(self):
        if self.process.poll() is not None:
            raise Failed(f"the daemon ended by itself with {self.process.returncode}: {self.log.read_text()[-2000:]}")

    def execute(self, *command, seconds=60):
        """As `kubectl exec` does. The code, and what it prints."""
        self.must_run()
        who = ["--setuid", str(USER), "--setgid", str(USER)] if IS_ROOT else ["--user", "--preserve-credentials"]
        env = [f"{key}={value}" for key, value in self.environment().items()]
        inside = ["nsenter", "--target", str(self.process.pid), "--mount", "--root", *who, "env", "-i", *env, *command]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def probe(self, name, port=None):
        """Whether it passes, and what is said."""
        self.must_run()
        probe = self.container[f"{name}Probe"]
        if "exec" in probe:
            code, said = self.execute(*probe["exec"]["command"])
            return code == 0, said
        # A kubelet takes any certificate.
        get, trusting = probe["httpGet"], ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        url = f"{get['scheme'].lower()}://127.0.0.1:{port}{get['path']}"
        try:
            with urllib.request.urlopen(url, timeout=10, context=trusting) as answer:
                return answer.status == 200, answer.read().decode()
        except urllib.error.HTTPError as error:
            return False, error.read().decode()
        except OSError as error:
            return False, repr(error)

    def wait_probe(self, name, seconds, port=None):
        said = ""

        def passes():
            nonlocal said
            passed, said = self.probe(name, port)
            return passed

        try:
            wait(f"the {name} probe passes", passes, seconds)
        except Failed as failed:
            raise Failed(f"{failed}; it says: {said}; the log: {self.log.read_text()[-2000:]}") from None

    def stop(self):
        """The seconds that it takes."""
        self.must_run()
        began = time.monotonic()
        self.process.terminate()
        try:
            code = self.process.wait(self.spec["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            raise Failed("the daemon outlives the time that its pod has to end") from None
        if code:
            raise Failed(f"the daemon ended with {code}: {self.log.read_text()[-2000:]}")
        return time.monotonic() - began

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def write(folder, files, mode, own=None):
    """As a kubelet does: a folder for each version, and a link that moves from one to the next."""
    folder.mkdir(parents=True, exist_ok=True)
    version = f"..{time.monotonic_ns()}"
    (folder / version).mkdir()
    for name, text in files.items():
        path = folder / version / name
        path.write_text(text)
        path.chmod(mode)
        if own:
            own(path, mode)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..new").symlink_to(version)
    (folder / "..new").rename(folder / "..data")
    for link in folder.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink()
