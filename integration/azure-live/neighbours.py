"""What a real run needs beside scale sets and the emulator does not serve: virtual networks, versions of a marketplace
image, the resources of a group. The rest goes on to the emulator and back."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

# Made by hand in the same group.
OTHER = {"id": "/other/web-nic", "name": "web-nic", "type": "Microsoft.Network/networkInterfaces"}
# As the marketplace lists them, the newest first where that is asked for.
VERSIONS = ({"name": "24.04.202408010"}, {"name": "24.04.202407160"})
NOT_PASSED_ON = ("transfer-encoding", "connection", "content-length", "date", "server")


class Neighbours:
    """A server in front of an emulator, for as long as the `with` lasts."""

    def __init__(self, emulator: str) -> None:
        self.emulator = urllib.parse.urlsplit(emulator).netloc
        self.resources: dict[str, Json] = {}
        self.made = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                outer.answer(self, self.rfile.read(size))

            do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Neighbours:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, call: BaseHTTPRequestHandler, data: bytes) -> None:
        path = urllib.parse.urlsplit(call.path).path
        if "/Microsoft.Network/virtualNetworks" in path:
            write(call, *self.network(call.command, path, data))
        elif path.endswith("/resources"):
            write(call, 200, {"value": [*self.resources.values(), OTHER]})
        elif path.endswith("/versions") and "/publishers/" in path:
            write(call, 200, list(VERSIONS))
        else:
            self.pass_on(call, data)

    def network(self, method: str, path: str, data: bytes) -> tuple[int, object]:
        if method == "PUT":
            self.made += 1
            self.resources[path] = {**json.loads(data), "id": path, "name": path.rsplit("/", 1)[1]}
            return 201, self.resources[path]
        if method == "DELETE":
            return (200 if self.resources.pop(path, None) else 204), None
        return 200, {"value": list(self.resources.values())}

    def pass_on(self, call: BaseHTTPRequestHandler, data: bytes) -> None:
        line = http.client.HTTPConnection(self.emulator, timeout=60)
        try:
            line.request(call.command, call.path, data, dict(call.headers.items()))
            answer = line.getresponse()
            body = answer.read()
        finally:
            line.close()
        call.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in NOT_PASSED_ON:
                call.send_header(name, value)
        finish(call, body)


def write(call: BaseHTTPRequestHandler, status: int, body: object) -> None:
    call.send_response(status)
    finish(call, b"" if body is None else json.dumps(body).encode())


def finish(call: BaseHTTPRequestHandler, body: bytes) -> None:
    call.send_header("Content-Length", str(len(body)))
    call.end_headers()
    call.wfile.write(body)
