"""Every operation of the description with no token, a wrong one, and that of each role, held to what `x-role` says."""

import json

from house import Failed, ask

ROLES = ["viewer", "operator", "admin"]
WRONG = "pk_" + "0" * 40
WHY = json.dumps({"why": "to see who may"}).encode()


def operations(description):
    for path, methods in description["paths"].items():
        for method, told in methods.items():
            yield method.upper(), path, told


def try_doors(daemon, tokens, pool, made):
    """How much was tried, in words."""
    token = tokens["viewer"]
    description = ask(f"{daemon.url}/api/v1/openapi.json", token=token).json()
    machine = ask(f"{daemon.url}/api/v1/pools/{pool}/machines", token=token).json()["items"][0]["id"]
    tried, refused = 0, 0
    for place, (method, path, told) in enumerate(operations(description)):
        # A source for each operation: guessing tokens is expensive, and by that much only the guesser pays.
        source = f"127.1.{place // 200}.{place % 200 + 1}"
        for who, known, wanted in expectations(told, tokens):
            answer = request(daemon, method, path, known, source, pool, machine, made)
            tried += 1
            refused += wanted in (401, 403)
            held_to(answer, wanted, f"{method} {path} with {who}")
    asks_nothing = [path for _, path, told in operations(description) if told["security"] == []]
    if sorted(asks_nothing) != ["/api/v1/health", "/api/v1/ready", "/health", "/ready"]:
        raise Failed(f"these ask for no token: {asks_nothing}")
    return f"{tried} requests at the doors of {place + 1} operations, {refused} of them refused as described"


def expectations(told, tokens):
    """Who asks, with which token, and the status that must come; `None`: it is let in."""
    role = told.get("x-role")
    if (role is None) != (told["security"] == []):
        raise Failed(f"{told['operationId']} says {role} and {told['security']}")
    refusals = {status for status in ("401", "403") if status in told["responses"]}
    if refusals != ({"401", "403"} if role in ROLES[1:] else {"401"} if role else set()):
        raise Failed(f"{told['operationId']} says {role}, and may be refused with {sorted(refusals)}")
    yield "no token", None, 401 if role else None
    yield "a wrong token", WRONG, 401 if role else None
    for known in ROLES:
        lower = role is not None and ROLES.index(known) < ROLES.index(role)
        yield f"the token of {known}", tokens[known], 403 if lower else None


def request(daemon, method, path, token, source, pool, machine, made):
    of_made = method in ("PUT", "DELETE")
    filled = path.replace("{pool}", "made" if of_made else pool).replace("{machine}", machine).replace("{ask}", "none")
    body, headers = None, {}
    if method == "POST":
        body, headers = WHY, {"content-type": "application/json"}
    if of_made:
        filled += "?why=to+see+who+may"
    if method == "PUT":
        body, headers = made.encode(), {"content-type": "application/yaml"}
    return ask(f"{daemon.url}{filled}", method, body, token, headers, source=source)


CODES = {401: "unauthenticated", 403: "forbidden"}


def held_to(answer, wanted, what):
    if wanted is None:
        # What there is not, or is not at this moment, is told to those who may know it.
        if answer.status in (401, 403, 429) or answer.status >= 500:
            raise Failed(f"{what} should be let in, and was answered {answer.status}: {answer.body!r}")
        return
    if answer.status != wanted or answer.kind != "application/problem+json":
        raise Failed(f"{what} should be answered {wanted}, and was answered {answer.status}: {answer.body!r}")
    told = answer.json()
    if (told["status"], told["code"]) != (wanted, CODES[wanted]):
        raise Failed(f"{what} was refused with {told}")
    if wanted == 401 and not (answer.headers.get("www-authenticate") or "").startswith("Bearer"):
        raise Failed(f"{what} does not say how to show a token: {dict(answer.headers)}")
