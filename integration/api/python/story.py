"""What a person does with the generated client, from the first list of pools to the end of a pool. Every value has the
type that the description gives it: each answer is told apart by `isinstance`, and nothing is cast."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import httpx
from poolkeeper_client.api.events import get_audit, get_history, stream_pool_events
from poolkeeper_client.api.machines import explain_machine, get_machine, list_machines
from poolkeeper_client.api.pools import apply_pool, explain_pool, get_pool, get_status, list_pools, unmanage_pool
from poolkeeper_client.api.rollout import get_command, get_plan, get_rollout, list_revisions, pause, resume
from poolkeeper_client.api.server import get_health, get_ready
from poolkeeper_client.client import AuthenticatedClient, Client
from poolkeeper_client.models import (
    ActionKind,
    AuditPage,
    CommandReceipt,
    CommandRemedy,
    CommandState,
    CommandStatus,
    Condition,
    Explanation,
    HealthState,
    HealthStatus,
    HistoryLine,
    HistoryPage,
    HoldReason,
    Lifecycle,
    MachineList,
    MachineStatus,
    Plan,
    Pool,
    PoolList,
    PoolReplicas,
    PoolReplicasOwner,
    PoolRollout,
    PoolStatus,
    PoolWindows,
    Problem,
    ProblemCode,
    ReadinessStatus,
    Reason,
    ReceiptState,
    RevisionList,
    RolloutStatus,
    SingleWindow,
    UnmanageReceipt,
)
from poolkeeper_client.types import UNSET, Unset

T = TypeVar("T")


class Failed(Exception):
    pass


def check(holds: bool, what: str) -> None:
    if not holds:
        raise Failed(what)


@dataclass
class Setting:
    url: str
    tokens: dict[str, str]
    pool: str
    scaleSet: str
    size: int


# Every answer, for the judge.
answers: list[dict[str, str | int]] = []


def record(response: httpx.Response) -> None:
    kind = response.headers.get("content-type", "")
    body = "" if kind.startswith("text/event-stream") else response.read().decode()
    request = response.request
    seen = {"method": request.method, "path": request.url.path, "status": response.status_code, "type": kind, "body": body}
    answers.append(seen)


HOOKS = {"event_hooks": {"response": [record]}}


def connect(url: str, token: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=url, token=token, httpx_args=HOOKS)


class Answer(Protocol):
    """Of any type: only `isinstance` says which it has."""

    @property
    def status_code(self) -> int: ...

    @property
    def parsed(self) -> object: ...


def granted(kind: type[T], response: Answer, status: int = 200) -> T:
    if response.status_code != status or not isinstance(response.parsed, kind):
        raise Failed(f"no {kind.__name__} came, but {response.status_code} {response.parsed}")
    return response.parsed


def refused(response: Answer, status: int, code: ProblemCode) -> Problem:
    problem = response.parsed
    if not isinstance(problem, Problem):
        raise Failed(f"{problem} should be refused as {code}")
    is_it = problem.code == code and problem.status == response.status_code == status
    check(is_it, f"{problem} should be refused as {code}")
    check(bool(problem.title and problem.detail and problem.type_), f"a problem without words: {problem}")
    check(problem.help_ is None or bool(problem.help_), f"an empty remedy: {problem}")
    return problem


def until(what: str, found: Callable[[], T | None]) -> T:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = found()
        if value is not None:
            return value
        time.sleep(0.1)
    raise Failed(f"waited a minute in vain: {what}")


def look_around(client: AuthenticatedClient, url: str, pool: str) -> None:
    with Client(base_url=url, httpx_args=HOOKS) as stranger:
        health = granted(HealthStatus, get_health.sync_detailed(client=stranger))
        ready = granted(ReadinessStatus, get_ready.sync_detailed(client=stranger))
    check(health.status == HealthState.OK and not health.troubles, f"the daemon is not well: {health}")
    check(ready.ready and ready.pools > 0, ready.message)

    names: list[str] = []
    after: str | Unset | None = UNSET
    while after is not None:
        page = granted(PoolList, list_pools.sync_detailed(client=client, limit=1, after=after))
        check(len(page.items) == 1 and not page.refused, "a page of one pool has one pool")
        names += [item.name for item in page.items]
        after = page.next_
    check(pool in names and len(names) >= 2, f"the pages have {names}")

    answer = get_pool.sync_detailed(pool, client=client)
    document = granted(Pool, answer)
    check(document.name == pool and document.replicas.owner == PoolReplicasOwner.POOL, "it is another pool")
    same = get_pool.sync_detailed(pool, client=client, if_none_match=answer.headers["etag"])
    check(same.status_code == 304, "the document is the same, and is sent again")


def look_closer(client: AuthenticatedClient, pool: str, size: int) -> None:
    def complete() -> PoolStatus | None:
        status = granted(PoolStatus, get_status.sync_detailed(pool, client=client))
        numbers = status.numbers
        is_complete = numbers is not None and numbers.available == size and numbers.outdated == 0
        return status if is_complete else None

    status = until(f"{pool} has its machines", complete)
    check(status.frozen is None and status.trouble is None, f"{pool} is in trouble")
    first = granted(MachineList, list_machines.sync_detailed(pool, client=client, limit=1))
    if first.next_ is None:
        raise Failed(f"{pool} has one machine")
    rest = granted(MachineList, list_machines.sync_detailed(pool, client=client, after=first.next_))
    machines = first.items + rest.items
    check(len(machines) == size and rest.next_ is None, f"{pool} has {len(machines)} machines")
    for listed in machines:
        machine = granted(MachineStatus, get_machine.sync_detailed(pool, listed.id, client=client))
        is_well = machine.condition == Condition.READY and machine.lifecycle == Lifecycle.INSERVICE
        check(machine.id == listed.id and is_well, f"machine {machine.id} is {machine.condition}")
        why = granted(Explanation, explain_machine.sync_detailed(pool, listed.id, client=client))
        check(why.machine is not None and why.machine.id == listed.id, f"machine {listed.id} is not explained")
    plan = granted(Plan, get_plan.sync_detailed(pool, client=client))
    check(plan.resolved.desired == size and len(plan.machines) == size, "it is another plan")
    check(all(action.do != ActionKind.DELETE for action in plan.actions), "the plan deletes a machine")
    rollout = granted(RolloutStatus, get_rollout.sync_detailed(pool, client=client))
    check(rollout.open_ is None and rollout.failed == 0, "a rollout is open")
    revisions = granted(RevisionList, list_revisions.sync_detailed(pool, client=client))
    check(any(one.in_model and one.machines == size for one in revisions.items), "no revision has the machines")
    explained = granted(Explanation, explain_pool.sync_detailed(pool, client=client))
    check(explained.pool == pool and explained.classes["current"] == size, explained.message)


def apply(client: AuthenticatedClient, body: Pool) -> None:
    why = "the shop opens"
    made = granted(Pool, apply_pool.sync_detailed(body.name, client=client, body=body, why=why), 201)
    if isinstance(made.rollout, Unset):
        raise Failed("the rollout was not kept")
    check(made.scale_set == body.scale_set and made.rollout.max_surge == 1, "another document was kept")
    second = apply_pool.sync_detailed(body.name, client=client, body=body, why=why, if_none_match="*")
    refused(second, 412, ProblemCode.PRECONDITIONFAILED)
    made.rollout.max_surge = "50%"
    kept = granted(Pool, apply_pool.sync_detailed(body.name, client=client, body=made, why=why))
    check(not isinstance(kept.rollout, Unset) and kept.rollout.max_surge == "50%", "the change was not kept")
    # A type cannot know what a scale set is called.
    made.scale_set = "shop"
    bad = apply_pool.sync_detailed(body.name, client=client, body=made, why=why)
    problem = refused(bad, 422, ProblemCode.INVALIDDOCUMENT)
    check(len(problem.errors) > 0, f"no fault is named: {problem}")
    fault = problem.errors[0]
    words = fault.code and fault.message and fault.help_ != ""
    check(fault.field == "scaleSet" and bool(words), f"another fault: {fault}")
    check(fault.line > 0 and fault.column > 0, f"a fault without a place: {fault}")


def pause_and_resume(client: AuthenticatedClient, pool: str) -> None:
    key = f"{pool}-pause-1"
    body = Reason(why="errors since noon")
    receipt = granted(CommandReceipt, pause.sync_detailed(pool, client=client, body=body, idempotency_key=key), 202)
    is_it = receipt.state == ReceiptState.WAITING and (receipt.who, receipt.why) == ("operator", body.why)
    check(is_it, f"another receipt: {receipt}")
    again = granted(CommandReceipt, pause.sync_detailed(pool, client=client, body=body, idempotency_key=key), 202)
    check(again.id == receipt.id, "one key, two commands")
    other = Reason(why="for another reason")
    refused(pause.sync_detailed(pool, client=client, body=other, idempotency_key=key), 422, ProblemCode.KEYREUSED)
    answered(client, receipt)
    status = granted(PoolStatus, get_status.sync_detailed(pool, client=client))
    holds = [hold for hold in status.holds if hold.reason == HoldReason.PAUSED]
    check(len(holds) == 1 and holds[0].message != "", f"{pool} is not paused, but {status.phase}")
    remedy = holds[0].remedy
    check(isinstance(remedy, CommandRemedy) and remedy.verb == "resume", f"a pause is not resumed, but {remedy}")
    gone = Reason(why="the errors are gone")
    answered(client, granted(CommandReceipt, resume.sync_detailed(pool, client=client, body=gone), 202))


def answered(client: AuthenticatedClient, receipt: CommandReceipt) -> None:
    def found() -> CommandStatus | None:
        status = granted(CommandStatus, get_command.sync_detailed(receipt.pool, receipt.id, client=client))
        return None if status.state == CommandState.WAITING else status

    status = until(f"{receipt.verb} is answered", found)
    check(status.state == CommandState.ACCEPTED and status.message is not None, f"{receipt.verb}: {status}")


def be_refused(setting: Setting) -> None:
    pool, body = setting.pool, Reason(why="to see who may")
    with connect(setting.url, "pk_" + "0" * 40) as stranger:
        refused(get_status.sync_detailed(pool, client=stranger), 401, ProblemCode.UNAUTHENTICATED)
    with connect(setting.url, setting.tokens["viewer"]) as viewer:
        refused(pause.sync_detailed(pool, client=viewer, body=body), 403, ProblemCode.FORBIDDEN)
        refused(get_status.sync_detailed("none", client=viewer), 404, ProblemCode.NOTFOUND)
        refused(list_pools.sync_detailed(client=viewer, limit=0), 400, ProblemCode.BADQUERY)


def read_history(client: AuthenticatedClient, pool: str) -> None:
    lines: list[HistoryLine] = []
    after: int | None = 0
    while after is not None:
        page = granted(HistoryPage, get_history.sync_detailed(pool, client=client, after=after, limit=2))
        check(len(page.items) <= 2, "a page of two lines has more")
        lines += page.items
        after = page.next_ if len(page.items) == 2 else None
    pauses = [line for line in lines if line.verb == "pause" and line.accepted]
    check(any(line.why == "errors since noon" and line.pool == pool for line in pauses), "the history has no pause")
    audit = granted(AuditPage, get_audit.sync_detailed(client=client, limit=500))
    requested = [line for line in audit.items if line.pool == pool and line.verb == "pause"]
    check(any(line.who == "operator" for line in requested), "the audit has no pause")


def follow(client: AuthenticatedClient, pool: str) -> None:
    """The generated function waits for the end of the stream: its request is sent by hand."""
    request = stream_pool_events._get_kwargs(pool, after=0)
    with client.get_httpx_client().stream(**request) as response:
        check(response.status_code == 200, f"no stream: {response.status_code}")
        event: list[str] = []
        for line in response.iter_lines():
            event.append(line)
            if line.startswith("data: "):
                break
    check(any(line.startswith("id: ") for line in event), f"an event without an id: {event}")


def end(client: AuthenticatedClient, pool: str) -> None:
    why = "the shop closes"
    receipt = granted(UnmanageReceipt, unmanage_pool.sync_detailed(pool, client=client, why=why))
    check((receipt.pool, receipt.why) == (pool, why), f"another receipt: {receipt}")
    refused(get_pool.sync_detailed(pool, client=client), 404, ProblemCode.NOTFOUND)


def story(setting: Setting) -> None:
    pool, size = setting.pool, setting.size
    document = Pool(
        api_version="poolkeeper/v1",
        kind="Pool",
        name=pool,
        scale_set=setting.scaleSet,
        replicas=PoolReplicas(owner=PoolReplicasOwner.POOL, count=size),
        rollout=PoolRollout(max_surge=1, min_ready="1s", ramp="off"),
        windows=PoolWindows(deny=[SingleWindow(from_="2020-12-20", until="2021-01-02")]),
    )
    tokens = setting.tokens
    with connect(setting.url, tokens["operator"]) as operator, connect(setting.url, tokens["admin"]) as admin:
        apply(admin, document)
        look_around(operator, setting.url, pool)
        look_closer(operator, pool, size)
        pause_and_resume(operator, pool)
        be_refused(setting)
        read_history(admin, pool)
        follow(operator, pool)
        end(admin, pool)


if __name__ == "__main__":
    story(Setting(**json.load(sys.stdin)))
    Path(sys.argv[1]).write_text(json.dumps(answers))
