"""Azure Resource Manager over plain HTTP: tokens, requests with their retries, pages, and operations until they end."""

from __future__ import annotations

import http.client
import json
import math
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Query = Mapping[str, str]

COMPUTE = "2024-07-01"
NETWORK = "2023-09-01"
LOCKS = "2020-05-01"
RESOURCES = "2021-04-01"

PUBLIC_ARM = "https://management.azure.com"
PUBLIC_LOGIN = "https://login.microsoftonline.com"

# Tokens live for about an hour.
TOKEN_SECONDS = 1_800
REQUEST_SECONDS = 120
TRIES = 8
# Where an answer gives no time of its own.
PAUSE = 10


class Failed(Exception):
    """What ends the run, or one experiment of it; the text is for people."""


class OutOfTime(Failed):
    pass


@dataclass(frozen=True)
class Answer:
    """What ARM answered, good or bad."""

    status: int
    headers: Mapping[str, str]
    body: Json

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        return self.body.get("error", {}).get("code", f"HTTP{self.status}")

    @property
    def message(self) -> str:
        return self.body.get("error", {}).get("message", "")

    def must(self) -> Answer:
        if not self.ok:
            raise Refused(self)
        return self


class Refused(Failed):
    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.code}: {answer.message[:300]}")
        self.code = answer.code


class Clock:
    """Real time, and how much of it is left."""

    def __init__(self) -> None:
        self.end = math.inf

    def now(self) -> float:
        return time.monotonic()

    def limit(self, seconds: float) -> None:
        self.end = self.now() + seconds

    def wait(self, seconds: float) -> None:
        if self.now() + seconds > self.end:
            raise OutOfTime("the time that this run may take is over")
        self.pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        time.sleep(seconds)


class EmulatedClock(Clock):
    """The time of an emulator that stands still (`--speed 0`): each wait sends it ahead."""

    def __init__(self, emulator: str) -> None:
        super().__init__()
        self.url = f"{emulator}/_control/clock"
        self.passed = 0.0

    def now(self) -> float:
        return self.passed

    def pass_by(self, seconds: float) -> None:
        whole = math.ceil(seconds)
        self.passed += whole
        body = json.dumps({"advance": whole}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, data=body), timeout=REQUEST_SECONDS):
            pass


def client_secret(login: str, audience: str) -> Callable[[], str]:
    """Tokens for the application that AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET name."""
    tenant, client, secret = (os.environ[f"AZURE_{name}"] for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET"))
    form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}

    def token() -> str:
        data = urllib.parse.urlencode({**form, "scope": f"{audience}/.default"}).encode()
        request = urllib.request.Request(f"{login}/{tenant}/oauth2/v2.0/token", data=data)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return json.load(answer)["access_token"]
        except urllib.error.HTTPError as error:
            raise Failed(f"the login refuses AZURE_CLIENT_ID: {error.code} {error.read().decode()[:300]}") from None
        except OSError as error:
            raise Failed(f"{login} cannot be reached: {error}") from None

    return token


def az_login(subscription: str) -> Callable[[], str]:
    """Tokens of the person who is logged in with `az`."""
    command = ["az", "account", "get-access-token", "--resource", PUBLIC_ARM, "--subscription", subscription]

    def token() -> str:
        done = subprocess.run([*command, "--output", "json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"az gives no token: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)["accessToken"]

    return token


class Arm:
    """One ARM endpoint and one identity."""

    def __init__(self, base: str, fresh_token: Callable[[], str], clock: Clock) -> None:
        self.base, self.clock, self.fresh_token = base, clock, fresh_token
        self.token, self.token_ends = "", 0.0

    def call(
        self, method: str, path: str, body: Json | None = None, version: str = COMPUTE, query: Query | None = None
    ) -> Answer:
        words = urllib.parse.urlencode({**(query or {}), "api-version": version}, quote_via=urllib.parse.quote)
        return self.send(method, f"{self.base}{path}?{words}", body)

    def send(self, method: str, url: str, body: Json | None = None) -> Answer:
        """Asks again after a 429, and where asking twice does no harm after a failure of the server or of the line."""
        if not url.startswith(f"{self.base}/"):
            raise Failed(f"an answer of ARM names another host, and a token goes to {self.base} alone")
        repeats = method in ("GET", "DELETE")
        for left in reversed(range(TRIES)):
            try:
                answer = self.once(method, url, body)
            except (OSError, http.client.HTTPException) as error:
                if not left or not repeats:
                    raise Failed(f"{method} {url.partition('?')[0]}: {error}") from None
                self.clock.wait(PAUSE)
                continue
            again = answer.status in (401, 429) or (repeats and answer.status >= 500)
            if not again or not left:
                return answer
            if answer.status == 401:
                self.token_ends = 0.0
            self.clock.wait(retry_after(answer))
        raise AssertionError("the last try returns")

    def once(self, method: str, url: str, body: Json | None) -> Answer:
        if time.monotonic() >= self.token_ends:
            self.token, self.token_ends = self.fresh_token(), time.monotonic() + TOKEN_SECONDS
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return read(answer.status, answer.headers.items(), answer.read())
        except urllib.error.HTTPError as error:
            return read(error.code, error.headers.items(), error.read())

    def get(self, path: str, version: str = COMPUTE, query: Query | None = None) -> Json:
        return self.call("GET", path, version=version, query=query).must().body

    def list(self, path: str, version: str = COMPUTE, query: Query | None = None) -> list[Json]:
        page = self.get(path, version, query)
        found = list(page["value"])
        while page.get("nextLink"):
            page = self.send("GET", page["nextLink"]).must().body
            found += page["value"]
        return found

    def ended(self, begun: Answer) -> str | None:
        """How the operation that an answer began ended: `Succeeded` or a code; None while it goes on."""
        address = begun.headers.get("azure-asyncoperation") or begun.headers.get("location")
        if not address:
            return "Succeeded"
        poll = self.send("GET", address)
        status = poll.body.get("status")
        if not poll.ok:
            return poll.code
        if status in ("Failed", "Canceled"):
            return poll.body.get("error", {}).get("code", status)
        if status == "Succeeded" or (status is None and poll.status != 202):
            return "Succeeded"
        return None

    def finish(self, begun: Answer) -> str:
        """Waits for the end of the operation that an answer began."""
        begun.must()
        while (end := self.ended(begun)) is None:
            self.clock.wait(PAUSE)
        return end


def retry_after(answer: Answer) -> int:
    seconds = answer.headers.get("retry-after", "")
    return int(seconds) if seconds.isdecimal() else PAUSE


def read(status: int, headers: Iterable[tuple[str, str]], data: bytes) -> Answer:
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        body = {}
    small = {name.lower(): value for name, value in headers}
    return Answer(status, small, body if isinstance(body, dict) else {"value": body})
