"""What stands around Prometheus: a program with metrics that it scrapes, and a proxy in front of it with moods."""

import base64
import http.server
import json
import socket
import threading
import time
import urllib.error
import urllib.request

TOKEN = "token-that-no-log-may-have"
USER, PASSWORD = "kim", "password-that-no-log-may-have"
# The audience of tokens for Azure Monitor workspaces.
WORKSPACES = "https://prometheus.monitor.azure.com"
HANGS = 20


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    """Serves in a thread until the test ends."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", headers=()):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Exporter(Server):
    """A gauge `load` that the test sets, and metrics that are no single number."""

    def __init__(self):
        self.load = 0
        outer = self

        class Handler(Quiet):
            def do_GET(self):
                text = f'load {outer.load}\nnot_a_number NaN\ntwo{{of="a"}} 1\ntwo{{of="b"}} 2\n'
                self.answer(200, text.encode(), "text/plain; version=0.0.4")

        super().__init__(Handler)


class Proxy(Server):
    """In front of Prometheus; the first part of the path is its mood."""

    def __init__(self, prometheus):
        self.elsewhere = 0
        outer = self
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        demanded = {"bearer": f"Bearer {TOKEN}", "basic": basic}

        class Handler(Quiet):
            def do_GET(self):
                outer.elsewhere += 1
                self.answer(200, b"{}")

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                _, mood, path = self.path.split("/", 2)
                given = self.headers.get("Authorization", "")
                if mood == "elsewhere":
                    outer.elsewhere += 1
                if given != demanded.get(mood, "") if mood != "workspace" else audience(given) != WORKSPACES:
                    # It repeats what it was sent, as bad proxies do.
                    self.answer(401, f"<html>no: {given}</html>".encode(), "text/html")
                elif mood == "html":
                    self.answer(502, b"<html>502 Bad Gateway</html>", "text/html")
                elif mood == "moved":
                    self.answer(307, b"", headers=[("Location", f"http://127.0.0.1:{outer.port}/elsewhere/x")])
                else:
                    if mood == "slow":
                        time.sleep(HANGS)
                    status, answer = ask(f"http://127.0.0.1:{prometheus}/{path}", body)
                    if mood == "warned":
                        answer["warnings"] = ["store eu is away"]
                    try:
                        self.answer(status, json.dumps(answer).encode())
                    except OSError:
                        pass  # It was not waited for.

        super().__init__(Handler)


def audience(header):
    """Whom the token of this header is for."""
    try:
        claims = header.removeprefix("Bearer ").split(".")[1]
        return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["aud"]
    except (IndexError, ValueError, KeyError):
        return None


def ask(url, form):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=form), timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read()
        # While it starts, it answers plain text.
        return error.code, json.loads(text) if text.startswith(b"{") else {"text": text.decode()}
    except OSError as error:
        return 502, {"gone": str(error)}
