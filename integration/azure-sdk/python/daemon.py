"""The daemon against the emulator, while official clients look on."""

import json
import os
import socket
import subprocess
import time

TOLD = json.loads(os.environ["EMULATOR"])


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def serve(program, home, pool, port):
    """One pool, of the scale set `web`."""
    pools = home / "pools"
    pools.mkdir()
    scale_set = f"/subscriptions/{TOLD['subscription']}/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web"
    head = {"apiVersion": "poolkeeper/v1", "kind": "Pool", "name": "web", "scaleSet": scale_set}
    (pools / "web.yaml").write_text(json.dumps({**head, **pool}))
    url = TOLD["url"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AZURE_CLIENT_SECRET": "any",
                   "SSL_CERT_FILE": TOLD["caFile"]}
    command = [program, "serve", "--store", "memory", "--pools", pools, "--listen", f"127.0.0.1:{port}",
               "--arm", url, "--authority", url, "--auth", "client-secret", "--tenant", TOLD["tenant"],
               "--client-id", "poolkeeper", "--set", "log.level=debug"]
    with open(home / "daemon.log", "wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def wait(home, what, until, seconds, watch=lambda: None):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        watch()
        found = until()
        if found:
            return found
        time.sleep(1)
    raise AssertionError(f"waited {seconds} s in vain: {what}\n{(home / 'daemon.log').read_text()[-3000:]}")
