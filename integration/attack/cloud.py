"""The cloud that is asked: it hangs, refuses for a day, goes away, and names addresses of others."""

import http.server
import threading
import time

from target import RELOAD, SUBSCRIPTION, Case, must, wait

DAY = 86_400


class Ruled(Case):
    """A case that orders trouble for its own scale sets."""

    def order(self, pool, **rule):
        """Rules are added to those of others, and run out by themselves."""
        rule = {"path": f"/virtualMachineScaleSets/{pool.name}", "times": 3, **rule}
        self.house.control("faults", {"rules": [rule]})


class Stranger:
    """A server of strangers, which keeps what it is sent."""

    def __init__(self):
        heard = self.heard = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                heard.append((self.path, self.headers.get("authorization")))
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(b'{"value": [], "status": "Succeeded"}')

            do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Elsewhere(Ruled):
    """Pages, redirects and operations at another address: no call goes there, and no token leaves."""

    name, finds = "elsewhere", ("held",)

    def run(self):
        stranger = Stranger()
        one = self.target()
        pool = self.pools[0]
        away = f"{stranger.url}{SUBSCRIPTION}/virtualMachineScaleSets/{pool.name}"
        page = {"value": [], "nextLink": f"{away}/virtualMachines?page=2"}
        self.order(pool, method="GET", path=f"/{pool.name}/virtualMachines", status=200, body=page)
        one.start()
        for status in (301, 302, 307, 308):
            self.order(pool, method="GET", status=status, headers={"location": away}, times=2)
            time.sleep(RELOAD)
        heads = {"azure-asyncoperation": f"{away}/operation", "location": f"{away}/operation", "retry-after": "1"}
        self.order(pool, method="PATCH", status=202, headers=heads, body="", times=1)
        wait("elsewhere: it is ready", one.is_ready, 30)
        one.write(pool, pool.count + 1)
        # What was answered elsewhere has to be found out by reads, which takes two minutes of doubt: it is not waited for.
        time.sleep(8)
        must(not stranger.heard, f"elsewhere: a stranger was asked: {stranger.heard[:2]}")
        one.must_run()
        one.must_stop()
        stranger.end()
        self.left_alone()


class Day(Ruled):
    """One 429 with a Retry-After of a day blinds no pool: it is tried within minutes, and at once where a person asks."""

    name, finds = "day", ("S11", "S12")

    def run(self):
        one = self.target().begin()
        pool = self.pools[0]
        self.rests(one)
        path = f"/virtualMachineScaleSets/{pool.name}?"
        self.order(pool, method="GET", path=path, status=429, code="TooManyRequests", retryAfter=DAY, times=1)
        path = f"/api/v1/pools/{pool.name}"
        one.ask(f"{path}/retry", "POST", {"why": "a look"})
        trouble = wait("day: the refusal is seen", lambda: one.pool(pool).json()["trouble"], 20)
        status = one.pool(pool).json()
        must(status["nextCheckAt"] == status["trouble"]["retry"], f"day: {status['nextCheckAt']} or {trouble['retry']}?")
        at = time.strptime(trouble["retry"][:19], "%Y-%m-%dT%H:%M:%S")
        ahead = time.mktime(at) - time.mktime(time.gmtime())
        must(ahead < 17 * 60, f"day: it looks again in {ahead:.0f} s")
        mark = self.house.mark()
        one.ask(f"{path}/retry", "POST", {"why": "it is over"})

        def asked():
            return [r for r in self.house.requests(mark) if r["client"] == one.client and r["method"] == "GET"]

        wait("day: a person's ask leads to a call", asked, 15)
        wait("day: the pool is seen again", lambda: not one.pool(pool).json()["trouble"], 15)
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()

    def rests(self, one):
        """What it does first is done: the next call is that of a look."""

        def is_quiet():
            mark = self.house.mark()
            time.sleep(2)
            return not [request for request in self.house.requests(mark) if request["client"] == one.client]

        wait("day: it rests", is_quiet, 60)


class Hangs(Ruled):
    """The cloud answers nothing of one pool: the API and the other pool do not wait for it."""

    name, finds, sizes = "hangs", ("held",), (2, 1)

    def run(self):
        one = self.target().begin()
        stuck, other = self.pools
        self.order(stuck, method="GET", delayMs=22_000, times=4)
        one.ask(f"/api/v1/pools/{stuck.name}/retry", "POST", {"why": "a look"})
        time.sleep(1)
        for path in ("/ready", "/api/v1/pools", f"/api/v1/pools/{stuck.name}/status"):
            began = time.monotonic()
            one.ask(path)
            must(time.monotonic() - began < 2, f"hangs: {path} took {time.monotonic() - began:.1f} s")
        one.must_act(self.name, other)
        one.must_stop()
        self.left_alone()


class Away(Ruled):
    """The cloud refuses, breaks off and talks nonsense: the pool goes on afterwards, and no machine is touched."""

    name, finds = "away", ("held",)

    def run(self):
        one = self.target().begin()
        pool = self.pools[0]
        for trouble in (
            {"status": 503, "retryAfter": 1},
            {"cut": "before"},
            {"cut": "body"},
            {"status": 200, "body": "<html>", "contentType": "text/html"},
            {"status": 200, "body": {"value": []}},
            {"status": 401, "code": "ExpiredAuthenticationToken"},
        ):
            self.order(pool, method="GET", times=2, **trouble)
            one.ask(f"/api/v1/pools/{pool.name}/retry", "POST", {"why": "a look"})
            time.sleep(self.dice.uniform(0.5, 1.5))
            must(one.is_ready(), f"away: after {trouble} it is not ready")

        def sound():
            one.ask(f"/api/v1/pools/{pool.name}/retry", "POST", {"why": "it is over"})
            return not one.pool(pool).json()["trouble"]

        wait("away: the pool is seen again", sound, 60, 2)
        one.must_act(self.name)
        one.must_stop()
        self.left_alone()


CASES = [Elsewhere, Day, Hangs, Away]
