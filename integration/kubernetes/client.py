"""The apiserver over HTTPS, as the admin. A connection for each thread that asks."""

import http.client
import json
import ssl
import threading
import time
import urllib.parse

# What the suite speaks of, and where it is.
GROUPS = {
    "/api/v1": ("namespaces", "nodes", "pods", "events", "persistentvolumes", "persistentvolumeclaims"),
    "/apis/apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/rbac.authorization.k8s.io/v1": ("clusterroles", "clusterrolebindings", "roles", "rolebindings"),
}
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
# A watch ends by itself after so many seconds, and a read of it that is silent for longer is given up.
WATCH, SILENT = 240, 300


class Refused(Exception):
    def __init__(self, code, said):
        super().__init__(f"{code}: {said[:500]}")
        self.code = code


def path(kind, namespace=None, name=None, sub=None):
    group = next(group for group, kinds in GROUPS.items() if kind in kinds)
    parts = [group] + (["namespaces", namespace] if namespace else []) + [kind]
    return "/".join(parts + [part for part in (name, sub) if part])


class Client:
    def __init__(self, port, authority, certificate, key):
        self.port, self.own = port, threading.local()
        self.tls = ssl.create_default_context(cafile=authority)
        self.tls.load_cert_chain(certificate, key)

    def connect(self, seconds):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=seconds)

    def request(self, method, where, body=None, kind="application/json", raw=False):
        """Once, but on a connection that the apiserver had closed a second time: then it did not read the first."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind} if data else {}
        kept = getattr(self.own, "connection", None)
        for connection in [kept, None] if kept else [None]:
            connection = connection or self.connect(30)
            self.own.connection = None
            try:
                connection.request(method, where, data, headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLError) as error:
                connection.close()
                if connection is not kept:
                    raise OSError(repr(error)) from error
            except http.client.HTTPException as error:
                raise OSError(repr(error)) from error
        self.own.connection = connection
        if answer.status >= 300:
            raise Refused(answer.status, text)
        return text if raw else json.loads(text)

    def get(self, kind, name, namespace=None):
        return self.request("GET", path(kind, namespace, name))

    def list(self, kind, namespace=None, **query):
        return self.request("GET", f"{path(kind, namespace)}?{urllib.parse.urlencode(query)}")

    def create(self, kind, what, namespace=None):
        return self.request("POST", path(kind, namespace), what)

    def patch(self, kind, name, change, namespace=None, sub=None, how=STRATEGIC):
        return self.request("PATCH", path(kind, namespace, name, sub), change, how)

    def delete(self, kind, name, namespace=None, **options):
        return self.request("DELETE", path(kind, namespace, name), options or None)

    def watch(self, kind, version):
        """Events from there on, until the apiserver ends it."""
        query = {"watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH}
        connection = self.connect(SILENT)
        try:
            connection.request("GET", f"{path(kind)}?{urllib.parse.urlencode(query)}")
            answer = connection.getresponse()
            if answer.status >= 300:
                raise Refused(answer.status, answer.read().decode())
            for line in answer:
                yield json.loads(line)
        except (http.client.HTTPException, json.JSONDecodeError) as error:
            raise OSError(repr(error)) from error
        finally:
            connection.close()


class Follower(threading.Thread):
    """All objects of a kind in the whole cluster, as a watch shows them. `heard` is told of each change, in order:
    with None in place of the object that is gone."""

    def __init__(self, client, kind, *heard):
        super().__init__(daemon=True, name=f"follows {kind}")
        self.client, self.kind, self.heard = client, kind, heard
        self.objects, self.version, self.complete = {}, None, threading.Event()

    def run(self):
        while True:
            try:
                if self.version is None:
                    self.read_all()
                for event in self.client.watch(self.kind, self.version):
                    self.take(event["type"], event["object"])
            except Refused:
                # What it knew is too old, or the apiserver is starting.
                self.version = None
                time.sleep(0.2)
            except OSError:
                time.sleep(0.2)

    def read_all(self):
        read = self.client.list(self.kind)
        there = {one["metadata"]["uid"]: one for one in read["items"]}
        for uid in [uid for uid in self.objects if uid not in there]:
            self.tell(uid, None)
        for uid, one in there.items():
            self.tell(uid, one)
        self.version = read["metadata"]["resourceVersion"]
        self.complete.set()

    def take(self, what, one):
        if what == "ERROR":
            raise Refused(one.get("code", 500), one.get("message", ""))
        self.version = one["metadata"]["resourceVersion"]
        if what != "BOOKMARK":
            self.tell(one["metadata"]["uid"], None if what == "DELETED" else one)

    def tell(self, uid, now):
        before = self.objects.get(uid)
        if now is None:
            self.objects.pop(uid, None)
        else:
            self.objects[uid] = now
        for heard in self.heard:
            heard(uid, before, now)

    def all(self):
        return list(self.objects.values())
